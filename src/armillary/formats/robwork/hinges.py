"""Joint, DHJoint and Depend elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.node import Depend, Step
from armillary.formats.robwork.transform import TRANSFORM
from armillary.formats.xml import Element
from armillary.model.axis import X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.spatial import dh
from armillary.spatial.pose import Pose

__all__ = ["JOINT_TYPES", "joint_steps", "read_depend", "read_dh_joint", "read_state"]

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
"""The motions of each type of joint, first the innermost, with endings for names.

The frame behind the joint, which has its name, is behind the last motion.
"""

DH_TYPES: Final = ("craig", "schilling", "HGP")
STATES: Final = ("Active", "Passive")


def joint_steps(kind: str, pose: Pose) -> tuple[Step, ...]:
    """Return the coordinates of a joint of a known type behind a constant pose."""
    motions = JOINT_TYPES[kind]
    return tuple(
        Step(suffix, motion if k else motion.prepend(pose))
        for k, (suffix, motion) in enumerate(motions)
    )


def read_state(element: Element, desk: Desk) -> bool:
    """Return whether a joint is passive."""
    return desk.choice(element, "state", STATES, "Active") == "Passive"


def read_depend(element: Element, desk: Desk) -> Depend | None:
    """Return which joint a joint follows; gain and offset are in m and rad."""
    found = element.only_child("Depend", desk.report)
    if found is None:
        return None
    on = found.required_attribute("on", desk.report)
    gain = found.number("gain", desk.report, required=True)
    offset = found.number("offset", desk.report, required=True)
    desk.close(found)
    if on is None or gain is None or offset is None:
        return None
    return Depend(on, gain, offset, found.place)


# One of these tells what the joint is: the parameter, whether it slides, whether it is
# the form of Hayati for nearly parallel axes (HGP).
_FORMS: Final = (
    ("d", False, False),
    ("theta", True, False),
    ("b", False, True),
    ("beta", True, True),
)
_ANGLES: Final = ("alpha", "theta", "beta")


def read_dh_joint(element: Element, desk: Desk) -> tuple[str, tuple[Step, ...]] | None:
    """Return type and coordinate of a joint that is given by its parameters.

    Angles are in degrees, lengths in metres; the offset is one or the other.
    """
    given = [form for form in _FORMS if element.attribute(form[0]) is not None]
    if len(given) != 1:
        names = ", ".join(name for name, _, _ in given) or "none"
        desk.report.error(
            element.place,
            "bad-dh",
            f"{element.label} must have one of d, theta, b, beta; it has {names}",
            hint="d and b make it revolute, theta and beta prismatic.",
        )
        return None
    name, slides, is_parallel = given[0]
    values: dict[str, float] = {}
    for key in ("alpha", "a", name, "offset"):
        value = element.number(key, desk.report, required=True)
        if value is None:
            return None
        is_angle = key in _ANGLES or (key == "offset" and not slides)
        values[key] = math.radians(value) if is_angle else value
    for unread in TRANSFORM:
        for child in element.children_named(unread):
            desk.report.warning(
                child.place,
                "not-kept",
                f"<{unread}> of {element.label} has no effect: the parameters give the "
                "whole transform",
            )
    make = _flavour(element, is_parallel, desk)
    joint = make(values, slides)
    return ("Prismatic" if slides else "Revolute"), (Step("", joint),)


Make = Callable[[dict[str, float], bool], Joint]


def _flavour(element: Element, is_parallel: bool, desk: Desk) -> Make:
    """Return what makes the joint: as its type says, and by Craig without one."""
    kind = element.attribute("type")
    if kind is not None and kind not in DH_TYPES:
        desk.report.warning(
            element.place,
            "unknown-value",
            f"the type of {element.label} is {quote(kind)}, which counts as 'craig', "
            "as in RobWork",
            hint=desk.hint(kind, DH_TYPES),
        )
    if is_parallel:
        if kind != "HGP":
            desk.report.warning(
                element.place,
                "dh-type",
                f"{element.label} has a parameter of the type 'HGP', as which it is "
                f"read, but its type is {quote(kind or 'craig')}",
            )
        return _hayati
    if kind == "HGP":
        desk.report.warning(
            element.place,
            "dh-type",
            f"{element.label} has the type 'HGP', but neither b nor beta; it is read "
            "by Craig's convention, as in RobWork",
        )
    return _schilling if kind == "schilling" else _craig


def _craig(p: dict[str, float], slides: bool) -> Joint:
    """Return Tx(a) Rx(alpha) Tz(d) Rz(theta), then the motion."""
    alpha, a, offset = p["alpha"], p["a"], p["offset"]
    if slides:
        return CraigPrismatic(alpha=alpha, a=a, theta=p["theta"], d=offset)
    return CraigRevolute(alpha=alpha, a=a, theta=offset, d=p["d"])


def _schilling(p: dict[str, float], slides: bool) -> Joint:
    """Return Rz(theta) Tz(d) Tx(a) Rx(alpha), then the motion."""
    theta, d = (p["theta"], p["offset"]) if slides else (p["offset"], p["d"])
    X_FM = dh.paul(theta=theta, d=d, a=p["a"], alpha=p["alpha"])
    return _behind(X_FM, slides)


def _hayati(p: dict[str, float], slides: bool) -> Joint:
    """Return Ty(b) Ry(beta) Tx(a) Rx(alpha), then the motion."""
    beta, b = (p["beta"], p["offset"]) if slides else (p["offset"], p["b"])
    X_FM = dh.parallel(alpha=p["alpha"], a=p["a"], beta=beta, b=b)
    return _behind(X_FM, slides)


def _behind(pose: Pose, slides: bool) -> Joint:
    return msgspec.structs.replace(_SLIDE_Z if slides else _TURN_Z, precursor=pose)
