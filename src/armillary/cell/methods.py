"""Methods of a cell from functions of its workcell."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from armillary.forks import IMPORT_LOCK
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["Later", "asks", "asks_of_meshes", "edits", "edits_with_meshes"]

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

    @classmethod
    def of(cls, workcell: Workcell, *, meshes: MeshSource | None = None) -> Self:
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


def _asking_of_meshes(question: Question) -> Question:
    @wraps(question)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("meshes", self.meshes)
        return question(self.workcell, *args, **kwargs)

    return method


def _editing(edit: Question) -> Question:
    @wraps(edit)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        return self.of(edit(self.workcell, *args, **kwargs), meshes=self.meshes)

    return method


def _editing_with_meshes(edit: Question) -> Question:
    @wraps(edit)
    def method(self: AnyCell, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("meshes", self.meshes)
        return self.of(edit(self.workcell, *args, **kwargs), meshes=self.meshes)

    return method
