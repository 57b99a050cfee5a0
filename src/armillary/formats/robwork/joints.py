"""Joints: their motions, their DH parameters, and the joint positions of `Q`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from armillary.errors import quote, suggestion
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.elements import (
    ELEMENTS,
    JOINTS_BY_TYPE,
    SIMPLE_JOINTS,
    TRANSFORM,
)
from armillary.formats.robwork.frames import FileFrame
from armillary.formats.xml import Element
from armillary.model.joint import Joint
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.link import Link
from armillary.model.posture import Posture
from armillary.model.unit import Unit
from armillary.spatial import dh
from armillary.spatial.pose import Pose

__all__ = [
    "HOME",
    "joint_steps",
    "read_dh_joint",
    "read_postures",
]


def joint_steps(kind: str, pose: Pose) -> tuple[tuple[str, Joint], ...]:
    """Return the coordinates of a joint behind a constant pose; none of a frame."""
    return tuple(
        (suffix, motion if k else motion.prepend(pose))
        for k, (suffix, motion) in enumerate(JOINTS_BY_TYPE.get(kind, ()))
    )


# DH joints

# The attribute that says which kind of joint it is; whether that is prismatic, and
# whether it is Hayati's form for nearly parallel axes (HGP).
_DH_FORMS: Final = {
    "d": (False, False),
    "theta": (True, False),
    "b": (False, True),
    "beta": (True, True),
}
_DH_TYPES: Final = ("craig", "schilling", "HGP")


def read_dh_joint(frame: FileFrame, fields: Mapping[str, Any], report: Report) -> None:
    """Give a joint the type and the motion that its parameters say.

    After the constant transform of its convention it moves about or along z:

    craig:     Tx(a) Rx(alpha) Tz(d) Rz(theta)
    schilling: Rz(theta) Tz(d) Tx(a) Rx(alpha)
    HGP:       Ty(b) Ry(beta) Tx(a) Rx(alpha)

    fields: The values of its attributes: angles in degrees, lengths in metres. The
        offset is the angle or the length that the form does not have.
    """
    element = frame.element
    forms = [name for name in _DH_FORMS if name in element.attributes]
    if len(forms) != 1:
        report.error(
            element.place,
            "bad-dh",
            f"{element.label} must have one of d, theta, b, beta; it has "
            f"{', '.join(forms) or 'none'}",
            hint="d and b make it revolute, theta and beta prismatic.",
        )
        return
    slides, is_parallel = _DH_FORMS[forms[0]]
    # The attribute that says the form is the constant parameter; the offset is where
    # the coordinate is 0: the angle of a revolute joint, the length of a prismatic one.
    constant = element.number(forms[0], report) or 0.0  # after an error, as below
    alpha, a, offset = (fields[key] or 0.0 for key in ("alpha", "a", "offset"))
    angle, length = (constant, offset) if slides else (offset, constant)
    alpha, angle = math.radians(alpha), math.radians(angle)
    for unread in (child for child in element.children if child.name in TRANSFORM):
        report.warning(
            unread.place,
            "not-kept",
            f"<{unread.name}> of {element.label} has no effect: the parameters give "
            "the whole transform",
        )
    frame.type = "Prismatic" if slides else "Revolute"
    joint: Joint = SIMPLE_JOINTS[frame.type]
    convention = _dh_convention(element, is_parallel, report)
    if convention == "HGP":
        joint = joint.prepend(dh.parallel(alpha=alpha, a=a, beta=angle, b=length))
    elif convention == "schilling":
        joint = joint.prepend(dh.paul(theta=angle, d=length, a=a, alpha=alpha))
    else:
        kind = CraigPrismatic if slides else CraigRevolute
        joint = kind(alpha=alpha, a=a, theta=angle, d=length)
    frame.steps = (("", joint),)


def _dh_convention(element: Element, is_parallel: bool, report: Report) -> str:
    """Return the convention of a DH joint: Craig's without a type, HGP by its form."""
    type_ = element.attributes.get("type") or "craig"
    convention = type_ if type_ == "schilling" else "craig"
    convention = "HGP" if is_parallel else convention
    shown = f"the type of {element.label} is {quote(type_)}"
    if type_ not in _DH_TYPES:
        message = f"{shown}, which counts as 'craig', as in RobWork"
        hint = suggestion(type_, _DH_TYPES)
        report.warning(element.place, "unknown-value", message, hint=hint)
    elif is_parallel != (type_ == "HGP"):
        has = "it has" if is_parallel else "it does not have"
        message = f"{shown}, but {has} b or beta, the parameters of 'HGP'"
        hint = f"It is read as {convention}."
        report.warning(element.place, "dh-type", message, hint=hint)
    return convention


# Joint positions

HOME: Final = "Home"
"""The name of the posture in which a device starts."""

MOST_TURNS: Final = 2
MOST_SHOWN: Final = 12


def read_postures(
    elements: Sequence[Element],
    joints: Sequence[str],
    links: Mapping[str, Link],
    report: Report,
) -> tuple[Posture, ...]:
    """Return the postures that `Q` elements give.

    joints: Names of the joints in RobWork's q, in its order.
    links: The link of each joint.
    """
    postures: dict[str, Posture] = {}
    for element in elements:
        name = ELEMENTS.read(element, report)["name"]
        q = element.text_numbers(None, report)
        if name is None or q is None:
            continue
        shown = f"<Q> {quote(name)}"
        if len(q) != len(joints):
            names = [*joints[:MOST_SHOWN], *(["..."] if joints[MOST_SHOWN:] else [])]
            message = (
                f"{shown} has {len(q)} numbers, but RobWork's q of the device has "
                f"{len(joints)}: {', '.join(names) or 'none'}"
            )
            if name == HOME:
                report.error(element.place, "wrong-count", message)
            else:
                message = f"{message}; it is left out"
                report.warning(element.place, "wrong-count", message)
        elif name in postures:
            message = f"there is a {shown} already, which counts, as in RobWork"
            report.warning(element.place, "repeated-posture", message)
        else:
            postures[name] = Posture(name=name, joints=tuple(joints), q=q)
            for joint, position in zip(joints, q, strict=True):
                _check_position(
                    f"{shown} puts", element, links[joint], position, report
                )
    return tuple(postures.values())


def _check_position(
    what: str, element: Element, link: Link, q: float, report: Report
) -> None:
    """Warn of a position outside of limits, and of an angle that must be degrees."""
    what, limits = f"{what} {quote(link.coordinate)} at {q:g}", link.limits
    if link.joint.unit is Unit.RADIAN and abs(q) > MOST_TURNS * 2.0 * math.pi:
        report.warning(
            element.place,
            "degrees",
            f"{what}, which looks like degrees; it is read as radians, as RobWork does",
        )
    elif not limits.contains(q, tolerance=1e-6):
        message = f"{what}, outside of its limits, {limits.lower:g} to {limits.upper:g}"
        report.warning(element.place, "out-of-range", message)
