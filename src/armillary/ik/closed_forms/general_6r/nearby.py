"""Solutions next to a root of the eliminant, as programs.

A root only says where to look: of m equal ones rounding leaves the m-th root of its
error. (M + d M') v = 0 loses no digits there: inverse iteration on it leads to the span
of the two v with the nearest d. With v = (S^3, S^2 C, S C^2, C^3) x (s^2, s c, c^2),
of the half angles of u_4 and u_5, a step along either factor multiplies v by a tangent.
So on the span "times tan" is a 2 x 2 matrix, of which the v that are sought are
eigenvectors, whatever the rest of the span is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armillary.ik.closed_forms.general_6r.eliminant import (
    TINY,
    Factored,
    back_substituted,
    factored,
    inverse_pivots,
    product,
    reflect,
    solve,
)
from armillary.ik.closed_forms.general_6r.equations import (
    Equations,
    back,
    equations,
    given_pose,
)
from armillary.ik.closed_forms.general_6r.geometry import WEIGHTS
from armillary.ik.closed_forms.general_6r.roots import at_angle
from armillary.kernel.stages import program
from armillary.trace import Program
from armillary.trace.functions import (
    absolute,
    atan2,
    cos,
    maximum,
    minimum,
    select,
    sin,
    sqrt,
)

__all__ = [
    "FOUND",
    "candidates_program",
    "equations_program",
    "nearby_program",
    "right_rows",
]

FOUND = 2
"""Solutions that are looked for at each root."""

_PARTS = range(6), range(6, 10), range(10, 14)
"""Columns of `right`: the rows of z, the x and the y of the others."""

ITERATIONS = 3
MOST_STEP = 0.1

# Tangents are of half angles less these: their poles are at angles that are rare.
TURNED = (0.7, 1.1)
PARTS = (1.0, 0.618)


def equations_program() -> Program:
    """Return the program from the inner target to its equations and the right side.

    Its outputs are `E` (3, 6, 9), `right` (3, 14) and `gain`; see `Equations`.
    """

    def formula(target: Any, links: Any, left: Any, flip: Any) -> Any:
        known = equations(given_pose(target[:3], flip), links[4], left)
        return known.E, right_rows(known), known.gain

    return replace(
        program(
            formula,
            "E right gain",
            target=(4, 4),
            links=(5, 3, 4),
            left=(3, 9, 14),
            flip=(),
        ),
        is_loose=True,
    )


def right_rows(known: Equations) -> list[list[Any]]:
    """Return the right side of equations as one array (3, 14)."""
    parts = zip(known.reals, known.xs, known.ys, strict=True)
    return [[*a, *b, *c] for a, b, c in parts]


def nearby_program(count: int = FOUND) -> Program:
    """Return the program from a root to the nearest solutions, one or two.

    Its outputs are `third`, their u_3, (count,); `fourth` and `fifth`, sines and
    cosines of u_4 and u_5, (count, 2); and `angle`, moved by the least step.
    """

    def formula(E: Any, angle: Any) -> Any:
        s, c = sin(angle), cos(angle)
        M = at_angle(E, (s, c, 1.0))
        D = at_angle(E, (c, 0.0 - s, 0.0))
        span = _span(factored(M), D, count)
        halves = _half_angles(span)
        steps = [_step(M, D, four, five) for four, five in halves]
        least = steps[0]
        for step in steps[1:]:
            least = select(absolute(least) <= absolute(step), least, step)
        turns = [[_doubled(half) for half in pair] for pair in halves]
        fourth = [list(pair[0]) for pair in turns]
        fifth = [list(pair[1]) for pair in turns]
        ahead = [angle + step for step in steps]
        return ahead, fourth, fifth, angle + least

    return replace(
        program(formula, "third fourth fifth angle", E=(3, 6, 9), angle=()),
        is_loose=True,
    )


def candidates_program(
    count: int = FOUND, of_slide: Callable[..., Any] | None = None
) -> Program:
    """Return the program from solutions in u_3, u_4, u_5 to joint angles.

    of_slide: What takes the place of `equations.back` where a joint slides, if one
        does; it also takes `slide`, and returns u_1 to u_6.

    Its outputs are `found` (count, 6), angles of the axes in their order, and `missed`
    (count,), the square of what closes the chain no more.
    """

    def formula(
        target: Any,
        links: Any,
        flip: Any,
        right: Any,
        third: Any,
        fourth: Any,
        fifth: Any,
        *slide: Any,
    ) -> Any:
        G = given_pose(target[:3], flip)
        parts = ([[row[k] for k in part] for row in right] for part in _PARTS)
        known = Equations([], *parts, gain=1.0)
        rows: list[list[Any]] = []
        errors: list[Any] = []
        for k in range(count):
            turns = [(sin(third[k]), cos(third[k])), tuple(fourth[k]), tuple(fifth[k])]
            if of_slide is not None:
                u, missed = of_slide(turns, G, links, known, *slide)
            else:
                found, missed = back(turns, G, links, known)
                u = [atan2(s, c) for s, c in found]
            plain = [u[1], u[2], u[3], u[4], u[5], u[0]]
            other = [u[0], u[5], u[4], u[3], u[2], u[1]]
            rows.append(
                [
                    select(flip > 0.5, 0.0 - b, a)
                    for a, b in zip(plain, other, strict=True)
                ]
            )
            errors.append(missed)
        return rows, errors

    return replace(
        program(
            formula,
            "found missed",
            target=(4, 4),
            links=(5, 3, 4),
            flip=(),
            right=(3, 14),
            third=(count,),
            fourth=(count, 2),
            fifth=(count, 2),
            **({} if of_slide is None else {"slide": (4,)}),
        ),
        is_loose=True,
    )


def _span(M: Factored, D: list[list[Any]], count: int) -> list[list[Any]]:
    """Return vectors (12,) that span those of the nearest roots, as many."""
    inverses = inverse_pivots(M)
    # Of a singular M = Q R the last pivot of R is 0, and R x = 0 for the x that ends
    # with 1: a step of inverse iteration from the last column of Q.
    nothing = [0.0] * 12
    ends = [(1.0,)] if count == 1 else [(1.0, 0.0), (0.0, 1.0)]
    span = [back_substituted(M, inverses, nothing, end) for end in ends]
    if count == 1:
        return span
    span = _orthonormal(span)
    for _ in range(ITERATIONS):
        span = _orthonormal([solve(M, inverses, product(D, y)) for y in span])
    return span


def _orthonormal(span: list[list[Any]]) -> list[list[Any]]:
    """Return two unit vectors of the same span, across each other."""
    one = _unit(span[0])
    along = _dot(one, span[1])
    other = [b - along * a for a, b in zip(one, span[1], strict=True)]
    return [one, _unit(other)]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def _unit(y: Sequence[Any]) -> list[Any]:
    """Return a vector as long as 1; it may be very long, as M is nearly singular."""
    most: Any = TINY
    for x in y:
        most = maximum(most, absolute(x))
    factor = 1.0 / most
    y = [x * factor for x in y]
    factor = 1.0 / sqrt(maximum(_dot(y, y), TINY))
    return [x * factor for x in y]


def _half_angles(span: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Return the half angles of u_4 and u_5, sine and cosine, of each solution."""
    plain = [[y[k] * WEIGHTS[k % 3] for k in range(12)] for y in span]
    pairs = [
        ([v[:9] for v in plain], [v[3:] for v in plain]),
        (
            [[v[3 * d + f] for d in range(4) for f in range(2)] for v in plain],
            [[v[3 * d + f + 1] for d in range(4) for f in range(2)] for v in plain],
        ),
    ]
    weights = [(1.0,)] if len(span) == 1 else _eigenvectors(_tangents(pairs))
    found: list[tuple[Any, Any]] = []
    for w in weights:
        halves: list[Any] = []
        for a, b in pairs:
            x, y = ([_dot(w, row) for row in zip(*v, strict=True)] for v in (a, b))
            xx, yy, xy = _dot(x, x), _dot(y, y), _dot(x, y)
            factor = 1.0 / sqrt(maximum(xx + yy, TINY))
            side = select(xy < 0.0, -1.0, 1.0)
            halves.append((side * sqrt(xx) * factor, sqrt(yy) * factor))
        found.append((halves[0], halves[1]))
    return found


