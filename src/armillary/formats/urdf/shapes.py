"""Visuals and collisions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Diagnostic, Report, Severity
from armillary.formats.names import Guesses
from armillary.formats.paths import Roots
from armillary.formats.unsupported import Unsupported
from armillary.formats.urdf.materials import Materials
from armillary.formats.urdf.origin import read_pose
from armillary.formats.xml import Element, report_unused
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, HalfSpace, Mesh, Sphere

__all__ = ["Meshes", "ShapeReader"]

MOST_MISSING: Final = 50
ONES: Final = (1.0, 1.0, 1.0)


class Meshes:
    """Look up the files of meshes, where the caller has told folders to look in."""

    def __init__(self, path: str, roots: Roots, report: Report) -> None:
        self._base = os.path.dirname(os.path.abspath(path))
        self._roots = roots
        self._report = report
        self._seen: set[str] = set()
        self._missing = 0
        self._is_looking = bool(roots.packages or roots.folders)

    def check(self, reference: str, element: Element) -> None:
        """Warn, once for each file, of one that is not where it may be."""
        if not self._is_looking or reference in self._seen:
            return
        self._seen.add(reference)
        found = self._roots.find(reference, base=self._base, place=element.place)
        if not isinstance(found, Diagnostic):
            return
        self._report.warning(found.place, found.code, found.message, hint=found.hint)
        self._missing += 1
        if self._missing >= MOST_MISSING:
            self._is_looking = False
            self._report.warning(
                element.place,
                "reference-missing",
                f"{MOST_MISSING} meshes are missing; no more are looked up",
            )


class ShapeReader:
    """Read `<visual>` and `<collision>` into shapes."""

    def __init__(
        self,
        *,
        materials: Materials,
        meshes: Meshes,
        report: Report,
        unsupported: Unsupported,
        guesses: Guesses,
    ) -> None:
        self._materials = materials
        self._meshes = meshes
        self._report = report.tolerating("the shape is left out")
        self._unkept = unsupported
        self._guesses = guesses

    def read_all(self, link: Element, name: str) -> tuple[Shape, ...]:
        """Return the shapes of a link's children of one name."""
        found: list[Shape] = []
        for element in link.children_named(name):
            found.extend(self._read(element))
        return tuple(found)

    def _read(self, element: Element) -> list[Shape]:
        faults = self._report.faults
        looks = {
            "name": element.attribute("name") or "",
            "pose": read_pose(element, self._report),
            "colour": self._materials.colour(element),
        }
        if element.name == "collision":
            self._unkept.add_children(element, ("verbose",))
        self._unkept.add_prefixed(element)
        geometry = element.first_child("geometry", self._report)
        report_unused(element, self._report, Severity.NOTE)
        if geometry is None or not geometry.children:
            self._tell_empty(element, geometry)
            return []
        found = self._shapes(element, geometry, looks)
        return found if self._report.faults == faults else []

    def _tell_empty(self, owner: Element, geometry: Element | None) -> None:
        """Report a visual or collision without a shape, of which nothing is lost."""
        report = self._report.tolerating("it is left out", Severity.NOTE)
        if geometry is None:
            owner.first_child("geometry", report, required=True)
        else:
            report.error(
                geometry.place,
                "bad-geometry",
                f"<geometry> of {owner.label} is empty",
            )

    def _shapes(
        self, owner: Element, geometry: Element, looks: dict[str, Any]
    ) -> list[Shape]:
        known: dict[str, Callable[[Element, dict[str, Any]], list[Shape]]] = {
            "box": self._box,
            "sphere": self._sphere,
            "cylinder": self._cylinder,
            "capsule": self._capsule,
            "mesh": self._mesh,
        }
        readers = {**known, "plane": self._plane}
        for kind in readers:
            geometry.children_named(kind)
        found = [child for child in geometry.children if child.name in readers]
        report = self._report
        if found:
            report = report.tolerating("the first one counts")
        if len(found) != 1:
            other = "" if found else geometry.children[0].name
            report.error(
                geometry.place,
                "bad-geometry",
                f"<geometry> of {owner.label} must hold one of {', '.join(known)}; "
                f"it has {quote(other) if other else f'{len(found)} of them'}",
                hint=self._guesses.hint(other, known) if other else "",
            )
        if not found:
            return []
        report_unused(geometry, self._report, Severity.NOTE)
        shapes = readers[found[0].name](found[0], looks)
        report_unused(found[0], self._report, Severity.NOTE)
        return shapes

    def _box(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        size = element.numbers("size", 3, self._report, required=True)
        if size is None or not self._is_size(element, *size):
            return []
        return self._made(element, Box, size=size, **looks)

    def _sphere(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        radius = element.number("radius", self._report, required=True)
        if radius is None or not self._is_size(element, radius):
            return []
        return self._made(element, Sphere, radius=radius, **looks)

    def _cylinder(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        return self._round(element, Cylinder, looks)

    def _capsule(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        return self._round(element, Capsule, looks)

    def _round(
        self, element: Element, kind: type[Shape], looks: dict[str, Any]
    ) -> list[Shape]:
        """Return a shape with a radius about z, and a length along it."""
        radius = element.number("radius", self._report, required=True)
        length = element.number("length", self._report, required=True)
        if radius is None or length is None:
            return []
        if not self._is_size(element, radius, length):
            return []
        return self._made(element, kind, radius=radius, length=length, **looks)

    def _mesh(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        file = element.required_attribute("filename", self._report)
        x, y, z = self._scale(element)
        if 0.0 in (x, y, z):
            self._report.warning(
                element.place, "no-volume", f"{element.label} has a scale of zero"
            )
        if file is None:
            return []
        if not file.strip():
            self._report.error(
                element.place, "empty-reference", f"{element.label} names no file"
            )
            return []
        self._meshes.check(file, element)
        return self._made(element, Mesh, file=file, scale=(x, y, z), **looks)

    def _scale(self, element: Element) -> tuple[float, ...]:
        """Return the scale of a mesh; a single number is that of all axes."""
        if len((element.attribute("scale") or "").split()) == 1:
            view = self._report.tolerating("it is the scale along all axes")
            element.numbers("scale", 3, view)
            factor = element.number("scale", self._report, default=1.0)
            return (factor,) * 3
        return element.numbers("scale", 3, self._report, default=ONES)

    def _plane(self, element: Element, looks: dict[str, Any]) -> list[Shape]:
        """Return the half space below a plane, which is PyBullet's, not URDF's."""
        normal = element.numbers("normal", 3, self._report, default=(0.0, 0.0, 1.0))
        self._report.tolerating("it is read as a half space").error(
            element.place, "bad-geometry", "URDF has no <plane>"
        )
        try:
            below = HalfSpace.below((0.0, 0.0, 0.0), normal)
        except ModelError as error:
            message = f"{element.label} is no shape: {error}".removesuffix(".")
            self._report.error(element.place, "bad-shape", message)
            return []
        looks = {**looks, "pose": looks["pose"] @ below.pose}
        return self._made(element, HalfSpace, **looks)

    def _is_size(self, element: Element, *sizes: float) -> bool:
        """Return whether no size is negative; warn of zeros."""
        if min(sizes) < 0.0:
            self._report.error(
                element.place, "negative-size", f"{element.label} has a negative size"
            )
            return False
        if min(sizes) == 0.0:
            self._report.warning(
                element.place, "no-volume", f"{element.label} has a size of zero"
            )
        return True

    def _made(
        self, element: Element, kind: type[Shape], **parameters: Any
    ) -> list[Shape]:
        """Return a shape, nothing where its parameters make none."""
        try:
            return [kind(**parameters)]
        except ModelError as error:
            message = f"{element.label} is no shape: {error}".removesuffix(".")
            self._report.error(element.place, "bad-shape", message)
            return []
