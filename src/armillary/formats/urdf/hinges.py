"""`<joint>`: how a link moves on another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.unkept import Guesses, Unkept, report_leftovers
from armillary.formats.urdf.origin import LEAST_LENGTH, LENGTH_TOLERANCE, read_pose
from armillary.formats.xml import Element
from armillary.model.axis import Axis, X
from armillary.model.coupling import Coupling
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.spatial.pose import Pose

__all__ = ["FREE", "Hinge", "read_hinge"]

FREE: Final = ("floating", "planar")
LIMITED: Final = ("revolute", "prismatic")
SINGLE: Final = ("revolute", "continuous", "prismatic")
TYPES: Final = (*SINGLE, "fixed", *FREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge:
    """A joint as the file gives it; texts are empty after an error in them.

    Attributes:
        name: Of the joint.
        type: One of `TYPES`, or empty.
        parent: Name of the link that carries.
        child: Name of the link that is carried.
        origin: Pose of the joint in the parent, and of the child at coordinate 0.
        axis: In the joint's frame, of any length but 0.
        limits: Of the coordinate.
        mimic: What it follows.
        places: Where the joint, its parent, child, mimic and limit stand.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Pose
    axis: Axis
    limits: Limits
    mimic: Coupling | None
    places: dict[str, Place]

    @property
    def place(self) -> Place:
        """Return where the joint begins."""
        return self.places["joint"]

    def without_range(self) -> Hinge:
        """Return the joint without lower and upper limits."""
        limits = msgspec.structs.replace(self.limits, lower=-INFINITE, upper=INFINITE)
        return replace(self, limits=limits)


def read_hinge(
    joint: Element, unkept: Unkept, guesses: Guesses, report: Report
) -> Hinge:
    """Return what a `<joint>` says, as much of it as can be understood."""
    name = joint.required_attribute("name", report)
    if name == "":
        report.error(joint.place, "empty-name", "a <joint> has an empty name")
    type_ = _type(joint, guesses, report)
    parent = _link(joint, "parent", report)
    child = _link(joint, "child", report)
    hinge = Hinge(
        name=name or "",
        type=type_,
        parent=parent,
        child=child,
        origin=read_pose(joint, report),
        axis=_axis(joint, type_, report),
        limits=_limits(joint, type_, unkept, report),
        mimic=_mimic(joint, type_, report),
        places={
            "joint": joint.place,
            **{part.name: part.place for part in joint.children},
        },
    )
    _count_dynamics(joint, unkept, report)
    unkept.add_children(joint, ("calibration", "safety_controller"))
    report_leftovers(joint, report)
    return hinge


def _type(joint: Element, guesses: Guesses, report: Report) -> str:
    type_ = joint.required_attribute("type", report)
    if type_ is None or type_ in TYPES:
        return type_ or ""
    guess = guesses.hint(type_, TYPES)
    known = f"Known types: {', '.join(TYPES)}."
    report.error(
        joint.place,
        "unknown-joint-type",
        f"{joint.label} has the type {quote(type_)}, which URDF does not have",
        hint=f"{guess} {known}".strip(),
    )
    return ""


def _link(joint: Element, end: str, report: Report) -> str:
    element = joint.required_child(end, report)
    if element is None:
        return ""
    name = element.required_attribute("link", report)
    report_leftovers(element, report)
    if name == "":
        report.error(element.place, "empty-name", f"<{end}> of {joint.label} is empty")
    return name or ""


def _axis(joint: Element, type_: str, report: Report) -> Axis:
    """Return the axis as given; only of joints that have one must it have a length."""
    element = joint.only_child("axis", report)
    if element is None:
        return X
    xyz = element.numbers("xyz", 3, report, required=True)
    report_leftovers(element, report)
    if xyz is None or type_ not in (*SINGLE, "planar"):
        return X
    length = math.hypot(*xyz)
    if not LEAST_LENGTH <= length < math.inf:
        report.error(
            element.place,
            "zero-axis",
            f"the axis of {joint.label} is ({_listed(xyz)}), which has no direction",
        )
        return X
    if abs(length - 1.0) > LENGTH_TOLERANCE:
        report.warning(
            element.place,
            "axis-length",
            f"the axis ({_listed(xyz)}) of {joint.label} has length {length:.6g}; "
            "normalised",
        )
    return xyz[0], xyz[1], xyz[2]


