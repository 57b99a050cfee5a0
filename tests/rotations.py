"""Rotation matrices, independent of the package."""

from __future__ import annotations

import math

import numpy as np


def rotation(vector: np.ndarray) -> np.ndarray:
    """Rodrigues' formula."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = np.asarray(vector) / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K
