"""Samples of curves, as near to each other as a tolerance asks for.

Where a tool follows several curves by the same joints, the samples of all are found
together: each step below is one call for all curves, and the result for each is that of
a call with that curve alone, to the last bit.

    bound       how far the tool is from its curve between samples, `deviation.py`
    divide      intervals above the tolerance, in as many parts as their bounds ask for
    near        joint positions on a cubic through the samples before
    fine        inverse kinematics of each new sample from there
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.query import IKQuery, query_of
from armillary.planning.cartesian_path import Tool
from armillary.planning.curve_pieces import CurvePieces
from armillary.planning.detoured_path import MEASURED, SHORTEST
from armillary.planning.deviation import (
    Deviations,
    ToolChain,
    are_bounded,
    chain_of,
    path_error,
)
from armillary.planning.tool_curve import ToolCurve

__all__ = ["MOST_SAMPLES", "Parts", "Refined", "Refiner", "Samples"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Tolerance = tuple[float, float]

PART_OF_TOLERANCE: Final = 0.02
"""What part of the tolerance inverse kinematics may leave."""

SPARE: Final = 0.75
"""What part of the tolerance samples are chosen for."""

MOST_PARTS: Final = 64
"""In so many parts an interval is divided at once, at most."""

LEAP: Final = 0.3
"""A larger step of a joint may be one to another branch [m or rad]."""

UNKNOWN: Final = 8.0
"""In so many parts where nothing says how many are needed."""

MOST_ROUNDS_OF_SAMPLES: Final = 16
MOST_SAMPLES: Final = 1 << 20


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


class Refined(NamedTuple):
    """Samples of a curve, and how far the tool is from it between them.

    Attributes:
        samples: The samples.
        bounds: Distance [m] and angle [rad] in each interval, shape (k - 1, 2).
        wide: The first interval above the tolerance, None where there is none.
    """

    samples: Samples
    bounds: Array
    wide: int | None


class Parts(NamedTuple):
    """Equal parts in which intervals are divided, in order.

    Attributes:
        interval: The interval of each, shape (m,).
        share: What share of it is before, from 0 on, shape (m,).
    """

    interval: Indices
    share: Array

    @classmethod
    def of(cls, counts: Indices) -> Parts:
        """Return the parts of intervals.

        counts: In how many parts each is divided, shape (k,).
        """
        interval = np.repeat(np.arange(len(counts)), counts)
        first = (np.cumsum(counts) - counts)[interval]
        return cls(interval, (np.arange(len(interval)) - first) / counts[interval])

    def within(self, first: Array, last: Array) -> Array:
        """Return parameters at which parts begin, shape (m,).

        Args:
            first: Where each interval begins, shape (k,).
            last: Where it ends.
        """
        return first[self.interval] + self.share * (last - first)[self.interval]


class _SampleRows(NamedTuple):
    """Samples of c curves, one after the other, k in all.

    Attributes:
        s: Their parameters, shape (k,).
        q: Joint positions, shape (k, n).
        piece: The piece, of those of all curves, that each interval is on, (k - c,).
        sizes: How many samples each curve has, two or more, shape (c,).
        first: The samples at which intervals begin, shape (k - c,).
    """

    s: Array
    q: Array
    piece: Indices
    sizes: Indices
    first: Indices

    @classmethod
    def of(cls, samples: Sequence[Samples], before: list[int]) -> _SampleRows:
        """Return the samples of curves.

        Args:
            samples: Those of each.
            before: How many pieces the curves before each have.
        """
        if len(samples) == 1:
            return cls.joined(*samples[0], np.array([len(samples[0].s)]))
        s = np.concatenate([each.s for each in samples])
        q = np.concatenate([each.q for each in samples])
        piece = [each.piece + k for each, k in zip(samples, before, strict=True)]
        count = np.array([len(each.s) for each in samples])
        return cls.joined(s, q, np.concatenate(piece), count)

    @classmethod
    def joined(cls, s: Array, q: Array, piece: Indices, count: Indices) -> _SampleRows:
        """Return samples of curves, by how many each has."""
        if len(count) == 1:
            return cls(s, q, piece, count, np.arange(len(s) - 1))
        begins = np.ones(len(s), np.bool_)
        begins[np.cumsum(count) - 1] = False
        return cls(s, q, piece, count, np.flatnonzero(begins))

    @property
    def last(self) -> Indices:
        """Return the last sample of each curve, shape (c,)."""
        return np.cumsum(self.sizes) - 1

    @property
    def curve(self) -> Indices:
        """Return the curve that each interval is on, shape (k - c,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes - 1)

    def parts(self, before: list[int]) -> list[tuple[Samples, slice]]:
        """Return the samples of each curve, and which intervals are its own.

        before: How many pieces the curves before each have.
        """
        found: list[tuple[Samples, slice]] = []
        a = 0
        for c, (count, pieces) in enumerate(
            zip(self.sizes.tolist(), before, strict=True)
        ):
            own = slice(a - c, a - c + count - 1)
            q = self.q[a : a + count]
            found.append(
                (Samples(self.s[a : a + count], q, self.piece[own] - pieces), own)
            )
            a += count
        return found

    @property
    def h(self) -> Array:
        """Return the lengths of intervals [m], shape (k - c,)."""
        return self.s[self.first + 1] - self.s[self.first]

    @property
    def intervals_before(self) -> Indices:
        """Return how many intervals the curves before each have, shape (c,)."""
        counts = self.sizes - 1
        return np.cumsum(counts) - counts

    def firsts(self, of: Truths) -> Indices:
        """Return the first interval of each curve of those that are chosen, (c,).

        of: Which are, shape (k - c,). Where none is, more than the curve has.
        """
        firsts = self.sizes.copy()
        at = np.flatnonzero(of)[::-1]
        owner = self.curve[at]
        firsts[owner] = at - self.intervals_before[owner]
        return firsts

    def until(self, most: Indices) -> tuple[_SampleRows, Truths]:
        """Return the first intervals of each curve, and which of all these are.

        most: How many of each curve, shape (c,).
        """
        curve = self.curve
        kept = np.arange(len(self.first)) - self.intervals_before[curve] < most[curve]
        at = np.zeros(len(self.s), np.bool_)
        at[self.first[kept]] = at[self.first[kept] + 1] = True
        count = np.minimum(self.sizes, most + 1)
        rows = _SampleRows.joined(self.s[at], self.q[at], self.piece[kept], count)
        return rows, kept


