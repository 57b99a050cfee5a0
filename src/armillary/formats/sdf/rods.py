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
    taken: set[SdfNode] = set()
    for top, link in marked:
        rod, balls = _rod(link, [node for node in joints if node not in taken])
        if rod is None:
            view = report.tolerating("it is read as any other link")
            message = f"{link.label} is a rod, but not between two balls"
            view.error(link.place, "bad-loop", message)
            continue
        found.append(rod)
        taken.update(balls)
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
    """Return the rod that a link is, with its balls; None if it is not one.

    Nothing else may be at it.
    """
    at = _at(link, joints)
    balls = [node for node in at if node.body.type == "ball"]
    slides = [node for node in at if node.body.type == "prismatic"]
    by, on = None, ""
    if len(at) == 2 and len(balls) == len(slides) == 1:
        (by,) = slides
        far = _end(by, by.body.child)
        if far is None or far is link or not isinstance(far.body, LinkElement):
            return None, []
        on = far.body.on
        beyond = [node for node in _at(far, joints) if node is not by]
        carrier = by.scope.path(on) if on else None
        if len(beyond) != 1 or not carrier or carrier[-1] in (link, far):
            return None, []
        balls += (node for node in beyond if node.body.type == "ball")
    if len(balls) != 2 or (by is None and len(at) != 2):
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


def _at(link: SdfNode, joints: Sequence[SdfNode]) -> list[SdfNode]:
    """Return the joints that a link is an end of."""
    return [
        node
        for node in joints
        if isinstance(node.body, SdfJoint)
        and link in (_end(node, node.body.parent), _end(node, node.body.child))
    ]


def _end(joint: SdfNode, name: str) -> SdfNode | None:
    """Return the link or frame that a joint names; None for the world, and without."""
    path = joint.scope.path(name, joint.model_frame)
    return path[-1] if path and path[-1].inner is None else None
