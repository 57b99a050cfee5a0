"""`<link>`: its mass, its shapes, and their colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from armillary.errors import FormatError, ModelError
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.geometry import (
    GeometryReader,
    Looks,
    clipped_colour,
    half_space,
)
from armillary.formats.inertia import placed_inertia, possible_inertia
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mesh.words import PARTED, joined_reference
from armillary.formats.numbers import has_direction
from armillary.formats.sdf.elements import ELEMENTS, read_pose
from armillary.formats.sdf.files import SdfFile, SdfFiles
from armillary.formats.xml import Element
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Box, ConvexPolyhedron
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["LinkElement", "LinkReader"]

KEPT_OUT: Final = ("heightmap", "image")
"""Geometries that a cell cannot hold."""


WATER: Final = 1000.0
"""The density where none is given [kg/m^3]."""

PoseInLink: TypeAlias = Callable[[str, Place], Pose | None]
"""The pose of a frame in a link, by the name of the frame; None after an error."""


class ShapeElement(NamedTuple):
    """A shape as the file gives it.

    Attributes:
        shape: In the frame that its pose is relative to.
        relative_to: The name of that frame; empty for the link.
        place: In the file.
        density: Of a collision [kg/m^3], if the file says one.
    """

    shape: Shape
    relative_to: str
    place: Place
    density: float | None

    def in_link(self, pose: PoseInLink) -> Shape | None:
        """Return the shape in its link; None after an error."""
        if not self.relative_to:
            return self.shape
        X_LF = pose(self.relative_to, self.place)
        if X_LF is None:
            return None
        return msgspec.structs.replace(self.shape, pose=X_LF @ self.shape.pose)


class AutoInertia(NamedTuple):
    """What `<inertial auto="true">` says: that collisions fill the link evenly.

    Attributes:
        density: Of collisions that say none [kg/m^3].
        mass: Of all [kg]; without it the densities count.
        all_shapes: How many collisions the file has.
        place: In the file.
        meshes: What reads the meshes of collisions.
    """

    density: float
    mass: float | None
    all_shapes: int
    place: Place
    meshes: MeshFiles

    def of(self, shapes: Sequence[tuple[Shape, float]]) -> SpatialInertia:
        """Return the inertia about the origin of the link.

        shapes: In the link, each with its density.

        Raises:
            ModelError: There are none, one is left out, or they have no volume.
            FormatError: A mesh cannot be read.
        """
        if not shapes:
            raise ModelError("There is none to compute it from.")
        if len(shapes) < self.all_shapes:
            raise ModelError("One of them is left out.")
        total = self._filled(shapes, 1.0)
        if self.mass is None:
            return total
        if total.mass == 0.0:
            raise ModelError("They have no volume.")
        return self._filled(shapes, self.mass / total.mass)

    def _filled(
        self, shapes: Sequence[tuple[Shape, float]], factor: float
    ) -> SpatialInertia:
        total = SpatialInertia.zero()
        for shape, density in shapes:
            alone = Link(name="link", collisions=(shape,))
            total += alone.inertia_of_shapes(density * factor, meshes=self.meshes)
        return total


@dataclass(frozen=True, slots=True)
class LinkElement:
    """A link as the file gives it.

    Attributes:
        label: What messages call it.
        inertia: As the file gives it, if it does.
        auto: How it is computed instead.
        visuals: What is seen.
        collisions: What touches.
        self_collide: Whether it says that it is tested with others of its model.
        named: Its name in the cell, if the file says another one than in SDF.
        rod: The length of the rod that it is [m]; None for any other link.
        on: Of a link that slides out of a rod, what carries it in the cell.
    """

    label: str
    inertia: SpatialInertia | None
    auto: AutoInertia | None
    visuals: tuple[ShapeElement, ...]
    collisions: tuple[ShapeElement, ...]
    self_collide: bool
    named: str | None
    rod: float | None = None
    on: str = ""

    def body(self, name: str, pose: PoseInLink, report: Report) -> Link:
        """Return the body, its shapes in the frame of the link.

        name: Of the link.
        """
        placed = [(each, each.in_link(pose)) for each in self.collisions]
        collisions = [(e, shape) for e, shape in placed if shape is not None]
        visuals = [each.in_link(pose) for each in self.visuals]
        inertia, auto = self.inertia, self.auto
        if auto is not None:
            tolerant = report.tolerating("its inertia is left out")
            filled = [
                (shape, auto.density if each.density is None else each.density)
                for each, shape in collisions
            ]
            try:
                computed = auto.of(filled)
            except (FormatError, ModelError) as error:
                why = str(error).removesuffix(".").replace("\n  ", " ")
                message = f"{self.label} has no inertia by its collisions: {why}"
                tolerant.error(auto.place, "bad-inertia", message)
            else:
                inertia = possible_inertia(computed, auto.place, self.label, tolerant)
        return Link(
            name=name,
            inertia=inertia,
            visuals=tuple(shape for shape in visuals if shape is not None),
            collisions=tuple(shape for _, shape in collisions),
        )


class LinkReader:
    """Reads links; meshes are looked up as `files` finds them."""

    def __init__(self, files: SdfFiles, report: Report) -> None:
        self._files = files
        self._report = report
        self._tolerant = report.tolerating("the shape is left out")
        self._file = files.first
        self._is_visual = False
        self._meshes = files.mesh_files()
        lost = dict.fromkeys(KEPT_OUT, self._left_out)
        self._geometry = GeometryReader(
            ELEMENTS,
            self._mesh_file,
            self._tolerant,
            others={"plane": self._plane, "polyline": self._polyline, **lost},
        )

    def read(self, element: Element, file: SdfFile) -> LinkElement:
        """Return what a `<link>` says."""
        self._file = file
        tolerant = self._report.tolerating("its inertia is left out")
        inertial = element.first_child("inertial", tolerant)
        inertia = self._inertia(element, inertial, tolerant)
        fields = ELEMENTS.read(element, self._report)
        return LinkElement(
            label=element.label,
            inertia=inertia if isinstance(inertia, SpatialInertia) else None,
            auto=inertia if isinstance(inertia, AutoInertia) else None,
            visuals=self._shapes(element, "visual"),
            collisions=self._shapes(element, "collision"),
            self_collide=bool(fields["self_collide"]),
            named=fields["as_"],
            rod=fields["rod"],
            on=fields["on"] or "",
        )

    def _inertia(
        self, link: Element, inertial: Element | None, report: Report
    ) -> SpatialInertia | AutoInertia | None:
        """Return the inertia about the link's origin, None without one."""
        if inertial is None:
            return None
        faults = report.faults
        fields = ELEMENTS.read(inertial, report)
        X_LC = read_pose(inertial, report).pose
        moments = inertial.first_child("inertia", report)
        if fields["bare"]:
            return None
        if fields["auto"]:
            if report.faults > faults:
                return None
            mass = fields["mass"] if inertial.children_named("mass") else None
            density = WATER if fields["density"] is None else fields["density"]
            return AutoInertia(
                density=density,
                mass=mass,
                all_shapes=len(link.children_named("collision")),
                place=inertial.place,
                meshes=self._meshes,
            )
        values = ELEMENTS["inertia"].read(moments or Element("inertia"), report)
        if report.faults > faults or fields["mass"] is None:
            return None
        xx, yy, zz, xy, xz, yz = values.values()
        rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
        central = SpatialInertia(fields["mass"], ZERO, rows)
        about = moments or inertial
        return placed_inertia(
            central, X_LC, link, report, moments=about, inertial=inertial
        )

    # Shapes

    def _shapes(self, link: Element, kind: str) -> tuple[ShapeElement, ...]:
        self._is_visual = kind == "visual"
        shapes = [self._shape(element) for element in link.children_named(kind)]
        return tuple(shape for shape in shapes if shape is not None)

    def _shape(self, element: Element) -> ShapeElement | None:
        report = self._tolerant
        faults = report.faults
        fields = ELEMENTS.read(element, report)
        pose, relative_to = read_pose(element, report)
        looks: Looks = {
            "name": fields["name"] if fields["as_"] is None else fields["as_"],
            "pose": pose,
            "colour": self._colour(element) if self._is_visual else None,
        }
        geometry = element.first_child("geometry", report)
        if geometry is None or not geometry.children:
            # Nothing is lost that could touch or be seen.
            view = self._report.tolerating("it is left out", Severity.NOTE)
            message = f"{element.label} has no geometry"
            view.error(element.place, "bad-geometry", message)
            return None
        if geometry.children_named("empty"):
            return None
        shape = self._geometry.read(element, geometry, looks)
        if shape is None or report.faults != faults:
            return None
        density = None if self._is_visual else fields["density"]
        return ShapeElement(shape, relative_to, element.place, density)

    def _mesh_file(self, file: str, element: Element) -> str:
        found = self._files.mesh(file.strip(), self._file, element.place)
        submesh = element.first_child("submesh", self._tolerant)
        if submesh is None:
            return found
        fields = ELEMENTS.read(submesh, self._tolerant)
        if not found.lower().endswith(PARTED):
            what = "that only a <submesh> of a mesh is meant, whose file has no names"
            self._report.unsupported.add(what, element.place)
            return found
        if not fields["name"]:
            return found
        return joined_reference(found, fields["name"], centred=fields["center"])

    def _plane(self, element: Element, looks: Looks) -> Shape | None:
        """Return the half space of a collision, the rectangle that is seen."""
        fields = ELEMENTS.read_whole(element, self._tolerant)
        if fields is None:
            return None
        x, y, z = fields["normal"]
        codes = "zero-axis", "axis-length"
        what = f"the normal ({x:g}, {y:g}, {z:g})"
        if not has_direction(
            (x, y, z), what, element.place, self._tolerant, codes=codes
        ):
            return None
        space = half_space((x, y, z), looks)
        if not self._is_visual:
            return space
        width, length = fields["size"]
        looks["pose"] = space.pose
        return Box(**looks, size=(width, length, 0.0))

    def _polyline(self, element: Element, looks: Looks) -> Shape | None:
        """Return a polygon that is extruded along z, if it is convex."""
        height = ELEMENTS.read(element, self._tolerant)["height"]
        points = [
            p.text_numbers(2, self._tolerant) for p in element.children_named("point")
        ]
        if height is None or None in points:
            return None
        corners = [(p[0], p[1]) for p in points if p is not None]
        if corners and corners[0] == corners[-1]:
            corners.pop()
        if not _is_convex(corners):
            self._report.unsupported.add(
                "a <polyline> that is not convex", element.place
            )
            return None
        corners_3d = [(x, y, z) for z in (0.0, height) for x, y in corners]
        return ConvexPolyhedron(vertices=corners_3d, **looks)

    def _left_out(self, element: Element, _looks: Looks) -> None:
        self._report.unsupported.add(f"a <{element.name}>", element.place)

    def _colour(self, visual: Element) -> Colour | None:
        """Return the colour of a visual: that of diffuse light, or else of ambient."""
        report = self._report.tolerating("it is left out", Severity.NOTE)
        material = visual.first_child("material", report)
        opacity = visual.first_child("transparency", report)
        transparency = 0.0
        if opacity is not None:
            numbers = opacity.text_numbers(1, report)
            transparency = numbers[0] if numbers else 0.0
        if material is None:
            return None
        fields: dict[str, Any] = ELEMENTS.read(material, report)
        rgba = fields["diffuse"] or fields["ambient"]
        if rgba is None:
            return None
        if len(rgba) not in {3, 4}:
            message = f"a colour of {visual.label} has {len(rgba)} numbers, not 4"
            report.error(material.place, "bad-colour", message)
            return None
        red, green, blue, *alpha = rgba
        shown = (alpha[0] if alpha else 1.0) * (1.0 - transparency)
        text = " ".join(f"{part:g}" for part in rgba)
        return clipped_colour(
            (red, green, blue, shown), text, material.place, self._report
        )


def _is_convex(corners: list[tuple[float, float]]) -> bool:
    """Return whether a polygon is convex and goes round once."""
    count = len(corners)
    if count < 3:
        return False
    turns: list[float] = []
    for k in range(count):
        (ax, ay), (bx, by), (cx, cy) = (corners[(k + j) % count] for j in range(3))
        turns.append((bx - ax) * (cy - by) - (by - ay) * (cx - bx))
    if not (all(t >= 0.0 for t in turns) or all(t <= 0.0 for t in turns)):
        return False
    # A star turns one way, too, but its corners are not all on one side of each edge.
    sign = 1.0 if sum(turns) > 0.0 else -1.0
    for k in range(count):
        (ax, ay), (bx, by) = corners[k], corners[(k + 1) % count]
        if any(
            sign * ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) < -1e-12
            for x, y in corners
        ):
            return False
    return True