class _Curves(NamedTuple):
    """Curves that are followed at once.

    Attributes:
        each: The curves, c of them.
        pieces: The pieces of all.
        before: How many pieces the curves before each have.
    """

    each: Sequence[ToolCurve]
    pieces: CurvePieces
    before: list[int]

    @classmethod
    def of(cls, curves: Sequence[ToolCurve]) -> _Curves:
        """Return curves with what is known of all."""
        before = [0]
        for curve in curves[:-1]:
            before.append(before[-1] + len(curve.segment))
        return cls(curves, CurvePieces.joined([each.pieces for each in curves]), before)


@dataclass(frozen=True)
class Refiner:
    """Divides the intervals between samples until a tool is near its curves.

    Attributes:
        solver: Inverse kinematics of the tool.
        tool: What follows the curves.
        tolerance: How far from them the tool may be [m, rad].
        step: The largest distance of samples [m].
    """

    solver: InverseKinematics
    tool: Tool
    tolerance: Tolerance
    step: float

    def refined(
        self, curves: Sequence[ToolCurve], samples: Sequence[Samples]
    ) -> list[Refined]:
        """Return samples between which bounds are below the tolerance.

        Where that fails, samples go to the end of the first interval above it.

        Args:
            curves: What is followed.
            samples: Two samples or more of each.
        """
        of = _Curves.of(curves)
        rows = _SampleRows.of(samples, of.before)
        found = self._deviations(rows, of)
        for _ in range(MOST_ROUNDS_OF_SAMPLES):
            counts = self._counts(rows, found)
            if counts.max() == 1:
                break
            rows = self._inserted(rows, counts, of.pieces)
            found = self._deviations(rows, of)
            # What stops a path ends it: what comes behind need not be finer.
            stuck = self._is_wide(found) & (rows.h < 2.0 * SHORTEST)
            if stuck.any():
                rows, kept = rows.until(rows.firsts(stuck) + 1)
                found = Deviations(found.bound[kept], found.bend[kept])
        return self._parts(rows, found, of.before)

    def _parts(
        self, rows: _SampleRows, found: Deviations, before: list[int]
    ) -> list[Refined]:
        """Return what was found for each curve."""
        is_wide = self._is_wide(found)
        if not is_wide.any():
            return [
                Refined(samples, found.bound[own], None)
                for samples, own in rows.parts(before)
            ]
        parts: list[Refined] = []
        for samples, own in rows.parts(before):
            wide = np.flatnonzero(is_wide[own])
            bounds = found.bound[own]
            if wide.size:
                first = int(wide[0])
                parts.append(Refined(samples.until(first + 1), bounds[:first], first))
            else:
                parts.append(Refined(samples, bounds, None))
        return parts

    def _is_wide(self, found: Deviations) -> Truths:
        """Return which intervals are above the tolerance, shape (k - c,)."""
        return np.asarray(~(found.bound <= np.array(self.tolerance)).all(axis=1))

    def _counts(self, rows: _SampleRows, found: Deviations) -> Indices:
        """Return in how many parts intervals are divided, shape (k - c,)."""
        h = rows.h
        counts = np.where(h > self.step * (1.0 + 1e-9), np.ceil(h / self.step), 1.0)
        is_wide = self._is_wide(found)
        if is_wide.any():
            most = np.array(self.tolerance)
            with np.errstate(invalid="ignore", over="ignore"):
                parts = np.sqrt(found.bend / (SPARE * most)).max(axis=1)
            parts = np.where(np.isfinite(parts), np.ceil(parts), UNKNOWN)
            parts = np.where(is_wide, np.maximum(parts, 2.0), 1.0)
            # Where it hardly falls, more parts at once do not help.
            counts = np.maximum(counts, np.minimum(parts, MOST_PARTS))
        counts = np.minimum(counts, np.maximum(np.floor(h / SHORTEST), 1.0))
        sums = np.bincount(rows.curve, counts)
        if (sums > MOST_SAMPLES).any():
            counts[(sums > MOST_SAMPLES)[rows.curve]] = 1.0
        return counts.astype(np.int64)

    def _inserted(
        self, rows: _SampleRows, counts: Indices, pieces: CurvePieces
    ) -> _SampleRows:
        """Return samples with intervals divided, their joint positions found."""
        parts = Parts.of(counts)
        owner = rows.curve[parts.interval]
        count = np.bincount(owner) + 1
        # Behind the parts of each curve comes its last sample.
        place, last = np.arange(len(owner)) + owner, np.cumsum(count) - 1
        s, q = (
            np.empty(len(owner) + len(count)),
            np.empty((len(owner) + len(count), rows.q.shape[1])),
        )
        s[place] = parts.within(rows.s[rows.first], rows.s[rows.first + 1])
        s[last], q[last] = rows.s[rows.last], rows.q[rows.last]
        piece = rows.piece[parts.interval]
        near = _cubic(rows, pieces.sharp, parts)
        is_new = parts.share != 0.0
        q[place[~is_new]] = rows.q[rows.first]
        new, near = place[is_new], near[is_new]
        X = pieces.points(s[new], piece[is_new]).pose
        local = self.solver.numeric.local(self.query(X)._replace(near=near))
        q[new] = local.q[:, 0]
        missed = np.flatnonzero(~local.success[:, 0])
        if missed.size:
            again = self.solver(
                X[missed],
                near=np.nan_to_num(near[missed]),
                tolerance=self.ik_tolerance,
                explain=False,
            )
            q[new[missed]] = np.where(again.success[:, None], again.q, np.nan)
        return _SampleRows.joined(s, q, piece, count)

    def query(self, X: Array) -> IKQuery:
        """Return the query of poses, shape (k, 4, 4)."""
        return query_of(
            self.solver.numeric.problem, X, tolerance=self.ik_tolerance, explain=False
        )

    @cached_property
    def ik_tolerance(self) -> Tolerance:
        """Return what inverse kinematics may leave [m, rad]."""
        distance, angle = self.tolerance
        return (
            min(1e-6, PART_OF_TOLERANCE * distance),
            min(1e-6, PART_OF_TOLERANCE * angle),
        )

    # bounds

    def chain(self, q: Array) -> ToolChain | None:
        """Return what bounds deviations, None where nothing does.

        q: Joint positions that the bounds are to hold for, shape (k, n).
        """
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

    def _deviations(self, rows: _SampleRows, of: _Curves) -> Deviations:
        """Return bounds between samples; infinite where one was not found."""
        if not self._has_bounds:
            return self._measured(rows, of.pieces)
        parts = rows.parts(of.before)
        chains = [self.chain(samples.q) for samples, _ in parts]
        if all(chain is None for chain in chains):
            return self._measured(rows, of.pieces)
        errors, h = self._errors(rows, of.pieces), rows.h
        bound, bend = np.empty((len(h), 2)), np.empty((len(h), 2))
        for curve, chain, (samples, own) in zip(of.each, chains, parts, strict=True):
            if chain is None:
                alone = _SampleRows.of([samples], [0])
                found = self._measured(alone, curve.pieces)
            else:
                at = errors[:, own], curve, samples.piece, h[own]
                found = chain.deviations(samples.q, *at)
            bound[own], bend[own] = found
        if not self.tool.directions:
            bound[:, 1] = bend[:, 1] = 0.0
        return Deviations(bound, bend)

    def _errors(self, rows: _SampleRows, pieces: CurvePieces) -> Array:
        """Return what `path_error` says at both ends of intervals, (2, k - c, 4)."""
        a, h = rows.first, rows.h
        ends, scale = np.concatenate([a, a + 1]), np.tile(h, 2)[:, None]
        at = pieces.points(rows.s[ends], np.tile(rows.piece, 2))
        tool = self.tool
        names = tool.frame, tool.relative_to
        kernel = path_error(tool.cell, names, tool.joints, tool.state, tool.directions)
        errors = kernel(
            rows.q[ends],
            np.tile(rows.q[a + 1] - rows.q[a], (2, 1)),
            at.pose,
            at.rate * scale,
            at.bend * (scale * scale),
        )
        return np.asarray(errors).reshape(2, len(h), 4)

    def _measured(self, rows: _SampleRows, pieces: CurvePieces) -> Deviations:
        """Return deviations at instants between samples, where no bound is known."""
        a, q, s = rows.first, rows.q, rows.s
        t = (np.arange(MEASURED + 1) / MEASURED)[:, None]
        Q = q[a, None] + t * (q[a + 1] - q[a])[:, None]
        S = s[a, None] + t[:, 0] * rows.h[:, None]
        at = pieces.points(S.ravel(), np.repeat(rows.piece, MEASURED + 1)).pose
        X = self.solver.numeric.problem.fk(Q.reshape(-1, q.shape[1]))[:, 0]
        apart = np.linalg.norm(X[:, :3, 3] - at[:, :3, 3], axis=1)
        directions = list(self.tool.directions)
        turned = (X - at)[:, :3, directions]
        # Of a whole rotation each direction counts twice.
        part = 0.5 if len(directions) > 1 else 1.0
        chord = np.sqrt(part * (turned**2).sum(axis=(1, 2)))
        angle = 2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0))
        both = np.stack([apart, angle], axis=1).reshape(len(a), MEASURED + 1, 2)
        bound = both.max(axis=1)
        return Deviations(np.where(np.isnan(bound), np.inf, bound), bound)


