"""`<link>`: its mass, its shapes, and their colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from armillary.formats.diagnostic import Report, Severity
from armillary.formats.geometry import (
    GeometryReader,
    Looks,
    clipped_colour,
    half_space,
)
from armillary.formats.inertia import placed_inertia
from armillary.formats.numbers import has_direction
from armillary.formats.sdf.elements import ELEMENTS, read_pose
from armillary.formats.sdf.files import SdfFile, SdfFiles
from armillary.formats.xml import Element
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Box, ConvexPolyhedron
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.vector import ZERO

__all__ = ["LinkElement", "LinkReader"]

KEPT_OUT: Final = ("heightmap", "image")
"""Geometries that a cell cannot hold."""


@dataclass(frozen=True, slots=True)
class LinkElement:
    """A link as the file gives it.

    Attributes:
        link: Its body.
        self_collide: Whether it says that it is tested with others of its model.
        named: Its name in the cell, if the file says another one than in SDF.
    """

    link: Link
    self_collide: bool
    named: str


class LinkReader:
    """Reads links; meshes are looked up as `files` finds them."""

    def __init__(self, files: SdfFiles, report: Report) -> None:
        self._files = files
        self._report = report
        self._tolerant = report.tolerating("the shape is left out")
        self._file = files.first
        self._is_visual = False
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
        link = Link(
            name=element.attributes.get("name", ""),
            inertia=self._inertia(element, tolerant),
            visuals=self._shapes(element, "visual"),
            collisions=self._shapes(element, "collision"),
        )
        fields = ELEMENTS.read(element, self._report)
        named = fields["as_"] or ""
        return LinkElement(link, bool(fields["self_collide"]), named)

    def _inertia(self, link: Element, report: Report) -> SpatialInertia | None:
        """Return the inertia about the link's origin, None without one."""
        inertial = link.first_child("inertial", report)
        if inertial is None:
            return None
        faults = report.faults
        fields = ELEMENTS.read(inertial, report)
        X_LC = read_pose(inertial, report).pose
        moments = inertial.first_child("inertia", report)
        if fields["auto"]:
            what = "an inertia that is computed from shapes (<inertial auto>)"
            report.unsupported.add(what, inertial.place)
            return None
        place = inertial.place if moments is None else moments.place
        values = ELEMENTS["inertia"].read(moments or Element("inertia"), report)
        if report.faults > faults or fields["mass"] is None:
            return None
        xx, yy, zz, xy, xz, yz = values.values()
        rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
        central = SpatialInertia.from_centre(fields["mass"], ZERO, rows)
        places = place, inertial.place
        return placed_inertia(central, X_LC, places, link.label, report)

    # Shapes

    def _shapes(self, link: Element, kind: str) -> tuple[Shape, ...]:
        self._is_visual = kind == "visual"
        shapes = [self._shape(element) for element in link.children_named(kind)]
        return tuple(shape for shape in shapes if shape is not None)

    def _shape(self, element: Element) -> Shape | None:
        report = self._tolerant
        faults = report.faults
        fields = ELEMENTS.read(element, report)
        looks: Looks = {
            "name": fields["name"] if fields["as_"] is None else fields["as_"],
            "pose": read_pose(element, report).pose,
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
        return shape if report.faults == faults else None

    def _mesh_file(self, file: str, element: Element) -> str:
        if element.children_named("submesh"):
            what = "that only a <submesh> of a mesh is meant, which is whole here"
            self._report.unsupported.add(what, element.place)
        return self._files.mesh(file.strip(), self._file, element.place)

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
