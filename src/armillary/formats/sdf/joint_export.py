"""Joints of manipulators as those of SDF: one joint for what reading splits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.joint_axis import JointAxis, joint_axis_of, lost_joints
from armillary.formats.sdf.parts import PIVOT
from armillary.formats.several_joints import BALL
from armillary.model.coupling import Coupling
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Vector3, dot

__all__ = ["LEG", "ExportedJoint", "ExportedStep", "exported_joints"]

ORTHOGONAL: Final = 1e-12
LEG: Final = "leg"
"""The type of a coordinate that is written as the slide of a rod that telescopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStep:
    """One axis of a joint, and its coordinate.

    Attributes:
        name: Of the coordinate.
        axis: About or along which it moves.
        limits, dynamics, coupling, passive: As the link has them.
        at: Where the coordinate is in the file [m or rad].
    """

    name: str
    axis: Vector3
    limits: Limits
    dynamics: JointDynamics
    coupling: Coupling | None
    passive: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedJoint:
    """A joint of SDF.

    Attributes:
        name: In the cell.
        type: In SDF.
        parent: Name of the link that carries the other.
        link: The one that is carried.
        in_parent: The pose of the link in its parent, in the file.
        axis: Of any other joint: what is before and after its motion.
        steps: Its axes; none of a ball.
        pitch: Of a screw [m/rad].
    """

    name: str
    type: str
    parent: str
    link: Link
    in_parent: Pose = IDENTITY
    axis: JointAxis | None = None
    steps: Sequence[ExportedStep] = ()
    pitch: float = 0.0


def exported_joints(
    m: Manipulator,
    report: Report,
    *,
    needed: Collection[str] = (),
    at: Mapping[str, float],
    legs: Mapping[str, float],
) -> list[ExportedJoint]:
    """Return the joints of a manipulator, depth first.

    needed: Links that something refers to, which must be in the file.
    at: Where coordinates are in the file, by name; at zero where it does not say.
    legs: The lengths of rods in the file, by the coordinates that they take.

    What reading makes of one joint is one joint again: a ball, two axes, or a line
    beside a link, with bare links between them.
    """
    joints: list[ExportedJoint] = []
    inside: set[str] = set()
    loop_ends = {end for loop in m.loops for end in (loop.a, loop.b)}
    lost = lost_joints(m, other={Screw})
    for k in m.order:
        link = m.links[k]
        if link.parent is None or link.name in inside:
            continue
        if link.coordinate in legs:
            joints.append(_leg(link, at.get(link.coordinate, 0.0), legs))
            continue
        chain = _bare_chain(m, k, {*needed, *loop_ends})
        names = [each.coordinate for each in chain]
        is_whole = not any(name in lost or at.get(name) for name in names)
        joint = _several(chain) if is_whole else None
        if joint is not None:
            inside |= {each.name for each in chain}
        else:
            joint = _single(
                link, report, lost.get(link.coordinate), at.get(link.coordinate)
            )
        joints.append(joint)
    return joints


def _bare_chain(m: Manipulator, k: int, needed: Collection[str]) -> list[Link]:
    """Return a link and the one below it, two of them below bare ones."""
    chain = [m.links[k]]
    while len(chain) < 3 and len(m.children[k]) == 1:
        if not _is_bare(chain[-1]) or chain[-1].name in needed:
            break
        (k,) = m.children[k]
        chain.append(m.links[k])
    return chain


def _is_bare(link: Link) -> bool:
    """Return whether a link is called like its joint and has nothing on it."""
    bare = Link(name=link.name, parent=link.parent, joint=link.joint)
    kept = {
        name: getattr(link, name)
        for name in ("joint_name", "limits", "dynamics", "coupling", "passive")
    }
    is_so = msgspec.structs.replace(bare, **kept) == link
    return is_so and link.coordinate == link.name


