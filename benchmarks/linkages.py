"""Linkages that are measured, with closed forms written by hand beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.model.joints.coordinate import LengthCoordinate
from armillary.spatial.vector import add, cross, dot, scale, subtract
from armillary.trace import Program, trace
from armillary.trace.functions import cos, maximum, sin, sqrt

Array = npt.NDArray[np.float64]

AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.25, 0.2, 0.3
BASE, PLATFORM, UPPER, ROD = 0.164, 0.022, 0.2, 0.4
LEGS = 6
BASE_ANGLES = (-10, 10, 110, 130, 230, 250)
PLATFORM_ANGLES = (-50, 50, 70, 170, 190, 290)
BASE_RADIUS, PLATFORM_RADIUS, STROKE = 0.6, 0.35, (0.7, 1.3)


def _hinge(axis: str, *at: float) -> arm.Joint:
    before = arm.Pose.translation(*at) if at else arm.Pose.translation(0, 0, 0)
    return arm.joints.Revolute(axis=AXES[axis], precursor=before)


def _slides(names: tuple[str, ...], on: str, **last: Any) -> list[arm.Link]:
    """Return three passive slides one on another, the last with more fields."""
    links: list[arm.Link] = []
    for name, axis in zip(names, "xyz", strict=True):
        joint = arm.joints.Prismatic(axis=AXES[axis])
        more = last if axis == "z" else {}
        links.append(arm.Link(name=name, parent=on, joint=joint, passive=True, **more))
        on = name
    return links


def four_bar() -> arm.Cell:
    """Return a crank and rocker: joint `crank`, frame `rocker`."""
    links = [
        arm.Link(name="ground"),
        arm.Link(name="crank", parent="ground", joint=_hinge("z")),
        arm.Link(
            name="coupler",
            parent="crank",
            joint=_hinge("z", CRANK, 0, 0),
            passive=True,
            frames=[arm.Frame(name="tip", pose=arm.Pose.translation(COUPLER, 0, 0))],
        ),
        arm.Link(
            name="rocker",
            parent="ground",
            joint=_hinge("z", GROUND, 0, 0),
            passive=True,
            frames=[arm.Frame(name="end", pose=arm.Pose.translation(ROCKER, 0, 0))],
        ),
    ]
    loops = [arm.Closure("tip", "end", position="xy")]
    return arm.Cell(
        manipulators=[arm.Manipulator(name="four_bar", links=links, loops=loops)]
    )


def four_bar_by_hand() -> Program:
    """Return the pose of the rocker from the law of cosines."""

    def rocker(q: Any) -> Any:
        x, y = CRANK * cos(q[0]), CRANK * sin(q[0])
        dx, dy = GROUND - x, 0.0 - y
        square = dx * dx + dy * dy
        k = (COUPLER**2 - ROCKER**2 + square) / (2.0 * square)
        h = sqrt(maximum(COUPLER**2 / square - k * k, 0.0))
        c = (x + k * dx - h * dy - GROUND) / ROCKER
        s = (y + k * dy + h * dx) / ROCKER
        return [[c, -s, 0, GROUND], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]

    return trace(rocker, outputs=("pose",), q=(1,))


def delta(*, rods_as_links: bool = False) -> arm.Cell:
    """Return a delta robot: joints `arm0` to `arm2`, frame `platform`.

    rods_as_links: Whether its rods are links with two hinges each, not distances.
    """
    links = [arm.Link(name="base")]
    loops: list[arm.Closure | arm.Rod] = []
    balls: list[arm.Frame] = []
    for k in range(3):
        turn = arm.Pose.rotation_z(2 * math.pi * k / 3)
        balls.append(
            arm.Frame(name=f"ball{k}", pose=turn @ arm.Pose.translation(PLATFORM, 0, 0))
        )
        hinge = arm.joints.Revolute(
            axis=AXES["y"], precursor=turn @ arm.Pose.translation(BASE, 0, 0)
        )
        elbow = arm.Frame(name=f"elbow{k}", pose=arm.Pose.translation(UPPER, 0, 0))
        links.append(
            arm.Link(
                name=f"arm{k}",
                parent="base",
                joint=hinge,
                limits=arm.Limits(lower=-0.6, upper=1.2),
                frames=[elbow],
            )
        )
        if not rods_as_links:
            loops.append(arm.Rod(elbow.name, balls[k].name, length=ROD))
            continue
        pitch, end = (
            f"pitch{k}",
            arm.Frame(name=f"end{k}", pose=arm.Pose.translation(ROD, 0, 0)),
        )
        links += [
            arm.Link(
                name=pitch,
                parent=f"arm{k}",
                joint=_hinge("y", UPPER, 0, 0),
                passive=True,
            ),
            arm.Link(
                name=f"rod{k}",
                parent=pitch,
                joint=_hinge("z"),
                passive=True,
                frames=[end],
            ),
        ]
        loops.append(arm.Closure(balls[k].name, end.name))
    links += _slides(("x", "y", "platform"), "base", frames=balls)
    guesses = {"platform": -0.3} | (
        {f"pitch{k}": 2.0 for k in range(3)} if rods_as_links else {}
    )
    posture = arm.Posture(name="start", joints=[*guesses], q=[*guesses.values()])
    manipulator = arm.Manipulator(
        name="delta", links=links, loops=loops, postures=[posture], home="start"
    )
    return arm.Cell(manipulators=[manipulator])


def delta_by_hand() -> Program:
    """Return the pose of the platform where three spheres about elbows meet."""

    def platform(q: Any) -> Any:
        centres = []
        for k in range(3):
            reach = BASE + UPPER * cos(q[k]) - PLATFORM
            turn = 2 * math.pi * k / 3
            centres.append(
                (reach * math.cos(turn), reach * math.sin(turn), -UPPER * sin(q[k]))
            )
        a, b = (subtract(c, centres[0]) for c in centres[1:])
        normal = cross(a, b)
        square = dot(normal, normal)
        to_axis = scale(
            0.5 / square,
            cross(subtract(scale(dot(a, a), b), scale(dot(b, b), a)), normal),
        )
        height = sqrt(maximum((ROD**2 - dot(to_axis, to_axis)) / square, 0.0))
        x, y, z = add(centres[0], add(to_axis, scale(-1.0 * height, normal)))
        return [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1.0]]

    return trace(platform, outputs=("pose",), q=(3,))


def stewart() -> arm.Cell:
    """Return a Stewart platform: joints `leg0` to `leg5` [m], frame `platform`."""

    def ring(letter: str, angles: tuple[int, ...], radius: float) -> list[arm.Frame]:
        return [
            arm.Frame(
                name=f"{letter}{k}",
                pose=arm.Pose.rotation_z(math.radians(angle))
                @ arm.Pose.translation(radius, 0, 0),
            )
            for k, angle in enumerate(angles)
        ]

    links = [arm.Link(name="base", frames=ring("b", BASE_ANGLES, BASE_RADIUS))]
    legs = [f"leg{k}" for k in range(LEGS)]
    links += [
        arm.Link(
            name=leg,
            parent="base",
            joint=LengthCoordinate(),
            limits=arm.Limits(lower=STROKE[0], upper=STROKE[1]),
        )
        for leg in legs
    ]
    links += _slides(("x", "y", "z"), "base")
    on = "z"
    for name, axis in (("yaw", "z"), ("pitch", "y"), ("platform", "x")):
        frames = ring("p", PLATFORM_ANGLES, PLATFORM_RADIUS) if axis == "x" else []
        links.append(
            arm.Link(
                name=name, parent=on, joint=_hinge(axis), passive=True, frames=frames
            )
        )
        on = name
    loops = [arm.Rod(f"b{k}", f"p{k}", by=leg) for k, leg in enumerate(legs)]
    start = arm.Posture(name="start", joints=[*legs, "z"], q=[1.0] * LEGS + [0.9])
    manipulator = arm.Manipulator(
        name="stewart", links=links, loops=loops, postures=[start], home="start"
    )
    return arm.Cell(manipulators=[manipulator])


def stewart_legs(poses: Array) -> Array:
    """Return the lengths of the legs at poses (..., 4, 4) of the platform, (..., 6)."""
    lengths = []
    for a, b in zip(BASE_ANGLES, PLATFORM_ANGLES, strict=True):
        base, ball = (
            radius
            * np.array(
                [math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0]
            )
            for angle, radius in ((a, BASE_RADIUS), (b, PLATFORM_RADIUS))
        )
        way = poses[..., :3, :3] @ ball + poses[..., :3, 3] - base
        lengths.append(np.linalg.norm(way, axis=-1))
    return np.stack(lengths, axis=-1)
