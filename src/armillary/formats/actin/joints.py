"""Joints in files: a component by its registered name, the primary frame beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.components import Component, Parameter, row_for
from armillary.formats.actin.exact import exact_attribute, exactly
from armillary.formats.actin.names import local
from armillary.formats.actin.opaque import opaque_element, read_opaque
from armillary.formats.actin.transforms import pose_element, read_child_pose
from armillary.formats.actin.values import choice, number, number_element
from armillary.formats.diagnostic import Place, Report
from armillary.formats.numbers import number_text
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.joint import Joint
from armillary.model.joints import Fixed
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["Carrier", "component_element", "is_component", "read_component"]

TRUTH: Final = {"true": True, "false": False}
PRIMARY: Final = "mn:primaryFrame"
FIXED: Final = Fixed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """What a component says of a link.

    Attributes:
        joint: How the link moves.
        primary: Its primary frame in the joint's outer frame.
        library: The plug-in that the file names, empty without one.
        rate: The change of our coordinate for one of the file's.
    """

    joint: Joint = FIXED
    primary: Pose = IDENTITY
    library: str = ""
    rate: float = 1.0


def is_component(element: Element, rows: tuple[Component, ...]) -> bool:
    """Return whether an element is called like a row of the table."""
    return any(local(row.element) == element.name for row in rows)


def read_component(
    element: Element, rows: tuple[Component, ...], report: Report
) -> Carrier | None:
    """Return what a component says; None where it is faulty, which is reported.

    One of a name that is not in the table is kept as it is, but cannot move.
    """
    library = element.attribute("library") or ""
    candidates = tuple(row for row in rows if local(row.element) == element.name)
    if not candidates:
        joint, primary = read_opaque(element, library, report)
        return Carrier(joint=joint, primary=primary, library=library)
    row = _chosen(element, candidates, report)
    if row is None:
        return None
    found: dict[str, Any] = {
        "precursor": read_child_pose(element, local(row.precursor), report)
    }
    for parameter in row.parameters:
        value = _value(element, parameter, rows, report)
        if value is not None:
            found[parameter.field] = value
    _tell_unused(element, row, report)
    primary = read_child_pose(element, local(PRIMARY), report)
    report_unused(element, report)
    try:
        make: Any = row.kind
        joint: Joint = make(**found)
        rate = row.coordinate_rate(joint)
    except (ArmillaryError, TypeError) as error:
        message = f"{element.label}: {str(error).removesuffix('.')}"
        report.error(element.place, "bad-joint", message)
        return None
    if library == row.kind.library:  # which is written again because of the class
        library = ""
    return Carrier(joint=joint, primary=primary, library=library, rate=rate)


def _chosen(
    element: Element, rows: tuple[Component, ...], report: Report
) -> Component | None:
    """Return the row whose words an element says."""
    left = rows
    for k, (name, _) in enumerate(rows[0].choices):
        known = tuple(dict.fromkeys(word for row in rows for word in row.choices[k][1]))
        said = choice(element, local(name), known, report)
        left = tuple(row for row in left if said in row.choices[k][1])
    return left[0] if left else None


def _value(
    element: Element,
    parameter: Parameter,
    rows: tuple[Component, ...],
    report: Report,
) -> Any:
    """Return a parameter, None where there is none or it is faulty."""
    name = local(parameter.element)
    if parameter.is_reciprocal:
        return _reciprocal(element, name, report)
    child = element.only_child(name, report)
    if child is None:
        return None
    if child.children:
        return _joints(child, rows, report)
    truth = TRUTH.get(child.text.strip().lower())
    if truth is not None:
        child.read_text()
        value: Any = truth
    else:
        numbers = child.text_numbers(None, report)
        if numbers is None:
            return None
        value = numbers[0] if len(numbers) == 1 else numbers
        if not numbers:
            report.error(child.place, "no-number", f"{child.label} is empty")
    report_unused(child, report)
    return value


def _joints(
    element: Element, rows: tuple[Component, ...], report: Report
) -> Joint | tuple[Joint, ...] | None:
    """Return the joint in an element, or several; None after an error."""
    found: list[Joint] = []
    for child in element.children:
        element.children_named(child.name)
        carrier = read_component(child, rows, report)
        if carrier is None:
            return None
        if not carrier.primary.is_identity:
            message = f"the primary frame of {child.label} is not kept inside a joint"
            report.warning(child.place, "not-kept", message)
        found.append(carrier.joint)
    report_unused(element, report)
    return found[0] if len(found) == 1 else tuple(found)


def _reciprocal(element: Element, name: str, report: Report) -> float | None:
    found = number(element, name, report)
    if found is None:
        return None
    said, child = found
    if said == 0.0 or abs(1.0 / said) == float("inf"):
        report.error(child.place, "zero", f"{child.label} must not be zero")
        return None
    (value,) = exactly(child, (1.0 / said,), report)
    report_unused(child, report)
    return value


def _tell_unused(element: Element, row: Component, report: Report) -> None:
    for name in row.unused:
        found = number(element, local(name), report)
        if found is not None and found[0] != 0.0:
            message = f"{found[1].label} counts for nothing in this type of joint"
            report.warning(found[1].place, "unused-parameter", message)


def component_element(
    link: Link, library: str, report: Report
) -> tuple[Element | None, float]:
    """Return the component of a link, and the change of our coordinate for one of it.

    None stands for what needs no component: a base at its own frame.
    """
    joint = link.joint
    if isinstance(joint, OpaqueJoint):
        return opaque_element(joint, link.primary, library, report), 1.0
    if link.parent is None and joint == FIXED and link.primary.is_identity:
        return None, 1.0
    row = row_for(joint)
    if row is None:
        limits = link.limits
        q = min(max(0.0, limits.lower), limits.upper)
        report.warning(
            Place(),
            "lost-joint",
            f"joint {quote(link.coordinate)} is of type {type(joint).__name__}, which "
            f"has no element; it is fixed at q = {q:g}",
        )
        joint = Fixed(precursor=joint.transform(q))
        row = row_for(joint)
        assert row is not None
    if row.element.startswith("am:") and link.parent is not None:
        message = f"joint {quote(link.coordinate)} is written as <{row.element}>"
        hint = "Actin has no element for it."
        report.note(Place(), "not-of-actin", message, hint=hint)
    return _written(row, joint, link.primary, library, report), row.coordinate_rate(
        joint
    )


def _written(
    row: Component, joint: Joint, primary: Pose | None, library: str, report: Report
) -> Element:
    """Return the component of a joint; inside another joint it has no primary frame."""
    has_precursor = not joint.precursor.is_identity
    children = [
        tag(name, text=words[-1] if has_precursor else words[0])
        for name, words in row.choices
    ]
    if has_precursor:
        children.append(pose_element(row.precursor, joint.precursor))
    is_own = row.element.startswith("am:")
    for parameter in row.parameters:
        if not row.is_omitted(joint, parameter.field):
            value = getattr(joint, parameter.field)
            children.append(_parameter(parameter, value, report))
    if primary is not None and not (is_own and primary.is_identity):
        children.append(pose_element(PRIMARY, primary))
    attributes = {"library": library or type(joint).library or None}
    if row.namespace:
        attributes["xmlns:own"] = row.namespace
    return tag(row.element, attributes, *children)


def _inner(joint: Joint, report: Report) -> Element:
    """Return the component of a joint inside another one, which can be written."""
    if isinstance(joint, OpaqueJoint):
        element = opaque_element(joint, None, "", report)
        assert element is not None
        return element
    row = row_for(joint)
    assert row is not None
    return _written(row, joint, None, "", report)


def _parameter(parameter: Parameter, value: Any, report: Report) -> Element:
    if isinstance(value, bool):
        return tag(parameter.element, text="true" if value else "false")
    items = cast(tuple[Any, ...], value if isinstance(value, tuple) else (value,))
    if isinstance(items[0], Joint):
        return tag(parameter.element, {}, *(_inner(each, report) for each in items))
    if isinstance(value, tuple):
        numbers = cast(tuple[float, ...], value)
        return tag(parameter.element, text=" ".join(map(number_text, numbers)))
    if not parameter.is_reciprocal:
        return number_element(parameter.element, value)
    said = 1.0 / value
    exact = exact_attribute((value,), (1.0 / said,))
    return tag(parameter.element, exact, text=number_text(said))
