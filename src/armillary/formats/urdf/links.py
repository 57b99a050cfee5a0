"""`<link>`, read and written: its mass, its shapes, the materials that colour them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.geometry import (
    GeometryReader,
    MeshFinder,
    clipped_colour,
    half_space,
)
from armillary.formats.inertia import central_inertia, placed_inertia
from armillary.formats.paths import Roots
from armillary.formats.urdf.elements import ELEMENTS, origin_element, read_pose
from armillary.formats.xml import Element
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Capsule
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["LinkWriter", "ShapeReader", "UrdfLink", "read_links"]


class UrdfLink(NamedTuple):
    """A link as the file gives it; its name is empty after an error in that.

    Attributes:
        name: Of the link.
        inertia: About its origin; None without one and after an error in it.
        visuals: What is drawn.
        collisions: What may touch.
        element: What the file has of it.
    """

    name: str
    inertia: SpatialInertia | None
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]
    element: Element

    @property
    def place(self) -> Place:
        """Return the location of the link."""
        return self.element.place

    @property
    def link(self) -> Link:
        """Return the link, as yet on none."""
        return Link(
            name=self.name,
            inertia=self.inertia,
            visuals=self.visuals,
            collisions=self.collisions,
        )


def read_links(
    elements: Sequence[Element], shapes: ShapeReader, report: Report
) -> list[UrdfLink]:
    """Return what `<link>`s say."""
    links: list[UrdfLink] = []
    tolerant = report.tolerating("its inertia is left out")
    for element in report.bounded(elements):
        name = element.required_attribute("name", report)
        if name == "":
            report.error(element.place, "empty-name", "a <link> has an empty name")
        inertia = _inertia(element, tolerant)
        visuals = shapes.read_all(element, "visual")
        collisions = shapes.read_all(element, "collision")
        links.append(UrdfLink(name or "", inertia, visuals, collisions, element))
    return links


def _inertia(link: Element, report: Report) -> SpatialInertia | None:
    """Return the inertia about the link's origin, None without one or after an error.

    The file gives it about the centre of mass, in the axes of `<origin>`.
    """
    inertial = link.first_child("inertial", report)
    if inertial is None:
        return None
    faults = report.faults
    X_LC = read_pose(inertial, report)
    mass = inertial.first_child("mass", report, required=True)
    moments = inertial.first_child("inertia", report, required=True)
    if mass is None or moments is None:
        return None
    values = ELEMENTS.read(mass, report) | ELEMENTS.read(moments, report)
    if report.faults > faults:
        return None
    xx, xy, xz, yy, yz, zz = values["moments"]
    rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
    central = SpatialInertia(values["mass"], ZERO, rows)
    return placed_inertia(
        central, X_LC, link, report, moments=moments, inertial=inertial
    )


class ShapeReader:
    """Read the shapes of links.

    path: The path of the file, to which meshes are relative.
    roots: Where meshes are looked up; if it names no folders, they are not.
    """

    def __init__(self, robot: Element, path: str, roots: Roots, report: Report) -> None:
        self._report = report.tolerating("the shape is left out")
        self._materials = _Materials(robot, report)
        self._meshes = MeshFinder(roots, report)
        self._base = os.path.dirname(os.path.abspath(path))
        self._geometry = GeometryReader(
            ELEMENTS, self._mesh_file, self._report, others={"plane": self._plane}
        )

    def _mesh_file(self, file: str, element: Element) -> str:
        self._meshes.look_up(file, self._base, element.place)
        return file

    def read_all(self, link: Element, name: str) -> tuple[Shape, ...]:
        """Return the shapes of a link's children of one name."""
        shapes = [self._read(element) for element in link.children_named(name)]
        return tuple([shape for shape in shapes if shape is not None])

    def _read(self, element: Element) -> Shape | None:
        """Return the shape of a visual or collision, None after an error in it."""
        faults = self._report.faults
        looks = {
            "name": element.attribute("name") or "",
            "pose": read_pose(element, self._report),
            "colour": self._materials.colour(element),
        }
        geometry = element.first_child("geometry", self._report)
        if geometry is None or not geometry.children:
            # Nothing is lost that could touch or be seen.
            report = self._report.tolerating("it is left out", Severity.NOTE)
            if geometry is None:
                element.first_child("geometry", report, required=True)
            else:
                message = f"<geometry> of {element.label} is empty"
                report.error(geometry.place, "bad-geometry", message)
            return None
        shape = self._geometry.read(element, geometry, looks)
        return shape if self._report.faults == faults else None

    def _plane(self, element: Element, looks: dict[str, Any]) -> Shape:
        """Return the half space below a plane, an element of PyBullet."""
        normal = element.numbers("normal", 3, self._report, default=(0.0, 0.0, 1.0))
        self._report.tolerating("it is read as a half space").error(
            element.place, "bad-geometry", "URDF has no <plane>"
        )
        return half_space(normal, looks)


