"""Links: limits, mass properties, named frames, shapes, and what Actin does not know.

The last is in our own namespace and units: for a screw in radians, not in metres.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

from armillary.errors import quote
from armillary.formats.actin.joints import (
    JointReader,
    LinkKinematics,
    component_element,
    rate_of,
)
from armillary.formats.actin.names import actin_tag
from armillary.formats.actin.shapes import read_shapes, shape_elements
from armillary.formats.actin.values import (
    built,
    exact_attribute,
    exactly,
    flag,
    number,
    number_element,
    pose_elements,
    read_pose,
    text,
    text_element,
)
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.inertia import possible_inertia
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.spatial.inertia import SpatialInertia

FIRST: Final = ("momentX", "momentY", "momentZ")
SECOND: Final = ("jXX", "jYY", "jZZ", "jXY", "jXZ", "jYZ")
COUPLING: Final = ("multiplier", "multiplier", 1.0), ("offset", "shift", 1.0)


def read_link(
    element: Element, name: str, parent: str | None, joints: JointReader
) -> tuple[Link, LinkKinematics]:
    """Return a link and what its component gives."""
    report = joints.report
    kinematics = joints.of_link(element)
    limits, dynamics = _read_actuator(element, kinematics.rate, report)
    fields: dict[str, Any] = {
        "name": name,
        "parent": parent,
        "joint": kinematics.joint,
        "primary": kinematics.primary,
        "limits": limits,
        "dynamics": dynamics,
        "inertia": _read_inertia(element, report),
        "frames": _read_frames(element, report),
        "joint_name": text(element, "jointName", report),
        "passive": flag(element, "passive", report),
        "coupling": _read_coupling(element, report),
        "inputs": tuple(i.read_text() for i in element.children_named("input")),
        **read_shapes(element, report),
    }
    link = built(Link, fields, element, "bad-link", report)
    if link is None:
        return Link(name=name, parent=parent), kinematics
    if dynamics != NO_DYNAMICS and not link.has_coordinate:
        what = "the drive of a joint without a coordinate"
        report.unsupported.add(what, element.place)
        link = link.replace(dynamics=NO_DYNAMICS)
    return link, kinematics


def link_elements(link: Link, library: str, report: Report) -> list[Element]:
    """Return the parts of a link but its children.

    Raises:
        FormatError: A number is not finite.
    """
    component = component_element(link, library, report)
    elements = [text_element("identifier", link.name, report)]
    if component is not None:
        elements.append(actin_tag("linkKinematicsContainer", {}, component))
    elif library:
        message = f"the library of link {quote(link.name)} is not kept"
        report.warning(NOWHERE, "not-kept", message)
    elements += _actuator_elements(link, report)
    if link.inertia is not None:
        elements.append(_inertia_element(link.inertia))
    if link.frames:
        frames = (_frame_element(frame, report) for frame in link.frames)
        elements.append(actin_tag("namedFrames", {}, *frames))
    elements += shape_elements(link, report)
    if link.joint_name:
        elements.append(text_element("jointName", link.joint_name, report))
    if link.passive:
        elements.append(actin_tag("passive"))
    if link.coupling is not None:
        elements.append(_coupling_element(link.coupling, report))
    elements += [text_element("input", name, report) for name in link.inputs]
    return elements


Rows: TypeAlias = tuple[tuple[str, str, float], ...]
"""Fields, their elements, and the factors from the file's numbers to ours."""


def _limits(rate: float) -> Rows:
    """Return the rows of `Limits`.

    rate: The change of our coordinate for one of the file's.
    """
    # With q = rate s of the file's s, speeds scale by |rate|, and efforts, whose power
    # stays the same, by 1 / |rate|. A negative rate swaps the ends.
    size = abs(rate)
    lower, upper = ("lower", "upper") if rate >= 0.0 else ("upper", "lower")
    return (
        (lower, "lowerLimit", rate),
        (upper, "upperLimit", rate),
        ("velocity", "maxOutputRate", size),
        ("acceleration", "maxAcceleration", size),
        ("effort", "maxEffort", 1.0 / size),
    )


def _dynamics(rate: float) -> Rows:
    """Return the rows of `JointDynamics`; `rate` is as for `_limits`."""
    size = abs(rate)
    return (
        ("motor_inertia", "motorInertia", 1.0),
        ("gear_ratio", "gearRatio", 1.0 / rate),
        ("damping", "viscousFriction", 1.0 / size / size),
        ("friction", "coulombFriction", 1.0 / size),
        ("stiffness", "springStiffness", 1.0 / size / size),
        ("rest", "springRest", rate),
    )


def _read_actuator(
    link: Element, rate: float, report: Report
) -> tuple[Limits, JointDynamics]:
    holder = link.only_child("jointActuatorContainer", report) or link
    actuator = holder.only_child("jointActuator", report)
    if actuator is None:
        return UNLIMITED, NO_DYNAMICS
    fields = _read_rows(actuator, _limits(rate), report)
    limits = built(Limits, fields, actuator, "bad-limits", report)
    fields = _read_rows(actuator, _dynamics(rate), report)
    dynamics = built(JointDynamics, fields, actuator, "bad-jointdynamics", report)
    return limits or UNLIMITED, dynamics or NO_DYNAMICS


