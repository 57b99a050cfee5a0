"""The pairs of links to test in the states of a cell."""

from __future__ import annotations

from typing import Any, Final

from armillary.collision.home_contacts import touching_at_home
from armillary.errors import ModelError
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.state import State
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.fields import kept
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["applied_rules", "pairs"]

MOST_KEPT: Final = 8


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
        cell: Whose links.
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
    """Return rules applied to a cell; the cell keeps the last few.

    Arguments and errors are those of `pairs`.
    """
    given: Any = rules
    if not isinstance(given, Rules | None):
        raise ModelError(f"rules= takes arm.Rules, such as cell.rules, not {given!r}.")
    rules = cell.rules if rules is None else rules
    source = meshes if rules.needs_home else None
    known = kept(cell, "pairs of rules", dict[Any, CollisionPairs])
    found = known.get((id(rules), source))  # it keeps these rules alive
    if found is not None:
        return found
    for (_, other), each in tuple(known.items()):
        if other == source and each.rules == rules:
            return each
    if rules is not cell.rules:
        cell.check_rules(rules)
    if len(known) >= MOST_KEPT:
        known.clear()
    touching = touching_at_home(cell, source)
    return known.setdefault((id(rules), source), CollisionPairs(cell, rules, touching))
