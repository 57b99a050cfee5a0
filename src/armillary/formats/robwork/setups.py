"""The files of collision and proximity setups that a workcell refers to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Diagnostic, Severity
from armillary.formats.files import SIZE_CAP, read_bytes
from armillary.formats.robwork.bodies import SetupReference
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.expand import Follower
from armillary.formats.robwork.node import SEPARATOR
from armillary.formats.robwork.notes import CALIBRATION, setup_property
from armillary.formats.xml import Element, Limits, parse
from armillary.model.property import Property

__all__ = ["Setup", "SetupFiles"]

MOST_FILES: Final = 1000
MOST_ELEMENTS: Final = 150_000
MOST_FAULTS: Final = 10
"""After which no further file is opened to find more."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A file with rules, and whose names are meant in it.

    Attributes:
        kind: `CollisionSetup` or `ProximitySetup`, as the element says that names it.
        root: What the file holds.
        scope: The device and chains whose names stand before those in the file, such
            as `SchunkHand.f1`; empty for the whole workcell.
    """

    kind: str
    root: Element
    scope: str


class SetupFiles:
    """Opens the files of setups, up to a size and a number that bound them all.

    Attributes:
        opened: Those that could be read, in order.
    """

    def __init__(self, follower: Follower, desk: Desk) -> None:
        self._follower = follower
        self._desk = desk
        self._bytes = SIZE_CAP
        self._elements = MOST_ELEMENTS
        self.opened: list[Setup] = []

    def open(self, reference: SetupReference) -> Property | None:
        """Open what an element names, or return the property that keeps the name."""
        element = reference.element
        file = element.required_attribute("file", self._desk.report) or ""
        self._desk.close(element)
        if element.name == CALIBRATION:
            self._desk.report.note(
                element.place,
                "calibration",
                f"the calibration {quote(file)} is not applied, as in RobWork",
            )
            return self._kept(reference, file)
        found = self._follower.find(file, element.place)
        if isinstance(found, Diagnostic):
            self._desk.report.warning(
                element.place,
                found.code,
                f"{found.message}; what it says of collisions is left out",
                hint=found.hint,
            )
            return self._kept(reference, file)
        self._read(reference, file, found)
        return None

    def _read(self, reference: SetupReference, file: str, real: str) -> None:
        report, element = self._desk.report, reference.element
        if len(self.opened) == MOST_FILES:
            message = f"there are more than {MOST_FILES} setups"
            report.error(element.place, "too-many-files", message)
        if len(self.opened) >= MOST_FILES or report.count(Severity.ERROR) > MOST_FAULTS:
            return
        shown = os.path.normpath(
            os.path.join(os.path.dirname(element.place.path), file.replace("\\", "/"))
        )
        try:
            data = read_bytes(real, self._bytes)
            limits = Limits(elements=self._elements)
            root = parse(data, shown, limits, report=report)
        except FormatError as error:
            for found in error.diagnostics:
                report.add(found)
            return
        self._bytes -= len(data)
        self._elements -= sum(1 for _ in root.walk())
        scope = SEPARATOR.join(reference.scope)
        self.opened.append(Setup(element.name, root, scope))

    def _kept(self, reference: SetupReference, file: str) -> Property:
        base = os.path.dirname(os.path.abspath(reference.element.place.path))
        path = os.path.relpath(
            os.path.join(base, file.replace("\\", "/")), self._follower.folder
        )
        scope = SEPARATOR.join(reference.scope[1:])
        return setup_property(reference.element.name, path.replace(os.sep, "/"), scope)
