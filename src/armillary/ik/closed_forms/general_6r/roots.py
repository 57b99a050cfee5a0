"""The roots exp(i u_3) of det M = 0, all sixteen, as stages of a pipeline.

det M is a trigonometric polynomial of degree 8: 17 samples are its Fourier series. Its
roots z as a polynomial of degree 16 are found all at once (Aberth 1973, Ehrlich 1967),
each in turn from what the others are by then. If z is a root, 1 / conj z is one: P
outside of the unit circle follows from P inside, so nothing overflows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.general_6r.eliminant import TINY, determinant
from armillary.kernel import vectorize
from armillary.kernel.stages import Each, Stage, When, While, program
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Program
from armillary.trace.functions import (
    absolute,
    atan2,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = [
    "FIRST_OF_PAIR",
    "ISOLATED",
    "ROOTS",
    "ROUNDS",
    "TABLES",
    "TABLE_ROWS",
    "aberth_step",
    "at_angle",
    "common_roots",
    "end_of",
    "first_roots",
    "loose",
    "root_stages",
]

Array = npt.NDArray[np.float64]
Waves = npt.NDArray[np.complex128]

DEGREE = 8
ROOTS = 2 * DEGREE
WAVES = DEGREE + 3
SAMPLES = 2 * WAVES - 1
"""So many that two harmonics beyond the degree are known: they are rounding alone."""

ROUNDS = 24
CLOSE = 3e-4
"""Roots that move by less are found: the next step of a simple one is exact."""

BAND = 0.06
"""Largest |log |z|| of a root near which solutions are sought; double ones scatter."""

CLUSTER = 0.05
"""Three roots as close as this are a cluster."""

PAIR = 3e-3
"""Two roots as close as this are a pair: from one of them both solutions are found."""

ISOLATED_BY = 0.2
"""A root that is farther from all others is isolated: it has one solution."""

ISOLATED, NEAR_ANOTHER, FIRST_OF_PAIR, CLUSTERED, SECOND_OF_PAIR = (
    1.0,
    2.0,
    3.0,
    4.0,
    0.5,
)
"""The mark of a root in the band. It is 0 of roots elsewhere."""

MOST_STEP = 0.5

NEARBY = 1e-3
"""How far parts of an equal root are from each other, and from the circle, at most."""

VANISHES, SHOWN = 0.1, 1e3
"""Part of the error of P below which it is zero, and beyond which it is not."""

TABLES = (
    Table("samples", (reals("basis", (3,)), reals("waves", (WAVES, 2)))),
    Table("roots", (index("root", "z"), index("mover", "movers"))),
    Table(
        "ends", (index("end", "z"), index("angle", "angles"), index("mark", "marks"))
    ),
)

_angles = 2.0 * np.pi * np.arange(SAMPLES) / SAMPLES
_waves = np.arange(WAVES) * _angles[:, None]

TABLE_ROWS: dict[str, dict[str, Any]] = {
    "samples": {
        "basis": np.stack(
            [np.sin(_angles), np.cos(_angles), np.ones(SAMPLES)], axis=-1
        ),
        # c_k = sum_j d_j exp(-i k t_j) / 21
        "waves": np.stack([np.cos(_waves), -np.sin(_waves)], axis=-1) / SAMPLES,
    },
    "roots": dict.fromkeys(("root", "mover"), np.arange(ROOTS)),
    "ends": dict.fromkeys(("end", "angle", "mark"), np.arange(ROOTS)),
}


def common_roots(
    sample: Program,
    poses: Array,
    *constants: Array,
    degree: int = DEGREE,
) -> float:
    """Return how many real roots all targets have in common, which solve nothing.

    Where axes are parallel or at right angles, P has a factor of the arm alone. If axes
    are a little off, equal roots part and may be complex: those count as others do.

    Args:
        sample: From a target, the constants of an order and `basis` to P at an angle.
        poses: Some targets, shape (k, 4, 4).
        constants: Of the order.
        degree: Of P.
    """
    basis = TABLE_ROWS["samples"]["basis"]
    samples = vectorize(sample, poses[:, np.newaxis], *constants, basis)
    values, errors = np.moveaxis(np.asarray(samples), -1, 0)
    waves = np.fft.fft(values)[:, : degree + 1] / SAMPLES
    error = np.maximum(errors.max(axis=1), TINY)
    best = int(np.argmin(error / np.maximum(np.abs(waves).max(axis=1), TINY)))
    first = waves[best]
    roots = np.roots(np.concatenate([first[:0:-1], first[:1], first[1:].conj()]))
    size = np.maximum(np.abs(roots), TINY)
    left = (roots / size)[np.abs(np.log(size)) < NEARBY]
    common, bend = 0, error
    while left.size:
        together = np.abs(left - left[0]) < NEARBY
        count = int(together.sum())
        angles = np.full(len(poses), np.angle(left[together].sum()))
        left = left[~together]
        # m equal roots are one of the derivative of order m - 1: of the target that
        # shows it best, and so of all
        for _ in range(3):
            slope, bend = (_derivative(waves, angles, count - 1 + k) for k in (0, 1))
            angles = angles - slope / np.where(bend == 0.0, np.inf, bend)
        shown = np.abs(bend) / (error * degree**count)
        angles[:] = angles[np.argmax(shown)]
        vanishes = [
            np.abs(_derivative(waves, angles, k)) < VANISHES * error * degree**k
            for k in range(count)
        ]
        if shown.max() > SHOWN and np.all(vanishes):  # else P is error alone
            common += count
    return float(common)


def _derivative(waves: Waves, angles: Array, order: int) -> Array:
    """Return a derivative of P at an angle of each target, (k,)."""
    numbers: Array = np.arange(waves.shape[1], dtype=np.float64)
    factors = np.asarray((1j * numbers) ** order, np.complex128)
    terms: Waves = waves * factors * np.exp(1j * np.outer(angles, numbers))
    return 2.0 * np.real(terms).sum(axis=1) - np.real(terms[:, 0])


def root_stages() -> tuple[Stage, ...]:
    """Return the stages from `E` to `angles`.

    Those are the u_3 of all roots, (16,), and `marks` what is said of each above.
    `root_error` is the largest error of a root in the band [rad], from how much of
    det M is rounding and how close all roots are. `most` is the number of roots that
    may be real.
    """
    return (
        loose(_begin, "spectrum rounding turning", E=(3, 6, 9)),
        Each("samples", (_sample(),)),
        loose(
            _scaled,
            "spectrum noise rounding z movers",
            spectrum=(WAVES, 2),
            rounding=(),
        ),
        While(
            "turning",
            (
                loose(_still, "turning", turning=()),
                Each(
                    "roots",
                    (
                        loose(_of_mover, "moves", mover=()),
                        When("moves", (_aberth(),)),
                    ),
                ),
            ),
            limit=ROUNDS,
        ),
        loose(_unmarked, "place root_error most angles marks", turning=()),
        Each("ends", (_angle(),)),
    )


def loose(formula: Any, outputs: str, **inputs: tuple[int, ...]) -> Program:
    """Return a program whose products and sums may be rounded as one."""
    return replace(program(formula, outputs, **inputs), is_loose=True)


def _begin(E: Any) -> Any:
    del E
    return [[0.0, 0.0] for _ in range(WAVES)], 0.0, 1.0


def _sample() -> Program:
    def formula(
        E: Any, gain: Any, basis: Any, waves: Any, spectrum: Any, rounding: Any
    ) -> Any:
        d, error = determinant(at_angle(E, (basis[0], basis[1], 1.0)), gain)
        sums = [
            [spectrum[k][x] + d * waves[k][x] for x in range(2)] for k in range(WAVES)
        ]
        return sums, maximum(rounding, error)

    return loose(
        formula,
        "spectrum rounding",
        E=(3, 6, 9),
        gain=(),
        basis=(3,),
        waves=(WAVES, 2),
        spectrum=(WAVES, 2),
        rounding=(),
    )


def at_angle(E: Any, basis: Any) -> list[list[Any]]:
    """Return the equations (6, 9) at the sine, cosine and 1 of an angle."""
    return [
        [
            basis[0] * E[0][r][e] + basis[1] * E[1][r][e] + basis[2] * E[2][r][e]
            for e in range(9)
        ]
        for r in range(6)
    ]


def _scaled(spectrum: Any, rounding: Any) -> Any:
    """Return the series in parts of its largest, and where roots start.

    Its noise is what the last harmonics are, `rounding` also what is known otherwise.
    """
    largest: Any = TINY
    for row in spectrum[: DEGREE + 1]:
        for x in row:
            largest = maximum(largest, absolute(x))
    factor = 1.0 / largest
    noise: Any = 0.0
    for row in spectrum[DEGREE + 1 :]:
        for x in row:
            noise = maximum(noise, factor * absolute(x))
    noise = maximum(noise, ROUNDING)
    rounding = maximum(noise, (USUAL * factor) * rounding)
    scaled = [[factor * x for x in row] for row in spectrum]
    return scaled, noise, rounding, first_roots(), [1.0] * ROOTS


def first_roots() -> list[list[float]]:
    """Return where all roots start."""
    z: list[list[float]] = []
    for k in range(ROOTS):
        turn, radius = 2.0 * math.pi * k / ROOTS + 0.4, (0.9, 1.05)[k % 2]
        z.append([radius * math.cos(turn), radius * math.sin(turn)])
    return z


def _of_mover(mover: Any) -> Any:
    return mover + 0.0


def _still(turning: Any) -> Any:
    del turning
    return 0.0


def aberth_step(spectrum: Any, z: Any, root: Any) -> tuple[list[Any], Any, Any]:
    """Return a root after a step, whether it moved, and whether it is waited for.

    Args:
        spectrum: The series.
        z: All roots.
        root: One of them.
    """
    x, y = root
    square = x * x + y * y
    outside = square > 1.0
    back = 1.0 / maximum(square, TINY)
    # P and P' inside of the circle, at z or 1 / conj z
    inside = select(outside, back, 1.0)
    a, b = x * inside, y * inside
    p = d = (0.0, 0.0)
    for k in reversed(range(-DEGREE, DEGREE + 1)):
        d = _plus(_times(d, (a, b)), p)
        p = _times(p, (a, b))
        sign = 1.0 if k >= 0 else -1.0
        p = _plus(p, (spectrum[abs(k)][0], sign * spectrum[abs(k)][1]))
    # Sum of 1 / (z - others); two fractions at a time share a division.
    gaps = [(x - z[j][0], y - z[j][1]) for j in range(ROOTS)]
    # of itself and of equal ones nothing: 1 / large
    gaps = [(select(absolute(u) + absolute(v) > 0.0, u, 1e100), v) for u, v in gaps]
    total = (0.0, 0.0)
    for u, v in zip(gaps[::2], gaps[1::2], strict=True):
        total = _plus(total, _divided(_plus(u, v), _times(u, v)))
    # Inside P' - P S; outside conj(P) (16 / z - S) - conj(P') / z^2.
    inner = _less(d, _times(p, total))
    one = (x * back, -y * back)
    conj_p, conj_d = (p[0], -p[1]), (d[0], -d[1])
    outer = _times(conj_p, _less((ROOTS * one[0], ROOTS * one[1]), total))
    outer = _less(outer, _times(conj_d, _times(one, one)))
    above = p[0], select(outside, -p[1], p[1])
    below = tuple(select(outside, o, i) for o, i in zip(outer, inner, strict=True))
    step = _divided(above, below)
    length = sqrt(step[0] * step[0] + step[1] * step[1])
    factor = minimum(1.0, MOST_STEP / maximum(length, TINY))
    u, v = x - factor * step[0], y - factor * step[1]
    is_finite = absolute(u) + absolute(v) < 1e50
    u, v = select(is_finite, u, x), select(is_finite, v, y)
    # far from the circle no root is real, and none is waited for
    far = (square > FAR) | (square < 1.0 / FAR)
    is_moving = length > CLOSE
    return [u, v], is_moving, is_moving & ~far


def _aberth() -> Program:
    def formula(spectrum: Any, z: Any, root: Any, mover: Any, turning: Any) -> Any:
        del mover
        moved, is_moving, is_awaited = aberth_step(spectrum, z, root)
        return moved, select(is_moving, 1.0, 0.0), select(is_awaited, 1.0, turning)

    return loose(
        formula,
        "root mover turning",
        spectrum=(WAVES, 2),
        z=(ROOTS, 2),
        root=(2,),
        mover=(),
        turning=(),
    )


ROUNDING = 1e-15
"""Least noise of the series, in parts of its largest."""

USUAL = 0.01
"""Part of what rounding may do to det M that is usual."""

SAFETY, RESIDUAL = 20.0, 4.0
"""Error of P on the circle, in parts of the noise, and of P at the root. Targets that
differ by rounding change P by at most 5 times the noise, singular ones among them."""

FAR = 1e4
"""Square of the radius beyond which a root is far from the unit circle."""


def _unmarked(turning: Any) -> Any:
    del turning
    return 0.0, 0.0, 0.0, [0.0] * ROOTS, [0.0] * ROOTS


def _angle() -> Program:
    def formula(
        z: Any,
        end: Any,
        place: Any,
        root_error: Any,
        most: Any,
        spectrum: Any,
        noise: Any,
        rounding: Any,
    ) -> Any:
        angle, mark, error, may_be_real = end_of(
            spectrum, z, end, place, noise, rounding
        )
        return (
            angle,
            mark,
            maximum(root_error, error),
            most + may_be_real,
            place + 1.0,
        )

    return loose(
        formula,
        "angle mark root_error most place",
        z=(ROOTS, 2),
        end=(2,),
        place=(),
        root_error=(),
        most=(),
        spectrum=(WAVES, 2),
        noise=(),
        rounding=(),
    )


def end_of(
    spectrum: Any, z: Any, end: Any, place: Any, noise: Any, rounding: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the angle, mark and error of a root; 1 if it may be real, else 0.

    Args:
        spectrum: The series.
        z: All roots.
        end: One of them.
        place: Its number.
        noise: What the last harmonics are.
        rounding: The same, and what is known otherwise.
    """
    x, y = end
    square = x * x + y * y
    inner, outer = math.exp(-2.0 * BAND), math.exp(2.0 * BAND)
    is_real = (square > inner) & (square < outer)
    around = near = pairs = earlier = 0.0
    for j in range(ROOTS):
        u, v = x - z[j][0], y - z[j][1]
        gap = u * u + v * v
        around = around + select(gap < ISOLATED_BY * ISOLATED_BY, 1.0, 0.0)
        near = near + select(gap < CLUSTER * CLUSTER, 1.0, 0.0)
        is_pair = gap < PAIR * PAIR
        pairs = pairs + select(is_pair, 1.0, 0.0)
        earlier = earlier + select(is_pair & (place > float(j)), 1.0, 0.0)
    is_later = (pairs < 2.5) & (earlier > 0.5)
    mark = select(around > 1.5, NEAR_ANOTHER, ISOLATED)
    mark = select(pairs > 1.5, FIRST_OF_PAIR, mark)
    mark = select(is_later, SECOND_OF_PAIR, mark)
    mark = select(near > 2.5, CLUSTERED, mark)
    # P and P' at the root inside of the circle, z or 1 / conj z, and P on the circle:
    # where that is larger than its error no exact root is there.
    back = select(square > 1.0, 1.0 / maximum(square, TINY), 1.0)
    p, d = _series(spectrum, (x * back, y * back))
    slope = sqrt(maximum(d[0] * d[0] + d[1] * d[1], TINY))
    length = sqrt(maximum(square, TINY))
    there, _ = _series(spectrum, (x / length, y / length))
    error = SAFETY * rounding + RESIDUAL * sqrt(p[0] * p[0] + p[1] * p[1])
    size = sqrt(there[0] * there[0] + there[1] * there[1])
    return (
        atan2(y, x),
        select(is_real, mark, 0.0),
        select(is_real, noise / slope, 0.0),
        select(size > error, 0.0, 1.0),  # of NaN, too
    )


def _series(spectrum: Any, z: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return P, as a polynomial of degree 16, and P'."""
    p = d = (0.0, 0.0)
    for k in reversed(range(-DEGREE, DEGREE + 1)):
        d = _plus(_times(d, z), p)
        sign = 1.0 if k >= 0 else -1.0
        p = _plus(_times(p, z), (spectrum[abs(k)][0], sign * spectrum[abs(k)][1]))
    return p, d


def _times(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _plus(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] + b[0], a[1] + b[1]


def _less(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] - b[0], a[1] - b[1]


def _divided(a: Any, b: Any) -> tuple[Any, Any]:
    factor = 1.0 / maximum(b[0] * b[0] + b[1] * b[1], TINY)
    x, y = _times(a, (b[0], -b[1]))
    return x * factor, y * factor
