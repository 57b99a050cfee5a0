"""Joints: Joint, DHJoint, Depend, their limits, and the joint positions of `Q`.

Limits and DH angles are in degrees, everything else in metres and radians.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Unsupported
from armillary.formats.robwork.frames import Depend, Node, Step
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.robwork.transform import (
    ANGLE_DIGITS,
    TRANSFORM,
    looks_like_radians,
    number_text,
)
from armillary.formats.xml import Element, tag
from armillary.model.axis import X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.posture import Posture
from armillary.model.unit import Unit
from armillary.spatial import dh
from armillary.spatial.pose import Pose

__all__ = [
    "HOME",
    "JOINT_TYPES",
    "LIMITS",
    "joint_steps",
    "limit_elements",
    "read_depend",
    "read_dh_joint",
    "read_limit",
    "read_postures",
    "read_state",
]

_TURN_X, _TURN_Y = Revolute(axis=X), Revolute(axis=Y)
_TURN_Z, _SLIDE_Z = Revolute(axis=Z), Prismatic(axis=Z)

JOINT_TYPES: Final[dict[str, tuple[tuple[str, Joint], ...]]] = {
    "Revolute": (("", _TURN_Z),),
    "Prismatic": (("", _SLIDE_Z),),
    "Universal": (("_x", _TURN_X), ("", _TURN_Y)),
    "Spherical": (("_x", _TURN_X), ("_y", _TURN_Y), ("", _TURN_Z)),
    "PrismaticUniversal": (("_x", _TURN_X), ("_y", _TURN_Y), ("", _SLIDE_Z)),
    "PrismaticSpherical": (
        ("_x", _TURN_X),
        ("_y", _TURN_Y),
        ("_z", _TURN_Z),
        ("", _SLIDE_Z),
    ),
}
"""The motions of each type of joint, the innermost first, with suffixes for names.

The frame with the name of the joint comes after the last motion.
"""


def joint_steps(kind: str, pose: Pose) -> tuple[Step, ...]:
    """Return the coordinates of a joint of a known type behind a constant pose."""
    return tuple(
        Step(suffix, motion if k else motion.prepend(pose))
        for k, (suffix, motion) in enumerate(JOINT_TYPES[kind])
    )


def read_state(element: Element, context: ReaderContext) -> bool:
    """Return whether a joint is passive."""
    states = ("Active", "Passive")
    return context.choice(element, "state", states, "Active") == "Passive"


def read_depend(element: Element, context: ReaderContext) -> Depend | None:
    """Return the joint that a joint depends on; gain and offset are in m and rad."""
    found = element.only_child("Depend", context.report)
    if found is None:
        return None
    on = found.required_attribute("on", context.report)
    gain = found.number("gain", context.report, required=True)
    offset = found.number("offset", context.report, required=True)
    context.close(found)
    if on is None or gain is None or offset is None:
        return None
    return Depend(on, gain, offset, found.place)


# DH joints

# The attribute that says which kind of joint it is; whether that is prismatic, and
# whether it is Hayati's form for nearly parallel axes (HGP).
_DH_FORMS: Final = {
    "d": (False, False),
    "theta": (True, False),
    "b": (False, True),
    "beta": (True, True),
}
_DH_ANGLES: Final = ("alpha", "theta", "beta")
_DH_TYPES: Final = ("craig", "schilling", "HGP")


def read_dh_joint(
    element: Element, context: ReaderContext
) -> tuple[str, tuple[Step, ...]] | None:
    """Return type and coordinate of a joint that is given by its parameters.

    Angles are in degrees, lengths in metres; the offset is one or the other.
    """
    given = [name for name in _DH_FORMS if element.attribute(name) is not None]
    if len(given) != 1:
        context.error(
            element.place,
            "bad-dh",
            f"{element.label} must have one of d, theta, b, beta; it has "
            f"{', '.join(given) or 'none'}",
            hint="d and b make it revolute, theta and beta prismatic.",
        )
        return None
    name = given[0]
    is_prismatic, is_parallel = _DH_FORMS[name]
    values: dict[str, float] = {}
    for key in ("alpha", "a", name, "offset"):
        value = element.number(key, context.report, required=True)
        if value is None:
            return None
        is_angle = key in _DH_ANGLES or (key == "offset" and not is_prismatic)
        values[key] = math.radians(value) if is_angle else value
    for unread in TRANSFORM:
        for child in element.children_named(unread):
            context.warning(
                child.place,
                "not-kept",
                f"<{unread}> of {element.label} has no effect: the parameters give the "
                "whole transform",
            )
    convention = _dh_convention(element, is_parallel, context)
    joint = _dh_joint(convention, is_prismatic, values)
    return ("Prismatic" if is_prismatic else "Revolute"), (Step("", joint),)


def _dh_convention(element: Element, is_parallel: bool, context: ReaderContext) -> str:
    """Return the convention of a DH joint: Craig's without a type, HGP by its form."""
    given = element.attribute("type") or "craig"
    shown = f"the type of {element.label} is {quote(given)}"
    if given not in _DH_TYPES:
        message = f"{shown}, which counts as 'craig', as in RobWork"
        hint = context.hint(given, _DH_TYPES)
        context.warning(element.place, "unknown-value", message, hint=hint)
    elif is_parallel != (given == "HGP"):
        has = "it has" if is_parallel else "it does not have"
        message = f"{shown}, but {has} b or beta, the parameters of 'HGP'"
        hint = f"It is read as {'HGP' if is_parallel else 'craig'}."
        context.warning(element.place, "dh-type", message, hint=hint)
    if is_parallel:
        return "HGP"
    return "schilling" if given == "schilling" else "craig"


