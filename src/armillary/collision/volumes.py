"""Volumes around links and shapes: capsules and boxes, where spheres are too large.

Boxes also bound how fast pairs of links approach each other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.link_levers import LinkReach, link_levers
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.shape_boxes import BoxColumns
from armillary.kinematics.speed_bounds import SpeedBounds, zero_product
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
    "approach_rates",
    "box_records",
    "link_capsules",
    "rounded_box",
    "rounded_boxes",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

NO_BOX: Final = (np.nan,) * 7

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
    numbers = _numbers_of(shape)
    if numbers is None:
        return None
    is_shape = isinstance(shape, Box | Capsule | Lozenge)
    box = np.array(numbers)
    return RoundedBox(box[:3], box[3:6], float(box[6]), is_shape)


def _numbers_of(shape: Primitive | Cloud) -> tuple[float, ...] | None:
    """Return the centre, half of the edges and the rounding of `rounded_box`."""
    match shape:
        case Box():
            a, b, c = shape.size
            return 0.0, 0.0, 0.0, 0.5 * a, 0.5 * b, 0.5 * c, 0.0
        case Capsule():
            return 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * shape.length, shape.radius
        case Lozenge():
            a, b = shape.size
            return 0.0, 0.0, 0.0, 0.5 * a, 0.5 * b, 0.0, shape.radius
        case Cylinder():
            r = shape.radius
            return 0.0, 0.0, 0.0, r, r, 0.5 * shape.length, 0.0
        case ConvexPolyhedron():
            corners = np.array(shape.vertices)
            low, high = corners.min(axis=0), corners.max(axis=0)
        case Cloud():
            low, high = map(np.array, shape.bounding_box())
        case _:
            return None
    return *(0.5 * (low + high)).tolist(), *(0.5 * (high - low)).tolist(), 0.0


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
    boxes = _shape_boxes(tables)
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


def approach_rates(pairs: PlacedPairs, lower: Array, upper: Array) -> Array:
    """Return how fast pairs of links can approach each other, by joints, shape (k, n).

    See `CollisionCheck.approach_rates`.
    """
    tables, speeds = pairs.tables, pairs.speeds(lower, upper)
    _, rates = link_levers(tables, speeds, pairs.placed, _reach_of_links(pairs, speeds))
    parts = [zero_product(rates, each) for each in speeds.joints.T]
    whole = np.zeros((len(tables.tested), len(parts)))
    whole[tables.moving] = np.stack([each.sum(axis=1) for each in parts], 1)
    return whole


def _reach_of_links(pairs: PlacedPairs, speeds: SpeedBounds) -> LinkReach:
    """Return how far links reach, by the corners of boxes around their shapes.

    A long link that turns about its own axis has a sphere that is much too large. The
    speed |v + w x p| of a point is convex in p, so that corners have the greatest.
    """
    tables = pairs.tables
    count, boxes = len(tables.first) - 1, _shape_boxes(tables)
    rows, _ = tables.spheres(pairs.placed)
    R, p = np.split(pairs.placed.matrices[: len(boxes.radii)], [3], axis=-1)
    corners = boxes.centres[:, np.newaxis]
    corners = corners + (CORNERS * boxes.halves[:, np.newaxis]) @ boxes.axes
    corners = corners @ R.swapaxes(-1, -2) + p.swapaxes(-1, -2)
    far, own = np.zeros(count), np.full((count, len(speeds.owners)), np.inf)
    for link in range(count):
        part = slice(*tables.first[link : link + 2])
        points, radius = corners[part].reshape(-1, 3), boxes.radii[part].max(initial=0)
        size = float(np.linalg.norm(points, axis=1).max(initial=0.0))
        rounded = ROUNDED * size
        far[link] = size + radius + rounded
        own[link] = speeds.own_speeds(int(rows[link]), points)
        own[link] += zero_product(speeds.angular, radius + rounded)
    return LinkReach(far, own)


def _shape_boxes(tables: CheckTables) -> ShapeBoxes:
    """Return the boxes of all shapes, kept with the tables of a check."""

    def made() -> ShapeBoxes:
        # Tables with obstacles begin with the shapes of those without.
        if tables.extends is None:
            return _boxes(tables, 0)
        front = _shape_boxes(tables.extends)
        behind = _boxes(tables, len(front.radii))
        return ShapeBoxes(*map(np.concatenate, zip(front, behind, strict=True)))

    return kept(tables, "shape boxes", made)


def _boxes(tables: CheckTables, first: int) -> ShapeBoxes:
    shapes = tables.pairs.shapes[first:]
    rounded = rounded_boxes(tables)[first:]
    centres, halves, radii = (
        rounded[:, part].copy() for part in (slice(3), slice(3, 6), 6)
    )
    axes = np.tile(np.eye(3), (len(shapes), 1, 1))
    hulls = [type(each.shape) is ConvexPolyhedron for each in shapes]
    for k in np.flatnonzero(hulls).tolist():
        hull = shapes[k].shape
        assert isinstance(hull, ConvexPolyhedron)
        points = np.array(hull.vertices)
        centres[k], axes[k], halves[k] = box_around(points)
    # Around what has no box there is a sphere.
    round_ = np.flatnonzero(np.isnan(radii))
    X, centre = (
        each[first + round_] for each in (tables.pairs.matrices, tables.pairs.centres)
    )
    way = centre - X[:, :3, 3]
    centres[round_] = (X[:, :3, :3].swapaxes(1, 2) @ way[..., np.newaxis])[..., 0]
    halves[round_], radii[round_] = 0.0, tables.pairs.radii[first + round_]
    return ShapeBoxes(centres, axes, halves, radii)


def rounded_boxes(tables: CheckTables) -> Array:
    """Return `rounded_box` of all shapes in rows, NaN where there is none: (n, 7).

    A row has the centre, half of the edges and the rounding.
    """

    def made() -> Array:
        front = np.empty((0, 7))
        if tables.extends is not None:
            front = rounded_boxes(tables.extends)
        shapes = tables.pairs.shapes[len(front) :]
        rows = [_numbers_of(each.shape) or NO_BOX for each in shapes]
        return np.concatenate([front, np.array(rows).reshape(-1, 7)])

    return kept(tables, "rounded boxes", made)


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
