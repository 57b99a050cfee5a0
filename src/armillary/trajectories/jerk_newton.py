"""An iteration of Newton's method for paths within limits of jerk.

Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt
from armillary.trajectories.jerk_columns import PLACES, RATES
from armillary.trajectories.jerk_spline import (
    FAST,
    PLACE,
    SIMPSON,
    GridEnds,
    GridInterval,
    bound_rows,
    greater,
    spline_at,
    spline_start,
)

__all__ = [
    "back_substituted",
    "close_sums",
    "eliminate_point",
    "end_share",
    "greatest_share",
    "move_ends",
    "moved_point",
    "newton_interval",
    "open_sums",
    "renewed_limits",
    "share_taken",
    "step_length",
]

KEPT: Final = 0.95
"""The greatest share of a slack that a step takes."""

CONTROLS: Final = 3
"""Control points that matter in an interval."""

TOGETHER: Final = 16
"""How many numbers are inverted by one division."""

TIGHTER: Final = 0.75
"""What is kept of the slack of relaxed limits: Newton's method can about double it."""

RELAXED_WEIGHT: Final = 1e-4
"""What the duration counts less while limits are relaxed."""

ABOVE: Final = 1e-2
"""What logarithms of control points count, beside 1 of those of other slacks: so little
that they matter where a spline would be below 0 between places alone."""


# Newton's method


class NewtonSums(NamedTuple):
    """Newton's equations of three control points, as far as they are summed."""

    hess: Vector
    grad: Vector
    decrement: Number
    total: Number


class Opened(NamedTuple):
    """Sums at the start of the grid."""

    sums: NewtonSums
    weight: Number


def _end_terms(x: Number, row: Vector, relax: Number) -> tuple[Number, Number]:
    """Return gradient and curvature in x1 of the logarithms of jerk at an end.

    With v = u x sqrt(x) / relax, of -log(1 - v^2): v' = 3/2 v / x, where the curvature
    is that without the one of 1 / sqrt(x), as in `newton_interval`.
    """
    gradient, curvature = 0.0, 0.0
    inverse = 1.0 / x
    f = sqrt(x) / relax
    for u in row:
        v = u * x * f
        p = 1.0 / (1.0 - v * v)
        # w = u x and m = 1 / f: of w / m = v
        gradient = gradient + 2.0 * v * p * (u * f) + (p - 1.0) * inverse
        both = (1.0 + v * v) * p * p
        curvature = (
            curvature
            + both * (2.0 * u * u * f * f + 0.5 * inverse * inverse)
            + 4.0 * v * p * p * f * u * inverse
            + inverse * inverse
        )
    return gradient, curvature


def _of_duration(
    root: Number, inverse: Number, length: Number, over: Number
) -> tuple[Number, Number, Number]:
    """Return length / sqrt(x), and its first two derivatives, the latter over mu.

    root: 1 / sqrt(x); its square is inverse.
    """
    value = length * root
    slope = -0.5 * value * inverse * over
    return value, slope, -1.5 * slope * inverse


def _inverses(numbers: Vector) -> list[Number]:
    """Return 1 / each of numbers above 0 and up to 1, by few divisions.

    One divides the product of some; parts of the product multiply it.
    """
    found: list[Number] = []
    for first in range(0, len(numbers), TOGETHER):
        group = numbers[first : first + TOGETHER]
        before = [group[0]]
        for each in group[1:]:
            before.append(before[-1] * each)
        inverse = 1.0 / before[-1]
        of_group: list[Number] = []
        for k in range(len(group) - 1, 0, -1):
            of_group.append(inverse * before[k - 1])
            inverse = inverse * group[k]
        found += [inverse, *reversed(of_group)]
    return found


def open_sums(
    b_first: Number,
    ends: GridEnds,
    relax: Number,
    relaxing: Number,
    lasts: Number,
    count: Number,
    gap: Number,
) -> Opened:
    """Return the sums before the grid: of the end at the start."""
    gradient, curvature = _end_terms(b_first, ends.end_rows[0], relax)
    # first of all within limits: then what is farthest from them is looked for
    over = count / (gap * lasts) * select(relaxing > 0.0, RELAXED_WEIGHT, 1.0)
    root = 1.0 / sqrt(b_first)
    value, slope, bend = _of_duration(root, root * root, 3.0 * ends.special[0], over)
    zeros = [0.0] * 5
    grad = [gradient + slope, 0.0, 0.0]
    return Opened(NewtonSums([curvature + bend, *zeros], grad, 0.0, value), over)


