"""Least squares within bounds and inequalities, by a dual active-set method, as stages.

Of the rates x with low <= x <= high and a_k x >= b_k for all rows k, those are found
that make 1/2 x' H x + g' x least (Goldfarb and Idnani, "A numerically stable dual
method for solving strictly convex quadratic programs", 1983). It begins with the
least of all x; then the constraint that is broken most is added, and those that no
longer press against x are dropped, until none is broken. So work grows with the
constraints that matter, not with those that there are, and what is found is exact.

With H = C C' and x = C'^-1 w, constraints are n = C^-1 a in the space of w, where the
distance is the plain one. There are c slots for them, one for each of c rates.

Of few rates the formulas below are straight code; of more (`StepColumns.is_unrolled`)
the same is done by loops, `kernel/active_set_code.py`, which tests compare with them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from armillary.control.columns import TINY, ActiveConstraints, StepColumns
from armillary.control.least_squares import packed, unpacked
from armillary.ik.active_rows import FREE
from armillary.ik.scaled_rates import RateRow, when_near
from armillary.kernel.columns import dense, each, repeat, when
from armillary.kernel.dense import ActiveSet
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import maximum, minimum, select, sqrt

__all__ = ["BOUND", "COUPLED", "TORQUE", "active_set_stages", "solved"]

ITERATIONS: Final = 10
"""Most constraints that are added or dropped, for each rate; 100 in any case."""

BROKEN: Final = 1e-10
"""A constraint is broken that is missed by more [m/s or rad/s]."""

DEPENDENT: Final = 1e-24
"""Part of the square of a normal that is outside of the others' span, at least."""

BOUND: Final = 1e6
"""Numbers of bounds: this, and 2 k for the lower one of rate k, 2 k + 1 for the upper.
Rows have numbers of their own."""

TORQUE: Final = 2e6
"""Numbers of rows of torques: this, and more."""

COUPLED: Final = 3e6
"""Numbers of rows of limits that couple joints: this, and more."""

FAR: Final = 1e30


class ActiveSetStart(NamedTuple):
    """The factor, the least of all x, and no active constraints."""

    factor: Vector
    w: Vector
    constraints: ActiveConstraints
    x: Vector
    worst: Number
    worst_row: Vector
    worst_number: Number
    entering_normal: Vector
    pressure: Number
    entering: Number
    scanning: Number
    active: Number
    finished: Number


class Broken(NamedTuple):
    """The constraint that x breaks most so far: by how much, its a, its number."""

    worst: Number
    worst_row: Vector
    worst_number: Number


class Entering(NamedTuple):
    """The constraint that is to become active, if x is not the answer."""

    entering_normal: Vector
    pressure: Number
    entering: Number
    scanning: Number
    active: Number
    finished: Number


class Stepped(NamedTuple):
    """All after a step toward the constraint that enters."""

    w: Vector
    constraints: ActiveConstraints
    worst: Number
    pressure: Number
    scanning: Number
    active: Number


