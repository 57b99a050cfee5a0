"""The pairs of links to test in the states of a cell, and those that touch at home."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.lengths import nearness_of
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.tested_shapes import shapes_of_links
from armillary.disk_cache import cached_arrays
from armillary.errors import ArmillaryError, ModelError
from armillary.kinematics.identity import digest
from armillary.kinematics.kept_formulas import LAYERS_BELOW
from armillary.kinematics.state import State, bound_state, home, link_poses
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.fields import kept
from armillary.model.link_pairs import Pairs
from armillary.model.link_pattern import link_of
from armillary.model.rules import Rule, Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["applied_rules", "pairs", "with_home_pairs"]

Indices = npt.NDArray[np.int64]

MAKERS: Final = (
    *LAYERS_BELOW,
    "armillary.kinematics",
    "armillary.collision",
    "armillary.collision.distance",
)
"""Packages on which it depends what touches."""

MOST_CACHED: Final = 8
"""Rules whose pairs a cell caches."""


def pairs(
    cell: Workcell,
    state: State,
    *,
    rules: Rules | None = None,
    meshes: MeshSource | None = None,
) -> Pairs:
    """Return the pairs of links that are tested for collision in a state.

    They depend on the attachments, not on where things are. `.why(a, b)` of the result
    tells the reason for one pair.

    Args:
        cell: The cell that has the links.
        state: The state whose attachments are used.
        rules: They replace those of the cell.
        meshes: As for `collision`; they are read if rules leave out pairs that touch at
            home.

    Raises:
        StateError: The state is not one of this cell.
        UnknownName: The rules name a link that does not exist.
        ModelError: There are too many pairs, or `rules` is not a `Rules`.
    """
    bound = bound_state(cell, state)
    return applied_rules(cell, rules, meshes).pairs(bound.tree)


def applied_rules(
    cell: Workcell, rules: Rules | None, meshes: MeshSource | None
) -> CollisionPairs:
    """Return rules applied to a cell; the cell caches the last few.

    Arguments and errors are those of `pairs`.
    """
    given: Any = rules
    if not isinstance(given, Rules | None):
        raise ModelError(f"rules= takes arm.Rules, such as cell.rules, not {given!r}.")
    rules = cell.rules if rules is None else rules
    cached = kept(cell, "pairs of rules", dict[Any, CollisionPairs])
    # Found again by their identity, which is theirs as long as the value keeps them.
    applied = cached.get((id(rules), meshes, "given"))
    if applied is not None:
        return applied
    # Meshes matter only where rules depend on what touches at home. Equal rules share
    # what is cached, also if they are two objects.
    source = meshes if rules.needs_home else None
    for (_, other, _), other_rules in tuple(cached.items()):
        if other == source and other_rules.rules == rules:
            if other_rules.rules is rules and len(cached) < 2 * MOST_CACHED:
                cached[id(rules), meshes, "given"] = other_rules
            return other_rules
    if rules is not cell.rules:
        cell.check_rules(rules)
    if len(cached) >= 2 * MOST_CACHED:
        cached.clear()
    touching = partial(_touching_at_home, cell, source)
    made = CollisionPairs(cell, rules, touching)
    cached[id(rules), source, "needed"] = cached[id(rules), meshes, "given"] = made
    return made


def with_home_pairs(cell: Workcell, meshes: MeshSource | None) -> Workcell:
    """Return a cell whose rules name the pairs that touch at home, for files.

    meshes: What reads the meshes of the cell.
    """
    if not cell.rules.needs_home:
        return cell
    touching = partial(_touching_at_home, cell, meshes)
    decided = CollisionPairs(cell, cell.rules, touching)
    named: dict[Rule, list[Rule]] = {}
    for (a, b), rule in decided.home_pairs.items():
        pair = Rule(a=link_of(a), b=link_of(b), reason=rule.reason)
        named.setdefault(rule, []).append(pair)
    # A rule of pairs at home becomes one rule for each, in its place among the others.
    rules = (
        named.get(rule, ()) if rule.where == "home" else (rule,)
        for rule in cell.rules.rules
    )
    every = tuple(chain.from_iterable(rules))
    return cell.replace(rules=msgspec.structs.replace(cell.rules, rules=every))


def _touching_at_home(
    cell: Workcell, meshes: MeshSource | None, tested: Pairs
) -> Indices:
    """Return the pairs that touch at home, as positions in `tested`.

    Links whose shapes cannot be read, or whose poses are not known, stay tested.
    """
    if not len(tested):
        return np.empty(0, np.int64)
    # Only pairs that all other rules leave are looked at, once for a cell and rules.
    try:
        state = home(cell)
        shapes = shapes_of_links(cell, tested, meshes, skip_unread=True)
        known = np.flatnonzero(np.isin(tested.indices, list(shapes)).all(axis=1))

        def made() -> list[Any]:
            contacts = PlacedPairs.of_shapes(cell, state, tested.part(known), shapes)
            X = contacts.poses(state.q[np.newaxis])
            nearness = nearness_of(contacts.extent)
            return [known[contacts.touching(X, nearness)[0]]]

        # What touches is decided by shapes and where they are. Where code of others may
        # decide it too, it is not kept.
        poses = link_poses(state)
        placed = [
            (
                k,
                poses.link_pose(cell.frame(tested.links[k]).link),
                each.primary,
                each.shape,
            )
            for k, some in shapes.items()
            for each in some
        ]
        key = digest((placed, tested.indices[known]), is_ours=True)
        if key is None:
            return made()[0]
        return cached_arrays("touching at home", [key], made, made_by=MAKERS)[0]
    except ArmillaryError:  # the check itself raises it again, and says what to do
        return np.empty(0, np.int64)
