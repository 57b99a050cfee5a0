"""What a link holds, as elements of URDF: origins, inertia, shapes, materials."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.unsupported import possible_inertia
from armillary.formats.xml import Element, tag
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.pose import Pose
from armillary.spatial.vector import EYE, ZERO, Vector3

__all__ = ["Palette", "inertial_element", "origin_element"]

TOLERANCE: Final = 1e-12
NOWHERE: Final = Place()
ONES: Final = (1.0, 1.0, 1.0)


def origin_element(pose: Pose, what: str, report: Report) -> list[Element]:
    """Return the `<origin>` of a pose, nothing for the identity.

    what: Whose it is, for the warning where the rotation is not kept to 1e-12.
    """
    if pose.is_identity:
        return []
    rpy = _rpy(pose, what, report)
    return [
        tag(
            "origin",
            {
                "xyz": _without_negative_zeros(pose.position),
                "rpy": None if rpy == ZERO else rpy,
            },
        )
    ]


def _rpy(pose: Pose, what: str, report: Report) -> Vector3:
    if pose.rotation == EYE:
        return ZERO
    rpy = _without_negative_zeros(fixed_xyz(pose.normalised().rotation))
    written = Pose(rows_from_fixed_xyz(*rpy), pose.position)
    if not written.approx_equal(pose, TOLERANCE):
        report.warning(
            NOWHERE,
            "rounded",
            f"the rotation of {what} is sheared; the nearest true one is written",
        )
    return rpy


def _without_negative_zeros(a: Vector3) -> Vector3:
    return a[0] + 0.0, a[1] + 0.0, a[2] + 0.0


def inertial_element(name: str, link: Link, report: Report) -> list[Element]:
    """Return the `<inertial>` of a link, nothing where its inertia is unknown."""
    inertia = link.inertia
    if inertia is not None and not link.primary.is_identity:
        inertia = inertia.transformed(link.primary)
    if inertia is not None:
        inertia = possible_inertia(inertia, NOWHERE, quote(name), report)
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
            *origin_element(Pose.translation(*centre), quote(name), report),
            tag("mass", {"value": inertia.mass}),
            tag("inertia", moments),
        )
    ]


class Palette:
    """The colours of a robot, each a material, numbered as they come up."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._names: dict[Colour, str] = {}

    def shape_element(self, kind: str, shape: Shape, primary: Pose) -> Element | None:
        """Return the `<visual>` or `<collision>` of a shape, None where URDF has none.

        primary: The primary frame, in which the shape is given, in the link's frame.
        """
        geometry = _geometry(shape)
        if geometry is None:
            return None
        material: list[Element] = []
        if shape.colour is not None:
            name = self._names.setdefault(
                shape.colour, f"colour_{len(self._names) + 1}"
            )
            material = [tag("material", {"name": name})]
        return tag(
            kind,
            {"name": shape.name or None},
            *origin_element(primary @ shape.pose, f"a {kind}", self._report),
            tag("geometry", {}, geometry),
            *material,
        )

    def elements(self) -> list[Element]:
        """Return the materials that the shapes refer to."""
        return [
            tag("material", {"name": name}, tag("color", {"rgba": colour}))
            for colour, name in self._names.items()
        ]


def _geometry(shape: Shape) -> Element | None:
    match shape:
        case Box():
            return tag("box", {"size": shape.size})
        case Sphere():
            return tag("sphere", {"radius": shape.radius})
        case Cylinder():
            return tag("cylinder", {"radius": shape.radius, "length": shape.length})
        case Capsule():
            return tag("capsule", {"radius": shape.radius, "length": shape.length})
        case Mesh():
            scale = None if shape.scale == ONES else shape.scale
            return tag("mesh", {"filename": shape.file, "scale": scale})
        case _:
            return None
