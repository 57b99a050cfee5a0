"""Links that stand for rods between two frames, taken out of the models they are in.

A link that says so, by its length in `armillary:rod`, is between two balls: it has no
coordinates of its own. One that telescopes has a ball at one end, and a joint that
slides a second link out of it, at the other end of which the second ball is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from armillary.formats.diagnostic import Place, Report
from armillary.formats.sdf.graph import Top
from armillary.formats.sdf.joints import COORDINATE, SdfJoint
from armillary.formats.sdf.links import LinkElement
from armillary.formats.sdf.scopes import Scope, SdfNode

__all__ = ["FoundRod", "take_rods"]


class FoundRod(NamedTuple):
    """A rod of a file.

    Attributes:
        name: In the cell, may be empty.
        length: As the file says it [m]; without that of the joint.
        a, b: The links or frames at its ends.
        by: The joint whose coordinate is added; None for one that is rigid.
        place: Of its first ball, which comes where it is among loops.
    """

    name: str
    length: float
    a: SdfNode
    b: SdfNode
    by: SdfNode | None
    place: Place


def take_rods(world: Scope, tops: Sequence[Top], report: Report) -> list[FoundRod]:
    """Return the rods of a world, and take their links and joints out of its models."""
    marked = [(top, link) for top in tops for link in top.links if _length(link)]
    if not marked:
        return []
    joints = [node for top in tops for node in top.joints]
    joints += world.of_kind("joint")
    found: list[FoundRod] = []
    for top, link in marked:
        rod, balls = _rod(link, joints)
        if rod is None:
            view = report.tolerating("it is read as any other link")
            message = f"{link.label} is a rod, but not between two balls"
            view.error(link.place, "bad-loop", message)
            continue
        found.append(rod)
        top.links.remove(link)
        for ball in balls:
            owner = next((t.joints for t in tops if ball in t.joints), world.order)
            owner.remove(ball)
    return found


def _length(link: SdfNode) -> bool:
    return isinstance(link.body, LinkElement) and link.body.rod is not None


def _rod(
    link: SdfNode, joints: Sequence[SdfNode]
) -> tuple[FoundRod | None, list[SdfNode]]:
    """Return the rod that a link is, with its balls; None if it is not one."""
    balls = _at(link, joints, "ball")
    slides = [
        node
        for node in joints
        if isinstance(node.body, SdfJoint) and _end(node, node.body.parent) is link
    ]
    by, on = None, ""
    if len(slides) == 1 and len(balls) == 1:
        (by,) = slides
        far = _end(by, by.body.child)
        if far is not None and isinstance(far.body, LinkElement):
            on = far.body.on
            balls += _at(far, joints, "ball")
        if by.body.type != "prismatic" or by.scope.path(on) is None or not on:
            return None, []
    elif slides:
        return None, []
    if len(balls) != 2:
        return None, []
    a, b = (_end(ball, ball.body.parent) for ball in balls)
    length = link.body.rod
    if a is None or b is None or (by is None and not length > 0.0):
        return None, []
    if by is not None:
        # Its second link is in the cell where the coordinate is.
        by.body = replace(by.body, type=COORDINATE, parent=on)
    name = link.name if link.body.named is None else link.body.named
    return FoundRod(name, length, a, b, by, balls[0].place), balls


def _at(link: SdfNode, joints: Sequence[SdfNode], kind: str) -> list[SdfNode]:
    """Return the joints of a type that carry a link."""
    return [
        node
        for node in joints
        if isinstance(node.body, SdfJoint)
        and node.body.type == kind
        and _end(node, node.body.child) is link
    ]


def _end(joint: SdfNode, name: str) -> SdfNode | None:
    """Return the link or frame that a joint names; None for the world, and without."""
    path = joint.scope.path(name, joint.model_frame)
    return path[-1] if path and path[-1].inner is None else None
