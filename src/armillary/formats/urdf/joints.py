"""`<joint>` and `<transmission>`: how a link moves on another, and its motor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.limit_range import in_order
from armillary.formats.numbers import (
    has_direction,
    is_unit,
    number_text,
    plain_number,
)
from armillary.formats.type_names import known_type
from armillary.formats.urdf.elements import ELEMENTS, read_pose
from armillary.formats.xml import Element, tag
from armillary.model.axis import Axis, X
from armillary.model.coupling import Coupling
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.spatial.pose import Pose

__all__ = [
    "DRAKE",
    "FREE",
    "MOTOR",
    "SEVERAL",
    "SINGLE",
    "JointElement",
    "read_joint",
    "transmission_element",
    "with_motors",
]


FREE: Final = ("floating", "planar")
SEVERAL: Final = (*FREE, "spherical")  # the last is PyBullet's
LIMITED: Final = ("revolute", "prismatic")
SINGLE: Final = (*LIMITED, "continuous")
TYPES: Final = ("revolute", "continuous", "prismatic", "fixed", *SEVERAL)

ENDS: Final = ("lower", "upper")
GREATEST: Final = tuple(f for f in ELEMENTS["limit"].fields if f not in ENDS)
NEEDED: Final = ("effort", "velocity")
INFINITIES: Final = ("inf", "infinity")


class JointElement(msgspec.Struct, frozen=True, kw_only=True):
    """A joint as the file gives it; texts are empty after an error in them.

    Attributes:
        name: Of the joint.
        type: One of `TYPES`, or empty.
        parent: Name of the link that carries the other.
        child: Name of the link that is carried.
        origin: Pose of the joint in the parent, and of the child at coordinate 0.
        axis: In the joint's frame, of any length but 0.
        limits: Of the coordinate.
        mimic: The joint that it follows, if any.
        dynamics: Damping and friction.
        element: What the file has of it.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Pose
    axis: Axis
    limits: Limits
    mimic: Coupling | None
    dynamics: JointDynamics
    element: Element

    @property
    def place(self) -> Place:
        """Return the location of the joint."""
        return self.element.place

    @property
    def places(self) -> dict[str, Place]:
        """Return the locations of its parent, child, mimic and limit, and its own."""
        places = {child.name: child.place for child in self.element.children}
        return {**places, "joint": self.place}


def read_joint(element: Element, report: Report) -> JointElement:
    """Return what a `<joint>` says, as much of it as can be understood."""
    name = element.required_attribute("name", report)
    if name == "":
        report.error(element.place, "empty-name", "a <joint> has an empty name")
    written = element.required_attribute("type", report)
    type_ = known_type(written, TYPES, element, "URDF", report)
    return JointElement(
        name=name or "",
        type=type_,
        parent=_link(element, "parent", report),
        child=_link(element, "child", report),
        origin=read_pose(element, report),
        axis=_axis(element, type_, report),
        limits=_limits(element, type_, report),
        mimic=_mimic(element, type_, report),
        dynamics=_dynamics(element, type_, report),
        element=element,
    )


def _link(joint: Element, end: str, report: Report) -> str:
    element = joint.first_child(end, report, required=True)
    if element is None:
        return ""
    name = element.required_attribute("link", report)
    if name == "":
        report.error(element.place, "empty-name", f"<{end}> of {joint.label} is empty")
    return name or ""


def _axis(joint: Element, type_: str, report: Report) -> Axis:
    """Return the axis as given; it needs a length only in joints that have an axis."""
    element = joint.first_child("axis", report)
    if element is None:
        return X
    has_axis = not type_ or type_ in (*SINGLE, "planar")
    if not has_axis:
        report = report.tolerating("a joint of this type has no axis", Severity.NOTE)
    xyz = ELEMENTS.read(element, report)["axis"]
    if not has_axis:
        return X
    if xyz is None:
        return X
    x, y, z = xyz
    if is_unit(xyz):
        return x, y, z
    what = f"the axis ({x:g}, {y:g}, {z:g}) of {joint.label}"
    codes = "zero-axis", "axis-length"
    if not has_direction(xyz, what, element.place, report, codes=codes):
        return X
    return x, y, z


def _mimic(joint: Element, type_: str, report: Report) -> Coupling | None:
    element = joint.first_child("mimic", report)
    if element is None:
        return None
    if type_ == "fixed":
        report.note(
            element.place,
            "fixed-mimic",
            f"{joint.label} is fixed, so its <mimic> has no effect",
        )
        return None
    fields = ELEMENTS.read_whole(element, report)
    if type_ in SEVERAL:
        report.guessing("it moves by itself").error(
            element.place,
            "free-mimic",
            f"{joint.label} is {type_}: it has no single coordinate that could follow",
        )
        return None
    return None if fields is None else Coupling(**fields)


