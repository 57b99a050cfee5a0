"""Group states as postures, and where they have the base."""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.srdf.names import FLOATING, PLANAR, Names
from armillary.formats.xml import Element, report_unused
from armillary.model.group import Group
from armillary.model.posture import Posture
from armillary.spatial.euler import fixed_xyz
from armillary.spatial.pose import Pose

__all__ = ["BasePose", "read_states"]

ROOT_JOINT: Final = "root_joint"
"""What Pinocchio calls the joint of a base that moves freely."""

TOLERANCE: Final = 1e-6
COUNTS: Final = {"floating": 7, "planar": 3, "fixed": 0}


class BasePose(NamedTuple):
    """Where a posture has the base: x, y, z, quaternion x y z w; or x, y, angle."""

    posture: str
    numbers: tuple[float, ...]


class _State(NamedTuple):
    """A posture to be."""

    name: str
    group: str
    positions: dict[str, float]
    base: tuple[float, ...] | None
    place: Place


def read_states(
    robot: Element, names: Names, groups: list[Group]
) -> tuple[list[Posture], list[BasePose]]:
    """Return the postures, and where they have the base.

    Names of states are unique in their groups alone; where two groups have one of the
    same name, the postures are called `group_name`.
    """
    known = [group.name for group in groups]
    states: list[_State] = []
    for element in robot.children_named("group_state"):
        state = _read_state(element, names, known)
        report_unused(element, names.report)
        if state is not None:
            states.append(state)
    postures: list[Posture] = []
    bases: list[BasePose] = []
    seen: dict[str, Place] = {}
    count: dict[str, int] = {}
    for state in states:
        count[state.name] = count.get(state.name, 0) + 1
    for state in states:
        name = state.name
        if count[name] > 1:
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
        positions = state.positions
        postures.append(
            Posture(name=name, joints=tuple(positions), q=tuple(positions.values()))
        )
        _check_limits(postures[-1], state.place, names)
        if state.base is not None:
            bases.append(BasePose(name, state.base))
    return postures, bases


def _read_state(element: Element, names: Names, known: list[str]) -> _State | None:
    name = names.of(element, "name")
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
        joint = names.of(child, "name")
        values = child.numbers("value", None, names.report, required=True)
        report_unused(child, names.report)
        if joint is None or values is None:
            continue
        if _is_base(joint, values, names):
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


def _is_base(joint: str, values: tuple[float, ...], names: Names) -> bool:
    """Return whether this is where the base is."""
    if joint in names.virtual:
        return True
    return joint == ROOT_JOINT and len(values) == COUNTS["floating"]


def _base(
    element: Element, joint: str, values: tuple[float, ...], names: Names
) -> tuple[float, ...] | None:
    virtual = names.virtual.get(joint)
    count = COUNTS["floating" if virtual is None else virtual.type]
    if len(values) != count:
        _tell_count(element, joint, values, count, names)
        return None
    names.report.note(
        element.place,
        "base-pose",
        f"where the base is in this posture is kept as a property; place it with "
        f"state.place({quote(names.manipulator.name)}, ...)",
    )
    return values or None


def _positions(
    element: Element, joint: str, values: tuple[float, ...], names: Names
) -> dict[str, float]:
    """Return the positions of the joints that a name stands for."""
    parts = names.joints(element, joint)
    count = {len(FLOATING): COUNTS["floating"], len(PLANAR): COUNTS["planar"]}.get(
        len(parts), len(parts)
    )
    if not parts:
        return {}
    if len(parts) == 1 and not names.moves(joint):
        _tell_fixed(element, joint, values, names)
        return {}
    if len(values) != count:
        _tell_count(element, joint, values, count, names)
        return {}
    if len(parts) == len(FLOATING):
        x, y, z, *xyzw = values
        try:
            pose = Pose.from_quaternion((xyzw[3], *xyzw[:3]))
        except ArmillaryError as error:
            message = f"joint {quote(joint)}: {str(error).removesuffix('.')}"
            names.report.error(element.place, "bad-number", message)
            return {}
        roll, pitch, yaw = fixed_xyz(pose.rotation)
        values = (x, y, z, yaw, pitch, roll)
    return dict(zip(parts, values, strict=True))


def _tell_count(
    element: Element, joint: str, values: tuple[float, ...], count: int, names: Names
) -> None:
    names.report.error(
        element.place,
        "wrong-count",
        f"joint {quote(joint)} has {count} "
        f"{'coordinate' if count == 1 else 'coordinates'}, not {len(values)}",
    )


def _tell_fixed(
    element: Element, joint: str, values: tuple[float, ...], names: Names
) -> None:
    if any(values):
        shown = quote(" ".join(f"{value:g}" for value in values))
        names.report.warning(
            element.place,
            "not-kept",
            f"joint {quote(joint)} is fixed, so its position {shown} is left out",
        )


def _check_follower(
    element: Element,
    joint: str,
    value: float,
    positions: dict[str, float],
    names: Names,
) -> None:
    """Warn of a position that a joint cannot have, for it follows another."""
    manipulator = names.manipulator
    drive = manipulator.drives[names.link_behind(joint)]
    assert drive is not None, "a joint that follows moves"
    leader = manipulator.joint_names[drive.of]
    wanted = drive.multiplier * positions.get(leader, 0.0) + drive.offset
    if leader in positions and abs(wanted - value) <= TOLERANCE * max(1.0, abs(value)):
        return
    where = (
        f"puts it at {wanted:g}" if leader in positions else "is not in this posture"
    )
    names.report.warning(
        element.place,
        "not-kept",
        f"joint {quote(joint)} follows {quote(leader)}, which {where}; its own "
        f"position {value:g} is left out",
    )


def _check_limits(posture: Posture, place: Place, names: Names) -> None:
    """Warn of positions that a joint's limits exclude."""
    for joint, q in zip(posture.joints, posture.q, strict=True):
        limits = names.manipulator.links[names.link_behind(joint)].limits
        if not limits.contains(q):
            names.report.warning(
                place,
                "outside-limits",
                f"posture {quote(posture.name)} has joint {quote(joint)} at {q:g}, "
                f"outside of its limits {limits.lower:g} and {limits.upper:g}",
            )