def _several(chain: Sequence[Link]) -> ExportedJoint | None:
    """Return the one joint that links behind each other are; None if they are not."""
    if len(chain) < 2:
        return None
    first, second = chain[0], chain[1]
    name, _, end = first.coordinate.rpartition("_")
    if second.coordinate == f"{first.coordinate}{PIVOT}" and not second.moves:
        axis = joint_axis_of(first.joint)
        if axis is None or not axis.after.is_identity:
            return None
        behind = second.joint.precursor
        whole = JointAxis(
            slides=axis.slides, axis=axis.axis, before=axis.before, after=behind
        )
        kind = _type(axis, first)
        step = _step(first, axis.axis)
        return _joint(first.coordinate, kind, first, second, whole, [step])
    axes = [joint_axis_of(link.joint) for link in chain]
    are_plain = all(
        a is not None and not a.slides and a.after.is_identity for a in axes
    ) and all(a is not None and a.before.is_identity for a in axes[1:])
    if not are_plain or not name:
        return None
    turns = [a for a in axes if a is not None]
    ends = [link.coordinate for link in chain]
    if len(chain) == 3 and ends == [f"{name}_{end}" for end in BALL]:
        is_ball = all(
            (link.limits, link.dynamics, link.coupling, link.passive)
            == (UNLIMITED, NO_DYNAMICS, None, False)
            for link in chain
        ) and [Revolute(axis=a.axis) for a in turns] == [*BALL.values()]
        if is_ball:
            return _joint(name, "ball", first, chain[2], turns[0], [])
    if end == "1" and second.coordinate == f"{name}_2":
        cosine = abs(float(dot(turns[0].axis, turns[1].axis)))
        kind = "universal" if cosine < ORTHOGONAL else "revolute2"
        pairs = zip(chain[:2], turns[:2], strict=True)
        steps = [_step(link, a.axis) for link, a in pairs]
        return _joint(name, kind, first, second, turns[0], steps)
    return None


def _joint(
    name: str,
    kind: str,
    first: Link,
    last: Link,
    axis: JointAxis,
    steps: Sequence[ExportedStep],
) -> ExportedJoint:
    return ExportedJoint(
        name=name,
        type=kind,
        parent=first.parent or "",
        link=last,
        in_parent=axis.before @ axis.after,
        axis=axis,
        steps=steps,
    )


def _leg(link: Link, at: float, legs: Mapping[str, float]) -> ExportedJoint:
    """Return the slide that takes the coordinate of a rod that telescopes."""
    axis = (0.0, 0.0, 1.0)
    return ExportedJoint(
        name=link.coordinate,
        type=LEG,
        parent=link.parent or "",
        link=link,
        in_parent=Pose.translation(0.0, 0.0, legs[link.coordinate]),
        steps=[_step(link, axis, at)],
    )


def _single(
    link: Link, report: Report, rest: float | None, at: float | None
) -> ExportedJoint:
    """Return the joint of one link.

    rest: Where it is fixed, if SDF does not have it [m or rad].
    at: Where it is in the file, if not at zero [m or rad].
    """
    name, parent = link.coordinate, link.parent or ""
    if rest is not None:
        rest = rest if at is None else at
        report.warning(
            NOWHERE,
            "lost-joint",
            f"joint {quote(name)} is a {type(link.joint).__name__}, or follows one, "
            f"which SDF does not have; it is written as fixed at {rest:g}",
        )
        pose = link.joint.precursor if link.inputs else link.joint.transform(rest)
        return ExportedJoint(
            name=name, type="fixed", parent=parent, link=link, in_parent=pose
        )
    if not link.moves:
        if link.limits != UNLIMITED:
            report.unsupported.add("a limit of a fixed joint")
        pose = link.joint.precursor
        return ExportedJoint(
            name=name, type="fixed", parent=parent, link=link, in_parent=pose
        )
    if type(link.joint) is Screw:
        assert isinstance(link.joint, Screw), "it is its type"
        screw = link.joint
        return ExportedJoint(
            name=name,
            type="screw",
            parent=parent,
            link=link,
            in_parent=screw.transform(at or 0.0),
            axis=JointAxis(slides=False, axis=screw.axis, before=screw.precursor),
            steps=[_step(link, screw.axis, at or 0.0)],
            pitch=screw.pitch,
        )
    axis = joint_axis_of(link.joint)
    assert axis is not None, "others are lost"
    if not axis.after.is_identity:
        report.note(
            NOWHERE,
            "offset-link",
            f"joint {quote(name)} turns about a line beside its link; reading puts a "
            "link between",
        )
    kind, steps = _type(axis, link), [_step(link, axis.axis, at or 0.0)]
    joint = _joint(name, kind, link, link, axis, steps)
    return replace(joint, in_parent=link.joint.transform(at)) if at else joint


def _type(axis: JointAxis, link: Link) -> str:
    if axis.slides:
        return "prismatic"
    limits = link.limits
    is_free = (limits.lower, limits.upper) == (UNLIMITED.lower, UNLIMITED.upper)
    return "continuous" if is_free else "revolute"


def _step(link: Link, axis: Vector3, at: float = 0.0) -> ExportedStep:
    return ExportedStep(
        name=link.coordinate,
        axis=axis,
        limits=link.limits,
        dynamics=link.dynamics,
        coupling=link.coupling,
        passive=link.passive,
        at=at,
    )
