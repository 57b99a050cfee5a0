"""Laws of a joint's size and speed: bounds hold, a scaled joint moves a scaled path."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.scaling import ScaleRefused
from armillary.testing.laws import TOLERANCE, row
from armillary.testing.subject import Subject

Array = npt.NDArray[np.float64]

DENSE: Final = 2001
LOOSENESS: Final = 0.03
FACTORS: Final = (2.0, 0.5)


def bound(subject: Subject) -> None:
    """Check that no origin is farther away than the bound, over any part of the range.

    Limits may be given in either order, and may be infinite.
    """
    low, high = subject.lower, subject.upper
    a, b = np.sort(subject.random.uniform(low, high, 2)).tolist()
    for start, end in ((low, high), (a, b)):
        limit = _bound(subject.joint, start, end)
        q, reach = _farthest(subject, start, end)
        if not limit >= reach * (1.0 - TOLERANCE):
            raise JointError(
                f"origin_bound({start:.6g}, {end:.6g}) is {limit:.9g} m, but at "
                f"q = {q:.6g} the origins are {reach:.9g} m apart."
            )
        if limit == math.inf and subject.is_given:
            raise JointError(f"origin_bound({start:.6g}, {end:.6g}) is infinite.")
    limit, swapped = _bound(subject.joint, a, b), _bound(subject.joint, b, a)
    if swapped != limit and not abs(swapped - limit) <= TOLERANCE * (1.0 + limit):
        raise JointError(
            f"origin_bound({a:.6g}, {b:.6g}) is {limit:.9g} m, but with the limits "
            f"swapped it is {swapped:.9g} m."
        )
    q, reach = _farthest(subject, low, high)
    limit = _bound(subject.joint, -math.inf, math.inf)
    if not limit >= reach * (1.0 - TOLERANCE):
        raise JointError(
            f"origin_bound(-inf, inf) is {limit:.9g} m, but at q = {q:.6g} the origins "
            f"are {reach:.9g} m apart."
        )


def _bound(joint: Joint, lower: float, upper: float) -> float:
    return float(joint.origin_bound(lower, upper))


def _farthest(subject: Subject, low: float, high: float) -> tuple[float, float]:
    """Return the coordinate of the farthest origin found in a range, and how far."""
    q = np.linspace(low, high, DENSE)
    distance = np.linalg.norm(subject.placements(q)[:, :3, 3], axis=1)
    distance = np.nan_to_num(distance, nan=0.0)
    k = int(distance.argmax())
    return float(q[k]), float(distance[k])


def speeds(subject: Subject) -> None:
    """Check that nothing moves or turns faster than the bounds, over any part.

    Limits may be given in either order, and may be infinite; over a part the bounds
    are not above those over the whole, but for what they may be loose.
    """
    low, high = subject.lower, subject.upper
    a, b = np.sort(subject.random.uniform(low, high, 2)).tolist()
    for start, end in ((low, high), (a, b)):
        _judge_speeds(subject, start, end, (start, end))
    _judge_speeds(subject, low, high, (-math.inf, math.inf))
    part, whole = (_speeds(subject.joint, *ends) for ends in ((a, b), (low, high)))
    swapped = _speeds(subject.joint, b, a)
    if not np.allclose(swapped, part, rtol=TOLERANCE, atol=TOLERANCE):
        raise JointError(
            f"speed_bounds({a:.6g}, {b:.6g}) is {row(part)}, but with the limits "
            f"swapped it is {row(swapped)}."
        )
    if (part > whole * (1.0 + LOOSENESS) + TOLERANCE).any():
        raise JointError(
            f"speed_bounds({a:.6g}, {b:.6g}) is {row(part)}, above {row(whole)}, that "
            f"of all between {low:.6g} and {high:.6g}."
        )


def _speeds(joint: Joint, lower: float, upper: float) -> Array:
    return np.array(joint.speed_bounds(lower, upper), dtype=np.float64)


def _judge_speeds(
    subject: Subject, low: float, high: float, limits: tuple[float, float]
) -> None:
    """Compare bounds between limits with the ways between neighbours on a grid."""
    linear, angular = _speeds(subject.joint, *limits)
    q = np.linspace(low, high, DENSE)
    X = subject.placements(q)
    step = (high - low) / (DENSE - 1)
    ways = np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1)
    turned = np.linalg.norm(np.diff(X[:, :3, :3], axis=0), axis=(1, 2))
    angles = 2.0 * np.arcsin(np.minimum(turned / math.sqrt(8.0), 1.0))
    call = f"speed_bounds({limits[0]:.6g}, {limits[1]:.6g})"
    for found, limit, verb, unit, size in (
        (ways, linear, "moves", "m", subject.size),
        (angles, angular, "turns", "rad", 1.0),
    ):
        k = int(np.nan_to_num(found, nan=0.0).argmax())
        slack = TOLERANCE * (1.0 + size)
        if found[k] > limit * step * (1.0 + TOLERANCE) + slack or math.isnan(limit):
            raise JointError(
                f"{call} says that M {verb} by no more than {limit:.9g} {unit} per "
                f"unit of q, but between q = {q[k]:.9g} and {q[k + 1]:.9g} it {verb} "
                f"by {found[k]:.6g} {unit}."
            )


def scaling(subject: Subject) -> None:
    """Check R'(q') = R(q) and p'(q') = f p(q), with q' = f q where q is a length.

    Factors that the joint's own rules refuse are left out.
    """
    joint = subject.joint
    if joint.scaled(1.0) != joint:
        raise JointError("scaled(1) is not equal to the joint.")
    X = subject.placements(subject.q)
    refusal: ScaleRefused | None = None
    is_tested = False
    for factor in FACTORS:
        try:
            scaled = joint.scaled(factor)
        except ScaleRefused as error:
            refusal = error
            continue
        is_tested = True
        if type(scaled) is not type(joint):
            raise JointError(f"scaled({factor:g}) is a {type(scaled).__name__}.")
        coordinate = factor if joint.unit.scales_with_length else 1.0
        expected = X.copy()
        expected[:, :3, 3] *= factor
        _compare(subject, scaled, factor, coordinate, expected)
        _compare_periods(joint, scaled, factor, coordinate)
        back = scaled.scaled(1.0 / factor)
        if not back.approx_equal(joint, TOLERANCE * (1.0 + subject.size)):
            raise JointError(
                f"scaled({factor:g}).scaled({1.0 / factor:g}) is not the joint again."
            )
    if refusal is not None and not is_tested:
        raise refusal


def _compare(
    subject: Subject, scaled: Joint, factor: float, coordinate: float, expected: Array
) -> None:
    for k, q in enumerate(map(float, subject.q)):
        actual = scaled.transform(coordinate * q).matrix()
        error = float(np.abs(actual - expected[k]).max())
        if not error <= TOLERANCE * (1.0 + float(np.abs(expected[k]).max())):
            raise JointError(
                f"scaled({factor:g}) at q = {coordinate * q:.6g} should have its "
                f"origin at {row(expected[k, :3, 3])} with the same axes as the joint "
                f"at q = {q:.6g}; it has it at {row(actual[:3, 3])}, and the poses "
                f"differ by {error:.3g}. Its unit is {subject.joint.unit.name}."
            )


def _compare_periods(
    joint: Joint, scaled: Joint, factor: float, coordinate: float
) -> None:
    before, after = joint.period, scaled.period
    if before is None or after is None:
        if before is not after:
            raise JointError(f"the period is {before}, that of scaled(2) {after}.")
    elif not math.isclose(after, coordinate * before, rel_tol=TOLERANCE):
        raise JointError(
            f"the period is {before:.9g}; that of scaled({factor:g}) should be "
            f"{coordinate * before:.9g} and is {after:.9g}."
        )


LAWS: dict[str, Callable[[Subject], None]] = {
    "bound": bound,
    "speeds": speeds,
    "scaling": scaling,
}
