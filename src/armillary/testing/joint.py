"""The check of a joint: every law of the joint contract, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from armillary.errors import ArmillaryError, JointError
from armillary.model.joint import Joint
from armillary.testing import force_laws, motion_laws, size_laws, value_laws
from armillary.testing.saving import native_round_trip
from armillary.testing.subject import Subject, subject_of

LAWS: Final[dict[str, Callable[[Subject], None]]] = {
    **motion_laws.LAWS,
    **force_laws.LAWS,
    **size_laws.LAWS,
    **value_laws.LAWS,
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
    acceleration are those of the pose, written in the outer frame; a closed form of the
    subspace agrees with it; bounds hold; it scales; it is equal to its copies, nearly
    equal to none with another parameter, and survives pickling and saving.

    Args:
        joint: The joint; parameters that are zero leave laws untested.
        lower: Least coordinate to look at [unit]; a likely one if None.
        upper: Greatest coordinate to look at [unit].
        samples: How many coordinates to look at closely.
        seed: Of the random numbers.
        round_trip: Saves a joint and returns what is loaded.

    Raises:
        JointError: It breaks a law. The message names every broken law, the coordinate
            and the numbers.
    """
    random = np.random.default_rng(seed)
    subject = subject_of(joint, lower, upper, samples, random, round_trip)
    broken = [
        f"  {name}: {fault}"
        for name, law in LAWS.items()
        if (fault := _fault(law, subject)) is not None
    ]
    if broken:
        laws = "a law" if len(broken) == 1 else f"{len(broken)} laws"
        lines = "\n".join(broken)
        raise JointError(f"{type(joint).__name__} breaks {laws} of joints.\n{lines}")


def _fault(law: Callable[[Subject], None], subject: Subject) -> str | None:
    """Return what is wrong, None where the law holds."""
    try:
        law(subject)
    except ArmillaryError as error:
        return str(error)
    except Exception as error:  # whatever the user's own code raises is a fault
        return f"it raised {type(error).__name__}: {error}"
    return None
