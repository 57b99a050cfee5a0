"""Methods of a cell from functions of its workcell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
)

from armillary.forks import IMPORT_LOCK
from armillary.model.fields import kept
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.trajectories.motion import Motion

__all__ = [
    "Later",
    "asks",
    "asks_of_meshes",
    "asks_once",
    "edits",
    "edits_with_meshes",
]

_NOTHING: Final[Mapping[Any, Any]] = {}

P = ParamSpec("P")
R = TypeVar("R")


class Later:
    """A module that is imported when a method is first looked up that needs it."""

    def __init__(self, module: str) -> None:
        """Note its name."""
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _LaterFunction(self._module, name)


class _LaterFunction(NamedTuple):
    module: str
    name: str


class _LaterMethod:
    """A method that puts itself in its own place when it is first looked up.

    Its name, signature and documentation are those of the question, so nobody who asks
    for them needs to know.
    """

    def __init__(
        self, question: _LaterFunction, method_of: Callable[[Any], Any]
    ) -> None:
        self._question, self._method_of = question, method_of

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with IMPORT_LOCK:
            module = import_module(self._question.module)
        method = self._method_of(getattr(module, self._question.name))
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


def _method(question: Any, method_of: Callable[[Any], Any]) -> Any:
    if isinstance(question, _LaterFunction):
        return _LaterMethod(question, method_of)
    return method_of(question)


class AnyCell(Protocol):
    """What has a workcell."""

    @property
    def workcell(self) -> Workcell:
        """Return its data."""
        ...

    @property
    def meshes(self) -> MeshSource | None:
        """Return what reads its meshes."""
        ...

    @property
    def motions(self) -> Mapping[str, Motion]:
        """Return its motions by name."""
        ...

    @classmethod
    def of(
        cls,
        workcell: Workcell,
        *,
        meshes: MeshSource | None = None,
        motions: Mapping[str, Motion] = ...,
    ) -> Self:
        """Return the cell of a workcell."""
        ...


C = TypeVar("C", bound=AnyCell)


def asks(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the method of a cell that puts a question to its workcell.

    question: Here and below, a function, or one of a module that comes `Later`.
    """
    return _method(question, _asking)


def asks_once(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the same for a question whose answer is a kernel.

    Asked again with the same names, it is not asked at all.
    """
    return _method(question, _asking_once)


def asks_of_meshes(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the same for a question that takes what reads the meshes of the cell."""
    return _method(question, _asking_of_meshes)


def edits(
    edit: Callable[Concatenate[Workcell, P], Workcell],
) -> Callable[Concatenate[C, P], C]:
    """Return the method of a cell that returns a cell of its edited workcell."""
    return _method(edit, _editing)


def edits_with_meshes(
    edit: Callable[Concatenate[Workcell, P], Workcell],
) -> Callable[Concatenate[C, P], C]:
    """Return the same for an edit that takes what reads the meshes of the cell."""
    return _method(edit, _editing_with_meshes)


Question = Callable[..., Any]


def _asking(question: Question) -> Question:
    @wraps(question)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        return question(self.workcell, *args, **kwargs)

    return method


def _asking_once(question: Question) -> Question:
    @wraps(question)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        workcell = self.workcell
        known = workcell.__dict__.get("kept", _NOTHING)
        named: tuple[Any, ...] = ()
        if kwargs:
            named = (*kwargs.items(),)
            if type(kwargs.get("joints")) is list:  # lists have no hash
                named = (*[(name, _names(given)) for name, given in named],)
        key: Any = question, args, named
        try:
            return known[key]
        except KeyError:
            pass
        except TypeError:  # seen late, which takes longer
            named = (*[(name, _names(given)) for name, given in named],)
            key = question, (*map(_names, args),), named
            with suppress(KeyError, TypeError):
                return known[key]
        if not all(map(_is_name, (*key[1], *(given for _, given in key[2])))):
            return question(workcell, *args, **kwargs)
        return kept(workcell, key, lambda: question(workcell, *args, **kwargs))

    return method


def _names(given: object) -> object:
    """Return a list as a tuple, which can be a part of a key, all else as it is."""
    listed: Any = given
    return tuple(listed) if type(given) is list else given


def _is_name(given: object) -> bool:
    """Return whether something is a name, or a tuple of names: no other equals it."""
    if type(given) is tuple:
        return all(type(each) is str for each in cast("tuple[Any, ...]", given))
    return type(given) is str


def _asking_of_meshes(question: Question) -> Question:
    @wraps(question)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("meshes", self.meshes)
        return question(self.workcell, *args, **kwargs)

    return method


def _editing(edit: Question) -> Question:
    @wraps(edit)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        return self.of(
            edit(self.workcell, *args, **kwargs),
            meshes=self.meshes,
            motions=self.motions,
        )

    return method


def _editing_with_meshes(edit: Question) -> Question:
    @wraps(edit)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("meshes", self.meshes)
        return self.of(
            edit(self.workcell, *args, **kwargs),
            meshes=self.meshes,
            motions=self.motions,
        )

    return method
