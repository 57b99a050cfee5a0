"""A Stewart platform: six legs that telescope carry a platform with six freedoms.

The script builds the cell that comes with armillary as `armillary.example("stewart")`.
Its sizes are made up: joints on circles of 0.6 and 0.35 m, in pairs 20 degrees apart,
and legs of 0.7 to 1.3 m.

    python stewart.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary.model.property import Property

BASE, PLATFORM = 0.6, 0.35  # radii of the circles of joints [m]
BASE_ANGLES = np.radians([-10, 10, 110, 130, 230, 250])
PLATFORM_ANGLES = np.radians([-50, 50, 70, 170, 190, 290])
SHORTEST, LONGEST = 0.7, 1.3
SOURCE = "made up: joints on circles of 0.6 and 0.35 m, legs of 0.7 to 1.3 m"


def circle(radius, angles, name):
    """Return frames on a circle."""
    return [
        arm.Frame(
            name=f"{name}{k}",
            pose=arm.Pose.rotation_z(angle) @ arm.Pose.translation(radius, 0, 0),
        )
        for k, angle in enumerate(angles, 1)
    ]


def stewart() -> arm.Manipulator:
    """Return the platform; q are the lengths of the legs [m].

    Six passive joints carry the platform; a leg is a rod that takes its length from a
    joint which moves nothing else.
    """
    length, limits = (
        arm.joints.LengthCoordinate(),
        arm.Limits(lower=SHORTEST, upper=LONGEST),
    )
    legs = [f"leg{k}" for k in range(1, 7)]
    links = [arm.Link(name="base", frames=circle(BASE, BASE_ANGLES, "foot"))]
    links += [
        arm.Link(name=leg, parent="base", joint=length, limits=limits) for leg in legs
    ]
    slides = [arm.joints.Prismatic(axis=axis) for axis in np.eye(3)]
    turns = [arm.joints.Revolute(axis=axis) for axis in np.eye(3)[::-1]]
    balls = circle(PLATFORM, PLATFORM_ANGLES, "ball")
    tool = arm.Frame(name="tool", end_effector=True)
    parent = "base"
    for name, joint in zip(
        ("x", "y", "z", "yaw", "pitch", "roll"), slides + turns, strict=True
    ):
        frames = [*balls, tool] if name == "roll" else []
        links.append(
            arm.Link(name=name, parent=parent, joint=joint, frames=frames, passive=True)
        )
        parent = name
    return arm.Manipulator(
        name="stewart",
        links=links,
        loops=[arm.Rod(f"foot{k}", f"ball{k}", by=f"leg{k}") for k in range(1, 7)],
        postures=[arm.Posture(name="middle", joints=[*legs, "z"], q=[1.0] * 6 + [0.9])],
        home="middle",
        properties=[Property(name="source", text=SOURCE)],
    )


def build() -> arm.Cell:
    """Return the cell."""
    text = "A Stewart platform, six legs of changing length."
    return arm.Cell(
        name="stewart",
        manipulators=[stewart()],
        properties=[Property(name="description", text=text)],
    )


def rotation(yaw, pitch, roll):
    """Return Rz(yaw) Ry(pitch) Rx(roll), shape (..., 3, 3)."""
    (a, b, c), (s, t, u) = np.cos([yaw, pitch, roll]), np.sin([yaw, pitch, roll])
    rows = [
        [a * b, a * t * u - s * c, a * t * c + s * u],
        [s * b, s * t * u + a * c, s * t * c - a * u],
        [-t, b * u, b * c],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def on_circle(radius, angles):
    """Return points of a circle, shape (6, 3)."""
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), 0 * angles], -1)


if __name__ == "__main__":
    cell = build()
    if len(sys.argv) > 1:
        arm.save(cell, sys.argv[1])
    print(cell.mobility())

    # By hand the other way is easy: the lengths of the legs at random poses.
    rng = np.random.default_rng(0)
    p = rng.uniform([-0.15, -0.15, 0.8], [0.15, 0.15, 1.05], (100_000, 3))
    R = rotation(*rng.uniform(-0.35, 0.35, (3, len(p))))
    arms = np.einsum("nij,kj->nki", R, on_circle(PLATFORM, PLATFORM_ANGLES))
    leg = p[:, None] + arms - on_circle(BASE, BASE_ANGLES)
    Q = np.linalg.norm(leg, axis=2)
    within = ((SHORTEST < Q) & (Q < LONGEST)).all(axis=1)
    Q, p, R, leg, arms = Q[within], p[within], R[within], leg[within], arms[within]

    X = cell.fk("tool")(Q)
    print(f"{len(Q):,} poses, largest difference {np.abs(X[:, :3, 3] - p).max():.1e} m")
    assert np.abs(X[:, :3, 3] - p).max() < 1e-9
    assert np.abs(X[:, :3, :3] - R).max() < 1e-9

    # So are its rates: a leg grows as fast as its ball moves along it.
    along = leg / Q[..., None]
    inverse = np.concatenate([along, np.cross(arms, along)], axis=2)
    J = cell.jacobian("tool")(Q)
    assert np.abs(J @ inverse - np.eye(6)).max() < 1e-8
    assert cell == arm.example("stewart")
    print("the cell that was built is the cell that comes with armillary")
