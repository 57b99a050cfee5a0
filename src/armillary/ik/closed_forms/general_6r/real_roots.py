"""The real roots of det M, as stages of a pipeline whose lanes are parts of one target.

det M is a trigonometric polynomial P of degree 8. Eight arcs of the circle are walked
along at once, cell by cell. In a cell P is its Taylor series about the centre, and a
remainder that has a bound. A cell is left

- as one without roots, where P is larger than all that follows it in the series;
- as one with at most one root, where P' is, likewise;
- as one with at most two, where P'' is, if they are a pair, or there is none.

Others are halved. All bounds hold for each polynomial within the error of P, so there
are no more real roots than are counted. Where many cells do not suffice, roots are in
clusters, and the arc is not done.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armillary.ik.closed_forms.general_6r.eliminant import TINY, determinant
from armillary.ik.closed_forms.general_6r.roots import (
    DEGREE,
    ISOLATED,
    PAIR,
    ROOTS,
    ROUNDING,
    ROUNDS,
    SAFETY,
    SAMPLES,
    TABLE_ROWS,
    USUAL,
    WAVES,
    aberth_step,
    at_angle,
    end_of,
    first_roots,
    loose,
)
from armillary.kernel.stages import Abreast, Stage, When, While
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Port, Program
from armillary.trace.functions import (
    absolute,
    cos,
    maximum,
    minimum,
    select,
    sin,
    sqrt,
)

__all__ = [
    "LOOKS",
    "REAL_ROOTS_SCRATCH",
    "REAL_ROOTS_TABLES",
    "REAL_ROOTS_TABLE_ROWS",
    "real_root_stages",
]

ARCS = 8
PER_ARC = 4
"""Roots of an arc, at most; more are not looked for."""

LOOKS = 16
"""Roots near which solutions are sought, at most."""

TERMS = 8
"""Of a Taylor series; the remainder of a cell is 1e-8 of P at most."""

WIDEST = math.pi / 64.0
"""Half of the longest cell [rad]."""

SHORTEST = 1e-6
"""Half of a cell that is not halved again."""

MOST_CELLS = 48
SOLVES = 4
"""Steps of Newton's method on the series of a cell."""

APART = 1e-3
"""Error of a root, in parts of the gap to others, up to which one solution is sought.
What inverse iteration leaves of the others falls by the square of it."""

_FOUND = tuple(f"root{k}" for k in range(PER_ARC))
_KINDS = tuple(f"kind{k}" for k in range(PER_ARC))
SIMPLE, PAIRED = 1.0, 2.0
"""Kinds of roots; no root is 0."""

_SLOTS = ARCS * PER_ARC

REAL_ROOTS_TABLES = (
    Table("samples", (reals("basis", (3,)), index("sample", "samples_of"))),
    Table(
        "arcs",
        (
            reals("begin"),
            *(index(name, "roots_of") for name in _FOUND),
            *(index(name, "kinds_of") for name in _KINDS),
            index("arc", "arcs_of"),
        ),
    ),
    Table(
        "found",
        (
            index("root", "roots_of"),
            index("kind", "kinds_of"),
            index("look", "looks_of"),
            index("one", "ones"),
            index("two", "twos"),
        ),
    ),
    Table("moving", (index("moving", "z"), index("awaited", "awaited_of"))),
    Table(
        "moved",
        (
            reals("number"),
            index("moved", "z"),
            index("rough", "looks_of"),
            index("rough_one", "ones"),
            index("rough_two", "twos"),
            index("real", "reals_of"),
        ),
    ),
)

REAL_ROOTS_SCRATCH = (
    Port("samples_of", (SAMPLES, 2)),
    Port("roots_of", (_SLOTS,)),
    Port("kinds_of", (_SLOTS,)),
    Port("arcs_of", (ARCS, 2)),
    Port("looks_of", (_SLOTS,)),
    Port("awaited_of", (ROOTS,)),
    Port("reals_of", (ROOTS,)),
)

_places = np.arange(_SLOTS).reshape(ARCS, PER_ARC)

