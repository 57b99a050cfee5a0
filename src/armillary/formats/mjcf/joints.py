"""Joints of bodies: what they are, and the links that they become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import (
    NUMBER,
    SIZE,
    ElementTable,
    Kind,
    Row,
    choice,
    numbers,
    one_of,
)
from armillary.formats.mjcf.bodies import PlacedElement
from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.numbers import has_direction
from armillary.formats.several_joints import BALL, SplitJoint
from armillary.formats.xml import Element
from armillary.model.axis import Z
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, Vector3, add, apply, negate, scale, vector

__all__ = ["JOINT", "BodyJoint", "read_joint", "steps_of"]

HINGE, SLIDE, FREE, BALL_JOINT = "hinge", "slide", "free", "ball"
SWITCH: Final = choice({"auto": None, "false": False, "true": True})


def _first(element: Element, key: str, report: Report, default: Any) -> Any:
    """Return the first of the coefficients of a polynomial; others are not kept."""
    values = element.numbers(key, None, report)
    if not values:
        return default
    if any(values[1:]):
        what = f"{quote(key)} of a joint that is a polynomial"
        report.unsupported.add(what, element.place)
    return values[0]


_COEFFICIENT: Final = Kind(_first)

JOINT: Final = ElementTable[Report](
    "joint",
    Row("type", one_of(HINGE, SLIDE, FREE, BALL_JOINT), default=HINGE),
    Row("pos", numbers(3), default=ZERO),
    Row("axis", numbers(3), default=Z, always=True),
    Row("ref", NUMBER, default=0.0),
    Row("limited", SWITCH, default=None),
    Row("range", numbers(2), default=None),
    Row("actuatorfrclimited", SWITCH, default=None),
    Row("actuatorfrcrange", numbers(2), default=None),
    Row("stiffness", _COEFFICIENT, default=0.0),
    Row("springref", NUMBER, "rest", default=0.0),
    Row("armature", SIZE, default=0.0),
    Row("damping", _COEFFICIENT, default=0.0),
    Row("frictionloss", SIZE, "friction", default=0.0),
)
"""What of a joint is read and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyJoint:
    """A joint as the file gives it, in the frame of its body.

    Attributes:
        element: For its place and attributes.
        name: In the file; empty where it has none.
        type: `hinge`, `slide`, `ball` or `free`.
        axis: Of any length but 0.
        pos: A point of the axis [m].
        ref: The coordinate at which the body is where the file has it [m or rad].
        limits: Of the coordinate.
        dynamics: About the coordinate.
    """

    element: Element
    name: str
    type: str
    axis: Vector3 = Z
    pos: Vector3 = ZERO
    ref: float = 0.0
    limits: Limits = UNLIMITED
    dynamics: JointDynamics = NO_DYNAMICS

    @property
    def q_size(self) -> int:
        """Return how many numbers it has in the positions of MuJoCo."""
        return {FREE: 7, BALL_JOINT: 4}.get(self.type, 1)


def read_joint(placed: PlacedElement) -> BodyJoint:
    """Return what a `<joint>` or `<freejoint>` says, as much as can be understood."""
    element, document = placed.element, placed.document
    report = document.report
    name = element.attributes.get("name", "")
    if element.name == "freejoint":
        return BodyJoint(element=element, name=name, type=FREE)
    values = JOINT.read(element, report)
    type_ = values["type"] or HINGE
    if "springdamper" in element.attributes:
        report.unsupported.add("'springdamper' of a <joint>", element.place)
    if type_ == FREE:
        return BodyJoint(element=element, name=name, type=FREE)
    axis, pos = values["axis"] or Z, vector(values["pos"] or ZERO)
    if not has_direction(
        axis,
        f"the axis of {element.label}",
        element.place,
        report,
        codes=("zero-axis", "axis-length"),
    ):
        axis = Z
    if not placed.pose.is_identity:
        axis = apply(placed.pose.rotation, vector(axis))
        pos = add(apply(placed.pose.rotation, pos), placed.pose.position)
    turns = type_ != SLIDE
    angle = math.pi / 180.0 if turns and document.in_degrees else 1.0
    joint = BodyJoint(
        element=element, name=name, type=type_, axis=vector(axis), pos=pos
    )
    if type_ == BALL_JOINT:
        return _ball(joint, values, document)
    return BodyJoint(
        element=element,
        name=name,
        type=type_,
        axis=vector(axis),
        pos=pos,
        ref=(values["ref"] or 0.0) * angle,
        limits=_limits(element, values, angle, document),
        dynamics=_dynamics(element, values, angle, report),
    )


