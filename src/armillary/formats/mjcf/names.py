"""The names of a cell in an MJCF file, and what of it was kept from another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.mjcf.bodies import SOFT
from armillary.formats.mjcf.document import with_attributes
from armillary.formats.mjcf.kept import PREFIX, element_in, renamed_references
from armillary.formats.mjcf.trees import ENVIRONMENT, SEPARATOR
from armillary.formats.names import FreeNames
from armillary.formats.xml import Element, tag
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.mount import WORLD
from armillary.model.property import Property
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.model.manipulator import Manipulator

__all__ = ["WrittenNames"]

PARTS: Final = ("geom", "camera", "light", "site", *SOFT)
"""Elements of bodies that are kept as a whole."""


class WrittenNames:
    """Names of bodies, joints and sites, those of one manipulator without its name.

    single: The number of the manipulator whose name is that of the model, None where
        there are several.
    """

    def __init__(self, cell: Workcell, report: Report) -> None:
        self._cell, self._report = cell, report
        names = [each.name for each in cell.manipulators]
        self.has_environment = ENVIRONMENT in names and _is_environment(
            cell, cell.manipulators[names.index(ENVIRONMENT)]
        )
        robots = [
            k
            for k, name in enumerate(names)
            if not (self.has_environment and name == ENVIRONMENT)
        ]
        self.single = robots[0] if len(robots) == 1 else None
        self._bare_bases: set[int] = set()
        self._kept: dict[tuple[str, str], list[Property]] = {}
        self._described: dict[tuple[str, str, str], list[Property]] = {}
        for note in cell.properties:
            if note.name.startswith(PREFIX):
                kind = note.name.removeprefix(PREFIX)
                self._kept.setdefault((kind, note.of), []).append(note)
                key = kind, note.of.partition("/")[0], note.description
                self._described.setdefault(key, []).append(note)
        self._sites: dict[tuple[int, str], str] = {}
        self._loops = self._named_loops()

    def prefix(self, number: int) -> str:
        """Return what names of a manipulator begin with."""
        if number == self.single:
            manipulator = self._cell.manipulators[number]
            base = manipulator.links[manipulator.base].name
            # A body cannot be called `world`, as the roots of many robots of ROS are.
            if SEPARATOR not in base and WORLD not in manipulator.index:
                return ""
        return f"{self._cell.manipulators[number].name}{SEPARATOR}"

    def skip_base(self, number: int) -> None:
        """Note that a base has no body: its children are in the world."""
        self._bare_bases.add(number)

    def body(self, number: int, link: str) -> str:
        """Return the name of a body."""
        manipulator = self._cell.manipulators[number]
        is_base = manipulator.links[manipulator.base].name == link
        if is_base and (
            number in self._bare_bases
            or (self.has_environment and manipulator.name == ENVIRONMENT)
        ):
            return WORLD
        return f"{self.prefix(number)}{link}"

    def joint(self, number: int, name: str) -> str:
        """Return the name of a joint."""
        return f"{self.prefix(number)}{name}"

    def site(self, number: int, name: str) -> str:
        """Return the name of the site of a frame."""
        if self.has_environment and self._cell.manipulators[number].name == ENVIRONMENT:
            return name
        return f"{self.prefix(number)}{name}"

    def number_of(self, qualified: str) -> tuple[int, str]:
        """Return manipulator and bare name of what is called `manipulator/name`."""
        owner, _, bare = qualified.partition("/")
        return self._cell.index[owner], bare

    def body_of(self, qualified: str) -> str:
        """Return the name of the body of a link."""
        return self.body(*self.number_of(qualified))

    # Loops

    def _named_loops(self) -> list[tuple[Closure | Rod, list[str]]]:
        """Return the loops, each with the names of two sites.

        Links that are ends of loops get a site in their origin.
        """
        found: list[tuple[Closure | Rod, list[str]]] = []
        taken = FreeNames(
            {
                self.site(k, frame.name)
                for k, m in enumerate(self._cell.manipulators)
                for link in m.links
                for frame in link.frames
            }
        )
        loops = [
            (loop, f"{m.name}/") for m in self._cell.manipulators for loop in m.loops
        ]
        loops += [(loop, "") for loop in self._cell.loops]
        for loop, prefix in loops:
            ends: list[str] = []
            for end in (loop.a, loop.b):
                number, bare = self.number_of(f"{prefix}{end}")
                manipulator = self._cell.manipulators[number]
                if bare in manipulator.index:
                    key = number, bare
                    if key not in self._sites:
                        name = self.site(number, f"{bare}_origin")
                        self._sites[key] = taken.derive(name)
                    ends.append(self._sites[key])
                else:
                    ends.append(self.site(number, bare))
            found.append((loop, ends))
        return found

    @property
    def loops(self) -> list[tuple[Closure | Rod, list[str]]]:
        """Return the loops of the cell, each with the names of two sites.

        Those of manipulators come first.
        """
        return self._loops

    def loop_sites(self, number: int, link: Link) -> list[Element]:
        """Return the site of a link that is the end of a loop."""
        name = self._sites.get((number, link.name))
        return [] if name is None else [tag("site", {"name": name})]

    # What was kept

    def kept_attributes(self, kind: str, number: int, name: str) -> dict[str, str]:
        """Return the attributes that were kept of a body, a joint or a site."""
        manipulator = self._cell.manipulators[number]
        if kind in ("body", "freejoint"):
            notes = self._kept.get((kind, f"{manipulator.name}/{name}"), [])
        else:
            notes = self._described.get((kind, manipulator.name, name), [])
        return self.attributes_in(notes)

    def geom_attributes(self, qualified: str) -> dict[str, dict[str, str]]:
        """Return the attributes kept of the geoms of a link, by their descriptions."""
        found: dict[str, dict[str, str]] = {}
        for note in self._kept.get(("geom", qualified), []):
            if note.description:
                found[note.description] = self.attributes_in([note])
        return found

    def attributes_in(self, notes: Iterable[Property]) -> dict[str, str]:
        """Return the attributes of the elements in properties."""
        attributes: dict[str, str] = {}
        for note in notes:
            element = self._element(note)
            if element is not None:
                attributes |= element.attributes
        return attributes

    def kept_parts(self, qualified: str) -> list[Element]:
        """Return the elements that were kept of a body."""
        parts: list[Element] = []
        for kind in PARTS:
            for note in self._kept.get((kind, qualified), []):
                if not note.description and (each := self._renamed(note)) is not None:
                    parts.append(each)
        return parts

    def kept_elements(self, kind: str) -> list[Element]:
        """Return the elements that were kept of a section."""
        notes = self._kept.get((kind, ""), [])
        elements = [self._renamed(note) for note in notes if not note.description]
        return [element for element in elements if element is not None]

    def kept_of_keys(self) -> dict[str, dict[str, str]]:
        """Return what was kept of keyframes, by their names."""
        return {
            note.description: self.attributes_in([note])
            for note in self._kept.get(("key", ""), [])
        }

    def _element(self, note: Property) -> Element | None:
        element = element_in(note, self._report)
        if element is None:
            message = f"property {quote(note.name)} holds no element"
            self._report.warning(NOWHERE, "not-kept", message)
        return element

    def _renamed(self, note: Property) -> Element | None:
        element = self._element(note)
        if element is None:
            return None
        renamed = renamed_references(element, self._new_name)
        if renamed is None:
            self._report.warning(
                NOWHERE,
                "not-kept",
                f"{element.label} of property {quote(note.name)} names a part "
                "that the cell does not have; it is left out",
            )
            return None
        return with_attributes(renamed, renamed.attributes)

    def _new_name(self, kind: str, name: str, element: Element) -> str | None:
        if kind == "geom" or name == WORLD:
            return name
        owner, _, bare = name.partition("/")
        number = self._cell.index.get(owner)
        if number is None:
            return None
        manipulator = self._cell.manipulators[number]
        if kind == "joint":
            for link in manipulator.links:
                if link.coordinate == bare and link.moves:
                    return self.joint(number, bare)
            base = manipulator.links[manipulator.base].name
            free = self.kept_attributes("freejoint", number, base).get("name")
            return free if free == bare else None
        if bare not in manipulator.frame_refs:
            return None
        if kind == "body":
            return self.body(number, bare)
        return self.site(number, bare)


def _is_environment(cell: Workcell, manipulator: Manipulator) -> bool:
    """Return whether a manipulator is what is fixed to the world."""
    return (
        len(manipulator.links) == 1
        and manipulator.links[0].name == ENVIRONMENT
        and manipulator.name not in cell.mounted
        and manipulator.links[0].joint.precursor.is_identity
    )
