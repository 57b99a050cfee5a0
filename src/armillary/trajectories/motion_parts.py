"""Parts of motions: samples, peaks, markers and attachments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.kinematics.closing.enclosing import Stretches
from armillary.model.fields import kept
from armillary.model.workcell import Workcell

__all__ = [
    "POWERS",
    "Attachment",
    "Marker",
    "Peaks",
    "Samples",
    "bounded_motion",
    "check_meeting",
    "check_pieces",
    "in_order",
    "sample_times",
    "samples_of",
    "units_of",
]

Array = npt.NDArray[np.float64]

POWERS: Final = 6
"""Coefficients of each polynomial of a motion."""

ROUNDING: Final = 1e-14
"""What is added to coefficients about another place, of the sum of their parts."""

BINOMIALS: Final = np.array(
    [[float(math.comb(k, j)) for k in range(POWERS)] for j in range(POWERS)]
)
"""k over j, in row j and column k."""


class Samples(NamedTuple):
    """Motion of joints at instants.

    Attributes:
        time: Instants [s], shape (..., m).
        q: Positions [m or rad], shape (..., m, n).
        qd: Rates [m/s or rad/s], shape (..., m, n).
        qdd: Accelerations [m/s^2 or rad/s^2], shape (..., m, n).
        qddd: Jerks [m/s^3 or rad/s^3], shape (..., m, n).
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    qddd: Array


class Peaks(NamedTuple):
    """The greatest rates, accelerations and jerks, in either direction.

    Attributes:
        velocity: Greatest rates [m/s or rad/s], shape (..., n).
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], shape (..., n).
        jerk: Greatest jerks [m/s^3 or rad/s^3], shape (..., n).
    """

    velocity: Array
    acceleration: Array
    jerk: Array


class Marker(NamedTuple):
    """A name for an instant, such as one at which a tool is switched.

    Attributes:
        name: What is marked.
        time: When [s].
    """

    name: str
    time: float


class Attachment(NamedTuple):
    """A part that is gripped or released on the way.

    Attributes:
        part: The manipulator.
        time: When [s].
        by: The frame that grips it; None where the part is released.
    """

    part: str
    time: float
    by: str | None = None


