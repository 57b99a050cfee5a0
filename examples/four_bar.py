"""A four-bar linkage that draws a straight line: Hoecken's.

Its sides are as 1 (crank), 2 (ground), 2.5 (rocker) and 2.5 (coupler), and the coupler
goes on for another 2.5; see K. Hoecken, "Steigerung der Wirtschaftlichkeit durch
zweckmaessige Anwendung der Getriebelehre", Werkstattstechnik, 1930. While the crank is
on the far side from the rocker, the end of the coupler moves along a straight line.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

UNIT = 0.1  # [m]
CRANK, GROUND, SIDE = 1 * UNIT, 2 * UNIT, 2.5 * UNIT


def hinge(x):
    """Return a joint about z at a distance along x of the link before it."""
    return arm.joints.Revolute(axis=(0, 0, 1), precursor=arm.Pose.translation(x, 0, 0))


def along(name, x):
    """Return a frame at a distance along x of its link."""
    return arm.Frame(name=name, pose=arm.Pose.translation(x, 0, 0))


# A tree of links, and what closes it. Joints that follow are marked as passive, and
# the posture says how the linkage is assembled; it need not be exact.
ends = [along("pin", SIDE), along("tip", 2 * SIDE)]
links = [
    arm.Link(name="ground"),
    arm.Link(name="crank", parent="ground", joint=hinge(0)),
    arm.Link(
        name="coupler", parent="crank", joint=hinge(CRANK), frames=ends, passive=True
    ),
    arm.Link(
        name="rocker",
        parent="ground",
        joint=hinge(GROUND),
        frames=[along("end", SIDE)],
        passive=True,
    ),
]
hoecken = arm.Manipulator(
    name="hoecken",
    links=links,
    loops=[arm.Closure("pin", "end", position="xy")],
    postures=[arm.Posture(name="home", joints=["coupler", "rocker"], q=[1.2, 1.9])],
    home="home",
)
cell = arm.Cell(manipulators=[hoecken])
print(cell.mobility())

# The crank is the only joint of q; everything else follows from it.
q = np.linspace(0, 2 * np.pi, 100_000)
fk, velocity = cell.fk("tip"), cell.jacobian("tip")
tip = fk(q[:, None])[:, :2, 3]
straight = np.abs(q - np.pi) <= np.pi / 2
travel, off = np.ptp(tip[straight, 0]), np.ptp(tip[straight, 1])
print(f"straight to {1e3 * off:.2f} mm over {1e3 * travel:.0f} mm of travel")

# By hand: the pin is where two circles meet, and the tip twice as far from the crank.
elbow = CRANK * np.stack([np.cos(q), np.sin(q)], axis=1)
apart = np.array([GROUND, 0.0]) - elbow
square = (apart**2).sum(axis=1, keepdims=True)
left = np.stack([-apart[:, 1], apart[:, 0]], axis=1)
expected = elbow + apart + 2 * left * np.sqrt(SIDE**2 / square - 0.25)
assert np.abs(tip - expected).max() < 1e-12
assert np.isclose(travel, 4 * UNIT)
assert off < 0.006 * travel
assert np.isclose(fk([np.pi / 2])[1, 3], 4 * UNIT)

# The rate of the tip is that of the path just computed.
rate = velocity(q[:, None])[:, :2, 0]
assert np.abs(rate - np.gradient(expected, q, axis=0, edge_order=2)).max() < 1e-7