def _dynamics(joint: Element, type_: str, report: Report) -> JointDynamics:
    """Return damping and friction, which only joints with one coordinate have."""
    element = joint.first_child("dynamics", report)
    if element is None:
        return NO_DYNAMICS
    tolerant = report.tolerating("it is left out")
    fields = ELEMENTS.read(element, tolerant)
    for name, value in fields.items():
        if value < 0.0:
            what = f"<dynamics> of {joint.label} has a negative {name}"
            tolerant.error(element.place, "negative-damping", what)
            return NO_DYNAMICS
    if type_ in SINGLE:
        return JointDynamics(**fields)
    if type_ in SEVERAL and any(fields.values()):
        report.unsupported.add(f"<dynamics> of a {type_} joint", element.place)
    return NO_DYNAMICS


def _limits(joint: Element, type_: str, report: Report) -> Limits:
    """Return the limits of a `<joint>`; unlimited without a `<limit>`."""
    element = joint.first_child("limit", report)
    if element is None:
        if type_ in LIMITED:
            report.tolerating("taken as unlimited").error(
                joint.place,
                "missing-limit",
                f"{joint.label} has no <limit>, which a {type_} joint needs",
                hint="A joint that turns without end has the type continuous."
                if type_ == "revolute"
                else "",
            )
        return UNLIMITED
    if type_ in SINGLE:
        return _limits_of_one(joint, element, type_, report)
    if type_ and type_ != "fixed":
        report.unsupported.add(f"<limit> of a {type_} joint", element.place)
    return UNLIMITED


def _limits_of_one(
    joint: Element, element: Element, type_: str, report: Report
) -> Limits:
    """Return the limits of a joint with one coordinate."""
    unlimited = report.tolerating("taken as unlimited")
    greatest = {name: _greatest(joint, element, name, unlimited) for name in GREATEST}
    lower, upper = -INFINITE, INFINITE
    if type_ == "continuous":
        _report_unused_range(joint, element, report)
    else:
        lower, upper = _range(joint, element, report)
    missing = [name for name in NEEDED if name not in element.attributes]
    if missing:
        report.note(
            element.place,
            "missing-limit",
            f"{_limit_of(joint)} has no {' and no '.join(missing)}; taken as unlimited",
        )
    return Limits(lower=lower, upper=upper, **greatest)


def _limit_of(joint: Element) -> str:
    return f"<limit> of {joint.label}"


def _greatest(joint: Element, element: Element, name: str, report: Report) -> float:
    """Return the greatest velocity, effort or acceleration; infinite without one."""
    value = element.number(name, report)
    if value is None:
        return INFINITE
    if value < 0.0:
        report.tolerating("its magnitude is taken").error(
            element.place,
            "negative-limit",
            f"{_limit_of(joint)} has a negative {name}",
        )
    return abs(value)


def _report_unused_range(joint: Element, element: Element, report: Report) -> None:
    """Note that a joint that turns without end has a range."""
    no_effect = report.tolerating("it has no effect", Severity.NOTE)
    ends = element.each_number(ENDS, no_effect, default=0.0)
    if ends is not None and ends[0] != ends[1]:
        report.note(
            element.place,
            "unused-limit",
            f"{_limit_of(joint)} has lower and upper, which have no effect on a "
            "continuous joint",
            hint="Make it revolute if they should have one.",
        )


def _range(joint: Element, element: Element, report: Report) -> tuple[float, float]:
    """Return the least and the greatest coordinate."""
    lower = _end(element, "lower", -INFINITE, report)
    upper = _end(element, "upper", INFINITE, report)
    if lower > upper:
        both = all(end in element.attributes for end in ENDS)
        what, place = _limit_of(joint), element.place
        return in_order(lower, upper, what, place, report, both_given=both)
    if not any(end in element.attributes for end in ENDS):
        report.warning(
            element.place,
            "no-range",
            f"{_limit_of(joint)} has neither lower nor upper; both are 0 then, and the "
            "joint cannot move",
        )
    return lower, upper