class IntervalSums(NamedTuple):
    """What an interval adds to Newton's equations of its three control points."""

    hess_here: Vector
    grad_here: Vector


class _AtPlace(NamedTuple):
    """Gradient g and Hessian H of the barrier at a place, in x, y and c there.

    Attributes:
        grad: By x, y and c.
        hess: By xx, xy, xc, yy, yc and cc.
    """

    grad: Vector
    hess: Vector


def newton_interval(
    interval: GridInterval, relax: Number, weight: Number, bound: Matrix = ()
) -> IntervalSums:
    """Return what an interval adds to Newton's equations, and how long it takes.

    Sums are in x, y and c at a place, then in those at the start of the interval, then
    in its three control points.
    """
    h_here = interval.h_here
    begin = interval.start()
    total: Number = 0.0
    # g and H in (x0, y0, c)
    G: list[Number] = [0.0, 0.0, 0.0]
    S: list[Number] = [0.0] * 6  # xx, xy, xc, yy, yc, cc
    tight = 1.0 / relax
    for k, tau in enumerate(PLACE):
        at = spline_at(begin, h_here, tau)
        total, there = _at_place(interval, k, at, (tight, weight), bound, total)
        _add_at_start(G, S, there, tau * h_here)
    _add_rates(G, S, interval, begin, tight)
    return _in_controls(G, S, interval, total)


def _at_place(
    interval: GridInterval,
    k: int,
    at: Vector,
    scales: tuple[Number, Number],
    bound: Matrix,
    total: Number,
) -> tuple[Number, _AtPlace]:
    """Return the duration so far with what the k-th place adds, and its sums.

    Args:
        interval: The interval.
        k: The number of the place.
        at: x, y and c there.
        scales: By how much limits are tighter, and what the duration counts.
        bound: Rows of bounds of x and y.
        total: The duration before.
    """
    (x, y, c), (tight, weight) = at, scales
    root = 1.0 / sqrt(x)
    inverse = root * root
    rows = list(zip(*interval.deriv[k], strict=True))
    # Jerks: v = f w / J with f = sqrt(x) / relax, slack of log(1 - v^2).
    f = tight * x * root
    X, Y, C = f * x, f * y, f * c
    V = [d * X + v * Y + half * C for d, v, half in rows]
    slacks = [1.0 - v * v for v in V]
    # Accelerations; the end of an interval is the start of the next one.
    r_here: list[Number] = []
    if k < PLACES - 1:
        of_x, of_y = 2.0 / 3.0 * tight * x, tight * y
        r_here = [
            scale * (v * of_x + half * of_y) - tight * middle
            for (_, v, half), scale, middle in zip(rows, *interval.scales, strict=True)
        ]
        slacks += [1.0 - r * r for r in r_here]
    bent = _relaxed_rows(bound, k, tight)
    of_bounds = [a * y + b * x - m for a, b, m in bent]
    slacks += [1.0 - r * r for r in of_bounds]
    inverses = _inverses(slacks)
    added, sums = _of_jerks(
        rows,
        V,
        inverses[: len(rows)],
        (f, root, inverse),
        (SIMPSON[k], interval.h_here, weight),
        total,
    )
    if r_here:
        behind, scale = inverses[len(rows) :], interval.scales[0]
        sums = _with_accelerations(sums, rows, r_here, behind, scale, tight)
    first = len(slacks) - len(bent)
    return added, _with_bounds(sums, bent, of_bounds, inverses[first:])


