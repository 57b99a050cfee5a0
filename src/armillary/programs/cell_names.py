"""Names in programs that a cell has to know."""

from __future__ import annotations

from functools import cache
from typing import Final

from armillary.errors import ArmillaryError
from armillary.model.workcell import Workcell
from armillary.programs.program import Program
from armillary.programs.steps import AnyStep, Appear, Drive, Grip, Leave, Release

__all__ = ["check_names", "frames_of"]

FRAMES: Final = "frame", "relative_to", "by", "onto", "on"
"""Fields of steps that name frames."""


def frames_of(step: AnyStep) -> list[str]:
    """Return the frames that a step names."""
    fields = _frame_fields(type(step))
    return [name for field in fields if (name := getattr(step, field))]


@cache
def _frame_fields(kind: type[AnyStep]) -> tuple[str, ...]:
    """Return the fields of a kind of steps that name frames."""
    return tuple(field for field in FRAMES if hasattr(kind, field))


def check_names(cell: Workcell, program: Program) -> None:
    """Refuse names that do not exist in a cell, before anything moves.

    Raises:
        UnknownName: One does not exist.
        StateError: A part cannot be moved.
    """
    for place, step in program.walk():
        try:
            for name in frames_of(step):
                cell.frame(name)
            if isinstance(step, Drive):
                cell.joint(step.joint)
            if isinstance(step, Grip | Release | Appear | Leave):
                cell.number(step.part)
        except ArmillaryError as error:
            raise type(error)(f"{place}: {error}") from error
