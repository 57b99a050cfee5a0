"""A shape of each kind, and what they are, said again in other words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

import armillary as arm
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    Lozenge,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)

CORNERS = ((0.1, 0.2, 0.3), (1.1, 0.2, 0.4), (0.3, 1.4, 0.3), (0.2, 0.3, 1.6))
CLOUD = np.random.default_rng(7).normal((0.5, 0.0, -0.3), size=(40, 3))

SOLIDS: dict[str, Primitive] = {
    "box": Box(size=(0.4, 1.0, 1.7)),
    "sphere": Sphere(radius=0.7),
    "cylinder": Cylinder(radius=0.4, length=1.5),
    "capsule": Capsule(radius=0.3, length=1.1),
    "lozenge": Lozenge(size=(0.8, 1.3), radius=0.25),
    "narrow lozenge": Lozenge(size=(0.0, 1.3), radius=0.25),
    "circular lozenge": CircularLozenge(disc=0.6, radius=0.2),
    "triangular lozenge": TriangularLozenge(corners=CORNERS[:3], radius=0.2),
    "ellipsoid": Ellipsoid(radii=(0.3, 0.8, 1.2)),
    "cone": Cone(bottom=0.7, length=1.3),
    "truncated cone": Cone(bottom=0.3, top=0.9, length=0.5),
    "tetrahedron": Tetrahedron(corners=CORNERS),
    "polyhedron": ConvexPolyhedron.around(CLOUD),
}


def beyond(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Return numbers that are below 0 inside, above 0 outside."""
    return BEYOND[type(shape)](shape, points)


def from_segment(points: np.ndarray, a: Any, b: Any) -> np.ndarray:
    a, step = np.asarray(a), np.subtract(b, a)
    t = np.clip((points - a) @ step / (step @ step), 0.0, 1.0)
    return np.linalg.norm(points - a - t[:, np.newaxis] * step, axis=1)


def from_triangle(points: np.ndarray, corners: Any) -> np.ndarray:
    a, b, c = np.array(corners)
    edges = np.column_stack([b - a, c - a])
    st = np.linalg.lstsq(edges, (points - a).T, rcond=None)[0]
    is_over = (st >= 0.0).all(axis=0) & (st.sum(axis=0) <= 1.0)
    height = np.linalg.norm((points - a).T - edges @ st, axis=0)
    outline = np.min(
        [from_segment(points, p, q) for p, q in ((a, b), (b, c), (c, a))], axis=0
    )
    return np.where(is_over, height, outline)


def from_slab(points: np.ndarray, half: Any) -> np.ndarray:
    return np.linalg.norm(np.maximum(np.abs(points) - half, 0.0), axis=1)


def about_z(points: np.ndarray) -> np.ndarray:
    return np.hypot(points[:, 0], points[:, 1])


def out_of_cone(s: Cone, points: np.ndarray) -> np.ndarray:
    along = points[:, 2] / s.length + 0.5
    radius = s.bottom + (s.top - s.bottom) * along
    return np.maximum(about_z(points) - radius, np.abs(along - 0.5) - 0.5)


def out_of_hull(vertices: Any, points: np.ndarray) -> np.ndarray:
    planes = ConvexHull(vertices).equations
    return (points @ planes[:, :3].T + planes[:, 3]).max(axis=1)


BEYOND: dict[type[Shape], Callable[[Any, np.ndarray], np.ndarray]] = {
    Box: lambda s, p: (np.abs(p) - 0.5 * np.array(s.size)).max(axis=1),
    Sphere: lambda s, p: np.linalg.norm(p, axis=1) - s.radius,
    Cylinder: lambda s, p: np.maximum(
        about_z(p) - s.radius, np.abs(p[:, 2]) - 0.5 * s.length
    ),
    Capsule: lambda s, p: from_slab(p, (0.0, 0.0, 0.5 * s.length)) - s.radius,
    Lozenge: lambda s, p: from_slab(p, (*np.multiply(0.5, s.size), 0.0)) - s.radius,
    CircularLozenge: lambda s, p: (
        np.hypot(np.maximum(about_z(p) - s.disc, 0.0), p[:, 2]) - s.radius
    ),
    TriangularLozenge: lambda s, p: from_triangle(p, s.corners) - s.radius,
    Ellipsoid: lambda s, p: np.linalg.norm(p / s.radii, axis=1) - 1.0,
    Cone: out_of_cone,
    Tetrahedron: lambda s, p: out_of_hull(s.corners, p),
    ConvexPolyhedron: lambda s, p: out_of_hull(s.vertices, p),
}


def without_meshes(cell: arm.Cell) -> arm.Cell:
    """Return a cell with a ball in place of each mesh."""
    ball = Sphere(radius=0.1)

    def solid(link: arm.Link) -> arm.Link:
        shapes = [s if isinstance(s, Primitive) else ball for s in link.collisions]
        return link.replace(collisions=shapes)

    return cell.replace(
        manipulators=[
            m.replace(links=[solid(link) for link in m.links])
            for m in cell.manipulators
        ]
    )
