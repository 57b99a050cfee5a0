"""How loops are closed at home, and whether they stay closed when joints move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.loops.equations import LoopEquations, LoopJoint
from armillary.model.loops.loop import Rod
from armillary.model.unit import Unit

__all__ = [
    "Eliminated",
    "ScaledRows",
    "closed_near",
    "eliminated",
    "opening",
]

Array = npt.NDArray[np.float64]

CLOSED: Final = 1e-9  # of the size of a loop
STEPS: Final = 80
SPREADS: Final = (0.0, 1e-3, 0.05, 0.2, 0.6, *(math.pi,) * 60)
"""How far starts are from the given one, in turn [rad, or of the size of a loop]."""
AT_ONCE: Final = (0, 1, 17, len(SPREADS))
"""Which starts are tried together, so that one that closes saves the later ones."""
PARTS: Final = (1e-2, -1e-2, 1e-3, -1e-3)
"""How far joints are moved to see whether loops stay closed, in the same units."""

# the rows of loops as arrays of numbers of like size

SAMPLES = 4
NEARBY = 0.05  # of a radian, or of the size of a loop

# which columns of a matrix depend on which: elimination in a given order

SMALLEST: Final = 1e-5
"""Pivots below it, of the largest entry, count as zero: files round directions."""


class Eliminated(NamedTuple):
    """A basis of the columns of a matrix.

    Attributes:
        columns: Those with a pivot.
        rows: The row of each pivot: independent, as many as columns.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]


def eliminated(A: Array, order: Sequence[int]) -> Eliminated:
    """Return the columns, taken in `order`, that earlier ones do not make up.

    Gaussian elimination by columns, the largest entry of each being its pivot.

    Args:
        A: The matrix, shape (m, n).
        order: Of columns; others are left out.
    """
    left = A.copy()
    smallest = SMALLEST * float(np.abs(A).max(initial=0.0))
    free = np.ones(len(A), np.bool_)
    columns: list[int] = []
    rows: list[int] = []
    for column in order:
        # The largest entry of the column in rows without a pivot; a column without one
        # depends on the columns before.
        entries = np.where(free, np.abs(left[:, column]), 0.0)
        row = int(entries.argmax()) if len(entries) else 0
        if not free.any() or not entries[row] > smallest:
            continue
        free[row] = False
        columns.append(column)
        rows.append(row)
        factors = np.where(free, left[:, column] / left[row, column], 0.0)
        left[factors != 0.0] -= np.outer(factors[factors != 0.0], left[row])
    return Eliminated(tuple(columns), tuple(rows))


