"""How the joints of a tool follow a curve.

    coarse      inverse kinematics of few poses, `ik.path`: which branch, and what
                joints that are free do
    near        a cubic through these, at as many samples as the bounds of the coarse
                ones ask for
    fine        inverse kinematics of each sample from there, all at once
    bound       how far the tool is from the curve between samples, `deviation.py`;
                intervals above the tolerance are divided until none is left

What cannot be followed, be it for a limit, a singular pose or a branch that ends, shows
as an interval whose bound does not fall: there the path ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.method import Candidates
from armillary.ik.query import IKQuery, query_of
from armillary.ik.reason import Reason
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.planning.cartesian_path import (
    CartesianPath,
    LineReason,
    Tool,
    least_singular_values,
)
from armillary.planning.detoured_path import MEASURED, SHORTEST, motions_along
from armillary.planning.deviation import (
    Deviations,
    ToolChain,
    are_bounded,
    chain_of,
    path_error,
)
from armillary.planning.tool_curve import ToolCurve

__all__ = ["MOST_SAMPLES", "ToolFollower"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Tolerance = tuple[float, float]

COARSE: Final = 0.03
"""The largest distance of poses at which a branch is chosen [m]."""

COARSE_TURN: Final = 0.1
"""The largest turn of the tool between them [rad]."""

PART_OF_TOLERANCE: Final = 0.02
"""What part of the tolerance inverse kinematics may leave."""

SPARE: Final = 0.75
"""What part of the tolerance samples are chosen for."""

FINER_DISTANCES: Final = (5.0, 25.0)
"""By how much these distances are divided where a path ends."""

MOST_PARTS: Final = 64
"""In so many parts an interval is divided at once, at most."""

LEAP: Final = 0.3
"""A larger step of a joint may be one to another branch [m or rad]."""

UNKNOWN: Final = 8.0
"""In so many parts where nothing says how many are needed."""

MOST_ROUNDS_OF_SAMPLES: Final = 16
MOST_SAMPLES: Final = 1 << 20

SINGULAR: Final = 5e-2
"""Below this least singular value what stops a path is a singular pose."""

AT_LIMIT: Final = 1e-4
"""A joint that is so near to a limit is at it [m or rad]."""

MOST_OF_A_TURN: Final = 0.95 * math.tau
"""A joint that jumps by so much stands at the other end of its limits."""

NAMED_WITHIN: Final = 1e-4
"""Links that are so near where a motion stops are named [m]."""


class Samples(NamedTuple):
    """Samples of a curve, and the intervals between them.

    Attributes:
        s: Their parameters, shape (k,).
        q: Joint positions, shape (k, n).
        piece: The piece of the curve that each interval is on, shape (k - 1,).
    """

    s: Array
    q: Array
    piece: Indices

    def until(self, interval: int) -> Samples:
        """Return those up to the start of an interval."""
        return Samples(
            self.s[: interval + 1], self.q[: interval + 1], self.piece[:interval]
        )


class End(NamedTuple):
    """Where a path ends, and why."""

    reason: LineReason
    where: float


def _goes_to(found: tuple[Samples, Array, End | None]) -> float:
    """Return how far samples go."""
    samples, _, end = found
    if end is None:
        return math.inf
    return float(samples.s[-1]) if len(samples.s) else -math.inf


@dataclass(frozen=True)
class ToolFollower:
    """Finds the path along a curve.

    Attributes:
        solver: Inverse kinematics of the tool.
        tool: What follows the curve.
        curve: What is followed.
        tolerance: How far from it the tool may be [m, rad].
        step: The largest distance of samples [m].
    """

    solver: InverseKinematics
    tool: Tool
    curve: ToolCurve
    tolerance: Tolerance
    step: float

    def path(
        self, start: Array | None, check: CollisionCheck | None, numbers: list[int]
    ) -> CartesianPath:
        """Return the path.

        Args:
            start: Joint positions at its start, shape (n,).
            check: What must not touch.
            numbers: Which target each segment leads to.
        """
        samples, bounds, end = self._followed(start)
        path = self._as_path(samples, bounds, end, numbers)
        touching = None
        if check is not None and len(samples.s):
            touching = self._touching(check, samples)
        if touching is None:
            return path
        interval, where, pairs = touching
        samples, bounds = samples.until(interval), bounds[:interval]
        end = End(LineReason.IN_COLLISION, where)
        ended = self._as_path(samples, bounds, end, numbers)
        return replace(ended, pairs=pairs, unchecked=path)

    def _as_path(
        self, samples: Samples, bounds: Array, end: End | None, numbers: list[int]
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
            numbers[self.curve.segment[piece]] if len(samples.s) else numbers[0] - 1,
            bounds,
            self._chain(samples.q) is not None,
            (),
            self.tool,
            self.curve,
            corners,
        )

    def _followed(self, start: Array | None) -> tuple[Samples, Array, End | None]:
        """Return samples, bounds between them, and where they end early."""
        coarse, end = self._coarse(start)
        best = self._ended(coarse, end)
        # Where a path ends it may be that coarse poses led to another branch: from its
        # beginning it is followed in smaller steps.
        for finer in FINER_DISTANCES:
            samples, _, last = best
            if last is None or last is end or not len(samples.s):
                break
            if start is None and finer == FINER_DISTANCES[0]:
                closer = self._planned(end, finer)
            else:
                closer = self._tracked(samples.q[0], end, finer)
            found = self._ended(closer, end)
            if _goes_to(found) > _goes_to(best) + SHORTEST:
                best = found
        return best

    def _ended(
        self, samples: Samples, end: End | None
    ) -> tuple[Samples, Array, End | None]:
        """Return refined samples, their bounds, and where they end early."""
        if len(samples.s) < 2:
            return samples, np.zeros((0, 2)), end
        samples, bounds, worse = self._refined(samples)
        return samples, bounds, worse or end

    def _poses(self, finer: float) -> tuple[Array, Indices]:
        """Return parameters of poses that are far from each other, and their pieces.

        finer: By how much their distance is divided.
        """
        lengths, ways = self.curve.lengths, self.curve.way
        counts = np.ceil(finer * np.maximum(lengths / COARSE, ways / COARSE_TURN))
        counts = np.maximum(counts, 2.0).astype(np.int64)
        parts = _Parts.of(counts)
        return parts.between(self.curve.start), parts.interval

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
        way = self.solver.numeric.follow(self._query(X), start)
        q = way.q[:, 0].copy()
        q[0] = start
        missed = np.flatnonzero(~way.success[:, 0])
        if missed.size:
            q[missed[0]] = np.nan
            s, q, piece = s[: missed[0] + 1], q[: missed[0] + 1], piece[: missed[0]]
        return Samples(s, q, piece)

    # few poses

    def _coarse(self, start: Array | None) -> tuple[Samples, End | None]:
        """Return the samples at which a branch is chosen, and where they end early."""
        s, piece = self._poses(1.0)
        poses = self.curve.points(s, np.append(piece, piece[-1])).pose
        # Nothing behind a pose that is out of reach is searched for.
        far = np.flatnonzero(
            self.solver.numeric.problem.out_of_reach(poses.reshape(-1, 16))
        )
        if far.size:
            first = max(int(far[0]), 1)
            s, piece, poses = s[: first + 1], piece[:first], poses[: first + 1]
        followed = end = None
        if start is not None:
            followed = self.solver.numeric.follow(self._query(poses), start)
        if followed is None or not followed.success.all():
            reached, end = self._reached(s, poses, start)
            s, poses = s[:reached], poses[:reached]
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
            followed = self.solver.numeric.follow(self._query(X), start)
        if followed is not None and not is_free:
            q = followed.q[: len(X), 0].copy()
        else:
            path = self.solver.path(
                X, start=start, tolerance=self._ik_tolerance, explain=False
            )
            q = path.answer.q.copy()
            # The path goes as far as it can before it jumps.
            if followed is not None and path.jumps.size:
                q = followed.q[: len(X), 0].copy()
        if start is not None:
            q[0] = start
        return q

    def _reached(
        self, s: Array, X: Array, start: Array | None
    ) -> tuple[int, End | None]:
        """Return how many poses can be reached one after another, and why no more."""
        near = self.solver.numeric.problem.home if start is None else start
        found = self.solver(X, near=near, tolerance=self._ik_tolerance, explain=False)
        missed = np.flatnonzero(~found.success)
        if not missed.size:
            return len(s), None
        first = int(missed[0])
        # The end of reach is between this pose and the one before.
        good, bad = (float(s[first - 1]) if first else 0.0), float(s[first])
        if first:
            near = found.q[first - 1]
            while bad - good > SHORTEST:
                middle = 0.5 * (good + bad)
                (pose,) = self.curve.points(np.array([middle])).pose
                one = self.solver(
                    pose, near=near, tolerance=self._ik_tolerance, explain=False
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
        reason = int(self.solver(pose, near=near, tolerance=self._ik_tolerance).reason)
        known = {int(each) for each in LineReason}
        is_known = reason in known and reason not in (Reason.SOLVED, Reason.SINGULAR)
        return LineReason(reason) if is_known else LineReason.NOT_FOUND

    def _query(self, X: Array) -> IKQuery:
        return query_of(
            self.solver.numeric.problem, X, tolerance=self._ik_tolerance, explain=False
        )

    @cached_property
    def _ik_tolerance(self) -> Tolerance:
        distance, angle = self.tolerance
        return (
            min(1e-6, PART_OF_TOLERANCE * distance),
            min(1e-6, PART_OF_TOLERANCE * angle),
        )

    # many

    def _refined(self, samples: Samples) -> tuple[Samples, Array, End | None]:
        """Return samples with bounds below the tolerance, and where that fails."""
        most = np.array(self.tolerance)
        found = self._deviations(samples)
        for _ in range(MOST_ROUNDS_OF_SAMPLES):
            h = np.diff(samples.s)
            is_wide = ~(found.bound <= most).all(axis=1)
            counts = np.where(h > self.step * (1.0 + 1e-9), np.ceil(h / self.step), 1.0)
            if is_wide.any():
                with np.errstate(invalid="ignore", over="ignore"):
                    parts = np.sqrt(found.bend / (SPARE * most)).max(axis=1)
                parts = np.where(np.isfinite(parts), np.ceil(parts), UNKNOWN)
                parts = np.where(is_wide, np.maximum(parts, 2.0), 1.0)
                # Where it hardly falls, more parts at once do not help.
                counts = np.maximum(counts, np.minimum(parts, MOST_PARTS))
            counts = np.minimum(counts, np.maximum(np.floor(h / SHORTEST), 1.0))
            counts = counts.astype(np.int64)
            if counts.max() == 1 or counts.sum() > MOST_SAMPLES:
                break
            samples = self._inserted(samples, counts)
            found = self._deviations(samples)
            # What stops the path ends it: what comes behind need not be finer.
            stuck = self._stuck(samples, found)
            if stuck is not None:
                samples = samples.until(stuck + 1)
                found = Deviations(found.bound[: stuck + 1], found.bend[: stuck + 1])
        is_wide = ~(found.bound <= most).all(axis=1)
        if not is_wide.any():
            return samples, found.bound, None
        first = int(np.argmax(is_wide))
        end = End(self._why(samples, first), float(samples.s[first]))
        return samples.until(first), found.bound[:first], end

    def _stuck(self, samples: Samples, found: Deviations) -> int | None:
        """Return the first interval above the tolerance that cannot be divided."""
        wide = ~(found.bound <= np.array(self.tolerance)).all(axis=1)
        stuck = np.flatnonzero(wide & (np.diff(samples.s) < 2.0 * SHORTEST))
        return int(stuck[0]) if stuck.size else None

    def _inserted(self, samples: Samples, counts: Indices) -> Samples:
        """Return samples with intervals divided, their joint positions found."""
        parts = _Parts.of(counts)
        s, piece = parts.between(samples.s), samples.piece[parts.interval]
        near = _cubic(samples, self.curve.sharp, parts)
        is_new = parts.share != 0.0
        is_known = np.append(~is_new, True)
        q = np.empty_like(near)
        q[is_known] = samples.q
        rows = np.flatnonzero(is_new)
        X = self.curve.points(s[rows], piece[rows]).pose
        local = self.solver.numeric.local(self._query(X)._replace(near=near[rows]))
        q[rows] = local.q[:, 0]
        missed = rows[~local.success[:, 0]]
        if missed.size:
            again = self.solver(
                self.curve.points(s[missed], piece[missed]).pose,
                near=np.nan_to_num(near[missed]),
                tolerance=self._ik_tolerance,
                explain=False,
            )
            q[missed] = np.where(again.success[:, None], again.q, np.nan)
        return Samples(s, q, piece)

    def _chain(self, q: Array) -> ToolChain | None:
        """Return what bounds deviations, None where nothing does."""
        if not self._has_bounds:
            return None
        lower, upper, inputs = self._ranges
        low, high = lower.copy(), upper.copy()
        if len(q):
            # Few boxes, so that bounds are found once: limits, or powers of two.
            by_joint = np.ascontiguousarray(q[np.isfinite(q[:, 0])].T)
            least, most = (
                by_joint.min(axis=1, initial=0.0),
                by_joint.max(1, initial=0.0),
            )
            reach = np.exp2(np.ceil(np.log2(np.maximum(np.maximum(-least, most), 0.5))))
            low[inputs] = np.where(least < lower[inputs], -reach, lower[inputs])
            high[inputs] = np.where(most > upper[inputs], reach, upper[inputs])
        key = low.tobytes(), high.tobytes()
        if key not in self._chains:
            cell, tool = self.tool.cell, self.tool
            ends = cell.frame(tool.frame), cell.frame(tool.relative_to)
            chain = chain_of(cell, ends, tool.joints, tool.state, (low, high))
            known = chain if chain is not None and chain.is_known else None
            self._chains[key] = known
        return self._chains[key]

    @cached_property
    def _has_bounds(self) -> bool:
        """Return whether there may be bounds of how the joints move the tool."""
        return are_bounded(self.tool.cell, self.tool.state)

    @cached_property
    def _chains(self) -> dict[tuple[bytes, bytes], ToolChain | None]:
        return {}

    @cached_property
    def _ranges(self) -> tuple[Array, Array, list[int]]:
        """Return the ranges of all joints of the cell, and which of them move.

        Those without limits have the range that is around zero and where they are.
        """
        rest = self.tool.rest
        lower, upper = self.tool.cell.limits
        lower = np.minimum(np.where(np.isfinite(lower), lower, -0.5), rest)
        upper = np.maximum(np.where(np.isfinite(upper), upper, 0.5), rest)
        return lower, upper, list(self.solver.numeric.problem.selection.inputs)

    def _deviations(self, samples: Samples) -> Deviations:
        """Return bounds between samples; infinite where one was not found."""
        chain = self._chain(samples.q)
        if chain is None:
            return self._measured(samples)
        s, q, piece = samples
        steps, h = np.diff(q, axis=0), np.diff(s)
        count = len(h)
        rates = np.tile(steps, (2, 1))
        scale = np.tile(h, 2)[:, None]
        at = self.curve.points(np.concatenate([s[:-1], s[1:]]), np.tile(piece, 2))
        errors = self._error(
            np.concatenate([q[:-1], q[1:]]),
            rates,
            at.pose,
            at.rate * scale,
            at.bend * (scale * scale),
        ).reshape(2, count, 4)
        found = chain.deviations(q, errors, self.curve, piece, h)
        if not self.tool.directions:
            found.bound[:, 1] = found.bend[:, 1] = 0.0
        return found

    @cached_property
    def _error(self) -> AnyKernel:
        tool = self.tool
        names = tool.frame, tool.relative_to
        return path_error(tool.cell, names, tool.joints, tool.state, tool.directions)

    def _measured(self, samples: Samples) -> Deviations:
        """Return deviations at instants between samples, where no bound is known."""
        s, q, piece = samples
        t = (np.arange(MEASURED + 1) / MEASURED)[:, None]
        Q = q[:-1, None] + t * (q[1:] - q[:-1])[:, None]
        S = s[:-1, None] + t[:, 0] * (s[1:] - s[:-1])[:, None]
        at = self.curve.points(S.ravel(), np.repeat(piece, MEASURED + 1)).pose
        X = self.solver.numeric.problem.fk(Q.reshape(-1, q.shape[1]))[:, 0]
        apart = np.linalg.norm(X[:, :3, 3] - at[:, :3, 3], axis=1)
        directions = list(self.tool.directions)
        turned = (X - at)[:, :3, directions]
        # Of a whole rotation each direction counts twice.
        part = 0.5 if len(directions) > 1 else 1.0
        chord = np.sqrt(part * (turned**2).sum(axis=(1, 2)))
        angle = 2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0))
        both = np.stack([apart, angle], axis=1).reshape(len(piece), MEASURED + 1, 2)
        bound = both.max(axis=1)
        return Deviations(np.where(np.isnan(bound), np.inf, bound), bound)

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


class _Parts(NamedTuple):
    """Equal parts in which intervals are divided, in order.

    Attributes:
        interval: The interval of each, shape (m,).
        share: What share of it is before, from 0 on, shape (m,).
    """

    interval: Indices
    share: Array

    @classmethod
    def of(cls, counts: Indices) -> _Parts:
        """Return the parts of intervals.

        counts: In how many parts each is divided, shape (k,).
        """
        interval = np.repeat(np.arange(len(counts)), counts)
        first = (np.cumsum(counts) - counts)[interval]
        return cls(interval, (np.arange(len(interval)) - first) / counts[interval])

    def between(self, s: Array) -> Array:
        """Return parameters where parts begin, and the last: (k + 1,) to (m + 1,)."""
        at = np.empty(len(self.share) + 1)
        at[:-1] = s[:-1][self.interval] + self.share * (s[1:] - s[:-1])[self.interval]
        at[-1] = s[-1]
        return at


def _cubic(samples: Samples, sharp: npt.NDArray[np.bool_], parts: _Parts) -> Array:
    """Return joint positions of divided intervals, on cubics through the samples.

    The slope at a sample is that of the parabola through it and its neighbours, at ends
    and corners of the one on that side. Where joints may jump they stay as before.

    Args:
        samples: What is divided.
        sharp: Which pieces end at a corner.
        parts: In which intervals are divided.
    """
    s, q, piece = samples
    h = (s[1:] - s[:-1])[:, None]
    d = (q[1:] - q[:-1]) / h
    left, right = d.copy(), d.copy()  # slopes at both ends of each interval
    if len(d) > 1:
        inner = (h[1:] * d[:-1] + h[:-1] * d[1:]) / (h[1:] + h[:-1])
        left[1:] = right[:-1] = inner
        bends = sharp[piece[:-1]] & (piece[1:] > piece[:-1])
        if bends.any():
            left[1:][bends], right[:-1][bends] = d[1:][bends], d[:-1][bends]
        # A free end has the slope of the parabola of its own side.
        alone = np.append(True, bends)
        left[alone] = 1.5 * d[alone] - 0.5 * right[alone]
        alone = np.append(bends, True)
        right[alone] = 1.5 * d[alone] - 0.5 * left[alone]
    t, at = parts.share[:, None], parts.interval
    a, b, u, v = (each[at] for each in (q[:-1], q[1:], left * h, right * h))
    way = b - a
    # Beyond a jump nothing is between both: what is before it goes on.
    leap = np.abs(way).max(axis=1, initial=0.0) > LEAP
    way[leap] = u[leap] = v[leap] = 0.0
    cubic = a + t * (u + t * (3.0 * way - 2.0 * u - v + t * (u + v - 2.0 * way)))
    return np.concatenate([cubic, q[-1:]])
