"""The links and joints that an SRDF may name, and what it names in vain."""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import Guesses
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.xml import Element
from armillary.model.manipulator import Manipulator

__all__ = ["FLOATING", "PLANAR", "Names", "VirtualJoint"]

PLANAR: Final = ("x", "y", "theta")
FLOATING: Final = ("x", "y", "z", "yaw", "pitch", "roll")
"""What is added to the name of a joint that the reader of URDF has split."""


class VirtualJoint(NamedTuple):
    """How a robot as a whole is joined to the world."""

    name: str
    type: str
    parent_frame: str
    child_link: str
    place: Place


class Names:
    """Tells the links and joints of a robot, and warns of what is none."""

    def __init__(self, manipulator: Manipulator, report: Report) -> None:
        self.manipulator = manipulator
        self.report = report
        self.virtual: dict[str, VirtualJoint] = {}
        self.found = 0
        self.missed = 0
        self._guesses = Guesses()
        self._moving = {link.coordinate for link in manipulator.links if link.moves}
        self._links = {
            link.coordinate: k
            for k, link in enumerate(manipulator.links)
            if link.parent is not None
        }

    def of(self, element: Element, attribute: str) -> str | None:
        """Return a required name without white space around it, None after an error."""
        given = element.required_attribute(attribute, self.report)
        name = None if given is None else given.strip(WHITE_SPACE)
        if name == "":
            self.report.error(
                element.place,
                "missing-name",
                f"attribute {quote(attribute)} of <{element.name}> is empty",
            )
        return name or None

    def link(self, element: Element, attribute: str) -> str | None:
        """Return the link that an attribute names, None after a finding."""
        name = self.of(element, attribute)
        if name is None:
            return None
        if name in self.manipulator.index:
            self.found += 1
            return name
        self._miss("link", name, self.manipulator.index, element)
        return None

    def joints(self, element: Element, name: str) -> tuple[str, ...]:
        """Return the joints that a name stands for: itself, or what it was split into.

        Nothing, after a warning, where it is none of the robot's joints.
        """
        if name in self._links:
            self.found += 1
            return (name,)
        for suffixes in (FLOATING, PLANAR):
            parts = tuple(f"{name}_{suffix}" for suffix in suffixes)
            if self._moving.issuperset(parts):
                self.found += 1
                return parts
        self._miss("joint", name, [*self._links, *self.virtual], element)
        return ()

    def link_behind(self, joint: str) -> int:
        """Return the place of the link that a joint carries."""
        return self._links[joint]

    def moves(self, joint: str) -> bool:
        """Return whether a joint has a coordinate, its own or a followed one."""
        return joint in self._moving

    def hint(self, name: str, known: list[str]) -> str:
        """Return the sentence that names the nearest known name, or nothing."""
        return self._guesses.hint(name, known)

    def _miss(
        self, kind: str, name: str, known: list[str] | dict[str, int], element: Element
    ) -> None:
        self.missed += 1
        self.report.warning(
            element.place,
            f"unknown-{kind}",
            f"<{element.name}> names the {kind} {quote(name)}, which the robot does "
            "not have; that is left out",
            hint=self._guesses.hint(name, known),
        )
