"""Laws of a joint's size: bounds hold, and a scaled joint moves a scaled path."""

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


LAWS: dict[str, Callable[[Subject], None]] = {"bound": bound, "scaling": scaling}
