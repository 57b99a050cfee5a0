"""Actin-style XML in: systems with their states, manipulators alone, joints alone."""

from __future__ import annotations

import itertools
import os
from typing import Final

import msgspec

from armillary.errors import ArmillaryError, PluginError, quote
from armillary.formats.actin.bodies import read_frames, read_inertia, read_limits
from armillary.formats.actin.components import Component, components, element_name
from armillary.formats.actin.coordinates import (
    read_coupling,
    read_inputs,
    read_joint_name,
    read_passive,
)
from armillary.formats.actin.joints import Carrier, is_component, read_component
from armillary.formats.actin.lone import LIBRARY, lone_cell
from armillary.formats.actin.names import canonical
from armillary.formats.actin.placing import read_mounts
from armillary.formats.actin.shapes import KINDS, SHAPE_NAMES, read_shapes
from armillary.formats.actin.state import read_posture
from armillary.formats.actin.values import identifier
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.names import broken_rules
from armillary.formats.xml import Element, parse, report_unused
from armillary.model.joint import Joint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import WORLD, Workcell

__all__ = ["read"]

ENDING: Final = ".actin.xml"


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a file.

    Raises:
        FormatError: The file is faulty.
    """
    tree = parse(data, path, namespaces=True, report=report)
    rows = components({**_of_plugins(tree, options, report), **options.joints})
    names = (name for row in rows for name in row.names)
    root = canonical(tree, (*names, *SHAPE_NAMES), report, shapes=KINDS)
    if is_component(root, rows):
        carrier = read_component(root, rows, report)
        report.raise_if_errors()
        assert carrier is not None
        return lone_cell(root.name, carrier)
    cell = _Reader(rows, report).cell(root, _stem(path))
    report.raise_if_errors()
    assert cell is not None
    return cell


def _of_plugins(
    tree: Element, options: ReadOptions, report: Report
) -> dict[str, type[Joint]]:
    """Return the joints of plug-ins that elements of the tree are called after.

    Raises:
        FormatError: One of these plug-ins is broken.
    """
    called = {element.name.lower() for element in tree.walk()}
    found: dict[str, type[Joint]] = {}
    try:
        for tag in options.plugins:
            if element_name(tag).lower() in called and tag not in options.joints:
                found[tag] = options.plugins[tag]
    except PluginError as error:
        report.error(tree.place, "bad-plugin", str(error).removesuffix("."))
    report.raise_if_errors()
    return found


class _Reader:
    """Makes the cell of a tree of elements."""

    def __init__(self, rows: tuple[Component, ...], report: Report) -> None:
        self._rows = rows
        self._report = report

    def cell(self, root: Element, name: str) -> Workcell | None:
        """Return the cell, None where the report says why there is none."""
        report = self._report
        if root.name == "individualManipulator":
            alone = self._manipulator(root, name)
            return self._built(root, name, [alone], None)
        if root.name not in {"statedSystem", "manipulatorSystem"}:
            report.error(
                root.place,
                "wrong-root",
                f"{root.label} is no system, no manipulator and no registered joint",
                hint="Give its class when you load the file: joints=[...].",
            )
            return None
        name = identifier(root, report) or name
        stated = root if root.name == "statedSystem" else None
        system = root
        for inner in ("system", "manipulatorSystem"):
            child = system.only_child(inner, report)
            if child is not None:
                if system is not root:
                    report_unused(system, report)
                system = child
        holder = system.required_child("manipulators", report)
        if system is not root:
            report_unused(system, report)
        if holder is None:
            return None
        found = [
            self._manipulator(element, f"manipulator_{k}")
            for k, element in enumerate(holder.children_named("individualManipulator"))
        ]
        report_unused(holder, report)
        cell = self._built(root, name, found, stated)
        report_unused(root, report)
        return cell

    def _built(
        self,
        root: Element,
        name: str,
        found: list[tuple[Manipulator, list[float]] | None],
        stated: Element | None,
    ) -> Workcell | None:
        """Return the cell of manipulators, with the state that stands beside them."""
        report = self._report
        good = [each for each in found if each is not None]
        if len(good) < len(found):
            return None
        try:
            plain = Workcell(name=name, manipulators=tuple(m for m, _ in good))
            if stated is None:
                return plain
            states = _position_states(stated, len(good), report)
            manipulators = tuple(
                _with_posture(each, read_posture(state, each, rates, report))
                for (each, rates), state in itertools.zip_longest(good, states)
            )
            mounts = read_mounts(plain, stated, states, report)
            for state in states:
                report_unused(state, report)
            return Workcell(name=name, manipulators=manipulators, mounts=mounts)
        except ArmillaryError as error:
            report.error(root.place, "bad-cell", str(error).removesuffix("."))
            return None

    def _manipulator(
        self, element: Element, name: str
    ) -> tuple[Manipulator, list[float]] | None:
        """Return a manipulator and the rates of its links' coordinates."""
        report = self._report
        name = identifier(element, report) or name
        base = element.required_child("manipulatorLink", report)
        report_unused(element, report)
        if base is None:
            return None
        places: list[Element] = []
        links: list[Link] = []
        rates: list[float] = []
        properties: list[Property] = []
        waiting: list[tuple[Element, str | None]] = [(base, None)]
        while waiting:
            place, parent = waiting.pop()
            link, carrier, children = self._link(place, parent, len(links))
            places.append(place)
            links.append(link)
            rates.append(carrier.rate)
            waiting.extend((child, link.name) for child in reversed(children))
            if carrier.library:
                note = Property(name=LIBRARY, of=link.name, text=carrier.library)
                properties.append(note)
        if self._has_errors():
            return None
        for problem, k in broken_rules(links):
            at = places[0 if k is None else k].place
            report.error(at, problem.rule, problem.message.removesuffix("."))
        if self._has_errors():
            return None
        try:
            made = Manipulator(
                name=name, links=tuple(links), properties=tuple(properties)
            )
        except ArmillaryError as error:
            report.error(element.place, "bad-manipulator", str(error).removesuffix("."))
            return None
        return made, rates

    def _has_errors(self) -> bool:
        return self._report.count(Severity.ERROR) > 0

    def _link(
        self, element: Element, parent: str | None, count: int
    ) -> tuple[Link, Carrier, tuple[Element, ...]]:
        """Return a link, what its component says, and the elements of its children."""
        report = self._report
        name = identifier(element, report)
        if not name:
            name = "base" if parent is None else f"link_{count}"
            message = f"a link has no identifier; it is called {quote(name)}"
            report.note(element.place, "no-name", message)
        carrier = self._carrier(element)
        limits = read_limits(element, carrier.rate, report)
        inertia = read_inertia(element, report)
        frames = read_frames(element, report)
        joint_name = read_joint_name(element, report)
        coupling = read_coupling(element, report)
        inputs = read_inputs(element, report)
        passive = read_passive(element, report)
        visuals, collisions = read_shapes(element, report)
        holder = element.only_child("childLinks", report)
        children: tuple[Element, ...] = ()
        if holder is not None:
            children = holder.children_named("manipulatorLink")
            report_unused(holder, report)
        report_unused(element, report)
        link = Link(
            name=name,
            parent=parent,
            joint=carrier.joint,
            joint_name=joint_name,
            limits=limits,
            coupling=coupling,
            inputs=inputs,
            passive=passive,
            primary=carrier.primary,
            inertia=inertia,
            frames=frames,
            visuals=visuals,
            collisions=collisions,
        )
        return link, carrier, children

    def _carrier(self, link: Element) -> Carrier:
        """Return what the component of a link says, nothing without one."""
        report = self._report
        holder = link.only_child("linkKinematicsContainer", report)
        if holder is None:
            return Carrier()
        if len(holder.children) != 1:
            report.error(
                holder.place,
                "wrong-count",
                f"{holder.label} holds one component, not {len(holder.children)}",
            )
            return Carrier()
        (component,) = holder.children
        holder.children_named(component.name)
        report_unused(holder, report)
        return read_component(component, self._rows, report) or Carrier()


def _position_states(stated: Element, count: int, report: Report) -> list[Element]:
    """Return the states of the positions of the manipulators, as many as there are."""
    state = stated.only_child("state", report)
    if state is None:
        return []
    inner = state.only_child("manipulatorSystemState", report)
    if inner is not None:
        report_unused(state, report)
        state = inner
    holder = state.only_child("positionStates", report)
    report_unused(state, report)
    if holder is None:
        return []
    found = holder.children_named("positionState")
    report_unused(holder, report)
    if len(found) > count:
        message = f"there are {len(found)} position states for {count} manipulators"
        report.error(found[count].place, "wrong-count", message)
    return list(found[:count])


def _with_posture(manipulator: Manipulator, posture: Posture | None) -> Manipulator:
    if posture is None:
        return manipulator
    return msgspec.structs.replace(manipulator, postures=(posture,), home=posture.name)


def _stem(path: str) -> str:
    """Return what a file is called, without its ending."""
    name = os.path.basename(path)
    stem = name[: -len(ENDING)] if name.lower().endswith(ENDING) else None
    stem = os.path.splitext(name)[0] if stem is None else stem
    return "robot" if stem in {"", WORLD} else stem
