"""Property elements, and the properties that tell what only RobWork has."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.desk import Desk
from armillary.formats.xml import Element
from armillary.model.property import Property

__all__ = [
    "CALIBRATION",
    "COLLISION",
    "COORDINATE",
    "DEVICE",
    "JUNCTION",
    "OWN_NOTES",
    "PREFIX",
    "PROXIMITY",
    "SETUPS",
    "TYPE",
    "Notes",
    "read_property",
    "setup_property",
]

PREFIX: Final = "robwork."
DEVICE: Final = f"{PREFIX}device"
"""Of a manipulator: the element that declares it, such as `SerialDevice`."""

TYPE: Final = f"{PREFIX}type"
"""Of a link: the type of its frame where ours does not tell, such as `Movable`."""

JUNCTION: Final = f"{PREFIX}junction"
"""Of a manipulator: the chains that end in one place, separated by `|`; repeated."""

COORDINATE: Final = "armillary.coordinate"
"""Of a joint that armillary wrote: the name of the coordinate, where it has another."""

COLLISION: Final = "CollisionSetup"
PROXIMITY: Final = "ProximitySetup"
CALIBRATION: Final = "Calibration"
SETUPS: Final = (COLLISION, PROXIMITY, CALIBRATION)
"""Elements that name a file; a property `robwork.<element>` keeps one not read."""

OWN_NOTES: Final = frozenset(
    (DEVICE, TYPE, JUNCTION, *(f"{PREFIX}{kind}" for kind in SETUPS))
)
"""The names of the properties that come from other elements than `Property`."""

TYPES: Final = ("string", "double", "Q")


class Notes:
    """The properties of a frame or of a whole, each name once."""

    def __init__(self) -> None:
        self.all: list[Property] = []
        self.coordinate = ""
        self._names: set[str] = set()

    def read(self, element: Element, desk: Desk) -> None:
        """Add what a `Property` says; RobWork keeps the first of a name."""
        found = read_property(element, desk)
        if found is None:
            return
        if found.name == COORDINATE:
            self.coordinate = found.text
            return
        if found.name in self._names:
            desk.report.warning(
                element.place,
                "repeated-property",
                f"there is a property {quote(found.name)} already, which counts, as in "
                "RobWork",
            )
            return
        self._names.add(found.name)
        self.all.append(found)


def read_property(element: Element, desk: Desk) -> Property | None:
    """Return what a property says, without the frame that it is about."""
    name = element.required_attribute("name", desk.report)
    kind = desk.choice(element, "type", TYPES, "string")
    description = element.attribute("desc") or ""
    element.attribute("refframe")
    text = element.read_text()
    numbers: tuple[float, ...] | None = ()
    if kind != "string":
        numbers = _numbers(element, 1 if kind == "double" else None, desk)
        text = ""
    desk.close(element)
    if name is None or numbers is None:
        return None
    if not name:
        desk.report.error(
            element.place, "missing-name", "a <Property> has an empty name"
        )
        return None
    return Property(name=name, text=text, numbers=numbers, description=description)


def _numbers(
    element: Element, count: int | None, desk: Desk
) -> tuple[float, ...] | None:
    """Return the numbers of a property, None after a warning, as in RobWork."""
    findings = Report()
    numbers = element.text_numbers(count, findings)
    for found in findings.diagnostics:
        desk.report.warning(
            found.place, found.code, f"{found.message}; it is left out", hint=found.hint
        )
    return numbers


def setup_property(kind: str, file: str, scope: str) -> Property:
    """Return the property that keeps the reference to a setup.

    file: As seen from the folder of the first file.
    scope: The chains, within the device, whose names stand before those in the setup.
    """
    return Property(name=f"{PREFIX}{kind}", text=file, description=scope)
