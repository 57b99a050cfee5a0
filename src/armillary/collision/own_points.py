"""Which points of a measured cloud lie on a robot itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.distance.pair import distance_kernel
from armillary.collision.distance.pair_kernel import sphere_around_shape
from armillary.collision.lengths import margin_of
from armillary.collision.tested_shapes import solids_of
from armillary.errors import ShapeError, unknown
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State, bound_state, home
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shapes import Sphere
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY

__all__ = ["own_points"]

Array = npt.NDArray[np.float64]

BLOCK: Final = 1 << 16
"""Points whose distances from a shape are measured at once."""

POINT: Final = Sphere(radius=0.0)


def own_points(
    cell: Workcell,
    points: npt.ArrayLike,
    *,
    manipulators: str | tuple[str, ...] | None = None,
    state: State | None = None,
    margin: float = 0.01,
    meshes: MeshSource | None = None,
) -> npt.NDArray[np.bool_]:
    """Return which points lie in collision shapes of the cell, or near them.

    A camera sees the robot, too: a cloud without these points is what else there is.
    Meshes count as their hulls; clouds of the cell do not count.

    Args:
        cell: The cell.
        points: Points in the world [m], shape (n, 3).
        manipulators: The names of manipulators whose links count; by default all.
        state: Where these were when the points were measured; by default at home.
        margin: How near points may be to count [m], at least 0.
        meshes: What reads meshes; by default what `arm.load` has left with the cell.

    Returns:
        Truths, shape (n,); False for points that are not finite.

    Raises:
        ShapeError: Points have another shape.
        UnknownName: There is no such manipulator.
        StateError: The state is not one of this cell.
        ModelError: The margin is invalid, or a mesh cannot be read.
    """
    given = np.asarray(points, np.float64)
    if given.ndim != 2 or given.shape[1] != 3:
        raise ShapeError(f"Points have shape (n, 3), not {given.shape}.")
    within = margin_of(margin)
    bound = home(cell) if state is None else bound_state(cell, state)
    names = _named(cell, manipulators)
    found = np.zeros(len(given), np.bool_)
    for X_WS, shape in _shapes(cell, bound, names, meshes):
        # Points in the frame of the shape, those alone that its sphere is near.
        centre, radius = sphere_around_shape(shape)
        middle = X_WS[:3, :3] @ np.array(centre) + X_WS[:3, 3]
        with np.errstate(invalid="ignore", over="ignore"):
            square = np.einsum("ij,ij->i", given - middle, given - middle)
        near = np.flatnonzero((square <= (radius + within) ** 2) & ~found)
        local = (given[near] - X_WS[:3, 3]) @ X_WS[:3, :3]
        kernel = distance_kernel(shape, POINT)
        for start in range(0, len(near), BLOCK):
            some = local[start : start + BLOCK]
            poses = np.tile(np.eye(4), (len(some), 1, 1))
            poses[:, :3, 3] = some
            found[near[start : start + BLOCK]] = kernel(poses) <= within
    return found


def _named(cell: Workcell, given: str | tuple[str, ...] | None) -> set[str]:
    """Return the names of manipulators."""
    known = [each.name for each in cell.manipulators]
    if given is None:
        return set(known)
    names = {given} if isinstance(given, str) else set(given)
    for name in sorted(names - set(known)):
        raise unknown("manipulator", name, known)
    return names


def _shapes(
    cell: Workcell, state: State, names: set[str], meshes: MeshSource | None
) -> Iterator[tuple[Array, Primitive]]:
    """Yield the shapes of links of manipulators, and their poses in the world."""
    known = poses(cell, state)
    for manipulator in cell.manipulators:
        if manipulator.name not in names:
            continue
        for link in manipulator.links:
            name = f"{manipulator.name}/{link.name}"
            for shape in solids_of(link, name, meshes):
                if not isinstance(shape, Cloud):
                    X = known[name] @ (link.primary @ shape.pose).matrix()
                    yield X, msgspec.structs.replace(shape, pose=IDENTITY)
