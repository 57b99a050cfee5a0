"""Arms with given axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.model.limits import Limits

TAU = 2.0 * np.pi
# What programs of closed forms take for tolerances of 1e-6 m and 1e-6 rad.
ALLOWED = np.array([1e-12, 1e-12, 1e-9, 1e-9])


def arm_of_axes(
    kinds: str,
    axes: Sequence[Sequence[float]] | np.ndarray,
    points: Sequence[Sequence[float]] | np.ndarray,
    *,
    base: Pose | None = None,
    tool: Pose | None = None,
    limit: float | Sequence[float] = np.pi,
) -> Cell:
    """Return an arm whose links are all parallel at q = 0.

    Args:
        kinds: R for each joint that turns, P for each that slides.
        axes: Their directions, shape (n, 3).
        points: A point of each axis, shape (n, 3).
        base: Where the first axis stands.
        tool: Where the tool is, from the point of the last axis.
        limit: How far each joint goes to either side [m or rad].
    """
    links = [Link(name="base")]
    before = np.zeros(3)
    limits = np.broadcast_to(limit, len(kinds))
    rows = zip(kinds, np.array(axes), np.array(points), limits.tolist(), strict=True)
    for k, (kind, axis, point, most) in enumerate(rows):
        there = Pose.translation(*(point - before))
        if k == 0 and base is not None:
            there = base @ there
        make = arm.joints.Revolute if kind == "R" else arm.joints.Prismatic
        joint = make(precursor=there, axis=tuple(axis / np.linalg.norm(axis)))
        ends = Limits(lower=-most, upper=most)
        parent = links[-1].name
        links.append(Link(name=f"l{k}", parent=parent, joint=joint, limits=ends))
        before = point
    fixed = arm.joints.Fixed(precursor=tool or Pose.identity())
    links.append(Link(name="tool", parent=links[-1].name, joint=fixed))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def turned_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest difference of joint vectors, whole turns left out."""
    return np.abs((a - b + np.pi) % TAU - np.pi).max(axis=-1)


class ScaraForward(arm.Mechanism):
    """A SCARA as a mechanism of four coordinates, without an inverse."""

    upper: float
    fore: float
    units = (arm.RADIAN, arm.RADIAN, arm.METRE, arm.RADIAN)
    branches = ("left", "right")

    def forward(self, q):
        elbow = arm.Pose.rotation_z(q[0]) @ arm.Pose.translation(self.upper, 0, 0)
        wrist = arm.Pose.rotation_z(q[1]) @ arm.Pose.translation(self.fore, 0, q[2])
        return elbow @ wrist @ arm.Pose.rotation_z(q[3])
