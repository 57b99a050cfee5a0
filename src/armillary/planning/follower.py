"""How the joints of a tool follow a curve.

    coarse      inverse kinematics of few poses, `ik.path`: which branch, and what
                joints that are free do
    fine        samples between these until the tool is proven to be near the curve,
                `refining.py`, of several curves at once

What cannot be followed, be it for a limit, a singular pose or a branch that ends, shows
as an interval whose bound does not fall: there the path ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.method import Candidates
from armillary.ik.reason import Reason
from armillary.planning.cartesian_path import (
    CartesianPath,
    LineReason,
    Tool,
    least_singular_values,
)
from armillary.planning.detoured_path import SHORTEST, motions_along
from armillary.planning.refining import Parts, Refined, Refiner, Samples
from armillary.planning.tool_curve import ToolCurve

__all__ = ["ToolFollower"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

COARSE: Final = 0.03
"""The largest distance of poses at which a branch is chosen [m]."""

COARSE_TURN: Final = 0.1
"""The largest turn of the tool between them [rad]."""

FINER_DISTANCES: Final = (5.0, 25.0)
"""By how much these distances are divided where a path ends."""

SINGULAR: Final = 5e-2
"""Below this least singular value what stops a path is a singular pose."""

FIRST_ASKED: Final = 16
"""Poses that are asked for at once at first, where nothing is known of them."""

AT_LIMIT: Final = 1e-4
"""A joint that is so near to a limit is at it [m or rad]."""

MOST_OF_A_TURN: Final = 0.95 * math.tau
"""A joint that jumps by so much stands at the other end of its limits."""

NAMED_WITHIN: Final = 1e-4
"""Links that are so near where a motion stops are named [m]."""


class End(NamedTuple):
    """Where a path ends, and why."""

    reason: LineReason
    where: float


class Followed(NamedTuple):
    """How far a curve is followed.

    Attributes:
        samples: Samples of it.
        bounds: How far the tool is from it between them, shape (k - 1, 2).
        end: Where they end early, and why; None where they do not.
    """

    samples: Samples
    bounds: Array
    end: End | None

    @property
    def goes_to(self) -> float:
        """Return how far samples go."""
        if self.end is None:
            return math.inf
        return float(self.samples.s[-1]) if len(self.samples.s) else -math.inf


@dataclass(frozen=True)
class ToolFollower:
    """Finds the path along a curve.

    Attributes:
        refiner: What finds samples that are near enough to each other.
        tool: What follows the curve.
        curve: What is followed.
        start: Joint positions at its start, shape (n,); None where any will do.
        numbers: Which target each of its segments leads to.
    """

    refiner: Refiner
    tool: Tool
    curve: ToolCurve
    start: Array | None
    numbers: list[int]

    @property
    def solver(self) -> InverseKinematics:
        """Return inverse kinematics of the tool."""
        return self.refiner.solver

    @staticmethod
    def paths(
        followers: Sequence[ToolFollower], check: CollisionCheck | None = None
    ) -> list[CartesianPath]:
        """Return the paths along several curves, each as it would be found alone.

        Args:
            followers: One for each, with the same refiner.
            check: What must not touch.
        """
        if not followers:
            return []
        coarse = [each.coarse() for each in followers]
        found = _refined(followers, coarse)
        return [
            each.path(each.farther(best, end), check)
            for each, (_, end), best in zip(followers, coarse, found, strict=True)
        ]

    def path(self, found: Followed, check: CollisionCheck | None) -> CartesianPath:
        """Return the path of samples, up to where links touch."""
        samples, bounds, end = found
        path = self._as_path(samples, bounds, end)
        touching = None
        if check is not None and len(samples.s):
            touching = self._touching(check, samples)
        if touching is None:
            return path
        interval, where, pairs = touching
        samples, bounds = samples.until(interval), bounds[:interval]
        end = End(LineReason.IN_COLLISION, where)
        ended = self._as_path(samples, bounds, end)
        return replace(ended, pairs=pairs, unchecked=path)

    def _as_path(
        self, samples: Samples, bounds: Array, end: End | None
    ) -> CartesianPath:
        """Return samples as a path, of which nothing touches."""
        last = end or End(LineReason.FOLLOWED, self.curve.length)
        corners = np.flatnonzero(
            self.curve.sharp[samples.piece[:-1]] & (np.diff(samples.piece) > 0)
        )
        # A failure at a junction is on the way to the next target.
        piece = self.curve.piece_at(np.array([last.where]))[0]
        corners += 1
        for array in (samples.s, samples.q, bounds, corners):
            array.flags.writeable = False
        return CartesianPath(
            samples.q,
            samples.s,
            last.reason,
            last.where,
            self.numbers[self.curve.segment[piece]]
            if len(samples.s)
            else self.numbers[0] - 1,
            bounds,
            self.refiner.chain(samples.q) is not None,
            (),
            self.tool,
            self.curve,
            corners,
        )

    def farther(self, best: Followed, end: End | None) -> Followed:
        """Return samples that go on where those of coarse poses end, if any do.

        Where a path ends it may be that coarse poses led to another branch: from its
        beginning it is followed in smaller steps.

        Args:
            best: What was found from coarse poses.
            end: Where these end early, and why.
        """
        for finer in FINER_DISTANCES:
            samples, _, last = best
            if last is None or last is end or not len(samples.s):
                break
            if self.start is None and finer == FINER_DISTANCES[0]:
                closer = self._planned(end, finer)
            else:
                closer = self._tracked(samples.q[0], end, finer)
            (found,) = _refined([self], [(closer, end)])
            if found.goes_to > best.goes_to + SHORTEST:
                best = found
        return best

    def _poses(self, finer: float) -> tuple[Array, Indices]:
        """Return parameters of poses that are far from each other, and their pieces.

        finer: By how much their distance is divided.
        """
        lengths, ways = self.curve.lengths, self.curve.way
        counts = np.ceil(finer * np.maximum(lengths / COARSE, ways / COARSE_TURN))
        counts = np.maximum(counts, 2.0).astype(np.int64)
        parts, start = Parts.of(counts), self.curve.start
        s = parts.within(start[:-1], start[1:])
        return np.append(s, start[-1]), parts.interval

    def _until(self, end: End | None, finer: float) -> tuple[Array, Indices, Array]:
        """Return parameters, pieces and poses up to where a path ends."""
        s, piece = self._poses(finer)
        if end is not None:
            s = s[s <= end.where]
            piece = piece[: max(len(s) - 1, 0)]
        at = np.append(piece, piece[-1]) if len(piece) else np.zeros(len(s), np.int64)
        return s, piece, self.curve.points(s, at).pose

    def _planned(self, end: End | None, finer: float) -> Samples:
        """Return the best way through the answers to poses up to where a path ends."""
        s, piece, X = self._until(end, finer)
        return Samples(s, self._branch(X, None, None), piece)

    def _tracked(self, start: Array, end: End | None, finer: float) -> Samples:
        """Return what is found from joint positions, one pose after another."""
        s, piece, X = self._until(end, finer)
        way = self._followed(X, start)
        q = way.q[:, 0].copy()
        q[0] = start
        missed = np.flatnonzero(~way.success[:, 0])
        if missed.size:
            q[missed[0]] = np.nan
            s, q, piece = s[: missed[0] + 1], q[: missed[0] + 1], piece[: missed[0]]
        return Samples(s, q, piece)

    def _followed(self, X: Array, start: Array) -> Candidates:
        """Return what is found for poses, one after another, up to the first missed."""
        return self.solver.numeric.follow_until_missed(self.refiner.query(X), start)

    # few poses

    def coarse(self) -> tuple[Samples, End | None]:
        """Return the samples at which a branch is chosen, and where they end early."""
        start = self.start
        s, piece = self._poses(1.0)
        poses = self.curve.points(s, np.append(piece, piece[-1])).pose
        # Nothing behind a pose that is out of reach is searched for.
        distance = self.refiner.query(poses).tolerance[0]
        problem, rows = self.solver.numeric.problem, poses.reshape(-1, 16)
        far = np.flatnonzero(problem.out_of_reach(rows, distance))
        if far.size:
            first = max(int(far[0]), 1)
            s, piece, poses = s[: first + 1], piece[:first], poses[: first + 1]
        followed = end = None
        followed_to = FIRST_ASKED
        if start is not None:
            followed = self._followed(poses, start)
            found = np.append(followed.success[:, 0], False)
            followed_to = int(np.argmin(found))
        if followed is None or followed_to < len(s):
            reached, end = self._reached(s, poses, start, followed_to + 1)
            s, poses = s[:reached], poses[:reached]
            if followed_to < reached:
                followed = None  # other branches go on
            # The last one is where the path ends.
            if end is not None and reached and end.where > s[-1] + SHORTEST:
                piece = piece[:reached]
                s = np.append(s, end.where)
                last = self.curve.points(s[-1:], piece[-1:]).pose
                poses, followed = np.concatenate([poses, last]), None
            piece = piece[: max(len(s) - 1, 0)]
        q = np.zeros((0, len(self.solver.joints)))
        if len(s):
            q = self._branch(poses, start, followed)
        return Samples(s, q, piece), end

    def _branch(
        self, X: Array, start: Array | None, followed: Candidates | None
    ) -> Array:
        """Return joint positions for poses that are far from each other, (k, n).

        Args:
            X: The poses, shape (k, 4, 4).
            start: Joint positions to come from, shape (n,).
            followed: What is found from there, one pose after another.
        """
        is_free = self.solver.numeric.problem.is_redundant
        if start is not None and followed is None:
            # Those behind one that is missed are of other branches.
            followed = self.solver.numeric.follow(self.refiner.query(X), start)
        if followed is not None and not is_free:
            q = followed.q[: len(X), 0].copy()
        else:
            path = self.solver.path(
                X, start=start, tolerance=self.refiner.ik_tolerance, explain=False
            )
            q = path.answer.q.copy()
            # The path goes as far as it can before it jumps.
            if followed is not None and path.jumps.size:
                q = followed.q[: len(X), 0].copy()
        if start is not None:
            q[0] = start
        return q

    def _reached(
        self, s: Array, X: Array, start: Array | None, likely: int
    ) -> tuple[int, End | None]:
        """Return how many poses can be reached one after another, and why no more.

        likely: After about how many of them one is missed.
        """
        near = self.solver.numeric.problem.home if start is None else start
        # A search that finds nothing takes long: poses are asked for some at a time,
        # and none far behind the first that is missed.
        q, missed, done = np.zeros((0, len(near))), np.zeros(0, np.int64), 0
        while not missed.size:
            if done == len(s):
                return len(s), None
            asked = slice(done, done + likely)
            found = self.solver(
                X[asked], near=near, tolerance=self.refiner.ik_tolerance, explain=False
            )
            missed = done + np.flatnonzero(~found.success)
            q = np.concatenate([q[-1:], found.q])  # up to the pose before `done`
            done, likely = done + len(found.q), 2 * likely
        first = int(missed[0])
        # The end of reach is between this pose and the one before.
        good, bad = (float(s[first - 1]) if first else 0.0), float(s[first])
        if first:
            near = q[first - 1 - done]
            while bad - good > SHORTEST:
                middle = 0.5 * (good + bad)
                (pose,) = self.curve.points(np.array([middle])).pose
                one = self.solver(
                    pose, near=near, tolerance=self.refiner.ik_tolerance, explain=False
                )
                good, bad = (middle, bad) if one.success else (good, middle)
        # Farther beyond, more is out of reach; next to the edge, more is beyond limits.
        why = self._unreached(float(s[first]), near)
        if why == LineReason.NOT_FOUND:
            why = self._unreached(bad, near)
        return first, End(why, good)

    def _unreached(self, s: float, near: Array) -> LineReason:
        """Return why a pose is not reached."""
        (pose,) = self.curve.points(np.array([s])).pose
        reason = int(
            self.solver(pose, near=near, tolerance=self.refiner.ik_tolerance).reason
        )
        known = {int(each) for each in LineReason}
        is_known = reason in known and reason not in (Reason.SOLVED, Reason.SINGULAR)
        return LineReason(reason) if is_known else LineReason.NOT_FOUND

    def _why(self, samples: Samples, interval: int) -> LineReason:
        """Return why an interval cannot be followed."""
        q = samples.q[interval]
        lower, upper = self.solver.numeric.problem.limits
        h = samples.s[interval + 1] - samples.s[interval]
        if h > 4.0 * SHORTEST:
            return LineReason.NOT_PROVEN
        rows = self.solver.numeric.problem.rows
        is_at_row = len(rows) and rows.excess(q) > -AT_LIMIT
        if is_at_row or ((q - lower < AT_LIMIT) | (upper - q < AT_LIMIT)).any():
            return LineReason.LIMITS
        if not np.isfinite(samples.q[interval + 1]).all():
            return self._unreached(float(samples.s[interval + 1]), q)
        around = samples.q[interval : interval + 2]
        if (np.abs(np.diff(around, axis=0)) > MOST_OF_A_TURN).any():
            return LineReason.LIMITS  # it goes on a turn away
        if (least_singular_values(self.tool.jacobian(around)) < SINGULAR).any():
            return LineReason.SINGULAR
        return LineReason.JUMPS

    def ended(self, found: Refined, end: End | None) -> Followed:
        """Return refined samples up to where they are near enough to the curve.

        Args:
            found: The samples.
            end: Where those before ended early, and why.
        """
        samples, bounds, wide = found
        if wide is None:
            return Followed(samples, bounds, end)
        end = End(self._why(samples, wide), float(samples.s[wide]))
        return Followed(samples.until(wide), bounds, end)

    # what touches

    def _touching(
        self, check: CollisionCheck, samples: Samples
    ) -> tuple[int, float, tuple[tuple[str, str], ...]] | None:
        """Return the first interval in which links touch, where, and which links."""
        whole = self.tool.whole(samples.q)
        motions = motions_along(check, whole)
        if motions.free.all():
            return None
        k = int(np.argmin(motions.free))
        part = float(motions.fraction[k])
        where = samples.s[k]
        if len(whole) > 1:
            where = where + part * (samples.s[k + 1] - where)
        near = check.contacts(motions.q[k], within=check.margin + NAMED_WITHIN)
        pairs = tuple(contact.links for contact in near)
        return k, float(where), pairs


def _refined(
    followers: Sequence[ToolFollower], coarse: Sequence[tuple[Samples, End | None]]
) -> list[Followed]:
    """Return refined samples of several curves, and where they end early.

    Args:
        followers: One for each curve.
        coarse: Samples of each, and where they end early.
    """
    many = [k for k, (samples, _) in enumerate(coarse) if len(samples.s) > 1]
    found = [Followed(samples, np.zeros((0, 2)), end) for samples, end in coarse]
    if many:
        curves = [followers[k].curve for k in many]
        samples = [coarse[k][0] for k in many]
        refined = followers[0].refiner.refined(curves, samples)
        for k, each in zip(many, refined, strict=True):
            found[k] = followers[k].ended(each, coarse[k][1])
    return found
