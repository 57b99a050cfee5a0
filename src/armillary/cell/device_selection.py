"""Which joints, base and ends a device has, from what a user names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from armillary.errors import ModelError, quote, unknown
from armillary.kinematics.state import State
from armillary.model.end_effectors import end_effectors, last_link
from armillary.model.group import Group
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.parents import nearest
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK, Workcell

__all__ = ["Choice", "chosen"]

T = TypeVar("T")


class Choice(NamedTuple):
    """What makes a device.

    Attributes:
        joints: Places in the cell's q.
        base: A frame, qualified.
        ends: Frames, qualified.
    """

    joints: tuple[int, ...]
    base: str
    ends: tuple[str, ...]


def chosen(
    state: State,
    names: Sequence[str],
    joints: Sequence[str] | None,
    base: str | None,
    ends: Sequence[str],
) -> Choice:
    """Return the joints, base and ends of a device; see `Cell.device`."""
    cell = state.cell
    if names and joints is not None:
        raise ModelError("A device has joints= or names of what has them, not both.")
    parts = [_part(state, name) for name in names]
    if joints is not None:
        parts = [_of_joints(state, [cell.joint(name) for name in joints])]
    root = cell.qualified(base) if base is not None else _base(state, parts, ends)
    tips = _unique(map(cell.qualified, ends) if ends else _all(parts, "ends"))
    if not tips:
        raise ModelError(
            "A device needs the name of a manipulator or a group, names of joints, or "
            "the frames that it moves."
        )
    places = _unique(_all(parts, "joints"))
    if ends and joints is None:
        between = _between(state, root, tips)
        named, places = places, tuple(k for k in between if not parts or k in places)
        if named and not places:
            ends_text = ", ".join(map(quote, tips))
            raise ModelError(
                f"No joint of {', '.join(map(quote, names))} moves {ends_text} in "
                f"{quote(root)}; name other ends, or what has the joints between."
            )
    return Choice(places, root, tips)


def _base(state: State, parts: Sequence[Choice], ends: Sequence[str]) -> str:
    """Return the base that several parts have in common, or that of the first end."""
    cell = state.cell
    if parts:
        return state.tree.common_frame([part.base for part in parts])
    owner = cell.owners[cell.frame(ends[0]).link] if ends else -1
    return WORLD if owner < 0 else _base_of(cell.manipulators[owner])


def _base_of(manipulator: Manipulator) -> str:
    return f"{manipulator.name}/{manipulator.links[manipulator.base].name}"


def _part(state: State, name: str) -> Choice:
    """Return what a manipulator or a group by its name stands for."""
    cell = state.cell
    if name in cell.index:
        k = cell.index[name]
        links = cell.joints.links[: cell.loop_system.count]
        own = (place for place, link in enumerate(links) if cell.owners[link] == k)
        active = _active(state.tree, own)
        manipulator = cell.manipulators[k]
        ends = tuple(end_effectors(manipulator) or [last_link(manipulator)])
        return Choice(tuple(active), _base_of(manipulator), ends)
    manipulator, group = _find_group(cell, name)
    named = manipulator.group_joints(group.name)
    places = [cell.joint(f"{manipulator.name}/{joint}") for joint in named]
    part = _of_joints(state, list(_active(state.tree, places)))
    if not group.chains:
        return part
    tips = tuple(f"{manipulator.name}/{tip}" for _, tip in group.chains)
    roots = [f"{manipulator.name}/{root}" for root, _ in group.chains]
    root = state.tree.common_frame(roots)
    return Choice(part.joints, root, tips)


def _find_group(cell: Workcell, name: str) -> tuple[Manipulator, Group]:
    groups = {
        f"{manipulator.name}/{group.name}": (manipulator, group)
        for manipulator in cell.manipulators
        for group in manipulator.groups
    }
    found = [full for full, (_, group) in groups.items() if name in {full, group.name}]
    if not found:
        known = (*cell.index, *groups)
        owner = f"cell {quote(cell.name)}"
        raise unknown("manipulator or group", name, known, owner=owner)
    if len(found) > 1:
        choices = ", ".join(map(quote, found))
        raise ModelError(f"Group {quote(name)} is not unique; say {choices}.")
    return groups[found[0]]


def _of_joints(state: State, places: list[int]) -> Choice:
    """Return joints, the frame that carries them all, and the links they move last."""
    cell = state.cell
    if len(set(places)) < len(places):
        names = [cell.joint_names[k] for k in places]
        raise ModelError(f"A device names a joint twice: {names}.")
    tree = state.tree
    links = list(dict.fromkeys(tree.joint_links[place] for place in places))
    parents = [tree.parents[link] for link in links]
    carriers = nearest(tree.parents, parents, links.__contains__)
    ends = tuple(tree.name(link) for link in links if link not in carriers)
    outer = [
        tree.name(link)
        for link, carrier in zip(links, carriers, strict=True)
        if carrier == WORLD_LINK
    ]
    stands = [tree.frame_parent(name) or WORLD for name in outer] or [WORLD]
    return Choice(tuple(places), tree.common_frame(stands), ends)


def _between(state: State, base: str, ends: Sequence[str]) -> tuple[int, ...]:
    """Return the joints between a base and ends, as they first come on the way."""
    tree, cell = state.tree, state.cell
    up = tree.ancestors(cell.frame(base).link)
    found: dict[int, None] = {}
    for end in ends:
        down = tree.ancestors(cell.frame(end).link)
        shared = set(up) & set(down)
        way = [k for k in up if k not in shared]
        way += reversed([k for k in down if k not in shared])
        found |= tree.moving_joints(way)
    return tuple(_active(tree, found))


def _active(tree: Tree, places: Iterable[int]) -> Iterator[int]:
    """Yield the joints that motors drive."""
    for place in places:
        if not tree.cell.links[tree.joint_links[place]].passive:
            yield place


def _all(parts: Sequence[Choice], what: str) -> Iterator[Any]:
    return (item for part in parts for item in getattr(part, what))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
