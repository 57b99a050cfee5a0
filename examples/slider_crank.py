"""A slider-crank: the piston of an engine, its dead points, and a cam of one number.

The numbers are those of Chevrolet's small-block engine of 350 cubic inches: a stroke
of 3.48 inches and rods of 5.7 inches.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

INCH = 0.0254  # [m]
CRANK, ROD = 3.48 / 2 * INCH, 5.7 * INCH
hinge, slide = arm.joints.Revolute(axis=(0, 0, 1)), arm.joints.Prismatic(axis=(1, 0, 0))

links = [
    arm.Link(name="block"),
    arm.Link(name="crank", parent="block", joint=hinge),
    arm.Link(
        name="rod",
        parent="crank",
        joint=hinge.prepend(arm.Pose.translation(CRANK, 0, 0)),
        frames=[arm.Frame(name="pin", pose=arm.Pose.translation(ROD, 0, 0))],
        passive=True,
    ),
    arm.Link(name="piston", parent="block", joint=slide, passive=True),
]
top = arm.Posture(name="top", joints=["piston"], q=[CRANK + ROD])
engine = arm.Manipulator(
    name="engine",
    links=links,
    loops=[arm.Closure("piston", "pin", position="xy")],
    postures=[top],
    home="top",
)
cell = arm.Cell(manipulators=[engine])

q = np.linspace(-np.pi, np.pi, 10_001)
x = cell.fk("piston")(q[:, None])[:, 0, 3]
rate = cell.jacobian("piston")(q[:, None])[:, 0, 0]
jerky = cell.bias_acceleration("piston")(q[:, None], np.ones((len(q), 1)))[:, 0]
fastest = abs(rate).argmax()
print(
    f"stroke {1e3 * np.ptp(x):.1f} mm, fastest at {np.degrees(q[fastest]):.1f} degrees"
)

# By hand: x = r cos q + sqrt(l^2 - r^2 sin^2 q), and its derivatives.
root = np.sqrt(ROD**2 - (CRANK * np.sin(q)) ** 2)
slope = -(CRANK**2) * np.sin(q) * np.cos(q) / root
bend = -(CRANK**2) * np.cos(2 * q) / root - slope**2 / root
assert np.abs(x - (CRANK * np.cos(q) + root)).max() < 1e-14
assert np.abs(rate - (-CRANK * np.sin(q) + slope)).max() < 1e-13
assert np.abs(jerky - (-CRANK * np.cos(q) + bend)).max() < 1e-12
assert np.isclose(np.ptp(x), 3.48 * INCH)

# The other way about, the piston drives the crank: a joint of one number, which is at
# a dead point where the crank and the rod are in line.
driven = arm.joints.FourBarSlider(nominal=ROD, lever=CRANK, opposite=ROD, pivoted=False)
for angle, at in zip(q[5_001:-1:50], x[5_001:-1:50], strict=True):
    turned = driven.transform(at - ROD).rotation
    assert np.isclose(np.arctan2(turned[1][0], turned[0][0]), angle, atol=1e-7)
