"""Laws of a joint as a value: equality, near equality, copies, saving, precursors."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, JointError
from armillary.formats.records import joint_of, joint_record
from armillary.model.joint import Joint
from armillary.model.parameters import approx_equal, nested_in
from armillary.model.scaling import ScaleRefused
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import largest
from armillary.testing.laws import TOLERANCE, row
from armillary.testing.samples import random_pose
from armillary.testing.subject import Subject

Array = npt.NDArray[np.float64]

CHANGE: Final = 1e-3
MOST_VARIANTS: Final = 3


def equality(subject: Subject) -> None:
    """Check that equal parameters make equal joints, and other ones do not."""
    joint = subject.joint
    twin = msgspec.structs.replace(joint)
    if twin != joint or hash(twin) != hash(joint):
        raise JointError("a joint with the same parameters is not equal to it.")
    if joint == object() or not joint.approx_equal(twin, 0.0):
        raise JointError("it equals something else, or does not nearly equal itself.")
    for name, changed in variants(joint):
        if changed == joint:
            raise JointError(f"it is equal to one with another '{name}'.")
        if hash(changed) == hash(joint) and hash(changed) == 0:
            raise JointError("its hash does not depend on its parameters.")


def nearness(subject: Subject) -> None:
    """Check that `approx_equal` feels every parameter, by as much as it differs."""
    joint = subject.joint
    for name, changed in variants(joint):
        before, after = getattr(joint, name), getattr(changed, name)
        if approx_equal(before, after, 1e3):
            step = _difference(before, after)
            close, far = 2.0 * step, 0.5 * step
            if joint.approx_equal(changed, far) or changed.approx_equal(joint, far):
                raise JointError(
                    f"approx_equal(..., {far:.3g}) does not see that '{name}' differs "
                    f"by {step:.3g}."
                )
            if not joint.approx_equal(changed, close):
                raise JointError(
                    f"approx_equal(..., {close:.3g}) is False, yet '{name}' differs by "
                    f"no more than {step:.3g}."
                )
        elif joint.approx_equal(changed, 1e3):
            raise JointError(f"approx_equal does not see another '{name}'.")


def variants(joint: Joint) -> Iterator[tuple[str, Joint]]:
    """Yield joints that differ in one parameter, with its name, where rules allow."""
    for name in joint.__struct_fields__:
        yield from islice(_variants_of(joint, name), MOST_VARIANTS)


def _variants_of(joint: Joint, name: str) -> Iterator[tuple[str, Joint]]:
    for value in _changes(getattr(joint, name)):
        try:
            changed = msgspec.structs.replace(joint, **{name: value})
        except ArmillaryError:
            continue
        if getattr(changed, name) != getattr(joint, name):  # it was not brought back
            yield name, changed


def _changes(value: Any) -> Iterator[Any]:
    """Yield values near to one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value + CHANGE * (1.0 + abs(value))
        yield value - CHANGE * (1.0 + abs(value))
    elif isinstance(value, Pose):
        yield value @ Pose.translation(CHANGE, 0.0, 0.0)
        yield value @ Pose.rotation_x(CHANGE)
    elif isinstance(value, Joint):
        yield from (changed for _, changed in variants(value))
    elif isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        for k, item in enumerate(items):
            for other in _changes(item):
                yield (*items[:k], other, *items[k + 1 :])


def _difference(a: Any, b: Any) -> float:
    """Return the largest difference of the numbers in two like parameters."""
    if isinstance(a, Pose):
        return max(abs(x - y) for x, y in zip(a.entries, b.entries, strict=True))
    if isinstance(a, tuple):
        pairs = zip(cast(tuple[Any, ...], a), b, strict=True)
        return max((_difference(x, y) for x, y in pairs), default=0.0)
    if isinstance(a, Joint):
        names = a.__struct_fields__
        return max(_difference(getattr(a, n), getattr(b, n)) for n in names)
    return float(abs(a - b)) if isinstance(a, (int, float)) else 0.0