def _end(element: Element, name: str, infinite: float, report: Report) -> float:
    """Return one end of the range, which is 0 by default."""
    text = element.attribute(name)
    if text is None:
        return 0.0
    value = plain_number(text)
    if value is not None:
        return value
    if text.strip().lower().lstrip("+-") in INFINITIES:
        sign = -1.0 if text.strip().startswith("-") else 1.0
        if sign == math.copysign(1.0, infinite):
            report = report.tolerating("it is taken as unlimited")
    report = report.guessing("it is taken as unlimited")
    return element.number(name, report, default=infinite)


# Transmissions: the motor of a joint
#
# ROS has `<mechanicalReduction>` in an `<actuator>`, Drake `<drake:rotor_inertia>` and
# `<drake:gear_ratio>`; Drake reads its own alone.


OF_DRAKE: Final = ("drake:rotor_inertia", "drake:gear_ratio")
MOTOR: Final = tuple(field for name in OF_DRAKE for field in ELEMENTS[name].fields)
"""Fields of `JointDynamics`."""

DRAKE: Final = "http://drake.mit.edu"
SIMPLE: Final = "SimpleTransmission"
TYPE: Final = f"transmission_interface/{SIMPLE}"
REDUCTION: Final = "mechanicalReduction"


def with_motors(
    robot: Element, joints: Sequence[JointElement], report: Report
) -> list[JointElement]:
    """Return joints with the motors of `<transmission>`s; others are not kept.

    Kept are motors of transmissions of one joint and one actuator, where they say an
    inertia or a ratio and the joint has one coordinate.
    """
    places = {joint.name: k for k, joint in enumerate(joints)}
    changed = list(joints)
    named: set[str] = set()
    for element in robot.children_named("transmission"):
        motor = _motor(element)
        of = "" if motor is None else _joint_of(element)
        k = places.get(of)
        if motor is None or k is None or joints[k].type not in SINGLE:
            what = "<transmission>"
            report.unsupported.add(what, element.place, Severity.NOTE)
        elif of in named:
            report.tolerating("the first one counts").error(
                element.place,
                "repeated-element",
                f"joint {quote(of)} has more than one <transmission>",
            )
        else:
            named.add(of)
            dynamics = _with_motor(element, motor, changed[k].dynamics, report)
            changed[k] = replace(changed[k], dynamics=dynamics)
    return changed


def _motor(transmission: Element) -> Element | None:
    """Return the one actuator of a simple transmission, if it says of what kind."""
    counts = {"joint": 0, "actuator": 0}
    actuator, type_ = None, ""
    for child in transmission.children:
        if child.name == "type":
            type_ = child.text.strip()
        elif child.name in counts:
            counts[child.name] += 1
            actuator = child if child.name == "actuator" else actuator
    if actuator is None or set(counts.values()) != {1} or not type_.endswith(SIMPLE):
        return None
    names = {child.name for child in actuator.children}
    return actuator if not names.isdisjoint((*OF_DRAKE, REDUCTION)) else None


def _joint_of(transmission: Element) -> str:
    return next(
        child.attributes.get("name", "")
        for child in transmission.children
        if child.name == "joint"
    )


def _with_motor(
    transmission: Element, motor: Element, dynamics: JointDynamics, report: Report
) -> JointDynamics:
    """Return dynamics with the inertia and the ratio of an actuator."""
    tolerant = report.tolerating("it is left out")
    for element in (transmission, motor, *transmission.children_named("joint")):
        element.attribute("name")
    transmission.children_named("type", "actuator")
    values: dict[str, float | None] = {}
    for name in OF_DRAKE:
        child = motor.first_child(name, report)
        if child is not None:
            values |= ELEMENTS.read(child, tolerant)
    reduction = motor.first_child(REDUCTION, report)
    if reduction is not None:
        numbers = reduction.text_numbers(1, tolerant)
        values.setdefault("gear_ratio", numbers[0] if numbers else None)
    fields = {name: value for name, value in values.items() if value is not None}
    try:
        return msgspec.structs.replace(dynamics, **fields)
    except ModelError as error:
        message = f"{motor.label}: {str(error).removesuffix('.')}"
        tolerant.error(motor.place, "bad-jointdynamics", message)
        return dynamics


def transmission_element(joint: str, dynamics: JointDynamics) -> Element:
    """Return the transmission of a joint with a motor, for ROS and for Drake."""
    return ELEMENTS.write(
        "transmission",
        {"name": f"{joint}_transmission"},
        tag("type", text=TYPE),
        ELEMENTS.write("joint", name=joint),
        ELEMENTS.write(
            "actuator",
            {"name": f"{joint}_motor"},
            tag(REDUCTION, text=number_text(dynamics.gear_ratio)),
            *(ELEMENTS.write(name, dynamics) for name in OF_DRAKE),
        ),
    )
