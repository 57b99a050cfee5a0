"""`<group_state>`: postures, and the pose of the base in them."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.srdf.extensions import BASE_POSE
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element
from armillary.model.group import Group
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.spatial.euler import fixed_xyz
from armillary.spatial.pose import Pose

__all__ = ["read_states"]

ROOT_JOINT: Final = "root_joint"
"""What Pinocchio calls the joint of a base that moves freely."""

TOLERANCE: Final = 1e-6
COUNTS: Final = {"floating": 7, "planar": 3, "fixed": 0}
"""Numbers of a virtual joint: x, y, z, quaternion x y z w; or x, y, angle."""

FLOATING_PARTS: Final = 6


class _State(NamedTuple):
    name: str
    group: str
    positions: dict[str, float]
    base: tuple[float, ...] | None
    place: Place


def read_states(
    robot: Element, names: Names, groups: list[Group]
) -> tuple[list[Posture], list[Property]]:
    """Return the postures, and properties with the pose of the base in them.

    Names of states need to be unique in their groups only; where two groups have a
    state of one name, the postures are called `group_name`.
    """
    known = [group.name for group in groups]
    elements = robot.children_named("group_state")
    read = [_read_state(each, names, known) for each in elements]
    states = [state for state in read if state is not None]
    postures: list[Posture] = []
    bases: list[Property] = []
    seen: dict[str, Place] = {}
    counts = Counter(state.name for state in states)
    for state in states:
        name = state.name
        if counts[name] > 1:
            name = f"{state.group}_{name}" if state.group else name
            names.report.note(
                state.place,
                "renamed",
                f"several groups have a state called {quote(state.name)}; that of "
                f"{quote(state.group)} becomes {quote(name)}",
            )
        if name in seen:
            names.report.error(
                state.place,
                "repeated-name",
                f"group {quote(state.group)} has a state called {quote(state.name)} "
                f"already, at line {seen[name].line}",
                hint="Rename one.",
            )
            continue
        seen[name] = state.place
        q = tuple(state.positions.values())
        postures.append(Posture(name=name, joints=tuple(state.positions), q=q))
        _check_limits(postures[-1], state.place, names)
        if state.base is not None:
            of, numbers = names.base, state.base
            bases.append(Property(name=BASE_POSE, of=of, text=name, numbers=numbers))
    return postures, bases


def _read_state(element: Element, names: Names, known: list[str]) -> _State | None:
    name = names.required(element, "name")
    group = (element.attribute("group") or "").strip()
    if not group:
        names.report.warning(
            element.place, "missing-attribute", f"{element.label} has no group"
        )
    elif group not in known:
        names.report.warning(
            element.place,
            "unknown-group",
            f"{element.label} is of the group {quote(group)}, which does not exist",
            hint=names.hint(group, known),
        )
    positions: dict[str, float] = {}
    followers: list[tuple[Element, str, float]] = []
    base: tuple[float, ...] | None = None
    for child in element.children_named("joint"):
        joint = names.required(child, "name")
        values = child.numbers("value", None, names.report, required=True)
        if joint is None or values is None:
            continue
        is_root = joint == ROOT_JOINT and len(values) == COUNTS["floating"]
        if is_root or joint in names.virtual:
            base = _base(child, joint, values, names)
            continue
        for part, value in _positions(child, joint, values, names).items():
            if part in positions:
                names.report.error(
                    child.place,
                    "repeated-name",
                    f"{element.label} gives joint {quote(part)} two positions",
                )
            elif part in names.manipulator.joint_names:
                positions[part] = value
            else:
                followers.append((child, part, value))
    for child, joint, value in followers:
        _check_follower(child, joint, value, positions, names)
    if name is None:
        return None
    return _State(name, group, positions, base, element.place)


def _base(
    element: Element, joint: str, values: tuple[float, ...], names: Names
) -> tuple[float, ...] | None:
    """Return the pose of the base, None if there is none or it is faulty."""
    virtual = names.virtual.get(joint)
    count = COUNTS["floating" if virtual is None else virtual.type]
    if not _has_count(element, joint, values, count, names):
        return None
    names.report.note(
        element.place,
        "base-pose",
        f"the pose of the base in this posture is kept as a property; set it with "
        f"state.place({quote(names.manipulator.name)}, ...)",
    )
    return values or None


def _positions(
    element: Element, joint: str, values: tuple[float, ...], names: Names
) -> dict[str, float]:
    """Return the positions of the joints that a name means."""
    parts = names.joints(element, joint)
    if not parts:
        return {}
    if len(parts) == 1 and not names.moves(joint):
        if any(values):
            shown = quote(" ".join(f"{value:g}" for value in values))
            names.report.warning(
                element.place,
                "not-kept",
                f"joint {quote(joint)} is fixed, so its position {shown} is left out",
            )
        return {}
    is_floating = len(parts) == FLOATING_PARTS
    count = COUNTS["floating"] if is_floating else len(parts)
    if not _has_count(element, joint, values, count, names):
        return {}
    if is_floating:
        x, y, z, qx, qy, qz, qw = values
        try:
            pose = Pose.from_quaternion((qw, qx, qy, qz))
        except ArmillaryError as error:
            message = f"joint {quote(joint)}: {str(error).removesuffix('.')}"
            names.report.error(element.place, "bad-number", message)
            return {}
        roll, pitch, yaw = fixed_xyz(pose.rotation)
        values = (x, y, z, yaw, pitch, roll)
    return dict(zip(parts, values, strict=True))


def _has_count(
    element: Element, joint: str, values: tuple[float, ...], count: int, names: Names
) -> bool:
    """Return whether a joint has as many values as coordinates, or report an error."""
    if len(values) == count:
        return True
    names.report.error(
        element.place,
        "wrong-count",
        f"joint {quote(joint)} has {count} "
        f"{'coordinate' if count == 1 else 'coordinates'}, not {len(values)}",
    )
    return False


def _check_follower(
    element: Element,
    joint: str,
    value: float,
    positions: dict[str, float],
    names: Names,
) -> None:
    """Warn of a position that contradicts the joint that this one follows."""
    manipulator = names.manipulator
    (drive,) = manipulator.drives[names.link_behind(joint)]
    leader = manipulator.joint_names[drive.of]
    where = "is not in this posture"
    if leader in positions:
        expected = drive.multiplier * positions[leader] + drive.offset
        if abs(expected - value) <= TOLERANCE * max(1.0, abs(value)):
            return
        where = f"puts it at {expected:g}"
    names.report.warning(
        element.place,
        "not-kept",
        f"joint {quote(joint)} follows {quote(leader)}, which {where}; its own "
        f"position {value:g} is left out",
    )


def _check_limits(posture: Posture, place: Place, names: Names) -> None:
    """Warn of positions outside of the joints' limits."""
    for joint, q in zip(posture.joints, posture.q, strict=True):
        limits = names.manipulator.links[names.link_behind(joint)].limits
        if not limits.contains(q):
            names.report.warning(
                place,
                "outside-limits",
                f"posture {quote(posture.name)} has joint {quote(joint)} at {q:g}, "
                f"outside of its limits {limits.lower:g} and {limits.upper:g}",
            )
