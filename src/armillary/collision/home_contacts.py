"""Pairs of links that touch while a cell is at home, which rules may leave out."""

from __future__ import annotations

from functools import partial
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.lengths import NEARNESS
from armillary.collision.pair_contacts import PairContacts
from armillary.errors import ArmillaryError
from armillary.kinematics.bound_state import home
from armillary.model.collision_pairs import CollisionPairs, FindTouching
from armillary.model.link_pairs import Pairs
from armillary.model.link_pattern import link_of
from armillary.model.rules import Rule
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["touching_at_home", "with_home_pairs"]

Indices = npt.NDArray[np.int64]


def touching_at_home(cell: Workcell, meshes: MeshSource | None) -> FindTouching:
    """Return the function that finds which of some pairs touch at home."""
    return partial(_touching, cell, meshes)


def with_home_pairs(cell: Workcell, meshes: MeshSource | None) -> Workcell:
    """Return a cell whose rules name the pairs that touch at home, for files.

    meshes: What reads the meshes of the cell.
    """
    if not cell.rules.needs_home:
        return cell
    decided = CollisionPairs(cell, cell.rules, touching_at_home(cell, meshes))
    named: dict[Rule, list[Rule]] = {}
    for (a, b), rule in decided.home_pairs.items():
        pair = Rule(a=link_of(a), b=link_of(b), reason=rule.reason)
        named.setdefault(rule, []).append(pair)
    rules = (
        named.get(rule, ()) if rule.where == "home" else (rule,)
        for rule in cell.rules.rules
    )
    every = tuple(chain.from_iterable(rules))
    return cell.replace(rules=msgspec.structs.replace(cell.rules, rules=every))


def _touching(cell: Workcell, meshes: MeshSource | None, tested: Pairs) -> Indices:
    """Return the pairs that touch at home, as positions in `tested`.

    Links whose shapes cannot be read, or whose poses are not known, stay tested.
    """
    if not len(tested):
        return np.empty(0, np.int64)
    try:
        state = home(cell)
        contacts = PairContacts.of(cell, state, tested, meshes, skip_unread=True)
        X = contacts.poses(state.q[np.newaxis])
        return contacts.known[contacts.touching(X, NEARNESS)[0]]
    except ArmillaryError:  # the check itself raises it again, and says what to do
        return np.empty(0, np.int64)