def _of_jerks(
    rows: list[tuple[Number, ...]],
    V: Vector,
    inverses: Vector,
    roots: tuple[Number, Number, Number],
    duration: tuple[float, Number, Number],
    total: Number,
) -> tuple[Number, _AtPlace]:
    """Return the duration so far, and sums of it and of -log(1 - v^2) of all joints.

    Args:
        rows: d, v and half of each joint, of which v = f (d x + v y + half c).
        V: v of each.
        inverses: p = 1 / (1 - v^2) of each.
        roots: f, 1 / sqrt(x) and 1 / x.
        duration: The part of the interval and its length, of which 1 / sqrt(x) counts,
            and what that counts.
        total: The duration before.
    """
    f, root, inverse = roots
    gx, gy, gc = 0.0, 0.0, 0.0
    xx, xy, xc, yy, yc, cc = (0.0,) * 6
    # Sums over joints of p, of (1 + v^2) p^2, and of v p^2 by each of x, y and c.
    sum_p, sum_q = 0.0, 0.0
    ex, ey, ec = 0.0, 0.0, 0.0
    for (d, v, half), value, p in zip(rows, V, inverses, strict=True):
        vp = value * p
        e = vp * p
        q = p * p + value * e
        gx, gy, gc = gx + vp * d, gy + vp * v, gc + vp * half
        ex, ey, ec = ex + e * d, ey + e * v, ec + e * half
        sum_p, sum_q = sum_p + p, sum_q + q
        qd, qv = q * d, q * v
        xx, xy, xc = xx + qd * d, xy + qd * v, xc + qd * half
        yy, yc, cc = yy + qv * v, yc + qv * half, cc + q * half * half
    twice = 2.0 * f
    square = twice * f
    cross = twice * inverse
    part, h_here, weight = duration
    value, slope, bend = _of_duration(root, inverse, part * h_here, weight)
    total = total + value
    count = float(len(rows))
    gx = twice * gx + inverse * (sum_p - count) + slope
    gy, gc = twice * gy, twice * gc
    xx = (
        square * xx
        + 2.0 * cross * ex
        + inverse * inverse * (0.5 * sum_q + count)
        + bend
    )
    xy, xc = square * xy + cross * ey, square * xc + cross * ec
    yy, yc, cc = square * yy, square * yc, square * cc
    return total, _AtPlace([gx, gy, gc], [xx, xy, xc, yy, yc, cc])


def _with_accelerations(
    sums: _AtPlace,
    rows: list[tuple[Number, ...]],
    R: Vector,
    inverses: Vector,
    scales: Vector,
    tight: Number,
) -> _AtPlace:
    """Return sums with those of -log(1 - r^2), r the accelerations of joints.

    r = A x + B y - m with A = 2/3 scale v tight and B = scale half tight.

    Args:
        sums: Without them.
        rows: As for `_of_jerks`.
        R: r of each joint.
        inverses: p = 1 / (1 - r^2) of each, and others behind.
        scales: Of each.
        tight: By how much limits are tighter.
    """
    of_rows = [0.0] * 5
    for (_, v, half), r, p, scale in zip(rows, R, inverses, scales, strict=False):
        rp = r * p
        g = rp * scale
        curved = (0.5 * p + rp * rp) * (scale * scale)
        cv, ch = curved * v, curved * half
        new = g * v, g * half, cv * v, cv * half, ch * half
        of_rows = [held + more for held, more in zip(of_rows, new, strict=True)]
    (gx, gy, gc), (xx, xy, xc, yy, yc, cc) = sums
    of_x = 2.0 / 3.0 * tight
    gx, gy = gx + 2.0 * of_x * of_rows[0], gy + 2.0 * tight * of_rows[1]
    xx = xx + 4.0 * of_x * of_x * of_rows[2]
    xy = xy + 4.0 * of_x * tight * of_rows[3]
    yy = yy + 4.0 * tight * tight * of_rows[4]
    return _AtPlace([gx, gy, gc], [xx, xy, xc, yy, yc, cc])


def _with_bounds(sums: _AtPlace, rows: Matrix, R: Vector, inverses: Vector) -> _AtPlace:
    """Return sums with those of -log(1 - r^2), r = a y + b x - m of rows a, b, m.

    Args:
        sums: Without them.
        rows: a, b and m.
        R: r of each.
        inverses: p = 1 / (1 - r^2) of each.
    """
    (gx, gy, gc), (xx, xy, xc, yy, yc, cc) = sums
    for (a, b, _), r, p in zip(rows, R, inverses, strict=True):
        u = 2.0 * p
        g = u * r
        curved = u + g * g
        gx, gy = gx + g * b, gy + g * a
        cb = curved * b
        xx, xy = xx + cb * b, xy + cb * a
        yy = yy + curved * a * a
    return _AtPlace([gx, gy, gc], [xx, xy, xc, yy, yc, cc])