def _tangents(pairs: Sequence[tuple[Any, Any]]) -> list[list[Any]]:
    """Return a matrix (2, 2) that has the eigenvectors of both "times tan"."""
    total: list[list[Any]] = [[0.0, 0.0], [0.0, 0.0]]
    for (a, b), turn, part in zip(pairs, TURNED, PARTS, strict=True):
        m = _times_tangent(a, b, turn)
        most: Any = 0.0
        for row in m:
            for x in row:
                most = maximum(most, absolute(x))
        factor = part / (1.0 + most)
        total = [[total[i][j] + factor * m[i][j] for j in range(2)] for i in range(2)]
    return total


def _times_tangent(a: Any, b: Any, turn: float) -> list[list[Any]]:
    """Return m (2, 2) with (sin a + cos b) m = cos a - sin b, of columns a and b."""
    s, c = float(np.sin(turn)), float(np.cos(turn))
    left = [
        [s * x + c * y for x, y in zip(p, q, strict=True)]
        for p, q in zip(a, b, strict=True)
    ]
    right = [
        [c * x - s * y for x, y in zip(p, q, strict=True)]
        for p, q in zip(a, b, strict=True)
    ]
    rows = [list(row) for row in zip(*left, *right, strict=True)]
    reflect(rows, 2)
    r00, r01, r11 = rows[0][0], rows[0][1], rows[1][1]
    least = maximum(1e-14 * maximum(absolute(r00), absolute(r11)), TINY)
    r00 = select(absolute(r00) < least, least, r00)
    r11 = select(absolute(r11) < least, least, r11)
    lower = [rows[1][k] / r11 for k in (2, 3)]
    upper = [(rows[0][k] - r01 * x) / r00 for k, x in zip((2, 3), lower, strict=True)]
    return [upper, lower]


