"""Where assemblies of a block are stored: the cells of a grid over joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.model.loops.system import Block
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace.functions import floor, maximum, minimum

__all__ = ["Axis", "Grid", "nearest"]

Array = npt.NDArray[np.float64]

CELLS: Final = {1: 256, 2: 32, 3: 12, 4: 7}
"""Cells along each axis, by how many axes there are.

For more of them there is one cell alone: with few along an axis, ways from their
centres meet more singularities than those from the assembly that all began with.
"""


MOST_TEETH: Final = 1000
EXACT: Final = 1e-15


class Axis(NamedTuple):
    """The cells along one input.

    Attributes:
        lower: Where the first begins [m or rad].
        step: The length of each.
        cells: How many there are.
        period: After which poses repeat, 0 if they do not.
    """

    lower: float
    step: float
    cells: int
    period: float

    def reduced(self, u: Number) -> Number:
        """Return the position that poses repeat, nearest to the middle of the axis."""
        return nearest(u, self.lower + 0.5 * self.step * self.cells, self.period)

    def place(self, u: Number) -> Number:
        """Return the number of the cell in which a position is, or the nearest one."""
        cell = floor((u - self.lower) * (1.0 / self.step))
        return minimum(maximum(cell, 0.0), self.cells - 1.0)


class Grid(NamedTuple):
    """The cells over what decides a block, numbered with the last axis fastest.

    Attributes:
        joints: Its axes: the independent joints that decide the inputs of the block, or
            those inputs themselves where they are fewer.
        axes: The cells along each.
        periods: After which each input of the block repeats poses, 0 if it does not.
    """

    joints: tuple[int, ...]
    axes: tuple[Axis, ...]
    periods: tuple[float, ...]

    @classmethod
    def of(cls, cell: Workcell, block: Block) -> Grid:
        """Return cells over the ranges of the joints that decide a block."""
        joints = tuple(cell.loop_system.deciding(block.inputs))
        if len(joints) > len(block.inputs):
            joints = block.inputs
        count = CELLS.get(len(joints), 1)
        return cls(
            joints,
            tuple(_axis(cell, k, count) for k in joints),
            tuple(_period(cell, k) for k in block.inputs),
        )

    @property
    def is_round(self) -> tuple[bool, ...]:
        """Return along which axes the last cell is followed by the first."""
        return tuple(
            math.isclose(axis.period, axis.step * axis.cells) for axis in self.axes
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    def place(self, u: Sequence[Number]) -> Number:
        """Return the number of the cell in which positions of `joints` are."""
        total: Number = 0.0
        for axis, x in zip(self.axes, u, strict=True):
            total = total * float(axis.cells) + axis.place(x)
        return total

    def centres(self) -> Array:
        """Return the middle of each cell, shape (cells, axes)."""
        axes = [a.lower + a.step * (np.arange(a.cells) + 0.5) for a in self.axes]
        mesh: Array = np.stack(np.meshgrid(*axes, indexing="ij"), -1).astype(np.float64)
        return mesh.reshape(-1, len(axes))


def nearest(u: Number, to: Number, period: float) -> Number:
    """Return the position that repeats the pose at u and is nearest to another one.

    period: After which poses repeat, 0 if they do not.
    """
    if not period:
        return u
    return u - period * floor((u - to) * (1.0 / period) + 0.5)


def _axis(cell: Workcell, joint: int, count: int) -> Axis:
    """Return the cells along a joint, over its limits or a turn."""
    joints = cell.joints
    period = _period(cell, joint)
    home, unit = joints.home[joint], joints.system.units[joint]
    lower, upper = (float(each[joint]) for each in joints.ranges[:2])
    if not (math.isfinite(lower) and math.isfinite(upper)):
        turns = cell.links[joints.links[joint]].joint.unit is Unit.RADIAN
        reach = math.pi if turns else 2.0 * unit
        lower, upper = home - reach, home + reach
    if period and upper - lower > period:
        middle = 0.5 * (lower + upper)
        lower, upper = middle - 0.5 * period, middle + 0.5 * period
    if not upper > lower:
        lower, upper, count = lower - 0.5 * unit, lower + 0.5 * unit, 1
    return Axis(lower, (upper - lower) / count, count, period)


def _period(cell: Workcell, joint: int) -> float:
    """Return after which change of a joint all that it moves is where it was, or 0."""
    periods: set[float] = set()
    turns: list[Fraction] = []  # of the joint in a turn of each link that it drives
    for link, several in zip(cell.links, cell.joints.drives, strict=True):
        for drive in several:
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