REAL_ROOTS_TABLE_ROWS: dict[str, dict[str, Any]] = {
    "samples": {
        "basis": TABLE_ROWS["samples"]["basis"],
        "sample": np.arange(SAMPLES),
    },
    "arcs": {
        "begin": 2.0 * np.pi * np.arange(ARCS) / ARCS,
        **{name: _places[:, k] for k, name in enumerate(_FOUND)},
        **{name: _places[:, k] for k, name in enumerate(_KINDS)},
        "arc": np.arange(ARCS),
    },
    "found": dict.fromkeys(("root", "kind", "look", "one", "two"), np.arange(_SLOTS)),
    "moving": dict.fromkeys(("moving", "awaited"), np.arange(ROOTS)),
    "moved": dict.fromkeys(
        ("number", "moved", "rough", "rough_one", "rough_two", "real"),
        np.arange(ROOTS),
    ),
}


def real_root_stages() -> tuple[Stage, ...]:
    """Return the stages from `E` and `gain` to the roots of a target.

    `looks_of` are their angles u_3; `ones` and `twos` are 1 where one solution is to be
    sought, or two, else 0. `most` is the number of roots that may be real, and
    `is_done` 1 if that is known, else 0.
    """
    walk = loose(
        _cell,
        "at width place found kinds most going",
        spectrum=(WAVES, 2),
        limit_of_error=(),
        remainder=(),
        end=(),
        at=(),
        width=(),
        place=(),
        found=(PER_ARC,),
        kinds=(PER_ARC,),
        most=(),
    )
    return (
        Abreast("samples", (_sample(),)),
        loose(
            _spectrum,
            "spectrum limit_of_error error remainder",
            samples_of=(SAMPLES, 2),
        ),
        Abreast(
            "arcs",
            (
                loose(_begin, "at end width place found kinds most going", begin=()),
                While("going", (walk,), limit=MOST_CELLS),
                _arc_done(),
            ),
        ),
        loose(
            _all_arcs,
            "most_real is_done is_rough turning ones twos z",
            arcs_of=(ARCS, 2),
        ),
        When(
            "is_done", (Abreast("found", (_look(),), chosen="kinds_of", packed=True),)
        ),
        # Clusters: all roots, as of a polynomial.
        While(
            "turning",
            (
                Abreast("moving", (_moving(),)),
                loose(_any_awaited, "turning", awaited_of=(ROOTS,)),
            ),
            limit=ROUNDS,
        ),
        When(
            "is_rough",
            (
                Abreast("moved", (_moved(),)),
                loose(_all_real, "most_real", reals_of=(ROOTS,)),
            ),
        ),
    )


def _sample() -> Program:
    def formula(E: Any, gain: Any, basis: Any) -> Any:
        return [*determinant(at_angle(E, basis), gain)]

    return loose(formula, "sample", E=(3, 6, 9), gain=(), basis=(3,))


def _spectrum(samples: Any) -> Any:
    """Return the series in parts of its largest; its error as a root, and as a limit.

    c_k = sum_j d_j exp(-i k t_j) / 21. The remainder is that of a Taylor series in a
    cell of half the width 1.
    """
    waves = TABLE_ROWS["samples"]["waves"].tolist()
    spectrum = [[0.0, 0.0] for _ in range(WAVES)]
    rounding: Any = 0.0
    for (d, error), row in zip(samples, waves, strict=True):
        rounding = maximum(rounding, error)
        spectrum = [
            [a + d * x for a, x in zip(sums, wave, strict=True)]
            for sums, wave in zip(spectrum, row, strict=True)
        ]
    largest: Any = TINY
    for row in spectrum[: DEGREE + 1]:
        for x in row:
            largest = maximum(largest, absolute(x))
    factor = 1.0 / largest
    noise: Any = ROUNDING
    for row in spectrum[DEGREE + 1 :]:
        for x in row:
            noise = maximum(noise, factor * absolute(x))
    noise = maximum(noise, (USUAL * factor) * rounding)
    scaled = [[factor * x for x in row] for row in spectrum]
    remainder: Any = 0.0
    for k in range(1, DEGREE + 1):
        size = absolute(scaled[k][0]) + absolute(scaled[k][1])
        remainder = remainder + (2.0 * k**TERMS / math.factorial(TERMS)) * size
    return scaled, SAFETY * noise, noise, remainder


