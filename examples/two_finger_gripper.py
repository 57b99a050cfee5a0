"""A gripper whose fingers stay parallel: Robotiq's 2F-85, each finger a four-bar.

One motor swings both outer links. Each finger is carried by an outer and an inner link,
which are the long sides of a parallelogram.

The script builds the cell that comes with armillary as
`armillary.example("two_finger_gripper")`.

Source of the numbers: RobWork's model of the Robotiq 2F-85,
`robotiq_finger_control.xml`; its outer link of two parts, which a spring keeps in line,
is one here.

    python two_finger_gripper.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary.model.property import Property

OUTER, INNER = (0.0306, 0.04201), (0.0127, 0.04852)  # pivots on the base [m]
LENGTH = 0.05715  # of the links [m]
PAD = (-0.02577, 0.03402)  # of the finger, from its pivot on the outer link [m]
OPEN = np.pi / 2 - np.radians(41.2)  # inclination of the links at q = 0
SOURCE = "RobWork's model of the Robotiq 2F-85, robotiq_finger_control.xml"
CHOICE = "the outer link and its flange as one; the range of the motor"


def at(x, y):
    """Return the pose at a point of the plane of the fingers."""
    return arm.Pose.translation(x, y, 0)


def finger(side: str) -> tuple[list[arm.Link], arm.Closure]:
    """Return the links of the right or the left finger, and what closes them."""
    hinge = arm.joints.Revolute(axis=(0, 0, 1))
    mirror = arm.Pose.rotation_y(0.0 if side == "right" else np.pi)
    leaning = arm.Pose.rotation_z(OPEN)
    follows = arm.Coupling(of="right_outer") if side == "left" else None
    between = np.subtract(INNER, OUTER)
    pad = arm.Frame(name=f"{side}_pad", pose=at(*PAD), end_effector=True)
    links = [
        arm.Link(
            name=f"{side}_outer",
            parent="palm",
            joint=hinge.prepend(mirror @ at(*OUTER) @ leaning),
            limits=arm.Limits(lower=0, upper=np.radians(46)),
            coupling=follows,
        ),
        arm.Link(
            name=f"{side}_finger",
            parent=f"{side}_outer",
            joint=hinge.prepend(at(LENGTH, 0) @ leaning.inverse()),
            frames=[pad, arm.Frame(name=f"{side}_pin", pose=at(*between))],
            passive=True,
        ),
        arm.Link(
            name=f"{side}_inner",
            parent="palm",
            joint=hinge.prepend(mirror @ at(*INNER) @ leaning),
            frames=[arm.Frame(name=f"{side}_end", pose=at(LENGTH, 0))],
            passive=True,
        ),
    ]
    return links, arm.Closure(f"{side}_pin", f"{side}_end", position="xy")


def gripper() -> arm.Manipulator:
    """Return the gripper; q is how far the outer links have turned to close [rad]."""
    (right, one), (left, other) = finger("right"), finger("left")
    return arm.Manipulator(
        name="gripper",
        links=[arm.Link(name="palm"), *right, *left],
        loops=[one, other],
        postures=[
            arm.Posture(name="open", joints=["right_outer"], q=[0.0]),
            arm.Posture(name="closed", joints=["right_outer"], q=[np.radians(46)]),
        ],
        home="open",
        properties=[
            Property(name="source", text=SOURCE),
            Property(name="choice", text=CHOICE),
        ],
    )


def build() -> arm.Cell:
    """Return the cell."""
    text = "A gripper of two parallel fingers, each carried by a four-bar linkage."
    return arm.Cell(
        name="two_finger_gripper",
        manipulators=[gripper()],
        properties=[Property(name="description", text=text)],
    )


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])
    print(cell.mobility())
    assert cell.joint_names == ("right_outer",)

    (lower,), (upper,) = cell.limits
    q = np.linspace(lower, upper, 10_001)
    X = cell.fk("right_pad", relative_to="left_pad")(q[:, None])
    opening, turned = -X[:, 0, 3], X[:, :3, :3]
    print(f"open {1e3 * opening[0]:.2f} mm, closed {1e3 * opening[-1]:.2f} mm")

    # By hand: parallelograms turn no finger, and carry it around on a circle.
    expected = 2 * (OUTER[0] + PAD[0] + LENGTH * np.cos(OPEN + q))
    assert np.abs(opening - expected).max() < 1e-12
    assert np.isclose(opening[0], 0.085, atol=1e-4)  # as the name of the gripper says
    assert np.abs(turned - np.diag([-1, 1, -1])).max() < 1e-12

    # The motor's torque is the force of the fingers times this lever.
    lever = cell.jacobian("right_pad", relative_to="left_pad")(q[:, None])[:, 0, 0]
    assert np.abs(lever - 2 * LENGTH * np.sin(OPEN + q)).max() < 1e-12
    assert cell == arm.example("two_finger_gripper")
    print("the cell that was built is the cell that comes with armillary")
