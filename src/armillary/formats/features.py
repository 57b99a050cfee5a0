"""What cells consist of, and which of it a format holds.

A format states in `Format.holds` what its files hold, as far as possible from the
tables by which it is read and written. Its writer warns by `report_losses` of what a
cell has beyond that, and docs/formats.md shows the statements of all formats as a
table. `tests/formats/test_features.py` writes and reads a cell with each feature in
each format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from armillary.formats.coupled_limits import report_lost_limits
from armillary.formats.diagnostic import Report
from armillary.formats.open_loops import report_open_loops
from armillary.model.frame import Frame
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import JOINT_TYPES, AngleCoordinate, Fixed, LengthCoordinate
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mechanism import Mechanism
from armillary.model.mount import Mount
from armillary.model.shape import Shape
from armillary.model.shapes import SHAPES
from armillary.model.workcell import DEFAULT_RULES, Workcell

__all__ = [
    "ALL",
    "FEATURES",
    "OWN_JOINTS",
    "SAMPLED",
    "Feature",
    "Held",
    "features_of",
    "fields_of",
    "report_losses",
    "report_lost_rules",
]

ALL: Final = "yes"
"""A feature that a format holds without exception, so that it is read back."""

SAMPLED: Final = "one, sampled"
"""Of motions: a file has one of them, as poses over time."""

Held = Mapping[str, str]
"""For each feature that a format holds `ALL`, or in a few words which part of it, or as
what it is written, such as `"as revolute"`. Features that are not named are lost."""

OWN_JOINTS: Final = "joints of your own"

# Topics, in the order of the table.
JOINTS: Final = "how joints move"
DRIVES: Final = "limits and dynamics of joints"
LINKS: Final = "links"
SHAPES_OF_LINKS: Final = "shapes"
CELLS: Final = "the cell"

Reporter = Callable[[Workcell, Report], None]


class Feature(NamedTuple):
    """What a cell may have.

    Attributes:
        topic: Under which the table of formats lists it.
        what: One of it, for the message that it is not kept: `"a group of joints"`.
            Without it a writer itself says what becomes of each, by its name.
        report: What warns in place of such a message.
    """

    topic: str
    what: str = ""
    report: Reporter | None = None


_BUILT_IN: Final = frozenset(JOINT_TYPES.values())
_JOINT_NAMES: Final[Mapping[type[Any], str]] = {
    kind: kind.__name__
    for kind in JOINT_TYPES.values()
    if kind not in {Fixed, AngleCoordinate, LengthCoordinate}
}

FEATURES: Final[Mapping[str, Feature]] = {
    **dict.fromkeys(_JOINT_NAMES.values(), Feature(JOINTS)),
    OWN_JOINTS: Feature(JOINTS),
    "joints of several coordinates": Feature(JOINTS),
    "couplings": Feature(JOINTS),
    "passive joints": Feature(JOINTS, "that a joint is passive"),
    "closed loops": Feature(JOINTS, "a closed loop", report_open_loops),
    "names of joints": Feature(JOINTS, "the name of a joint that is not its link's"),
    "limits of position": Feature(DRIVES, "a limit of position"),
    "limits of velocity": Feature(DRIVES, "a limit of velocity"),
    "limits of acceleration": Feature(DRIVES, "a limit of acceleration"),
    "limits of effort": Feature(DRIVES, "a limit of force or torque"),
    "coupled limits": Feature(DRIVES, "a coupled limit", report_lost_limits),
    "motors and gears": Feature(DRIVES, "the motor of a joint"),
    "damping": Feature(DRIVES, "the damping of a joint"),
    "friction": Feature(DRIVES, "the friction of a joint"),
    "springs": Feature(DRIVES, "the spring of a joint"),
    "masses": Feature(LINKS, "the mass and inertia of a link"),
    "frames": Feature(LINKS, "a frame of a link"),
    "end effectors": Feature(LINKS, "that a frame is an end effector"),
    "primary frames": Feature(LINKS, "the primary frame of a link"),
    "visuals": Feature(LINKS, "a shape that is drawn"),
    "collision shapes": Feature(LINKS, "a shape that is tested for collision"),
    **{
        kind.__name__: Feature(SHAPES_OF_LINKS, f"a shape of type {kind.__name__}")
        for kind in SHAPES
    },
    "colours": Feature(SHAPES_OF_LINKS, "the colour of a shape"),
    "names of shapes": Feature(SHAPES_OF_LINKS, "the name of a shape"),
    "several manipulators": Feature(CELLS),
    "mounts": Feature(CELLS, "where a manipulator is mounted"),
    "movable bases": Feature(CELLS, "that the base of a manipulator may be moved"),
    "postures": Feature(CELLS, "a posture"),
    "home": Feature(CELLS, "in which posture a manipulator starts"),
    "groups": Feature(CELLS, "a group of joints"),
    "wheels": Feature(CELLS, "that a base drives on two wheels"),
    "collision rules": Feature(CELLS, "which pairs of links are tested for collision"),
    "properties": Feature(CELLS, "a property"),
    "motions": Feature(CELLS, "a motion"),
}
"""All that a cell may have, beside names and the tree of its links."""

_OF_FIELDS: Final[Mapping[type[msgspec.Struct], Mapping[str, str]]] = {
    Workcell: {
        "properties": "properties",
        "rules": "collision rules",
        "loops": "closed loops",
        "coupled_limits": "coupled limits",
    },
    Manipulator: {
        "postures": "postures",
        "home": "home",
        "groups": "groups",
        "properties": "properties",
        "wheels": "wheels",
        "loops": "closed loops",
        "coupled_limits": "coupled limits",
    },
    Mount: {"on": "mounts", "pose": "mounts", "bolted": "movable bases"},
    Link: {
        "joint_name": "names of joints",
        "coupling": "couplings",
        "inputs": "joints of several coordinates",
        "passive": "passive joints",
        "primary": "primary frames",
        "inertia": "masses",
        "frames": "frames",
        "visuals": "visuals",
        "collisions": "collision shapes",
    },
    Limits: {
        "lower": "limits of position",
        "upper": "limits of position",
        "velocity": "limits of velocity",
        "acceleration": "limits of acceleration",
        "effort": "limits of effort",
    },
    JointDynamics: {
        "motor_inertia": "motors and gears",
        "gear_ratio": "motors and gears",
        "damping": "damping",
        "friction": "friction",
        "stiffness": "springs",
        "rest": "springs",
    },
    Frame: {"end_effector": "end effectors"},
    Shape: {"colour": "colours", "name": "names of shapes"},
}
"""The features that fields are which differ from their default."""


def fields_of(kind: type[msgspec.Struct], names: Iterable[str]) -> dict[str, str]:
    """Return that a format holds the features of some fields of a type, all of them.

    Other fields are left out, so that `names` may be all attributes of
    an element.
    """
    base: Any = next((each for each in kind.__mro__ if each in _OF_FIELDS), None)
    known = _OF_FIELDS.get(base, {})
    return {known[name]: ALL for name in names if name in known}


def features_of(cell: Workcell) -> Counter[str]:
    """Return how many of each feature a cell has, in the order of `FEATURES`."""
    found: Counter[str] = Counter()
    _add(cell, Workcell, found)
    found["several manipulators"] += len(cell.manipulators) > 1
    for mount in cell.mounts:
        _add(mount, Mount, found)
    for manipulator in cell.manipulators:
        _add(manipulator, Manipulator, found)
        for link in manipulator.links:
            _add_link(link, found)
    return Counter({name: found[name] for name in FEATURES if found[name]})


def report_losses(cell: Workcell, held: Held, report: Report) -> None:
    """Warn of each feature of a cell that a format does not name in what it holds.

    Of what it holds in part its writer warns, and of joints that become others.
    """
    has_shapes = "visuals" in held or "collision shapes" in held
    for name, count in features_of(cell).items():
        feature = FEATURES[name]
        if name in held or (feature.topic == SHAPES_OF_LINKS and not has_shapes):
            continue
        if feature.report is not None:
            feature.report(cell, report)
        elif feature.what:
            report.unsupported.add(feature.what, count=count)


def report_lost_rules(cell: Workcell, report: Report) -> None:
    """Warn of rules for collisions beyond those that reading a silent file makes.

    These test a robot against itself, see `Format.tests_itself`.
    """
    robots = [m.name for m in cell.manipulators] if len(cell.manipulators) == 1 else []
    if cell.rules not in (DEFAULT_RULES, DEFAULT_RULES.include_self(*robots)):
        report.unsupported.add(FEATURES["collision rules"].what)


def _add_link(link: Link, found: Counter[str]) -> None:
    _add(link, Link, found)
    if link.limits is not _default(Link, "limits"):
        _add(link.limits, Limits, found)
    if link.dynamics is not _default(Link, "dynamics"):
        _add(link.dynamics, JointDynamics, found)
    for frame in link.frames:
        _add(frame, Frame, found)
    for shape in (*link.visuals, *link.collisions):
        _add(shape, Shape, found)
        found[type(shape).__name__] += 1
    kind = type(link.joint)
    if kind in _JOINT_NAMES:
        found[_JOINT_NAMES[kind]] += 1
    elif kind not in _BUILT_IN and not issubclass(kind, Mechanism | OpaqueJoint):
        found[OWN_JOINTS] += 1


def _add(value: Any, kind: type[msgspec.Struct], found: Counter[str]) -> None:
    """Count the fields of a value that differ from their defaults, each feature once.

    Of a sequence its items count.
    """
    counts: dict[str, int] = {}
    for name, feature in _OF_FIELDS[kind].items():
        held = getattr(value, name)
        if held != _default(kind, name):
            items = cast("tuple[Any, ...]", held if isinstance(held, tuple) else ())
            is_many = bool(items) and isinstance(items[0], msgspec.Struct)
            counts[feature] = max(len(items) if is_many else 1, counts.get(feature, 0))
    found.update(counts)


@cache
def _default(kind: type[msgspec.Struct], name: str) -> Any:
    field = next(each for each in msgspec.structs.fields(kind) if each.name == name)
    is_made = field.default_factory is not msgspec.NODEFAULT
    return field.default_factory() if is_made else field.default
