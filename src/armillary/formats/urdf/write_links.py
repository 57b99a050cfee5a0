"""`<link>` elements: masses, shapes and the colours that they share."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.inertia import possible_inertia
from armillary.formats.urdf.elements import SHAPES, origin_element
from armillary.formats.xml import Element, tag
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Capsule, Mesh
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["SHAPE_FIELDS", "SHAPE_TYPES", "LinkWriter"]

ONES: Final = (1.0, 1.0, 1.0)
_ELEMENTS: Final = {kind: (name, sizes) for name, (kind, sizes) in SHAPES.items()}
SHAPE_TYPES: Final = (*_ELEMENTS, Mesh)
SHAPE_FIELDS: Final = frozenset(
    {"name", "pose", "colour", "size", "radius", "length", "file", "scale"}
)


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
        return tag("link", {"name": name}, *filter(None, parts))

    def materials(self) -> list[Element]:
        """Return the materials that the shapes refer to."""
        return [
            tag("material", {"name": name}, tag("color", {"rgba": colour}))
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
        has_centre = inertia.mass != 0.0
        centre = inertia.centre() if has_centre else ZERO
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = (
            inertia.about_centre() if has_centre else inertia.rotational
        )
        moments = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
        return [
            tag(
                "inertial",
                {},
                *origin_element(Pose.translation(*centre), quote(name), self._report),
                tag("mass", {"value": inertia.mass}),
                tag("inertia", moments),
            )
        ]

    def _shape(self, kind: str, shape: Shape, primary: Pose) -> Element | None:
        """Return a `<visual>` or `<collision>`, None if URDF has no such shape."""
        if isinstance(shape, Mesh):
            scale = None if shape.scale == ONES else shape.scale
            geometry = tag("mesh", {"filename": shape.file, "scale": scale})
        elif type(shape) in _ELEMENTS:
            name, sizes = _ELEMENTS[type(shape)]
            geometry = tag(name, {size: getattr(shape, size) for size in sizes})
        else:
            self._report.unsupported.add(f"a {kind} of type {type(shape).__name__}")
            return None
        self.has_capsules |= isinstance(shape, Capsule)
        material: list[Element] = []
        if shape.colour is not None:
            default = f"colour_{len(self._materials) + 1}"
            name = self._materials.setdefault(shape.colour, default)
            material = [tag("material", {"name": name})]
        return tag(
            kind,
            {"name": shape.name or None},
            *origin_element(primary @ shape.pose, f"a {kind}", self._report),
            tag("geometry", {}, geometry),
            *material,
        )
