"""The kinds of shapes that come with armillary, one file each."""

from __future__ import annotations

from typing import Final

from armillary.model.shape import Shape
from armillary.model.shapes.box import Box
from armillary.model.shapes.capsule import Capsule
from armillary.model.shapes.circular_lozenge import CircularLozenge
from armillary.model.shapes.cone import Cone
from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron
from armillary.model.shapes.cylinder import Cylinder
from armillary.model.shapes.ellipsoid import Ellipsoid
from armillary.model.shapes.half_space import HalfSpace
from armillary.model.shapes.lozenge import Lozenge
from armillary.model.shapes.mesh import Mesh
from armillary.model.shapes.points import Points
from armillary.model.shapes.sphere import Sphere
from armillary.model.shapes.tetrahedron import Tetrahedron
from armillary.model.shapes.triangular_lozenge import TriangularLozenge
from armillary.model.shapes.voxels import Voxels

__all__ = [
    "SHAPES",
    "Box",
    "Capsule",
    "CircularLozenge",
    "Cone",
    "ConvexPolyhedron",
    "Cylinder",
    "Ellipsoid",
    "HalfSpace",
    "Lozenge",
    "Mesh",
    "Points",
    "Sphere",
    "Tetrahedron",
    "TriangularLozenge",
    "Voxels",
]

SHAPES: Final[tuple[type[Shape], ...]] = (
    Box,
    Sphere,
    Cylinder,
    Capsule,
    Lozenge,
    CircularLozenge,
    TriangularLozenge,
    HalfSpace,
    Ellipsoid,
    Cone,
    Tetrahedron,
    ConvexPolyhedron,
    Mesh,
    Points,
    Voxels,
)
"""Every kind of shape."""
