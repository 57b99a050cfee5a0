"""Geoms, read and written: their shapes, meshes, colours and sizes."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Diagnostic, Severity
from armillary.formats.mjcf.body import PlacedElement
from armillary.formats.mjcf.document import MAIN, MjcfDocument
from armillary.formats.mjcf.poses import read_fromto
from armillary.formats.paths import Roots
from armillary.formats.xml import Element
from armillary.limits import URDF_MISSING
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Sphere,
)
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    ZERO,
    Rows,
    apply,
    multiply,
    scale,
    transpose,
    vector,
)

__all__ = ["ONES", "SIZES", "GeomSize", "MeshAsset", "Shapes"]

ONES: Final = (1.0, 1.0, 1.0)
DEFAULT_COLOUR: Final = (0.5, 0.5, 0.5, 1.0)
WHITE: Final = (1.0, 1.0, 1.0, 1.0)
STRAIGHT: Final = 1e-12
NO_SHAPE: Final = ("hfield", "sdf", "mesh", "plane")


class GeomSize(NamedTuple):
    """How the numbers of `size` make a shape.

    Attributes:
        makes: The class of the shape.
        needed: How many numbers count; the last is half a length where `fromto` is not
            given.
    """

    makes: type[Shape]
    needed: int

    def fields(self, size: tuple[float, ...]) -> dict[str, Any]:
        """Return the fields of the shape."""
        if self.makes is Sphere:
            return {"radius": size[0]}
        if self.makes is Ellipsoid:
            return {"radii": size[:3]}
        if self.makes is Box:
            return {"size": tuple(2.0 * each for each in size[:3])}
        return {"radius": size[0], "length": 2.0 * size[1]}

    def numbers(self, shape: Any) -> tuple[float, ...]:
        """Return the numbers of a shape."""
        if self.makes is Sphere:
            return (shape.radius,)
        if self.makes is Ellipsoid:
            return tuple(shape.radii)
        if self.makes is Box:
            return tuple(0.5 * each for each in shape.size)
        return shape.radius, 0.5 * shape.length


SIZES: Final = {
    "sphere": GeomSize(Sphere, 1),
    "capsule": GeomSize(Capsule, 2),
    "cylinder": GeomSize(Cylinder, 2),
    "ellipsoid": GeomSize(Ellipsoid, 3),
    "box": GeomSize(Box, 3),
}
"""The types of geoms that are shapes with a size."""


class MeshAsset(NamedTuple):
    """A mesh of the assets.

    Attributes:
        element: With the defaults of its class.
        file: From the folder of the model; empty where the mesh is in the model.
        scale: Factors along the axes of the mesh as it is used.
        pose: Of the frame of the file in that in which it is used, before the scale.
        vertices: Those of a mesh in the model [m], already scaled and placed.
    """

    element: Element
    file: str
    scale: tuple[float, float, float]
    pose: Pose
    vertices: tuple[tuple[float, float, float], ...] = ()

    @property
    def inertia(self) -> str:
        """Return how its inertia is computed."""
        return self.element.attributes.get("inertia", "")


class Shapes:
    """Make shapes of geoms.

    roots: Where meshes are looked up.
    """

    def __init__(self, document: MjcfDocument, roots: Roots) -> None:
        self._document = document
        self._report = document.report.tolerating("the shape is left out")
        self._roots = roots
        self._looked_up: set[str] = set()
        self._missing = 0
        self.meshes: dict[str, MeshAsset] = {}
        self._colours: dict[str, Colour] = {}
        for element in document.sections.get("asset", []):
            if element.name == "mesh":
                self._add_mesh(document.effective(element, "asset", MAIN))
            elif element.name == "material":
                self._add_material(document.effective(element, "asset", MAIN))

    # Assets

    def _add_mesh(self, element: Element) -> None:
        report = self._report
        reference = element.attributes.get("file", "")
        name = element.attributes.get("name", "")
        if not name:
            name = os.path.splitext(os.path.basename(reference))[0]
        if name in self.meshes:
            report.error(
                element.place,
                "repeated-name",
                f"a mesh is called {quote(name)} already, at line "
                f"{self.meshes[name].element.place.line}",
            )
            return
        if "builtin" in element.attributes:
            report.unsupported.add("a <mesh> with 'builtin'", element.place)
            return
        factors = element.numbers("scale", 3, report, default=ONES)
        refpos = vector(element.numbers("refpos", 3, report, default=ZERO))
        wxyz = element.numbers("refquat", 4, report, default=(1.0, 0.0, 0.0, 0.0))
        try:
            turn = Pose.from_quaternion(wxyz).inverse()
        except ModelError:
            message = f"attribute 'refquat' of {element.label} has length 0"
            report.error(element.place, "bad-quaternion", message)
            return
        # v' = S R (v - p), which is (R S') v - S R p where S R = R S'.
        scales = vector(factors)
        turned = self._commuted(turn.rotation, scales)
        if turned is None:
            report.error(
                element.place,
                "sheared-mesh",
                f"{element.label} is turned by 'refquat' and stretched by 'scale', "
                "which shears it",
            )
            return
        moved = apply(turn.rotation, refpos)
        position = vector([-s * m for s, m in zip(scales, moved, strict=True)])
        pose = Pose(turn.rotation, position)
        vertices = self._vertices(element, pose, turned) if not reference else ()
        if not reference and not vertices:
            message = f"{element.label} names no file and has no vertices"
            report.error(element.place, "empty-reference", message)
            return
        asset = MeshAsset(element, reference, turned, pose, vertices)
        self.meshes[name] = asset

    @staticmethod
    def _commuted(
        rotation: Rows, scales: tuple[float, float, float]
    ) -> tuple[float, float, float] | None:
        """Return S' with S R = R S', None if there is no diagonal one."""
        if scales[0] == scales[1] == scales[2]:
            return scales
        x, y, z = (scale(s, row) for s, row in zip(scales, rotation, strict=True))
        inner = multiply(transpose(rotation), (x, y, z))
        size = max(abs(each) for each in scales)
        off = (inner[0][1], inner[0][2], inner[1][2])
        if max(abs(each) for each in off) > STRAIGHT * size:
            return None
        return inner[0][0], inner[1][1], inner[2][2]

    def _vertices(
        self, element: Element, pose: Pose, scales: tuple[float, float, float]
    ) -> tuple[tuple[float, float, float], ...]:
        numbers = element.numbers("vertex", None, self._report)
        if numbers is None or not numbers or len(numbers) % 3:
            if numbers is not None:
                message = f"'vertex' of {element.label} has {len(numbers)} numbers"
                self._report.error(element.place, "wrong-count", message)
            return ()
        points: list[tuple[float, float, float]] = []
        for k in range(0, len(numbers), 3):
            scaled = [s * x for s, x in zip(scales, numbers[k : k + 3], strict=True)]
            x, y, z = apply(pose.rotation, vector(scaled))
            px, py, pz = pose.position
            points.append((x + px, y + py, z + pz))
        return tuple(points)

    def _add_material(self, element: Element) -> None:
        name = element.attributes.get("name", "")
        rgba = element.numbers("rgba", 4, self._report, default=WHITE)
        self._colours[name] = _clipped(rgba)
        if "texture" in element.attributes or element.children:
            self._report.unsupported.add(
                "the texture of a <material>", element.place, Severity.NOTE
            )

    # Geoms

    def colour(self, element: Element) -> Colour | None:
        """Return the colour of a geom or site, None where it says nothing of it."""
        own = element.numbers("rgba", 4, self._report)
        material = element.attributes.get("material")
        if material is not None and (own is None or own == DEFAULT_COLOUR):
            if material in self._colours:
                return self._colours[material]
            self._report.tolerating("it has no colour", Severity.NOTE).error(
                element.place,
                "unknown-material",
                f"{element.label} has the material {quote(material)}, which is not "
                "defined",
                hint=self._report.hint(material, self._colours),
            )
        return None if own is None else _clipped(own)

    def type_of(self, element: Element) -> str:
        """Return the type of a geom."""
        return element.attributes.get("type", "sphere")

    def of(self, geom: PlacedElement) -> Shape | None:
        """Return the shape of a geom, None if there is none like it."""
        element, kind = geom.element, self.type_of(geom.element)
        faults = self._report.faults
        looks: dict[str, Any] = {
            "name": element.attributes.get("name", ""),
            "colour": self.colour(element),
        }
        try:
            if kind in SIZES and "mesh" not in element.attributes:
                shape = self._sized(geom, kind, looks)
            elif kind == "plane":
                shape = HalfSpace(pose=geom.own_pose, **looks)
            elif kind == "mesh":
                shape = self._mesh(geom, looks)
            else:
                self._refuse(element, kind)
                return None
        except ModelError as error:
            message = f"{element.label} is not a shape: {error}".removesuffix(".")
            self._report.error(element.place, "bad-shape", message)
            return None
        return shape if self._report.faults == faults else None

    def _refuse(self, element: Element, kind: str) -> None:
        if kind in SIZES:
            what = f"a geom of type {kind} that is fitted to a mesh"
            self._report.unsupported.add(what, element.place)
        elif kind in NO_SHAPE:
            self._report.unsupported.add(f"a geom of type {kind}", element.place)
        else:
            known = (*SIZES, *NO_SHAPE)
            self._report.error(
                element.place,
                "unknown-value",
                f"'type' of {element.label} is {quote(kind)}, not one of "
                f"{', '.join(known)}",
                hint=self._report.hint(kind, known),
            )

    def _sized(
        self, geom: PlacedElement, kind: str, looks: dict[str, Any]
    ) -> Shape | None:
        element, report = geom.element, self._report
        size = element.numbers("size", None, report) or ()
        line = read_fromto(element, report) if "fromto" in element.attributes else None
        pose = geom.own_pose
        if line is not None:
            middle, length = line
            pose = geom.pose @ middle
            wide = size[:1] * (SIZES[kind].needed - 1)
            size = (*wide, 0.5 * length)
        count = SIZES[kind].needed
        if len(size) < count:
            report.error(
                element.place,
                "wrong-count",
                f"'size' of {element.label} must hold {count} numbers for a {kind}, "
                f"not {len(size)}",
            )
            return None
        if min(size[:count]) <= 0.0:
            code = "negative-size" if min(size[:count]) < 0.0 else "no-volume"
            message = f"{element.label} has a size that is not above 0"
            report.error(element.place, code, message)
            return None
        table = SIZES[kind]
        return table.makes(pose=pose, **table.fields(size[:count]), **looks)

    def _mesh(self, geom: PlacedElement, looks: dict[str, Any]) -> Shape | None:
        element = geom.element
        asset = self.asset(element)
        if asset is None:
            return None
        pose = geom.own_pose
        if asset.vertices:
            if "face" in asset.element.attributes:
                self._report.unsupported.add(
                    "the faces of a <mesh> in the file; it is their convex hull",
                    asset.element.place,
                    Severity.NOTE,
                )
            hull = ConvexPolyhedron.around(asset.vertices)
            return ConvexPolyhedron(vertices=hull.vertices, pose=pose, **looks)
        self._look_up(asset.file, asset.element)
        return Mesh(file=asset.file, scale=asset.scale, pose=pose @ asset.pose, **looks)

    def asset(self, geom: Element) -> MeshAsset | None:
        """Return the mesh that a geom names, None after an error."""
        name = geom.attributes.get("mesh", "")
        if name not in self.meshes:
            self._report.error(
                geom.place,
                "unknown-mesh",
                f"{geom.label} has the mesh {quote(name)}, which is not defined"
                if name
                else f"{geom.label} names no mesh",
                hint=self._report.hint(name, self.meshes),
            )
            return None
        return self.meshes[name]

    def _look_up(self, file: str, element: Element) -> None:
        """Warn, once for each file, of meshes that do not exist."""
        if self._missing >= URDF_MISSING.most or file in self._looked_up:
            return
        self._looked_up.add(file)
        base = self._document.base
        missing = self._roots.find(file, base=base, place=element.place)
        if isinstance(missing, Diagnostic):
            self._missing += 1
            self._report.warning(
                missing.place, missing.code, missing.message, hint=missing.hint
            )


def _clipped(rgba: tuple[float, ...]) -> Colour:
    red, green, blue, opacity = (min(1.0, max(0.0, part)) for part in rgba)
    return red, green, blue, opacity
