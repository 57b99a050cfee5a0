"""Named groups of joints: an arm, its hand, both together."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec

from armillary.errors import ModelError, quote
from armillary.model.fields import EMPTY, TupleOf, store_tuples
from armillary.model.parents import ancestors

__all__ = ["Group", "group_faults", "members"]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Joints that have a name together, as planners use them.

    Attributes:
        name: Unique in its manipulator.
        joints: Names of joints, fixed ones perhaps.
        links: Links whose own joints belong to it.
        chains: Links from which to which all joints belong to it: base, then tip.
        groups: Other groups whose joints belong to it.
    """

    name: str
    joints: TupleOf[str] = EMPTY
    links: TupleOf[str] = EMPTY
    chains: TupleOf[tuple[str, str]] = EMPTY
    groups: TupleOf[str] = EMPTY

    def __post_init__(self) -> None:
        """Store plain tuples.

        Raises:
            ModelError: It has no name.
        """
        store_tuples(self, "joints", "links", "groups")
        chains = tuple((base, tip) for base, tip in self.chains)
        msgspec.structs.force_setattr(self, "chains", chains)
        if not self.name:
            raise ModelError("A group has no name.")


def group_faults(
    groups: Sequence[Group], links: Container[str], joints: Container[str]
) -> Iterator[tuple[int | None, str]]:
    """Yield what is wrong with the groups of a manipulator: in which, a sentence.

    links, joints: The names of those that there are.
    """
    known = {group.name for group in groups}
    seen: set[str] = set()
    for place, group in enumerate(groups):
        if group.name in seen:
            yield place, f"Two groups are called {quote(group.name)}; rename one."
        seen.add(group.name)
        ends = [end for chain in group.chains for end in chain]
        for kind, names, existing in (
            ("joint", group.joints, joints),
            ("link", (*group.links, *ends), links),
            ("group", group.groups, known),
        ):
            for name in names:
                if name not in existing:
                    yield (
                        place,
                        f"Group {quote(group.name)} names the {kind} {quote(name)}, "
                        "which does not exist here.",
                    )
    try:
        TopologicalSorter({group.name: group.groups for group in groups}).prepare()
    except CycleError as error:
        names = " in ".join(map(quote, error.args[1]))
        yield None, f"Groups hold each other in a circle: {names}."


def members(
    group: Group,
    groups: Mapping[str, Group],
    links: Mapping[str, int],
    joints: Mapping[str, int],
    parents: Sequence[int],
) -> set[int]:
    """Return the places of the links whose joints belong to a group.

    groups: Of the manipulator, by name; faultless ones.
    links, joints: The places of links, by their names and by those of their joints.
    parents: The place of each link's parent, -1 for the base.
    """
    places: set[int] = set()
    waiting, seen = [group], {group.name}
    while waiting:
        each = waiting.pop()
        places.update(joints[name] for name in each.joints)
        places.update(links[name] for name in each.links)
        for base, tip in each.chains:
            places.update(_between(links[base], links[tip], parents))
        for name in each.groups:
            if name not in seen:
                seen.add(name)
                waiting.append(groups[name])
    return places


def _between(base: int, tip: int, parents: Sequence[int]) -> set[int]:
    """Return the links whose joints are on the way between two links."""
    return {*ancestors(parents, base)} ^ {*ancestors(parents, tip)}