def _cubic(rows: _SampleRows, sharp: Truths, parts: Parts) -> Array:
    """Return joint positions where parts of intervals begin, on cubics, shape (m, n).

    The slope at a sample is that of the parabola through it and its neighbours, at ends
    and corners of the one on that side. Where joints may jump they stay as before.

    Args:
        rows: What is divided.
        sharp: Which pieces end at a corner.
        parts: In which intervals are divided.
    """
    q, piece, first = rows.q, rows.piece, rows.first
    h = rows.h[:, None]
    d = (q[first + 1] - q[first]) / h
    left, right = d.copy(), d.copy()  # slopes at both ends of each interval
    if len(d) > 1:
        inner = (h[1:] * d[:-1] + h[:-1] * d[1:]) / (h[1:] + h[:-1])
        left[1:] = right[:-1] = inner
        ends = sharp[piece[:-1]] & (piece[1:] > piece[:-1])
        ends |= first[1:] > first[:-1] + 1  # the next one is on another curve
        left[1:][ends], right[:-1][ends] = d[1:][ends], d[:-1][ends]
        # A free end has the slope of the parabola of its own side.
        begins, ends = np.append(True, ends), np.append(ends, True)
        alone = begins & ~ends
        left[alone] = 1.5 * d[alone] - 0.5 * right[alone]
        alone = ends & ~begins
        right[alone] = 1.5 * d[alone] - 0.5 * left[alone]
    t, at = parts.share[:, None], parts.interval
    a, u, v, way = (
        each[at] for each in (q[first], left * h, right * h, q[first + 1] - q[first])
    )
    # Beyond a jump nothing is between both: what is before it goes on.
    leap = np.abs(way).max(axis=1, initial=0.0) > LEAP
    way[leap] = u[leap] = v[leap] = 0.0
    return a + t * (u + t * (3.0 * way - 2.0 * u - v + t * (u + v - 2.0 * way)))
