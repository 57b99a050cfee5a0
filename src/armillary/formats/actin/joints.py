"""Joints: a component by its registered name, with the primary frame beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from armillary.errors import quote, suggestion
from armillary.formats.actin.components import Component, row_for, row_width
from armillary.formats.actin.names import PRIMARY, actin_tag, is_loose, local
from armillary.formats.actin.opaque import (
    LIBRARY,
    opaque_element,
    read_opaque,
)
from armillary.formats.actin.values import (
    built,
    exact_attribute,
    exactly,
    number,
    number_element,
    pose_elements,
    read_pose,
    value_text,
)
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.numbers import number_text
from armillary.formats.records import PRECURSOR
from armillary.formats.xml import Element, report_unused, tag, unused
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS
from armillary.model.joints import Fixed
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.spatial.pose import IDENTITY, Pose

WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "none": None}
ABSENT: Final = object()
"""Stands for a parameter that is missing or faulty; None is a value."""
FIXED: Final = Fixed()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKinematics:
    """The joint of a link, as a component gives it.

    Attributes:
        joint: The joint.
        primary: The link's primary frame in the joint's outer frame.
        library: The plug-in that the file names, empty without one.
        rate: The change of our coordinate for one of the file's.
    """

    joint: Joint = FIXED
    primary: Pose = IDENTITY
    library: str = ""
    rate: float = 1.0


@dataclass(frozen=True, slots=True)
class JointReader:
    """Reads components by the rows of a table."""

    rows: tuple[Component, ...]
    report: Report

    def rows_of(self, element: Element) -> list[Component]:
        """Return the rows of an element, by its name and namespace.

        The name alone decides for elements of old files, which are in no namespace or
        in another one of Actin's.
        """
        named = [row for row in self.rows if local(row.element) == element.name]
        matching = [row for row in named if row.is_in(element.namespace)]
        if not matching and is_loose(element.namespace):
            matching = named
        return [row for row in matching if row.element == matching[0].element]

    def of_link(self, link: Element) -> LinkKinematics:
        """Return the kinematics of a link, those of a fixed joint if there are none."""
        holder = link.only_child("linkKinematicsContainer", self.report)
        if holder is None:
            return LinkKinematics()
        if len(holder.children) != 1:
            message = f"{holder.label} holds one component, not {len(holder.children)}"
            self.report.error(holder.place, "wrong-count", message)
            return LinkKinematics()
        (component,) = holder.children
        holder.children_named(component.name)
        return self.read(component) or LinkKinematics()

    def read(self, element: Element) -> LinkKinematics | None:
        """Return the kinematics that a component gives; None after an error in it.

        A component that is not in the table is kept as it is, but cannot move.
        """
        report = self.report
        rows = self.rows_of(element)
        if not rows:
            return self._opaque(element)
        library = element.attribute(LIBRARY) or ""
        primary = read_pose(element.only_child(PRIMARY, report), report)
        row = self._chosen(element, rows)
        if row is None:
            return None
        precursor = element.only_child(local(row.precursor), report)
        fields: dict[str, Any] = {PRECURSOR: read_pose(precursor, report)}
        fields.update(row.constants)
        for name, field in row.parameters:
            value = self._value(element, local(name), row, field)
            if value is not ABSENT:
                fields[field] = value
        for name in map(local, row.unused):
            if number(element, name, report):
                message = f"<{name}> has no meaning in this type of joint"
                report.warning(element.place, "unused-parameter", message)
        for name in map(local, row.zeros):
            if number(element, name, report):
                message = f"<{name}> of {element.label} must be 0; others are not read"
                report.error(element.place, "unread-parameter", message)
        self._refuse_unknown(element)
        joint = built(row.kind, fields, element, "bad-joint", report)
        if joint is None:
            return None
        if library == row.kind.library:  # which is written again because of the class
            library = ""
        return LinkKinematics(
            joint=joint, primary=primary, library=library, rate=row.rate(joint)
        )

    def _refuse_unknown(self, component: Element) -> None:
        """Report what is not a parameter: it may be one whose name is misspelled."""
        view = self.report.guessing("it is left out")
        waiting = [component]
        while waiting:
            element = waiting.pop()
            for leftover in unused(element):
                name = leftover.name
                if leftover.kind == "text" or "}" in name:
                    continue
                view.error(
                    leftover.place,
                    f"unknown-{leftover.kind}",
                    f"the {leftover.kind} {quote(name)} of {element.label} is not one "
                    "of this joint",
                    hint=self.report.hint(name, element.asked(leftover.kind)),
                )
                if leftover.kind == "element":
                    element.children_named(name)
                else:
                    element.attribute(name)
            waiting += [child for child in element.children if child.is_read]

    def _opaque(self, element: Element) -> LinkKinematics:
        """Return the kinematics of an unknown component, of which all is kept."""
        library = element.attributes.get(LIBRARY, "")
        joint = read_opaque(element, library, self.report)
        frames = [child for child in element.children if child.name == PRIMARY]
        primary = read_pose(frames[0] if frames else None, self.report)
        for frame in frames:
            report_unused(frame, self.report)
        return LinkKinematics(joint=joint, primary=primary, library=library)

    def _chosen(self, element: Element, rows: list[Component]) -> Component | None:
        """Return the row with the words of an element; None after an error."""
        for k, (name, _) in enumerate(rows[0].choices):
            known = dict.fromkeys(word for row in rows for word in row.choices[k][1])
            said = self._choice(element, local(name), list(known))
            if said is None:
                return None
            rows = [row for row in rows if said in row.choices[k][1]]
        return rows[0]

    def _choice(self, parent: Element, name: str, known: list[str]) -> str | None:
        """Return the known word in a child, the first without a child."""
        child = parent.only_child(name, self.report)
        if child is None:
            message = f"{parent.label} has no <{name}>; it is taken as {known[0]}"
            self.report.warning(parent.place, "missing-element", message)
            return known[0]
        word = child.read_text()
        if word.upper() in known:
            return word.upper()
        message = f"no <{name}> is called {quote(word)}"
        hint = suggestion(word, known) or f"Known are {', '.join(known)}."
        self.report.error(child.place, "unknown-choice", message, hint=hint)
        return None

    def _value(self, parent: Element, name: str, row: Component, field: str) -> Any:
        """Return a parameter, `ABSENT` without one and after an error in it."""
        is_reciprocal = field == row.reciprocal
        child = parent.only_child(name, self.report)
        if child is None:
            return ABSENT
        if child.children:
            return self._joints(child)
        word = child.read_text().lower()
        if word in WORDS and not is_reciprocal:
            return WORDS[word]
        count = 1 if is_reciprocal else None
        numbers = child.text_numbers(count, self.report)
        if numbers is None:
            return ABSENT
        if is_reciprocal:
            return self._reciprocal(child, numbers[0])
        if not numbers:
            self.report.error(child.place, "no-number", f"{child.label} is empty")
        width = row_width(row.kind, field)
        if width is not None:
            return self._vectors(child, numbers, width)
        return numbers[0] if len(numbers) == 1 else numbers

    def _vectors(
        self, element: Element, numbers: tuple[float, ...], width: int
    ) -> tuple[tuple[float, ...], ...]:
        """Return numbers as vectors of one length."""
        if len(numbers) % width:
            message = f"{element.label} holds {len(numbers)} numbers, {width} a vector"
            self.report.error(element.place, "wrong-count", message)
        return tuple(numbers[k : k + width] for k in range(0, len(numbers), width))

    def _reciprocal(self, element: Element, said: float) -> Any:
        if said == 0.0 or abs(1.0 / said) == float("inf"):
            message = f"{element.label} must not be zero"
            self.report.error(element.place, "zero", message)
            return ABSENT
        return exactly(element, (1.0 / said,), self.report)[0]

    def _joints(self, element: Element) -> Any:
        """Return the joint in an element, or several; `ABSENT` after an error."""
        joints: list[Joint] = []
        for child in element.children:
            element.children_named(child.name)
            kinematics = self.read(child)
            if kinematics is None:
                return ABSENT
            if not kinematics.primary.is_identity:
                message = f"the primary frame of {child.label} in a joint is not kept"
                self.report.warning(child.place, "not-kept", message)
            joints.append(kinematics.joint)
        return joints[0] if len(joints) == 1 else tuple(joints)


def rate_of(joint: Joint) -> float:
    """Return the change of our coordinate for one of the file that is written."""
    row = row_for(joint)
    return 1.0 if row is None else row.rate(joint)


def writable(link: Link, manipulator: Manipulator, report: Report) -> Link:
    """Return a link whose joint can be written: fixed where it has no element."""
    joint = link.joint
    if isinstance(joint, OpaqueJoint) or row_for(joint) is not None:
        return link
    behind = {each.coordinate: each for each in manipulator.links}
    sources = [behind[name] for name in link.inputs] or [link]
    q = [min(max(0.0, each.limits.lower), each.limits.upper) for each in sources]
    message = (
        f"joint {quote(link.coordinate)} is of type {type(joint).__name__}, which "
        f"has no element; it is fixed at q = {', '.join(f'{each:g}' for each in q)}"
    )
    report.warning(NOWHERE, "lost-joint", message)
    fixed = Fixed(precursor=joint.precursor @ joint.motion.pose(*q))
    return link.replace(joint=fixed, inputs=(), dynamics=NO_DYNAMICS)


def component_element(link: Link, library: str, report: Report) -> Element | None:
    """Return the component of a link, None for a base at its own primary frame."""
    joint = link.joint
    if link.parent is None and joint == FIXED and link.primary.is_identity:
        return None
    made = _written(joint, link.primary, library, report)
    if made is not None and made.name.startswith("am:") and link.parent is not None:
        message = f"joint {quote(link.coordinate)} is written as <{made.name}>"
        hint = "Actin has no element for it."
        report.note(NOWHERE, "not-of-actin", message, hint=hint)
    return made


def _written(
    joint: Joint, primary: Pose | None, library: str, report: Report
) -> Element | None:
    """Return the component of a joint; inside another joint it has no primary frame."""
    if isinstance(joint, OpaqueJoint):
        return opaque_element(joint, primary, library, report)
    row = row_for(joint)
    assert row is not None
    has_precursor = not joint.precursor.is_identity
    children = [
        tag(name, text=words[-1] if has_precursor else words[0])
        for name, words in row.choices
    ]
    if has_precursor:
        children.append(tag(row.precursor, {}, *pose_elements(joint.precursor)))
    for name, field in row.parameters:
        value = getattr(joint, field)
        if field == row.reciprocal:
            said = 1.0 / value
            exact = exact_attribute((value,), (1.0 / said,))
            children.append(tag(name, exact, text=number_text(said)))
        elif not row.is_omitted(joint, field):
            children.append(_parameter(name, value, report))
    if primary is not None and not (row.is_ours and primary.is_identity):
        children.append(actin_tag(PRIMARY, {}, *pose_elements(primary)))
    attributes = {LIBRARY: library or type(joint).library or None}
    if row.namespace:
        attributes["xmlns:own"] = row.namespace
    return tag(row.element, attributes, *children)


def _parameter(name: str, value: Any, report: Report) -> Element:
    items = cast(tuple[Any, ...], value if isinstance(value, tuple) else (value,))
    if isinstance(items[0], Joint):
        made = [_written(joint, None, "", report) for joint in items]
        return tag(name, {}, *(each for each in made if each is not None))
    if value is None or isinstance(value, (bool, tuple)):
        return tag(name, text=value_text(value))
    return number_element(name, value)
