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
    FIRST_OF_PAIR,
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
    "sample_program",
]

ARCS = 8
PER_ARC = 4
"""Roots of an arc, at most; more are not looked for."""

LOOKS = 16
"""Roots near which solutions are sought, at most."""

TERMS = 8
"""Of a Taylor series; the remainder of a cell is 1e-5 of P at most."""

WIDEST = math.pi / 32.0
"""Half of the longest cell [rad]."""

SHORTEST = 1e-6
"""Half of a cell that is not halved again."""

MOST_CELLS = 48
SOLVES = 4
"""Steps of Newton's method on the series of a cell, and then to a simple root."""

APART = 1e-3
"""Error of a root, in parts of the gap to others, up to which one solution is sought.
What inverse iteration leaves of the others falls by the square of it."""

PROOFS = 3
"""What `_cell` proves."""

_FOUND = tuple(f"root{k}" for k in range(PER_ARC))
_KINDS = tuple(f"kind{k}" for k in range(PER_ARC))
SIMPLE, PAIRED, CLUSTERED = 1.0, 2.0, 3.0
"""Kinds of roots; no root is 0."""

_SLOTS = ARCS * PER_ARC

REAL_ROOTS_TABLES = (
    Table("samples", (reals("basis", (3,)), index("sample", "samples_of"))),
    Table(
        "arcs",
        (
            reals("begin", (3,)),
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
            index("rough", "roots_of"),
            index("rough_kind", "kinds_of"),
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

_begins = 2.0 * np.pi * np.arange(ARCS) / ARCS
_places = np.arange(_SLOTS).reshape(ARCS, PER_ARC)

REAL_ROOTS_TABLE_ROWS: dict[str, dict[str, Any]] = {
    "samples": {
        "basis": TABLE_ROWS["samples"]["basis"],
        "sample": np.arange(SAMPLES),
    },
    "arcs": {
        "begin": np.stack([_begins, np.cos(_begins), np.sin(_begins)], axis=-1),
        **{name: _places[:, k] for k, name in enumerate(_FOUND)},
        **{name: _places[:, k] for k, name in enumerate(_KINDS)},
        "arc": np.arange(ARCS),
    },
    "found": dict.fromkeys(("root", "kind", "look", "one", "two"), np.arange(_SLOTS)),
    "moving": dict.fromkeys(("moving", "awaited"), np.arange(ROOTS)),
    "moved": dict.fromkeys(
        ("number", "moved", "rough", "rough_kind", "real"),
        np.arange(ROOTS),
    ),
}


def real_root_stages(sample: Program) -> tuple[Stage, ...]:
    """Return the stages from samples of P to the roots of a target.

    `looks_of` are their angles u_3; `ones` and `twos` are 1 where one solution is to be
    sought, or two, else 0. `most_real` is the number of roots that may be real.

    sample: Reads `basis`, the sine and cosine of an angle and 1, and has the output
        `sample`, P there and what rounding may do to it (2,).
    """
    spectrum = loose(
        _spectrum, "spectrum limit_of_error error remainder", samples_of=(SAMPLES, 2)
    )
    return (
        Abreast("samples", (sample,)),
        spectrum,
        Abreast("arcs", _arc_stages(), refilled=True),
        loose(
            _all_arcs,
            "most_real is_rough turning kinds_of ones twos z",
            arcs_of=(ARCS, 2),
            kinds_of=(_SLOTS,),
        ),
        *_cluster_stages(),
        Abreast("found", (_look(),), chosen="kinds_of", packed=True),
    )


_ARC = {"at": (), "end": (), "width": (), "facing": (2,)}
"""Where an arc is: the angle up to which it is done, its end, half of the next cell,
cosine and sine of `at`."""

_FOUND_IN_ARC = {"place": (), "found": (PER_ARC,), "kinds": (PER_ARC,), "most": ()}
"""What it has: how many roots, which they are, of which kinds, how many may be real."""

_CELL: dict[str, tuple[int, ...]] = {
    "series": (TERMS,),
    "half": (),
    "centre": (2,),
    "inexact": (),
    "proofs": (PROOFS,),
}
"""A cell: P about its centre, half its width, cosine and sine of the centre, the error
of P and what follows the series, what is proven."""

_BENT = {"asks": (), "extreme": (), "is_two": ()}
"""Whether that P is bent is to be used, then whether it was; see `_bent`."""


def _arc_stages() -> tuple[Stage, ...]:
    """Return the stages that walk along an arc, cell by cell."""
    arc, found, cell, bent = (
        " ".join(columns) for columns in (_ARC, _FOUND_IN_ARC, _CELL, _BENT)
    )
    walk = (
        loose(
            _cell,
            f"{cell} {bent}",
            spectrum=(WAVES, 2),
            limit_of_error=(),
            remainder=(),
            **_ARC,
        ),
        When(
            "asks",
            (
                loose(
                    _bent,
                    bent,
                    **{name: _CELL[name] for name in ("series", "half", "inexact")},
                ),
            ),
        ),
        loose(
            _next_cell,
            f"at width facing {found} has_failed going",
            **_CELL,
            **_BENT,
            **_ARC,
            **_FOUND_IN_ARC,
            has_failed=(),
        ),
    )
    return (
        loose(_begin, f"{arc} {found} has_failed going", begin=(3,)),
        While("going", walk, limit=MOST_CELLS),
        _arc_done(),
    )


def _cluster_stages() -> tuple[Stage, ...]:
    """Return the stages where an arc was not done: all roots, as of a polynomial."""
    return (
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


def sample_program() -> Program:
    """Return the program of a sample of det M, from `E` and `gain`."""

    def formula(E: Any, gain: Any, basis: Any) -> Any:
        return [*determinant(at_angle(E, (basis[0], basis[1], 1.0)), gain)]

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


def _series(spectrum: Any, turn: Any, terms: int) -> list[Any]:
    """Return P^(n) / n! at the angle of a cosine and a sine."""
    total: list[Any] = [spectrum[0][0], *[0.0] * (terms - 1)]
    turns = [(1.0, 0.0), (turn[0], turn[1])]
    for k in range(1, DEGREE + 1):
        if k > 1:  # short chains: each from those of halves
            turns.append(_turned(turns[k // 2], turns[k - k // 2]))
        x, y = turns[k]
        re, im = 2.0 * spectrum[k][0], 2.0 * spectrum[k][1]
        even, odd = re * x - im * y, (0.0 - re) * y - im * x
        for n in range(terms):
            sign = -1.0 if n % 4 in {2, 3} else 1.0
            factor = sign * k**n / math.factorial(n)
            total[n] = total[n] + factor * (odd if n % 2 else even)
    return total


def _turned(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _small_turn(angle: Any) -> tuple[Any, Any]:
    """Return cosine and sine of an angle of at most 0.2, within 1e-16."""
    square = angle * angle
    c: Any = 0.0
    s: Any = 0.0
    for n in reversed(range(6)):
        sign = -1.0 if n % 2 else 1.0
        c = c * square + sign / math.factorial(2 * n)
        s = s * square + sign / math.factorial(2 * n + 1)
    return c, s * angle


def _begin(begin: Any) -> Any:
    none = [0.0] * PER_ARC
    end = begin[0] + 2.0 * math.pi / ARCS
    return begin[0], end, WIDEST, begin[1:], 0.0, none, none, 0.0, 0.0, 1.0


def _cell(
    spectrum: Any,
    limit_of_error: Any,
    remainder: Any,
    at: Any,
    end: Any,
    width: Any,
    facing: Any,
) -> Any:
    """Return the series of a cell, in parts of half of it, and what it proves.

    Those are whether it is left but for what `_bent` says, whether the cell has one
    root, and whether P may be zero at neither end.
    """
    half = minimum(width, 0.5 * (end - at))
    centre = _turned(facing, _small_turn(half))
    a: list[Any] = []
    power: Any = 1.0
    for term in _series(spectrum, centre, TERMS):
        a.append(term * power)
        power = power * half
    beyond = remainder * power
    sizes = [absolute(x) for x in a]
    # Derivatives of a polynomial that is at most e are at most 8^n e (Bernstein).
    wide = DEGREE * half
    around = sum(sizes[2:], sizes[1])
    slopes = sum((n * sizes[n] for n in range(3, TERMS)), 2.0 * sizes[2])
    bends = sum((n * (n - 1) * sizes[n] for n in range(4, TERMS)), 6.0 * sizes[3])
    inexact = beyond + limit_of_error
    is_free = sizes[0] > around + inexact
    # exp(8 half) is at most 2.2
    squared = 2.2 * (wide * wide) * limit_of_error
    is_steep = sizes[1] > slopes + TERMS * beyond + 2.2 * wide * limit_of_error
    is_bent = 2.0 * sizes[2] > bends + TERMS * TERMS * beyond + squared
    # P at both ends. Of a steep one their signs tell whether there is a root.
    evens, odds = sum(a[2::2], a[0]), sum(a[3::2], a[1])
    ahead, back = evens + odds, evens - odds
    are_clear = minimum(absolute(ahead), absolute(back)) > inexact
    crosses: Any = (ahead > 0.0) ^ (back > 0.0)
    has_one = is_steep & ~is_free & crosses
    asks = is_bent & ~is_free & ~is_steep & are_clear & ~crosses
    proofs = [_one(is_free | is_steep), _one(has_one), _one(are_clear)]
    return a, half, centre, inexact, proofs, _one(asks), 0.0, 0.0


def _one(truth: Any) -> Any:
    return select(truth, 1.0, 0.0)


def _bent(a: Any, half: Any, inexact: Any) -> Any:
    """Return whether a cell is left in which P is bent and of one sign at both ends.

    Then where P' is zero, in parts of the cell, and whether a pair of roots is there.
    """
    sign = select(a[2] < 0.0, -1.0, 1.0)
    slopes = [(n + 1) * a[n + 1] for n in range(TERMS - 1)]
    x: Any = 0.0
    for _ in range(SOLVES):
        bend = 0.0
        slope = slopes[-1]
        for term in reversed(slopes[:-1]):
            bend = bend * x + slope
            slope = slope * x + term
        x = x - slope / select(absolute(bend) < TINY, TINY, bend)
        x = minimum(maximum(x, -1.0), 1.0)
    slope, least = 0.0, a[-1]
    for term in reversed(a[:-1]):
        slope = slope * x + least
        least = least * x + term
    least, rise = sign * least, sign * slope
    # A bent P is nowhere below its tangent.
    lowest = least - maximum(rise * (1.0 + x), rise * (x - 1.0))
    ends = sign * sum(a[2::2], a[0]) - absolute(sum(a[3::2], a[1]))
    is_without = (lowest > inexact) | (ends < 0.0)
    # Between two roots that are closer than a pair solutions are found for both.
    gap = sqrt(maximum(0.0 - least, 0.0) / maximum(absolute(a[2]), TINY)) * half
    is_pair = (ends > 0.0) & (gap < 0.5 * PAIR) & ~is_without
    return _one(is_without | is_pair), x, _one(is_pair)


def _next_cell(  # noqa: PLR0913, PLR0917 - columns of a lane
    a: Any,
    half: Any,
    centre: Any,
    inexact: Any,
    proofs: Any,
    asks: Any,
    extreme: Any,
    is_two: Any,
    at: Any,
    end: Any,
    width: Any,
    facing: Any,
    place: Any,
    found: Any,
    kinds: Any,
    most: Any,
    has_failed: Any,
) -> Any:
    """Leave a cell, or take a smaller one.

    asks: Whether it is left as one that is bent.
    """
    is_last = width >= 0.5 * (end - at)
    is_known = (proofs[0] > 0.0) | (asks > 0.0)
    # No cell ends where P may be zero: a root is in one of them alone.
    is_left = is_known & (proofs[2] > 0.0)
    has_one = is_left & (proofs[1] > 0.0)
    kind = select(is_two > 0.0, PAIRED, select(has_one, SIMPLE, 0.0))
    # of a simple root about
    slope = select(absolute(a[1]) < TINY, TINY, a[1])
    first = minimum(maximum((0.0 - a[0]) / slope, -1.0), 1.0)
    angle = at + half + half * select(is_two > 0.0, extreme, first)
    is_root = kind > 0.5
    here = [is_root & (absolute(place - float(k)) < 0.5) for k in range(PER_ARC)]
    found = [select(is_it, angle, y) for is_it, y in zip(here, found, strict=True)]
    kinds = [select(is_it, kind, y) for is_it, y in zip(here, kinds, strict=True)]
    place = place + select(is_root, 1.0, 0.0)
    # Next to where P is error alone, smaller cells than that will not do.
    back = absolute(sum(a[2::2], a[0]) - sum(a[3::2], a[1]))
    is_small = (back < 1.25 * inexact) & (absolute(a[2]) < 0.05 * inexact)
    # Shorter ones, and those of more roots than there is room for, are not done.
    is_stuck = is_small | (half < SHORTEST) | (place > PER_ARC + 0.5)
    going = select((is_left & is_last) | (is_stuck & ~is_left), 0.0, 1.0)
    most = most + kind + select(is_left, 0.0, select(is_stuck, 1e3, 0.0))
    # Not twice as wide again at once where that has just failed.
    more = minimum(select(has_failed > 0.0, 1.0, 2.0) * half, WIDEST)
    less = select(is_known, 0.7, 0.5) * half
    behind = _turned(centre, _small_turn(half))
    return (
        select(is_left, at + 2.0 * half, at),
        select(is_left, more, less),
        [select(is_left, x, y) for x, y in zip(behind, facing, strict=True)],
        place,
        found,
        kinds,
        most,
        select(is_left, 0.0, 1.0),
        going,
    )


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


def _all_arcs(arcs: Any, kinds: Any) -> Any:
    most = sum((arc[0] for arc in arcs), 0.0)
    done: Any = 1.0
    for arc in arcs:
        done = minimum(done, arc[1])
    done = select(most > LOOKS + 0.5, 0.0, done)
    none = [0.0] * _SLOTS
    kinds = [select(done > 0.5, kind, 0.0) for kind in kinds]
    return most, 1.0 - done, 1.0 - done, kinds, none, none, first_roots()


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
        # A pair has one look, a root that is not real none.
        kind = select(mark > FIRST_OF_PAIR - 0.5, PAIRED, SIMPLE)
        kind = select(mark > FIRST_OF_PAIR + 0.5, CLUSTERED, kind)
        is_sought = (mark > ISOLATED - 0.25) & (real > 0.5)
        return angle, select(is_sought, kind, 0.0), real

    return loose(
        formula,
        "rough rough_kind real",
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
        """Return the root after some steps, and how many solutions are to be sought."""
        is_simple = kind < SIMPLE + 0.5
        before = root
        p: list[Any] = []
        for k in range(SOLVES + 1):
            p = _series(spectrum, (cos(root), sin(root)), 4 if k == SOLVES else 3)
            value = select(is_simple, p[0], p[1])
            slope = select(is_simple, p[1], 2.0 * p[2])
            step = value / select(absolute(slope) < TINY, TINY, slope)
            root = root - minimum(maximum(step, -WIDEST), WIDEST)
        # Other roots are at least half of the lesser of these away.
        steep = absolute(p[1])
        near = steep / maximum(absolute(p[2]), TINY)
        far = sqrt(steep / maximum(absolute(p[3]), TINY))
        gap = 0.5 * minimum(near, far)
        is_apart = is_simple & (error < APART * gap * steep)
        is_better = is_apart | (~is_simple & (kind < PAIRED + 0.5))
        return (
            select(is_better, root, before),
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
