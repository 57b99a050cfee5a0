"""`<transmission>`: the motor of a joint, with elements of ROS and of Drake.

ROS has `<mechanicalReduction>` in an `<actuator>`, Drake `<drake:rotor_inertia>` and
`<drake:gear_ratio>`; Drake reads its own alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.numbers import number_text
from armillary.formats.urdf.joints import SINGLE, JointElement
from armillary.formats.xml import Element, tag
from armillary.model.joint_dynamics import JointDynamics

__all__ = ["DRAKE", "MOTOR", "transmission_element", "with_motors"]

MOTOR: Final = ("motor_inertia", "gear_ratio")
"""Fields of `JointDynamics`."""

DRAKE: Final = "http://drake.mit.edu"
SIMPLE: Final = "SimpleTransmission"
TYPE: Final = f"transmission_interface/{SIMPLE}"
INERTIA: Final = "drake:rotor_inertia"
RATIO: Final = "drake:gear_ratio"
REDUCTION: Final = "mechanicalReduction"


def with_motors(
    robot: Element, joints: Sequence[JointElement], report: Report
) -> list[JointElement]:
    """Return joints with the motors of `<transmission>`s; others are not kept.

    Kept are motors of transmissions of one joint and one actuator, where they say an
    inertia or a ratio and the joint has one coordinate.
    """
    places = {joint.name: k for k, joint in enumerate(joints)}
    found = list(joints)
    named: set[str] = set()
    for element in robot.children_named("transmission"):
        motor = _motor(element)
        of = "" if motor is None else _joint_of(element)
        k = places.get(of)
        if motor is None or k is None or joints[k].type not in SINGLE:
            what = "<transmission>"
            report.unsupported.add(what, element.place, Severity.NOTE)
        elif of in named:
            report.tolerating("the first one counts").error(
                element.place,
                "repeated-element",
                f"joint {quote(of)} has more than one <transmission>",
            )
        else:
            named.add(of)
            dynamics = _read(element, motor, found[k].dynamics, report)
            found[k] = replace(found[k], dynamics=dynamics)
    return found


def _motor(transmission: Element) -> Element | None:
    """Return the one actuator of a simple transmission, if it says of what kind."""
    counts = {"joint": 0, "actuator": 0}
    actuator, type_ = None, ""
    for child in transmission.children:
        if child.name == "type":
            type_ = child.text.strip()
        elif child.name in counts:
            counts[child.name] += 1
            actuator = child if child.name == "actuator" else actuator
    if actuator is None or set(counts.values()) != {1} or not type_.endswith(SIMPLE):
        return None
    names = {child.name for child in actuator.children}
    return actuator if names & {INERTIA, RATIO, REDUCTION} else None


def _joint_of(transmission: Element) -> str:
    return next(
        child.attributes.get("name", "")
        for child in transmission.children
        if child.name == "joint"
    )


def _read(
    transmission: Element, motor: Element, dynamics: JointDynamics, report: Report
) -> JointDynamics:
    """Return dynamics with the inertia and the ratio of an actuator."""
    tolerant = report.tolerating("it is left out")
    for element in (transmission, motor, *transmission.children_named("joint")):
        element.attribute("name")
    transmission.children_named("type", "actuator")
    given: dict[str, float | None] = {}
    for name, field in ((INERTIA, "motor_inertia"), (RATIO, "gear_ratio")):
        child = motor.first_child(name, report)
        if child is not None:
            given[field] = child.number("value", tolerant, required=True)
    reduction = motor.first_child(REDUCTION, report)
    if reduction is not None:
        numbers = reduction.text_numbers(1, tolerant)
        given.setdefault("gear_ratio", numbers[0] if numbers else None)
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.structs.replace(dynamics, **fields)
    except ModelError as error:
        message = f"{motor.label}: {str(error).removesuffix('.')}"
        tolerant.error(motor.place, "bad-jointdynamics", message)
        return dynamics


def transmission_element(joint: str, dynamics: JointDynamics) -> Element:
    """Return the transmission of a joint with a motor, for ROS and for Drake."""
    ratio = dynamics.gear_ratio
    return tag(
        "transmission",
        {"name": f"{joint}_transmission"},
        tag("type", text=TYPE),
        tag("joint", {"name": joint}),
        tag(
            "actuator",
            {"name": f"{joint}_motor"},
            tag(REDUCTION, text=number_text(ratio)),
            tag(INERTIA, {"value": dynamics.motor_inertia}),
            tag(RATIO, {"value": ratio}),
        ),
    )
