"""How fast pairs approach each other at most, judged by distances nearby."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.shapes import Box, Capsule, ConvexPolyhedron, Cylinder, Sphere

STEP = 1e-4


def shapes(rng: np.random.Generator):
    X = arm.Pose.translation(*rng.uniform(-0.4, 0.4, 3)) @ arm.Pose.rotation_x(0.7)
    return [
        Box(size=(0.05, 0.6, 0.1), pose=X),
        Cylinder(radius=0.04, length=0.7, pose=X),
        Capsule(radius=0.05, length=0.5, pose=X),
        ConvexPolyhedron(vertices=rng.uniform(-0.3, 0.3, (12, 3)), pose=X),
        Sphere(radius=0.1, pose=X),
    ]


@pytest.mark.filterwarnings("ignore:Links that touch at home")
@pytest.mark.parametrize("seed", range(6))
def test_no_pair_approaches_faster(seed: int):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    joints = [
        arm.joints.Revolute(axis=tuple(axis / np.linalg.norm(axis))),
        arm.joints.Screw(axis=(0.0, 0.0, 1.0), pitch=0.2),
        arm.joints.Prismatic(axis=(0.0, 1.0, 0.0)),
        arm.joints.OvalTrack(straight=0.4, radius=0.2),
    ]
    links = [arm.Link(name="base")]
    for k, joint in enumerate(rng.permutation(np.array(joints, object))):
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=links[-1].name,
                joint=joint,
                limits=arm.Limits(lower=-1.0, upper=1.0),
                collisions=list(rng.permutation(np.array(shapes(rng), object))[:2]),
            )
        )
    cell = arm.Cell(manipulators=[arm.Manipulator(name="r", links=links)])
    check = cell.replace(rules=cell.rules.include_self("r")).collision()
    lower, upper = cell.limits
    rates = check.approach_rates(lower, upper)
    Q = rng.uniform(lower, upper - STEP, (200, len(lower)))
    d, tightest = check.distances(Q), 0.0
    for joint in range(len(lower)):
        moved = Q.copy()
        moved[:, joint] += STEP
        change = np.abs(check.distances(moved) - d)
        # Depths are computed within a part of the shapes' sizes.
        speeds = np.where(d > 1e-3, change / STEP, 0.0)
        assert (speeds <= rates[:, joint] + 1e-7).all()
        tightest = max(tightest, (speeds / np.maximum(rates[:, joint], 0.01)).max())
    assert tightest > 0.3