def _series(spectrum: Any, t: Any, terms: int) -> list[Any]:
    """Return P^(n) / n! at an angle."""
    s, c = sin(t), cos(t)
    x, y = c, s
    total: list[Any] = [spectrum[0][0], *[0.0] * (terms - 1)]
    for k in range(1, DEGREE + 1):
        re, im = 2.0 * spectrum[k][0], 2.0 * spectrum[k][1]
        even, odd = re * x - im * y, (0.0 - re) * y - im * x
        for n in range(terms):
            sign = -1.0 if n % 4 in {2, 3} else 1.0
            factor = sign * k**n / math.factorial(n)
            total[n] = total[n] + factor * (odd if n % 2 else even)
        x, y = x * c - y * s, x * s + y * c
    return total


def _begin(begin: Any) -> Any:
    none = [0.0] * PER_ARC
    end = begin + 2.0 * math.pi / ARCS
    return begin, end, WIDEST, 0.0, none, none, 0.0, 1.0


def _cell(  # noqa: PLR0913, PLR0915, PLR0917 - one formula
    spectrum: Any,
    limit_of_error: Any,
    remainder: Any,
    end: Any,
    at: Any,
    width: Any,
    place: Any,
    found: Any,
    kinds: Any,
    most: Any,
) -> Any:
    """Leave a cell, or halve it."""
    half = minimum(width, 0.5 * (end - at))
    is_last = width >= 0.5 * (end - at)
    centre = at + half
    a: list[Any] = []
    power: Any = 1.0
    for term in _series(spectrum, centre, TERMS):
        a.append(term * power)
        power = power * half
    beyond = remainder * power
    error = limit_of_error
    sizes = [absolute(x) for x in a]
    # Derivatives of a polynomial that is at most e are at most 8^n e (Bernstein).
    wide = DEGREE * half
    around = sum(sizes[2:], sizes[1])
    slopes = sum((n * sizes[n] for n in range(3, TERMS)), 2.0 * sizes[2])
    bends = sum((n * (n - 1) * sizes[n] for n in range(4, TERMS)), 6.0 * sizes[3])
    inexact = beyond + error
    is_free = sizes[0] > around + inexact
    is_steep = sizes[1] > slopes + TERMS * beyond + 1.5 * wide * error
    squared = TERMS * TERMS * beyond + 1.5 * (wide * wide) * error
    is_bent = 2.0 * sizes[2] > bends + squared
    # P at both ends, upwards where P' or P'' is positive.
    evens = sum(a[2::2], a[0])
    odds = sum(a[3::2], a[1])
    lead = select(is_steep, a[1], a[2])
    sign = select(lead < 0.0, -1.0, 1.0)
    above, below = sign * (evens + odds), sign * (evens - odds)
    are_clear = (absolute(above) > inexact) & (absolute(below) > inexact)
    crosses = (above > 0.0) & (below < 0.0)
    # The root of P, or of P' in a cell that is not steep.
    solved = [select(is_steep, a[n], (n + 1) * a[n + 1]) for n in range(TERMS - 1)]
    x: Any = 0.0
    for _ in range(SOLVES):
        value = slope = solved[-1]
        value = value * x + solved[-2]
        for n in reversed(range(TERMS - 3)):
            slope = slope * x + value
            value = value * x + solved[n]
        x = x - value / select(absolute(slope) < TINY, TINY, slope)
        x = minimum(maximum(x, -1.0), 1.0)
    least = slope = a[-1]
    least = least * x + a[-2]
    for term in reversed(a[:-2]):
        slope = slope * x + least
        least = least * x + term
    least = sign * least
    # A bent P is nowhere below its tangent.
    rise = sign * slope
    lowest = least - maximum(rise * (1.0 + x), rise * (x - 1.0))
    # Between two roots that are closer than a pair solutions are found for both.
    gap = sqrt(maximum(0.0 - least, 0.0) / maximum(sizes[2], TINY)) * half
    is_without = (lowest > inexact) | (maximum(above, below) < 0.0)
    is_pair = (minimum(above, below) > 0.0) & (gap < 0.5 * PAIR)
    has_one = ~is_free & is_steep & crosses
    has_two = ~is_free & ~is_steep & is_bent & ~is_without & is_pair
    is_known = is_free | is_steep | (is_bent & (is_without | is_pair))
    # No cell ends where P may be zero: a root is in one of them alone.
    is_left = is_known & are_clear
    kind = select(has_two, PAIRED, select(has_one, SIMPLE, 0.0))
    kind = select(is_left, kind, 0.0)
    angle = centre + x * half
    is_root = kind > 0.5
    here = [is_root & (absolute(place - float(k)) < 0.5) for k in range(PER_ARC)]
    found = [select(is_it, angle, y) for is_it, y in zip(here, found, strict=True)]
    kinds = [select(is_it, kind, y) for is_it, y in zip(here, kinds, strict=True)]
    place = place + select(is_root, 1.0, 0.0)
    behind = at + 2.0 * half
    # Next to where P is error alone, smaller cells than that will not do.
    is_small = (absolute(below) < 1.25 * inexact) & (sizes[2] < 0.05 * inexact)
    is_stuck = is_small | (half < SHORTEST) | (place > PER_ARC + 0.5)
    going = select((is_left & is_last) | (is_stuck & ~is_left), 0.0, 1.0)
    most = most + kind + select(is_left, 0.0, select(is_stuck, 1e3, 0.0))
    less = select(is_known, 0.7, 0.5) * half
    width = select(is_left, minimum(2.0 * half, WIDEST), less)
    return select(is_left, behind, at), width, place, found, kinds, most, going