def _add_at_start(G: list[Number], S: list[Number], there: _AtPlace, t: Number) -> None:
    """Add sums at a place to those at the start of the interval, t before it.

    x = x0 + t y0 + t^2 c / 2 and y = y0 + t c.
    """
    (gx, gy, gc), (xx, xy, xc, yy, yc, cc) = there
    q = 0.5 * t * t
    G[0] = G[0] + gx
    G[1] = G[1] + t * gx + gy
    G[2] = G[2] + q * gx + t * gy + gc
    S[0] = S[0] + xx
    S[1] = S[1] + t * xx + xy
    S[2] = S[2] + q * xx + t * xy + xc
    S[3] = S[3] + t * (t * xx + 2.0 * xy) + yy
    S[4] = S[4] + t * (q * xx + t * xy + xc) + q * xy + t * yy + yc
    S[5] = S[5] + q * (q * xx + 2.0 * (t * xy + xc)) + t * (t * yy + 2.0 * yc) + cc


def _add_rates(
    G: list[Number],
    S: list[Number],
    interval: GridInterval,
    begin: Vector,
    tight: Number,
) -> None:
    """Add the sums of -log(1 - x limit), the limits of rates along the interval."""
    h_here = interval.h_here
    limits = [tight * each for each in interval.cap]
    slacks = [
        1.0 - spline_at(begin, h_here, k / RATES)[0] * limit
        for k, limit in enumerate(limits)
    ]
    # sums of g and of g^2 times powers of the part of the interval
    first_moments: list[Number] = [0.0] * 3
    moments: list[Number] = [0.0] * 5
    for k, (limit, p) in enumerate(zip(limits, _inverses(slacks), strict=True)):
        g = limit * p
        curved = g * g
        for j in range(5 if k else 1):
            part = (k / RATES) ** j
            moments[j] = moments[j] + part * curved
            if j < len(first_moments):
                first_moments[j] = first_moments[j] + part * g
    h2 = h_here * h_here
    G[0] = G[0] + first_moments[0]
    G[1] = G[1] + h_here * first_moments[1]
    G[2] = G[2] + 0.5 * h2 * first_moments[2]
    S[0] = S[0] + moments[0]
    S[1] = S[1] + h_here * moments[1]
    S[2] = S[2] + 0.5 * h2 * moments[2]
    S[3] = S[3] + h2 * moments[2]
    S[4] = S[4] + 0.5 * h2 * h_here * moments[3]
    S[5] = S[5] + 0.25 * h2 * h2 * moments[4]


def _in_controls(
    G: Vector, S: Vector, interval: GridInterval, total: Number
) -> IntervalSums:
    """Return sums at the start of an interval as those of its three control points.

    x0 = u b0 + v b1, y0 = 2 before (b1 - b0), c = (y1 - y0) / h.
    """
    h_before, h_here, h_after = interval.h_before, interval.h_here, interval.h_after
    before, after = 1.0 / (h_before + h_here), 1.0 / (h_here + h_after)
    over_h = 1.0 / h_here
    x_b = (h_here * before, h_before * before, 0.0)
    y_b = (-2.0 * before, 2.0 * before, 0.0)
    c_b = (
        2.0 * before * over_h,
        -2.0 * (before + after) * over_h,
        2.0 * after * over_h,
    )
    M = ((S[0], S[1], S[2]), (S[1], S[3], S[4]), (S[2], S[4], S[5]))
    columns = [
        [row[0] * x_b[k] + row[1] * y_b[k] + row[2] * c_b[k] for row in M]
        for k in range(CONTROLS)
    ]

    def product(k: int, n: int) -> Number:
        return x_b[k] * columns[n][0] + y_b[k] * columns[n][1] + c_b[k] * columns[n][2]

    pairs = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)
    gradient = [x_b[k] * G[0] + y_b[k] * G[1] + c_b[k] * G[2] for k in range(CONTROLS)]
    hess = [product(k, n) for k, n in pairs]
    # x is above 0 between places, too, where control points are: of -ABOVE log(b1)
    slope = ABOVE / interval.b1
    hess[3], gradient[1] = hess[3] + slope / interval.b1, gradient[1] - slope
    return IntervalSums(hess, [*gradient, total])


class PointEliminated(NamedTuple):
    """Sums, with one more control point eliminated."""

    factor: Vector
    sums: NewtonSums


