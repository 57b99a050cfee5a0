"""Closed loops as joints of SDF: what closes them, and where all joints are then.

The poses in a file close the loops. Where these are open with all joints at zero, the
file has the cell at home: `armillary:at` of an axis says where its coordinate is in
the file, and limits and couplings count from there, so that other programs find the
loops closed. A closure is a joint between its two frames, which says in
`armillary:position` and `armillary:rotation` what coincides. A rod is a bare link
between two balls; one that telescopes is a second link, whose joint slides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from armillary.formats.planar_loops import opened, with_pins
from armillary.formats.sdf.elements import ELEMENTS, pose_element
from armillary.formats.xml import Element
from armillary.model.joints import LengthCoordinate
from armillary.model.link import Link
from armillary.model.link_poses import poses_of
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.shapes.segment import facing
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.vector import norm

__all__ = ["ClosedLoop", "LoopPlan", "closure_element", "loop_plan", "rod_elements"]

LETTERS: Final = "xyz"
CLOSED: Final = 1e-9
"""How far apart frames of a closed loop may be [m, rad]."""
SHORTEST: Final = 1e-6
"""Rods from here on have a direction [m]."""

AXES: Final = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}

Positions = Mapping[str, float]


class ClosedLoop(NamedTuple):
    """A loop that the file closes.

    Attributes:
        loop: As the cell has it.
        written: As the joints of SDF hold it: with pins where it is planar.
        X_AB: The pose of its second frame in the first one, in the file.
        leg: The link of the coordinate by which it telescopes; None of other loops.
    """

    loop: Closure | Rod
    written: Closure | Rod
    X_AB: Pose
    leg: Link | None = None


class LoopPlan(NamedTuple):
    """What is written of the loops of a cell.

    Attributes:
        own: The loops of each manipulator that are written, by its name: all or none.
        between: Those of the cell: all or none.
        positions: Where the coordinates of manipulators are in the file, by names;
            at zero where there are none [m or rad].
    """

    own: Mapping[str, Sequence[ClosedLoop]]
    between: Sequence[ClosedLoop]
    positions: Mapping[str, Positions]


def loop_plan(cell: Workcell) -> LoopPlan:
    """Return which loops joints of SDF close, and where the joints are."""
    placed = cell.joints.placed_loops
    if not placed:
        return LoopPlan({}, (), {})
    pinned = with_pins(cell, turns=True).joints.placed_loops
    free = opened(cell)
    tree = Tree.of(free)
    homes = {m.name: _at_home(m, cell) for m in cell.manipulators}
    is_single = len(cell.manipulators) == 1

    def closed(loops: slice, names: Sequence[str], legs: Mapping[str, Link]) -> Any:
        """Return the loops with poses where these manipulators are at home."""
        at = {
            (n if is_single else f"{name}/{n}"): value
            for name in names
            for n, value in homes[name].items()
        }
        q = [at.get(name, 0.0) for name in free.joint_names]
        found = [
            ClosedLoop(
                cast(Closure | Rod, old.loop),
                cast(Closure | Rod, new.loop),
                poses_of(tree, q, [old.b], old.a)[0],
                legs.get(old.loop.joint),
            )
            for old, new in zip(placed[loops], pinned[loops], strict=True)
        ]
        return found if all(_closes(each, at) for each in found) else None

    own: dict[str, Sequence[ClosedLoop]] = {}
    positions: dict[str, Positions] = {}
    start = 0
    for m in cell.manipulators:
        loops = slice(start, start + len(m.loops))
        start = loops.stop
        if not m.loops:
            continue
        legs = _legs(m)
        for names in ((), (m.name,)):
            found = closed(loops, names, legs)
            if found is not None:
                own[m.name] = found
                if names:
                    positions[m.name] = homes[m.name]
                break
    between: Sequence[ClosedLoop] = ()
    if cell.loops:
        ends = {
            end.partition("/")[0] for each in cell.loops for end in (each.a, each.b)
        }
        moved = [name for name in homes if name in positions]
        together = [name for name in homes if name in ends or name in positions]
        for names in (moved, together):
            found = closed(slice(start, None), names, {})
            if found is not None:
                between = found
                positions |= {name: homes[name] for name in names}
                break
    return LoopPlan(own, between, positions)


def _at_home(m: Manipulator, cell: Workcell) -> Positions:
    """Return where the coordinates of a manipulator are at home, loops closed."""
    prefix = "" if len(cell.manipulators) == 1 else f"{m.name}/"
    home = dict(zip(cell.joints.all_names, cell.joints.home, strict=True))
    links = {link.coordinate: link for link in m.links if link.moves}
    found: dict[str, float] = {}
    for name, link in links.items():
        chain = [link]
        while (coupling := chain[-1].coupling) is not None:
            chain.append(links[coupling.of])
        q = home.get(f"{prefix}{chain.pop().coordinate}", 0.0)
        for follower in reversed(chain):
            assert follower.coupling is not None, "it follows"
            q = follower.coupling.multiplier * q + follower.coupling.offset
        found[name] = q
    return found


def _legs(m: Manipulator) -> dict[str, Link]:
    """Return the links of coordinates that nothing but the length of one rod takes."""
    used = [loop.joint for loop in m.loops]
    named = {end for loop in m.loops for end in (loop.a, loop.b)}
    leaders = {link.coupling.of for link in m.links if link.coupling is not None}
    parents = {link.parent for link in m.links}
    return {
        link.coordinate: link
        for link in m.links
        if link.joint == LengthCoordinate()
        and used.count(link.coordinate) == 1
        and link.coordinate not in leaders
        and link.coupling is None
        and link.name not in named | parents
        and not (link.frames or link.visuals or link.collisions)
        and link.inertia is None
        and link.primary.is_identity
    }


def _closes(closed: ClosedLoop, at: Positions) -> bool:
    """Return whether joints of SDF hold a loop, which is closed in the file."""
    loop, X_AB = closed.written, closed.X_AB
    if isinstance(loop, Rod):
        if loop.by and closed.leg is None:
            return False
        length = loop.length + (at.get(loop.by, 0.0) if loop.by else 0.0)
        found = float(norm(X_AB.position))
        return found > SHORTEST and abs(found - length) < CLOSED
    if _loop_type(loop) is None:
        return False
    # Of a rotation R the skew part (R - R') / 2 holds the turns about x, y and z.
    (_, xy, xz), (yx, _, yz), (zx, zy, _) = X_AB.rotation
    turns = dict(zip(LETTERS, (zy - yz, xz - zx, yx - xy), strict=True))
    moves = dict(zip(LETTERS, X_AB.position, strict=True))
    gaps = [moves[k] for k in loop.position]
    if len(loop.rotation) == 3:
        gaps += turns.values()
    elif loop.rotation:
        (axis,) = set(LETTERS) - set(loop.rotation)
        k = LETTERS.index(axis)
        gaps += [X_AB.rotation[k][k] - 1.0]
    return all(abs(float(gap)) < CLOSED for gap in gaps)


def _loop_type(loop: Closure) -> tuple[str, str] | None:
    """Return the type of the joint that a closure is, and the letter of its axis."""
    position, rotation = (set(axes) for axes in (loop.position, loop.rotation))
    full = set(LETTERS)
    if position == full and rotation == full:
        return "fixed", ""
    if position == full and not rotation:
        return "ball", ""
    if position == full and len(rotation) == 2:
        return "continuous", (full - rotation).pop()
    if rotation == full and len(position) == 2:
        return "prismatic", (full - position).pop()
    return None


# Elements


def closure_element(closed: ClosedLoop, name: str, ends: Sequence[str]) -> Element:
    """Return the joint that a closure is.

    Args:
        closed: The closure.
        name: Of the joint in the file.
        ends: What the frames are called there.
    """
    loop, written = closed.loop, closed.written
    assert isinstance(loop, Closure) and isinstance(written, Closure), "a closure"
    kind, letter = _loop_type(written) or ("", "")
    axis: list[Element] = []
    if letter:
        inside = ELEMENTS.write("xyz", text=AXES[letter]), ELEMENTS.write("limit")
        axis = [ELEMENTS.write("axis", None, *inside)]
    fields: dict[str, Any] = {
        "name": name,
        "as_": None if name == loop.name else loop.name,
        "position": loop.position,
        "rotation": loop.rotation,
        "type": kind,
        "parent": ends[0],
        "child": ends[1],
    }
    return ELEMENTS.write("joint", fields, *axis)


def rod_elements(
    closed: ClosedLoop,
    name: str,
    ends: Sequence[str],
    free: Callable[[str], str],
    *,
    leg: str = "",
    inside: Sequence[Element] = (),
) -> list[Element]:
    """Return the link of a rod, and the balls at its ends.

    Args:
        closed: The rod.
        name: Of its link in the file.
        ends: What the frames are called there, the first in the model of the link.
        free: Makes names of the model that are free.
        leg: The link that slides out of it; empty for one that does not telescope.
        inside: What else is in its link.
    """
    rod = closed.loop
    assert isinstance(rod, Rod), "a rod"
    along = closed.X_AB.position
    length = float(norm(along))
    fields = {
        "name": name,
        "as_": None if name == rod.name else rod.name,
        "rod": rod.length,
    }
    link = ELEMENTS.write(
        "link", fields, *pose_element(facing(along), ends[0]), *inside
    )
    inner = {"name": free(f"{name}_a"), "type": "ball"}
    outer = {"name": free(f"{name}_b"), "type": "ball"}
    at_end = [] if leg else pose_element(Pose.translation(0.0, 0.0, length))
    return [
        link,
        ELEMENTS.write("joint", inner | {"parent": ends[0], "child": name}),
        ELEMENTS.write(
            "joint", outer | {"parent": ends[1], "child": leg or name}, *at_end
        ),
    ]
