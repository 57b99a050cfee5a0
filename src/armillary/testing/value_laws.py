"""Laws of a joint as a value: equality, near equality, copies, saving, precursors."""

from __future__ import annotations

import copy
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
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import largest
from armillary.testing.laws import TOLERANCE
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


LAWS: dict[str, Callable[[Subject], None]] = {
    "equality": equality,
    "nearness": nearness,
    "copies": copies,
    "saving": saving,
    "precursors": precursors,
}


def _size(X: Pose) -> float:
    return 1.0 + float(largest(X.position))
