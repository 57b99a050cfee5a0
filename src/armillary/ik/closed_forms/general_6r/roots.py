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

from armillary.ik.closed_forms.general_6r.eliminant import TINY, determinant
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

__all__ = ["ROOTS", "TABLES", "TABLE_ROWS", "root_stages"]

DEGREE = 8
ROOTS = 2 * DEGREE
WAVES = DEGREE + 2
SAMPLES = 2 * WAVES - 1
"""So many that the first harmonic beyond the degree is known: it is rounding alone."""

ROUNDS = 24
CLOSE = 3e-4
"""Roots that move by less are found: the next step of a simple one is exact."""

BAND = 0.06
"""Largest |log |z|| of a root that may be real; double ones scatter."""

CROWD = 0.05
"""Three roots as close as this are a crowd."""

TWINS = 3e-3
"""Of two roots as close as this a look at one finds both."""

CLEAR = 0.2
"""A root that is farther from all others has one solution, for sure."""

SINGLE, LONE, PAIR, MEMBER, TWIN = 1.0, 2.0, 3.0, 4.0, 0.5
"""What is said of a root that may be real: all are far from it, one is not, it is the
first of two that are close, one of a crowd, or the second of two."""

MOST_STEP = 0.5

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
        # c_k = sum_j d_j exp(-i k t_j) / 17
        "waves": np.stack([np.cos(_waves), -np.sin(_waves)], axis=-1) / SAMPLES,
    },
    "roots": dict.fromkeys(("root", "mover"), np.arange(ROOTS)),
    "ends": dict.fromkeys(("end", "angle", "mark"), np.arange(ROOTS)),
}


def root_stages() -> tuple[Stage, ...]:
    """Return the stages from `E` to `angles`.

    Those are the u_3 of all roots, (16,). `marks` are SINGLE, LONE, PAIR, MEMBER or
    TWIN where a root may be real, else 0. `blur` is the largest error of such a root
    [rad], from how much of det M is rounding and how close all roots are.
    """
    return (
        _loose(_begin, "spectrum turning", E=(3, 6, 9)),
        Each("samples", (_sample(),)),
        _loose(_scaled, "spectrum noise z movers", spectrum=(WAVES, 2)),
        While(
            "turning",
            (
                _loose(_still, "turning", turning=()),
                Each(
                    "roots",
                    (
                        _loose(_of_mover, "moves", mover=()),
                        When("moves", (_aberth(),)),
                    ),
                ),
            ),
            limit=ROUNDS,
        ),
        _loose(_unmarked, "place blur angles marks", turning=()),
        Each("ends", (_angle(),)),
    )


def _loose(formula: Any, outputs: str, **inputs: tuple[int, ...]) -> Program:
    """Return a program whose products and sums may be rounded as one."""
    return replace(program(formula, outputs, **inputs), is_loose=True)


def _begin(E: Any) -> Any:
    del E
    return [[0.0, 0.0] for _ in range(WAVES)], 1.0


def _sample() -> Program:
    def formula(E: Any, basis: Any, waves: Any, spectrum: Any) -> Any:
        d = determinant(at_angle(E, basis))
        return [
            [spectrum[k][x] + d * waves[k][x] for x in range(2)] for k in range(WAVES)
        ]

    return _loose(
        formula,
        "spectrum",
        E=(3, 6, 9),
        basis=(3,),
        waves=(WAVES, 2),
        spectrum=(WAVES, 2),
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


def _scaled(spectrum: Any) -> Any:
    """Return the series in parts of its largest, its noise, and where roots start."""
    largest: Any = TINY
    for row in spectrum[: DEGREE + 1]:
        for x in row:
            largest = maximum(largest, absolute(x))
    factor = 1.0 / largest
    u, v = spectrum[WAVES - 1]
    noise = factor * maximum(absolute(u), absolute(v))
    z: list[list[float]] = []
    for k in range(ROOTS):
        turn, radius = 2.0 * math.pi * k / ROOTS + 0.4, (0.9, 1.05)[k % 2]
        z.append([radius * math.cos(turn), radius * math.sin(turn)])
    scaled = [[factor * x for x in row] for row in spectrum]
    return scaled, noise, z, [1.0] * ROOTS


def _of_mover(mover: Any) -> Any:
    return mover + 0.0


def _still(turning: Any) -> Any:
    del turning
    return 0.0


def _aberth() -> Program:
    def formula(spectrum: Any, z: Any, root: Any, mover: Any, turning: Any) -> Any:
        del mover
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
        waits = select(is_moving & ~far, 1.0, turning)
        return [u, v], select(is_moving, 1.0, 0.0), waits

    return _loose(
        formula,
        "root mover turning",
        spectrum=(WAVES, 2),
        z=(ROOTS, 2),
        root=(2,),
        mover=(),
        turning=(),
    )


ROUNDING = 1e-15
"""Least error of the series, in parts of its largest."""

FAR = 1e4
"""Square of the radius beyond which a root is far from the unit circle."""


def _unmarked(turning: Any) -> Any:
    del turning
    return 0.0, 0.0, [0.0] * ROOTS, [0.0] * ROOTS


def _angle() -> Program:
    def formula(
        z: Any, end: Any, place: Any, blur: Any, spectrum: Any, noise: Any
    ) -> Any:
        x, y = end
        square = x * x + y * y
        least, most = math.exp(-2.0 * BAND), math.exp(2.0 * BAND)
        is_real = (square > least) & (square < most)
        around = near = twins = earlier = 0.0
        for j in range(ROOTS):
            u, v = x - z[j][0], y - z[j][1]
            gap = u * u + v * v
            around = around + select(gap < CLEAR * CLEAR, 1.0, 0.0)
            near = near + select(gap < CROWD * CROWD, 1.0, 0.0)
            is_twin = gap < TWINS * TWINS
            twins = twins + select(is_twin, 1.0, 0.0)
            earlier = earlier + select(is_twin & (place > float(j)), 1.0, 0.0)
        is_later = (twins < 2.5) & (earlier > 0.5)
        mark = select(around > 1.5, LONE, SINGLE)
        mark = select(is_later, TWIN, select(twins > 1.5, PAIR, mark))
        mark = select(near > 2.5, MEMBER, mark)
        # an error e of the series, whose largest is 1, moves a root by e / |P'|
        p = d = (0.0, 0.0)
        for k in reversed(range(-DEGREE, DEGREE + 1)):
            d = _plus(_times(d, (x, y)), p)
            sign = 1.0 if k >= 0 else -1.0
            p = _times(p, (x, y))
            p = _plus(p, (spectrum[abs(k)][0], sign * spectrum[abs(k)][1]))
        slope = sqrt(maximum(d[0] * d[0] + d[1] * d[1], TINY))
        error = maximum(noise, ROUNDING) / slope
        blur = maximum(blur, select(is_real, error, 0.0))
        return atan2(y, x), select(is_real, mark, 0.0), blur, place + 1.0

    return _loose(
        formula,
        "angle mark blur place",
        z=(ROOTS, 2),
        end=(2,),
        place=(),
        blur=(),
        spectrum=(WAVES, 2),
        noise=(),
    )


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
