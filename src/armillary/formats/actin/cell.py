"""Files: systems with their states, manipulators alone, joints alone."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from armillary.errors import FormatError, JointError, PluginError, quote
from armillary.formats.actin.components import components, element_name
from armillary.formats.actin.joints import (
    JointReader,
    LinkKinematics,
    component_element,
    writable,
)
from armillary.formats.actin.link import link_elements, read_link
from armillary.formats.actin.names import (
    PREFIXES,
    actin_tag,
    bare,
    canonical,
    declared,
    is_loose,
    local,
)
from armillary.formats.actin.shapes import CLOUDS, KINDS, SHAPE_NAMES
from armillary.formats.actin.state import (
    position_states,
    read_mounts,
    read_posture,
    read_time,
    read_velocities,
    state_elements,
    written_time,
    written_velocities,
)
from armillary.formats.actin.values import built, text, text_element
from armillary.formats.diagnostic import NOWHERE, Report, Severity, fault
from armillary.formats.features import ALL, FEATURES, Held, report_losses
from armillary.formats.format import ReadOptions
from armillary.formats.names import broken_rules
from armillary.formats.xml import Element, parse, report_unused, to_text
from armillary.limits import XML_DEPTH
from armillary.model.joint import Joint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.property import Property
from armillary.model.workcell import Workcell

ENDING: Final = ".actin.xml"
LIBRARY: Final = "actin.library"
ALONE: Final = "actin.alone"
BASE: Final = "base"
MAPS: Final = frozenset(
    (
        *("systemCollisionExclusionSet", "manipSelfCollisionLinkMap"),
        *("manipulatorExclusionMap", "linkManipulatorExclusionMap"),
        "linkLinkExclusionMap",
    )
)
"""Actin's elements that say which pairs of links are tested."""
# Each link is an element inside `childLinks`, and there is more around and inside.
DEEPEST: Final = (XML_DEPTH.most - 32) // 2


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a file.

    Raises:
        FormatError: The file is faulty.
    """
    tree = parse(data, path, namespaces=True, report=report)
    try:
        rows = components({**_plugin_joints(tree, options, report), **options.joints})
    except JointError as error:
        raise fault(path, "bad-joint-class", str(error)) from error
    names = (name for row in rows for name in row.names)
    joints = frozenset(local(row.element).lower() for row in rows)
    root = canonical(tree, (*names, *SHAPE_NAMES), report, shapes=KINDS, joints=joints)
    reader = _CellReader(JointReader(rows, report))
    cell = reader.cell(root, _stem(path))
    report_unused(root, report)
    report.raise_if_errors()
    assert cell is not None
    return cell


def _plugin_joints(
    tree: Element, options: ReadOptions, report: Report
) -> dict[str, type[Joint]]:
    """Return the joints of plug-ins whose elements are in the tree.

    Raises:
        FormatError: One of these plug-ins is broken.
    """
    names = {element.name.lower() for element in tree.walk()}
    joints: dict[str, type[Joint]] = {}
    try:
        for name in options.plugins:
            if element_name(name).lower() in names and name not in options.joints:
                joints[name] = options.plugins[name]
    except PluginError as error:
        report.error(tree.place, "bad-plugin", str(error).removesuffix("."))
    report.raise_if_errors()
    known = {(local(r.element).lower(), r.space) for r in components(joints)}
    others = {
        (each.name.lower(), bare(each.namespace))
        for each in tree.walk()
        if each.namespace and not is_loose(each.namespace)
    } - known
    # The token is an attribute of the class, so the plug-in must be imported.
    for tag in options.plugins if others else ():
        if tag in joints or tag in options.joints:
            continue
        try:
            kind = options.plugins[tag]
        except PluginError as error:
            message = f"{str(error).removesuffix('.')}; it is left out"
            report.warning(tree.place, "bad-plugin", message)
            continue
        space, _, name = kind.token.rpartition("#")
        if (name.lower(), bare(space)) in others:
            joints[tag] = kind
    return joints


def _stem(path: str) -> str:
    """Return the name of a file without its ending."""
    name = os.path.basename(path)
    is_ours = name.lower().endswith(ENDING)
    stem = name[: -len(ENDING)] if is_ours else os.path.splitext(name)[0]
    return "robot" if stem in {"", WORLD} else stem


class _CellReader:
    """Makes the cell of a tree of elements."""

    def __init__(self, joints: JointReader) -> None:
        self.joints = joints
        self._report = joints.report

    def cell(self, root: Element, name: str) -> Workcell | None:
        """Return the cell, None after an error."""
        if self.joints.rows_of(root):
            kinematics = self.joints.read(root)
            return None if kinematics is None else _lone_cell(root.name, kinematics)
        if root.name == "individualManipulator":
            return self._built(root, name, [self._manipulator(root, name)])
        if root.name not in {"statedSystem", "manipulatorSystem"}:
            self._report.error(
                root.place,
                "wrong-root",
                f"{root.label} is not a system, a manipulator or a registered joint",
                hint="Give its class when you load the file: joints=[...].",
            )
            return None
        name = text(root, "identifier", self._report, name)
        system = root
        for inner in ("system", "manipulatorSystem"):
            system = system.only_child(inner, self._report) or system
        holder = system.required_child("manipulators", self._report)
        if holder is None:
            return None
        elements = holder.children_named("individualManipulator")
        manipulators = [
            self._manipulator(element, f"manipulator_{k}")
            for k, element in enumerate(elements)
        ]
        return self._built(root, name, manipulators)

    def _built(
        self,
        root: Element,
        name: str,
        found: list[tuple[Manipulator, list[float]] | None],
    ) -> Workcell | None:
        """Return the cell of manipulators, with the state that is beside them.

        found: Each manipulator, and for each of its links the change of our coordinate
            for one of the file's; None after an error.
        """
        report = self._report
        good = [each for each in found if each is not None]
        if len(good) < len(found):
            return None
        fields: dict[str, Any] = {"name": name, "manipulators": [m for m, _ in good]}
        plain = built(Workcell, fields, root, "bad-cell", report)
        if plain is None or root.name != "statedSystem":
            return plain
        fields["properties"] = read_time(root, report)
        velocities = read_velocities(root, fields["manipulators"], report)
        for k, properties in enumerate(velocities):
            if properties:
                manipulator, rates = good[k]
                both = (*manipulator.properties, *properties)
                good[k] = msgspec.structs.replace(manipulator, properties=both), rates
                fields["manipulators"][k] = good[k][0]
        _count_maps(root, report)
        states = position_states(root, len(good), report)
        fields["mounts"] = read_mounts(plain, root, states, report)
        for k, state in enumerate(states):
            manipulator, rates = good[k]
            posture = read_posture(state, manipulator, rates, report)
            if posture is not None:
                fields["manipulators"][k] = msgspec.structs.replace(
                    manipulator, postures=(posture,), home=posture.name
                )
        return built(Workcell, fields, root, "bad-cell", report)

    def _manipulator(
        self, element: Element, name: str
    ) -> tuple[Manipulator, list[float]] | None:
        """Return a manipulator and the rates of its links, None after an error."""
        report = self._report
        name = text(element, "identifier", report, name)
        base = element.required_child("manipulatorLink", report)
        if base is None:
            return None
        elements: list[Element] = []
        links: list[Link] = []
        rates: list[float] = []
        libraries: list[Property] = []
        waiting: list[tuple[Element, str | None]] = [(base, None)]
        while waiting:
            at, parent = waiting.pop()
            link, kinematics = self._link(at, parent, len(links))
            elements.append(at)
            links.append(link)
            rates.append(kinematics.rate)
            libraries += _libraries(link.name, kinematics.library)
            holder = at.only_child("childLinks", report)
            if holder is not None:
                children = holder.children_named("manipulatorLink")
                waiting += [(child, link.name) for child in reversed(children)]
        if not report.count(Severity.ERROR):
            for problem, k in broken_rules(links):
                at = elements[k or 0]
                report.error(at.place, problem.rule, problem.message.removesuffix("."))
        if report.count(Severity.ERROR):
            return None
        fields = {"name": name, "links": links, "properties": libraries}
        made = built(Manipulator, fields, element, "bad-manipulator", report)
        return None if made is None else (made, rates)

    def _link(
        self, element: Element, parent: str | None, count: int
    ) -> tuple[Link, LinkKinematics]:
        name = text(element, "identifier", self._report)
        if not name:
            name = "base" if parent is None else f"link_{count}"
            message = f"a link has no identifier; it is called {quote(name)}"
            self._report.note(element.place, "no-name", message)
        return read_link(element, name, parent, self.joints)


def _count_maps(root: Element, report: Report) -> None:
    """Report maps of which links are tested, whose layout is not known, as unread."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for child in element.children:
            if child.name in MAPS and bare(child.namespace) == PREFIXES["mn"]:
                element.children_named(child.name)
                report.unsupported.add(f"<{child.name}>", child.place)
            else:
                waiting.append(child)


