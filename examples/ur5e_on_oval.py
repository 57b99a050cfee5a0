"""Build an arm from its data sheet, put it on a track, and save the cell.

The result is the cell that comes with armillary as `armillary.example("ur5e_on_oval")`.

Sources of the numbers:
- Universal Robots, "DH parameters for calculations of kinematics and dynamics", UR5e:
  a, d and alpha of Denavit and Hartenberg in the standard order (Paul's), in metres.
- Universal Robots, UR5e technical details: every joint turns -360 to 360 degrees, at no
  more than 180 degrees per second.
- The track is made up: straights of 3 m, bends of 1 m radius, at most 2 m/s.

    python ur5e_on_oval.py [FILE]
"""

from __future__ import annotations

import math
import sys

import armillary as arm

QUARTER = math.pi / 2

#         joint            d [m]    a [m]    alpha [rad]
TABLE = [
    ("shoulder_pan", 0.1625, 0.0, QUARTER),
    ("shoulder_lift", 0.0, -0.425, 0.0),
    ("elbow", 0.0, -0.3922, 0.0),
    ("wrist_1", 0.1333, 0.0, QUARTER),
    ("wrist_2", 0.0997, 0.0, -QUARTER),
    ("wrist_3", 0.0996, 0.0, 0.0),
]
LINKS = ["shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3"]
TURN = 2 * math.pi


def ur5e() -> arm.Manipulator:
    """The arm: a base, six links, and a tool frame at the flange."""
    limits = arm.Limits(lower=-TURN, upper=TURN, velocity=math.pi)
    tool = arm.Frame(name="tool0", end_effector=True)
    links = [arm.Link(name="base")]
    for name, (joint, d, a, alpha) in zip(LINKS, TABLE, strict=True):
        links.append(
            arm.Link(
                name=name,
                parent=links[-1].name,
                joint=arm.joints.PaulRevolute(d=d, a=a, alpha=alpha),
                joint_name=joint,
                limits=limits,
                frames=(tool,) if name == LINKS[-1] else (),
            )
        )
    return arm.Manipulator(name="ur5e", links=links)


def track() -> arm.Manipulator:
    """The track: a rail, and a cart with a plate 0.5 m above it."""
    plate = arm.Frame(name="plate", pose=arm.Pose.translation(0, 0, 0.5))
    return arm.Manipulator(
        name="track",
        links=[
            arm.Link(name="rail"),
            arm.Link(
                name="cart",
                parent="rail",
                joint=arm.joints.OvalTrack(straight=3.0, radius=1.0),
                limits=arm.Limits(velocity=2.0),
                frames=(plate,),
            ),
        ],
    )


def build() -> arm.Cell:
    """The arm on the plate of the cart."""
    return arm.Cell(
        name="ur5e_on_oval",
        manipulators=[track(), ur5e()],
        mounts=[arm.Mount(manipulator="ur5e", on="track/plate")],
    )


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])

    # The flange of the stretched arm, in its base, as the table's sums say.
    X = cell.pose("tool0", cell.home, relative_to="ur5e/base")
    expected = [-0.425 - 0.3922, -0.1333 - 0.0996, 0.1625 - 0.0997]
    assert max(abs(X[:3, 3] - expected)) < 1e-12, X
    assert cell == arm.example("ur5e_on_oval")
    print("the cell that was built is the cell that comes with armillary")