class ScaledRows:
    """The rows of loops, lengths divided by the size of the loop that they are in.

    Attributes:
        equations: Of each loop.
        joints: All joints.
        sizes: Of each loop: its longest lever, else the length of its rod [m].
        units: For each joint 1, or for lengths the size of its first loop.
        addresses: For each row the number of its loop, and which row of that it is.
    """

    def __init__(
        self, equations: Sequence[LoopEquations], joints: Sequence[LoopJoint]
    ) -> None:
        """Measure the loops."""
        self.equations = equations
        self.joints = joints
        self.addresses = [
            (k, row) for k, each in enumerate(equations) for row in range(each.size)
        ]
        start = np.array([joint.start for joint in joints])
        is_length = np.array([joint.unit is Unit.METRE for joint in joints], np.bool_)
        # Lengths are not moved before it is known what they are compared with.
        self.units = np.where(is_length, 0.0, 1.0)
        # Twice: the first measure moves no lengths; the second moves them by parts of
        # the sizes that the first has found.
        self._measure(start, is_length)
        self._measure(start, is_length)
        self._divisors = np.array(
            [
                size if row < each.lengths else 1.0
                for each, size in zip(equations, self.sizes, strict=True)
                for row in range(each.size)
            ]
        )

    def _measure(self, start: Array, is_length: npt.NDArray[np.bool_]) -> None:
        """Set sizes and units, from levers near a start."""
        samples = [self.nearby(start, seed) for seed in range(SAMPLES)]
        self.sizes = [self._size(each, samples) for each in self.equations]
        self.units[is_length] = 1.0
        loops = zip(self.equations[::-1], self.sizes[::-1], strict=True)
        for each, size in loops:
            for k in each.joints:
                if is_length[k]:
                    self.units[k] = size

    def _size(self, equations: LoopEquations, samples: Sequence[Array]) -> float:
        turning = [
            i
            for i, k in enumerate(equations.joints)
            if self.joints[k].unit is not Unit.METRE
        ]
        levers = [
            abs(row[i])
            for q in samples
            for row in equations.rows(q.tolist()).rates[: equations.lengths]
            for i in turning
        ]
        loop = equations.loop
        longest = max(map(float, levers), default=0.0)
        longest = max(longest, loop.length if isinstance(loop, Rod) else 0.0)
        if longest > 0.0:
            return longest
        # Nothing turns, or only on the spot: what is left are gaps and slides.
        rows = equations.rows(samples[0].tolist()).values[: equations.lengths]
        slides = [
            samples[0][k] for k in equations.joints if self.joints[k].unit is Unit.METRE
        ]
        return max((abs(float(x)) for x in (*rows, *slides)), default=0.0) or 1.0

    def nearby(self, q: Array, seed: int = 0) -> Array:
        """Return positions a little away from q, the same ones for the same seed."""
        noise = np.random.default_rng(seed).uniform(-NEARBY, NEARBY, len(q))
        return q + self.units * noise

    def at(self, q: Array) -> tuple[Array, Array]:
        """Return the rows and their derivatives at q.

        Args:
            q: Positions of all joints, shape (n,) or (s, n).

        Returns:
            Shapes (m,) and (m, n), or (s, m) and (s, m, n).
        """
        # One vector is evaluated on floats, which takes a fifth of the time.
        numbers = q.tolist() if q.ndim == 1 else list(q.T)
        values = np.empty((*q.shape[:-1], len(self.addresses)))
        rates = np.zeros((*values.shape, q.shape[-1]))
        row = 0
        for each in self.equations:
            own = each.rows(numbers)
            for value, derivatives in zip(own.values, own.rates, strict=True):
                values[..., row] = value
                for k, derivative in zip(each.joints, derivatives, strict=True):
                    rates[..., row, k] = derivative
                row += 1
        with np.errstate(all="ignore"):  # what is not finite is refused by callers
            rates *= self.units / self._divisors[:, None]
            return values / self._divisors, rates

    def rates(self, q: Array) -> Array:
        """Return the derivatives of the rows at q, shape (m, n).

        Raises:
            ModelError: Lengths are so large or small that they are not finite.
        """
        rates = self.at(q)[1]
        if not np.isfinite(rates).all():
            row = int(np.argmin(np.isfinite(rates).all(axis=1)))
            loop = self.equations[self.addresses[row][0]].loop.label
            raise ModelError(
                f"The rates of {loop} are not finite numbers: its lengths are too "
                "large, too small, or too different. Check the frames at its ends."
            )
        return rates

    def within(self, q: Array, columns: Sequence[int]) -> bool:
        """Return whether some joints are within their limits at q."""
        return all(
            self.joints[k].lower <= q[k] <= self.joints[k].upper for k in columns
        )


# how loops are closed at home, and whether they stay closed when joints move


def closed_near(scaled: ScaledRows, start: Array, passive: Sequence[int]) -> Array:
    """Return positions of all joints with every loop closed.

    Args:
        scaled: The rows of the loops.
        start: Positions of all joints, shape (n,); only passive ones change.
        passive: The joints that may move.

    Raises:
        ModelError: No start led to closed loops.
    """
    # Newton's method from the start itself, then from random places farther and farther
    # away, many of them at once. Of closed positions those within limits are preferred.
    columns = list(passive)
    rng = np.random.default_rng(0)
    noise = rng.uniform(-1, 1, (len(SPREADS), len(start))) * scaled.units
    starts = np.tile(start, (len(SPREADS), 1))
    starts[:, columns] += (np.array(SPREADS)[:, None] * noise)[:, columns]
    least, best = math.inf, np.zeros(0)
    outside: Array | None = None
    for first, last in pairwise(AT_ONCE):
        with np.errstate(all="ignore"):  # a way that leaves all numbers has ended
            ends = _newton(scaled, starts[first:last], columns, slice(None))
            residuals = np.abs(scaled.at(ends)[0])
        for q, r in zip(ends, residuals, strict=True):
            worst = float(r.max(initial=0.0))
            if worst < CLOSED:
                if scaled.within(q, columns):
                    return q
                outside = q if outside is None else outside
            elif worst < least:
                least, best = worst, r
    if outside is not None:
        return outside
    loop, _ = scaled.addresses[int(best.argmax())] if len(best) else (0, 0)
    raise ModelError(
        f"The loops cannot close at home: {scaled.equations[loop].loop.label} stays "
        f"open by {least * scaled.sizes[loop]:.4g} m or rad. Check lengths and frames, "
        "or let it start elsewhere: a posture that is `home`, with positions at which "
        "it closes; those of passive joints are where the search begins."
    )


