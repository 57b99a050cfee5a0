"""What a link carries: mass properties, named frames, limits of its actuator."""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.exact import exact_attribute, exactly
from armillary.formats.actin.transforms import pose_element, read_pose
from armillary.formats.actin.values import (
    identifier,
    number,
    number_element,
    text_element,
)
from armillary.formats.diagnostic import Place, Report
from armillary.formats.inertia import possible_inertia
from armillary.formats.numbers import number_text
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.frame import Frame
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.spatial.inertia import SpatialInertia

__all__ = [
    "actuator_elements",
    "body_elements",
    "read_frames",
    "read_inertia",
    "read_limits",
]

FIRST: Final = ("momentX", "momentY", "momentZ")
SECOND: Final = ("jXX", "jYY", "jZZ", "jXY", "jXZ", "jYZ")
# Each limit and its element.
LIMITS: Final = (
    ("lower", "mn:lowerLimit"),
    ("upper", "mn:upperLimit"),
    ("velocity", "mn:maxOutputRate"),
    ("acceleration", "am:maxAcceleration"),
    ("effort", "am:maxEffort"),
)


def read_inertia(link: Element, report: Report) -> SpatialInertia | None:
    """Return the mass properties of a link, None without any.

    The second moment is the sum of x x, y y, ... over the mass, about the primary
    frame's origin: it is not the rotational inertia.
    """
    outer = link.only_child("massProperties", report)
    if outer is None:
        return None
    inner = outer.only_child("rigidBodyMassProperties", report)
    element = outer if inner is None else inner
    mass = _number(element, "mass", report)
    first = [0.0] * 3
    second = [0.0] * 6
    moment = element.only_child("firstMoment", report)
    if moment is not None:
        first = [_number(moment, name, report) for name in FIRST]
        report_unused(moment, report)
    moment = element.only_child("secondMoment", report)
    if moment is not None:
        second = [_number(moment, name, report) for name in SECOND]
    said = SpatialInertia.from_second_moment(mass, first, second)
    if moment is not None:
        a, b, c, d, e, f, g, h, i = exactly(moment, _nine(said), report)
        said = SpatialInertia(
            said.mass, said.first_moment, ((a, b, c), (d, e, f), (g, h, i))
        )
        report_unused(moment, report)
    report_unused(outer, report)
    if inner is not None:
        report_unused(inner, report)
    return possible_inertia(said, element.place, "the link", report)


def _number(parent: Element, name: str, report: Report) -> float:
    """Return the number in a child, 0 without one."""
    found = number(parent, name, report)
    if found is None:
        return 0.0
    report_unused(found[1], report)
    return found[0]


def _nine(inertia: SpatialInertia) -> tuple[float, ...]:
    return tuple(float(value) + 0.0 for row in inertia.rotational for value in row)


def _inertia_element(inertia: SpatialInertia) -> Element:
    nine = _nine(inertia)
    xx, yy, zz = (0.5 * sum(nine[::4]) - moment for moment in nine[::4])
    second = (xx, yy, zz, 0.0 - nine[1], 0.0 - nine[2], 0.0 - nine[5])
    said = SpatialInertia.from_second_moment(inertia.mass, inertia.first_moment, second)
    return tag(
        "mn:massProperties",
        {},
        number_element("mn:mass", float(inertia.mass)),
        tag("mn:firstMoment", {}, *_numbers(FIRST, inertia.first_moment)),
        tag(
            "mn:secondMoment",
            exact_attribute(nine, _nine(said)),
            *_numbers(SECOND, second),
        ),
    )


def _numbers(names: tuple[str, ...], values: tuple[float, ...]) -> list[Element]:
    return [
        number_element(f"mn:{name}", float(value))
        for name, value in zip(names, values, strict=True)
    ]


def read_frames(link: Element, report: Report) -> tuple[Frame, ...]:
    """Return the named frames of a link."""
    holder = link.only_child("namedFrames", report)
    if holder is None:
        return ()
    found: list[Frame] = []
    for element in holder.children_named("namedFrame"):
        name = identifier(element, report)
        if not name:
            report.error(element.place, "no-name", "a named frame has no name")
        flag = element.only_child("endEffector", report)
        if flag is not None:
            report_unused(flag, report)
        pose = read_pose(element, report)
        found.append(Frame(name=name, pose=pose, end_effector=flag is not None))
    report_unused(holder, report)
    return tuple(found)


def body_elements(link: Link, report: Report) -> list[Element]:
    """Return the mass properties and named frames of a link, to be written."""
    found: list[Element] = []
    if link.inertia is not None:
        found.append(_inertia_element(link.inertia))
    frames: list[Element] = []
    for frame in link.frames:
        bare = pose_element("mn:namedFrame", frame.pose)
        name = text_element("mn:identifier", frame.name, report)
        flag = [tag("am:endEffector")] if frame.end_effector else []
        frames.append(tag(bare.name, {}, name, *bare.children, *flag))
    if frames:
        found.append(tag("mn:namedFrames", {}, *frames))
    return found


def read_limits(link: Element, rate: float, report: Report) -> Limits:
    """Return the limits of a link's actuator.

    rate: The change of our coordinate for one of the file's.
    """
    holder = link.only_child("jointActuatorContainer", report)
    actuator = (link if holder is None else holder).only_child("jointActuator", report)
    if holder is not None:
        report_unused(holder, report)
    if actuator is None:
        return UNLIMITED
    found: dict[str, float] = {}
    for field, name in LIMITS:
        given = number(actuator, name.partition(":")[2], report)
        if given is None:
            continue
        value, child = given
        factor = _factor(field, rate)
        (found[field],) = exactly(child, (value * factor,), report)
        report_unused(child, report)
    report_unused(actuator, report)
    return _made(found, rate, actuator, report)


def _factor(field: str, rate: float) -> float:
    """Return what a limit of the file is multiplied by to have ours."""
    if field in {"lower", "upper"}:
        return rate
    return 1.0 / abs(rate) if field == "effort" else abs(rate)


def _made(
    found: dict[str, float], rate: float, element: Element, report: Report
) -> Limits:
    if rate < 0.0:
        swapped = {"lower": "upper", "upper": "lower"}
        found = {swapped.get(name, name): value for name, value in found.items()}
    try:
        return Limits(**found)
    except ArmillaryError as error:
        report.error(element.place, "bad-limits", str(error).removesuffix("."))
        return UNLIMITED


def actuator_elements(link: Link, rate: float, report: Report) -> list[Element]:
    """Return the actuator of a link, to be written; nothing where it has no limits."""
    limits = link.limits
    swapped = {"lower": "upper", "upper": "lower"} if rate < 0.0 else {}
    children: list[Element] = []
    for field, name in LIMITS:
        value = getattr(limits, swapped.get(field, field))
        if math.isinf(value):
            continue
        factor = _factor(field, rate)
        said = value / factor + 0.0
        if not math.isfinite(said):
            message = f"limit {quote(field)} of joint {quote(link.coordinate)} is lost"
            report.warning(Place(), "lost-limit", message)
            continue
        exact = exact_attribute((value + 0.0,), (said * factor + 0.0,))
        children.append(tag(name, exact, text=number_text(said)))
    if not children:
        return []
    actuator = tag("mn:jointActuator", {}, *children)
    return [tag("mn:jointActuatorContainer", {}, actuator)]
