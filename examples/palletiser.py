"""A palletiser: its forearm driven through a parallelogram, its flange kept level.

Both motors of the arm are at the shoulder. A crank and a rod parallel to the upper arm
turn the forearm; two more rods, joined by a triangle at the elbow, keep the wrist
level.

The script builds the cell that comes with armillary as
`armillary.example("palletiser")`.

Sources of the numbers: lengths of the arm and poses to compare with are those of ABB's
IRB 760 as the component of that robot in Visual Components has them: 814.5, 1280, 1350,
290 and -270 mm, 300 mm from the axis to the shoulder. The sizes of crank and triangle
and the ranges are a choice.

    python palletiser.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary.model.property import Property

HEIGHT, UPPER, FORE = 0.8145, 1.28, 1.35  # [m]
OFFSET, WRIST, DROP = 0.3, 0.29, 0.27
CRANK, TRIANGLE = 0.35, 0.3
SOURCE = (
    "ABB IRB 760 in Visual Components: LinkLength 814.5, 1280, 1350, 290, -270, "
    "JointOffset 300 mm"
)
CHOICE = "crank 350 mm and triangle 300 mm; ranges of joints"

AXES = ("turret", "upper_arm", "crank", "spindle")
UP, ACROSS = arm.joints.Revolute(axis=(0, 0, 1)), arm.joints.Revolute(axis=(0, 1, 0))


def at(x, z):
    """Return the pose at a point of the plane of the arm."""
    return arm.Pose.translation(x, 0, z)


def within(lower, upper):
    """Return limits in degrees."""
    return arm.Limits(lower=np.radians(lower), upper=np.radians(upper))


def palletiser() -> arm.Manipulator:
    """Return the arm; the upper arm is upright and the forearm level at 0."""
    flange = arm.Frame(name="flange", end_effector=True)
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="turret",
            parent="base",
            joint=UP,
            limits=within(-180, 180),
            frames=[arm.Frame(name="stay_foot", pose=at(OFFSET - TRIANGLE, HEIGHT))],
        ),
        arm.Link(
            name="upper_arm",
            parent="turret",
            joint=ACROSS.prepend(at(OFFSET, HEIGHT)),
            limits=within(-42, 80),
        ),
        arm.Link(
            name="crank",
            parent="turret",
            joint=ACROSS.prepend(at(OFFSET, HEIGHT)),
            limits=within(-20, 80),
            frames=[arm.Frame(name="crank_pin", pose=at(-CRANK, 0))],
        ),
        arm.Link(
            name="forearm",
            parent="upper_arm",
            joint=ACROSS.prepend(at(0, UPPER)),
            limits=within(-75, 75),  # the parallelogram is flat at 90 degrees
            frames=[arm.Frame(name="tail", pose=at(-CRANK, 0))],
            passive=True,
        ),
        arm.Link(
            name="triangle",
            parent="upper_arm",
            joint=ACROSS.prepend(at(0, UPPER)),
            frames=[
                arm.Frame(name="stay_end", pose=at(-TRIANGLE, 0)),
                arm.Frame(name="link_foot", pose=at(0, TRIANGLE)),
            ],
            passive=True,
        ),
        arm.Link(
            name="wrist",
            parent="forearm",
            joint=ACROSS.prepend(at(FORE, 0)),
            frames=[arm.Frame(name="link_end", pose=at(0, TRIANGLE))],
            passive=True,
        ),
        arm.Link(
            name="spindle",
            parent="wrist",
            joint=UP.prepend(at(WRIST, -DROP) @ arm.Pose.rotation_y(np.pi)),
            limits=within(-300, 300),
            frames=[flange],
        ),
    ]
    rods = [
        arm.Rod("crank_pin", "tail", length=UPPER, name="drive"),
        arm.Rod("stay_foot", "stay_end", length=UPPER, name="stay"),
        arm.Rod("link_foot", "link_end", length=FORE, name="link"),
    ]
    # The forearm turns against the upper arm by the difference of their motors' joints:
    # its limits couple these, and where joints are drawn, planned or controlled, a row
    # of q keeps what a passive joint could only refuse.
    elbow = arm.CoupledLimit(
        joints={"crank": 1, "upper_arm": -1},
        lower=np.radians(-75),
        upper=np.radians(75),
        name="elbow",
    )
    zero = arm.Posture(name="zero", joints=["upper_arm", "crank"], q=[0, 0])
    return arm.Manipulator(
        name="palletiser",
        links=links,
        loops=rods,
        coupled_limits=[elbow],
        postures=[zero],
        home="zero",
        properties=[
            Property(name="source", text=SOURCE),
            Property(name="choice", text=CHOICE),
        ],
    )


def build() -> arm.Cell:
    """Return the cell."""
    text = "A palletiser of four axes, with the rods that drive it and keep it level."
    return arm.Cell(
        name="palletiser",
        manipulators=[palletiser()],
        properties=[Property(name="description", text=text)],
    )


def flange_by_hand(q):
    """Return poses of the flange, as of an arm whose inclinations are its joints."""
    turn, upper, fore, spin = np.moveaxis(q, -1, 0)
    reach = OFFSET + UPPER * np.sin(upper) + FORE * np.cos(fore) + WRIST
    X = np.zeros((*turn.shape, 4, 4))
    c, s = np.cos(turn - spin), np.sin(turn - spin)
    X[..., 0, 0], X[..., 0, 1], X[..., 1, 0], X[..., 1, 1] = -c, -s, -s, c
    X[..., 2, 2], X[..., 3, 3] = -1, 1
    X[..., 0, 3], X[..., 1, 3] = reach * np.cos(turn), reach * np.sin(turn)
    X[..., 2, 3] = HEIGHT + UPPER * np.cos(upper) - FORE * np.sin(fore) - DROP
    return X


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])
    print(cell.mobility())
    fk = cell.fk("flange", joints=AXES)

    # As computed by others from the same lengths, in mm and degrees.
    assert np.allclose(1e3 * fk(np.zeros(4))[:3, 3], [1940, 0, 1824.5])
    place = 1e3 * fk(np.radians([30, 20, 40, 50]))[:3, 3]
    assert np.allclose(place, [1785.6974, 1030.9729, 879.5433], atol=5e-5)

    # By hand, everywhere within the limits: parallelograms copy directions.
    Q = cell.samples(100_000, joints=AXES).rows(0, 100_000)
    assert (np.abs(Q[:, 2] - Q[:, 1]) <= np.radians(75)).all()
    X = fk(Q)
    assert np.abs(X - flange_by_hand(Q)).max() < 1e-9
    print(f"largest difference {np.abs(X - flange_by_hand(Q)).max():.1e}")

    # The flange never tilts, and the crank does not turn it about the vertical.
    J = cell.jacobian("flange", joints=AXES)(Q)
    assert np.abs(J[:, 3:5]).max() < 1e-9
    assert np.allclose(J[:, 5], [1, 0, 0, -1])
    assert cell == arm.example("palletiser")
    print("the cell that was built is the cell that comes with armillary")
