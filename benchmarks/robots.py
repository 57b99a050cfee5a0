"""The robots of the benchmarks, as ours and as Pinocchio's."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm

SHARE = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data"
ROBOTS = SHARE / "robots"


@dataclass(frozen=True)
class Robot:
    """A robot in both libraries, with the same joints in the same order.

    Friction and motors are left out, which Pinocchio does not read.

    Attributes:
        path: Of the URDF.
        cell: Ours.
        joints: The joints that q holds.
        tip: The frame that is asked for.
        model: Pinocchio's, other joints locked.
        data: Its workspace.
    """

    path: Path
    cell: arm.Cell
    joints: list[str]
    tip: str
    model: Any
    data: Any

    @property
    def manipulator(self) -> arm.Manipulator:
        """Return the one that the cell has."""
        (found,) = self.cell.manipulators
        return found

    def random_q(self, count: int, seed: int = 0) -> np.ndarray:
        """Return joint vectors within limits, shape (count, n)."""
        lower, upper = self.model.lowerPositionLimit, self.model.upperPositionLimit
        span = np.clip(lower, -np.pi, None), np.clip(upper, None, np.pi)
        return np.random.default_rng(seed).uniform(*span, (count, len(self.joints)))


def urdf_files() -> list[Path]:
    """Return every URDF of example-robot-data."""
    return sorted(ROBOTS.rglob("*.urdf"))


def robot(path: str, tip: str, locked: tuple[str, ...] = ()) -> Robot:
    """Return a robot of example-robot-data with the joints that contain a text locked.

    Args:
        path: Of the URDF, below `robots`.
        tip: The frame that is asked for.
        locked: Parts of the names of joints that stay at zero.
    """
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(ROBOTS / path))
    lock = [
        k for k, name in enumerate(model.names) if k and any(t in name for t in locked)
    ]
    model = pin.buildReducedModel(model, lock, np.zeros(model.nq))
    assert model.nq == model.nv, "a continuous joint takes two numbers there"
    cell = arm.load(ROBOTS / path, packages={"example-robot-data": SHARE})
    cell = cell.replace(manipulators=[frictionless(m) for m in cell.manipulators])
    joints = list(model.names)[1:]
    return Robot(ROBOTS / path, cell, joints, tip, model, model.createData())


def frictionless(manipulator: arm.Manipulator) -> arm.Manipulator:
    """Return a manipulator without friction, springs and motors."""
    links = [link.replace(dynamics=arm.JointDynamics()) for link in manipulator.links]
    return manipulator.replace(links=links)


def panda() -> Robot:
    """Return the Panda arm, 7 joints, hand left out."""
    return robot("panda_description/urdf/panda.urdf", "panda_link8", ("finger",))


def ur5() -> Robot:
    """Return the UR5 arm, 6 joints."""
    return robot("ur_description/urdf/ur5_robot.urdf", "tool0")


def talos() -> Robot:
    """Return the Talos humanoid with 32 joints, base fixed."""
    return robot("talos_data/robots/talos_reduced.urdf", "gripper_left_base_link")
