"""Least squares within bounds and inequalities, by a dual active-set method, as stages.

Of the rates x with low <= x <= high and a_k x >= b_k for all rows k, those are found
that make 1/2 x' H x + g' x least (Goldfarb and Idnani, "A numerically stable dual
method for solving strictly convex quadratic programs", 1983). It begins with the
least of all x; then the constraint that is broken most is added, and those that no
longer press against x are dropped, until none is broken. So work grows with the
constraints that matter, not with those that there are, and what is found is exact.

With H = C C' and x = C'^-1 w, constraints are n = C^-1 a in the space of w, where the
distance is the plain one. There are c slots for them, one for each of c rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armillary.kernel.pipeline import Each, Stage, When, While, program
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, minimum, select, sqrt

__all__ = ["BOUND", "FREE", "OTHER", "active_set_stages", "first_of", "packed"]

TURNS: Final = 100
"""Most constraints that are added or dropped."""

BROKEN: Final = 1e-10
"""A constraint is broken that is missed by more [m/s or rad/s]."""

DEPENDENT: Final = 1e-24
"""Part of the square of a normal that is outside of the others' span, at least."""

FREE: Final = -1.0
"""The number of the constraint in a slot that holds none."""

BOUND: Final = 1e6
"""Numbers of bounds: this, and 2 k for the lower one of rate k, 2 k + 1 for the upper.
Rows have numbers of their own."""

OTHER: Final = 2e6
"""Numbers of rows that are not of pairs: this, and more."""

FAR: Final = 1e30
TINY: Final = 1e-300


def packed(matrix: Sequence[Sequence[Number]]) -> list[Number]:
    """Return the lower half of a symmetric matrix, row by row."""
    return [row[k] for i, row in enumerate(matrix) for k in range(i + 1)]


def _unpacked(numbers: Sequence[Number], c: int) -> list[list[Number]]:
    rows: list[list[Number]] = []
    left = iter(numbers)
    for i in range(c):
        rows.append([next(left) for _ in range(i + 1)])
    return rows


