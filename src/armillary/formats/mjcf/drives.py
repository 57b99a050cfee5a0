"""Actuators: the joints that they drive, gears, and the greatest efforts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import (
    TEXT,
    ElementTable,
    Row,
    choice,
    numbers,
)
from armillary.formats.mjcf.document import MAIN, MjcfDocument
from armillary.formats.mjcf.trees import Trees
from armillary.formats.xml import Element
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.limits import INFINITE
from armillary.model.link import Link

__all__ = ["ACTUATOR", "Drives", "drive_joints"]

_SWITCH: Final = choice({"auto": None, "false": False, "true": True})

ACTUATOR: Final = ElementTable[Report](
    "actuator",
    Row("joint", TEXT, default=None),
    Row("jointinparent", TEXT, default=None),
    Row("tendon", TEXT, default=None),
    Row("gear", numbers(None), default=(1.0,)),
    Row("forcelimited", _SWITCH, default=None),
    Row("forcerange", numbers(2), default=None),
    Row("ctrllimited", _SWITCH, default=None),
    Row("ctrlrange", numbers(2), default=None),
)
"""What of an actuator of any kind is read."""

DIRECT: Final = ("gaintype", "biastype", "dyntype")
FIXED: Final = ("fixed", "none")


@dataclass(slots=True)
class Drives:
    """What actuators say of a joint.

    Attributes:
        gears: Of each actuator.
        effort: The sum of the greatest efforts.
    """

    gears: list[float] = field(default_factory=list[float])
    effort: float = 0.0


def drive_joints(
    document: MjcfDocument, trees: Trees
) -> tuple[list[Element], set[str]]:
    """Let joints have the gears and greatest efforts of their actuators.

    Returns all actuators with their defaults, and the names in the file of the joints
    that are driven.
    """
    report = document.report
    known = trees.coordinates()
    drives: dict[str, Drives] = {}
    elements: list[Element] = []
    tendons: set[str] = set()
    for element in document.sections.get("actuator", []):
        effective = document.effective(element, "actuator", MAIN)
        elements.append(effective)
        values = ACTUATOR.read(effective, report)
        if values["tendon"] is not None:
            tendons.add(values["tendon"])
        joint = values["joint"] or values["jointinparent"]
        if joint is None:
            continue
        if joint not in known:
            report.error(
                element.place,
                "unknown-joint",
                f"{element.label} drives the joint {quote(joint)}, which does not "
                "exist",
                hint=report.hint(joint, known),
            )
            continue
        gear = (values["gear"] or (1.0,))[0]
        drive = drives.setdefault(joint, Drives())
        drive.gears.append(gear)
        drive.effort += _greatest_force(effective, values, document) * abs(gear)
    found = {
        (id(known[name][0]), known[name][1][0]): drive
        for name, drive in drives.items()
        if len(known[name][1]) == 1
    }
    for group in trees.groups:
        group.links = [
            _driven(link, found[id(group), link.coordinate])
            if link.parent is not None and (id(group), link.coordinate) in found
            else link
            for link in group.links
        ]
    return elements, set(drives) | _joints_of(tendons, document)


def _joints_of(tendons: set[str], document: MjcfDocument) -> set[str]:
    """Return the joints in tendons; those around which a spatial one runs are not."""
    return {
        joint.attributes["joint"]
        for tendon in document.sections.get("tendon", [])
        if tendon.attributes.get("name") in tendons
        for joint in tendon.children
        if joint.name == "joint" and "joint" in joint.attributes
    }


def _greatest_force(
    element: Element, values: dict[str, Any], document: MjcfDocument
) -> float:
    """Return the greatest force of an actuator before its gear."""
    force = _greatest("force", values, document)
    is_plain = all(element.attributes.get(key, FIXED[0]) in FIXED for key in DIRECT)
    gain = 0.0
    if element.name == "motor":
        gain = 1.0
    elif element.name == "general" and is_plain:
        gains = element.numbers("gainprm", None, document.report) or (1.0,)
        gain = abs(gains[0])
    if gain > 0.0:
        force = min(force, gain * _greatest("ctrl", values, document))
    return force


def _greatest(what: str, values: dict[str, Any], document: MjcfDocument) -> float:
    """Return the greater end of a range, infinite where it does not count."""
    ends, limited = values[f"{what}range"], values[f"{what}limited"]
    if limited is None:
        limited = document.settings["autolimits"] and ends is not None
        limited = limited and ends != (0.0, 0.0)
    return max(abs(ends[0]), abs(ends[1])) if limited and ends else INFINITE


def _driven(link: Link, drive: Drives) -> Link:
    limits, dynamics = link.limits, link.dynamics
    if 0.0 < drive.effort < limits.effort:
        limits = msgspec.structs.replace(limits, effort=drive.effort)
    if len(drive.gears) == 1 and drive.gears[0] not in (0.0, 1.0):
        dynamics = _geared(dynamics, drive.gears[0])
    return msgspec.structs.replace(link, limits=limits, dynamics=dynamics)


def _geared(dynamics: JointDynamics, gear: float) -> JointDynamics:
    """Return the dynamics of a motor behind a gear, with the same armature."""
    armature = dynamics.armature
    inertia = armature / gear / gear
    for candidate in _near(inertia):
        if candidate * gear * gear == armature:
            inertia = candidate
            break
    if not math.isfinite(inertia) or (armature > 0.0 and inertia == 0.0):
        return dynamics
    return msgspec.structs.replace(dynamics, motor_inertia=inertia, gear_ratio=gear)


def _near(number: float) -> Sequence[float]:
    below = math.nextafter(number, -math.inf)
    above = math.nextafter(number, math.inf)
    return number, below, above