def _ball(
    joint: BodyJoint, values: dict[str, Any], document: MjcfDocument
) -> BodyJoint:
    report, element = document.report, joint.element
    if _is_limited(element, "range", "limited", values, document):
        report.unsupported.add("'range' of a ball joint", element.place)
    if values["stiffness"]:
        report.unsupported.add("'stiffness' of a ball joint", element.place)
    for key in ("armature", "damping", "friction"):
        if values[key]:
            report.unsupported.add(f"{quote(key)} of a ball joint", element.place)
    return joint


def _is_limited(
    element: Element,
    range_: str,
    limited: str,
    values: dict[str, Any],
    document: MjcfDocument,
) -> bool:
    """Return whether a range counts, as MuJoCo decides."""
    ends, given = values[range_], values[limited]
    if given is not None:
        return bool(given)
    if ends is None or range_ not in element.attributes:
        return False
    if not document.settings["autolimits"]:
        document.report.tolerating("it has no effect").error(
            element.place,
            "unused-limit",
            f"{element.label} has {quote(range_)} but not {quote(limited)}, though "
            "'autolimits' of the compiler is false",
        )
        return False
    return ends != (0.0, 0.0)


def _limits(
    element: Element, values: dict[str, Any], angle: float, document: MjcfDocument
) -> Limits:
    report = document.report
    unlimited = report.tolerating("taken as unlimited")
    lower, upper = -INFINITE, INFINITE
    if _is_limited(element, "range", "limited", values, document):
        ends = values["range"]
        if ends is None:
            message = f"{element.label} is limited but has no range"
            unlimited.error(element.place, "missing-limit", message)
        elif ends[0] >= ends[1]:
            message = f"the range of {element.label} is {ends[0]:g} to {ends[1]:g}"
            _report_swapped(
                element, message, report, as_mujoco=values["limited"] is None
            )
            if ends[0] > ends[1] and report.swapped_limits == "swap":
                lower, upper = ends[1] * angle, ends[0] * angle
        else:
            lower, upper = ends[0] * angle, ends[1] * angle
    effort = INFINITE
    key = "actuatorfrcrange"
    if _is_limited(element, key, "actuatorfrclimited", values, document):
        ends = values[key]
        if ends is None or ends[0] >= ends[1]:
            message = f"{element.label} has no valid {quote(key)}"
            unlimited.error(element.place, "bad-limit", message)
        else:
            effort = max(abs(ends[0]), abs(ends[1]))
            if ends[0] != -ends[1]:
                report.unsupported.add(
                    f"{quote(key)} with ends that differ; the greater one is kept",
                    element.place,
                )
    if (lower, upper, effort) == (-INFINITE, INFINITE, INFINITE):
        return UNLIMITED
    return Limits(lower=lower, upper=upper, effort=effort)


def _report_swapped(
    element: Element, message: str, report: Report, *, as_mujoco: bool
) -> None:
    if report.swapped_limits == "swap":
        report.warning(element.place, "swapped-limits", f"{message}; they are swapped")
        return
    if report.swapped_limits == "unlimited":
        report.warning(
            element.place, "swapped-limits", f"{message}; it is taken as unlimited"
        )
        return
    # MuJoCo refuses such a range only where the joint says that it is limited.
    view = report.tolerating if as_mujoco else report.guessing
    view("it is taken as unlimited").error(
        element.place, "swapped-limits", message, hint="Write the lower end first."
    )