def copies(subject: Subject) -> None:
    """Check that copies and pickles are equal and move alike.

    The pickle of a class that is defined within a function cannot be loaded; it is left
    out then.
    """
    joint = subject.joint
    made: list[tuple[str, Any]] = [
        ("copy.copy", copy.copy(joint)),
        ("copy.deepcopy", copy.deepcopy(joint)),
    ]
    if "<locals>" not in type(joint).__qualname__:
        made.append(("a pickle", pickle.loads(pickle.dumps(joint))))
    for name, other in made:
        _check_twin(subject, other, name)


def saving(subject: Subject) -> None:
    """Check that a saved and loaded joint is equal and moves alike."""
    _check_twin(subject, subject.round_trip(subject.joint), "what was saved and loaded")


def native_round_trip(joint: Joint) -> Joint:
    """Save a joint as a native file holds it, and load it again.

    Raises:
        ArmillaryError: It cannot be saved or loaded.
        JointError: A second saving gives another text.
    """
    text = _saved(joint)
    joints: list[Joint] = [joint, *nested_in(joint)]
    kinds = {each.tag: type(each) for each in joints}
    loaded = joint_of(msgspec.json.decode(text), kinds)
    again = _saved(loaded)
    if again != text:
        raise JointError(
            f"it is saved as {text.decode()}, then loaded and saved as "
            f"{again.decode()}."
        )
    return loaded


def _saved(joint: Joint) -> bytes:
    return msgspec.json.encode(joint_record(joint))


def _check_twin(subject: Subject, other: Joint, name: str) -> None:
    if type(other) is not type(subject.joint) or other != subject.joint:
        raise JointError(f"{name} is {other!r}, which is not equal to the joint.")
    q = float(subject.q[0])
    if other.transform(q) != subject.joint.transform(q):
        raise JointError(f"{name} is equal, but moves otherwise at q = {q:.6g}.")


def precursors(subject: Subject) -> None:
    """Check prepend(X): X X_FM(q), and offset_inboard(X): precursor X pose(q)."""
    joint, q = subject.joint, float(subject.q[0])
    X = random_pose(subject.random)
    moved = joint.motion.pose(q)
    pairs = (
        ("prepend(X)", joint.prepend(X), X @ joint.transform(q)),
        ("offset_inboard(X)", joint.offset_inboard(X), joint.precursor @ X @ moved),
    )
    for name, changed, expected in pairs:
        if not changed.transform(q).approx_equal(expected, TOLERANCE * _size(expected)):
            raise JointError(
                f"{name} at q = {q:.6g} places the origin at "
                f"{changed.transform(q).position}, not at {expected.position}."
            )
    if joint.prepend(IDENTITY) != joint or joint.offset_inboard(IDENTITY) != joint:
        raise JointError("prepend or offset_inboard of the identity changes the joint.")


VALUE_LAWS: dict[str, Callable[[Subject], None]] = {
    "equality": equality,
    "nearness": nearness,
    "copies": copies,
    "saving": saving,
    "precursors": precursors,
}


def _size(X: Pose) -> float:
    return 1.0 + float(largest(X.position))


# sizes


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
    for measured, limit, verb, unit, size in (
        (ways, linear, "moves", "m", subject.size),
        (angles, angular, "turns", "rad", 1.0),
    ):
        k = int(np.nan_to_num(measured, nan=0.0).argmax())
        slack = TOLERANCE * (1.0 + size)
        if measured[k] > limit * step * (1.0 + TOLERANCE) + slack or math.isnan(limit):
            raise JointError(
                f"{call} says that M {verb} by no more than {limit:.9g} {unit} per "
                f"unit of q, but between q = {q[k]:.9g} and {q[k + 1]:.9g} it {verb} "
                f"by {measured[k]:.6g} {unit}."
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


SIZE_LAWS: dict[str, Callable[[Subject], None]] = {
    "bound": bound,
    "speeds": speeds,
    "scaling": scaling,
}
