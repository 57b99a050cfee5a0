"""The check of a joint: every law of the joint contract, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final, cast

import numpy as np

from armillary.errors import JointError, quote
from armillary.model.joint import Joint
from armillary.testing.laws import broken_laws
from armillary.testing.motion_laws import FORCE_LAWS, MOTION_LAWS
from armillary.testing.subject import Subject, subject_of
from armillary.testing.value_laws import SIZE_LAWS, VALUE_LAWS, native_round_trip

LAWS: Final[dict[str, Callable[[Subject], None]]] = {
    **MOTION_LAWS,
    **FORCE_LAWS,
    **SIZE_LAWS,
    **VALUE_LAWS,
}
"""Every law of joints by its name, in the order in which they are checked."""


def check_joint(
    joint: Joint,
    *,
    lower: float | None = None,
    upper: float | None = None,
    samples: int = 24,
    seed: int = 0,
    round_trip: Callable[[Joint], Joint] = native_round_trip,
) -> None:
    """Check that a joint obeys the joint contract.

    Its poses are rigid and continuous, of floats as of traced scalars; velocity and
    acceleration are those of the pose, written in the outer frame, at special points
    too; a closed form of the subspace agrees with it; bounds hold; it scales; it is
    equal to its copies, nearly equal to none with another parameter, and survives
    pickling and saving.

    Args:
        joint: The joint; parameters that are zero leave laws untested.
        lower: Lowest coordinate to test [unit of the joint]; by default one at which
            all of the motion shows.
        upper: Highest coordinate to test [unit of the joint].
        samples: Number of coordinates to test closely.
        seed: Seed of the random numbers.
        round_trip: Saves a joint and returns what is loaded.

    Raises:
        JointError: It breaks a law. The message names every broken law, the coordinate
            and the numbers.
    """
    if not isinstance(cast(object, joint), Joint):
        raise JointError(
            "check_joint takes a joint, such as Revolute(axis=(0, 0, 1)), not "
            f"{quote(joint)}."
        )
    count = len(joint.input_units)
    if count > 1:
        raise JointError(
            f"{type(joint).__name__} is a mechanism of {count} coordinates, and "
            "check_joint checks joints of one. Check its inverse by check_inverse, if "
            "it has one, and compare cell.jacobian(frame) of a cell that it is in with "
            "differences of cell.fk(frame)."
        )
    random = np.random.default_rng(seed)
    with warnings.catch_warnings():  # a law says the same
        warnings.filterwarnings("ignore", message=".* compares with == here")
        subject = subject_of(joint, lower, upper, samples, random, round_trip)
        faults = broken_laws(type(joint).__name__, "joints", LAWS, subject)
    if faults:
        raise JointError(faults)
