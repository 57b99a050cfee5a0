"""Numbers of a cell as inputs of its programs, and how frames move with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from armillary.errors import ModelError, NotCompiled
from armillary.forks import IMPORT_LOCK
from armillary.kinematics.inputs import PASSIVE, Formula, Inputs
from armillary.model.cell_parameters import (
    CellParameter,
    drive_offsets,
    values_in,
    varied_cell,
)
from armillary.model.fields import kept
from armillary.model.loops.equations import loop_rows
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Program, jvp, trace
from armillary.trace.functions import absolute, maximum, select

__all__ = [
    "PARAMETERS",
    "corrected_program",
    "made_with",
    "parameter_rates",
    "varied_tree",
]

PARAMETERS: Final = "parameters"
"""The input of programs that holds numbers of the cell, behind q."""

STEPS: Final = 4
"""Of Newton's method: from errors of a hundredth, three reach rounding."""
CONVERGED: Final = 1e-7
"""The last step [m or rad]; convergence is quadratic."""

Make = Callable[[Tree, Inputs], Program]


def made_with(make: Make, parameters: Sequence[CellParameter]) -> Make:
    """Return what makes a program with some numbers of the cell as an input behind q.

    The formula is traced of a cell in which these numbers are traced scalars.

    make: The program of a tree and a selection of joints; it finds frames by the cell
        of that tree.
    """

    def made(tree: Tree, selection: Inputs) -> Program:
        nested = selection._replace(is_formula=True)
        formula = cast(Formula, make(tree, nested))
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in formula.shapes.items():
            shapes[name] = shape
            if name == "q":
                shapes[PARAMETERS] = (len(parameters),)

        def of_inputs(*given: Any) -> Any:
            values = dict(zip(shapes, given, strict=True))
            varied = varied_tree(tree, parameters, list(values.pop(PARAMETERS)))
            same = cast(Formula, make(varied, nested))
            return same.function(*values.values())

        try:
            return trace(of_inputs, name=formula.name, outputs=formula.output, **shapes)
        except NotCompiled as error:
            raise ModelError(
                f"{formula.name} cannot have parameters= as an input: {error}"
            ) from error

    return made


def varied_tree(
    tree: Tree, parameters: Sequence[CellParameter], values: Sequence[Any]
) -> Tree:
    """Return a tree whose numbers are traced, with the same attachments."""
    cell = varied_cell(tree.cell, parameters, values)
    if tree.cell.loop_system.blocks:
        equations = tuple(
            each._replace(program=program, parameters=tuple(values))
            for each, program in zip(
                tree.cell.loop_system.equations,
                _loop_programs(tree.cell, parameters),
                strict=True,
            )
        )
        system = replace(tree.cell.loop_system, equations=equations)
        vars(cell.joints)["system"] = system
    built, varied = Tree.of(tree.cell), _built(cell, parameters, values)
    changed = {
        k: base
        for k, (base, old) in enumerate(zip(tree.bases, built.bases, strict=True))
        if base != old
    }
    return varied.attached(changed) if changed else varied


def _built(
    cell: Workcell, parameters: Sequence[CellParameter], values: Sequence[Any]
) -> Tree:
    """Return the tree in which a varied cell was built, offsets of joints added."""
    tree = Tree.of(cell)
    offsets = drive_offsets(cell, parameters, values)
    if not offsets:
        return tree
    drives = list(tree.drives)
    for link, offset in offsets.items():
        (drive,) = drives[link]
        drives[link] = (drive._replace(offset=drive.offset + offset),)
    return tree.with_drives(tuple(drives))


# closed loops: solved with the numbers of the cell first, then with others


