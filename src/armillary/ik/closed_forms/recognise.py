"""Which family an arm belongs to, or why to none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from armillary.ik.closed_forms.decoupled import ORIENTING, ORIENTING_THREE
from armillary.ik.closed_forms.dh_from_axes import Arm, arm_of
from armillary.ik.closed_forms.family import (
    Family,
    Formula,
    FormulaAnswer,
    NotApplicable,
    Preferred,
    require,
)
from armillary.ik.closed_forms.general_6r.geometry import SixAxes, axes_of
from armillary.ik.closed_forms.planar import PLANAR_SLIDING, PLANAR_THREE, PLANAR_TWO
from armillary.ik.closed_forms.point import POINT, POINT_TURNS
from armillary.ik.closed_forms.prismatic_arm import PrismaticArm, prismatic_arm_of
from armillary.ik.closed_forms.screw_axes import Chain, chain_of
from armillary.ik.closed_forms.spherical_shoulder import SPHERICAL_SHOULDER
from armillary.ik.closed_forms.spherical_wrist import SPHERICAL_WRIST
from armillary.ik.closed_forms.subproblems import Turn
from armillary.ik.closed_forms.three_directions import (
    PAIRS_AND_SLIDE,
    THREE_AND_SLIDE,
)
from armillary.ik.closed_forms.three_parallel import THREE_PARALLEL
from armillary.ik.problem import Goal
from armillary.kinematics.inputs import Inputs
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace.functions import cos, sin

FAMILIES: tuple[Family[Arm], ...] = (*SPHERICAL_WRIST, THREE_PARALLEL)
"""Arms of six joints that turn; tried in this order."""


def _of_kernels(arm: SixAxes) -> Formula:
    """Return what stands for the formula of arms that kernels solve in stages."""
    require(arm.size > 0.0, "all its axes meet in one point")

    def formula(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        raise AssertionError("solved by the kernels of general_6r/stages.py")

    return formula


GENERAL_SIX: Family[SixAxes] = Family("six revolute joints", _of_kernels, ())
MIXED_SIX: Family[SixAxes] = Family("six joints, some of which slide", _of_kernels, ())
FEWER_AXES: Family[SixAxes] = Family("fewer than six joints", _of_kernels, ())
FREE_AXIS: Family[SixAxes] = Family("a free axis of the tool", _of_kernels, ())
"""Any other arm: it has no formula, see `general_form.py`."""

FEWER: tuple[tuple[Family[PrismaticArm], ...], ...] = (
    (ORIENTING,),
    (ORIENTING,),
    (ORIENTING, PLANAR_SLIDING, PLANAR_TWO),
    (ORIENTING_THREE, PLANAR_THREE),
    (),
    (THREE_AND_SLIDE, PAIRS_AND_SLIDE),
)
"""Arms by how many of their joints turn: none to five."""

MOST, JOINTS, REDUNDANT = 3, 6, 7
CHECKS = 16
ROUNDING = 1e-13
ACCURACY = 1e-7  # of the formula's geometry against the model's, of the arm's size


_Candidate = tuple[Family[Any], Arm | PrismaticArm | SixAxes, bool]
"""A family, an arm of which it may be the family, and whether that is reversed."""


class Closed(NamedTuple):
    """A closed form of one chain.

    Attributes:
        family: What it belongs to.
        arm: The geometry that the formula is about.
        formula: The formula.
        backwards: Whether the chain was taken from its other end.
        point: Whether it places a point, whatever the rotation.
        accuracy: How far the formula's geometry is from the model's [m, 1].
        others: Why it belongs to no family that was tried before.
    """

    family: Family[Any]
    arm: Arm | PrismaticArm | SixAxes
    formula: Formula
    backwards: bool
    point: bool
    accuracy: float
    others: tuple[str, ...] = ()

    @property
    def branches(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the branches, in order."""
        pairs = [(c.positive, c.negative) for c in self.family.choices]
        return tuple(itertools.product(*pairs))

    def solve(self, target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        """Return the answer of each branch, by the numbers of `arm.drives`."""
        return self.formula(self.inner(target), preferred)

    def inner(self, target: Pose) -> Pose:
        """Return a target as the last axis's frame in that of the first."""
        if self.point:
            return self.arm.base.inverse() @ Pose.translation(*target.position)
        X = target.inverse() if self.backwards else target
        return self.arm.base.inverse() @ X @ self.arm.tool.inverse()

    @property
    def exact(self) -> bool:
        """Return whether the formula's geometry is the model's but for rounding."""
        return self.accuracy <= ROUNDING * max(1.0, self.arm.size)

    def parts(self, q: Sequence[Number]) -> tuple[list[Turn], list[Number]]:
        """Return the turns and the shifts of joints at q."""
        angles = [drive.at(q) for drive in self.arm.drives]
        turns = [Turn(cos(angle), sin(angle)) for angle in angles]
        return turns, [rail.at(q) for rail in self.arm.rails]

    def pose(self, turns: Sequence[Turn], shifts: Sequence[Number]) -> Pose:
        """Return the pose that turns and shifts lead to, by the formula's geometry."""
        X = self.arm.pose(turns, shifts)
        return X.inverse() if self.backwards else X


def recognise(
    tree: Tree, goal: Goal, selection: Inputs, *, is_general: bool = False
) -> Closed:
    """Return the closed form of the joints that place a frame.

    Args:
        tree: With the joints.
        goal: What they place.
        selection: Which they are.
        is_general: Whether they are taken as six axes anywhere, whatever they are.

    Raises:
        NotApplicable: There is none; the message says why for each family.
    """
    point, free = not goal.has_rotation, goal.free_axis
    whole = all(goal.position) and (point or all(goal.rotation) or free is not None)
    require(
        whole, "the goal is neither a full pose or position, nor leaves one axis free"
    )
    chain = chain_of(tree, goal.frame, goal.relative_to, selection)
    reasons: list[str] = []
    lower, upper = tree.cell.limits
    limits = [[float(end[k]) for k in selection.inputs] for end in (lower, upper)]
    finders = _placing(chain) if point else _candidates(chain, limits, free)
    if is_general:
        *_, last = finders  # those of any axes come last
        finders = iter([last])
    for find in finders:
        try:
            family, arm, backwards = find()
            formula = family.fit(arm)
        except NotApplicable as unfit:
            reasons.append(str(unfit))
            continue
        closed = Closed(family, arm, formula, backwards, point, math.inf)
        error = _error(tree, goal, selection, closed)
        require(error <= ACCURACY * arm.size, "the axes are not rigid lines")
        return closed._replace(accuracy=error, others=tuple(dict.fromkeys(reasons)))
    raise NotApplicable("; ".join(dict.fromkeys(reasons)))


def _candidates(
    chain: Chain, limits: Sequence[Sequence[float]], free: int | None
) -> Iterator[Callable[[], _Candidate]]:
    """Yield what finds the families that a chain may belong to, with its geometry.

    Those of six joints that turn are tried on the chain from its other end, too.
    """
    count = len(chain.screws)
    turning = sum(screw.turns for screw in chain.screws)
    ends = limits[0], limits[1]
    if free is not None:
        yield lambda: (FREE_AXIS, axes_of(chain, ends, free=free), False)
        return
    if count == turning == REDUNDANT:
        yield lambda: (SPHERICAL_SHOULDER, arm_of(chain), False)
        return
    if count == turning == JOINTS:
        for family in FAMILIES:
            yield lambda family=family: (family, arm_of(chain), False)
            yield lambda family=family: (family, arm_of(chain.reversed()), True)
    elif count <= JOINTS and turning < len(FEWER):
        for family in FEWER[turning]:
            yield lambda family=family: (family, prismatic_arm_of(chain), False)
    rest = FEWER_AXES if count < JOINTS else MIXED_SIX
    rest = GENERAL_SIX if turning == JOINTS else rest
    yield lambda: (rest, axes_of(chain, ends), False)


def _placing(chain: Chain) -> Iterator[Callable[[], _Candidate]]:
    """Yield what finds the families that may place a point, each with its geometry."""
    count = len(chain.screws)
    turning = sum(screw.turns for screw in chain.screws)
    require(count <= MOST, f"{count} joints move the point, more than it needs")
    if turning == MOST:
        for family in POINT_TURNS:
            yield lambda family=family: (family, arm_of(chain), False)
    else:
        yield lambda: (POINT[turning], prismatic_arm_of(chain), False)


def _error(tree: Tree, goal: Goal, selection: Inputs, closed: Closed) -> float:
    """Return how far the arm's poses are from the model's, at q spread in (-3, 3).

    Multiples of irrational numbers, modulo 1, are spread evenly (Weyl 1916); NumPy's
    generators take longer to import than all the rest takes.
    """
    worst = 0.0
    roots = np.sqrt(np.arange(len(selection.inputs)) + 2.5)
    for q in (6.0 * (np.outer(np.arange(1, CHECKS + 1), roots) % 1.0) - 3.0).tolist():
        (X,) = poses_of(tree, selection.vector(q), [goal.frame], goal.relative_to)
        apart = X.matrix() - closed.pose(*closed.parts(q)).matrix()
        worst = max(worst, float(np.abs(apart).max()))
    return worst
