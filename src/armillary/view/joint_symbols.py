"""Symbols of joints, from their own formulas: axes, arcs, slides and tracks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.view.kinds import FARTHEST, Lines
from armillary.view.surfaces import lines

__all__ = ["Sampled", "joint_symbol", "sampled"]

Array = npt.NDArray[np.float64]

COLOUR: Final = (0.95, 0.65, 0.1, 1.0)
SAMPLES: Final = 97
SMALL: Final = 1e-9
"""Movements below this part of the symbol's size are ignored."""


class Sampled(NamedTuple):
    """Where one coordinate takes a joint's outer frame M in its inner frame F.

    Attributes:
        unit: The unit of the coordinate.
        rotations: R_FM, shape (n, 3, 3).
        origins: M's origin in F [m], shape (n, 3).
    """

    unit: Unit
    rotations: Array
    origins: Array


def joint_symbol(
    joint: Joint,
    ranges: Sequence[tuple[float, float]],
    home: Sequence[float],
    size: float,
) -> Lines | None:
    """Return the symbol of a joint in the parent of its inner frame, None without one.

    What an angle turns about a fixed axis has that axis and an arc over its range; what
    slides the line on which it does, with its ends; anything else the track of its
    origin. A joint of several coordinates has one for each, the others being at home.

    Args:
        joint: Any joint, with its precursor.
        ranges: The least and greatest value of each coordinate [m or rad].
        home: The value of each at home.
        size: The size of the symbol [m].
    """
    strokes = [
        segment
        for each in sampled(joint, ranges, home, size)
        for segment in _symbol(each, size)
    ]
    if not strokes:
        return None
    return lines(np.concatenate(strokes), COLOUR, width=2.5)


def sampled(
    joint: Joint,
    ranges: Sequence[tuple[float, float]],
    home: Sequence[float],
    size: float,
) -> Iterator[Sampled]:
    """Yield the poses of a joint along each of its coordinates, where they are finite.

    The arguments are those of `joint_symbol`.
    """
    whole: Any = joint
    X = whole.precursor
    R, p = np.array(X.rotation), np.array(X.position)
    for k, unit in enumerate(joint.input_units):
        period = joint.period if len(home) == 1 else None
        ends = _finite(*ranges[k], home[k], _reach(unit, period, size))
        low, high = np.clip(ends, -FARTHEST, FARTHEST)
        # One coordinate over its range, the others at home.
        q = np.tile(np.asarray(home, dtype=np.float64), (SAMPLES, 1))
        q[:, k] = np.linspace(low, high, SAMPLES)
        table = joint.motion.poses(q if joint.motion.shape else q[:, 0])
        table = table[np.isfinite(table).all(axis=(1, 2))]
        if len(table) > 1:
            origins = np.clip(table[:, :, 3], -FARTHEST, FARTHEST)
            yield Sampled(unit, R @ table[:, :, :3], origins @ R.T + p)


def _reach(unit: Unit, period: float | None, size: float) -> float:
    """Return how far a coordinate without limits is drawn to each side of home."""
    if period is not None:
        return 0.5 * period
    return {Unit.RADIAN: math.pi, Unit.METRE: 5.0 * size}.get(unit, 1.0)


def _finite(
    lower: float, upper: float, home: float, reach: float
) -> tuple[float, float]:
    """Return limits, those that are infinite as far from home as `reach`."""
    low = lower if math.isfinite(lower) else min(home, upper) - reach
    return low, upper if math.isfinite(upper) else max(home, low) + reach