def opening(
    scaled: ScaledRows, home: Array, free: Sequence[int], solved: Eliminated
) -> tuple[float, int]:
    """Return by how much loops open when independent joints move a little.

    Args:
        scaled: The rows of the loops.
        home: Positions of all joints, loops closed, shape (n,).
        free: The independent joints of the loops.
        solved: The passive joints, and the rows by which they are solved for.

    Returns:
        The largest of the rows that are not solved for, of the size of its loop, and
        the number of that loop; infinite if passive joints are not found at all.
    """
    left = [row for row in range(len(scaled.addresses)) if row not in solved.rows]
    if not left:
        return 0.0, 0
    # In shorter and shorter moves, until the rows that are solved for can be closed.
    direction = np.random.default_rng(1).uniform(0.5, 1.0, len(home)) * scaled.units
    for part in PARTS:
        q = home.copy()
        q[list(free)] += part * direction[list(free)]
        (q,) = _newton(scaled, q[None], solved.columns, list(solved.rows))
        r = np.abs(scaled.at(q)[0])
        if r[list(solved.rows)].max(initial=0.0) < CLOSED:
            worst = left[int(r[left].argmax())]
            return float(r[worst]), scaled.addresses[worst][0]
    return math.inf, scaled.addresses[left[0]][0]


def _newton(
    scaled: ScaledRows,
    starts: Array,
    columns: Sequence[int],
    rows: slice | Sequence[int],
) -> Array:
    """Return starts moved in some columns until some rows vanish, or nearly.

    Damped least squares (Levenberg 1944), with less damping after each step that helps.

    Args:
        scaled: The rows of the loops.
        starts: Positions of all joints, shape (s, n); each goes its own way.
        columns: The joints that may move.
        rows: Those that are to vanish.
    """
    chosen = list(columns)
    ends = starts.copy()
    # Of the ways that have not ended: their numbers, rows, slopes and dampings.
    going = np.arange(len(ends))
    r, slopes = _parts(scaled, ends, chosen, rows)
    damping = np.full(len(ends), 1e-3)
    for _ in range(STEPS):
        size = np.einsum("si,si->s", r, r)
        keep = (size > 0.0) & np.isfinite(size)
        going, size = going[keep], size[keep]
        r, slopes, damping = r[keep], slopes[keep], damping[keep]
        if not len(going):
            break
        # (J' J + d |r|^2 1) step = J' r: damping falls with the residual, so that
        # convergence stays quadratic where J is regular.
        normal = np.swapaxes(slopes, 1, 2) @ slopes
        normal += (damping * size)[:, None, None] * np.eye(len(chosen))
        right = np.einsum("sij,si->sj", slopes, r)
        steps = np.array([_least(A, b) for A, b in zip(normal, right, strict=True)])
        longest = np.abs(steps).max(axis=1, initial=0.0)
        # No step turns a joint so far that its linearisation means nothing.
        steps *= (0.7 / np.maximum(longest, 0.7))[:, None]
        trials = ends[going]
        trials[:, chosen] -= steps * scaled.units[chosen]
        new_r, new_slopes = _parts(scaled, trials, chosen, rows)
        helps = np.einsum("si,si->s", new_r, new_r) < size
        ends[going[helps]] = trials[helps]
        r[helps], slopes[helps] = new_r[helps], new_slopes[helps]
        damping = np.where(helps, np.maximum(damping * 0.1, 1e-9), damping * 10.0)
        keep = helps | ((damping <= 1e12) & (longest >= 1e-14))
        going, damping = going[keep], damping[keep]
        r, slopes = r[keep], slopes[keep]
    return ends


def _parts(
    scaled: ScaledRows, q: Array, columns: list[int], rows: slice | Sequence[int]
) -> tuple[Array, Array]:
    """Return some rows at some positions, and their derivatives by some joints."""
    if len(q) == 1:
        values, rates = (each[None] for each in scaled.at(q[0]))
    else:
        values, rates = scaled.at(q)
    return values[:, rows], rates[:, rows][:, :, columns]


def _least(A: Array, b: Array) -> Array:
    """Return the least x with A x nearest to b; NaN where A is not finite."""
    try:
        return np.asarray(np.linalg.lstsq(A, b, rcond=1e-14)[0], np.float64)
    except np.linalg.LinAlgError:
        return np.full(len(b), np.nan)
