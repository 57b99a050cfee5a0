"""Whole turns: which joints may make them, and which bring q near a vector."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.kinematics.bound_kernel import AnyKernel

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

SLACK = 1e-9  # by how much rounding may leave a limit, and move a pose
SAMPLES = 4
FARTHEST = 2.0**20
"""How far from zero joints without limits are brought [m or rad].

There rounding still moves a pose by less than 1e-9 of the arm's size.
"""


def turning_joints(fk: AnyKernel, n: int) -> Truths:
    """Return which of n joints may turn once without changing a pose, shape (n,).

    Args:
        fk: The kernel of the poses, shape (..., k, 4, 4).
        n: How many joints there are.
    """
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (SAMPLES, 1, n))
    apart = fk(q + math.tau * np.eye(n)) - fk(q)
    return np.asarray(np.abs(apart).max(axis=(0, 2, 3, 4)) < SLACK)


def finite_limits(least: npt.ArrayLike, most: npt.ArrayLike) -> tuple[Array, Array]:
    """Return limits of joint positions that are at most FARTHEST from zero."""
    return np.maximum(least, -FARTHEST), np.minimum(most, FARTHEST)


def nearest_turns(q: Any, near: Any, limits: tuple[Any, Any], turning: Any) -> Any:
    """Return q with whole turns added: within limits if they can be, and near a vector.

    Args:
        q: Joint positions [m or rad], shape (..., n), or one of them, also traced.
        near: What they are brought near, broadcast with q.
        limits: Least and greatest q, each of shape (n,).
        turning: Which joints may turn, shape (n,).
    """
    # How many turns lead nearest, and the fewest and most that stay within limits;
    # where none do, limits are left aside.
    low, high = limits
    turns = np.rint((near - q) / math.tau)
    least = np.ceil((low - q - SLACK) / math.tau)
    most = np.floor((high - q + SLACK) / math.tau)
    within = np.minimum(np.maximum(turns, least), most)
    turns = cast("Any", np.where(least <= most, within, turns))
    return q + math.tau * np.where(turning, turns, 0.0)