def _symbol(samples: Sampled, size: float) -> Iterator[Array]:
    """Yield segments, shape (k, 2, 3)."""
    unit, rotations, origins = samples
    least = SMALL * size
    # What the joint does from its first sample on: R_k R_0^T, and the axis of each.
    turned = rotations @ rotations[0].T
    turns = _turns(turned)
    axis = _axis(turns)
    is_still = np.linalg.norm(origins - origins[0], axis=1).max() <= least
    hub = None
    # A point that stays makes it a rotation about a fixed axis: an axis and an arc.
    if axis is not None and (is_still or unit is Unit.RADIAN):
        hub = _hub(turned, origins, axis, 1e-6 * size)
    if hub is not None and axis is not None:
        yield from _turning(turned, hub, axis, size)
        return
    # The origin stays but the axis does not, as of a ball joint: the path of a point
    # beside the origin shows the motion.
    if is_still:
        if np.linalg.norm(turns, axis=1).max() > SMALL:
            yield _joined(origins + size * rotations[:, :, 2])
        return
    # Else the origin moves: its track, with ends where it is straight, and with an arc
    # where the joint turns as well, as a screw does.
    yield _joined(origins)
    if _is_straight(origins, least):
        yield _ends(origins, size)
        if axis is not None:
            yield from _turning(turned, origins[len(origins) // 2], axis, size)


def _axis(turns: Array) -> Array | None:
    """Return the one axis of all turns, a unit vector, None without one."""
    lengths = np.linalg.norm(turns, axis=1)
    if lengths.max() <= SMALL:
        return None
    # The longest sin(angle) * axis is the best conditioned; all others are parallel to
    # it, or there is no fixed axis.
    axis: Array = turns[np.argmax(lengths)] / lengths.max()
    return axis if np.allclose(np.cross(turns, axis), 0.0, atol=1e-6) else None


def _hub(turned: Array, origins: Array, axis: Array, least: float) -> Array | None:
    """Return the point of a fixed axis of rotation beside the origins, None without.

    A point c of the axis stays: o_k = c + R_k (o_0 - c) for all poses k.
    """
    # (I - R_k) c = o_k - R_k o_0 for all k, by least squares; the residual tells
    # whether there is such a point.
    A = (np.eye(3) - turned).reshape(-1, 3)
    b = (origins - turned @ origins[0]).ravel()
    # Along the axis, c is free: hold it where the origins are.
    height = axis @ origins[0]
    solution: Any = np.linalg.lstsq(
        np.vstack([A, axis]), np.append(b, height), rcond=None
    )
    centre: Array = solution[0]
    return centre if np.abs(A @ centre - b).max() <= least else None


def _turning(turned: Array, hub: Array, axis: Array, size: float) -> Iterator[Array]:
    """Yield an axis, and an arc around it with the lines to its ends.

    Args:
        turned: Rotations from the first pose, shape (n, 3, 3).
        hub: A point of the axis [m], shape (3,).
        axis: A unit vector, shape (3,).
        size: Half the length of what is drawn of the axis [m].
    """
    yield np.array([[hub - size * axis, hub + size * axis]])
    # A direction across the axis: by the coordinate axis that is least parallel to it.
    out: Any = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    out *= 0.6 * size / np.linalg.norm(out)
    arms: Array = turned @ out
    yield _joined(hub + arms)
    yield np.array([[hub, hub + arms[0]], [hub, hub + arms[-1]]])


def _is_straight(points: Array, least: float) -> bool:
    """Return whether points are on one line."""
    along = points[np.argmax(np.linalg.norm(points - points[0], axis=1))] - points[0]
    length = float(np.linalg.norm(along))
    if length <= least:
        return False
    # The distance of each point from the line through the two ends.
    off = np.cross(points - points[0], along / length)
    return bool(np.abs(off).max() <= 1e-6 * length)


def _ends(points: Array, size: float) -> Array:
    """Return a small cross at each end of a slide."""
    along = points[-1] - points[0]
    length = np.linalg.norm(along)
    if length == 0.0:
        return np.zeros((0, 2, 3))
    axis = along / length
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    across *= 0.3 * size / np.linalg.norm(across)
    other = np.cross(axis, across)
    return np.array(
        [[end - arm, end + arm] for end in points[[0, -1]] for arm in (across, other)]
    )


def _joined(points: Array) -> Array:
    """Return the segments of a polyline."""
    return np.stack([points[:-1], points[1:]], axis=1)


def _turns(R: Array) -> Array:
    """Return the axis of each rotation times the sine of its angle, shape (n, 3)."""
    # (R - R^T) / 2 = sin(angle) [axis]x.
    off = 0.5 * (R - np.swapaxes(R, 1, 2))
    return np.stack([off[:, 2, 1], off[:, 0, 2], off[:, 1, 0]], axis=1)
