"""Distances of the triangles of meshes, by coal, in place of those of their hulls."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.collision.check_tables import CheckTables
from armillary.collision.distance.pair import Distance
from armillary.collision.shape_pairs import Placed
from armillary.errors import ModelError
from armillary.model.cloud import Cloud
from armillary.model.fields import kept
from armillary.model.geometry.triangles import Triangles, windings
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Lozenge,
    Mesh,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["ExactMeshes"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FINE: Final = 1e-4
"""How far triangles of cones may be from their surface [m]; it counts as thickness."""

GJK_TOLERANCE: Final = 1e-10
GJK_STEPS: Final = 1000


@final
class CoalBody(msgspec.Struct, frozen=True, eq=False):
    """A shape as coal has it; threads share it, since no query writes to it.

    Attributes:
        geometry: Triangles or a shape of coal.
        radius: How far the body reaches beyond it [m].
        surface: The triangles, where they enclose a volume.
        points: One on each connected part of the body, shape (p, 3).
    """

    geometry: Any
    radius: float
    surface: Triangles | None
    points: Array


@final
class ExactMeshes(msgspec.Struct, frozen=True, eq=False):
    """The pairs of shapes of a check in which one is a mesh.

    Distances are 0 where bodies overlap, since surfaces have no depth. Hulls are around
    their meshes, so distances are never below those of hulls that are apart.

    Attributes:
        tables: The pairs of the check; meshes are polyhedra there.
        has_mesh: Whether one shape of a pair is a mesh, shape (k,).
        bodies: Those of all shapes of such pairs.
    """

    tables: CheckTables
    has_mesh: npt.NDArray[np.bool_]
    bodies: dict[int, CoalBody]

    @classmethod
    def of(
        cls, cell: Workcell, tables: CheckTables, meshes: MeshSource | None
    ) -> Self | None:
        """Return the pairs with meshes, or None without any.

        Raises:
            ModelError: coal is not installed, or has no such shape.
        """
        shapes: list[Shape] = []
        for first in tables.first[:-1]:
            name = tables.pairs.shapes[int(first)].link
            shapes += cell.links[cell.frame(name).link].collision_shapes
        # The shapes of `tables` are hulls; those of the cell, in the same order, say
        # which were meshes. Bodies of meshes are cached by file and scale.
        is_mesh = np.array([isinstance(each, Mesh) for each in shapes], np.bool_)
        one, other = tables.pairs.pairs.T
        has_mesh = is_mesh[one] | is_mesh[other]
        if not has_mesh.any():
            return None
        cached = kept(cell, "exact meshes", dict[Any, CoalBody])
        bodies: dict[int, CoalBody] = {}
        used: list[int] = np.unique(tables.pairs.pairs[has_mesh]).tolist()
        for k in used:
            shape = shapes[k]
            if isinstance(shape, Primitive):
                bodies[k] = _body(shape, tables.pairs.shapes[k].link)
                continue
            if isinstance(shape, Cloud):
                raise ModelError(
                    f"'{tables.pairs.shapes[k].link}' is a cloud, which is not tested "
                    "against the triangles of meshes. Take exact=False, convex parts "
                    "(arm.shapes.convex_parts), or leave such pairs out: "
                    "rules.exclude(...)."
                )
            assert isinstance(shape, Mesh) and meshes is not None
            key = meshes, shape.file, shape.scale
            if key not in cached:
                triangles = meshes.triangles(shape)
                assert triangles is not None
                cached[key] = _of_triangles(triangles)
            bodies[k] = cached[key]
        return cls(tables, has_mesh, bodies)

    def values(self, placed: Placed, X: Array, rows: Any, which: Any) -> Array:
        """Return the distances of pairs of shapes at poses; see `ShapePairs.bounds`."""
        distances = self._of_hulls(placed, X, rows, which)
        for k in np.flatnonzero(self.has_mesh[which]).tolist():
            distances[k] = self._value(placed, X[rows[k]], int(which[k]), distances[k])
        return distances

    def least(self, placed: Placed, X: Array, enough: float | None) -> Array:
        """Return the least distance of all pairs at poses.

        Args:
            placed: Where the shapes are.
            X: Poses of moving links, shape (n, f, 3, 4).
            enough: Only whether it is above this counts [m].

        Returns:
            Distances [m], shape (n,); NaN where a pose has NaN.
        """
        # Bounds from cheap to expensive: spheres, then hulls, then triangles. Triangles
        # of a row are looked at by rising distance of hulls, until none can be nearer.
        table = self.tables.pairs
        count = len(table.pairs)
        rows = np.repeat(np.arange(len(X)), count)
        which = np.tile(np.arange(count), len(X))
        values = table.bounds(placed, X, rows, which)
        near = np.flatnonzero(values <= (np.inf if enough is None else enough))
        values[near] = self._of_hulls(placed, X, rows[near], which[near])
        values = values.reshape(-1, count)
        least = np.min(values[:, ~self.has_mesh], axis=1, initial=np.inf)
        meshed = np.flatnonzero(self.has_mesh)
        for row, hulls in enumerate(values[:, meshed]):
            if np.isnan(hulls).any():
                least[row] = np.nan
            for k in np.argsort(hulls).tolist():
                lower = max(float(hulls[k]), 0.0)
                if not lower < least[row] or (enough is not None and lower > enough):
                    break
                apart = self._value(placed, X[row], int(meshed[k]), float(hulls[k]))
                least[row] = min(least[row], apart)
                if enough is not None and least[row] <= enough:
                    break
        return least

    def nearest(self, pair: int, X_A: Array, X_B: Array) -> Distance:
        """Return the distance of a pair with a mesh, as `distance` does of two shapes.

        Where they overlap, both points are one that they share, and the normal is one
        that coal gives; where one is wholly inside the other, points are the nearest of
        their surfaces.

        Args:
            pair: A pair of shapes, of which one is a mesh.
            X_A: Poses of the frame that the pose of its first shape is in, (n, 4, 4).
            X_B: The same for the second.
        """
        a, b = (self.tables.pairs.shapes[k].shape for k in self._sides(pair))
        # coal takes one pair of poses at a time: batches are flattened, and made again.
        poses = [np.asarray(X) @ s.pose.matrix() for X, s in ((X_A, a), (X_B, b))]
        batch = np.broadcast_shapes(*(each.shape[:-2] for each in poses))
        both = [np.broadcast_to(X, (*batch, 4, 4)).reshape(-1, 4, 4) for X in poses]
        value, points = np.empty(len(both[0])), np.empty((len(both[0]), 2, 3))
        normal = np.empty((len(both[0]), 3))
        for k, (P, Q) in enumerate(zip(*both, strict=True)):
            value[k], points[k], normal[k] = self._contact(pair, P[:3], Q[:3])
        return Distance(
            value.reshape(batch),
            points.reshape(*batch, 2, 3),
            normal.reshape(*batch, 3),
            np.zeros(batch),
        )

    def _sides(self, pair: int) -> tuple[int, int]:
        a, b = self.tables.pairs.pairs[pair].tolist()
        return a, b

    def _of_hulls(self, placed: Placed, X: Array, rows: Any, which: Any) -> Array:
        """Return distances by hulls, without depth where there are meshes."""
        distances = np.empty(len(which))
        for has_mesh in (False, True):
            at = np.flatnonzero(self.has_mesh[which] == has_mesh)
            distances[at] = self.tables.pairs.distances(
                placed, X, rows[at], which[at], "free" if has_mesh else "value"
            )
        return distances

    def _value(self, placed: Placed, X: Array, pair: int, hulls: float) -> float:
        """Return the distance of a pair with a mesh.

        hulls: The distance of its hulls, not above 0 where they overlap.
        """
        # The poses of both shapes in the world.
        poses: list[Array] = []
        for k in self._sides(pair):
            frame, within = X[placed.rows[k]], placed.matrices[k]
            pose = frame[:, :3] @ within
            pose[:, 3] += frame[:, 3]
            poses.append(pose)
        X_A, X_B = poses
        if not (np.isfinite(X_A).all() and np.isfinite(X_B).all()):
            return np.nan
        apart = max(self._apart(pair, X_A, X_B)[0], 0.0)
        # Hulls that are apart prove a distance, which is exact where coal's iteration
        # is not. Where hulls overlap, one surface may be inside the other.
        if hulls > 0.0:
            return max(apart, hulls)
        return 0.0 if apart and self._is_enclosed(pair, X_A, X_B) else apart

    def _apart(self, pair: int, X_A: Array, X_B: Array) -> tuple[float, Any]:
        """Return the distance of two bodies, not above 0 where they touch."""
        # coal measures cores; radii are taken from what it returns.
        coal = _coal()
        a, b = (self.bodies[k] for k in self._sides(pair))
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = GJK_TOLERANCE
        request.gjk_max_iterations = GJK_STEPS
        apart: float = coal.distance(
            a.geometry, _at(X_A), b.geometry, _at(X_B), request, result
        )
        return apart - a.radius - b.radius, result

    def _is_enclosed(self, pair: int, X_A: Array, X_B: Array) -> bool:
        """Return whether a part of a body is in the volume that the other encloses."""
        # Surfaces that do not meet are either apart or one inside the other; one point
        # of each connected part tells which. Either body may be the outer one.
        a, b = (self.bodies[k] for k in self._sides(pair))
        return any(
            outer.surface is not None
            and _is_inside(outer.surface, _into(X_outer, X_inner, inner.points))
            for outer, X_outer, inner, X_inner in ((a, X_A, b, X_B), (b, X_B, a, X_A))
        )

    def _contact(self, pair: int, X_A: Array, X_B: Array) -> tuple[float, Array, Array]:
        """Return distance, points and normal of a pair with a mesh."""
        nothing = np.full((2, 3), np.nan), np.full(3, np.nan)
        if not (np.isfinite(X_A).all() and np.isfinite(X_B).all()):
            return np.nan, *nothing
        coal = _coal()
        a, b = (self.bodies[k] for k in self._sides(pair))
        value, result = self._apart(pair, X_A, X_B)
        p, q = (
            np.array(point, np.float64)
            for point in (result.getNearestPoint1(), result.getNearestPoint2())
        )
        # Cores that are apart have nearest points and a normal, from which radii lead
        # to those of the bodies: these may overlap, or one may be inside the other.
        length = float(np.linalg.norm(q - p))
        if value + a.radius + b.radius > 0.0 and length > 0.0:
            normal = (q - p) / length
            points = np.stack([p + a.radius * normal, q - b.radius * normal])
            if value <= 0.0:
                return 0.0, np.tile(points.mean(axis=0), (2, 1)), normal
            if self._is_enclosed(pair, X_A, X_B):
                return 0.0, points, -normal
            return value, points, normal
        # Surfaces that cut each other have no nearest points; a contact has a point.
        request, contacts = coal.CollisionRequest(), coal.CollisionResult()
        request.enable_contact = True
        coal.collide(a.geometry, _at(X_A), b.geometry, _at(X_B), request, contacts)
        if not contacts.isCollision():  # they touch, within rounding
            return 0.0, *nothing
        contact = contacts.getContact(0)
        return 0.0, np.tile(contact.pos, (2, 1)), np.array(contact.normal)


def _coal() -> Any:
    try:
        return import_module("coal")
    except ImportError as error:
        raise ModelError(
            "Meshes are tested by their triangles with coal, which is not installed. "
            "Install it: pip install armillary[exact]. Or leave out exact=True: meshes "
            "are tested by their hulls then."
        ) from error


def _body(shape: Primitive, link: str) -> CoalBody:
    """Return a primitive as coal has it."""
    # First what is exact: cores of corners with a radius, then curved shapes that coal
    # has, then triangles of polyhedra. Triangles of any other shape are inside of it by
    # up to FINE, which is added as a radius.
    core = _core(shape)
    if core is not None:
        triangles, radius = core
        body = _of_triangles(triangles, radius)
        return replace(body, surface=None)
    curved = _curved(shape)
    if curved is not None:
        parts = 0 if isinstance(shape, HalfSpace) else 1  # no mesh encloses all of it
        return CoalBody(*curved, None, np.zeros((parts, 3)))
    if isinstance(shape, Box | ConvexPolyhedron | Tetrahedron):
        return _of_triangles(shape.triangles())
    try:
        return _of_triangles(shape.triangles(FINE), FINE)
    except NotImplementedError as error:
        raise ModelError(
            f"'{link}' has a {type(shape).__name__}, which has no triangles to compare "
            "with those of meshes. Define its method `triangles`, or leave out "
            "exact=True."
        ) from error


def _core(shape: Primitive) -> tuple[Triangles, float] | None:
    """Return what all points of a shape are within a radius of, if that has corners.

    Points and segments are triangles without area: coal is exact for these.
    """
    match shape:
        case Sphere():
            corners, faces = [(0, 0, 0)], [(0, 0, 0)]
        case Capsule():
            z = 0.5 * shape.length
            corners, faces = [(0, 0, -z), (0, 0, z)], [(0, 1, 1)]
        case TriangularLozenge():
            corners, faces = shape.corners, [(0, 1, 2)]
        case Lozenge():
            x, y = 0.5 * np.array(shape.size)
            corners = [(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0)]
            faces = [(0, 1, 2), (0, 2, 3)]
        case _:
            return None
    return Triangles(corners, faces), shape.radius


def _curved(shape: Primitive) -> tuple[Any, float] | None:
    """Return a shape of coal, and how far the body reaches beyond it [m]."""
    coal = _coal()
    match shape:
        case CircularLozenge():
            return coal.Cylinder(shape.disc, 0.0), shape.radius
        case Cylinder():
            return coal.Cylinder(shape.radius, shape.length), 0.0
        case Ellipsoid():
            return coal.Ellipsoid(*shape.radii), 0.0
        case HalfSpace():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), 0.0
        case _:
            return None


def _of_triangles(triangles: Triangles, radius: float = 0.0) -> CoalBody:
    """Return triangles as coal has them."""
    coal = _coal()
    vertices, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    vertices.extend(triangles.vertices)
    for face in triangles.faces.tolist():
        faces.append(coal.Triangle(*face))
    geometry = coal.BVHModelOBBRSS()
    geometry.beginModel(len(faces), len(vertices))
    geometry.addSubModel(vertices, faces)
    geometry.endModel()
    surface = triangles if triangles.is_watertight else None
    return CoalBody(geometry, radius, surface, _one_of_each_part(triangles))


def _one_of_each_part(triangles: Triangles) -> Array:
    """Return a corner of each connected part, shape (p, 3)."""
    # Each corner takes the least number of those that it is connected to: that of its
    # triangles, then that of the corner with its number, until nothing changes.
    least = np.arange(len(triangles.vertices))
    before = np.zeros_like(least)
    while not np.array_equal(least, before):
        before = least.copy()
        lowest = least[triangles.faces].min(axis=1)
        np.minimum.at(least, triangles.faces, lowest[:, None])
        least = least[least]
    used = np.unique(triangles.faces)
    return triangles.vertices[np.unique(least[used])]


def _is_inside(surface: Triangles, points: Array) -> bool:
    """Return whether a closed surface winds around any of some points."""
    return any(abs(windings(point[None], surface.corners)[0]) > 0.5 for point in points)


def _into(X_outer: Array, X_inner: Array, points: Array) -> Array:
    """Return points of one body in the frame of another."""
    # Positions are subtracted first, so that no digits are lost far from the origin.
    there = points @ X_inner[:, :3].T + (X_inner[:, 3] - X_outer[:, 3])
    return there @ X_outer[:, :3]


def _at(X: Array) -> Any:
    return _coal().Transform3s(X[:, :3].copy(), X[:, 3].copy())
