"""Convex hulls of points."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError

__all__ = ["check_spans_body", "convex_hull"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FLATTEST: Final = 1e-9
"""Thickness of the thinnest body, as a part of its extent."""


def convex_hull(points: Array) -> Indices:
    """Return the triangles of the convex hull of points, computed by SciPy (Qhull).

    points: Shape (n, 3), finite.

    Returns:
        The corners of each triangle, counter-clockwise from outside, shape (m, 3).
        Points inside, and those within a face or edge, may be no corner.

    Raises:
        ModelError: The points lie within 1e-9 of their extent of one plane, or SciPy
            is not installed.
    """
    try:
        from scipy.spatial import (  # pyright: ignore[reportMissingTypeStubs]
            ConvexHull,
            QhullError,
        )
    except ImportError as error:
        raise ModelError(
            "The convex hull of points needs SciPy: pip install 'armillary[mesh]'."
        ) from error
    scaled = check_spans_body(points)
    try:
        hull = ConvexHull(scaled, qhull_options="Qt")
    except QhullError as error:
        raise ModelError(f"The points span no body: {_first_line(error)}") from error
    faces = np.array(hull.simplices, dtype=np.int64)
    a, b, c = scaled[faces].swapaxes(0, 1)
    inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces[inward] = faces[inward, ::-1]
    return faces


def check_spans_body(points: Array) -> Array:
    """Return points scaled to an extent of 1 about the origin, if they span a body.

    Raises:
        ModelError: They lie within 1e-9 of their extent of one plane.
    """
    if len(points) < 4:
        raise ModelError(f"{len(points)} points span no body; it takes four.")
    centred = points - 0.5 * (points.min(axis=0) + points.max(axis=0))
    extent = float(np.abs(centred).max())
    scaled = centred / (extent or 1.0)
    # The least singular value is the thickness times a number up to sqrt(n).
    *_, axes = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    if extent == 0.0 or np.ptp(scaled @ axes[2]) <= FLATTEST:
        raise ModelError("The points lie in one plane, so they span no body.")
    return scaled


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
