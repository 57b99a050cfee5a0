"""Numbers of a cell as inputs of its programs, and how frames move with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from armillary.errors import ModelError, NotCompiled
from armillary.kinematics.inputs import Formula, Inputs
from armillary.model.cell_parameters import CellParameter, drive_offsets, varied_cell
from armillary.model.tree import Tree
from armillary.trace import Program, trace

__all__ = ["PARAMETERS", "made_with"]

PARAMETERS: Final = "parameters"
"""The input of programs that holds numbers of the cell, behind q."""

Make = Callable[[Tree, Inputs], Program]


def made_with(make: Make, parameters: Sequence[CellParameter]) -> Make:
    """Return what makes a program with some numbers of the cell as an input behind q.

    The formula is traced of a cell in which these numbers are traced scalars.

    make: The program of a tree and a selection of joints; it finds frames by the cell
        of that tree.
    """

    def made(tree: Tree, selection: Inputs) -> Program:
        _check(tree, selection, parameters)
        nested = selection._replace(is_formula=True)
        formula = cast(Formula, make(tree, nested))
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in formula.shapes.items():
            shapes[name] = shape
            if name == "q":
                shapes[PARAMETERS] = (len(parameters),)
        place = [*shapes].index(PARAMETERS)

        def of_inputs(*given: Any) -> Any:
            p = list(given[place])
            varied = _varied_tree(tree, parameters, p)
            same = cast(Formula, make(varied, nested))
            return same.function(*given[:place], *given[place + 1 :])

        try:
            return trace(
                of_inputs, name=formula.name, outputs=formula.output, **shapes
            )
        except NotCompiled as error:
            raise ModelError(
                f"{formula.name} cannot have parameters= as an input: {error}"
            ) from error

    return made


def _check(
    tree: Tree, selection: Inputs, parameters: Sequence[CellParameter]
) -> None:
    """Refuse what loops move: they are closed with the numbers of the cell."""
    if selection.passive:
        names = ", ".join(tree.cell.joints.all_names[k] for k in selection.passive)
        raise ModelError(
            f"parameters= cannot be an input of what closed loops move ({names}); use "
            "cell.with_parameters({...}), a cell with these values."
        )


def _varied_tree(
    tree: Tree, parameters: Sequence[CellParameter], values: Sequence[Any]
) -> Tree:
    """Return a tree whose numbers are traced, with the same attachments."""
    cell = varied_cell(tree.cell, parameters, values)
    built, varied = Tree.of(tree.cell), Tree.of(cell)
    changed = {
        k: base
        for k, (base, old) in enumerate(zip(tree.bases, built.bases, strict=True))
        if base != old
    }
    if changed:
        varied = varied.attached(changed)
    offsets = drive_offsets(cell, parameters, values)
    if not offsets:
        return varied
    drives = list(varied.drives)
    for link, offset in offsets.items():
        (drive,) = drives[link]
        drives[link] = (drive._replace(offset=drive.offset + offset),)
    return replace(varied, drives=tuple(drives), alike=None)
