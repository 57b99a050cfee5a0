"""`<group_state>`: postures, and the pose of the base in them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.srdf.elements import ELEMENTS, IN_STATE
from armillary.formats.srdf.extensions import BASE_POSE
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element
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


def read_states(robot: Element, names: Names) -> tuple[list[Posture], list[Property]]:
    """Return the postures, and properties with the pose of the base in them.

    Names of states need to be unique in their groups only; where two groups have a
    state of one name, the postures are called `group_name`.
    """
    elements = robot.children_named("group_state")
    counts = Counter(map(_name_in, elements))
    postures: list[Posture] = []
    bases: list[Property] = []
    seen: dict[str, Place] = {}
    for element in elements:
        given, group = ELEMENTS.read(element, names).values()
        _check_group(element, group, names)
        positions, base = _read_joints(element, names)
        if given is None:
            continue
        name = given
        if counts[given] > 1:
            name = f"{group}_{given}" if group else given
            names.report.note(
                element.place,
                "renamed",
                f"several groups have a state called {quote(given)}; that of "
                f"{quote(group)} becomes {quote(name)}",
            )
        if name in seen:
            names.report.error(
                element.place,
                "repeated-name",
                f"group {quote(group)} has a state called {quote(given)} already, at "
                f"line {seen[name].line}",
                hint="Rename one.",
            )
            continue
        seen[name] = element.place
        q = tuple(positions.values())
        postures.append(Posture(name=name, joints=tuple(positions), q=q))
        _check_limits(postures[-1], element.place, names)
        if base is not None:
            pose = Property(name=BASE_POSE, of=names.base, text=name, numbers=base)
            bases.append(pose)
    return postures, bases


def _name_in(element: Element) -> str:
    return element.attributes.get("name", "").strip()


def _check_group(element: Element, group: str, names: Names) -> None:
    """Warn of a state without a group, or of one that does not exist."""
    if not group:
        names.report.warning(
            element.place, "missing-attribute", f"{element.label} has no group"
        )
    else:
        names.check_group(element, group)


def _read_joints(
    element: Element, names: Names
) -> tuple[dict[str, float], tuple[float, ...] | None]:
    """Return the positions of joints in a state, and the pose of the base if given."""
    positions: dict[str, float] = {}
    followers: list[tuple[Element, str, float]] = []
    base: tuple[float, ...] | None = None
    for child in element.children_named("joint"):
        joint, values = IN_STATE.read(child, names).values()
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
            elif part in names.manipulator.all_names:
                positions[part] = value
            else:
                followers.append((child, part, value))
    for child, joint, value in followers:
        _check_follower(child, joint, value, positions, names)
    return positions, base


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
    if len(parts) == 1 and joint not in names.moving:
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
        # Position and quaternion become the coordinates of the six joints that replace
        # a floating one: Rz(yaw) Ry(pitch) Rx(roll).
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
    (drive,) = manipulator.drives[names.link_behind[joint]]
    leader = manipulator.all_names[drive.of]
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
        limits = names.manipulator.links[names.link_behind[joint]].limits
        if not limits.contains(q):
            names.report.warning(
                place,
                "outside-limits",
                f"posture {quote(posture.name)} has joint {quote(joint)} at {q:g}, "
                f"outside of its limits {limits.lower:g} and {limits.upper:g}",
            )