def active_set_stages(columns: StepColumns, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that find the best rates.

    They read the columns `hessian` (packed), `gradient`, `low` and `high`, and write
    `x`, `slots` and `multipliers`: which constraints hold it, and how much each presses
    against it; `finished` is 0 where there were too many iterations. Where constraints
    contradict each other x breaks the one that was to be added last.

    Args:
        columns: The columns.
        rows: The table of inequalities, whose fields `row`, `is_near` and `row_number`
            are the `RateRow`, with more behind it; 1 for those that count; and k.
    """
    limit = _limit(columns.x.size)
    if not columns.is_unrolled:
        method = ActiveSet(limit, BROKEN, DEPENDENT, TINY, FAR, BOUND, FREE)
        given = columns.hessian, columns.gradient, columns.low, columns.high
        found = columns.x, columns.slots, columns.multipliers, columns.finished
        return (
            dense(
                method,
                partial(solved, fields=(columns.row.name, columns.is_near.name)),
                (*given, columns.approach_rows, columns.approach_nears),
                found,
                table=rows,
                fields=(columns.row, columns.is_near, columns.row_number),
            ),
        )
    # Step 1 of Goldfarb and Idnani: choose the constraint that is broken most.
    choose = when(
        columns.scanning,
        columns.stage(_scan_bounds, writes=(columns.x, *columns.group(Broken))),
        each(rows, *when_near(columns, columns.is_near, columns.stage(_scan_row))),
        columns.stage(_enter),
    )
    # Step 2: move until it is met, dropping those that no longer press.
    move = when(columns.active, columns.stage(_step))
    return (
        columns.stage(_begin),
        repeat(columns.active, choose, move, limit=limit),
        columns.stage(_end, writes=(columns.x, columns.finished)),
    )


def _limit(c: int) -> int:
    """Return the most iterations for c rates."""
    return max(100, ITERATIONS * c)


def _begin(hessian: Vector, gradient: Vector) -> ActiveSetStart:
    """Return the factor C, w of the least of all x, and no active constraints."""
    c = len(gradient)
    # H = C C' turns the least squares into a distance: with x = C'^-1 w it is
    # |w + C^-1 g|^2 / 2, whose least is at w = -C^-1 g.
    C = _cholesky(unpacked(list(hessian), c))
    w = [0.0 - y for y in _forward(C, list(gradient))]
    # No constraint is active: slots are empty, and the first scan comes next.
    none = [0.0] * c
    return ActiveSetStart(
        factor=packed(C),
        w=w,
        constraints=ActiveConstraints([none] * c, none, [FREE] * c),
        x=none,
        worst=0.0,
        worst_row=none,
        worst_number=FREE,
        entering_normal=none,
        pressure=0.0,
        entering=FREE,
        scanning=1.0,
        active=1.0,
        finished=0.0,
    )


def _cholesky(H: list[list[Number]]) -> list[list[Number]]:
    """Return C with one over each element of its diagonal."""
    C: list[list[Number]] = []
    for i, row in enumerate(H):
        made: list[Number] = []
        # Row i of C from the rows above it, divided by their pivots.
        for k in range(i):
            made.append((row[k] - inner(made, C[k][:k])) * C[k][k])
        pivot = row[i] - inner(made, made)
        # The reciprocal is kept: solving multiplies, which is faster than dividing.
        made.append(1.0 / sqrt(maximum(pivot, TINY)))
        C.append(made)
    return C


def _forward(C: Matrix, a: Vector) -> list[Number]:
    """Return C^-1 a."""
    y: list[Number] = []
    # From the first unknown to the last: each row has one more.
    for row, number in zip(C, a, strict=True):
        y.append((number - inner(row[: len(y)], y)) * row[len(y)])
    return y


def _backward(C: Matrix, w: Vector) -> list[Number]:
    """Return C'^-1 w."""
    c = len(w)
    x = list(w)
    # From the last unknown to the first, with columns of C as rows of C'.
    for i in reversed(range(c)):
        below = [C[k][i] for k in range(i + 1, c)]
        x[i] = (x[i] - inner(below, x[i + 1 :])) * C[i][i]
    return x


def _scan_bounds(
    factor: Vector, w: Vector, low: Vector, high: Vector
) -> tuple[Vector, Broken]:
    """Return x, and by how much it breaks which bound most."""
    c = len(w)
    x = _backward(unpacked(list(factor), c), list(w))
    worst: Number = 0.0
    number: Number = FREE
    # Rooms x - low and high - x: the most negative one is broken most.
    for k in range(c):
        for side, room in enumerate((x[k] - low[k], high[k] - x[k])):
            is_worse = room < worst
            worst = select(is_worse, room, worst)
            number = select(is_worse, BOUND + 2 * k + side, number)
    # The row of a lower bound of rate k is e_k, that of an upper one -e_k.
    normal = [
        select(
            number == BOUND + 2 * k,
            1.0,
            select(number == BOUND + 2 * k + 1, -1.0, 0.0),
        )
        for k in range(c)
    ]
    return x, Broken(worst, normal, number)


def _scan_row(row: RateRow, row_number: Number, x: Vector, broken: Broken) -> Broken:
    """Return the constraint that is broken most, of this row and those before."""
    worst, worst_row, worst_number = broken
    # a x - b, below 0 where the row is broken. Ties keep the earlier one.
    room = inner(row.slopes, list(x)) - row.bound
    is_worse = room < worst
    normal = [
        select(is_worse, a, b) for a, b in zip(row.slopes, worst_row, strict=True)
    ]
    return Broken(
        select(is_worse, room, worst),
        normal,
        select(is_worse, row_number, worst_number),
    )


def _enter(factor: Vector, broken: Broken) -> Entering:
    """Return the normal of the constraint that is broken most, or the end."""
    # Less than that is rounding: then x is the answer, and the loop ends.
    is_broken = broken.worst < 0.0 - BROKEN
    C = unpacked(list(factor), len(broken.worst_row))
    return Entering(
        entering_normal=_forward(C, broken.worst_row),
        pressure=0.0,
        entering=broken.worst_number,
        scanning=0.0,
        active=select(is_broken, 1.0, 0.0),
        finished=select(is_broken, 0.0, 1.0),
    )


def _step(
    w: Vector,
    constraints: ActiveConstraints,
    worst: Number,
    pressure: Number,
    entering_normal: Vector,
    entering: Number,
) -> Stepped:
    """Return all after a step toward the constraint that enters.

    It goes along z, the part of its normal n that is outside of the others' span, until
    it is met, or until another one no longer presses against x and leaves its slot.
    """
    N, n, u = constraints.normals, list(entering_normal), constraints.multipliers
    # What follows is for all c slots at once; empty ones count with the factor 0.
    used = [select(slot > FREE, 1.0, 0.0) for slot in constraints.slots]
    z, r = _apart(N, used, n)
    # Full step: the constraint is met. Without z it can only press against others.
    outside, size = inner(z, z), inner(n, n)
    is_new = outside > DEPENDENT * size
    full = select(is_new, 0.0 - worst, FAR) / select(is_new, outside, 1.0)
    # Multipliers change by -r per unit: partial step, up to the first that vanishes.
    times = [
        select(h * b > 0.0, maximum(a, 0.0) / select(b > 0.0, b, 1.0), FAR)
        for h, a, b in zip(used, u, r, strict=True)
    ]
    first: Number = FAR
    for time in times:
        first = minimum(first, time)
    # The shorter of both: either the constraint is met, or one leaves first.
    step = minimum(full, first)
    is_stuck = step >= FAR  # No rates meet all constraints.
    step = select(is_stuck, 0.0, step)
    enters = select(full <= first, select(is_stuck, 0.0, 1.0), 0.0)
    moved = select(is_new, step, 0.0)
    pressure = pressure + step
    # While n presses with `pressure`, the others change to u - step r.
    pressing = constraints._replace(
        multipliers=[h * (a - step * b) for h, a, b in zip(used, u, r, strict=True)]
    )
    # A partial step ends where the first multiplier vanishes.
    vanishes = [
        select(time <= first, select(is_stuck, 0.0, h), 0.0)
        for time, h in zip(times, used, strict=True)
    ]
    # Full step: n becomes active. Partial step: one leaves, n is tried again.
    exchanged, left = _exchanged(
        pressing, used, vanishes, enters, (n, pressure, entering)
    )
    return Stepped(
        w=[a + moved * b for a, b in zip(w, z, strict=True)],
        constraints=exchanged,
        worst=worst + moved * outside,
        pressure=pressure,
        scanning=enters,
        active=select(is_stuck, 0.0, select(left > 0.0, 0.0, 1.0)),
    )


def _exchanged(
    constraints: ActiveConstraints,
    used: Vector,
    vanishes: Vector,
    enters: Number,
    entering: tuple[Vector, Number, Number],
) -> tuple[ActiveConstraints, Number]:
    """Return the constraints after one has entered a free slot, or one has left.

    The number is above 0 where one enters and no slot is free.

    Args:
        constraints: Those before.
        used: 1 for slots that hold a constraint, else 0.
        vanishes: 1 for those whose multiplier vanishes, of which the first leaves.
        enters: 1 where a constraint enters, 0 where one leaves.
        entering: Its normal, its multiplier and its number.
    """
    # `left` is 1 until the entering constraint has found a slot, `leaving` is 1
    # until one has left: there is one of each at most.
    n, pressure, number = entering
    left: Number = enters
    leaving: Number = 1.0 - enters
    slots: list[Number] = []
    normals: list[list[Number]] = []
    multipliers: list[Number] = []
    for k, (old_normal, u, slot) in enumerate(zip(*constraints, strict=True)):
        here = (1.0 - used[k]) * left
        left = left - here
        leaves = leaving * vanishes[k]
        leaving = leaving - leaves
        slots.append(select(leaves > 0.0, FREE, select(here > 0.0, number, slot)))
        normals.append(
            [
                select(leaves > 0.0, 0.0, select(here > 0.0, a, b))
                for a, b in zip(n, old_normal, strict=True)
            ]
        )
        value = select(here > 0.0, pressure, u)
        multipliers.append(select(leaves > 0.0, 0.0, value))
    return ActiveConstraints(normals, multipliers, slots), left


def _apart(N: Matrix, active: Vector, n: Vector) -> tuple[list[Number], list[Number]]:
    """Return the part of n outside the span of active rows, and its parts along them.

    These are r with n = N' r + z. Rows are made orthogonal one after another
    (modified Gram-Schmidt): products of them would lose half of all digits.
    """
    # N' = Q R with orthonormal Q: active rows are independent, empty ones are 0.
    Q: list[list[Number]] = []
    R: list[list[Number]] = []
    for row, counts in zip(N, active, strict=True):
        left, parts = _orthogonal(Q, row)
        length = sqrt(inner(left, left))
        # The last entry of a row of R is one over the length of what was left.
        parts.append(counts / select(counts > 0.0, maximum(length, TINY), 1.0))
        Q.append([parts[-1] * a for a in left])
        R.append(parts)
    z, along = _orthogonal(Q, n)
    # Once more, since what is left of a sum of large terms has lost digits.
    z, more = _orthogonal(Q, z)
    r = [a + b for a, b in zip(along, more, strict=True)]
    # Parts along Q become parts along N: R r = Q' n, from the last to the first.
    for i in reversed(range(len(r))):
        r[i] = r[i] * R[i][i]
        for k in range(i):
            r[k] = r[k] - R[i][k] * r[i]
    return z, r


def _orthogonal(Q: Matrix, a: Vector) -> tuple[list[Number], list[Number]]:
    """Return what is left of a without its parts along unit vectors, and these."""
    left: list[Number] = list(a)
    parts: list[Number] = []
    for q in Q:
        along = inner(q, left)
        left = [x - along * y for x, y in zip(left, q, strict=True)]
        parts.append(along)
    return left, parts


def _end(
    factor: Vector, w: Vector, low: Vector, high: Vector, active: Number
) -> tuple[Vector, Number]:
    """Return x within its bounds, and whether it has come to its end."""
    x = _backward(unpacked(list(factor), len(w)), list(w))
    # Rounding of C'^-1 w may lead beyond a bound; clipping takes it back.
    bounded = [minimum(maximum(a, b), c) for a, b, c in zip(x, low, high, strict=True)]
    return bounded, select(active > 0.0, 0.0, 1.0)


def solved(
    hessian: Vector,
    gradient: Vector,
    low: Vector,
    high: Vector,
    approach_rows: Matrix,
    approach_nears: Matrix,
    records: Any,
    *,
    fields: tuple[str, str],
) -> tuple[Vector, Vector, Vector, Number]:
    """Return what the stages write, by their formulas on floats.

    Args:
        hessian: H, packed.
        gradient: g.
        low: The least rates.
        high: The greatest.
        approach_rows: Rows of inequalities.
        approach_nears: For each a number above 0 where it counts.
        records: Those of the table of rows.
        fields: Its fields that are positions of rows, and of these numbers.
    """
    row, is_near = fields
    counted = [
        (RateRow(approach_rows[one[row]], c=len(gradient)), float(one["row_number"]))
        for one in records
        if approach_nears[one[is_near]][0] > 0.0
    ]
    at = _begin(hessian, gradient)
    factor, w, constraints = at.factor, at.w, at.constraints
    active, worst = at.active, at.worst
    entering = None
    for _ in range(_limit(len(gradient))):
        if entering is None or entering.scanning > 0.0:
            x, broken = _scan_bounds(factor, w, low, high)
            for one, number in counted:
                broken = _scan_row(one, number, x, broken)
            entering = _enter(factor, broken)
            worst, active = broken.worst, entering.active
            if not active > 0.0:
                break
        normal, pressure, number = entering[:3]
        step = _step(w, constraints, worst, pressure, normal, number)
        w, constraints, worst, active = (
            step.w,
            step.constraints,
            step.worst,
            step.active,
        )
        entering = entering._replace(pressure=step.pressure, scanning=step.scanning)
        if not active > 0.0:
            break
    x, finished = _end(factor, w, low, high, active)
    return x, constraints.slots, constraints.multipliers, finished