def units_of(cell: Workcell, joints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the units of positions of joints, by their names."""

    def made() -> tuple[str, ...]:
        links = [cell.links[cell.joints.links[cell.joint(name)]] for name in joints]
        return tuple(link.joint.unit.value for link in links)

    return kept(cell, ("units of joints", joints), made)


def sample_times(duration: float, rate: float) -> Array:
    """Return instants at a constant rate, and the end [s].

    Raises:
        ModelError: The rate is not above 0.
    """
    rate = positive_number("The rate", rate)
    count = math.ceil(duration * rate * (1.0 - 1e-12))
    return np.append(np.arange(count) / rate, duration)


def in_order(events: Iterable[Any]) -> tuple[Any, ...]:
    """Return markers or attachments in order of time; equal times keep theirs."""
    return tuple(sorted(events, key=lambda event: event.time))


def samples_of(
    times: npt.ArrayLike,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    qdd: npt.ArrayLike | None,
) -> tuple[Array, list[Array]]:
    """Return instants, and positions with their derivatives, as arrays.

    Raises:
        ShapeError: An array does not fit.
        ModelError: A number is not finite, or times do not ascend.
    """
    t = numbers_of("times", times)
    values = [
        numbers_of(name, value)
        for name, value in (("q", q), ("qd", qd), ("qdd", qdd))
        if value is not None
    ]
    if t.ndim != 1 or len(t) < 2 or values[0].shape[:-1] != t.shape:
        raise ShapeError(
            f"A motion goes through two samples or more: times have the shape (k,) "
            f"and q (k, n); those given have {t.shape} and {values[0].shape}."
        )
    if len({value.shape for value in values}) > 1:
        shapes = " and ".join(str(value.shape) for value in values)
        raise ShapeError(f"q, qd and qdd have one shape, not {shapes}.")
    if not all(np.isfinite(part).all() for part in (t, *values)):
        raise ModelError("A number of the samples of a motion is not finite.")
    if not (np.diff(t) >= np.finfo(np.float64).tiny).all():  # its inverse is finite
        raise ModelError("The times of the samples of a motion must ascend.")
    return t, values


def check_pieces(
    times: Array, law: Array, curve: Array, piece: npt.NDArray[np.int64]
) -> None:
    """Check the arrays of a motion.

    Raises:
        ShapeError: They do not fit.
        ModelError: A piece of the path does not exist.
    """
    m, (p, *rest) = len(piece), curve.shape
    shapes = times.shape, law.shape, piece.shape, tuple(rest[:-1])
    if shapes != ((m + 1,), (m, POWERS), (m,), (POWERS,)):
        raise ShapeError(
            f"A motion of {m} pieces has times of shape ({m + 1},), law ({m}, "
            f"{POWERS}), piece ({m},) and curve (p, {POWERS}, n); those given have "
            f"{times.shape}, {law.shape}, {piece.shape} and {curve.shape}."
        )
    if not ((piece >= 0) & (piece < p)).all():
        raise ModelError(f"A motion of {p} pieces of a path is on another piece.")


def check_meeting(
    joint_names: Sequence[str],
    last: Sequence[Array],
    first: Sequence[Array],
    pause: float,
    smooth: bool,
    tolerance: float,
) -> None:
    """Refuse a motion that does not begin as the one before it ends.

    Args:
        joint_names: Those of both motions.
        last: q, qd, qdd and qddd at the end of the motion before, (n,) each.
        first: The same at the start of the other.
        pause: How long joints rest in between [s].
        smooth: Whether accelerations must meet, too.
        tolerance: By how much they may differ.

    Raises:
        ModelError: They differ by more; a joint moves where it should rest.
    """
    pairs = [("positions", last[0], first[0])]
    if pause:
        rests = np.zeros_like(last[0])
        pairs += [("rates at the pause", last[1], rests)]
        pairs += [("rates at the pause", rests, first[1])]
    else:
        pairs += [("rates", last[1], first[1])]
        pairs += [("accelerations", last[2], first[2])] if smooth else []
    for what, a, b in pairs:
        gap = np.abs(a - b)
        if not (gap <= tolerance).all():
            k = int(np.argmax(gap))
            raise ModelError(
                f"Two motions do not meet: their {what} of {quote(joint_names[k])} are "
                f"{a[k]:g} and {b[k]:g} there. Let the next motion begin as the one "
                "before ends, or let both rest there and give pause=."
            )


class Bounded(NamedTuple):
    """A polynomial about the middle of an interval, and what it comes to there.

    Attributes:
        value: In the middle.
        slope: Its first derivative there.
        reach: How far it is from its value there at most.
        slopes: The greatest magnitude of its first derivative,
        bends: and of its second one.
    """

    value: Array
    slope: Array
    reach: Array
    slopes: Array
    bends: Array


def bounded_polynomials(coefficients: Array, middle: Array, half: Array) -> Bounded:
    """Return bounds of polynomials in intervals: the sums of what each power comes to.

    Args:
        coefficients: Constants first, shape (s, 6, n).
        middle: Of the intervals, shape (s,).
        half: How far they reach from there, shape (s,).

    Returns:
        Arrays of shape (s, n).
    """
    # About the middle m, a polynomial sum_k a_k t^k has the coefficients
    # c_j = sum_k binom(k, j) m^(k - j) a_k, of which rounding is bounded as well.
    j, k = np.indices((POWERS, POWERS))
    powers = middle[:, None, None] ** np.maximum(k - j, 0)
    shifts = BINOMIALS * powers
    c = shifts @ coefficients
    most = np.abs(c) + ROUNDING * (np.abs(shifts) @ np.abs(coefficients))
    # Within h of it, no power is more than |c_n| h^n, nor its derivatives more than
    # n |c_n| h^(n - 1) and n (n - 1) |c_n| h^(n - 2).
    h = half[:, None, None] ** np.arange(POWERS)[:, None]
    n = np.arange(POWERS)[:, None]
    reach = (most * h)[:, 1:].sum(axis=1)
    slopes = (n * most)[:, 1:] * h[:, :-1]
    bends = (n * (n - 1) * most)[:, 2:] * h[:, :-2]
    return Bounded(c[:, 0], c[:, 1], reach, slopes.sum(axis=1), bends.sum(axis=1))


def bounded_motion(
    times: Array,
    law: Array,
    curve: Array,
    piece: npt.NDArray[np.int64],
    middle: Array,
    half: Array,
) -> Stretches:
    """Return where joints are in intervals that no end of a piece of a motion is in.

    A motion is q(r(t)): pieces of the path parameter r, each on a piece of the curve.

    Args:
        times: When pieces of r begin and the last one ends [s], shape (m + 1,).
        law: Coefficients of r on each, constants first, shape (m, 6).
        curve: Those of q on each piece of the curve, shape (p, 6, n).
        piece: The piece of the curve that each piece of r is on, shape (m,).
        middle: Instants in the middle of the intervals [s], shape (s,).
        half: How far these reach from there [s], shape (s,).
    """
    k = np.searchsorted(times[1:-1], middle, side="right")
    r = bounded_polynomials(law[k][:, :, None], middle - times[k], half)
    q = bounded_polynomials(curve[piece[k]], r.value[:, 0], r.reach[:, 0])
    # q'' = q_rr r' r' + q_r r''
    bends = q.bends * r.slopes**2 + q.slopes * r.bends
    return Stretches(q.value, q.reach, q.slope * r.slope, half[:, None] * bends)
