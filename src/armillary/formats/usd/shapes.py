"""What is drawn and what may touch: prims as shapes of a link."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np

from armillary.errors import ModelError
from armillary.formats.diagnostic import Severity
from armillary.formats.usd.process import PrimRecord
from armillary.formats.usd.scene import Affine, PlacedPrim, StagePrims, placed_of
from armillary.model.primitive import Primitive
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import (
    Box,
    Capsule,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Sphere,
)
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["COLLIDER", "PrimShapes", "is_collider"]

COLLIDER: Final = "PhysicsCollisionAPI"
AXES: Final = {
    "X": Pose.from_matrix([[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]]),
    "Y": Pose.from_matrix([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]]),
    "Z": IDENTITY,
}
"""Poses whose z is that axis."""

EQUAL: Final = 1e-6
"""How much scales may differ, as a part of them, and still count as equal."""
ROUND: Final = 0.005
"""How exact a round shape is that is stretched, as a part of its size."""
SIDES: Final = ("", "default", "render", "proxy")


def is_collider(prim: PrimRecord) -> bool:
    """Return whether a prim may touch others."""
    is_on = prim.values.get("physics:collisionEnabled") is not False
    return COLLIDER in prim.schemas and is_on


class PrimShapes:
    """Makes shapes of prims.

    Attributes:
        collide_all: Whether all that is drawn may touch too.
    """

    def __init__(self, scene: StagePrims, path: str) -> None:
        self._scene = scene
        self._file = os.path.basename(path)
        self._report = scene.report.tolerating("the shape is left out")
        self._makers: dict[str, Callable[..., Shape | None]] = {
            "Cube": self._cube,
            "Sphere": self._sphere,
            "Cylinder": self._cylinder,
            "Cylinder_1": self._cylinder_1,
            "Capsule": self._capsule,
            "Capsule_1": self._capsule_1,
            "Cone": self._cone,
            "Plane": self._plane,
            "Mesh": self._mesh,
        }
        self.collide_all = False

    def read(self, path: str, link: str) -> tuple[Shape | None, Shape | None]:
        """Return what is drawn of a prim, and what may touch.

        link: The path of the prim in whose rigid frame they are.
        """
        scene = self._scene
        prim = scene.prims[path]
        touches = is_collider(prim) or (self.collide_all and not prim.hidden)
        is_drawn = not prim.hidden and prim.purpose in SIDES
        if prim.type not in self._makers:
            if touches or is_drawn:
                what = f"a {prim.type} of the stage"
                scene.report.unsupported.add(what, scene.at(prim.path))
            return None, None
        inverse = scene.pose(link).inverse() if link else IDENTITY
        frame = Affine(np.array(inverse.rotation), np.array(inverse.position))
        affine = frame.then(scene.affine(path))
        drawn = self._made(prim, affine, link, touches=False) if is_drawn else None
        touching = self._made(prim, affine, link, touches=True) if touches else None
        return drawn, touching

    def _made(
        self, prim: PrimRecord, affine: Affine, link: str, *, touches: bool
    ) -> Shape | None:
        placed = placed_of(affine)
        looks: dict[str, Any] = {
            "name": self._scene.name(prim.path),
            "colour": _colour(prim.colour),
        }
        if 0.0 in placed.scale:
            message = f"{prim.label} is scaled by 0"
            self._report.error(self._scene.at(prim.path), "zero-scale", message)
            return None
        try:
            if prim.type == "Mesh":
                return self._mesh(prim, affine, placed, link, looks, touches)
            if placed.is_sheared:
                still = PlacedPrim(IDENTITY, (1.0, 1.0, 1.0), False)
                shape = self._makers[prim.type](prim, still, looks, touches)
                return self._stretched(prim, shape, affine)
            shape = self._makers[prim.type](prim, placed, looks, touches)
        except ModelError as error:
            message = f"{prim.label} is not a shape: {error}".removesuffix(".")
            self._report.error(self._scene.at(prim.path), "bad-shape", message)
            return None
        return shape

    def _size(self, prim: PrimRecord, name: str, default: float) -> float:
        value = self._scene.number(prim, name, default)
        if not 0.0 <= value < math.inf:
            raise ModelError(f"Its {name} is {value:g}.")
        return value

    def _cube(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Shape:
        size = self._size(prim, "size", 2.0)
        sides = tuple(size * abs(each) for each in at.scale)
        return Box(size=sides, pose=at.pose, **looks)  # type: ignore[arg-type]

    def _sphere(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Shape:
        radius = self._size(prim, "radius", 1.0)
        radii = tuple(radius * abs(each) for each in at.scale)
        if _are_equal(*radii):
            return Sphere(radius=radii[0], pose=at.pose, **looks)
        return Ellipsoid(radii=radii, pose=at.pose, **looks)  # type: ignore[arg-type]

    def _along(
        self, prim: PrimRecord, at: PlacedPrim
    ) -> tuple[Pose, float, float, float]:
        """Return the pose whose z is the axis of a shape, and scales along its axes."""
        axis = self._scene.text(prim, "axis", "Z")
        if axis not in AXES:
            raise ModelError(f"Its axis is {axis!r}, not X, Y or Z.")
        x, y, z = at.scale
        across = {"X": (z, y, x), "Y": (x, z, y), "Z": (x, y, z)}[axis]
        return (at.pose @ AXES[axis], *across)

    def _turned(
        self, prim: PrimRecord, at: PlacedPrim, make: Callable[[float, float], Shape]
    ) -> Shape | None:
        """Return a shape of a radius and a length, with its pose.

        make: Takes the scales of these.
        """
        pose, x, y, z = self._along(prim, at)
        if _are_equal(abs(x), abs(y)):
            shape = make(abs(x), z)
            return shape if pose is IDENTITY else _at(shape, pose)
        across = Affine(
            np.array(pose.rotation) @ np.diag([x, y, z]), np.array(pose.position)
        )
        return self._stretched(prim, make(1.0, 1.0), across)

    def _cylinder(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Any:
        radius = self._size(prim, "radius", 1.0)
        length = self._size(prim, "height", 2.0)
        return self._turned(
            prim,
            at,
            lambda r, z: Cylinder(radius=radius * r, length=length * abs(z), **looks),
        )

    def _cylinder_1(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Any:
        top = self._size(prim, "radiusTop", 1.0)
        bottom = self._size(prim, "radiusBottom", 1.0)
        return self._tapered(prim, at, looks, bottom, top)

    def _cone(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Any:
        return self._tapered(prim, at, looks, self._size(prim, "radius", 1.0), 0.0)

    def _tapered(
        self, prim: PrimRecord, at: PlacedPrim, looks: Any, bottom: float, top: float
    ) -> Any:
        length = self._size(prim, "height", 2.0)

        def made(r: float, z: float) -> Shape:
            low, high = (bottom, top) if z > 0.0 else (top, bottom)
            if low == high:
                return Cylinder(radius=low * r, length=length * abs(z), **looks)
            return Cone(bottom=low * r, top=high * r, length=length * abs(z), **looks)

        return self._turned(prim, at, made)

    def _capsule(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Any:
        radius = self._size(prim, "radius", 0.5)
        length = self._size(prim, "height", 1.0)
        return self._rounded(prim, at, looks, radius, length)

    def _capsule_1(self, prim: PrimRecord, at: PlacedPrim, looks: Any, _: bool) -> Any:
        top = self._size(prim, "radiusTop", 0.5)
        bottom = self._size(prim, "radiusBottom", 0.5)
        if not _are_equal(top, bottom):
            raise ModelError("The radii of its ends differ.")
        return self._rounded(prim, at, looks, top, self._size(prim, "height", 1.0))

    def _rounded(
        self, prim: PrimRecord, at: PlacedPrim, looks: Any, radius: float, length: float
    ) -> Any:
        pose, x, y, z = self._along(prim, at)
        if _are_equal(abs(x), abs(y), abs(z)):
            shape = Capsule(radius=radius * abs(x), length=length * abs(x), **looks)
            return _at(shape, pose)
        across = Affine(
            np.array(pose.rotation) @ np.diag([x, y, z]), np.array(pose.position)
        )
        shape = Capsule(radius=radius, length=length, **looks)
        return self._stretched(prim, shape, across)

    def _plane(
        self, prim: PrimRecord, at: PlacedPrim, looks: Any, touches: bool
    ) -> Shape:
        pose, x, y, z = self._along(prim, at)
        if touches:
            if z < 0.0:
                pose = pose @ Pose(
                    ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)),
                    (0.0, 0.0, 0.0),
                )
            return HalfSpace(pose=pose, **looks)
        width = self._size(prim, "width", 2.0)
        length = self._size(prim, "length", 2.0)
        if self._scene.text(prim, "axis", "Z") == "X":
            width, length = length, width
        return Box(size=(width * abs(x), length * abs(y), 0.0), pose=pose, **looks)

    def _mesh(
        self,
        prim: PrimRecord,
        affine: Affine,
        at: PlacedPrim,
        link: str,
        looks: Any,
        touches: bool,
    ) -> Shape | None:
        scene = self._scene
        if not prim.has_points:
            scene.report.unsupported.add(
                "a mesh without points", scene.at(prim.path), Severity.NOTE
            )
            return None
        approximation = scene.text(prim, "physics:approximation", "none")
        if touches and prim.box and approximation.startswith("bounding"):
            is_sphere = approximation == "boundingSphere"
            return _bounding(prim, at, looks, is_sphere=is_sphere)
        if at.is_sheared:
            return Mesh(file=f"{self._file}#{prim.path}|{link}", **looks)
        scale = tuple(_one(each / scene.metres) for each in at.scale)
        file = f"{self._file}#{prim.path}"
        return Mesh(file=file, scale=scale, pose=at.pose, **looks)  # type: ignore[arg-type]

    def _stretched(
        self, prim: PrimRecord, shape: Shape | None, affine: Affine
    ) -> Shape | None:
        """Return the convex polyhedron of a shape that is stretched."""
        if not isinstance(shape, Primitive) or isinstance(shape, HalfSpace):
            message = f"{prim.label} is scaled too unevenly for a {prim.type}"
            self._report.error(self._scene.at(prim.path), "stretched-shape", message)
            return None
        size = float(np.abs(shape.triangles(1.0).vertices).max(initial=0.0))
        points = shape.triangles(max(ROUND * size, 1e-9)).vertices
        at = np.array(shape.pose.matrix())
        points = points @ at[:3, :3].T + at[:3, 3]
        points = points @ affine.matrix.T + affine.origin
        is_round = not isinstance(shape, Box)
        if is_round:
            self._scene.report.note(
                self._scene.at(prim.path),
                "stretched-shape",
                f"{prim.label} is a {prim.type} with unequal scales; it becomes a "
                "convex polyhedron",
            )
        spread = float(np.ptp(points, axis=0).max())
        return ConvexPolyhedron.around(
            points,
            tolerance=ROUND * spread if is_round else 0.0,
            name=shape.name,
            colour=shape.colour,
        )


def _bounding(
    prim: PrimRecord, at: PlacedPrim, looks: Any, *, is_sphere: bool
) -> Shape:
    """Return the box or the sphere around a mesh."""
    low, high, radius = np.array(prim.box[:3]), np.array(prim.box[3:6]), prim.box[6]
    middle = (low + high) / 2.0 * np.array(at.scale)
    pose = at.pose @ Pose.translation(*middle.tolist())
    if is_sphere:
        size = max(map(abs, at.scale))
        return Sphere(radius=radius * size, pose=pose, **looks)
    sides = tuple(((high - low) * np.abs(at.scale)).tolist())
    return Box(size=sides, pose=pose, **looks)  # type: ignore[arg-type]


def _at(shape: Shape, pose: Pose) -> Shape:
    return msgspec.structs.replace(shape, pose=pose)


def _are_equal(*sizes: float) -> bool:
    return max(sizes) - min(sizes) <= EQUAL * max(sizes)


def _one(scale: float) -> float:
    """Return a scale, exactly 1 where only rounding makes it another."""
    return math.copysign(1.0, scale) if abs(abs(scale) - 1.0) < 1e-9 else scale


def _colour(given: tuple[float, ...]) -> Colour | None:
    """Return a colour within its range, None without one."""
    if len(given) != 4 or not all(map(math.isfinite, given)):
        return None
    red, green, blue, opacity = (min(1.0, max(0.0, each)) for each in given)
    return red, green, blue, opacity
