"""The closed form of a body on legs, such as the platform of a delta robot.

A leg keeps a point b of the body at a distance l from a point P that one joint moves on
a circle or a line, or its length is the joint itself. So it gives that joint alone from
the pose of the body, by one equation in q with two solutions at most:

    |P(q) - b| = l,    P(q) = c + cos q u + sin q v    or    P(q) = c + q u

Legs are found from the model (`legs_of`): a loop of a capsule, a loop that closes a
chain of passive joints, or the chain on which the body itself is. Chains are tested at
random q, and the form as a whole by forward kinematics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import require
from armillary.ik.problem import IKProblem
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.closed_form import ClosedForm
from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.loops.equations import PlacedLoop
from armillary.model.loops.loop import Closure, Rod
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    add,
    apply,
    dot,
    norm,
    scale,
    subtract,
)
from armillary.trace.functions import (
    absolute,
    acos,
    atan2,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = ["DrivenLeg", "RodForm", "legs_of", "rod_form"]

Array = npt.NDArray[np.float64]

EXACT: Final = 1e-9  # of the size of what is compared
ROUNDING: Final = 1e-9  # by which a cosine may exceed 1
SAMPLES: Final = 4
CHECKED_AT: Final = (-2.3, 0.7, 4.1)  # positions of a joint [m or rad]
MOST_DOUBLE: Final = 6
"""Legs of two solutions each: more make too many branches."""
DRAWS: Final = 256
CHECKED_POSES: Final = 16
SAME: Final = 1e-6  # of joint positions, and of rotations


class DrivenLeg(msgspec.Struct, frozen=True, dict=True):
    """A leg that is solved for its joint.

    Attributes:
        drive: The joint, its place in the vector of all joints, and its coupling.
        end: The end on the body, in the frame that is placed.
        length: Of the leg [m].
        centre: The centre of the circle, or where the line begins, in the frame in
            which targets are given; the other end where the length is the joint.
        ways: P = centre + cos ways[0] + sin ways[1] on a circle, centre + q ways[0] on
            a line; none where the length is the joint.
    """

    drive: Drive
    end: Vector3
    length: float
    centre: Vector3
    ways: tuple[Vector3, ...] = ()

    @property
    def signs(self) -> tuple[str, ...]:
        """Return the names of its solutions."""
        return ("+", "-") if self.ways else ("",)

    def solutions(self, body: Pose) -> list[Number]:
        """Return the joint for each solution, NaN where the leg does not reach.

        body: The pose of the frame that is placed.
        """
        end = add(apply(body.rotation, self.end), body.position)
        way = subtract(self.centre, end)
        if not self.ways:
            roots: list[Number] = [norm(way) - self.length]
        elif len(self.ways) == 2:
            roots = self._turned(way)
        else:
            roots = self._slid(way)
        return [(x - self.drive.offset) / self.drive.multiplier for x in roots]

    def _turned(self, d: Vector3) -> list[Number]:
        """Return the angles of |d + cos a u + sin a v| = l, |u| = |v| and u v = 0.

        That is A cos a + B sin a = C with A = 2 d u, B = 2 d v, C = l^2 - d^2 - u^2.
        """
        u, v = self.ways
        A, B = 2.0 * dot(d, u), 2.0 * dot(d, v)
        C = self.length**2 - dot(d, d) - dot(u, u)
        cosine = C / sqrt(A * A + B * B)
        reached = absolute(cosine) <= 1.0 + ROUNDING
        half = acos(maximum(minimum(cosine, 1.0), -1.0))
        middle = atan2(B, A)
        return [
            select(reached, middle + half, math.nan),
            select(reached, middle - half, math.nan),
        ]

    def _slid(self, d: Vector3) -> list[Number]:
        """Return the lengths x of |d + x u| = l.

        They are the roots of u^2 x^2 + 2 d u x + d^2 - l^2 = 0.
        """
        (u,) = self.ways
        square, half = dot(u, u), dot(d, u)
        left = half * half - square * (dot(d, d) - self.length**2)
        reached = left >= -ROUNDING * square * self.length**2
        root = sqrt(maximum(left, 0.0))
        return [
            select(reached, (0.0 - half + root) / square, math.nan),
            select(reached, (0.0 - half - root) / square, math.nan),
        ]


class _Point(NamedTuple):
    """A point that one joint moves, and how far the end of its leg is from it."""

    at: FrameRef
    length: float


def legs_of(problem: IKProblem, *, turns: bool) -> Iterator[DrivenLeg]:
    """Yield the legs of the body that carries the frame of a problem.

    Args:
        problem: One frame is placed.
        turns: Whether all of the body is placed by a target, else only the origin of
            the frame.
    """
    search = _LegFinder(problem, turns)
    yield from search.of_path()
    for loop in problem.tree.cell.joints.loops_in_order:
        yield from search.of_loop(loop)


class _LegFinder:
    """Looks for legs at the body of a problem."""

    def __init__(self, problem: IKProblem, turns: bool) -> None:
        self._tree, self._selection = problem.tree, problem.selection
        goal = problem.goals[0]
        self._frame, self._base = goal.frame, goal.relative_to
        self._turns = turns
        self._rng = np.random.default_rng(0)

    def of_path(self) -> Iterator[DrivenLeg]:
        """Yield the leg of which the body is the last link, if there is one."""
        point = self._on_chain(self._frame)
        if point is not None:
            yield from self._leg(point, (0.0, 0.0, 0.0))

    def of_loop(self, placed: PlacedLoop) -> Iterator[DrivenLeg]:
        """Yield the legs that a loop is, from either of its ends."""
        loop = placed.loop
        for near, other in ((placed.a, placed.b), (placed.b, placed.a)):
            end = self._on_body(near)
            if end is None:
                continue
            if isinstance(loop, Rod) and placed.drive is not None:
                is_still = not self._movers(other)
                if is_still and placed.drive.of in self._selection.inputs:
                    centre = self._position(other, self._selection.rest)
                    yield DrivenLeg(placed.drive, end, loop.length, centre)
            elif isinstance(loop, Rod):
                yield from self._leg(_Point(other, loop.length), end)
            elif isinstance(loop, Closure) and len(loop.position) > 1:
                point = self._on_chain(other)
                if point is not None:
                    yield from self._leg(point, end)

    def _movers(self, end: FrameRef) -> list[int]:
        """Return the links on the way to a frame that chosen or passive joints move."""
        tree, moving = self._tree, {*self._selection.inputs, *self._selection.passive}
        root = tree.common_ancestor([end.link, self._base.link])
        ways = (tree.path(root, link) for link in (self._base.link, end.link))
        links = (link for way in ways for link in reversed(way))
        return [k for k in links if moving & {drive.of for drive in tree.drives[k]}]

    def _on_body(self, end: FrameRef) -> Vector3 | None:
        """Return where a point is in the frame that is placed, None if not known."""
        tree, moving = self._tree, {*self._selection.inputs, *self._selection.passive}
        between = tree.between([end, self._frame])
        if moving & {drive.of for k in between for drive in tree.drives[k]}:
            return None
        (X,) = poses_of(tree, self._selection.rest, [end], self._frame)
        offset = float(np.linalg.norm(X.position))
        return X.position if self._turns or offset < EXACT else None

    def _on_chain(self, end: FrameRef) -> _Point | None:
        """Return the point that stays as far from the end of a chain as it is.

        It is where the first passive joint of the chain begins, if the distance is the
        same for all positions of that joint and of those after it; samples tell.
        """
        links = self._movers(end)
        passive = {*self._selection.passive}
        movers = [{drive.of for drive in self._tree.drives[k]} for k in links]
        first = next((k for k, joints in enumerate(movers) if joints <= passive), None)
        if first is None:
            return None
        link = links[first]
        joint = self._tree.cell.links[link].joint
        before = self._tree.placement(link) @ joint.precursor
        point = FrameRef(self._tree.parents[link], before)
        followers = sorted(set[int]().union(*movers[first:]))
        lengths: list[float] = []
        for _ in range(SAMPLES):
            some = self._rng.uniform(-1.0, 1.0, len(followers))
            q = with_numbers(self._selection.rest, followers, some.tolist())
            (X,) = poses_of(self._tree, q, [end], point)
            lengths.append(float(np.linalg.norm(X.position)))
        length = max(lengths)
        is_same = length - min(lengths) <= EXACT * length
        return _Point(point, length) if is_same and length > 0.0 else None

    def _leg(self, point: _Point, end: Vector3) -> Iterator[DrivenLeg]:
        """Yield the leg at a point that one joint moves on a circle or a line."""
        moved = {d.of for k in self._movers(point.at) for d in self._tree.drives[k]}
        if len(moved) != 1 or not moved <= {*self._selection.inputs}:
            return
        link = self._movers(point.at)[0]
        drive = self._tree.drives[link][0]

        def at(x: float) -> Vector3:
            q = (x - drive.offset) / drive.multiplier
            whole = with_numbers(self._selection.rest, [drive.of], [q])
            return self._position(point.at, whole)

        # On a circle the points at 0 and pi are opposite; on a line they give a centre
        # that does not fit, as samples show.
        start, across, opposite = at(0.0), at(0.5 * math.pi), at(math.pi)
        centre = scale(0.5, add(start, opposite))
        circle = DrivenLeg(
            drive,
            end,
            point.length,
            centre,
            (subtract(start, centre), subtract(across, centre)),
        )
        line = DrivenLeg(drive, end, point.length, start, (subtract(at(1.0), start),))
        for leg in (line, circle):
            if norm(leg.ways[0]) > EXACT * point.length and _is_path(leg, at):
                yield leg
                return

    def _position(self, at: FrameRef, q: Sequence[float]) -> Vector3:
        (X,) = poses_of(self._tree, q, [at], self._base)
        return X.position


def _is_path(leg: DrivenLeg, at: Callable[[float], Vector3]) -> bool:
    """Return whether a point moves as a leg says, as far as samples show."""
    for x in CHECKED_AT:
        factors = (x,) if len(leg.ways) == 1 else (math.cos(x), math.sin(x))
        point = leg.centre
        for factor, way in zip(factors, leg.ways, strict=True):
            point = add(point, scale(factor, way))
        apart = subtract(point, at(x))
        if not norm(apart) <= EXACT * (leg.length + norm(point)):
            return False
    return True


class RodForm(ClosedForm):
    """The closed form of a body, each leg of which gives one joint.

    Attributes:
        legs: One for each joint.
    """

    def __init__(
        self, problem: IKProblem, legs: Sequence[DrivenLeg], rotation: Rows | None
    ) -> None:
        """Take over legs.

        Args:
            problem: What is reached.
            legs: One for each joint; other joints stay at home.
            rotation: Of the body, where it cannot turn; None for that of targets.
        """
        self.legs = tuple(legs)
        self._joints = problem.joints
        self._order = [problem.selection.inputs.index(leg.drive.of) for leg in legs]
        self._rest = problem.home.tolist()
        self._rotation = rotation

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Return the name of each branch: a word for each leg of two solutions."""
        signs = [
            [f"{self._joints[k]} {sign}" for sign in leg.signs]
            for k, leg in zip(self._order, self.legs, strict=True)
            if len(leg.signs) > 1
        ]
        return tuple(itertools.product(*signs)) if signs else (("only",),)

    def inverse(self, pose: Pose) -> list[Any]:
        """Return for each branch joint positions that lead to a pose."""
        body = pose
        if self._rotation is not None:
            body = Pose.from_rotation_position(self._rotation, pose.position)
        of_legs = [leg.solutions(body) for leg in self.legs]
        return [
            with_numbers(self._rest, self._order, numbers)
            for numbers in itertools.product(*of_legs)
        ]