def _dh_joint(convention: str, is_prismatic: bool, p: dict[str, float]) -> Joint:
    """Return the constant transform of a convention, then the motion.

    craig:     Tx(a) Rx(alpha) Tz(d) Rz(theta)
    schilling: Rz(theta) Tz(d) Tx(a) Rx(alpha)
    HGP:       Ty(b) Ry(beta) Tx(a) Rx(alpha)
    """
    alpha, a, offset = p["alpha"], p["a"], p["offset"]
    if convention == "HGP":
        beta, b = (p["beta"], offset) if is_prismatic else (offset, p["b"])
        pose = dh.parallel(alpha=alpha, a=a, beta=beta, b=b)
    else:
        theta, d = (p["theta"], offset) if is_prismatic else (offset, p["d"])
        if convention == "craig":
            kind = CraigPrismatic if is_prismatic else CraigRevolute
            return kind(alpha=alpha, a=a, theta=theta, d=d)
        pose = dh.paul(theta=theta, d=d, a=a, alpha=alpha)
    motion = _SLIDE_Z if is_prismatic else _TURN_Z
    return msgspec.structs.replace(motion, precursor=pose)


# Limits

LIMITS: Final = {
    "PosLimit": {"min": "lower", "max": "upper"},
    "VelLimit": {"max": "velocity"},
    "AccLimit": {"max": "acceleration"},
}
"""The elements, their attributes, and the fields of `Limits` that these give."""

# RobWork's own default, which it reads and writes for a joint without a limit.
LARGEST: Final = sys.float_info.max
UNLIMITED: Final = 1e300


def read_limit(element: Element, node: Node, context: ReaderContext) -> None:
    """Give a joint the limit of an element; the last one of its kind counts."""
    fields, name = LIMITS[element.name], quote(node.full_name)
    given = [element.number(key, context.report, required=True) for key in fields]
    element.attribute("refjoint")
    context.close(element)
    values = [value for value in given if value is not None]
    if len(values) < len(given):
        return
    if len(node.steps) != 1:
        kind = "has several coordinates" if node.is_joint else "is not a joint"
        message = f"{element.label} is about {name}, which {kind}"
        context.warning(element.place, "not-kept", message)
        return
    if values[-1] < (values[0] if len(values) > 1 else 0.0):
        message = f"{element.label} of {name} " + (
            f"goes from {values[0]:g} to {values[1]:g}"
            if len(values) > 1
            else "is negative"
        )
        context.error(element.place, "bad-limit", message)
        return
    is_angle = node.steps[0].joint.unit is Unit.RADIAN
    if is_angle and len(values) > 1 and any(map(looks_like_radians, values)):
        context.warning(
            element.place,
            "radians",
            f"the limits of {name}, {values[0]:g} and {values[1]:g}, look like "
            "radians; they are read as degrees, as RobWork does",
        )
    factor = math.pi / 180.0 if is_angle else 1.0
    changes = {
        field: _or_infinite(value * factor)
        for field, value in zip(fields.values(), values, strict=True)
    }
    before = {field: getattr(node.limits, field) for field in changes}
    if before != changes and not all(map(math.isinf, before.values())):
        message = f"{name} has another <{element.name}>; this one counts"
        context.warning(element.place, "repeated-limit", message)
    node.limits = msgspec.structs.replace(node.limits, **changes)


