"""Keyframes as postures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import TEXT, ElementTable, Row, numbers
from armillary.formats.mjcf.attachments import AttachedBodies
from armillary.formats.mjcf.body import Body
from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.mjcf.joints import BALL_JOINT, FREE
from armillary.formats.mjcf.kept import PREFIX, kept, rest
from armillary.formats.mjcf.trees import BodyGroup, Trees
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.spatial.pose import Pose

__all__ = ["BASE_POSE", "HOME", "KEY", "START", "as_in_the_file", "read_keys"]

KEY: Final = ElementTable[Report](
    "key",
    Row("name", TEXT, default=""),
    Row("qpos", numbers(None), default=None),
)
"""What of a keyframe is read and written."""

HOME, START = "home", "start"
"""The keyframes in which manipulators start; the first of them that there is.

Where the file has a joint at a position `ref` other than 0, and neither of them, the
posture `start` holds these positions, or the limits nearest to them.
"""

TOLERANCE: Final = 1e-12

JointPositions = Mapping[tuple[int, int], tuple[float, ...]]
"""Numbers of `qpos` by the numbers of bodies, and of joints in them."""

BASE_POSE: Final = f"{PREFIX}base_pose"
"""Property of a free base: position and quaternion in the posture of the text."""


def read_keys(
    document: MjcfDocument, bodies: Sequence[Body], trees: Trees, coupled: set[str]
) -> tuple[dict[str, list[Posture]], list[Property]]:
    """Return the postures of each manipulator, and what else keyframes say.

    coupled: The joints that follow others, as `manipulator/joint`.
    """
    report = document.report
    found: dict[str, list[Posture]] = {group.name: [] for group in trees.groups}
    notes: list[Property] = []
    seen: set[str] = set()
    size = sum(joint.q_size for own in trees.joints for joint, _ in own)
    for number, element in enumerate(document.sections.get("keyframe", [])):
        if element.name != "key":
            continue
        values = KEY.read(element, report)
        name = values["name"] or f"key{number}"
        if name in seen:
            message = f"a keyframe is called {quote(name)} already"
            report.error(element.place, "repeated-name", message, hint="Rename one.")
            continue
        seen.add(name)
        other = rest(element, ("name", "qpos"))
        if other is not None:
            report.unsupported.add("what a <key> says beside 'qpos'", element.place)
            notes.append(kept("key", other, description=name))
        qpos = values["qpos"]
        if qpos is None:
            continue
        if len(qpos) != size:
            report.tolerating("it is left out").error(
                element.place,
                "wrong-count",
                f"'qpos' of {element.label} has {len(qpos)} numbers for {size} of the "
                "joints",
            )
            continue
        notes += _add_posture(name, qpos, trees, coupled, found)
    for name, positions in _attached(document):
        if name not in seen:
            seen.add(name)
            qpos = _positions(bodies, trees, positions)
            notes += _add_posture(name, qpos, trees, coupled, found)
    if not seen & {HOME, START}:
        starts = as_in_the_file(trees, coupled)
        # A keyframe has the positions of all joints.
        if any(any(posture.q) for posture in starts.values()):
            for group, posture in starts.items():
                found[group].append(posture)
    return found, notes


def _attached(document: MjcfDocument) -> Iterator[tuple[str, JointPositions]]:
    """Yield the keyframes of attached models: names, and positions of their joints.

    It calls itself for models that are attached to those.
    """
    for each in document.attachments:
        if each.document is document or each.suffix:
            continue  # MuJoCo keeps no keyframes of replicates
        for name, positions in chain(_own(each), _attached(each.document)):
            copied = {
                (each.bodies[body], joint): numbers
                for (body, joint), numbers in positions.items()
                if body in each.bodies
            }
            if copied:
                yield f"{each.prefix}{name}", copied


def _own(attachment: AttachedBodies) -> Iterator[tuple[str, JointPositions]]:
    """Yield the keyframes that stand in the file of an attached model."""
    report = attachment.document.report
    for element in attachment.document.sections.get("keyframe", []):
        values = KEY.read(element, report)
        qpos = values["qpos"]
        if rest(element, ("name", "qpos")) is not None:
            what = "what a <key> of an attached model says beside 'qpos'"
            report.unsupported.add(what, element.place)
        joints = [
            (body, joint, size)
            for body, each in enumerate(attachment.source)
            for joint, size in enumerate(each.q_sizes)
        ]
        ends = list(accumulate((size for _, _, size in joints), initial=0))
        if qpos is None or len(qpos) != ends[-1] or not values["name"]:
            continue
        yield (
            values["name"],
            {
                (body, joint): tuple(qpos[start : start + size])
                for (body, joint, size), start in zip(joints, ends, strict=False)
            },
        )


def _positions(
    bodies: Sequence[Body], trees: Trees, given: JointPositions
) -> list[float]:
    """Return `qpos` of all joints; those that are not given are as in the file."""
    qpos: list[float] = []
    for number, (body, joints) in enumerate(zip(bodies, trees.joints, strict=True)):
        for k, (joint, _) in enumerate(joints):
            if (number, k) in given:
                qpos += given[number, k]
            elif joint.type == FREE:
                qpos += (*body.pose.position, *body.pose.quaternion())
            elif joint.type == BALL_JOINT:
                qpos += (1.0, 0.0, 0.0, 0.0)
            else:
                qpos.append(joint.ref)
    return qpos


def as_in_the_file(trees: Trees, coupled: set[str]) -> dict[str, Posture]:
    """Return for each manipulator the posture in which the file has the bodies.

    Positions beyond limits are at these; manipulators without joints have none.
    """
    found: dict[str, Posture] = {}
    for group in trees.groups:
        positions = [
            (name, min(max(joint.ref, joint.limits.lower), joint.limits.upper))
            for at, joints in zip(trees.bodies, trees.joints, strict=True)
            if at is not None and at.group is group
            for joint, names in joints
            for name in names
            if f"{group.name}/{name}" not in coupled
        ]
        if positions:
            joints_of, q = zip(*positions, strict=True)
            found[group.name] = Posture(name=START, joints=joints_of, q=q)
    return found


def _add_posture(
    name: str,
    qpos: Sequence[float],
    trees: Trees,
    coupled: set[str],
    found: dict[str, list[Posture]],
) -> list[Property]:
    """Add the posture of each manipulator; return the poses of free bases."""
    notes: list[Property] = []
    positions: dict[str, list[tuple[str, float]]] = {}
    place = 0
    for at, joints in zip(trees.bodies, trees.joints, strict=True):
        for joint, names in joints:
            numbers = tuple(qpos[place : place + joint.q_size])
            place += joint.q_size
            assert at is not None, "a joint is on a body that is in a manipulator"
            if joint.type == FREE:
                if _is_where_it_stands(numbers, at.group):
                    continue
                notes.append(
                    Property(
                        name=BASE_POSE, of=at.qualified, text=name, numbers=numbers
                    )
                )
                continue
            values = numbers
            if joint.type == BALL_JOINT:
                turn = (
                    Pose.from_quaternion(numbers)
                    if math.hypot(*numbers) > 0.0
                    else Pose.identity()
                )
                values = turn.rpy()[::-1]
            for each, value in zip(names, values, strict=True):
                if f"{at.group.name}/{each}" not in coupled:
                    positions.setdefault(at.group.name, []).append((each, value))
    for group, pairs in positions.items():
        joints_of, q = zip(*pairs, strict=True)
        found[group].append(Posture(name=name, joints=joints_of, q=q))
    return notes


def _is_where_it_stands(numbers: Sequence[float], group: BodyGroup) -> bool:
    """Return whether the pose of a free base is that of its body in the file."""
    if math.hypot(*numbers[3:]) == 0.0:
        return False
    pose = Pose.from_quaternion(numbers[3:], numbers[:3])
    mount = Pose.identity() if group.mount is None else group.mount.pose
    return pose.approx_equal(mount, TOLERANCE)
