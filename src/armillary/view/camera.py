"""Where a cell is looked at from."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.spatial.pose import Pose

__all__ = ["FIELD_OF_VIEW", "Camera", "fitted"]

Array = npt.NDArray[np.float64]

FIELD_OF_VIEW: Final = 0.7
"""The angle between the lower and the upper edge of a picture [rad]."""

VIEW_FROM: Final = (0.75, -1.0, 0.6)
"""The direction from a cell to the camera, where none is asked for."""

MARGIN: Final = 1.06


class Camera(NamedTuple):
    """A point to look from, and a point in the middle of the picture.

    Attributes:
        position: In the world [m], shape (3,).
        look_at: In the world [m], shape (3,).
    """

    position: Array
    look_at: Array

    def quaternion(self) -> tuple[float, ...]:
        """Return the rotation in the world, w x y z, of axes right, down, ahead."""
        right, up, back = _axes(self.position - self.look_at)
        R = np.stack([right, -up, -back], axis=1)
        return Pose.from_rotation_position(R.tolist()).quaternion()


def fitted(
    points: npt.ArrayLike,
    *,
    view_from: npt.ArrayLike = VIEW_FROM,
    look_at: npt.ArrayLike | None = None,
    aspect: float = 4 / 3,
) -> Camera:
    """Return the nearest camera that sees all points.

    Args:
        points: In the world [m], shape (n, 3).
        view_from: The direction from the points to the camera, shape (3,).
        look_at: The middle of the picture [m], shape (3,); by default that of the
            points as they are seen.
        aspect: Width over height of the picture.

    Raises:
        ModelError: The direction is zero.
    """
    seen = np.reshape(np.asarray(points, np.float64), (-1, 3))
    axes = _axes(np.asarray(view_from, np.float64))
    if look_at is None:
        flat = seen @ axes.T
        look_at = 0.5 * (flat.min(axis=0) + flat.max(axis=0)) @ axes
    middle = np.asarray(look_at, np.float64)
    across, up, near = axes @ (seen - middle).T
    slope = np.tan(0.5 * FIELD_OF_VIEW) / MARGIN
    distance = np.max(near + np.maximum(abs(across) / aspect, abs(up)) / slope)
    return Camera(middle + max(float(distance), 1e-3) * axes[2], middle)


def _axes(back: Array) -> Array:
    """Return unit vectors right, up and back of a camera as rows, z of the world up."""
    length = float(np.linalg.norm(back))
    if not 0.0 < length < np.inf:
        raise ModelError(
            "A camera must be at a finite distance from the point it looks at, not "
            f"{length} m."
        )
    back = back / length
    right = np.cross((0.0, 0.0, 1.0), back)
    if np.linalg.norm(right) < 1e-6:  # straight from above or below
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])