def _read_rows(parent: Element, rows: Rows, report: Report) -> dict[str, float]:
    """Return the numbers in children, by the fields of their rows."""
    fields: dict[str, float] = {}
    for field, name, factor in rows:
        value = number(parent, name, report, factor)
        if value is not None:
            fields[field] = value
    return fields


def _actuator_elements(link: Link, report: Report) -> list[Element]:
    rate = rate_of(link.joint)
    children: list[Element] = []
    for held, default, rows in (
        (link.limits, UNLIMITED, _limits(rate)),
        (link.dynamics, NO_DYNAMICS, _dynamics(rate)),
    ):
        for field, name, factor in rows:
            value: float = getattr(held, field)
            if value == getattr(default, field):
                continue
            if not (0.0 < abs(factor) < math.inf and math.isfinite(value / factor)):
                where = f"{quote(field)} of joint {quote(link.coordinate)}"
                report.warning(NOWHERE, "lost-limit", f"limit {where} is lost")
                continue
            children.append(number_element(name, value, factor))
    if not children:
        return []
    actuator = actin_tag("jointActuator", {}, *children)
    return [actin_tag("jointActuatorContainer", {}, actuator)]


def _read_inertia(link: Element, report: Report) -> SpatialInertia | None:
    """Return the mass properties of a link.

    The second moment is the sum of x x, y y, ... over the mass, about the primary
    frame's origin: it is not the rotational inertia.
    """
    outer = link.only_child("massProperties", report)
    if outer is None:
        return None
    element = outer.only_child("rigidBodyMassProperties", report) or outer
    first = element.only_child("firstMoment", report)
    second = element.only_child("secondMoment", report)
    inertia = SpatialInertia.from_second_moment(
        number(element, "mass", report) or 0.0,
        _read_numbers(first, FIRST, report),
        _read_numbers(second, SECOND, report),
    )
    if second is not None:
        a, b, c, d, e, f, g, h, i = exactly(second, _nine(inertia), report)
        rotational = (a, b, c), (d, e, f), (g, h, i)
        inertia = SpatialInertia(inertia.mass, inertia.first_moment, rotational)
    return possible_inertia(inertia, element.place, "the link", report)


def _read_numbers(
    parent: Element | None, names: tuple[str, ...], report: Report
) -> list[float]:
    """Return the numbers in children, 0 for missing ones."""
    if parent is None:
        return [0.0] * len(names)
    return [number(parent, name, report) or 0.0 for name in names]


def _inertia_element(inertia: SpatialInertia) -> Element:
    # With the second moments E[x x] = Exx, ... the rotational inertia has Ixx = Eyy +
    # Ezz and Ixy = -Exy, so Exx = (Ixx + Iyy + Izz) / 2 - Ixx.
    nine = _nine(inertia)
    xx, yy, zz = (0.5 * sum(nine[::4]) - moment for moment in nine[::4])
    second = (xx, yy, zz, 0.0 - nine[1], 0.0 - nine[2], 0.0 - nine[5])
    said = SpatialInertia.from_second_moment(inertia.mass, inertia.first_moment, second)
    exact = exact_attribute(nine, _nine(said))
    return actin_tag(
        "massProperties",
        {},
        number_element("mass", float(inertia.mass)),
        actin_tag("firstMoment", {}, *_elements(FIRST, inertia.first_moment)),
        actin_tag("secondMoment", exact, *_elements(SECOND, second)),
    )


def _elements(names: tuple[str, ...], values: tuple[float, ...]) -> list[Element]:
    return [number_element(n, float(v)) for n, v in zip(names, values, strict=True)]


def _nine(inertia: SpatialInertia) -> tuple[float, ...]:
    return tuple(float(value) + 0.0 for row in inertia.rotational for value in row)


def _read_frames(link: Element, report: Report) -> tuple[Frame, ...]:
    holder = link.only_child("namedFrames", report)
    elements = () if holder is None else holder.children_named("namedFrame")
    return tuple(_read_frame(element, report) for element in elements)


def _read_frame(element: Element, report: Report) -> Frame:
    name = text(element, "identifier", report)
    if not name:
        report.error(element.place, "no-name", "a named frame has no name")
    is_end_effector = flag(element, "endEffector", report)
    return Frame(
        name=name, pose=read_pose(element, report), end_effector=is_end_effector
    )


def _frame_element(frame: Frame, report: Report) -> Element:
    name = text_element("identifier", frame.name, report)
    flag = [actin_tag("endEffector")] if frame.end_effector else []
    return actin_tag("namedFrame", {}, name, *pose_elements(frame.pose), *flag)


def _read_coupling(link: Element, report: Report) -> Coupling | None:
    element = link.only_child("coupling", report)
    if element is None or element.required_child("of", report) is None:
        return None
    fields = {
        "of": text(element, "of", report),
        **_read_rows(element, COUPLING, report),
    }
    return built(Coupling, fields, element, "bad-coupling", report)


def _coupling_element(coupling: Coupling, report: Report) -> Element:
    of = text_element("of", coupling.of, report)
    numbers = (number_element(n, getattr(coupling, f)) for f, n, _ in COUPLING)
    return actin_tag("coupling", {}, of, *numbers)