def _eigenvectors(T: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Return the eigenvectors of a matrix (2, 2), their real parts where complex."""
    (a, b), (c, d) = T
    half = 0.5 * (a - d)
    root = sqrt(maximum(half * half + b * c, 0.0))
    big = half + select(half < 0.0, 0.0 - root, root)
    # With x = (a + d) / 2 -+ root, a v = (x - d, c) or (b, x - a) has T v = x v: that
    # of the eigenvalue on the side of `half` is (big, c), the other (b, -big).
    tiny = absolute(big) + absolute(b) + absolute(c) < 1e-15
    one = select(tiny, 1.0, big), select(tiny, 0.0, c)
    other = select(tiny, 0.0, b), select(tiny, 1.0, 0.0 - big)
    return [one, other]


def _doubled(half: Any) -> tuple[Any, Any]:
    S, C = half
    return 2.0 * S * C, C * C - S * S


def _step(M: Any, D: Any, four: Any, five: Any) -> Any:
    """Return the d of least |(M + d D) v| for the v of half angles."""
    S, C = four
    s, c = five
    ninth = [
        x * y / w
        for x in (S * S, S * C, C * C)
        for y, w in zip((s * s, s * c, c * c), WEIGHTS, strict=True)
    ]
    m = [_dot(row, ninth) for row in M]
    d = [_dot(row, ninth) for row in D]
    step = 0.0 - _dot(m, d) / maximum(_dot(d, d), TINY)
    step = minimum(maximum(step, -MOST_STEP), MOST_STEP)
    return select(absolute(step) <= MOST_STEP, step, 0.0)