def _or_infinite(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= UNLIMITED else value


def limit_elements(
    limits: Limits, is_angle: bool, unsupported: Unsupported
) -> list[Element]:
    """Return the finite limits of a joint, in degrees for an angle."""

    def text(value: float) -> str:
        if math.isinf(value):
            return repr(math.copysign(LARGEST, value))
        return number_text(_degrees(value) if is_angle else value)

    if math.isfinite(limits.effort):
        unsupported.add("a limit of force or torque")
    return [
        tag(name, {key: text(getattr(limits, field)) for key, field in fields.items()})
        for name, fields in LIMITS.items()
        if any(math.isfinite(getattr(limits, field)) for field in fields.values())
    ]


def _degrees(value: float) -> float:
    """Return an angle in degrees that reads back as the same number of radians."""
    plain = math.degrees(value)
    near = (
        round(plain, ANGLE_DIGITS),
        plain,
        math.nextafter(plain, math.inf),
        math.nextafter(plain, -math.inf),
    )
    return next((d for d in near if d * (math.pi / 180.0) == value), plain)


# Joint positions

HOME: Final = "Home"
"""The name of the posture in which a device starts."""

MOST_TURNS: Final = 2
MOST_SHOWN: Final = 12


def read_postures(
    elements: Sequence[Element],
    joints: Sequence[str],
    links: Mapping[str, Link],
    context: ReaderContext,
) -> tuple[Posture, ...]:
    """Return the postures that `Q` elements give.

    joints: Names of the joints in RobWork's q, in its order.
    links: The link of each joint.
    """
    found: dict[str, Posture] = {}
    for element in elements:
        name = element.required_attribute("name", context.report)
        values = element.text_numbers(None, context.report)
        context.close(element)
        if name is None or values is None:
            continue
        shown = f"<Q> {quote(name)}"
        if len(values) != len(joints):
            names = [*joints[:MOST_SHOWN], *(["..."] if joints[MOST_SHOWN:] else [])]
            message = (
                f"{shown} has {len(values)} numbers, but RobWork's q of the device has "
                f"{len(joints)}: {', '.join(names) or 'none'}"
            )
            if name == HOME:
                context.error(element.place, "wrong-count", message)
            else:
                message = f"{message}; it is left out"
                context.warning(element.place, "wrong-count", message)
        elif name in found:
            message = f"there is a {shown} already, which counts, as in RobWork"
            context.warning(element.place, "repeated-posture", message)
        else:
            found[name] = Posture(name=name, joints=tuple(joints), q=values)
            for joint, q in zip(joints, values, strict=True):
                _check_position(f"{shown} puts", element, links[joint], q, context)
    return tuple(found.values())


def _check_position(
    what: str, element: Element, link: Link, q: float, context: ReaderContext
) -> None:
    """Warn of a position outside of limits, and of an angle that must be degrees."""
    what, limits = f"{what} {quote(link.coordinate)} at {q:g}", link.limits
    if link.joint.unit is Unit.RADIAN and abs(q) > MOST_TURNS * 2.0 * math.pi:
        context.warning(
            element.place,
            "degrees",
            f"{what}, which looks like degrees; it is read as radians, as RobWork does",
        )
    elif not limits.contains(q, tolerance=1e-6):
        message = f"{what}, outside of its limits, {limits.lower:g} to {limits.upper:g}"
        context.warning(element.place, "out-of-range", message)
