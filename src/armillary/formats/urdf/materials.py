"""Materials: colours by name, wherever in the file they are defined."""

from __future__ import annotations

from collections.abc import Iterator

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.names import Guesses
from armillary.formats.unsupported import Unsupported
from armillary.formats.xml import Element, report_unused
from armillary.model.shape import Colour

__all__ = ["Materials"]


class Materials:
    """The materials of a robot.

    Those of the robot itself can be used by name everywhere; so can, as in ROS, one
    that a visual defines.
    """

    def __init__(
        self, robot: Element, report: Report, unsupported: Unsupported, guesses: Guesses
    ) -> None:
        """Read every material of the file, once."""
        self._report = report.tolerating("it is left out", Severity.NOTE)
        self._unkept = unsupported
        self._guesses = guesses
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
        for material in _of_shapes(robot):
            name = material.attribute("name")
            if self._says_something(material):
                self._by_element[material] = colour = self._define(material)
                self._by_name.setdefault(name or "", colour)

    def colour(self, shape: Element) -> Colour | None:
        """Return the colour of a visual or collision, None where none is said."""
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
                hint=self._guesses.hint(name, filter(None, self._by_name)),
            )
        return self._by_name.get(name) if name else None

    def _says_something(self, material: Element) -> bool:
        names = {child.name for child in material.children}
        return bool(names & {"color", "texture"})

    def _define(self, material: Element) -> Colour | None:
        """Return the colour that a material defines."""
        color = material.first_child("color", self._report)
        self._unkept.add_children(material, ("texture",))
        report_unused(material, self._report, Severity.NOTE)
        if color is None:
            return None
        rgba = color.numbers("rgba", 4, self._report, required=True)
        report_unused(color, self._report, Severity.NOTE)
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


def _of_shapes(robot: Element) -> Iterator[Element]:
    """Return the materials inside links."""
    for link in robot.children:
        for shape in link.children if link.name == "link" else ():
            for child in shape.children:
                if child.name == "material":
                    yield child
