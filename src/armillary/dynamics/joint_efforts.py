"""Forces in joints themselves: of motors, friction and springs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import add_to
from armillary.model.drive import Drive
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.spatial.vector import Number

__all__ = ["joint_dynamics", "joint_efforts"]


def joint_dynamics(bodies: Multibody) -> Iterator[tuple[Drive, JointDynamics]]:
    """Yield what moves each joint that has such forces, and how they depend on that."""
    tree = bodies.tree
    for link, drives in zip(tree.links, tree.drives, strict=True):
        if link.dynamics != NO_DYNAMICS:
            yield drives[0], link.dynamics


def joint_efforts(
    bodies: Multibody,
    rates: Mapping[int, Number],
    accelerations: Mapping[int, Number],
) -> dict[int, Number]:
    """Return the forces of coordinates that motors, friction and springs take.

    Args:
        bodies: In their configuration.
        rates: Of all coordinates that move.
        accelerations: Of all coordinates that move.
    """
    found: dict[int, Number] = {}
    for drive, dynamics in joint_dynamics(bodies):
        by, k = drive.multiplier, drive.of
        rate, acceleration = by * rates.get(k, 0.0), by * accelerations.get(k, 0.0)
        add_to(found, k, by * dynamics.effort(drive.at(bodies.q), rate, acceleration))
    return found
