"""Whole turns: which joints may make them, and which bring q near a vector."""

from __future__ import annotations

import math

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


def nearest_turns(
    q: Array, near: Array, limits: tuple[Array, Array], turning: Truths
) -> Array:
    """Return q with whole turns added: within limits if they can be, and near a vector.

    Args:
        q: Joint positions [m or rad], shape (..., n).
        near: What they are brought near, broadcast with q.
        limits: Least and greatest q, each of shape (n,).
        turning: Which joints may turn, shape (n,).
    """
    turns = np.round((near - q) / math.tau)
    least, most = (
        rounded((limit - q + slack) / math.tau)
        for rounded, limit, slack in zip(
            (np.ceil, np.floor), limits, (-SLACK, SLACK), strict=True
        )
    )
    turns = np.where(least <= most, np.clip(turns, least, most), turns)
    return np.asarray(q + math.tau * np.where(turning, turns, 0.0))
