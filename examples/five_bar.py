"""A five-bar SCARA: two motors at the base, two arms that share a tool.

The script builds the cell that comes with armillary as `armillary.example("five_bar")`.
Its lengths are made up: two equal arms, whose upper halves are a little shorter.

    python five_bar.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary.model.property import Property

APART, UPPER, FORE = 0.2, 0.25, 0.3  # [m]
RIGHT, LEFT = np.radians([-30, 110]), np.radians([70, 210])  # ranges
SOURCE = "made up: two motors 0.2 m apart, upper arms of 0.25 m, forearms of 0.3 m"


def hinge(x):
    """Return a joint about z at a distance along x of the link before it."""
    return arm.joints.Revolute(axis=(0, 0, 1), precursor=arm.Pose.translation(x, 0, 0))


def five_bar() -> arm.Manipulator:
    """Return a five-bar: four links on two motors, closed at the tool."""
    ranges = [arm.Limits(lower=low, upper=high) for low, high in (RIGHT, LEFT)]
    end = arm.Pose.translation(FORE, 0, 0)
    tool = arm.Frame(name="tool", pose=end, end_effector=True)
    tip = arm.Frame(name="tip", pose=end)
    right, left = hinge(APART / 2), hinge(-APART / 2)
    links = [
        arm.Link(name="base"),
        arm.Link(name="right", parent="base", joint=right, limits=ranges[0]),
        arm.Link(name="left", parent="base", joint=left, limits=ranges[1]),
        arm.Link(
            name="fore_right",
            parent="right",
            joint=hinge(UPPER),
            frames=[tool],
            passive=True,
        ),
        arm.Link(
            name="fore_left",
            parent="left",
            joint=hinge(UPPER),
            frames=[tip],
            passive=True,
        ),
    ]
    q = np.radians([60, 120, 60, -60])
    return arm.Manipulator(
        name="five_bar",
        links=links,
        loops=[arm.Closure("tool", "tip", position="xy")],
        postures=[
            arm.Posture(name="home", joints=[each.name for each in links[1:]], q=q)
        ],
        home="home",
        properties=[Property(name="source", text=SOURCE)],
    )


def build() -> arm.Cell:
    """Return the cell."""
    text = "A five-bar SCARA: two driven arms that share a tool."
    return arm.Cell(
        name="five_bar",
        manipulators=[five_bar()],
        properties=[Property(name="description", text=text)],
    )


def tool_by_hand(q, side=1.0):
    """Return where two circles about the elbows meet, on one side of their line."""
    right = UPPER * np.stack([np.cos(q[:, 0]), np.sin(q[:, 0])], 1) + [APART / 2, 0]
    left = UPPER * np.stack([np.cos(q[:, 1]), np.sin(q[:, 1])], 1) - [APART / 2, 0]
    half = (left - right) / 2
    square = (half**2).sum(axis=1, keepdims=True)
    across = np.stack([half[:, 1], -half[:, 0]], 1)
    with np.errstate(invalid="ignore"):
        return right + half + side * across * np.sqrt(FORE**2 / square - 1)


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])
    assert cell.joint_names == ("right", "left")

    # A million tool points, NaN where the forearms cannot meet, and their Jacobians.
    lower, upper = cell.limits
    Q = np.random.default_rng(0).uniform(lower, upper, (1_000_000, 2))
    X = cell.fk("tool")(Q)
    J = cell.jacobian("tool")(Q[:1000])
    meet = ~np.isnan(X[:, 0, 3])
    print(f"{meet.sum():,} tool points; the forearms do not meet at {(~meet).sum():,}")

    # The other way to assemble it has the tool on the other side of the elbows.
    for name, state in cell.branches().items():
        print(name, cell.pose("tool", state)[:2, 3])

    # By hand: the tool is where two circles meet, on one side or on the other.
    expected = tool_by_hand(Q)
    assert (np.isnan(expected[:, 0]) == ~meet).mean() > 1 - 1e-5
    on_both = meet & ~np.isnan(expected[:, 0])
    error = np.abs(X[:, :2, 3] - expected)[on_both].max(axis=1)
    print(f"largest difference {error.max():.1e} m")
    assert (error < 1e-9).mean() > 1 - 1e-5

    # Its rates: both forearms stay as long, so u . (v - v of the elbow) = 0.
    q, tool = Q[:1000], expected[:1000]
    for k, foot in enumerate((APART / 2, -APART / 2)):
        direction = np.stack([np.cos(q[:, k]), np.sin(q[:, k])], 1)
        rod = tool - UPPER * direction - [foot, 0]
        speed = UPPER * np.stack([-direction[:, 1], direction[:, 0]], 1)
        seen = np.zeros((1000, 2))
        seen[:, k] = (rod * speed).sum(axis=1)
        along = np.einsum("ni,nij->nj", rod, J[:, :2])
        assert (
            np.nanmax(
                np.abs(along - seen) / (1 + np.abs(J[:, :2]).max((1, 2)))[:, None]
            )
            < 1e-9
        )
    assert cell == arm.example("five_bar")
    print("the cell that was built is the cell that comes with armillary")