def _arc_done() -> Program:
    names = (*_FOUND, *_KINDS)

    def formula(found: Any, kinds: Any, place: Any, most: Any, going: Any) -> Any:
        is_done = (going < 0.5) & (place < PER_ARC + 0.5) & (most < 1e2)
        return *found, *kinds, [most, select(is_done, 1.0, 0.0)]

    return loose(
        formula,
        " ".join((*names, "arc")),
        found=(PER_ARC,),
        kinds=(PER_ARC,),
        place=(),
        most=(),
        going=(),
    )


def _all_arcs(arcs: Any) -> Any:
    most = sum((arc[0] for arc in arcs), 0.0)
    done: Any = 1.0
    for arc in arcs:
        done = minimum(done, arc[1])
    done = select(most > LOOKS + 0.5, 0.0, done)
    none = [0.0] * _SLOTS
    return most, done, 1.0 - done, 1.0 - done, none, none, first_roots()


def _moving() -> Program:
    def formula(spectrum: Any, z: Any, moving: Any) -> Any:
        moved, _, is_awaited = aberth_step(spectrum, z, moving)
        return moved, select(is_awaited, 1.0, 0.0)

    return loose(
        formula, "moving awaited", spectrum=(WAVES, 2), z=(ROOTS, 2), moving=(2,)
    )


def _any_awaited(awaited: Any) -> Any:
    return sum(awaited, 0.0)


def _moved() -> Program:
    def formula(spectrum: Any, z: Any, moved: Any, number: Any, error: Any) -> Any:
        angle, mark, _, real = end_of(spectrum, z, moved, number, error, error)
        is_one = (mark > ISOLATED - 0.25) & (mark < ISOLATED + 0.25)
        one = select(is_one, 1.0, 0.0)
        two = select(mark > ISOLATED + 0.25, 1.0, 0.0)
        return angle, one, two, real

    return loose(
        formula,
        "rough rough_one rough_two real",
        spectrum=(WAVES, 2),
        z=(ROOTS, 2),
        moved=(2,),
        number=(),
        error=(),
    )


def _all_real(reals_of: Any) -> Any:
    return sum(reals_of, 0.0)


def _look() -> Program:
    def formula(root: Any, kind: Any, spectrum: Any, error: Any) -> Any:
        """Return the root after a step, and how many solutions are to be sought."""
        p = _series(spectrum, root, 4)
        is_simple = kind < 1.5
        value = select(is_simple, p[0], p[1])
        slope = select(is_simple, p[1], 2.0 * p[2])
        step = value / select(absolute(slope) < TINY, TINY, slope)
        step = minimum(maximum(step, -1e-3), 1e-3)
        # Other roots are no nearer than half of the least of these.
        steep = absolute(p[1])
        near = steep / maximum(absolute(p[2]), TINY)
        far = sqrt(steep / maximum(absolute(p[3]), TINY))
        gap = 0.5 * minimum(near, far)
        is_apart = is_simple & (error < APART * gap * steep)
        return (
            root - step,
            select(is_apart, 1.0, 0.0),
            select(is_apart, 0.0, 1.0),
        )

    return loose(
        formula,
        "look one two",
        root=(),
        kind=(),
        spectrum=(WAVES, 2),
        error=(),
    )
