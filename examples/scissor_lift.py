"""A scissor lift of several stages, from its beams and pins.

Every stage is two beams that cross at a pin; `own_joint.py` has the same lift as a
formula, which is what this one is compared with. The numbers are made up.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

BEAM = 1.0  # [m]
STAGES = 4


def hinge(x):
    """Return a joint about -y, which lifts, at a distance along x."""
    return arm.joints.Revolute(axis=(0, -1, 0), precursor=arm.Pose.translation(x, 0, 0))


def scissor_lift(stages: int) -> arm.Manipulator:
    """Return a lift whose q is how far apart the feet of the beams are [m].

    Beams of one direction begin at `left` and those of the other at `right`; each stage
    begins at the ends of the one below.
    """
    links = [
        arm.Link(name="ground"),
        arm.Link(
            name="foot",
            parent="ground",
            joint=arm.joints.Prismatic(axis=(1, 0, 0)),
            limits=arm.Limits(lower=0.1, upper=0.95),
        ),
    ]
    loops, names, q = [], [], []
    below = [("ground", 0.0), ("foot", 0.0)]  # links, and where on them beams begin
    for k in range(stages):
        for side, (parent, x) in zip(("left", "right"), below, strict=True):
            pin = arm.Frame(
                name=f"{side}_pin{k}", pose=arm.Pose.translation(BEAM / 2, 0, 0)
            )
            end = arm.Frame(
                name=f"{side}_end{k}", pose=arm.Pose.translation(BEAM, 0, 0)
            )
            beam = arm.Link(
                name=f"{side}{k}",
                parent=parent,
                joint=hinge(x),
                frames=[pin, end],
                passive=True,
            )
            links.append(beam)
        loops.append(arm.Closure(f"left_pin{k}", f"right_pin{k}", position="xz"))
        below = [(f"right{k}", BEAM), (f"left{k}", BEAM)]
        # From the beam that it begins on, a beam of the next stage bends back.
        rise = np.pi / 4
        names += [f"left{k}", f"right{k}"]
        q += [rise, np.pi - rise] if k == 0 else [2 * rise - np.pi, np.pi - 2 * rise]
    # The table is pinned to one beam and rests on a roller at the end of the other.
    links.append(
        arm.Link(
            name="table", parent=f"right{stages - 1}", joint=hinge(BEAM), passive=True
        )
    )
    loops.append(arm.Closure("table", f"left_end{stages - 1}", position="z"))
    posture = arm.Posture(
        name="half",
        joints=["foot", *names, "table"],
        q=[BEAM * np.cos(np.pi / 4), *q, -3 * np.pi / 4],
    )
    return arm.Manipulator(
        name="lift", links=links, loops=loops, postures=[posture], home="half"
    )


cell = arm.Cell(manipulators=[scissor_lift(STAGES)])
print(cell.mobility())
assert cell.joint_names == ("foot",)

q = np.linspace(0.1, 0.95, 100_001)
X = cell.fk("table")(q[:, None])
rate = cell.jacobian("table")(q[:, None])[:, 2, 0]
print(f"{X[0, 2, 3]:.3f} m high at {q[0]} m, {X[-1, 2, 3]:.3f} m at {q[-1]} m")

height = np.sqrt(BEAM**2 - q**2)
assert np.abs(X[:, 2, 3] - STAGES * height).max() < 1e-12
assert np.abs(X[:, :3, :3] - np.eye(3)).max() < 1e-12  # the table stays level
assert np.abs(rate + STAGES * q / height).max() < 1e-11
