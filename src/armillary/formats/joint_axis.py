"""The line that a joint turns about or slides along, for all joints that have one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from armillary.errors import JointError
from armillary.formats.features import ALL, OWN_JOINTS, Held
from armillary.model.joint import Joint
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.manipulator import Manipulator
from armillary.model.mechanism import Mechanism
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Vector3, cross, dot, norm, scale, snap
from armillary.trace import Instruction, trace

__all__ = ["HELD_BY_LINES", "JointAxis", "joint_axis_of", "lost_joints"]

HELD_BY_LINES: Final[Held] = {
    "Revolute": ALL,
    "Prismatic": ALL,
    "PaulRevolute": "as revolute",
    "PaulPrismatic": "as prismatic",
    "CraigRevolute": "as revolute",
    "CraigPrismatic": "as prismatic",
    "CircleTrack": "as revolute",
    OWN_JOINTS: "those about or along a line",
}
"""The joints of a format that has those about and along lines, see `joint_axis_of`."""

TOLERANCE: Final = 1e-12
SAMPLES: Final = (-2.5, -1.0, 0.3, 1.7, 2.9)

_Part = tuple[float, float, float, float]
"""a + b q + c cos q + d sin q."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAxis:
    """A joint as before, a motion by q along or about `axis`, then after.

    Attributes:
        slides: Whether it slides, rather than turns.
        axis: Of length 1, in the frame between.
        before: Pose of that frame in the joint's inner frame.
        after: Pose of the joint's outer frame in that frame once it has moved.
    """

    slides: bool
    axis: Vector3
    before: Pose
    after: Pose = IDENTITY


def joint_axis_of(joint: Joint) -> JointAxis | None:
    """Return the axis of a joint that turns or slides by q itself, None for others.

    The pose's formula must consist of 1, q, cos q and sin q with constant factors; then
    it equals a rotation or translation everywhere if it does at five values of q. A
    screw, a track or a joint with a gear has no such axis.
    """
    if type(joint) in {Revolute, Prismatic}:
        assert isinstance(joint, (Revolute, Prismatic))
        slides = type(joint) is Prismatic
        return JointAxis(slides=slides, axis=joint.axis, before=joint.precursor)
    try:
        if isinstance(joint, Mechanism) or not _is_plain(joint):
            return None
        axis = _about_origin(joint)
        return axis if axis is not None and _is_same(axis, joint) else None
    except JointError:
        return None


def lost_joints(
    m: Manipulator, *, other: Collection[type[Joint]] = ()
) -> dict[str, float]:
    """Return joints that have no axis and those that follow one, and where they are.

    A format that only has joints with an axis writes them as fixed there: those without
    a leader at 0, their followers where that takes them [m or rad].

    Args:
        m: The manipulator.
        other: Types of joints without an axis that the format has.
    """
    by_name = {link.coordinate: link for link in m.links if link.moves}
    kept = {
        name
        for name, link in by_name.items()
        if type(link.joint) in other or joint_axis_of(link.joint) is not None
    }
    lost: dict[str, float] = {}
    for name, link in by_name.items():
        chain = [link]
        while (coupling := chain[-1].coupling) is not None:
            chain.append(by_name[coupling.of])
        if not kept.issuperset(each.coordinate for each in chain):
            q = 0.0
            for each in reversed(chain):
                if each.coupling is not None:
                    q = each.coupling.multiplier * q + each.coupling.offset
            lost[name] = q
    return lost


def _about_origin(joint: Joint) -> JointAxis | None:
    """Return the axis of the twist that the joint has at q = 0.

    With w the axis and v the velocity of M's origin, the line passes through w x v.
    """
    x, y, z, *spin = map(snap, joint.motion.subspace(0.0))
    v, w = (x, y, z), (spin[0], spin[1], spin[2])
    start = joint.transform(0.0)
    turning, sliding = float(norm(w)), float(norm(v))
    if turning < TOLERANCE and abs(sliding - 1.0) < TOLERANCE:
        return JointAxis(slides=True, axis=scale(1.0 / sliding, v), before=start)
    if abs(turning - 1.0) > TOLERANCE or abs(dot(v, w)) > TOLERANCE * (1.0 + sliding):
        return None
    axis = scale(1.0 / turning, w)
    p = cross(w, v)
    if norm(p) < TOLERANCE:
        return JointAxis(slides=False, axis=axis, before=start)
    return JointAxis(
        slides=False,
        axis=axis,
        before=start @ Pose.translation(*p),
        after=Pose.translation(0.0 - p[0], 0.0 - p[1], 0.0 - p[2]),
    )


def _is_same(axis: JointAxis, joint: Joint) -> bool:
    kind = Prismatic if axis.slides else Revolute
    plain = kind(axis=axis.axis, precursor=axis.before)
    size = 1.0 + float(norm(joint.transform(0.0).position))
    return all(
        (plain.transform(q) @ axis.after).approx_equal(
            joint.transform(q), TOLERANCE * (size + abs(q))
        )
        for q in SAMPLES
    )


def _is_plain(joint: Joint) -> bool:
    """Return whether every entry of the pose is a part in the sense of `_Part`."""

    def entries(q: Any) -> tuple[Any, ...]:
        return joint.motion.pose(q).entries

    program = trace(entries, name="pose", q=())
    parts: list[_Part | None] = []
    for step in program.instructions:
        arguments = [parts[k] for k in step.args]
        parts.append(None if None in arguments else _part(step, arguments))
    return all(parts[k] is not None for k in program.results)


def _part(step: Instruction, arguments: Sequence[_Part | None]) -> _Part | None:
    """Return what a step computes, None if that is not a part."""
    # Evaluate one operation on expressions in the span of 1, q, cos q and sin q.
    known = [part for part in arguments if part is not None]
    result: _Part | None = None
    match step.name, known:
        case "const", _:
            result = step.value, 0.0, 0.0, 0.0
        case "input", _:
            result = 0.0, 1.0, 0.0, 0.0
        case "add", [a, b]:
            result = _sum(a, b)
        case "sub", [a, b]:
            result = _sum(a, _scaled(b, -1.0))
        case "neg", [a]:
            result = _scaled(a, -1.0)
        case "mul", [a, b] if _is_constant(a):
            result = _scaled(b, a[0])
        case "mul", [a, b] if _is_constant(b):
            result = _scaled(a, b[0])
        case "div", [a, b] if _is_constant(b) and b[0] != 0.0:
            result = _scaled(a, 1.0 / b[0])
        case (("sin" | "cos"), [a]) if a[2:] == (0.0, 0.0) and a[1] in {1.0, -1.0}:
            # sin(a + q) = sin a cos q + cos a sin q, and so on.
            s, c = math.sin(a[0]), math.cos(a[0])
            sine, cosine = (0.0, 0.0, s, a[1] * c), (0.0, 0.0, c, -a[1] * s)
            result = sine if step.name == "sin" else cosine
        case _:
            pass
    return result


def _sum(a: _Part, b: _Part) -> _Part:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


def _scaled(a: _Part, factor: float) -> _Part:
    return factor * a[0], factor * a[1], factor * a[2], factor * a[3]


def _is_constant(part: _Part) -> bool:
    return part[1:] == (0.0, 0.0, 0.0)