def eliminate_point(
    added: IntervalSums,
    is_first: Number,
    is_second: Number,
    moving: Vector,
    folds: Vector,
    sums: NewtonSums,
) -> PointEliminated:
    """Add an interval to Newton's equations, and eliminate its first control point."""
    hess, grad, decrement, total = sums
    h00, h01, h02, h11, h12, h22 = (
        held + more for held, more in zip(hess, added.hess_here, strict=True)
    )
    g0, g1, g2 = (
        held + more for held, more in zip(grad, added.grad_here[:CONTROLS], strict=True)
    )
    total = total + added.grad_here[CONTROLS]
    # An end at rest: b0 = fold b1. In motion b0 and b1 are given.
    opens, is_given = is_first > 0.5, moving[0] > 0.5
    fold = folds[0]
    is_fixed = opens | ((is_second > 0.5) & is_given)
    h11 = h11 + select(opens, fold * (2.0 * h01 + fold * h00), 0.0)
    h12 = h12 + select(opens, fold * h02, 0.0)
    g1 = g1 + select(opens, fold * g0, 0.0)
    inverse = select(is_fixed, 0.0, 1.0 / h00)
    l1, l2, z = h01 * inverse, h02 * inverse, -g0 * inverse
    return PointEliminated(
        [select(opens, -fold, l1), l2, z],
        NewtonSums(
            [h11 - l1 * h01, h12 - l1 * h02, 0.0, h22 - l2 * h02, 0.0, 0.0],
            [g1 - l1 * g0, g2 - l2 * g0, 0.0],
            decrement - z * g0,
            total,
        ),
    )


class EndsSolved(NamedTuple):
    """The change of the last two control points."""

    d_before: Number
    d_last: Number
    lasts: Number
    decrement: Number


def close_sums(
    b_last: Number,
    ends: GridEnds,
    folds: Vector,
    relax: Number,
    weight: Number,
    sums: NewtonSums,
) -> EndsSolved:
    """Return the change of the last two control points, which is left to solve."""
    hess, grad, decrement, total = sums
    gradient, curvature = _end_terms(b_last, ends.end_rows[1], relax)
    root = 1.0 / sqrt(b_last)
    value, slope, bend = _of_duration(root, root * root, 3.0 * ends.special[1], weight)
    fold = folds[1]
    H = hess[0] + fold * (2.0 * hess[1] + fold * (hess[3] + curvature + bend))
    g = grad[0] + fold * (grad[1] + gradient + slope)
    z = select(ends.moving[1] > 0.5, 0.0, -g / H)
    return EndsSolved(z, fold * z, total + value, decrement - z * g)


def back_substituted(back_factor: Vector, back1: Number, back2: Number) -> Number:
    """Return the change of a control point from those of the next two."""
    l1, l2, z = back_factor
    return z - l1 * back1 - l2 * back2


def _relaxed_rows(bound: Matrix, place: int, tight: Number) -> list[list[Number]]:
    """Return a, b and m of |a y + b x - m| <= 1, of further limits at a place.

    Limits that are relaxed have more room for motion, on either side in proportion.
    """
    rows = bound_rows(bound, place)
    return [[0.5 * tight * a, tight * b, m] for a, b, m in rows]


class OuterPoints(NamedTuple):
    """The first and the last control point, and their change."""

    b_first: Number
    b_last: Number
    d_first: Number
    d_last: Number


def end_share(points: OuterPoints, ends: GridEnds, relax: Number) -> Number:
    """Return what the change takes of slacks at both ends."""
    most: Number = 0.0
    for x, change, row in zip(points[:2], points[2:], ends.end_rows, strict=True):
        inverse = 1.0 / x
        f = sqrt(x) / relax
        shrink = 0.5 * change * inverse
        most = maximum(most, -change * inverse)
        for u in row:
            v, dv = u * x * f, u * change * f
            most = maximum(most, _taken(v, dv, shrink, 1.0 / (1.0 - v * v)))
    return most


def _taken(v: Number, dv: Number, shrink: Number, p: Number) -> Number:
    """Return the greatest share of the slacks of |v| <= 1 that a change takes.

    shrink: What both limits fall by, in parts of them.
    p: 1 / (1 - v^2).
    """
    # the greater of (dv + shrink) (1 + v) and (shrink - dv) (1 - v), times p
    return (shrink + dv * v + absolute(dv + shrink * v)) * p


class PointsChange(NamedTuple):
    """The change of the control points of an interval."""

    d0: Number
    d1: Number
    d2: Number


