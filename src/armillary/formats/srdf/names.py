"""The links and joints that an SRDF may name, and what it names in vain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.urdf.tree import PARTS
from armillary.formats.xml import Element
from armillary.model.manipulator import Manipulator

__all__ = ["Names", "VirtualJoint"]


class VirtualJoint(NamedTuple):
    """How a robot as a whole is joined to the world."""

    name: str
    type: str
    parent_frame: str
    child_link: str
    place: Place
    groups: list[str]
    """Those that it is in."""


class Names:
    """Look up the links and joints of a robot, and warn of those that do not exist.

    Attributes:
        manipulator: The robot, and `base` the name of its base.
        virtual, groups: The virtual joints and the names of the groups of the file.
        moving: The joints that have a coordinate, their own or a followed one.
        link_behind: The index of the link that each joint carries.
        found, missed: How many names of links and joints exist and do not.
    """

    def __init__(self, manipulator: Manipulator, report: Report) -> None:
        self.manipulator = manipulator
        self.report = report
        self.virtual: dict[str, VirtualJoint] = {}
        self.groups: tuple[str, ...] = ()
        self.found = 0
        self.missed = 0
        self.base = manipulator.links[manipulator.base].name
        self.moving = {
            link.coordinate for link in manipulator.links if link.has_coordinate
        }
        self.link_behind = {
            link.coordinate: k
            for k, link in enumerate(manipulator.links)
            if link.parent is not None
        }

    def required(self, element: Element, attribute: str) -> str | None:
        """Return a required name without white space around it, None after an error."""
        text = element.required_attribute(attribute, self.report)
        name = None if text is None else text.strip(WHITE_SPACE)
        if name == "":
            self.report.error(
                element.place,
                "missing-name",
                f"attribute {quote(attribute)} of <{element.name}> is empty",
            )
        return name or None

    def link(self, element: Element, attribute: str) -> str | None:
        """Return the link that an attribute names, None after a diagnostic."""
        name = self.required(element, attribute)
        if name is None or name in self.manipulator.index:
            self.found += name is not None
            return name
        self._report_missing("link", name, self.manipulator.index, element)
        return None

    def check_group(self, element: Element, name: str) -> None:
        """Warn of the name of a group that does not exist."""
        if name not in self.groups:
            self.report.warning(
                element.place,
                "unknown-group",
                f"{element.label} names the group {quote(name)}, which does not exist",
                hint=self.report.hint(name, self.groups),
            )

    def joints(self, element: Element, name: str) -> tuple[str, ...]:
        """Return the joints that a name means: itself, or those that replace it.

        Nothing, after a warning, if the robot has no such joint.
        """
        replaced = [
            tuple(f"{name}_{part}" for part in PARTS[kind])
            for kind in ("floating", "planar")
        ]
        known = [parts for parts in replaced if self.moving.issuperset(parts)]
        if name in self.link_behind or known:
            self.found += 1
            return (name,) if name in self.link_behind else known[0]
        known_names = [*self.link_behind, *self.virtual]
        self._report_missing("joint", name, known_names, element)
        return ()

    def _report_missing(
        self, kind: str, name: str, known: Iterable[str], element: Element
    ) -> None:
        self.missed += 1
        self.report.warning(
            element.place,
            f"unknown-{kind}",
            f"<{element.name}> names the {kind} {quote(name)}, which the robot does "
            "not have; that is left out",
            hint=self.report.hint(name, known),
        )
