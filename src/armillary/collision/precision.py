"""In which type a check decides, and how far its distances may then be wrong.

Most checks decide in float32, which is twice as fast, with a bound of its error. What
the error could change is left undecided, and decided in float64.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.placed_pairs import PlacedPairs, rounded_up
from armillary.kinematics.moving_links import MovingLinks, poses_of_links
from armillary.kinematics.speed_bounds import speeds_are_known
from armillary.kinematics.state import State
from armillary.model.fields import kept_few

__all__ = ["Precision", "converted", "double_precision", "precision_of"]

Array = npt.NDArray[np.float64]

DOUBLE: Final = 1e-10
"""The error of distances in float64, by the extent of a cell."""

FORMULAS: Final = 64.0
PER_JOINT: Final = 8.0
"""Errors of a distance, and of a product of poses, in roundings of the extent."""

COARSEST: Final = 1e-3
"""float32 is not used where its error were more than this part of the extent."""

TURN: Final = 7.0
"""Joints without limits are decided in float32 up to this [m or rad]."""

SAMPLES: Final = 256

ORDINARY: Final = 1e38
"""Numbers below this are numbers of float32, too."""


class Precision(NamedTuple):
    """How a check decides.

    Attributes:
        dtype: The type that it computes in.
        rounding: How far its distances may be wrong [m].
        most_extent: The largest coordinate for which that holds [m].
        most_q: The largest joint positions for which it does, shape (n,).
    """

    dtype: np.dtype[Any]
    rounding: float
    most_extent: float
    most_q: Array


def double_precision(pairs: PlacedPairs) -> Precision:
    """Return how a check of pairs decides in float64."""
    # Errors grow with coordinates, so that these have a bound: some more than at home.
    most = 8.0 * pairs.extent + 1.0
    nothing = np.full(pairs.moving.joints, np.inf)
    return Precision(np.dtype(np.float64), DOUBLE * most, most, nothing)


def precision_of(pairs: PlacedPairs) -> Precision:
    """Return how a check of pairs decides best.

    The error in float32 has three parts: that of joint positions, by bounds of how
    fast joints move links; that of poses and formulas, by the number of joints; and
    for joints of users, whose formulas may lose digits, four times the largest error of
    some poses.
    """
    tables = pairs.tables
    # Obstacles do not count: what moves is the same without them.
    if tables.extends is not None:
        if not tables.are_formulas:
            return double_precision(pairs)
        tables = tables.extends
    return kept_few(tables, "precision", pairs.decides, lambda: _precision(pairs))


class _Errors(NamedTuple):
    """What of the error in float32 does not depend on where bodies stand.

    Attributes:
        most_q: The largest joint positions for which it holds, shape (n,).
        of_joints: How far links move by the error of joint positions, in roundings [m].
        depth: How many joints carry a link at most.
        position: The error of positions by formulas of users [m].
        turn: That of rotations.
    """

    most_q: Array
    of_joints: float
    depth: int
    position: float
    turn: float


def _precision(pairs: PlacedPairs) -> Precision:
    double, extent = double_precision(pairs), pairs.extent
    if not pairs.tables.are_formulas:
        return double
    tables = pairs.tables.extends or pairs.tables
    longest = _longest_levers(pairs)
    key = pairs.pose_key, longest.tobytes()
    errors = kept_few(tables, "errors", key, lambda: _errors(pairs, longest))
    if errors is None:
        return double
    most = 2.0 * extent
    rounding = float(np.finfo(np.float32).eps) * (
        errors.of_joints + (FORMULAS + PER_JOINT * (4 + errors.depth)) * most
    )
    # An error of a rotation moves a shape by as much as it is away.
    rounding += 4.0 * (errors.position + most * errors.turn)
    if not rounding < COARSEST * extent:
        return double
    # Rounded up it is the same of most grips, and so are the records that depend on it.
    rounding = rounded_up(rounding)
    return Precision(np.dtype(np.float32), rounding, most, errors.most_q)


def _longest_levers(pairs: PlacedPairs) -> Array:
    """Return how far shapes reach from the origins of their moving links, (count,) [m].

    It is -1 where a link has none; rounded up, so that it is the same of most grips.
    """
    # Of the shapes that move with one link, that with the longest lever moves farthest.
    radii, placed = pairs.tables.pairs.radii, pairs.placed
    finite = np.isfinite(radii) & (placed.rows > 0)
    longest = np.full(pairs.moving.count, -1.0)
    reach = np.linalg.norm(placed.centres[finite], axis=1) + radii[finite]
    np.maximum.at(longest, placed.rows[finite], reach)
    mantissas, exponents = np.frexp(longest)
    rounded: Array = np.ldexp(np.ceil(8.0 * mantissas), exponents - 3)
    return rounded


def _errors(pairs: PlacedPairs, longest: Array) -> _Errors | None:
    """Return the errors of a check in float32; None where speeds are not known.

    longest: As `_longest_levers` returns it.
    """
    moving, state = pairs.moving, pairs.state
    if not speeds_are_known(moving, state):
        return None
    lower, upper, _ = moving.cell.joints.ranges
    n = moving.joints
    reach = np.maximum(np.abs(lower[:n]), np.abs(upper[:n]))
    most_q = np.where(np.isfinite(reach), reach, TURN)

    # A joint position q is wrong by q eps. A link that the joint moves is then wrong by
    # (speed of its points) q eps: `speeds` bounds that for points within a lever of the
    # link's origin. The speed of the world, the other side of each row, is 0.
    speeds = pairs.speeds(-most_q, most_q)
    rows = np.flatnonzero(longest >= 0.0)
    both = np.stack([rows, np.zeros_like(rows)], axis=1)
    levers = np.stack([longest[rows], np.zeros(len(rows))], axis=1)
    ways = speeds.between(both, levers)
    of_joints = float((ways * most_q).sum(axis=1).max(initial=0.0))
    position = turn = 0.0
    if any(_is_of_users(joint) for joint in moving.joint_types):
        key = pairs.pose_key, most_q.tobytes()
        position, turn = kept_few(
            moving, "errors", key, lambda: _errors_of_poses(moving, state, most_q)
        )
    return _Errors(most_q, of_joints, speeds.depth, position, turn)


def _is_of_users(joint: type[Any]) -> bool:
    return joint.__module__.partition(".")[0] != __name__.partition(".")[0]


def _errors_of_poses(
    moving: MovingLinks, state: State, most_q: Array
) -> tuple[float, float]:
    """Return the largest errors of positions [m] and turns of some poses in float32."""
    # Both types get the same positions, rounded to float32: what differs is computed.
    rng = np.random.default_rng(0)
    Q = rng.uniform(-1.0, 1.0, (SAMPLES, moving.joints)) * most_q
    single = Q.astype(np.float32)
    exact = poses_of_links(moving, state)(single.astype(np.float64))
    error = np.abs(poses_of_links(moving, state, np.float32)(single) - exact)
    error = np.where(np.isfinite(exact), error, 0.0)
    return float(error[..., 3].max()), float(error[..., :3].max())


def converted(q: Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a vector of another type, with infinity where that has no such number."""
    if q.dtype == dtype:
        return q
    # The entry of the kernel that converts is made when it is first needed.
    numbers: list[float] = q.tolist()
    if max(map(abs, numbers), default=0.0) < ORDINARY:
        return q.astype(dtype)
    with np.errstate(over="ignore"):
        return q.astype(dtype)