def _listed(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _limits(joint: Element, type_: str, unkept: Unkept, report: Report) -> Limits:
    element = joint.only_child("limit", report)
    if element is None:
        if type_ in LIMITED:
            report.error(
                joint.place,
                "missing-limit",
                f"{joint.label} has no <limit>, which a {type_} joint needs",
                hint="A joint that turns without end is of type continuous."
                if type_ == "revolute"
                else "",
            )
        return UNLIMITED
    lower, upper = (element.number(end, report) for end in ("lower", "upper"))
    most = {
        name: element.number(name, report)
        for name in ("velocity", "effort", "acceleration")
    }
    for name in ("deceleration", "jerk"):
        if element.number(name, report) is not None:
            unkept.add(f"attribute {quote(name)} of <limit>", element.place)
    report_leftovers(element, report)
    if type_ not in SINGLE:
        if type_ in FREE:
            unkept.add(f"<limit> of a {type_} joint", element.place)
        return UNLIMITED
    _judge_limits(joint, element, type_, (lower, upper), most, report)
    if type_ == "continuous":
        lower, upper = -INFINITE, INFINITE
    lower, upper = lower or 0.0, upper or 0.0
    greatest = {name: INFINITE if m is None else abs(m) for name, m in most.items()}
    return Limits(lower=min(lower, upper), upper=max(lower, upper), **greatest)


def _judge_limits(
    joint: Element,
    element: Element,
    type_: str,
    ends: tuple[float | None, float | None],
    most: dict[str, float | None],
    report: Report,
) -> None:
    """Report limits that are swapped, negative, missing, or of no effect."""
    lower, upper = ends
    what = f"<limit> of {joint.label}"
    negative = [name for name, value in most.items() if value and value < 0.0]
    if negative:
        report.error(
            element.place, "negative-limit", f"{what} has a negative {negative[0]}"
        )
    missing = [name for name in ("effort", "velocity") if most[name] is None]
    wrong = any(name in element.attributes for name in missing)
    if missing and not wrong:
        report.warning(
            element.place,
            "missing-limit",
            f"{what} has no {' and no '.join(missing)}; taken as unlimited",
        )
    if type_ == "continuous":
        if (lower or 0.0) != (upper or 0.0):
            report.warning(
                element.place,
                "unused-limit",
                f"{what} has lower and upper, which count for nothing at a joint that "
                "is continuous",
                hint="Make it revolute if they shall count.",
            )
    elif (lower or 0.0) > (upper or 0.0):
        report.error(
            element.place,
            "swapped-limits",
            f"{what} has lower {lower or 0.0:g} above upper {upper or 0.0:g}",
            hint="Swap them." if lower is not None and upper is not None else "",
        )
    elif not any(name in element.attributes for name in ("lower", "upper")):
        report.warning(
            element.place,
            "no-range",
            f"{what} has neither lower nor upper; both are 0 then, and the joint "
            "cannot move",
        )


def _mimic(joint: Element, type_: str, report: Report) -> Coupling | None:
    element = joint.only_child("mimic", report)
    if element is None:
        return None
    of = element.required_attribute("joint", report)
    multiplier = element.number("multiplier", report, default=1.0)
    offset = element.number("offset", report, default=0.0)
    report_leftovers(element, report)
    if type_ == "fixed":
        report.warning(
            element.place,
            "fixed-mimic",
            f"{joint.label} is fixed, so its <mimic> has no effect",
        )
        return None
    if type_ in FREE:
        report.error(
            element.place,
            "free-mimic",
            f"{joint.label} is {type_}: it has no single coordinate that could follow",
        )
        return None
    return None if of is None else Coupling(of=of, multiplier=multiplier, offset=offset)


def _count_dynamics(joint: Element, unkept: Unkept, report: Report) -> None:
    """Count damping, friction and the like; where all is zero, nothing is lost."""
    element = joint.only_child("dynamics", report)
    if element is None:
        return
    found = [element.number(name, report) for name in ("damping", "friction")]
    if any(found) or element.attributes.keys() - {"damping", "friction"}:
        unkept.add("<dynamics>", element.place)
