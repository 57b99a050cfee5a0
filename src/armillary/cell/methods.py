"""Methods of a cell from functions of its workcell."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["asks", "asks_of_meshes", "edits", "edits_with_meshes"]

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