def _loop_programs(
    cell: Workcell, parameters: Sequence[CellParameter]
) -> tuple[Program, ...]:
    """Return the equations of each loop as programs of joints and parameters."""

    def program(loop: int) -> Program:
        nominal = cell.loop_system.equations[loop]

        def equations(own: Any, p: Any) -> Any:
            varied = varied_cell(cell, parameters, list(p))
            vars(varied.joints)["system"] = cell.loop_system
            tree = _built(varied, parameters, list(p))
            placed = varied.joints.loops_in_order[loop]
            return loop_rows(tree, placed, nominal.joints, own)

        return trace(
            equations,
            name=nominal.program.name,
            outputs=("rows", "rates"),
            own=(len(nominal.joints),),
            p=(len(parameters),),
        )

    key = "loops of parameters", tuple(each.name for each in parameters)
    count = len(cell.loop_system.equations)
    return kept(cell, key, lambda: tuple(map(program, range(count))))


def corrected_program(cell: Workcell, selection: Inputs) -> Program:
    """Return the program that closes loops with parameters.

    Newton's method begins where they are closed with the numbers of the cell as it is:
    x -> x - (dr/dx)^-1 r(x, p). Where it does not converge, passive joints are NaN.
    """
    others = {name: s for name, s in selection.shapes.items() if name == "others"}
    parameters = selection.parameters

    def corrected(*given: Any) -> Any:
        *more, passive, q, p = given
        varied = varied_tree(Tree.of(cell), parameters, list(p)).cell
        whole = selection.vector(q, more[0] if more else (), passive)
        return _closed(varied, whole, selection.passive)

    shapes = {
        **others,
        PASSIVE: (len(selection.passive),),
        "q": (len(selection.inputs),),
        PARAMETERS: (len(parameters),),
    }
    return trace(corrected, name="corrected", outputs=(PASSIVE,), **shapes)


def parameter_rates(
    cell: Workcell, q: Sequence[Any], passive: Sequence[int]
) -> list[list[tuple[Any, Number]]]:
    """Return what moves per unit of each parameter of a varied cell, and how fast.

    It is the parameter, and passive joints x by the implicit function of their loops:
    dx/dp = -(dr/dx)^-1 (dr/dp + dr/du du/dp), with joints u of earlier blocks.

    q: Where all joints are, loops closed.
    """
    values = values_in(cell)
    moving: list[list[tuple[Any, Number]]] = [[(p, 1.0)] for p in values]
    if not passive:
        return moving
    with IMPORT_LOCK:
        from armillary.kinematics.closing.stages import (
            block_programs,  # for loops alone
        )

    for number in cell.loop_system.needed(passive):
        programs = block_programs(cell, number)
        block = programs.block
        u, x = ([q[k] for k in each] for each in (block.inputs, block.unknowns))
        rows, rates = programs.rows(u, x)
        factored = programs.factored(rates)
        for changes in moving:
            open_rates = jvp(list(rows), changes)
            solved = factored.solve([0.0 - rate for rate in open_rates])
            changes.extend(zip(x, solved, strict=True))
    return moving


def _closed(
    cell: Workcell, whole: Sequence[Any], passive: Sequence[int]
) -> list[Number]:
    """Return passive joints where loops of a varied cell are closed, else NaN."""
    with IMPORT_LOCK:
        from armillary.kinematics.closing.stages import (
            block_programs,  # for loops alone
        )

    positions = list(whole)
    for number in cell.loop_system.needed(passive):
        programs = block_programs(cell, number)
        block = programs.block
        u = [positions[k] for k in block.inputs]
        x: list[Number] = [positions[k] for k in block.unknowns]
        size: Number = 0.0
        for _ in range(STEPS):
            values, rates = programs.rows(u, x)
            change = programs.factored(rates).solve(values)
            x = [a - dx for a, dx in zip(x, change, strict=True)]
            size = _largest(change)
        for k, a in zip(block.unknowns, x, strict=True):
            positions[k] = select(size < CONVERGED, a, math.nan)
    return [positions[k] for k in passive]


def _largest(change: Sequence[Number]) -> Number:
    """Return the largest absolute value."""
    largest: Number = 0.0
    for each in change:
        largest = maximum(largest, absolute(each))
    return largest
