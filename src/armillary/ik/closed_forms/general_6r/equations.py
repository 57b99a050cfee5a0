"""Six equations in the joints of a closed chain, and the way back from three of them.

With A = L_1 R(u_3) L_2 R(u_4) L_3 R(u_5) L_4 and B = G R(-u_1) L_5^-1, R(u_2) A and B
have the same z and the same origin p. So have the vectors m = p x z and
w = (p p) z - 2 (p z) p, and the numbers p p and p z. All are linear in sin and cos of
each angle (Raghavan and Roth 1993). The rows of z, six, are free of u_2, and as numbers
x + i y the other four are turned by it. Eliminating sin u_1 and cos u_1 from the six
leaves four equations, and a vector n with n B = 0 for all u_1 leaves n A = 0, two more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from armillary.ik.closed_forms.general_6r.eliminant import TINY, reflect
from armillary.ik.closed_forms.general_6r.geometry import HALF, WEIGHTS
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    apply,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)
from armillary.trace.functions import maximum, select, sqrt

__all__ = [
    "Equations",
    "Rigid",
    "Turn",
    "back",
    "equations",
    "equations_of",
    "given_pose",
    "inverse_of",
    "on_z",
    "product_of",
    "right_side",
    "rigid_of",
    "turn_of",
]

Rows = list[list[Any]]
Rigid = tuple[Any, Vector3]
"""A rotation, rows, and a position."""

Turn = tuple[Number, Number]
"""Sine and cosine of an angle."""

REAL = 6
FOUR = 4


class Equations(NamedTuple):
    """What a target makes of the equations.

    Attributes:
        E: The six, in sin, cos, 1 of u_3 and the monomials of `left_rows`, (3, 6, 9).
        reals: Of the right side, the rows of z, in sin, cos, 1 of u_1: (3, 6).
        xs: The x of the other four, (3, 4).
        ys: The y, likewise.
        gain: What rounding is multiplied by on the way to the six, about.
    """

    E: list[Rows]
    reals: Rows
    xs: Rows
    ys: Rows
    gain: Number


def given_pose(rows: Sequence[Sequence[Any]], flip: Number) -> Rigid:
    """Return G: a pose (3, 4), or its inverse where `flip` is 1."""
    R = tuple(tuple(row[k] for k in range(3)) for row in rows)
    p = tuple(row[3] for row in rows)
    back = transpose(R)  # type: ignore[arg-type]
    there = scale(-1.0, apply(back, p))  # type: ignore[arg-type]
    is_back = flip > 0.5
    turn = tuple(
        tuple(select(is_back, b, a) for a, b in zip(x, y, strict=True))
        for x, y in zip(R, back, strict=True)
    )
    return turn, tuple(select(is_back, b, a) for a, b in zip(p, there, strict=True))  # type: ignore[return-value]


def inverse_of(pose: Rigid) -> Rigid:
    """Return the inverse of a pose."""
    R = transpose(pose[0])
    return R, scale(-1.0, apply(R, pose[1]))


def rigid_of(rows: Sequence[Sequence[Any]]) -> Rigid:
    """Return the rotation and position of rows (3, 4)."""
    R = tuple(tuple(row[k] for k in range(3)) for row in rows)
    return R, tuple(row[3] for row in rows)  # type: ignore[return-value]


def product_of(a: Rigid, b: Rigid) -> Rigid:
    """Return the product of two poses."""
    R = tuple(
        tuple(dot(row, column) for column in transpose(b[0]))  # type: ignore[arg-type]
        for row in a[0]
    )
    return R, add(apply(a[0], b[1]), a[1])


def on_z(turn: Turn, pose: Rigid) -> Rigid:
    """Return R(u) X."""
    s, c = turn
    (a, b, z), (x, y, h) = pose
    first = tuple(c * i - s * j for i, j in zip(a, b, strict=True))
    second = tuple(s * i + c * j for i, j in zip(a, b, strict=True))
    return (first, second, z), (c * x - s * y, s * x + c * y, h)


def right_side(G: Rigid, last: Sequence[Sequence[Any]]) -> tuple[Rows, Rows, Rows]:
    """Return the rows of B in sin, cos, 1 of u_1; see `Equations`."""
    R, g = G
    H = inverse_of(rigid_of(last))
    h_z, h_p = tuple(row[2] for row in H[0]), H[1]

    def parts(h: Any) -> list[Vector3]:
        """Return R Rz(-u) h in sin, cos, 1."""
        x, y, z = h
        a, b, c = transpose(R)
        return [
            subtract(scale(y, a), scale(x, b)),
            add(scale(x, a), scale(y, b)),
            scale(z, c),
        ]

    zeta, eta = parts(h_z), parts(h_p)
    mu = parts(cross(h_p, h_z))  # type: ignore[arg-type]
    uu, uz = dot(h_p, h_p), dot(h_p, h_z)  # type: ignore[arg-type]
    gg = dot(g, g)
    reals: Rows = []
    xs: Rows = []
    ys: Rows = []
    for k, (z, y, m) in enumerate(zip(zeta, eta, mu, strict=True)):
        is_one = k == 2
        p = add(y, g) if is_one else y
        moment = add(m, cross(g, z))
        gy, gz = dot(g, y), dot(g, z)
        # (p p) z - 2 (p z) p with p = y + g: what is of second degree cancels.
        w = subtract(scale(uu + gg, z), scale(2.0, cross(g, m)))
        w = subtract(w, scale(2.0 * uz, y))
        if is_one:
            w = subtract(w, scale(2.0 * uz, g))
        w = subtract(w, scale(2.0 * gz, g))
        pp = 2.0 * gy + (uu + gg if is_one else 0.0)
        pz = gz + (uz if is_one else 0.0)
        four = p, z, moment, w
        reals.append([*(v[2] for v in four), pp, pz])
        xs.append([v[0] for v in four])
        ys.append([v[1] for v in four])
    return reals, xs, ys


def equations(G: Rigid, last: Any, left: Any) -> Equations:
    """Return the six equations of a target.

    Args:
        G: See `geometry`.
        last: L_5, shape (3, 4).
        left: See `left_rows`.
    """
    ones = np.multiply.outer(HALF[2], HALF[2] * np.array(WEIGHTS)).ravel()
    return equations_of(*right_side(G, last), left, ones.tolist())


def equations_of(
    reals: Rows, xs: Rows, ys: Rows, left: Any, ones: Sequence[Any]
) -> Equations:
    """Return the six equations of a right side.

    Args:
        reals: See `Equations`.
        xs: The same.
        ys: The same.
        left: See `left_rows`.
        ones: 1 in the monomials of `left`, (9,).
    """
    free = _complement(reals[:2])
    n, volume = _null(xs, ys)
    # Of vectors of unit length across each other area and volume are 1. Where they are
    # less, u_1 or what is across the vectors is mostly rounding.
    s_row, c_row = reals[:2]
    ss, sc, cc = _dot(s_row, s_row), _dot(s_row, c_row), _dot(c_row, c_row)
    area = maximum(ss * cc - sc * sc, TINY)
    squares = sum((x * x for rows in (xs, ys) for row in rows for x in row), 0.0) / 3.0
    gain = 0.5 * (ss + cc) * squares * sqrt(squares) / (sqrt(area) * volume)
    E: list[Rows] = []
    for a in range(3):
        nine: list[list[Any]] = []
        for d in range(3):
            for f in range(3):
                row = [left[a][3 * d + f][m] for m in range(14)]
                if a == 2:
                    one = ones[3 * d + f]
                    if not isinstance(one, float) or one:
                        for m in range(REAL):
                            row[m] = row[m] - one * reals[2][m]
                nine.append(row)
        four = [[_dot(q, row[:REAL]) for row in nine] for q in free]
        two_real: list[Any] = []
        two_imaginary: list[Any] = []
        for row in nine:
            x, y = row[REAL : REAL + FOUR], row[REAL + FOUR :]
            two_real.append(_dot([r for r, _ in n], x) - _dot([i for _, i in n], y))
            two_imaginary.append(
                _dot([i for _, i in n], x) + _dot([r for r, _ in n], y)
            )
        E.append([*four, two_real, two_imaginary])
    return Equations(E, reals, xs, ys, gain)


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def _complement(rows: Rows) -> Rows:
    """Return four unit vectors (6,) across two, and across each other."""
    columns = [[rows[0][k], rows[1][k]] for k in range(REAL)]
    reflections = reflect(columns, 2)
    free: Rows = []
    for k in range(2, REAL):
        y: list[Any] = [0.0] * REAL
        y[k] = 1.0
        for each in reversed(reflections):
            each.of(y)
        free.append(y)
    return free


def _null(xs: Rows, ys: Rows) -> tuple[list[tuple[Any, Any]], Number]:
    """Return the n of length 1 across three vectors x + i y of four numbers.

    Then the volume that they span.
    """
    a, b, c = (
        [(x, y) for x, y in zip(*pair, strict=True)]
        for pair in zip(xs, ys, strict=True)
    )

    def minor(i: int, j: int) -> tuple[Any, Any]:
        return _less(_times(b[i], c[j]), _times(b[j], c[i]))

    of = {(i, j): minor(i, j) for i in range(4) for j in range(i + 1, 4)}
    n: list[tuple[Any, Any]] = []
    for k in range(4):
        i, j, m = (x for x in range(4) if x != k)
        total = _less(_times(a[i], of[j, m]), _times(a[j], of[i, m]))
        total = _plus(total, _times(a[m], of[i, j]))
        sign = -1.0 if k % 2 else 1.0
        n.append((sign * total[0], sign * total[1]))
    length = sum((x * x + y * y for x, y in n), 0.0)
    volume = sqrt(maximum(length, TINY))
    factor = 1.0 / volume
    return [(factor * x, factor * y) for x, y in n], volume


def _times(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _plus(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] + b[0], a[1] + b[1]


def _less(a: Any, b: Any) -> tuple[Any, Any]:
    return a[0] - b[0], a[1] - b[1]


def turn_of(y: Number, x: Number) -> Turn:
    """Return the sine and cosine of the angle of a point."""
    factor = 1.0 / sqrt(maximum(x * x + y * y, TINY))
    return y * factor, x * factor


def back(
    turns: Sequence[Turn], G: Rigid, links: Any, known: Equations
) -> tuple[list[Turn], Number]:
    """Return u_1 to u_6 from u_3, u_4, u_5, and what the chain then misses.

    Args:
        turns: Of u_3, u_4, u_5.
        G: See `geometry`.
        links: L, shape (5, 3, 4).
        known: Of the target.
    """
    L = [rigid_of(link) for link in links]
    side = L[3]
    for k in (2, 1, 0):
        side = product_of(L[k], on_z(turns[k], side))
    R, p = side
    z: Vector3 = tuple(row[2] for row in R)  # type: ignore[assignment]
    pp, pz = dot(p, p), dot(p, z)
    m = cross(p, z)
    w = subtract(scale(pp, z), scale(2.0 * pz, p))
    four = p, z, m, w
    real = [*(v[2] for v in four), pp, pz]
    real = [a - b for a, b in zip(real, known.reals[2], strict=True)]
    # Sine and cosine of u_1 by least squares; the lengths of columns do not matter.
    s_row, c_row = known.reals[:2]
    ss, sc, cc = _dot(s_row, s_row), _dot(s_row, c_row), _dot(c_row, c_row)
    rs, rc = _dot(s_row, real), _dot(c_row, real)
    det = ss * cc - sc * sc
    first = turn_of((cc * rs - sc * rc) * det, (ss * rc - sc * rs) * det)
    there = [
        [s * first[0] + c * first[1] + one for s, c, one in zip(*rows, strict=True)]
        for rows in (known.xs, known.ys)
    ]
    xs, ys = [v[0] for v in four], [v[1] for v in four]
    cosine = _dot(there[0], xs) + _dot(there[1], ys)
    sine = _dot(there[1], xs) - _dot(there[0], ys)
    second = turn_of(sine, cosine)
    A = on_z(second, side)
    B = product_of(G, on_z((0.0 - first[0], first[1]), inverse_of(L[4])))
    # B R(-u_6) = A
    x, y = ([row[k] for row in A[0]] for k in range(2))
    e, f = ([row[k] for row in B[0]] for k in range(2))
    last = turn_of(_dot(f, x) * -1.0 + _dot(e, y), _dot(e, x) + _dot(f, y))
    s, c = last
    missed: Any = 0.0
    for k in range(3):
        # x of B R(-u_6) is c e - s f
        turned_x = c * e[k] - s * f[k]
        turned_y = s * e[k] + c * f[k]
        for a, b in (
            (turned_x, x[k]),
            (turned_y, y[k]),
            (B[0][k][2], A[0][k][2]),
            (B[1][k], A[1][k]),
        ):
            missed = missed + (a - b) * (a - b)
    return [first, second, *turns, last], missed