def _dynamics(
    element: Element, values: dict[str, Any], angle: float, report: Report
) -> JointDynamics:
    """Return armature, damping, friction and spring, none below 0."""
    found: dict[str, float] = {}
    for field, key in (
        ("motor_inertia", "armature"),
        ("damping", "damping"),
        ("friction", "friction"),
        ("stiffness", "stiffness"),
    ):
        value = values[key] or 0.0
        if value < 0.0:
            what = f"{element.label} has {quote(key)} below 0"
            report.tolerating("it is left out").error(
                element.place, "negative-damping", what
            )
            value = 0.0
        if value:
            found[field] = value
    if "stiffness" in found:
        found["rest"] = (values["rest"] or 0.0) * angle
    elif values["rest"]:
        report.note(
            element.place,
            "unused-parameter",
            f"'springref' of {element.label} has no effect without 'stiffness'",
        )
    return JointDynamics(**found) if found else NO_DYNAMICS


def steps_of(
    joints: Sequence[tuple[BodyJoint, str]], X_PB: Pose
) -> tuple[list[SplitJoint], Pose]:
    """Return the joints between a body and its parent, one behind the other.

    In MuJoCo each joint of a body moves it about an axis through `pos`, after those
    before it; at `ref` the body is where the file has it. A joint's frame has its
    origin at `pos`, so that the next one begins with the way back from there.

    joints: Each with the name of its coordinate.
    X_PB: The pose of the body in its parent.

    Returns the joints, and the pose of the body in the outer frame of the last one.
    """
    back = X_PB
    if any(joint.ref for joint, _ in joints):
        joints, back = _at_zero(joints, X_PB)
    steps: list[SplitJoint] = []
    # The pose of the body in the outer frame of the last joint is `back`.
    for joint, name in joints:
        if joint.type == SLIDE:
            motion: Joint = Prismatic(axis=joint.axis, precursor=back)
            steps.append(_step(joint, name, motion))
            back = IDENTITY
            continue
        before = back @ Pose.translation(*joint.pos) if any(joint.pos) else back
        back = Pose.translation(*(x + 0.0 for x in negate(joint.pos)))
        if joint.type == BALL_JOINT:
            for number, (end, each) in enumerate(BALL.items()):
                placed = each.replace(precursor=before) if number == 0 else each
                steps.append(SplitJoint(name=f"{name}_{end}", joint=placed))
            continue
        steps.append(_step(joint, name, Revolute(axis=joint.axis, precursor=before)))
    return steps, back


def _at_zero(
    joints: Sequence[tuple[BodyJoint, str]], X_PB: Pose
) -> tuple[list[tuple[BodyJoint, str]], Pose]:
    """Return joints, and the pose of their body, with all coordinates at 0 as `ref`."""
    placed: list[Pose] = []  # of each joint in the parent
    pose = X_PB
    for joint, _ in joints:
        at = pose @ Pose.translation(*joint.pos)
        placed.append(at)
        if joint.type == SLIDE:
            axis = Prismatic(axis=joint.axis).axis
            pose = pose @ Pose.translation(*scale(-joint.ref, axis))
        elif joint.ref:
            back = Pose.translation(*negate(joint.pos))
            pose = at @ Pose.rotation_about(joint.axis, -joint.ref) @ back
    X_BP = pose.inverse()
    moved: list[tuple[BodyJoint, str]] = []
    for (joint, name), at in zip(joints, placed, strict=True):
        X_BF = X_BP @ at
        axis = apply(X_BF.rotation, joint.axis)
        made = replace(joint, axis=axis, pos=X_BF.position, ref=0.0)
        moved.append((made, name))
    return moved, pose


def _step(joint: BodyJoint, name: str, motion: Joint) -> SplitJoint:
    return SplitJoint(
        name=name, joint=motion, limits=joint.limits, dynamics=joint.dynamics
    )
