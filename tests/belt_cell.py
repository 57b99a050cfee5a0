"""A cell with a robot, a conveyor, a table and two boxes."""

from __future__ import annotations

import numpy as np

import armillary as arm

TOOL = "irb2400/tool0"
DOWN = arm.Pose.rotation_y(np.pi)
READY = (0.9, 0.2, 0.3, 0.0, 1.0, 0.0)
HEIGHT, SIDE = 0.4, 0.1  # of the conveyor's surface, and of a box [m]


def above(x: float, y: float, z: float) -> arm.Pose:
    """A pose of the tool that points down, at a place [m]."""
    return arm.Pose.translation(x, y, z) @ DOWN


def box(name: str) -> arm.Manipulator:
    shape = arm.shapes.Box(size=(SIDE, SIDE, SIDE))
    return arm.Manipulator(name=name, links=[arm.Link(name="body", collisions=[shape])])


def place(x: float, y: float) -> arm.Pose:
    """Where a box stands a millimetre above the conveyor or the table."""
    return arm.Pose.translation(x, y, HEIGHT + SIDE / 2 + 0.001)


def belt_cell() -> arm.Cell:
    """An irb2400 that takes boxes from a conveyor along y to a table."""
    (robot,) = arm.example("irb2400").manipulators
    bed = arm.shapes.Box(
        size=(0.3, 4.0, 0.1), pose=arm.Pose.translation(0.9, 0.0, HEIGHT - 0.05)
    )
    belt = arm.Manipulator(
        name="belt",
        links=[
            arm.Link(name="bed", collisions=[bed]),
            arm.Link(
                name="carrier", parent="bed", joint=arm.joints.Prismatic(axis=(0, 1, 0))
            ),
        ],
    )
    top = arm.shapes.Box(size=(0.4, 0.4, 0.1))
    table = arm.Manipulator(
        name="table", links=[arm.Link(name="top", collisions=[top])]
    )
    cell = arm.Cell(
        name="a belt and a table",
        manipulators=[robot, belt, table, box("box"), box("other")],
        mounts=[
            arm.Mount(
                manipulator="table",
                pose=arm.Pose.translation(0.2, -0.9, HEIGHT - 0.05),
                bolted=True,
            )
        ],
    )
    return cell.replace(rules=cell.rules.include_self("irb2400"))