def held_features() -> Held:
    """Return what Actin-style XML holds of a cell."""
    lost = {
        *("closed loops", "coupled limits", "groups", "wheels", "collision rules"),
        *("motions", *(kind.__name__ for kind in CLOUDS)),
    }
    return {
        **{name: ALL for name in FEATURES if name not in lost},
        "postures": "the one at home",
        "home": "as the state",
        "properties": "`library`, time and rates",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the text of a cell.

    Raises:
        FormatError: A number is not finite, a text cannot be in XML, a joint is of an
            unknown type, or a chain is too long.
    """
    root = _lone_element(cell, report)
    if root is None:
        root = _system(cell, report)
    report.raise_if_errors()
    return to_text(declared(root)).encode()


def _system(cell: Workcell, report: Report) -> Element:
    _report_losses(cell, report)
    name = text_element("identifier", cell.name, report)
    made = [_manipulator_element(each, report) for each in cell.manipulators]
    system = actin_tag("system", {}, actin_tag("manipulators", {}, *made))
    return actin_tag("statedSystem", {}, name, system, *state_elements(cell, report))


def _manipulator_element(manipulator: Manipulator, report: Report) -> Element:
    libraries = {p.of: p.text for p in manipulator.properties if p.name == LIBRARY}
    made: dict[int, Element] = {}
    depths = {-1: 0}
    for k in manipulator.order:
        depths[k] = depths[manipulator.parents[k]] + 1
    if max(depths.values()) > DEEPEST:
        message = f"{quote(manipulator.name)} has more than {DEEPEST} links in a row"
        report.error(NOWHERE, "too-deep", message, hint="XML would nest them all.")
        report.raise_if_errors()
    for k in reversed(manipulator.order):  # children come before their parents
        link = writable(manipulator.links[k], manipulator, report)
        children = [made.pop(child) for child in manipulator.children[k]]
        parts: list[Element] = []
        try:
            parts = link_elements(link, libraries.get(link.name, ""), report)
        except FormatError as error:
            message = f"link {quote(link.name)}: {error.diagnostics[0].message}"
            report.error(NOWHERE, "bad-number", message)
        if children:
            parts.append(actin_tag("childLinks", {}, *children))
        made[k] = actin_tag("manipulatorLink", {}, *parts)
    name = text_element("identifier", manipulator.name, report)
    return actin_tag("individualManipulator", {}, name, made[manipulator.base])


def _report_losses(cell: Workcell, report: Report) -> None:
    """Warn of what a file cannot hold, once for each kind."""
    losses = report.unsupported
    report_losses(cell, held_features(), report)
    time = written_time(cell)
    for note in cell.properties:
        if note is not time:
            losses.add("a property of the cell")
    for manipulator in cell.manipulators:
        rates = written_velocities(manipulator)
        for note in manipulator.properties:
            is_library = note.name == LIBRARY and not (note.numbers or note.description)
            if not is_library and note is not rates:
                losses.add(f"property {quote(note.name)}")
        if list(manipulator.order) != sorted(manipulator.order):
            message = f"links of {quote(manipulator.name)} go depth first"
            report.note(NOWHERE, "order", message)
    order = [cell.index[mount.manipulator] for mount in cell.mounts]
    if order != sorted(order):
        report.note(NOWHERE, "order", "mounts go in the order of the manipulators")


# A joint alone in a file, as in the seed's sample: a cell of one link on a base.


def _lone_cell(name: str, kinematics: LinkKinematics) -> Workcell:
    """Return a cell of one joint with the name of its element."""
    joint, primary = kinematics.joint, kinematics.primary
    link = Link(name=name, parent=BASE, joint=joint, primary=primary)
    libraries = _libraries(name, kinematics.library)
    arm = Manipulator(name=name, links=(Link(name=BASE), link), properties=libraries)
    alone = Property(name=ALONE, text=name)
    return Workcell(name=name, manipulators=(arm,), properties=(alone,))


def _libraries(link: str, library: str) -> list[Property]:
    """Return the property that keeps the library of a link, nothing without one."""
    return [Property(name=LIBRARY, of=link, text=library)] if library else []


def _lone_element(cell: Workcell, report: Report) -> Element | None:
    """Return the element of a cell that is one joint and no more, None for others."""
    links = cell.manipulators[0].links if cell.manipulators else ()
    if not any(each.name == ALONE for each in cell.properties) or len(links) != 2:
        return None
    link = links[1]
    notes = (p.text for p in cell.manipulators[0].properties if p.name == LIBRARY)
    kinematics = LinkKinematics(
        joint=link.joint, primary=link.primary, library=next(notes, "")
    )
    alone = _lone_cell(link.name, kinematics)
    if alone != cell:
        return None
    return component_element(
        writable(link, cell.manipulators[0], report), kinematics.library, report
    )
