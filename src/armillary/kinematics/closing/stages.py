"""The stages of a pipeline that solve for passive joints before a program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import gcd, lcm
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel.stages import At, Stage
from armillary.kernel.tables import Table, reals
from armillary.kinematics.closing.block_programs import BlockPrograms
from armillary.model.fields import kept
from armillary.model.loops.system import Block
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, floor, maximum, minimum, select

__all__ = [
    "AssemblyGrid",
    "Beginning",
    "GridAxis",
    "block_programs",
    "closing_stages",
    "earlier_blocks",
    "grid_of",
    "inputs_program",
    "nearest_rows",
    "period_of",
    "table_of",
]

Beginning = Literal["stored", "known", "last", "near"]
"""From where passive joints are solved for: the assembly stored nearest to the inputs,
an assembly `x0` of all joints that is followed to them, the same as far as it can be
followed, or just positions `near`."""

# where assemblies of a block are stored: the cells of a grid over joints

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

CELLS: Final = {1: 256, 2: 32, 3: 12, 4: 7}
"""Cells along each axis, by how many axes there are.

For more of them there is one cell alone: with few along an axis, ways from their
centres meet more singularities than those from the assembly that all began with.
"""


MOST_TEETH: Final = 1000
EXACT: Final = 1e-15
ON_BORDER: Final = 1e-6  # of a cell


class GridAxis(NamedTuple):
    """The cells along one input.

    Attributes:
        lower: Where the first begins [m or rad].
        step: The length of each.
        cells: How many there are.
        period: After which poses repeat, 0 if they do not.
        is_free: Whether the joint can turn by that within its limits.
    """

    lower: float
    step: float
    cells: int
    period: float
    is_free: bool

    @property
    def is_round(self) -> bool:
        """Return whether the last cell is followed by the first."""
        return math.isclose(self.period, self.step * self.cells)

    def reduced(self, u: Number) -> Number:
        """Return the position that poses repeat, nearest to the middle of the axis."""
        return nearest(u, self.lower + 0.5 * self.step * self.cells, self.period)

    def change(self, to: float, start: float) -> float:
        """Return how far a joint moves: freely the shorter way, else within limits."""
        if self.is_free:
            return float(nearest(to, start, self.period)) - start
        return float(self.reduced(to)) - float(self.reduced(start))

    def place(self, u: Number) -> Number:
        """Return the number of the cell in which a position is, or the nearest one."""
        cell = floor((u - self.lower) * (1.0 / self.step))
        return minimum(maximum(cell, 0.0), self.cells - 1.0)

    def contains(self, u: Number) -> Any:
        """Return whether a position is in a cell, or on the border of the last one."""
        apart = absolute((u - self.lower) * (1.0 / self.step) - 0.5 * self.cells)
        return apart < 0.5 * self.cells + ON_BORDER


class AssemblyGrid(NamedTuple):
    """The cells over what decides a block, numbered with the last axis fastest.

    Attributes:
        joints: Its axes: the independent joints that decide the inputs of the block, or
            those inputs themselves where they are fewer.
        axes: The cells along each.
        periods: After which each input of the block repeats poses, 0 if it does not, or
            if its limits are nearer together than that: it stays between them.
    """

    joints: tuple[int, ...]
    axes: tuple[GridAxis, ...]
    periods: tuple[float, ...]

    @classmethod
    def of(cls, cell: Workcell, block: Block) -> AssemblyGrid:
        """Return cells over the ranges of the joints that decide a block."""
        joints = tuple(cell.loop_system.deciding(block.inputs))
        # Few inputs that many joints decide make a smaller grid, also where they are
        # passive joints of earlier blocks.
        if len(joints) > len(block.inputs):
            joints = block.inputs
        count = CELLS.get(len(joints), 1)
        axes = cls.axes_of(cell, joints, count)
        bounded = {k for k, a in zip(joints, axes, strict=True) if not a.is_free}
        free = [k not in bounded or k >= cell.loop_system.count for k in block.inputs]
        periods = zip(block.inputs, free, strict=True)
        return cls(
            joints, axes, tuple(period_of(cell, k) * is_free for k, is_free in periods)
        )

    @staticmethod
    def axes_of(
        cell: Workcell, joints: Sequence[int], count: int = 1
    ) -> tuple[GridAxis, ...]:
        """Return so many cells over the range of each joint, cached by the cell."""
        return tuple(
            kept(cell, ("axis", k, count), lambda k=k: _axis(cell, k, count))
            for k in joints
        )

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    def place(self, u: Sequence[Number]) -> Number:
        """Return the number of the cell in which positions of `joints` are.

        Outside of several axes it is `outside`; outside of one, that of the last cell.
        """
        total: Number = 0.0
        for axis, x in zip(self.axes, u, strict=True):
            total = total * float(axis.cells) + axis.place(x)
        if len(self.axes) == 1 or self.cells == 1:
            return total
        for axis, x in zip(self.axes, u, strict=True):
            if not axis.is_round:
                total = select(axis.contains(x), total, float(self.outside))
        return total

    @property
    def outside(self) -> int:
        """Return the record of what is outside: behind two for each cell."""
        return 2 * self.cells

    def within(self, u: Sequence[Number], joints: Sequence[int]) -> list[Number]:
        """Return positions of joints, those between limits as `GridAxis.reduced`."""
        bounded = {
            k: axis
            for k, axis in zip(self.joints, self.axes, strict=True)
            if not axis.is_free
        }
        return [
            bounded[k].reduced(x) if k in bounded else x
            for k, x in zip(joints, u, strict=True)
        ]

    def centres(self) -> Array:
        """Return the middle of each cell, shape (cells, axes)."""
        return self._mesh([np.arange(0.5, a.cells) for a in self.axes])

    def corners(self) -> Array:
        """Return the corners of cells, shape (corners, axes)."""
        return self._mesh([np.arange(0.0, a.cells + 1) for a in self.axes])

    def _mesh(self, places: Sequence[Array]) -> Array:
        """Return points, the last axis fastest, from places along axes [cells]."""
        axes = [a.lower + a.step * k for a, k in zip(self.axes, places, strict=True)]
        mesh: Array = np.stack(np.meshgrid(*axes, indexing="ij"), -1).astype(np.float64)
        return mesh.reshape(-1, len(axes))

    def corners_of_cells(self) -> Indices:
        """Return the places in `corners` of those of each cell, (2^axes, cells)."""
        shape = [axis.cells + 1 for axis in self.axes]
        numbers: Indices = np.arange(math.prod(shape)).reshape(shape)
        corners = [
            numbers[
                tuple(slice(k, k + n) for k, n in zip(step, self.shape, strict=True))
            ]
            for step in product((0, 1), repeat=len(shape))
        ]
        return np.array([each.ravel() for each in corners], dtype=np.int64)


def nearest(u: Number, to: Number, period: float) -> Number:
    """Return the position that repeats the pose at u and is nearest to another one.

    period: After which poses repeat, 0 if they do not.
    """
    if not period:
        return u
    return u - period * floor((u - to) * (1.0 / period) + 0.5)


def nearest_rows(u: Array, to: Array, periods: npt.ArrayLike) -> Array:
    """Return what `nearest` does of each of several joints, shape (..., d).

    periods: Of each joint, 0 if poses do not repeat, shape (d,).
    """
    period = np.asarray(periods, np.float64)
    turns = np.floor((u - to) / np.where(period > 0.0, period, np.inf) + 0.5)
    return np.asarray(u - turns * period)


def _axis(cell: Workcell, joint: int, count: int) -> GridAxis:
    """Return the cells along a joint, over its limits or a turn."""
    joints = cell.joints
    period = period_of(cell, joint)
    home, unit = joints.home[joint], joints.system.units[joint]
    lower, upper = (float(each[joint]) for each in joints.ranges[:2])
    is_free = not upper - lower < period if period else False
    # Joints without limits: a turn about home, or lengths about the size of the loop.
    if not (math.isfinite(lower) and math.isfinite(upper)):
        turns = cell.links[joints.links[joint]].joint.unit is Unit.RADIAN
        reach = math.pi if turns else 2.0 * unit
        lower, upper = home - reach, home + reach
    if period and upper - lower > period:
        middle = 0.5 * (lower + upper)
        lower, upper = middle - 0.5 * period, middle + 0.5 * period
    if not upper > lower:
        lower, upper, count = lower - 0.5 * unit, lower + 0.5 * unit, 1
    return GridAxis(lower, (upper - lower) / count, count, period, is_free)


def period_of(cell: Workcell, joint: int) -> float:
    """Return after which change of a joint all that it moves is where it was, or 0."""
    periods: set[float] = set()
    turns: list[Fraction] = []  # of the joint in a turn of each link that it drives
    for link, several in zip(cell.links, cell.joints.drives, strict=True):
        for drive in several:
            # Gears: a joint that drives links at ratios a/b, c/d repeats all poses
            # after lcm / gcd of the turns that each needs. Other multipliers have no
            # period.
            ratio = Fraction(drive.multiplier).limit_denominator(MOST_TEETH)
            if drive.of != joint or not drive.multiplier:
                continue
            if len(several) > 1 or abs(float(ratio) / drive.multiplier - 1.0) > EXACT:
                return 0.0
            periods.add(link.joint.period or 0.0)
            turns.append(1 / abs(ratio))
    if len(periods) != 1:
        return 0.0
    common = lcm(*(each.numerator for each in turns))
    return periods.pop() * common / gcd(*(each.denominator for each in turns))


# the stages of a pipeline that solve for passive joints before a program runs


def block_programs(cell: Workcell, number: int) -> BlockPrograms:
    """Return the programs of a block, cached by the cell."""
    system = cell.loop_system
    return kept(
        cell,
        ("block", number),
        lambda: BlockPrograms(system, system.blocks[number], f"_{number}"),
    )


def grid_of(cell: Workcell, number: int) -> AssemblyGrid:
    """Return the grid over what decides a block, cached by the cell."""
    block = cell.loop_system.blocks[number]
    return kept(cell, ("grid", number), lambda: AssemblyGrid.of(cell, block))


def table_of(programs: BlockPrograms) -> Table:
    """Return the table of the assemblies of a block."""
    names = "u0", "p0", "j0", "reciprocal0"
    fields = [reals(programs.column(name), programs.shapes[name]) for name in names]
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
        # Loops of a batch: begin at the assembly of the cell, from a table.
        if beginning == "stored":
            stages += _from_stored(cell, number)
        elif beginning in {"known", "last"}:
            block = programs.block

            def known(
                u: Any, x0: Any, block: Any = block, grid: AssemblyGrid = grid
            ) -> Any:
                u0 = grid.within([x0[k] for k in block.inputs], block.inputs)
                return _nearest(u, u0, grid), u0, [x0[k] for k in block.unknowns]

            names = [programs.column(name) for name in ("u", "u0", "p0")]
            shapes = {programs.column("u"): (len(block.inputs),), "x0": (size,)}
            stages.append(
                trace(known, name=programs.column("known"), outputs=names, **shapes)
            )
            # Ways that states walk: the tangent at x0, then Newton's method in parts.
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


def _nearest(
    u: Sequence[Number], u0: Sequence[Number], grid: AssemblyGrid
) -> list[Number]:
    return [nearest(*each) for each in zip(u, u0, grid.periods, strict=True)]


def _turned(cell: Workcell, number: int) -> Program:
    """Return the program that brings inputs next to those of a stored assembly."""
    programs, grid = block_programs(cell, number), grid_of(cell, number)

    def turned(u: Any, u0: Any) -> Any:
        return _nearest(u, u0, grid)

    return programs.traced(turned, "turned u", ("u",), ("u", "u0"))


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
        values: list[Any] = [[q[k] for k in block.inputs], place]
        if block.more:
            values.append([q[k] for k in block.more])
        return values

    outputs = ["u", "at", "more"] if block.more else ["u", "at"]
    shapes = {other.column("p"): other.shapes["p"] for other in earlier}
    return trace(
        inputs,
        name=programs.column("inputs"),
        outputs=list(map(programs.column, outputs)),
        independent=(system.count,),
        **shapes,
    )
