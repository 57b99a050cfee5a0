"""Volumes around links and shapes: capsules and boxes, where spheres are too large."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.shape_boxes import BoxColumns
from armillary.model.cloud import Cloud
from armillary.model.fields import kept
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Cylinder,
    Lozenge,
)
from armillary.trace import Port

__all__ = [
    "LinkCapsules",
    "RoundedBox",
    "box_records",
    "link_capsules",
    "rounded_box",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

ORIGIN: Final = np.zeros(3)

CORNERS: Final = np.array(
    [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
)

ROUNDED: Final = 1e-6
"""What roundings of float32 add to a capsule, by its size and 1 m."""

GAP_ROUNDED: Final = 1e-5
"""What they take off the gap of two boxes, likewise."""


class RoundedBox(NamedTuple):
    """A box with rounded edges around a shape, in the shape's own frame.

    Attributes:
        centre: Its centre, shape (3,).
        half: Half of its edges, without the rounding, shape (3,).
        radius: The rounding [m].
        is_shape: Whether the shape is that, and no more than within it.
    """

    centre: Array
    half: Array
    radius: float
    is_shape: bool


def rounded_box(shape: Primitive | Cloud) -> RoundedBox | None:
    """Return the rounded box around a shape; None where a sphere does as well."""
    match shape:
        case Box():
            return RoundedBox(ORIGIN, 0.5 * np.array(shape.size), 0.0, True)
        case Capsule():
            half = np.array([0.0, 0.0, 0.5 * shape.length])
            return RoundedBox(ORIGIN, half, shape.radius, True)
        case Lozenge():
            half = np.array([*(0.5 * np.array(shape.size)), 0.0])
            return RoundedBox(ORIGIN, half, shape.radius, True)
        case Cylinder():
            half = np.array([shape.radius, shape.radius, 0.5 * shape.length])
            return RoundedBox(ORIGIN, half, 0.0, False)
        case ConvexPolyhedron():
            corners = np.array(shape.vertices)
            low, high = corners.min(axis=0), corners.max(axis=0)
            return RoundedBox(0.5 * (low + high), 0.5 * (high - low), 0.0, False)
        case Cloud():
            low, high = map(np.array, shape.bounding_box())
            return RoundedBox(0.5 * (low + high), 0.5 * (high - low), 0.0, False)
        case _:
            return None


class LinkCapsules(NamedTuple):
    """A capsule around the shapes of each link.

    Attributes:
        ends: The ends of its axis in the frame of the link, shape (l, 2, 3).
        radii: Its radius [m], shape (l,).
    """

    ends: Array
    radii: Array


def link_capsules(tables: CheckTables) -> LinkCapsules:
    """Return capsules around the shapes of links, kept with the tables of a check."""
    return kept(tables, "link capsules", lambda: _made(tables))


def _made(tables: CheckTables) -> LinkCapsules:
    pairs, count = tables.pairs, len(tables.first) - 1
    ends, radii = np.zeros((count, 2, 3)), np.zeros(count)
    for link in range(count):
        points: list[Array] = []
        sizes: list[Array] = []
        for k in range(*tables.first[link : link + 2].tolist()):
            corners, radius = _corners(pairs.shapes[k].shape)
            X = pairs.matrices[k]
            if corners is None:  # a sphere around it
                corners, radius = np.zeros((1, 3)), float(pairs.radii[k])
                corners += pairs.centres[k]
            else:
                corners = corners @ X[:3, :3].T + X[:3, 3]
            points.append(corners)
            sizes.append(np.full(len(corners), radius))
        ends[link], radii[link] = capsule_around(
            np.concatenate(points), np.concatenate(sizes)
        )
    return LinkCapsules(ends, radii)


def _corners(shape: Primitive | Cloud) -> tuple[Array | None, float]:
    """Return points that span a shape in its frame, and what is added around them."""
    if isinstance(shape, ConvexPolyhedron):
        return np.array(shape.vertices), 0.0
    box = rounded_box(shape)
    if box is None:
        return None, 0.0
    return box.centre + CORNERS * box.half, box.radius


def capsule_around(centres: Array, radii: Array) -> tuple[Array, float]:
    """Return a capsule around spheres: the ends of its axis, shape (2, 3), its radius.

    Its axis is along that in which they extend most. At a distance d from the axis a
    sphere of radius r is within R if the axis gets as near as s = sqrt((R - r)^2 - d^2)
    to its foot.
    """
    if not np.isfinite(radii).all():
        return np.zeros((2, 3)), np.inf
    middle = 0.5 * (centres.min(axis=0) + centres.max(axis=0))
    way = centres - middle
    axis = np.linalg.svd(way, full_matrices=False)[2][0]
    foot = way @ axis
    d = np.linalg.norm(way - foot[:, np.newaxis] * axis, axis=1)
    R = float((d + radii).max())
    s = np.sqrt(np.maximum((R - radii) ** 2 - d**2, 0.0))
    low, high = float((foot + s).min()), float((foot - s).max())
    if low > high:
        low = high = 0.5 * (low + high)
    ends = middle + np.array([[low], [high]]) * axis
    return ends, R + ROUNDED * (1.0 + R + float(np.abs(ends).max()))


class ShapeBoxes(NamedTuple):
    """Boxes around shapes in their own frames.

    Attributes:
        centres: Their centres, shape (n, 3).
        axes: Their axes in rows, shape (n, 3, 3).
        halves: Half of their edges [m], shape (n, 3).
        radii: What the edges are rounded by [m]; infinite where nothing is known.
    """

    centres: Array
    axes: Array
    halves: Array
    radii: Array


def box_records(
    columns: BoxColumns, pairs: PlacedPairs, shapes: Indices
) -> dict[Port, Any]:
    """Return the fields of boxes for pairs of shapes, shape (p, 2)."""
    tables = pairs.tables
    boxes = kept(tables, "shape boxes", lambda: _boxes(tables))
    X = pairs.placed.matrices[shapes]
    R, p = X[..., :3], X[..., 3]
    centres = (R @ boxes.centres[shapes][..., np.newaxis])[..., 0] + p
    axes = boxes.axes[shapes] @ R.swapaxes(-1, -2)
    halves, radii = boxes.halves[shapes], boxes.radii[shapes].sum(axis=1)
    size = np.linalg.norm(halves, axis=-1).sum(axis=1) + radii
    return {
        columns.box_centre_a: centres[:, 0],
        columns.box_axes_a: axes[:, 0],
        columns.box_half_a: halves[:, 0],
        columns.box_centre_b: centres[:, 1],
        columns.box_axes_b: axes[:, 1],
        columns.box_half_b: halves[:, 1],
        columns.box_rounding: radii + GAP_ROUNDED * (1.0 + size),
    }


def _boxes(tables: CheckTables) -> ShapeBoxes:
    count = len(tables.pairs.shapes)
    centres, halves, radii = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    axes = np.tile(np.eye(3), (count, 1, 1))
    for k, each in enumerate(tables.pairs.shapes):
        shape = each.shape
        if isinstance(shape, ConvexPolyhedron):
            centres[k], axes[k], halves[k] = box_around(np.array(shape.vertices))
            continue
        box = rounded_box(shape)
        if box is None:  # a sphere, or what has no box
            R, p = tables.pairs.matrices[k][:3, :3], tables.pairs.matrices[k][:3, 3]
            centres[k] = R.T @ (tables.pairs.centres[k] - p)
            radii[k] = tables.pairs.radii[k]
        else:
            centres[k], halves[k], radii[k] = box.centre, box.half, box.radius
    return ShapeBoxes(centres, axes, halves, radii)


def box_around(points: Array) -> tuple[Array, Array, Array]:
    """Return centre, axes and half edges of a box around points.

    It is along the axes of their frame, or of their greatest extent, whichever is
    smaller.
    """
    found: list[tuple[float, Array, Array, Array]] = []
    turned = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    for axes in (np.eye(3), turned):
        along = points @ axes.T
        low, high = along.min(axis=0), along.max(axis=0)
        half = 0.5 * (high - low)
        found.append((float(half.prod()), 0.5 * (low + high) @ axes, axes, half))
    _, centre, axes, half = min(found, key=lambda one: one[0])
    return centre, axes, half
