"""Laws of a joint's forces: they are the velocities seen from the other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.spatial.twist import adjoint
from armillary.testing.laws import require_equal
from armillary.testing.subject import Subject

Array = npt.NDArray[np.float64]

MOST_SAMPLES: Final = 4


def torque(subject: Subject) -> None:
    """Check that joint force times rate is the power of the wrench."""
    for q in map(float, subject.q[:MOST_SAMPLES]):
        wrench = subject.random.normal(size=6)
        rate = float(subject.random.uniform(0.5, 2.0))
        joint_power = subject.joint.torque_to_exert(q, wrench.tolist()) * rate
        power = float(subject.joint.velocity(q, rate) @ wrench)
        require_equal(joint_power, power, f"torque_to_exert({q:.6g})", "the power")


def inertia(subject: Subject) -> None:
    """Check the force of a unit of acceleration, and the inertia seen through it.

    Through the joint nothing is felt of a motion along it; nothing is gained, and what
    is felt across the joint stays.
    """
    for q in map(float, subject.q[:MOST_SAMPLES]):
        root = subject.random.normal(size=(6, 6))
        matrix = root @ root.T + np.eye(6)
        S = subject.joint.velocity(q, 1.0)
        unit = subject.joint.unit_acceleration_torque(q, matrix)
        name = f"unit_acceleration_torque({q:.6g})"
        require_equal(unit, float(S @ matrix @ S), name, "S' I S")
        _check_articulated(subject, q, matrix, S)


def _check_articulated(subject: Subject, q: float, matrix: Array, S: Array) -> None:
    through = subject.joint.articulated_inertia(q, matrix)
    size = float(np.abs(through).max())
    name = f"articulated_inertia({q:.6g})"
    carry = np.array(adjoint(subject.joint.transform(q)), dtype=np.float64)
    whole = np.linalg.inv(carry).T @ matrix @ np.linalg.inv(carry)
    gained = float(np.linalg.eigvalsh(through - whole).max())
    felt = float(np.abs(through @ (carry @ S)).max())
    skew = float(np.abs(through - through.T).max())
    rank = np.linalg.matrix_rank(whole - through, tol=1e-7 * float(np.abs(whole).max()))
    if max(gained, felt, skew) > 1e-7 * (1.0 + size) or rank > 1:
        raise JointError(
            f"{name} is not I - I S S' I / (S' I S), carried to F: along the joint "
            f"{felt:.3g} is felt, {gained:.3g} is gained, and it is unsymmetric by "
            f"{skew:.3g}."
        )


LAWS: dict[str, Callable[[Subject], None]] = {"torque": torque, "inertia": inertia}