def share_taken(
    interval: GridInterval, change: PointsChange, relax: Number, bound: Matrix = ()
) -> Number:
    """Return the greatest share of a slack of an interval that the change takes."""
    most: Number = -change.d1 / interval.b1
    h_before, h_here, h_after, *_, deriv, cap, scales = interval
    begin = interval.start()
    changed = spline_start(h_before, h_here, h_after, change)
    tight = 1.0 / relax
    for k, tau in enumerate(PLACE):
        x, y, c = spline_at(begin, h_here, tau)
        dx, dy, dc = spline_at(changed, h_here, tau)
        rows = list(zip(*deriv[k], strict=True))
        root = 1.0 / sqrt(x)
        inverse = root * root
        most = greater(most, -dx * inverse)
        shrink = 0.5 * dx * inverse
        f = tight * x * root
        X, Y, C, dX, dY, dC = (f * each for each in (x, y, c, dx, dy, dc))
        V = [d * X + v * Y + half * C for d, v, half in rows]
        dV = [d * dX + v * dY + half * dC for d, v, half in rows]
        slacks = [1.0 - v * v for v in V]
        r_here: list[Number] = []
        dr_here: list[Number] = []
        if k < PLACES - 1:
            of_x, of_y, d_x, d_y = (
                tight * each for each in (2.0 / 3.0 * x, y, 2.0 / 3.0 * dx, dy)
            )
            for (_, v, half), scale, middle in zip(rows, *scales, strict=True):
                r_here.append(scale * (v * of_x + half * of_y) - tight * middle)
                dr_here.append(scale * (v * d_x + half * d_y))
            slacks += [1.0 - r * r for r in r_here]
        for a, b, m in _relaxed_rows(bound, k, tight):
            r_here.append(a * y + b * x - m)
            dr_here.append(a * dy + b * dx)
            slacks.append(1.0 - r_here[-1] * r_here[-1])
        inverses = _inverses(slacks)
        for v, dv, p in zip(V, dV, inverses[: len(V)], strict=True):
            most = greater(most, _taken(v, dv, shrink, p))
        for r, dr, p in zip(r_here, dr_here, inverses[len(V) :], strict=True):
            most = greater(most, (absolute(dr) + dr * r) * p)
    limits = [tight * each for each in cap]
    places = [spline_at(begin, h_here, k / RATES)[0] for k in range(RATES)]
    inverses = _inverses([1.0 - x * i for x, i in zip(places, limits, strict=True)])
    for k, (limit, p) in enumerate(zip(limits, inverses, strict=True)):
        most = greater(most, spline_at(changed, h_here, k / RATES)[0] * limit * p)
    return most


def greatest_share(most: Number, taken_here: Number) -> Number:
    """Return the greatest share that the change takes, as far as here."""
    return maximum(most, taken_here)


class Length(NamedTuple):
    """How long the step is, and whether another one follows."""

    step: Number
    going: Number


def step_length(
    most: Number,
    decrement: Number,
    lasts: Number,
    relaxing: Number,
    count: Number,
    ending: Vector,
) -> Length:
    """Return the step; far from limits, the whole change.

    The next iterate wins about mu times the squared decrement.
    """
    enough, long = ending
    step = minimum(1.0, KEPT / maximum(most, 1e-9))
    is_number = (lasts < FAST) & (decrement < FAST)
    step = select(is_number, step, 0.0)
    is_near = (decrement < enough * count) & (step > long) & (relaxing <= 0.0)
    return Length(step, select(is_near | ~is_number, 0.0, 1.0))


class EndsMoved(NamedTuple):
    """The first and the last control point after a step."""

    b_first: Number
    b_last: Number


def move_ends(points: OuterPoints, step: Number) -> EndsMoved:
    """Return the first and the last control point after a step."""
    b_first, b_last, d_first, d_last = points
    return EndsMoved(b_first + step * d_first, b_last + step * d_last)


def moved_point(b1: Number, d1: Number, step: Number) -> Number:
    """Return a control point after a step."""
    return b1 + step * d1


class Renewed(NamedTuple):
    """Limits that hold at the next iterate."""

    relax: Number
    relaxing: Number


def renewed_limits(relax: Number, relaxing: Number, ratio: Vector) -> Renewed:
    """Return limits that are relaxed less, or not any more."""
    worst = maximum(ratio[0], ratio[1])
    lower = minimum(relax, worst + TIGHTER * (relax - worst))
    is_within = (relaxing <= 0.0) | (worst < 0.999)
    return Renewed(
        select(is_within, 1.0, maximum(lower, 1.0)), select(is_within, 0.0, 1.0)
    )
