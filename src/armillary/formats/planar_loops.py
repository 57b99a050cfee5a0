"""Loops that lie in a plane, as formats hold them that know only pins and points."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import msgspec

from armillary.model.link_poses import poses_of
from armillary.model.loops.equations import PlacedLoop
from armillary.model.loops.loop import Closure, Loop
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["opened", "with_pins"]

LETTERS: Final = "xyz"
SAMPLES: Final = 3
PLANAR: Final = 1e-9


def opened(cell: Workcell) -> Workcell:
    """Return a cell without loops, in which all joints move by themselves."""
    return cell.replace(
        loops=(),
        manipulators=tuple(
            each.replace(
                loops=(),
                coupled_limits=(),
                links=tuple(
                    link.replace(coupling=None, passive=False) for link in each.links
                ),
            )
            for each in cell.manipulators
        ),
    )


def with_pins(cell: Workcell, *, turns: bool) -> Workcell:
    """Return a cell whose planar closures hold all three coordinates of a point.

    Where the joints keep the ends of a closure in one plane, whatever their positions,
    directions across the plane say nothing: to hold them changes no motion.

    turns: Whether the closures hold the two turns out of the plane, too, as a pin does;
        otherwise they hold no turn, as a ball does.
    """
    placed = cell.joints.placed_loops
    if not any(isinstance(loop.loop, Closure) for loop in placed):
        return cell
    free = opened(cell)
    tree = Tree.of(free)
    draw = random.Random(0)
    samples = [
        [draw.uniform(-1.0, 1.0) for _ in free.joint_names] for _ in range(SAMPLES)
    ]
    found = [_pinned(loop, tree, samples, turns=turns) for loop in placed]
    if all(new is old.loop for new, old in zip(found, placed, strict=True)):
        return cell
    pinned = iter(found)
    manipulators = tuple(
        each.replace(loops=tuple(next(pinned) for _ in each.loops))
        for each in cell.manipulators
    )
    return cell.replace(manipulators=manipulators, loops=tuple(pinned))


def _pinned(
    placed: PlacedLoop, tree: Tree, samples: Sequence[Sequence[float]], *, turns: bool
) -> Loop:
    loop = placed.loop
    if not isinstance(loop, Closure) or (len(loop.position) == 3 and not loop.rotation):
        return loop
    for k, across in enumerate(LETTERS):
        plane = LETTERS.replace(across, "")
        if not set(plane) <= set(loop.position) or across in loop.rotation:
            continue
        poses = [poses_of(tree, q, [placed.b], placed.a)[0] for q in samples]
        # Both ends have the axis across the plane, and are at one height.
        if all(
            abs(pose.position[k]) < PLANAR and abs(pose.rotation[k][k] - 1.0) < PLANAR
            for pose in poses
        ):
            rotation = plane if turns else ""
            return msgspec.structs.replace(loop, position=LETTERS, rotation=rotation)
    return loop
