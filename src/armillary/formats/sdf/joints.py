"""`<joint>`: types, axes, limits, and what follows what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from armillary.errors import ModelError
from armillary.formats.diagnostic import Place, Report
from armillary.formats.limit_range import in_order
from armillary.formats.numbers import has_direction
from armillary.formats.sdf.elements import ELEMENTS
from armillary.formats.sdf.files import Version
from armillary.formats.several_joints import BALL
from armillary.formats.type_names import known_type
from armillary.formats.xml import Element
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints.coordinate import LengthCoordinate
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.model.loops.loop import Closure
from armillary.spatial.vector import Vector3

__all__ = [
    "AXES",
    "COORDINATE",
    "GEARBOX",
    "SEVERAL",
    "AxisElement",
    "SdfJoint",
    "motions",
    "read_joint",
]

AXES: Final = ("axis", "axis2")
ONE: Final = ("revolute", "continuous", "prismatic", "screw")
TWO: Final = ("universal", "revolute2")
GEARBOX: Final = "gearbox"
SEVERAL: Final = (*TWO, "ball")
COORDINATE: Final = "coordinate"
"""The type of the slide of a rod that telescopes: its link moves nothing by itself."""
TYPES: Final = (*ONE, *SEVERAL, "fixed", GEARBOX)
TURN: Final = 2.0 * math.pi
LEADER_AXES: Final = {"axis": 0, "axis2": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisElement:
    """An axis of a joint as the file gives it.

    Attributes:
        xyz: Its direction, of any length but 0.
        expressed_in: The frame in whose axes it is; empty for that of the joint.
        limits: Of the coordinate.
        dynamics: Of the coordinate.
        mimic: What it follows: `of`, `axis`, `multiplier` and `offset`.
        at: Where the coordinate is in the file [m or rad].
        passive: Whether loops determine it.
        places: Locations of it and of its mimic.
    """

    xyz: Vector3 = (0.0, 0.0, 1.0)
    expressed_in: str = ""
    limits: Limits = UNLIMITED
    dynamics: JointDynamics = NO_DYNAMICS
    mimic: dict[str, Any] | None = None
    at: float = 0.0
    passive: bool = False
    places: dict[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfJoint:
    """A joint as the file gives it.

    Attributes:
        element: As it is.
        type: One of `TYPES`; empty after an error.
        parent: The frame that carries the other.
        child: The frame that is carried.
        axes: As many as the type has.
        pitch: Of a screw [m/rad].
        gear: Of a gearbox: ratio and reference body.
        held: The directions and turns in which its ends coincide, if it is a closure.
    """

    element: Element
    type: str
    parent: str
    child: str
    axes: Sequence[AxisElement] = ()
    pitch: float = 0.0
    gear: tuple[float, str] = (1.0, "")
    held: tuple[str, str] | None = None


def read_joint(element: Element, version: Version, report: Report) -> SdfJoint | None:
    """Return what a `<joint>` says, None after an error in its type or ends."""
    fields = ELEMENTS.read(element, report)
    type_ = known_type(fields["type"], TYPES, element, "SDF", report)
    parent, child = fields["parent"], fields["child"]
    for end in ("parent", "child"):
        if fields[end] == "":
            message = f"<{end}> of {element.label} is empty"
            report.error(element.place, "empty-name", message)
    if not (type_ and parent and child):
        return None
    count = {**dict.fromkeys(ONE, 1), **dict.fromkeys((*TWO, GEARBOX), 2)}
    axes = [
        _axis(element, name, type_, version, report)
        for name in AXES[: count.get(type_, 0)]
    ]
    motor = {k: fields[k] for k in ("motor_inertia", "gear_ratio")}
    if axes and motor != {"motor_inertia": 0.0, "gear_ratio": 1.0}:
        axes[0] = _with_motor(axes[0], motor, element, report)
    return SdfJoint(
        element=element,
        type=type_,
        parent=parent,
        child=child,
        axes=axes,
        pitch=_pitch(element, fields, report) if type_ == "screw" else 0.0,
        gear=(fields["gearbox_ratio"], fields["gearbox_reference_body"]),
        held=_held(element, fields, report),
    )


def _held(
    joint: Element, fields: dict[str, Any], report: Report
) -> tuple[str, str] | None:
    """Return in which directions and turns the ends of a joint coincide, if it says."""
    if fields["position"] is None:
        return None
    held = fields["position"], fields["rotation"] or ""
    try:
        Closure("a", "b", *held)
    except ModelError as error:
        message = f"{joint.label}: {str(error).removesuffix('.')}"
        view = report.tolerating("it is read as any other joint")
        view.error(joint.place, "bad-loop", message)
        return None
    return held


def _pitch(joint: Element, fields: dict[str, Any], report: Report) -> float:
    """Return the advance of a screw per angle [m/rad], right-handed above zero.

    `screw_thread_pitch` is metres per turn; the older `thread_pitch` radians per metre,
    with the sign of a left-handed thread.
    """
    if fields["screw_thread_pitch"] is not None:
        return fields["screw_thread_pitch"] / TURN
    per_metre = fields["thread_pitch"]
    if per_metre is None:
        message = f"{joint.label} has no <screw_thread_pitch>; it is 1 m per turn then"
        report.warning(joint.place, "missing-element", message)
        return 1.0 / TURN
    pitch = -1.0 / per_metre if per_metre else math.inf
    if math.isfinite(pitch):
        return pitch
    message = f"<thread_pitch> of {joint.label} is too near to zero"
    report.error(joint.place, "zero", message)
    return 0.0


def _axis(
    joint: Element, name: str, type_: str, version: Version, report: Report
) -> AxisElement:
    element = joint.first_child(name, report)
    if element is None:
        view = report.tolerating("it is along z")
        message = f"{joint.label} has no <{name}>"
        view.error(joint.place, "missing-element", message)
        return AxisElement(places={"axis": joint.place})
    what = f"<{name}> of {joint.label}"
    fields = ELEMENTS.read(element, report)
    in_model, at = fields["use_parent_model_frame"], fields["at"] or 0.0
    if version < (1, 5):
        in_model = True
    xyz, expressed_in = _direction(element, what, report)
    if in_model and version < (1, 7) and not expressed_in:
        expressed_in = "__model__"
    mimic, place = _mimic(element, report)
    return AxisElement(
        xyz=xyz,
        expressed_in=expressed_in,
        limits=_from(at, _limits(element, what, type_, report)),
        at=at,
        passive=bool(fields["passive"]),
        dynamics=_dynamics(element, what, at, report),
        mimic=mimic,
        places={"axis": element.place, "mimic": place},
    )


def _from(at: float, limits: Limits) -> Limits:
    """Return limits that count from where a coordinate is in the file."""
    if not at:
        return limits
    return msgspec.structs.replace(
        limits, lower=limits.lower + at, upper=limits.upper + at
    )


def _direction(axis: Element, what: str, report: Report) -> tuple[Vector3, str]:
    along_z = (0.0, 0.0, 1.0)
    element = axis.first_child("xyz", report)
    if element is None:
        return along_z, ""
    expressed_in = ELEMENTS.read(element, report)["expressed_in"]
    xyz = element.text_numbers(3, report)
    if xyz is None:
        return along_z, expressed_in
    x, y, z = xyz
    codes = "zero-axis", "axis-length"
    shown = f"({x:g}, {y:g}, {z:g}), {what},"
    if not has_direction(xyz, shown, element.place, report, codes=codes):
        return along_z, expressed_in
    return (x, y, z), expressed_in


def _limits(axis: Element, what: str, type_: str, report: Report) -> Limits:
    element = axis.first_child("limit", report)
    if element is None:
        return UNLIMITED
    fields = ELEMENTS.read(element, report)
    lower, upper = fields["lower"], fields["upper"]
    what = f"<limit> in {what}"
    if type_ == "continuous":
        if (lower, upper) != (-INFINITE, INFINITE):
            report.note(
                element.place,
                "unused-limit",
                f"{what} has lower and upper, which have no effect on a continuous "
                "joint",
                hint="Make it revolute if they should have one.",
            )
        lower, upper = -INFINITE, INFINITE
    elif lower > upper:
        lower, upper = in_order(lower, upper, what, element.place, report)
    # Below zero these mean that there is none.
    velocity, effort = (
        value if (value := fields[name]) >= 0.0 else INFINITE
        for name in ("velocity", "effort")
    )
    try:
        return Limits(lower=lower, upper=upper, velocity=velocity, effort=effort)
    except ModelError as error:
        message = f"{what}: {str(error).removesuffix('.')}"
        report.error(element.place, "bad-limit", message)
        return UNLIMITED


def _dynamics(axis: Element, what: str, at: float, report: Report) -> JointDynamics:
    element = axis.first_child("dynamics", report)
    if element is None:
        return NO_DYNAMICS
    tolerant = report.tolerating("it is left out")
    fields = {
        k: v for k, v in ELEMENTS.read(element, tolerant).items() if v is not None
    }
    if at and fields.get("stiffness"):
        fields["rest"] = fields.get("rest", 0.0) + at
    try:
        return JointDynamics(**fields)
    except ModelError as error:
        message = f"<dynamics> in {what}: {str(error).removesuffix('.')}"
        tolerant.error(element.place, "bad-jointdynamics", message)
        return NO_DYNAMICS


def _with_motor(
    axis: AxisElement, motor: dict[str, Any], joint: Element, report: Report
) -> AxisElement:
    given = {k: v for k, v in motor.items() if v is not None}
    try:
        dynamics = msgspec.structs.replace(axis.dynamics, **given)
    except ModelError as error:
        message = f"the motor of {joint.label}: {str(error).removesuffix('.')}"
        view = report.tolerating("it is left out")
        view.error(joint.place, "bad-jointdynamics", message)
        return axis
    return replace(axis, dynamics=dynamics)


def _mimic(axis: Element, report: Report) -> tuple[dict[str, Any] | None, Place]:
    """Return what an axis follows: q = multiplier (q_of - reference) + offset."""
    element = axis.first_child("mimic", report)
    if element is None:
        element = axis.first_child("drake:mimic", report)
    if element is None:
        return None, axis.place
    fields = ELEMENTS.read_whole(element, report)
    if fields is None:
        return None, element.place
    reference = fields.pop("reference", 0.0)
    offset = fields["offset"] - fields["multiplier"] * reference
    if not math.isfinite(offset):
        message = f"{element.label} has an offset that is too large for a double"
        report.error(element.place, "bad-number", message)
        return None, element.place
    return {"axis": "axis", **fields, "offset": offset}, element.place


def motions(joint: SdfJoint, axes: Sequence[Vector3]) -> list[tuple[str, Joint]]:
    """Return the joints that a joint is, with ends of their names.

    axes: Its axes in its own frame.
    """
    match joint.type:
        case "revolute" | "continuous":
            return [("", Revolute(axis=axes[0]))]
        case "prismatic":
            return [("", Prismatic(axis=axes[0]))]
        case "screw":
            return [("", Screw(pitch=joint.pitch, axis=axes[0]))]
        case "universal" | "revolute2":
            pairs = enumerate(axes, 1)
            return [(f"_{number}", Revolute(axis=axis)) for number, axis in pairs]
        case "coordinate":
            return [("", LengthCoordinate())]
        case "ball":
            return [(f"_{end}", turn) for end, turn in BALL.items()]
        case _:
            return []
