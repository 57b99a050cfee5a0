"""Legs between a body and what one joint moves: each gives that joint alone.

A leg keeps a point b of the body at a distance l from a point P that one joint moves on
a circle or a line, or its length is the joint itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from armillary.ik.problem import Problem
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.loops.equations import PlacedLoop
from armillary.model.loops.loop import Closure, Rod
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
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

__all__ = ["Leg", "legs_of"]

EXACT: Final = 1e-9  # of the size of what is compared
ROUNDING: Final = 1e-9  # by which a cosine may exceed 1
SAMPLES: Final = 4
CHECKED: Final = (-2.3, 0.7, 4.1)  # positions of a joint [m or rad]


@dataclass(frozen=True)
class Leg:
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
            found: list[Number] = [norm(way) - self.length]
        elif len(self.ways) == 2:
            found = self._turned(way)
        else:
            found = self._slid(way)
        return [(x - self.drive.offset) / self.drive.multiplier for x in found]

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
        """Return the lengths x of |d + x u| = l, roots of a quadratic equation."""
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


def legs_of(problem: Problem, *, turns: bool) -> Iterator[Leg]:
    """Yield the legs of the body that carries the frame of a problem.

    Args:
        problem: One frame is placed.
        turns: Whether all of the body is placed by a target, else only the origin of
            the frame.
    """
    search = _Search(problem, turns)
    yield from search.of_path()
    for loop in problem.tree.cell.joints.loops_in_order:
        yield from search.of_loop(loop)


class _Search:
    """Looks for legs at the body of a problem."""

    def __init__(self, problem: Problem, turns: bool) -> None:
        self._tree, self._selection = problem.tree, problem.selection
        goal = problem.goals[0]
        self._frame, self._base = goal.frame, goal.relative_to
        self._turns = turns
        self._rng = np.random.default_rng(0)

    def of_path(self) -> Iterator[Leg]:
        """Yield the leg of which the body is the last link, if there is one."""
        point = self._on_chain(self._frame)
        if point is not None:
            yield from self._leg(point, (0.0, 0.0, 0.0))

    def of_loop(self, placed: PlacedLoop) -> Iterator[Leg]:
        """Yield the legs that a loop is, from either of its ends."""
        loop = placed.loop
        for own, other in ((placed.a, placed.b), (placed.b, placed.a)):
            end = self._on_body(own)
            if end is None:
                continue
            if isinstance(loop, Rod) and placed.drive is not None:
                is_still = not self._movers(other)
                if is_still and placed.drive.of in self._selection.inputs:
                    centre = self._position(other, self._selection.rest)
                    yield Leg(placed.drive, end, loop.length, centre)
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

        It is where the first passive joint of the chain begins.
        """
        links = self._movers(end)
        passive = {*self._selection.passive}
        drives = self._tree.drives
        of = [{drive.of for drive in drives[k]} for k in links]
        first = next((k for k, each in enumerate(of) if each <= passive), None)
        if first is None or not all(each <= passive for each in of[first:]):
            return None
        link = links[first]
        joint = self._tree.cell.links[link].joint
        before = self._tree.placement(link) @ joint.precursor
        point = FrameRef(self._tree.parents[link], before)
        followers = sorted({k for each in of[first:] for k in each})
        lengths: list[float] = []
        for _ in range(SAMPLES):
            some = self._rng.uniform(-1.0, 1.0, len(followers))
            q = with_numbers(self._selection.rest, followers, some.tolist())
            (X,) = poses_of(self._tree, q, [end], point)
            lengths.append(float(np.linalg.norm(X.position)))
        length = max(lengths)
        is_same = length - min(lengths) <= EXACT * length
        return _Point(point, length) if is_same and length > 0.0 else None

    def _leg(self, point: _Point, end: Vector3) -> Iterator[Leg]:
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

        start, across, opposite = at(0.0), at(0.5 * math.pi), at(math.pi)
        centre = scale(0.5, add(start, opposite))
        circle = Leg(
            drive,
            end,
            point.length,
            centre,
            (subtract(start, centre), subtract(across, centre)),
        )
        line = Leg(drive, end, point.length, start, (subtract(at(1.0), start),))
        for leg in (line, circle):
            if norm(leg.ways[0]) > EXACT * point.length and _is_path(leg, at):
                yield leg
                return

    def _position(self, at: FrameRef, q: Sequence[float]) -> Vector3:
        (X,) = poses_of(self._tree, q, [at], self._base)
        return X.position


def _is_path(leg: Leg, at: Callable[[float], Vector3]) -> bool:
    """Tell whether a point moves as a leg says, as far as samples show."""
    for x in CHECKED:
        factors = (x,) if len(leg.ways) == 1 else (math.cos(x), math.sin(x))
        point = leg.centre
        for factor, way in zip(factors, leg.ways, strict=True):
            point = add(point, scale(factor, way))
        apart = subtract(point, at(x))
        if not norm(apart) <= EXACT * (leg.length + norm(point)):
            return False
    return True