class _Materials:
    """Colours by name.

    A material of the robot can be used by name everywhere; so can, as in ROS, one that
    a visual defines.
    """

    def __init__(self, robot: Element, report: Report) -> None:
        self._report = report.tolerating("it is left out", Severity.NOTE)
        self._by_name: dict[str, Colour | None] = {}
        self._by_element: dict[Element, Colour | None] = {}
        for material in robot.children_named("material"):
            name = material.required_attribute("name", self._report)
            colour = self._define(material)
            if name and self._by_name.get(name, colour) != colour:
                report.note(
                    material.place,
                    "repeated-name",
                    f"material {quote(name)} has another colour already",
                    hint="The first one is used.",
                )
            self._by_name.setdefault(name or "", colour)
        for material in _in_shapes(robot):
            name = material.attribute("name")
            if {child.name for child in material.children} & {"color", "texture"}:
                self._by_element[material] = colour = self._define(material)
                self._by_name.setdefault(name or "", colour)

    def colour(self, shape: Element) -> Colour | None:
        """Return the colour of a visual or collision, None without one."""
        material = shape.first_child("material", self._report)
        if material is None:
            return None
        if material in self._by_element:
            return self._by_element[material]
        name = material.attribute("name") or ""
        if not name or name not in self._by_name:
            self._report.note(
                material.place,
                "unknown-material",
                f"{shape.label} has the material {quote(name)}, which is not defined",
                hint=self._report.hint(name, filter(None, self._by_name)),
            )
        return self._by_name.get(name) if name else None

    def _define(self, material: Element) -> Colour | None:
        """Return the colour that a material defines."""
        color = material.first_child("color", self._report)
        if color is None:
            return None
        rgba = ELEMENTS.read(color, self._report)["rgba"]
        if rgba is None:
            return None
        return clipped_colour(rgba, color.attributes["rgba"], color.place, self._report)


def _in_shapes(robot: Element) -> Iterator[Element]:
    """Yield the materials inside links."""
    for link in robot.children:
        for shape in link.children if link.name == "link" else ():
            yield from (child for child in shape.children if child.name == "material")


# Writing


class LinkWriter:
    """Write links, and collect their colours as materials.

    has_capsules: Whether a capsule was written, which URDF 1.0 does not have.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._materials: dict[Colour, str] = {}
        self.has_capsules = False

    def element(self, name: str, link: Link) -> Element:
        """Return the `<link>` of a link under its name in the file."""
        parts = self._inertial(name, link)
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            parts += [self._shape(kind, shape, link.primary) for shape in shapes]
        return ELEMENTS.write("link", {"name": name}, *filter(None, parts))

    def materials(self) -> list[Element]:
        """Return the materials that the shapes refer to."""
        return [
            ELEMENTS.write(
                "material", {"name": name}, ELEMENTS.write("color", rgba=colour)
            )
            for colour, name in self._materials.items()
        ]

    def _inertial(self, name: str, link: Link) -> list[Element | None]:
        """Return the `<inertial>` of a link, nothing if its inertia is unknown."""
        inertia = central_inertia(link, name, self._report)
        if inertia is None:
            return []
        centre = inertia.centre
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.moments
        return [
            ELEMENTS.write(
                "inertial",
                None,
                *origin_element(Pose.translation(*centre), quote(name), self._report),
                ELEMENTS.write("mass", inertia),
                ELEMENTS.write("inertia", moments=(xx, xy, xz, yy, yz, zz)),
            )
        ]

    def _shape(self, kind: str, shape: Shape, primary: Pose) -> Element | None:
        """Return a `<visual>` or `<collision>`, None if URDF has no such shape."""
        geometry = ELEMENTS.of(shape)
        if geometry is None:
            return None  # `report_losses` says so
        self.has_capsules |= isinstance(shape, Capsule)
        material: list[Element] = []
        if shape.colour is not None:
            default = f"colour_{len(self._materials) + 1}"
            name = self._materials.setdefault(shape.colour, default)
            material = [ELEMENTS.write("material", name=name)]
        return ELEMENTS.write(
            kind,
            shape,
            *origin_element(primary @ shape.pose, f"a {kind}", self._report),
            ELEMENTS.write("geometry", None, geometry),
            *material,
        )
