"""Slopes of distances by joint positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.distance.pair import distance
from armillary.collision.exact import ExactMeshes
from armillary.collision.shape_pairs import Placed
from armillary.kinematics.questions import jacobian
from armillary.kinematics.state import State

__all__ = ["gradients"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def gradients(
    tables: CheckTables,
    placed: Placed,
    state: State,
    Q: Array,
    X: Array,
    nearest: Indices,
    exact: ExactMeshes | None,
) -> Array:
    """Return the slopes of distances of pairs of links.

    Two bodies approach each other as their nearest points do, along the normal between
    these, as if fixed to the links: the slope is n' (v_b - v_a).

    Args:
        tables: The pairs of a check.
        placed: Where the shapes are.
        state: What moves.
        Q: Joint positions, shape (r, n).
        X: Poses of moving links there, shape (r, f, 3, 4).
        nearest: The pair of shapes that is nearest for each pair of links, (r, k).
        exact: What treats meshes by their triangles.

    Returns:
        Slopes [m per unit], shape (r, k, n).
    """
    shapes = tables.pairs.shapes
    names = [shapes[int(k)].link for k in tables.first[:-1]]
    of = {name: k for k, name in enumerate(names)}
    found = np.zeros((*nearest.shape, Q.shape[1]))
    if not found.size:
        return found
    J = np.asarray(jacobian(state.cell, names, state=state)(Q))
    for pair in np.unique(nearest).tolist():
        rows, at = np.nonzero(nearest == pair)
        sides: list[int] = tables.pairs.pairs[pair].tolist()
        frames = [placed.link_poses(X[rows, placed.rows[k]], k) for k in sides]
        a, b = (shapes[k] for k in sides)
        at_a, at_b = (
            frame @ each.primary.matrix()
            for frame, each in zip(frames, (a, b), strict=True)
        )
        if exact:
            result = exact.nearest(pair, at_a, at_b)
        else:
            result = distance(a.shape, at_a, b.shape, at_b)
        slope: Any = 0.0
        for side, (each, frame) in enumerate(zip((a, b), frames, strict=True)):
            lever = result.points[:, side] - frame[:, :3, 3]
            wrench = np.concatenate(
                [result.normal, np.cross(lever, result.normal)], axis=1
            )
            twists = J[rows, of[each.link]]
            power = np.einsum("ri,rij->rj", wrench, twists)
            slope = slope + power if side else slope - power
        is_flat = exact is not None and exact.has_mesh[pair] & (result.value <= 0.0)
        found[rows, at] = np.where(np.expand_dims(is_flat, -1), 0.0, slope)
    return found
