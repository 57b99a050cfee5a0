"""Seeded random values: poses, directions, and a joint of every built-in kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from armillary.model.axis import Axis
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.spatial.pose import Pose

Random = np.random.Generator


def random_direction(random: Random) -> Axis:
    """Return a direction, all equally likely."""
    x, y, z = random.normal(size=3).tolist()
    length = math.hypot(x, y, z)
    return (x / length, y / length, z / length)


def random_pose(random: Random, *, reach: float = 1.0) -> Pose:
    """Return a pose, all rotations equally likely, in a cube of side 2 reach [m].

    random: The generator of the numbers.
    """
    quaternion = random.normal(size=4).tolist()
    position = random.uniform(-reach, reach, 3).tolist()
    return Pose.from_quaternion(quaternion, position)


def random_joint(
    random: Random, kind: str | None = None, *, with_precursor: bool = True
) -> Joint:
    """Return a joint with random parameters.

    Args:
        random: The generator of the numbers.
        kind: Tag of a built-in joint; if None, any that moves at every q.
        with_precursor: Whether it has a random precursor.

    Raises:
        KeyError: There is no built-in joint with that tag.
    """
    if kind is None:
        movable = sorted(set(PARAMETERS) - {"Fixed", "FourBarSlider"})
        kind = movable[int(random.integers(len(movable)))]
    parameters = PARAMETERS[kind](random)
    if with_precursor:
        parameters["precursor"] = random_pose(random)
    return JOINT_TYPES[kind](**parameters)


Parameters = dict[str, Any]


def _axis(random: Random) -> Parameters:
    return {"axis": random_direction(random)}


def _denavit_hartenberg(random: Random) -> Parameters:
    theta, alpha = random.uniform(-math.pi, math.pi, 2).tolist()
    d, a = random.uniform(-1.0, 1.0, 2).tolist()
    return {"theta": theta, "d": d, "a": a, "alpha": alpha}


def _curve(random: Random) -> Parameters:
    """Return points around a ring, moved a little: no sharp turns, nowhere steep."""
    count = int(random.integers(5, 9))
    angles = np.arange(count) * 2.0 * math.pi / count
    radius = float(random.uniform(0.5, 2.0))
    heights = random.uniform(-0.3, 0.3, count)
    points = np.stack([np.cos(angles), np.sin(angles), heights], axis=1)
    moved = radius * (points + random.uniform(-0.1, 0.1, points.shape))
    return {
        "points": moved.tolist(),
        "closed": bool(random.integers(2)),
        "up": (0.0, 0.0, 1.0) if random.integers(2) else None,
    }


def _four_bar_slider(random: Random) -> Parameters:
    """Return sides that leave the slider more than a metre of travel each way."""
    lever, opposite = random.uniform(2.0, 2.2, 2).tolist()
    return {
        "nominal": float(random.uniform(1.5, 2.0)),
        "lever": lever,
        "opposite": opposite,
        "offset": float(random.uniform(-0.1, 0.1)),
        "pivoted": bool(random.integers(2)),
    }


PARAMETERS: Final[dict[str, Callable[[Random], Parameters]]] = {
    "AngleCoordinate": lambda random: {},
    "LengthCoordinate": lambda random: {},
    "Fixed": lambda random: {},
    "Revolute": _axis,
    "Prismatic": _axis,
    "Screw": lambda random: {
        "pitch": float(random.uniform(-0.5, 0.5)),
        **_axis(random),
    },
    "PaulRevolute": _denavit_hartenberg,
    "PaulPrismatic": _denavit_hartenberg,
    "CraigRevolute": _denavit_hartenberg,
    "CraigPrismatic": _denavit_hartenberg,
    "CircleTrack": lambda random: {
        "radius": float(random.uniform(0.1, 3.0)),
        "inward": bool(random.integers(2)),
    },
    "OvalTrack": lambda random: {
        "straight": float(random.uniform(0.0, 3.0)),
        "radius": float(random.uniform(0.1, 2.0)),
    },
    "Curve": _curve,
    "FourBarSlider": _four_bar_slider,
}
"""Random parameters of every built-in joint, by its tag."""
