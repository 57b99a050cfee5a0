"""`<joint>`: how a link moves on another, and how far and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import SWAPPED_LIMITS, Place, Report, Severity
from armillary.formats.numbers import has_direction
from armillary.formats.urdf.elements import read_pose
from armillary.formats.xml import Element
from armillary.model.axis import Axis, X
from armillary.model.coupling import Coupling
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.spatial.pose import Pose

__all__ = ["DAMPED", "FREE", "SEVERAL", "SINGLE", "JointElement", "read_joint"]

DAMPED: Final = ("damping", "friction")
"""Attributes of `<dynamics>`, and fields of `JointDynamics`."""

FREE: Final = ("floating", "planar")
SEVERAL: Final = (*FREE, "spherical")  # the last is PyBullet's
LIMITED: Final = ("revolute", "prismatic")
SINGLE: Final = (*LIMITED, "continuous")
TYPES: Final = ("revolute", "continuous", "prismatic", "fixed", *SEVERAL)

ENDS: Final = ("lower", "upper")
NEEDED: Final = ("effort", "velocity")
GREATEST: Final = ("velocity", "effort", "acceleration")
INFINITIES: Final = ("inf", "infinity")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointElement:
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
        places: Locations of the joint, its parent, child, mimic and limit.
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
    places: dict[str, Place]

    @property
    def place(self) -> Place:
        """Return the location of the joint."""
        return self.places["joint"]


def read_joint(element: Element, report: Report) -> JointElement:
    """Return what a `<joint>` says, as much of it as can be understood."""
    name = element.required_attribute("name", report)
    if name == "":
        report.error(element.place, "empty-name", "a <joint> has an empty name")
    type_ = _type(element, report)
    places = {child.name: child.place for child in element.children}
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
        places={**places, "joint": element.place},
    )


def _type(joint: Element, report: Report) -> str:
    type_ = joint.required_attribute("type", report)
    if type_ is None or type_ in TYPES:
        return type_ or ""
    likely = type_.strip().lower()
    if likely in TYPES:
        report.tolerating(f"it is read as {likely}").error(
            joint.place, "spelling", f"{joint.label} has the type {quote(type_)}"
        )
        return likely
    guess = report.hint(type_, TYPES)
    known = f"Known types: {', '.join(TYPES)}."
    report.error(
        joint.place,
        "unknown-joint-type",
        f"{joint.label} has the type {quote(type_)}, which URDF does not have",
        hint=f"{guess} {known}".strip(),
    )
    return ""


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
    xyz = element.numbers("xyz", 3, report, required=True)
    if not has_axis:
        return X
    if xyz is None:
        return X
    x, y, z = xyz
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
    of = element.required_attribute("joint", report)
    multiplier = element.number("multiplier", report, default=1.0)
    offset = element.number("offset", report, default=0.0)
    if type_ in SEVERAL:
        report.guessing("it moves by itself").error(
            element.place,
            "free-mimic",
            f"{joint.label} is {type_}: it has no single coordinate that could follow",
        )
        return None
    return None if of is None else Coupling(of=of, multiplier=multiplier, offset=offset)


def _dynamics(joint: Element, type_: str, report: Report) -> JointDynamics:
    """Return damping and friction, which only joints with one coordinate have."""
    element = joint.first_child("dynamics", report)
    if element is None:
        return NO_DYNAMICS
    tolerant = report.tolerating("it is left out")
    found = element.each_number(DAMPED, tolerant, default=0.0)
    if found is None:
        return NO_DYNAMICS
    fields = dict(zip(DAMPED, found, strict=True))
    for name, value in fields.items():
        if value < 0.0:
            what = f"<dynamics> of {joint.label} has a negative {name}"
            tolerant.error(element.place, "negative-damping", what)
            return NO_DYNAMICS
    if type_ in SINGLE:
        return JointDynamics(**fields)
    if type_ in SEVERAL and any(found):
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
    what = f"<limit> of {joint.label}"
    unlimited = report.tolerating("taken as unlimited")
    greatest = {name: _greatest(element, name, what, unlimited) for name in GREATEST}
    lower, upper = -INFINITE, INFINITE
    if type_ == "continuous":
        _report_unused_range(element, what, report)
    else:
        lower, upper = _range(element, what, report)
    missing = [name for name in NEEDED if name not in element.attributes]
    if missing:
        report.note(
            element.place,
            "missing-limit",
            f"{what} has no {' and no '.join(missing)}; taken as unlimited",
        )
    return Limits(lower=lower, upper=upper, **greatest)


def _greatest(element: Element, name: str, what: str, report: Report) -> float:
    """Return the greatest velocity, effort or acceleration; infinite without one."""
    value = element.number(name, report)
    if value is None:
        return INFINITE
    if value < 0.0:
        report.tolerating("its magnitude is taken").error(
            element.place, "negative-limit", f"{what} has a negative {name}"
        )
    return abs(value)


def _report_unused_range(element: Element, what: str, report: Report) -> None:
    """Note that a joint that turns without end has a range."""
    no_effect = report.tolerating("it has no effect", Severity.NOTE)
    ends = element.each_number(ENDS, no_effect, default=0.0)
    if ends is not None and ends[0] != ends[1]:
        report.note(
            element.place,
            "unused-limit",
            f"{what} has lower and upper, which have no effect on a continuous joint",
            hint="Make it revolute if they should have one.",
        )


def _range(element: Element, what: str, report: Report) -> tuple[float, float]:
    """Return the least and the greatest coordinate."""
    lower = _end(element, "lower", -INFINITE, report)
    upper = _end(element, "upper", INFINITE, report)
    if lower > upper:
        both = all(end in element.attributes for end in ENDS)
        chosen = report.swapped_limits
        view = report.guessing(SWAPPED_LIMITS["swap"])
        if chosen:
            view = report.tolerating(SWAPPED_LIMITS[chosen])
        hint = "Swap them if that is meant." if both else ""
        if chosen != "unlimited":
            meant = "Some simulators read them as no limits: swapped_limits='unlimited'"
            hint = f"{hint} {meant}.".lstrip()
        view.error(
            element.place,
            "swapped-limits",
            f"{what} has lower {lower:g} above upper {upper:g}",
            hint=hint,
        )
        return (-INFINITE, INFINITE) if chosen == "unlimited" else (upper, lower)
    if not any(end in element.attributes for end in ENDS):
        report.warning(
            element.place,
            "no-range",
            f"{what} has neither lower nor upper; both are 0 then, and the joint "
            "cannot move",
        )
    return lower, upper


def _end(element: Element, name: str, infinite: float, report: Report) -> float:
    """Return one end of the range, which is 0 by default."""
    text = element.attribute(name)
    if text is None:
        return 0.0
    if text.strip().lower().lstrip("+-") in INFINITIES:
        sign = -1.0 if text.strip().startswith("-") else 1.0
        if sign == math.copysign(1.0, infinite):
            report = report.tolerating("it is taken as unlimited")
    report = report.guessing("it is taken as unlimited")
    return element.number(name, report, default=infinite)
