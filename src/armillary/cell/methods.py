"""Methods of a cell from functions of its workcell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar, cast

from armillary.model.fields import kept
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["asks", "asks_of_meshes", "asks_once", "edits", "edits_with_meshes"]

_NOTHING: Final[Mapping[Any, Any]] = {}

P = ParamSpec("P")
R = TypeVar("R")


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

    @classmethod
    def of(cls, workcell: Workcell, *, meshes: MeshSource | None = None) -> Self:
        """Return the cell of a workcell."""
        ...


C = TypeVar("C", bound=AnyCell)


def asks(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the method of a cell that puts a question to its workcell."""

    @wraps(question)
    def method(self: AnyCell, *args: P.args, **kwargs: P.kwargs) -> R:
        return question(self.workcell, *args, **kwargs)

    return method


def asks_once(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the same for a question whose answer is a kernel.

    Asked again with the same names, it is not asked at all.
    """

    @wraps(question)
    def method(self: AnyCell, *args: P.args, **kwargs: P.kwargs) -> R:
        workcell = self.workcell
        known = workcell.__dict__.get("kept", _NOTHING)
        key: Any = question, args, (*kwargs.items(),) if kwargs else ()
        try:
            return known[key]
        except KeyError:
            pass
        except TypeError:  # lists have no hash
            named = [(name, _names(given)) for name, given in kwargs.items()]
            key = question, (*map(_names, args),), (*named,)
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


def asks_of_meshes(
    question: Callable[Concatenate[Workcell, P], R],
) -> Callable[Concatenate[AnyCell, P], R]:
    """Return the same for a question that takes what reads the meshes of the cell."""

    @wraps(question)
    def method(self: AnyCell, *args: P.args, **kwargs: P.kwargs) -> R:
        kwargs.setdefault("meshes", self.meshes)
        return question(self.workcell, *args, **kwargs)

    return method


def edits(
    edit: Callable[Concatenate[Workcell, P], Workcell],
) -> Callable[Concatenate[C, P], C]:
    """Return the method of a cell that returns a cell of its edited workcell."""

    @wraps(edit)
    def method(self: C, *args: P.args, **kwargs: P.kwargs) -> C:
        return self.of(edit(self.workcell, *args, **kwargs), meshes=self.meshes)

    return method


def edits_with_meshes(
    edit: Callable[Concatenate[Workcell, P], Workcell],
) -> Callable[Concatenate[C, P], C]:
    """Return the same for an edit that takes what reads the meshes of the cell."""

    @wraps(edit)
    def method(self: C, *args: P.args, **kwargs: P.kwargs) -> C:
        kwargs.setdefault("meshes", self.meshes)
        return self.of(edit(self.workcell, *args, **kwargs), meshes=self.meshes)

    return method
