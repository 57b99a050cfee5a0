"""A delta robot, its rods as distances and as links of their own.

The script builds the cell that comes with armillary as `armillary.example("delta")`.

Sources of the numbers:
- ABB IRB 390-10/1300, as the component of that robot in Visual Components has it: arms
  of 425 mm and rods of 975 mm, shoulders 350 mm and wrists 95 mm from the axis, the
  flange 140 + 97 mm below. Its ranges are a choice.
- R. L. Williams II, "The Delta Parallel Robot: Kinematics Solutions", Ohio University,
  2016: ABB IRB 360-1/1600, with results.

    python delta.py [FILE]
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

import armillary as arm
from armillary.model.property import Property

HINGE = arm.joints.Revolute(axis=(0, 1, 0))


class Delta(NamedTuple):
    """The lengths of a delta robot [m], and the directions of its arms [degrees]."""

    shoulder: float
    wrist: float
    upper: float
    rod: float
    flange: float = 0.0
    sides: tuple[float, ...] = (0.0, 120.0, 240.0)


IRB390 = Delta(shoulder=0.35, wrist=0.095, upper=0.425, rod=0.975, flange=0.237)
IRB360 = Delta(
    shoulder=3**0.5 / 6 * 0.567,  # the sides of the triangles of base and platform
    wrist=3**0.5 / 3 * 0.076,
    upper=0.524,
    rod=1.244,
    sides=(-90.0, 30.0, 150.0),
)
SOURCE = (
    "ABB IRB 390-10/1300 in Visual Components: L1 425, L2 975, ShoulderOffset 350, "
    "WristOffset 95, L34Z 140, L45Z 97 mm"
)


def outward(side, x, z=0.0):
    """Return the pose whose x points to a side, at a distance along it."""
    return arm.Pose.rotation_z(np.radians(side)) @ arm.Pose.translation(x, 0, z)


def delta(size: Delta, *, with_rods_as_links: bool = False) -> arm.Manipulator:
    """Return a delta robot; q is how far its arms are lowered [rad].

    Three passive joints carry the platform, which the parallelograms of the real
    machine keep level. A rod is then a distance between an elbow and the platform;
    or two hinges and a ball, where it has to be seen, weighed or tested for collision.
    """
    slides = [arm.joints.Prismatic(axis=axis) for axis in np.eye(3)]
    balls = [
        arm.Frame(name=f"ball{k}", pose=outward(side, size.wrist))
        for k, side in enumerate(size.sides, 1)
    ]
    down = arm.Pose.translation(0, 0, -size.flange) @ arm.Pose.rotation_x(np.pi)
    flange = arm.Frame(name="flange", pose=down, end_effector=True)
    links = [
        arm.Link(name="base"),
        arm.Link(name="x", parent="base", joint=slides[0], passive=True),
        arm.Link(name="y", parent="x", joint=slides[1], passive=True),
        arm.Link(
            name="platform",
            parent="y",
            joint=slides[2],
            frames=[*balls, flange],
            passive=True,
        ),
    ]
    depth = -((size.rod**2 - (size.shoulder + size.upper - size.wrist) ** 2) ** 0.5)
    names, q, loops = ["platform"], [depth], []
    steep = np.arctan2(-depth, size.wrist - size.shoulder - size.upper)
    for k, side in enumerate(size.sides, 1):
        elbow = arm.Frame(name=f"elbow{k}", pose=arm.Pose.translation(size.upper, 0, 0))
        links.append(
            arm.Link(
                name=f"arm{k}",
                parent="base",
                joint=HINGE.prepend(outward(side, size.shoulder)),
                joint_name=f"J{k}",
                limits=arm.Limits(lower=np.radians(-30), upper=np.radians(80)),
                frames=[elbow],
            )
        )
        if not with_rods_as_links:
            loops.append(arm.Rod(f"elbow{k}", f"ball{k}", length=size.rod))
            continue
        end = arm.Frame(name=f"end{k}", pose=arm.Pose.translation(size.rod, 0, 0))
        links += [
            arm.Link(
                name=f"fork{k}",
                parent=f"arm{k}",
                joint=HINGE.prepend(elbow.pose),
                passive=True,
            ),
            arm.Link(
                name=f"rod{k}",
                parent=f"fork{k}",
                joint=arm.joints.Revolute(axis=(0, 0, 1)),
                frames=[end],
                passive=True,
            ),
        ]
        loops.append(arm.Closure(f"ball{k}", f"end{k}"))
        names.append(f"fork{k}")
        q.append(steep)
    return arm.Manipulator(
        name="delta",
        links=links,
        loops=loops,
        postures=[arm.Posture(name="home", joints=names, q=q)],
        home="home",
        properties=[Property(name="source", text=SOURCE)] if size is IRB390 else [],
    )


def build() -> arm.Cell:
    """Return the cell."""
    text = "A delta robot of three arms; rods are distances."
    return arm.Cell(
        name="delta",
        manipulators=[delta(IRB390)],
        properties=[Property(name="description", text=text)],
    )


def platform_by_hand(size: Delta, q):
    """Return the lower point at the rods' length from the elbows, shape (..., 3)."""
    elbows = []
    for side, angle in zip(np.radians(size.sides), np.moveaxis(q, -1, 0), strict=True):
        out = size.shoulder - size.wrist + size.upper * np.cos(angle)
        down = -size.upper * np.sin(angle)
        elbows.append(np.stack([out * np.cos(side), out * np.sin(side), down], -1))
    a, b, c = elbows
    # The centre of the circle through them, and from there straight down to the point.
    u, v = b - a, c - a
    normal = np.cross(u, v)
    square = (normal**2).sum(-1, keepdims=True)
    u2, v2 = ((each**2).sum(-1, keepdims=True) for each in (u, v))
    centre = np.cross(normal, v2 * u - u2 * v) / (2 * square)
    with np.errstate(invalid="ignore"):
        drop = np.sqrt(size.rod**2 - (centre**2).sum(-1, keepdims=True))
    return a + centre - normal * drop / np.sqrt(square)


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])
    print(cell.mobility())

    # What Visual Components' component of the robot stores, before the last 97 mm.
    q = np.radians([10.00006103515628] * 3)
    z = cell.pose("flange", cell.home.replace(q=q))[2, 3]
    assert np.isclose(1e3 * z + 97, -918.758037527338, rtol=0, atol=1e-9)
    assert np.isclose(cell.fk("flange")(np.zeros(3))[2, 3], -0.935730993)

    # What Williams prints, for angles in degrees.
    other = arm.Cell(manipulators=[delta(IRB360)]).fk("platform")
    assert np.allclose(other(np.zeros(3))[:3, 3], [0, 0, -1.064452], atol=5e-7)
    for angles, place, digits in (
        ([-20.547, -20.547, -20.547], [0, 0, -0.9], 5e-5),
        ([47.504, -11.569, 21.378], [0.3, 0.5, -1.1], 5e-5),
        ([10, 20, 30], [0.108135, -0.180348, -1.243541], 5e-6),
    ):
        X = other(np.radians(angles))
        assert np.allclose(X[:3, 3], place, atol=digits), (angles, X)

    # By hand, everywhere: three spheres meet; both ways to describe rods agree.
    linked = arm.Cell(manipulators=[delta(IRB390, with_rods_as_links=True)])
    assert linked.joint_names == cell.joint_names == ("J1", "J2", "J3")
    lower, upper = cell.limits
    Q = np.random.default_rng(0).uniform(lower, upper, (100_000, 3))
    expected = platform_by_hand(IRB390, Q)
    meet = ~np.isnan(expected[:, 0])
    for each in (cell, linked):
        X = each.fk("platform")(Q)
        print(
            f"{each.mobility().count} joints,",
            np.isnan(X[:, 0, 3]).sum(),
            "do not close",
        )
        assert np.array_equal(np.isnan(X[:, 0, 3]), ~meet)
        assert np.abs(X[meet, :3, 3] - expected[meet]).max() < 1e-9

    # And back: inverse kinematics places the flange, which cannot be turned.
    X = cell.fk("flange")(Q[:1000])
    answers = cell.ik("flange", rotation="")(X)
    print(answers)
    assert answers.success.all()
    assert np.abs(cell.fk("flange")(answers.q) - X).max() < 2e-6
    assert cell == arm.example("delta")
    print("the cell that was built is the cell that comes with armillary")