def rod_form(problem: IKProblem) -> RodForm:
    """Return the closed form of a body on legs, checked by forward kinematics.

    Raises:
        NotApplicable: The joints are not found by legs of their own.
    """
    require(len(problem.goals) == 1, "several frames are placed at once")
    goal = problem.goals[0]
    require(all(goal.position), "its joints move closed loops, and not all of x, y, z")
    q, X = _samples(problem)
    require(len(q) > 0, "its joints move closed loops, which rarely close")
    is_fixed = bool(np.abs(X[:, :3, :3] - X[0, :3, :3]).max() < SAME)
    turns = is_fixed or all(goal.rotation)
    of_joint: dict[int, DrivenLeg] = {}
    for leg in legs_of(problem, turns=turns):
        of_joint.setdefault(leg.drive.of, leg)
    path = problem.tree.between([goal.frame, goal.relative_to])
    deciding = {*problem.tree.moving_joints(path)} & {*problem.selection.inputs}
    names = problem.tree.cell.joint_names
    left = [names[k] for k in sorted(deciding - of_joint.keys())]
    require(
        not left,
        "its joints move closed loops, and no leg from the frame determines "
        f"{', '.join(left)} alone",
    )
    legs = [of_joint[k] for k in sorted(deciding)]
    double = sum(len(leg.signs) > 1 for leg in legs)
    require(double <= MOST_DOUBLE, f"its {double} legs have two solutions each")
    rotation = Pose.from_matrix(X[0]).rotation if is_fixed else None
    form = RodForm(problem, legs, rotation if not all(goal.rotation) else None)
    good = all(
        _knows(form, matrix, vector, problem)
        for matrix, vector in zip(X[:CHECKED_POSES], q[:CHECKED_POSES], strict=True)
    )
    require(good, "its joints move closed loops that are more than legs")
    return form


def _samples(problem: IKProblem) -> tuple[Array, Array]:
    """Return joint positions at which loops are closed, and poses of the frame."""
    lower, upper = problem.start_range
    q = np.random.default_rng(0).uniform(lower, upper, (DRAWS, len(lower)))
    q[0] = problem.home
    X = np.asarray(problem.fk(q))[:, 0]
    closed = np.isfinite(X).all(axis=(1, 2))
    return q[closed], X[closed]


def _knows(form: RodForm, matrix: Array, q: Array, problem: IKProblem) -> bool:
    """Return whether one of the branches of a pose is known joint positions."""
    chosen = [problem.selection.inputs.index(leg.drive.of) for leg in form.legs]
    apart = np.array(form.inverse(Pose.from_matrix(matrix)), dtype=np.float64) - q
    apart = np.where(problem.turning, np.remainder(apart + math.pi, math.tau), apart)
    apart = np.abs(np.where(problem.turning, apart - math.pi, apart))[:, chosen]
    return bool((apart.max(axis=1) < SAME).any())
