"""`<link>`, read and written: its mass, its shapes, the materials that colour them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import NOWHERE, Diagnostic, Report, Severity
from armillary.formats.elements import all_numbers
from armillary.formats.inertia import possible_inertia
from armillary.formats.paths import Roots
from armillary.formats.urdf.elements import ELEMENTS, SHAPES, origin_element, read_pose
from armillary.formats.xml import Element
from armillary.limits import URDF_MISSING
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Capsule, HalfSpace, Mesh
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["LinkWriter", "ShapeReader", "read_link"]


def read_link(element: Element, shapes: ShapeReader, report: Report) -> Link:
    """Return what a `<link>` says; after an error in its name, the name is empty."""
    name = element.required_attribute("name", report)
    if name == "":
        report.error(element.place, "empty-name", "a <link> has an empty name")
    return Link(
        name=name or "",
        inertia=_inertia(element, report.tolerating("its inertia is left out")),
        visuals=shapes.read_all(element, "visual"),
        collisions=shapes.read_all(element, "collision"),
    )


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
    central = SpatialInertia.from_centre(values["mass"], ZERO, rows)
    possible = possible_inertia(central, moments.place, link.label, report)
    if possible is None:
        return None
    # From the axes at the centre of mass to those of the link (Steiner).
    inertia = possible.transformed(X_LC)
    fault = inertia.fault()
    if fault is None or not fault.is_refused:
        return inertia
    message = f"the inertia of {link.label} about its origin is impossible: "
    report.error(inertial.place, "bad-inertia", message + fault.message)
    return None


class ShapeReader:
    """Read the shapes of links.

    path: The path of the file, to which meshes are relative.
    roots: Where meshes are looked up; if it names no folders, they are not.
    """

    def __init__(self, robot: Element, path: str, roots: Roots, report: Report) -> None:
        self._report = report.tolerating("the shape is left out")
        self._materials = _Materials(robot, report)
        self._base = os.path.dirname(os.path.abspath(path))
        self._roots = roots
        self._looked_up: set[str] = set()
        self._missing = 0 if roots.packages or roots.folders else URDF_MISSING.most

    def read_all(self, link: Element, name: str) -> tuple[Shape, ...]:
        """Return the shapes of a link's children of one name."""
        shapes = [self._read(element) for element in link.children_named(name)]
        return tuple(shape for shape in shapes if shape is not None)

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
        shape = self._shape(element, geometry, looks)
        return shape if self._report.faults == faults else None

    def _shape(
        self, owner: Element, geometry: Element, looks: dict[str, Any]
    ) -> Shape | None:
        known = list(SHAPES)
        shapes = geometry.children_named(*known, "plane")
        report = self._report
        if shapes:
            report = report.tolerating("the first one counts")
        if len(shapes) != 1:
            other = "" if shapes else geometry.children[0].name
            geometry.children_named(other)  # so that it is not reported again
            report.error(
                geometry.place,
                "bad-geometry",
                f"<geometry> of {owner.label} must hold one of {', '.join(known)}; "
                f"it has {quote(other) if other else f'{len(shapes)} of them'}",
                hint=report.hint(other, known) if other else "",
            )
        if not shapes:
            return None
        element = shapes[0]
        try:
            match element.name:
                case "mesh":
                    return self._mesh(element, looks)
                case "plane":
                    return self._plane(element, looks)
                case _:
                    return self._sized(element, looks)
        except ModelError as error:
            message = f"{element.label} is not a shape: {error}".removesuffix(".")
            self._report.error(element.place, "bad-shape", message)
            return None

    def _sized(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        """Return a shape of the table, whose sizes are attributes."""
        sizes = ELEMENTS.read_whole(element, self._report)
        if sizes is None:
            return None
        least = min(all_numbers(sizes))
        if least < 0.0:
            message = f"{element.label} has a negative size"
            self._report.error(element.place, "negative-size", message)
            return None
        if least == 0.0:
            self._warn_of_no_volume(element, "size")
        return SHAPES[element.name](**sizes, **looks)

    def _mesh(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        fields = ELEMENTS.read(element, self._report)
        if 0.0 in fields["scale"]:
            self._warn_of_no_volume(element, "scale")
        if fields["file"] is None:
            return None
        self._look_up(fields["file"], element)
        return Mesh(**fields, **looks)

    def _plane(self, element: Element, looks: dict[str, Any]) -> Shape:
        """Return the half space below a plane, an element of PyBullet."""
        normal = element.numbers("normal", 3, self._report, default=(0.0, 0.0, 1.0))
        self._report.tolerating("it is read as a half space").error(
            element.place, "bad-geometry", "URDF has no <plane>"
        )
        below = HalfSpace.below(ZERO, normal)
        return HalfSpace(**{**looks, "pose": looks["pose"] @ below.pose})

    def _warn_of_no_volume(self, element: Element, what: str) -> None:
        message = f"{element.label} has a {what} of zero"
        self._report.warning(element.place, "no-volume", message)

    def _look_up(self, file: str, element: Element) -> None:
        """Warn, once for each file, of meshes that do not exist."""
        if self._missing >= URDF_MISSING.most or file in self._looked_up:
            return
        self._looked_up.add(file)
        missing = self._roots.find(file, base=self._base, place=element.place)
        if not isinstance(missing, Diagnostic):
            return
        warning = self._report.warning
        warning(missing.place, missing.code, missing.message, hint=missing.hint)
        self._missing += 1
        if self._missing == URDF_MISSING.most:
            message = f"{URDF_MISSING.most} meshes are missing; no more are looked up"
            warning(element.place, "reference-missing", message)


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
        red, green, blue, opacity = (min(1.0, max(0.0, part)) for part in rgba)
        if (red, green, blue, opacity) != rgba:
            self._report.note(
                color.place,
                "colour-range",
                f"the colour {quote(color.attributes['rgba'])} leaves [0, 1]; clipped",
                hint="Divide numbers up to 255 by 255." if max(rgba) > 2.0 else "",
            )
        return red, green, blue, opacity


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
        inertia = link.inertia
        if inertia is not None and not link.primary.is_identity:
            inertia = inertia.transformed(link.primary)
        if inertia is not None:
            inertia = possible_inertia(inertia, NOWHERE, quote(name), self._report)
        if inertia is None:
            return []
        # Without a mass there is no centre, and the moments are those about the origin.
        has_centre = inertia.mass != 0.0
        centre = inertia.centre() if has_centre else ZERO
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = (
            inertia.about_centre() if has_centre else inertia.rotational
        )
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
