"""Property elements, and the properties that keep what only RobWork has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Unsupported
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.robwork.transform import number_text
from armillary.formats.xml import Element, tag
from armillary.model.property import Property

__all__ = [
    "CALIBRATION",
    "COLLISION",
    "COORDINATE",
    "DEVICE",
    "JUNCTION",
    "PREFIX",
    "PROXIMITY",
    "SETUPS",
    "TYPE",
    "Annotations",
    "property_elements",
]

PREFIX: Final = "robwork."
DEVICE: Final = f"{PREFIX}device"
"""Of a manipulator: its element, such as `SerialDevice`."""

TYPE: Final = f"{PREFIX}type"
"""Of a link: the type of its frame if the model has none, such as `Movable`."""

JUNCTION: Final = f"{PREFIX}junction"
"""Of a manipulator: the chains that meet at a point, separated by `|`; repeated."""

COORDINATE: Final = "armillary.coordinate"
"""Of a joint that armillary wrote under another name: the name of the joint."""

COLLISION: Final = "CollisionSetup"
PROXIMITY: Final = "ProximitySetup"
CALIBRATION: Final = "Calibration"
SETUPS: Final = (COLLISION, PROXIMITY, CALIBRATION)
"""Elements that name a file; a property `robwork.<element>` keeps one not read."""

_NOT_PROPERTIES: Final = frozenset(
    (DEVICE, TYPE, JUNCTION, *(f"{PREFIX}{kind}" for kind in SETUPS))
)
_TYPES: Final = ("string", "double", "Q")


class Annotations:
    """The properties of a frame, a device or the workcell, each name once."""

    def __init__(self) -> None:
        self.properties: list[Property] = []
        self.coordinate = ""
        self._names: set[str] = set()

    def read(self, element: Element, context: ReaderContext) -> None:
        """Add the property of an element; RobWork keeps the first of each name."""
        name = element.required_attribute("name", context.report)
        kind = context.choice(element, "type", _TYPES, "string")
        element.attribute("refframe")
        text = element.read_text()
        numbers: tuple[float, ...] | None = ()
        if kind != "string":
            count, text = (1 if kind == "double" else None), ""
            numbers = element.text_numbers(
                count, context.report.tolerating("it is left out")
            )
        description = element.attribute("desc") or ""
        context.close(element)
        if name == "":
            message = "a <Property> has an empty name"
            context.error(element.place, "missing-name", message)
        if not name or numbers is None:
            return
        if name == COORDINATE:
            self.coordinate = text
        elif name in self._names:
            context.warning(
                element.place,
                "repeated-property",
                f"there is a property {quote(name)} already, which counts, as in "
                "RobWork",
            )
        else:
            self._names.add(name)
            self.properties.append(
                Property(name=name, text=text, numbers=numbers, description=description)
            )


def property_elements(
    properties: Sequence[Property], unsupported: Unsupported, of: str = ""
) -> list[Element]:
    """Return the properties of a link, or of a whole, that are `Property` elements."""
    return [
        _property_element(each, unsupported)
        for each in properties
        if each.of == of and each.name not in _NOT_PROPERTIES
    ]


def _property_element(given: Property, unsupported: Unsupported) -> Element:
    kind, text = None, given.text
    if given.numbers and not given.text:
        kind = "double" if len(given.numbers) == 1 else "Q"
        text = " ".join(map(number_text, given.numbers))
    elif given.numbers:
        unsupported.add("the numbers of a property that has a text too")
    if text != text.strip():
        unsupported.add("white space around the text of a property")
    attributes = {"name": given.name, "type": kind, "desc": given.description or None}
    return tag("Property", attributes, text=text)
