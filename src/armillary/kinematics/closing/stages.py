"""The stages of a pipeline that solve for passive joints before a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from armillary.kernel.pipeline import At, Stage
from armillary.kernel.tables import Table, reals
from armillary.kinematics.closing.block_programs import BlockPrograms
from armillary.kinematics.closing.grid import Grid, nearest
from armillary.model.fields import kept
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Program, trace

__all__ = [
    "Beginning",
    "block_programs",
    "closing_stages",
    "earlier_blocks",
    "grid_of",
    "inputs_program",
    "table_of",
]

Beginning = Literal["stored", "known", "last", "near"]
"""From where passive joints are solved for: the assembly stored nearest to the inputs,
an assembly `x0` of all joints that is followed to them, the same as far as it can be
followed, or just positions `near`."""


def block_programs(cell: Workcell, number: int) -> BlockPrograms:
    """Return the programs of a block, which the cell keeps."""
    system = cell.loop_system
    return kept(
        cell,
        ("block", number),
        lambda: BlockPrograms(system, system.blocks[number], f"_{number}"),
    )


def grid_of(cell: Workcell, number: int) -> Grid:
    """Return the grid over what decides a block, which the cell keeps."""
    block = cell.loop_system.blocks[number]
    return kept(cell, ("grid", number), lambda: Grid.of(cell, block))


def table_of(programs: BlockPrograms) -> Table:
    """Return the table of the assemblies of a block."""
    d, k = programs.sizes
    shapes = {"u0": (d,), "p0": (k,), "j0": (k, d), "reciprocal0": ()}
    fields = [reals(programs.column(name), shape) for name, shape in shapes.items()]
    return Table(programs.column("assemblies"), tuple(fields))


def closing_stages(
    cell: Workcell, blocks: Sequence[int], beginning: Beginning
) -> list[Stage]:
    """Return stages that make columns p_0, p_1, ... of passive joints, one a block.

    They read the column `independent` of the positions of all independent joints, and
    with `known` and `last` the column `x0`, with `near` the column `near` of passive
    joints.

    Args:
        cell: Whose loops.
        blocks: Which of them to solve for, in order, with all that they need.
        beginning: From where they are solved for.
    """
    stages: list[Stage] = []
    system = cell.loop_system
    size = len(system.order)
    for number in blocks:
        programs, grid = block_programs(cell, number), grid_of(cell, number)
        stages.append(inputs_program(cell, number))
        if beginning == "stored":
            stages += _from_stored(cell, number)
        elif beginning in {"known", "last"}:
            block = programs.block

            def known(u: Any, x0: Any, block: Any = block, grid: Grid = grid) -> Any:
                u0 = grid.within([x0[k] for k in block.inputs], block.inputs)
                return _nearest(u, u0, grid), u0, [x0[k] for k in block.unknowns]

            names = [programs.column(name) for name in ("u", "u0", "p0")]
            shapes = {programs.column("u"): (len(block.inputs),), "x0": (size,)}
            stages.append(
                trace(known, name=programs.column("known"), outputs=names, **shapes)
            )
            stages += [programs.implicit, programs.walk_start, *programs.walk]
            if beginning == "last":
                stages.append(programs.back)
        else:
            unknowns = [k - system.count for k in programs.block.unknowns]

            def given(near: Any, unknowns: Any = unknowns) -> Any:
                return [near[k] for k in unknowns], 1.0

            stages.append(
                trace(
                    given,
                    name=programs.column("given"),
                    outputs=[programs.column("p"), programs.column("going")],
                    near=(size - system.count,),
                )
            )
            stages += programs.search
        if beginning != "last":
            stages.append(programs.check)
    return stages


def _from_stored(cell: Workcell, number: int) -> Sequence[Stage]:
    """Return stages that solve for a block from the assemblies of its table."""
    programs, grid = block_programs(cell, number), grid_of(cell, number)
    table, at = programs.column("assemblies"), programs.column("at")
    turned = [_turned(cell, number)] if any(grid.periods) else []

    def load(start: Program) -> list[Stage]:
        return [At(table, (*turned, start), at)]

    return programs.solve(
        load, programs.next_try(grid.cells) if grid.cells > 1 else None
    )


def _nearest(u: Sequence[Number], u0: Sequence[Number], grid: Grid) -> list[Number]:
    return [nearest(*each) for each in zip(u, u0, grid.periods, strict=True)]


def _turned(cell: Workcell, number: int) -> Program:
    """Return the program that brings inputs next to those of a stored assembly."""
    programs, grid = block_programs(cell, number), grid_of(cell, number)

    def turned(u: Any, u0: Any) -> Any:
        return _nearest(u, u0, grid)

    d, _ = programs.sizes
    shapes = {programs.column("u"): (d,), programs.column("u0"): (d,)}
    name = programs.column("u")
    return trace(turned, name=f"turned {name}", outputs=(name,), **shapes)


def earlier_blocks(cell: Workcell, number: int) -> list[int]:
    """Return the blocks whose unknowns a block takes as they are, in order."""
    system = cell.loop_system
    block = system.blocks[number]
    taken = (*block.inputs, *block.more)
    needed = {system.block_of[k] for k in taken if k >= system.count}
    return sorted(needed - {number})


def inputs_program(cell: Workcell, number: int) -> Program:
    """Return the program of a block's inputs, and of their cell in its grid.

    It takes all independent joints, and the unknowns of `earlier_blocks`.
    """
    programs, grid = block_programs(cell, number), grid_of(cell, number)
    block, system = programs.block, programs.system
    earlier = [block_programs(cell, b) for b in earlier_blocks(cell, number)]

    def inputs(independent: Sequence[Number], *solved: Any) -> Any:
        q: dict[int, Number] = dict(enumerate(independent))
        for other, p in zip(earlier, solved, strict=True):
            q |= dict(zip(other.block.unknowns, p, strict=True))
        for k, axis in zip(grid.joints, grid.axes, strict=True):
            q[k] = axis.reduced(q[k])
        place = grid.place([q[k] for k in grid.joints])
        found: list[Any] = [[q[k] for k in block.inputs], place]
        if block.more:
            found.append([q[k] for k in block.more])
        return found

    outputs = ["u", "at", "more"] if block.more else ["u", "at"]
    shapes = {other.column("p"): (other.sizes[1],) for other in earlier}
    return trace(
        inputs,
        name=programs.column("inputs"),
        outputs=list(map(programs.column, outputs)),
        independent=(system.count,),
        **shapes,
    )
