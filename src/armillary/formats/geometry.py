"""`<geometry>` of robots in XML: one shape, read by the tables of a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.elements import Elements, all_numbers
from armillary.formats.mesh.words import split_reference
from armillary.formats.paths import KnownFolders, Roots
from armillary.formats.xml import Element
from armillary.limits import URDF_MISSING
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import HalfSpace, Mesh
from armillary.spatial.vector import ZERO

__all__ = ["GeometryReader", "Looks", "MeshFinder", "clipped_colour", "half_space"]

Looks: TypeAlias = dict[str, Any]
"""The name, pose and colour of a shape."""


def half_space(normal: Sequence[float], looks: Looks) -> HalfSpace:
    """Return all below a plane through the origin of a shape's frame."""
    below = HalfSpace.below(ZERO, normal)
    return HalfSpace(**{**looks, "pose": looks["pose"] @ below.pose})


def clipped_colour(
    rgba: tuple[float, ...], text: str, place: Place, report: Report
) -> Colour:
    """Return a colour whose parts are in [0, 1]; note that it left them.

    rgba: Red, green, blue and opacity.
    text: As the file has them.
    """
    red, green, blue, opacity = (min(1.0, max(0.0, part)) for part in rgba)
    if (red, green, blue, opacity) != rgba:
        report.note(
            place,
            "colour-range",
            f"the colour {quote(text)} leaves [0, 1]; clipped",
            hint="Divide numbers up to 255 by 255." if max(rgba) > 2.0 else "",
        )
    return red, green, blue, opacity


class GeometryReader:
    """Read the one shape in an element, which the tables of a format make."""

    def __init__(
        self,
        elements: Elements[Report],
        mesh_file: Callable[[str, Element], str],
        report: Report,
        *,
        others: Mapping[str, Callable[[Element, Looks], Shape | None]],
    ) -> None:
        """Take what the format has.

        mesh_file: Return the reference to a mesh that the cell keeps.
        report: Where faults go, after which a shape is left out.
        others: Readers of further elements; what they return None for they report.
        """
        self._elements = elements
        self._shapes: Final = elements.making(Shape)
        self._known: Final = (*self._shapes, *others)
        self._mesh_file = mesh_file
        self._report = report
        self._others = others

    def read(self, owner: Element, geometry: Element, looks: Looks) -> Shape | None:
        """Return the shape, None after an error."""
        shapes = geometry.children_named(*self._known)
        if len(shapes) != 1:
            self._report_count(owner, geometry, len(shapes))
        if not shapes:
            return None
        element = shapes[0]
        try:
            if element.name in self._others:
                return self._others[element.name](element, looks)
            if self._shapes[element.name] is Mesh:
                return self._mesh(element, looks)
            return self._sized(element, looks)
        except ModelError as error:
            message = f"{element.label} is not a shape: {error}".removesuffix(".")
            self._report.error(element.place, "bad-shape", message)
            return None

    def _report_count(self, owner: Element, geometry: Element, count: int) -> None:
        """Report that there is no shape, or that there are several."""
        known, report = list(self._shapes), self._report
        other = "" if count else geometry.children[0].name
        if count:
            report = report.tolerating("the first one counts")
        geometry.children_named(other)  # so that it is not reported again
        report.error(
            geometry.place,
            "bad-geometry",
            f"<geometry> of {owner.label} must hold one of {', '.join(known)}; "
            f"it has {quote(other) if other else f'{count} of them'}",
            hint=report.hint(other, known) if other else "",
        )

    def _sized(self, element: Element, looks: Looks) -> Shape | None:
        """Return a shape of the table, whose values are sizes."""
        sizes = self._elements.read_whole(element, self._report)
        if sizes is None:
            return None
        least = min(all_numbers(sizes))
        if least < 0.0:
            message = f"{element.label} has a negative size"
            self._report.error(element.place, "negative-size", message)
            return None
        if least == 0.0:
            self._warn_of_no_volume(element, "size")
        return self._shapes[element.name](**sizes, **looks)

    def _mesh(self, element: Element, looks: Looks) -> Shape | None:
        fields = self._elements.read(element, self._report)
        if fields["scale"] is None or fields["file"] is None:
            return None
        if 0.0 in fields["scale"]:
            self._warn_of_no_volume(element, "scale")
        fields["file"] = self._mesh_file(fields["file"], element)
        return Mesh(**fields, **looks)

    def _warn_of_no_volume(self, element: Element, what: str) -> None:
        message = f"{element.label} has a {what} of zero"
        self._report.warning(element.place, "no-volume", message)


class MeshFinder:
    """Look meshes up, if the caller names folders, and warn of missing ones.

    Each is looked up once, and only the first missing ones.
    """

    def __init__(self, roots: Roots, report: Report) -> None:
        self._roots = roots
        self._report = report
        self._asked: set[tuple[str, str]] = set()
        self._folders: KnownFolders = {}
        self._missing = 0 if roots.is_given else URDF_MISSING.most

    def look_up(self, file: str, base: str, place: Place) -> None:
        """Warn of a mesh that is missing.

        base: The folder of the file that refers to it.
        """
        file, _ = split_reference(file)
        key = file, base
        if key in self._asked or self._missing >= URDF_MISSING.most:
            return
        self._asked.add(key)
        found = self._roots.path_of(file, base, place, self._folders)
        if not isinstance(found, Diagnostic):
            return
        warning = self._report.warning
        warning(found.place, found.code, found.message, hint=found.hint)
        self._missing += 1
        if self._missing == URDF_MISSING.most:
            message = f"{URDF_MISSING.most} meshes are missing; no more are looked up"
            warning(place, "reference-missing", message)
