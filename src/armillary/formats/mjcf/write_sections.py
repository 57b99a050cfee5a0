"""The sections of an MJCF file beside its bodies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.mjcf.equality import EQUALITIES
from armillary.formats.mjcf.kept import SETTINGS
from armillary.formats.mjcf.keys import BASE_POSE, HOME, KEY, START
from armillary.formats.mjcf.names import WrittenNames
from armillary.formats.mjcf.rods import lengths_at_zero, rod_elements
from armillary.formats.names import FreeNames
from armillary.formats.open_loops import report_open_loops
from armillary.formats.xml import Element, tag
from armillary.formats.xml.write import Value
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell

__all__ = ["SectionWriter"]


class SectionWriter:
    """Make the sections of a model whose bodies are made.

    lost: Joints that are written as fixed, as `manipulator/joint`.
    joint_order: Manipulator and coordinate of each joint in the order of the file; the
        coordinate of a free base is empty.
    excludes: The pairs that are not tested.
    """

    def __init__(
        self,
        cell: Workcell,
        names: WrittenNames,
        report: Report,
        *,
        lost: Collection[str],
        joint_order: Sequence[tuple[int, str]],
        excludes: Sequence[Element],
    ) -> None:
        self._cell, self._names, self._report = cell, names, report
        self._lost, self._joint_order, self._excludes = lost, joint_order, excludes

    def settings(self) -> list[Element]:
        """Return the sections that were kept as a whole."""
        return [each for name in SETTINGS for each in self._names.kept_elements(name)]

    def assets(self) -> list[Element]:
        """Return the assets that were kept.

        The files of skins name bodies, which must have the same names.
        """
        assets: list[Element] = []
        for each in self._names.kept_elements("asset"):
            if each.name == "skin" and "file" in each.attributes and self._renames:
                self._report.unsupported.add("a <skin> whose file names bodies")
            else:
                assets.append(each)
        return assets

    @property
    def _renames(self) -> bool:
        return self._names.single is None

    def elements(self) -> Iterator[Element]:
        """Yield the sections behind the bodies."""
        tendons, closed = self._loops()
        sections: dict[str, list[Element]] = {
            "deformable": self._names.kept_elements("deformable"),
            "contact": [
                *self._excludes,
                *self._names.kept_elements("contact"),
            ],
            "tendon": [*tendons, *self._names.kept_elements("tendon")],
            "equality": [
                *self._couplings(),
                *closed,
                *self._names.kept_elements("equality"),
            ],
            "actuator": self._actuators(),
            "sensor": self._names.kept_elements("sensor"),
            "keyframe": list(self._keys()),
        }
        for name, elements in sections.items():
            if elements:
                yield tag(name, {}, *elements)

    def _couplings(self) -> Iterator[Element]:
        """Yield the constraints of joints that follow others."""
        for number, manipulator in enumerate(self._cell.manipulators):
            for link in manipulator.links:
                coupling = link.coupling
                name = f"{manipulator.name}/{link.coordinate}"
                if coupling is None or name in self._lost:
                    continue
                yield EQUALITIES["joint"].write(
                    joint1=self._names.joint(number, link.coordinate),
                    joint2=self._names.joint(number, coupling.of),
                    polycoef=(coupling.offset, coupling.multiplier, 0.0, 0.0, 0.0),
                )

    def _loops(self) -> tuple[list[Element], list[Element]]:
        """Return the tendons and the constraints of closed loops."""
        tendons: list[Element] = []
        constraints: list[Element] = []
        written: set[tuple[str, int]] = set()
        lengths = lengths_at_zero(self._cell)
        kept = self._names.kept_elements("tendon")
        names = FreeNames({each.attributes.get("name", "") for each in kept})
        for number, (loop, sites) in enumerate(self._names.loops):
            owner, place, joint = self._joint_of(number, loop)
            if not self._is_written(loop, joint):
                continue
            written.add((owner, place))
            if isinstance(loop, Rod):
                name = names.derive(loop.name or f"rod{number + 1}")
                added, held = rod_elements(
                    loop, name, (sites[0], sites[1]), joint, lengths[number]
                )
                tendons += added
                constraints.append(held)
            else:
                kind = "weld" if loop.rotation else "connect"
                one, other = sites
                constraints.append(
                    EQUALITIES[kind].write(name=loop.name, site1=one, site2=other)
                )
        report_open_loops(
            self._cell,
            self._report,
            is_written=lambda owner, place: (owner, place) in written,
        )
        return tendons, constraints

    def _joint_of(self, number: int, loop: Closure | Rod) -> tuple[str, int, str]:
        """Return the manipulator of a loop, its place there, and its own joint.

        The manipulator is empty for loops of the cell. The joint has its name in the
        file, and is empty if there is none there.
        """
        owner = ""
        for each in self._cell.manipulators:
            if number < len(each.loops):
                owner = each.name
                break
            number -= len(each.loops)
        if not loop.joint:
            return owner, number, ""
        name = f"{owner}/{loop.joint}" if owner else loop.joint
        manipulator, _, coordinate = name.partition("/")
        at = self._cell.index.get(manipulator)
        if at is None or (at, coordinate) not in self._joint_order:
            return owner, number, ""
        return owner, number, self._names.joint(at, coordinate)

    @staticmethod
    def _is_written(loop: Closure | Rod, joint: str) -> bool:
        """Return whether MJCF has such a loop: a rod, or a held point or pose.

        joint: That of the loop in the file, if it is written.
        """
        if isinstance(loop, Rod):
            return bool(joint) or not loop.joint
        is_point = set(loop.position) == set("xyz")
        return is_point and set(loop.rotation) in (set(), set("xyz"))

    def _actuators(self) -> list[Element]:
        """Return what was kept, and motors of joints with gears and in loops."""
        kept = self._names.kept_elements("actuator")
        driven = {
            each.attributes.get("joint", each.attributes.get("jointinparent"))
            for each in kept
        }
        tendons = {each.attributes.get("tendon") for each in kept}
        for tendon in self._names.kept_elements("tendon"):
            if tendon.attributes.get("name") in tendons:
                driven |= {each.attributes.get("joint") for each in tendon.children}
        added: list[Element] = []
        for number, manipulator in enumerate(self._cell.manipulators):
            marks = bool(manipulator.loops) and any(
                k.passive for k in manipulator.links
            )
            for link in manipulator.links:
                name = self._names.joint(number, link.coordinate)
                if not link.moves or name in driven or link.coupling is not None:
                    continue
                if f"{manipulator.name}/{link.coordinate}" in self._lost:
                    continue
                gear = link.dynamics.gear_ratio
                if gear != 1.0 or (marks and not link.passive):
                    values: dict[str, Value] = {"name": name, "joint": name}
                    if gear != 1.0:
                        values["gear"] = (gear,)
                    added.append(tag("motor", values))
        return [*kept, *added]

    # Keyframes

    def _keys(self) -> Iterator[Element]:
        """Yield a keyframe for each name of postures."""
        postures: dict[str, dict[str, dict[str, float]]] = {}
        for manipulator in self._cell.manipulators:
            for posture in manipulator.postures:
                positions = dict(zip(posture.joints, posture.q, strict=True))
                postures.setdefault(posture.name, {})[manipulator.name] = positions
            names = {each.name for each in manipulator.postures}
            read = next((name for name in (HOME, START) if name in names), "")
            where = f"in {quote(read)}" if read else "with all joints at zero"
            if manipulator.home not in ("", read):
                self._report.warning(
                    NOWHERE,
                    "not-kept",
                    f"that {quote(manipulator.name)} starts in posture "
                    f"{quote(manipulator.home)}, not {where}, is not kept",
                )
        bases = {
            (note.text, note.of): note.numbers
            for note in self._cell.properties
            if note.name == BASE_POSE
        }
        others = self._names.kept_of_keys()
        names = dict.fromkeys((*postures, *(text for text, _ in bases), *others))
        for name in names:
            qpos: tuple[float, ...] | None = None
            if name in postures or any(text == name for text, _ in bases):
                qpos = tuple(self._qpos(name, postures.get(name, {}), bases))
            made = KEY.write(name=name, qpos=qpos)
            yield tag("key", {**made.attributes, **others.get(name, {})})

    def _qpos(
        self,
        name: str,
        postures: dict[str, dict[str, float]],
        bases: dict[tuple[str, str], tuple[float, ...]],
    ) -> Iterator[float]:
        """Yield the positions of all joints in the order of the file."""
        for number, coordinate in self._joint_order:
            manipulator = self._cell.manipulators[number]
            if coordinate:
                known = postures.get(manipulator.name, {})
                yield _position(manipulator, coordinate, known)
                continue
            base = manipulator.links[manipulator.base]
            numbers = bases.get((name, f"{manipulator.name}/{base.name}"))
            if numbers is None:
                pose = self._cell.base_frames[number].pose @ base.joint.precursor
                numbers = (*pose.position, *pose.quaternion())
            yield from numbers


def _position(
    manipulator: Manipulator, coordinate: str, known: dict[str, float]
) -> float:
    """Return where a joint is in a posture; joints that it leaves out are at home."""
    if coordinate in known:
        return known[coordinate]
    link = next(
        each
        for each in manipulator.links
        if each.coordinate == coordinate and each.parent is not None
    )
    if link.coupling is not None:
        coupling = link.coupling
        leader = _position(manipulator, coupling.of, known)
        return coupling.multiplier * leader + coupling.offset
    places = [manipulator.links[k].coordinate for k in manipulator.joint_links]
    return manipulator.home_vector[places.index(coordinate)]