def active_set_stages(c: int, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that find the best rates.

    They read the columns `hessian` (packed), `gradient`, `low` and `high`, and write
    `x`, `slots` and `multipliers`: which constraints hold it, and how much each presses
    against it; `finished` is 0 where there were too many turns. Where constraints
    contradict each other x breaks the one that was to be added last.

    Args:
        c: How many rates.
        rows: The table of inequalities, whose fields `row`, `is_near` and `row_number`
            are a_k, b_k and two more numbers; 1 for those that count; and k.
    """
    half, square = (c * (c + 1) // 2,), (c, c)
    shapes: dict[str, tuple[int, ...]] = {
        "hessian": half,
        "gradient": (c,),
        "factor": half,
        "low": (c,),
        "high": (c,),
        "w": (c,),
        "x": (c,),
        "normals": square,
        "multipliers": (c,),
        "slots": (c,),
        "worst": (),
        "worst_row": (c,),
        "worst_number": (),
        "entering_normal": (c,),
        "pressure": (),
        "entering": (),
        "scanning": (),
        "going": (),
        "finished": (),
        "row": (c + 3,),
        "row_number": (),
    }

    def stage(formula: Any, outputs: str, inputs: str) -> Stage:
        given = {name: shapes[name] for name in inputs.split()}
        return program(formula, outputs, **given)

    kept = "w normals multipliers slots worst pressure"
    return (
        stage(
            _begin,
            "factor w normals multipliers slots x worst worst_row worst_number "
            "entering_normal pressure entering scanning going finished",
            "hessian gradient",
        ),
        While(
            "going",
            (
                When(
                    "scanning",
                    (
                        stage(
                            _scan_bounds,
                            "x worst worst_row worst_number",
                            "factor w low high",
                        ),
                        Each(
                            rows.name,
                            (
                                program(first_of, "near", is_near=(1,)),
                                When(
                                    "near",
                                    (
                                        stage(
                                            _scan_row,
                                            "worst worst_row worst_number",
                                            "row row_number x worst worst_row "
                                            "worst_number",
                                        ),
                                    ),
                                ),
                            ),
                        ),
                        stage(
                            _enter,
                            "entering_normal pressure entering scanning going finished",
                            "factor worst worst_row worst_number",
                        ),
                    ),
                ),
                When(
                    "going",
                    (
                        stage(
                            _turn,
                            f"{kept} scanning going",
                            f"{kept} entering_normal entering",
                        ),
                    ),
                ),
            ),
            TURNS,
        ),
        stage(_end, "x finished", "factor w low high going"),
    )


def _begin(hessian: Any, gradient: Any) -> Any:
    """Return the factor C, w of the least of all x, and empty slots."""
    c = len(gradient)
    C = _cholesky(_unpacked(list(hessian), c))
    w = [0.0 - y for y in _forward(C, list(gradient))]
    none = [0.0] * c
    slots = [FREE] * c
    return (
        packed(C),
        w,
        [none] * c,
        none,
        slots,
        none,
        0.0,
        none,
        FREE,
        none,
        0.0,
        FREE,
        1.0,
        1.0,
        0.0,
    )


def _cholesky(H: list[list[Number]]) -> list[list[Number]]:
    """Return C with one over each element of its diagonal."""
    C: list[list[Number]] = []
    for i, row in enumerate(H):
        made: list[Number] = []
        for k in range(i):
            made.append((row[k] - inner(made, C[k][:k])) * C[k][k])
        pivot = row[i] - inner(made, made)
        made.append(1.0 / sqrt(maximum(pivot, TINY)))
        C.append(made)
    return C


def _forward(C: Sequence[Sequence[Number]], a: Sequence[Number]) -> list[Number]:
    """Return C^-1 a."""
    y: list[Number] = []
    for row, number in zip(C, a, strict=True):
        y.append((number - inner(row[: len(y)], y)) * row[len(y)])
    return y


def _backward(C: Sequence[Sequence[Number]], w: Sequence[Number]) -> list[Number]:
    """Return C'^-1 w."""
    c = len(w)
    x = list(w)
    for i in reversed(range(c)):
        below = [C[k][i] for k in range(i + 1, c)]
        x[i] = (x[i] - inner(below, x[i + 1 :])) * C[i][i]
    return x


def first_of(numbers: Any) -> Any:
    """Return the first of numbers."""
    return numbers[0]


def _scan_bounds(factor: Any, w: Any, low: Any, high: Any) -> Any:
    """Return x, and by how much it breaks which bound most."""
    c = len(w)
    x = _backward(_unpacked(list(factor), c), list(w))
    worst: Number = 0.0
    number: Number = FREE
    for k in range(c):
        for side, room in enumerate((x[k] - low[k], high[k] - x[k])):
            is_worse = room < worst
            worst = select(is_worse, room, worst)
            number = select(is_worse, BOUND + 2 * k + side, number)
    normal = [
        select(
            number == BOUND + 2 * k,
            1.0,
            select(number == BOUND + 2 * k + 1, -1.0, 0.0),
        )
        for k in range(c)
    ]
    return x, worst, normal, number


def _scan_row(
    row: Any, row_number: Any, x: Any, worst: Any, worst_row: Any, worst_number: Any
) -> Any:
    c = len(x)
    room = inner(list(row[:c]), list(x)) - row[c]
    is_worse = room < worst
    normal = [select(is_worse, a, b) for a, b in zip(row[:c], worst_row, strict=True)]
    return (
        select(is_worse, room, worst),
        normal,
        select(is_worse, row_number, worst_number),
    )


def _enter(factor: Any, worst: Any, worst_row: Any, worst_number: Any) -> Any:
    """Return the normal of the constraint that is broken most, or the end."""
    is_broken = worst < 0.0 - BROKEN
    C = _unpacked(list(factor), len(worst_row))
    going = select(is_broken, 1.0, 0.0)
    finished = select(is_broken, 0.0, 1.0)
    return _forward(C, list(worst_row)), 0.0, worst_number, 0.0, going, finished


def _turn(
    w: Any,
    normals: Any,
    multipliers: Any,
    slots: Any,
    worst: Any,
    pressure: Any,
    normal: Any,
    entering: Any,
) -> Any:
    """Return all after a step toward the constraint that enters.

    It goes along the part of its normal that is outside of the others' span, until it
    is met, or until another one no longer presses against x and leaves its slot.
    """
    c = len(w)
    N = [list(row) for row in normals]
    n, u = list(normal), list(multipliers)
    held = [select(slot > FREE, 1.0, 0.0) for slot in slots]
    z, r = _apart(N, held, n)
    outside, size = inner(z, z), inner(n, n)
    is_new = outside > DEPENDENT * size
    full = select(is_new, 0.0 - worst, FAR) / select(is_new, outside, 1.0)
    times = [
        select(h * b > 0.0, maximum(a, 0.0) / select(b > 0.0, b, 1.0), FAR)
        for h, a, b in zip(held, u, r, strict=True)
    ]
    first: Number = FAR
    for time in times:
        first = minimum(first, time)
    step = minimum(full, first)
    is_stuck = step >= FAR
    step = select(is_stuck, 0.0, step)
    enters = select(full <= first, select(is_stuck, 0.0, 1.0), 0.0)
    drops = 1.0 - enters
    moved = select(is_new, step, 0.0)
    u = [h * (a - step * b) for h, a, b in zip(held, u, r, strict=True)]
    pressure = pressure + step
    left: Number = enters
    kept_slots: list[Number] = []
    kept_normals: list[list[Number]] = []
    kept_pressures: list[Number] = []
    leaving: Number = drops
    for k in range(c):
        here = (1.0 - held[k]) * left
        left = left - here
        goes = select(times[k] <= first, select(is_stuck, 0.0, leaving * held[k]), 0.0)
        leaving = leaving - goes
        slot = select(here > 0.0, entering, slots[k])
        kept_slots.append(select(goes > 0.0, FREE, slot))
        kept_normals.append(
            [
                select(goes > 0.0, 0.0, select(here > 0.0, a, b))
                for a, b in zip(n, N[k], strict=True)
            ]
        )
        value = select(here > 0.0, pressure, u[k])
        kept_pressures.append(select(goes > 0.0, 0.0, value))
    going = select(is_stuck, 0.0, select(left > 0.0, 0.0, 1.0))
    return (
        [a + moved * b for a, b in zip(w, z, strict=True)],
        kept_normals,
        kept_pressures,
        kept_slots,
        worst + moved * outside,
        pressure,
        enters,
        going,
    )


def _apart(
    N: Sequence[Sequence[Number]], held: Sequence[Number], n: Sequence[Number]
) -> tuple[list[Number], list[Number]]:
    """Return the part of n outside of the span of held rows, and its parts along them.

    These are r with n = N' r + z. Rows are made orthogonal one after another
    (modified Gram-Schmidt): products of them would lose half of all digits.
    """
    Q: list[list[Number]] = []
    R: list[list[Number]] = []
    for row, counts in zip(N, held, strict=True):
        left, parts = _orthogonal(Q, row)
        length = sqrt(inner(left, left))
        parts.append(counts / select(counts > 0.0, maximum(length, TINY), 1.0))
        Q.append([parts[-1] * a for a in left])
        R.append(parts)
    z, along = _orthogonal(Q, n)
    # Once more, since what is left of a sum of large terms has lost digits.
    z, more = _orthogonal(Q, z)
    r = [a + b for a, b in zip(along, more, strict=True)]
    for i in reversed(range(len(r))):
        r[i] = r[i] * R[i][i]
        for k in range(i):
            r[k] = r[k] - R[i][k] * r[i]
    return z, r


def _orthogonal(
    Q: Sequence[Sequence[Number]], a: Sequence[Number]
) -> tuple[list[Number], list[Number]]:
    """Return what is left of a without its parts along unit vectors, and these."""
    left: list[Number] = list(a)
    parts: list[Number] = []
    for q in Q:
        along = inner(q, left)
        left = [x - along * y for x, y in zip(left, q, strict=True)]
        parts.append(along)
    return left, parts


def _end(factor: Any, w: Any, low: Any, high: Any, going: Any) -> Any:
    """Return x within its bounds, and whether it has come to its end."""
    x = _backward(_unpacked(list(factor), len(w)), list(w))
    bounded = [minimum(maximum(a, b), c) for a, b, c in zip(x, low, high, strict=True)]
    return bounded, select(going > 0.0, 0.0, 1.0)
