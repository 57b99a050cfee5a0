"""`<joint>`: how a link moves on another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.names import Guesses
from armillary.formats.unsupported import Unsupported
from armillary.formats.urdf.limits import read_limits
from armillary.formats.urdf.origin import LEAST_LENGTH, LENGTH_TOLERANCE, read_pose
from armillary.formats.xml import Element, report_unused
from armillary.model.axis import Axis, X
from armillary.model.coupling import Coupling
from armillary.model.limits import INFINITE, Limits
from armillary.spatial.pose import Pose

__all__ = ["DYNAMICS", "FREE", "SEVERAL", "Hinge", "read_hinge"]

DYNAMICS: Final = "urdf.dynamics"
"""Of the link behind a joint: damping [N m s or N s/m] and friction [N m or N]."""

# What simulators and drivers add to joints.
FOREIGN: Final = ("calibration", "safety_controller", "joint_properties")
FREE: Final = ("floating", "planar")
SEVERAL: Final = (*FREE, "spherical")  # the last is PyBullet's
SINGLE: Final = ("revolute", "continuous", "prismatic")
TYPES: Final = (*SINGLE, "fixed", *SEVERAL)


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
        dynamics: Damping [N m s or N s/m] and friction [N m or N]; empty if zero.
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
    dynamics: tuple[float, ...]
    places: dict[str, Place]

    @property
    def place(self) -> Place:
        """Return where the joint begins."""
        return self.places["joint"]

    def moving_itself(self) -> Hinge:
        """Return the joint without what it follows."""
        return replace(self, mimic=None)

    def without_range(self) -> Hinge:
        """Return the joint without lower and upper limits."""
        limits = msgspec.structs.replace(self.limits, lower=-INFINITE, upper=INFINITE)
        return replace(self, limits=limits)


def read_hinge(
    joint: Element, unsupported: Unsupported, guesses: Guesses, report: Report
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
        limits=read_limits(joint, type_, unsupported, report),
        mimic=_mimic(joint, type_, report),
        dynamics=_dynamics(joint, unsupported, report),
        places={
            "joint": joint.place,
            **{part.name: part.place for part in joint.children},
        },
    )
    unsupported.add_children(joint, FOREIGN)
    unsupported.add_prefixed(joint)
    report_unused(joint, report)
    return hinge


def _type(joint: Element, guesses: Guesses, report: Report) -> str:
    type_ = joint.required_attribute("type", report)
    if type_ is None or type_ in TYPES:
        return type_ or ""
    likely = type_.strip().lower()
    if likely in TYPES:
        report.tolerating(f"it is read as {likely}").error(
            joint.place, "spelling", f"{joint.label} has the type {quote(type_)}"
        )
        return likely
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
    element = joint.first_child(end, report, required=True)
    if element is None:
        return ""
    name = element.required_attribute("link", report)
    report_unused(element, report)
    if name == "":
        report.error(element.place, "empty-name", f"<{end}> of {joint.label} is empty")
    return name or ""


def _axis(joint: Element, type_: str, report: Report) -> Axis:
    """Return the axis as given; only of joints that have one must it have a length."""
    element = joint.first_child("axis", report)
    if element is None:
        return X
    has_axis = not type_ or type_ in (*SINGLE, "planar")
    if not has_axis:
        report = report.tolerating("a joint of this type has no axis", Severity.NOTE)
    xyz = element.numbers("xyz", 3, report, required=True)
    if not has_axis:
        return X
    report_unused(element, report)
    if xyz is None:
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
        report.note(
            element.place,
            "axis-length",
            f"the axis ({_listed(xyz)}) of {joint.label} has length {length:.6g}; "
            "normalised",
        )
    return xyz[0], xyz[1], xyz[2]


def _listed(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


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
    report_unused(element, report)
    if type_ in SEVERAL:
        report.guessing("it moves by itself").error(
            element.place,
            "free-mimic",
            f"{joint.label} is {type_}: it has no single coordinate that could follow",
        )
        return None
    return None if of is None else Coupling(of=of, multiplier=multiplier, offset=offset)


def _dynamics(
    joint: Element, unsupported: Unsupported, report: Report
) -> tuple[float, ...]:
    """Return damping and friction, nothing where neither is given or both are zero."""
    element = joint.first_child("dynamics", report)
    if element is None:
        return ()
    report = report.tolerating("it is left out")
    damping, friction = (
        element.number(name, report, default=0.0) for name in ("damping", "friction")
    )
    for name in element.attributes.keys() - {"damping", "friction"}:
        unsupported.add(
            f"attribute {quote(name)} of <dynamics>", element.place, Severity.NOTE
        )
    return (damping, friction) if damping or friction else ()
