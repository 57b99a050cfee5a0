"""Rules learned from random samples: pairs that always, or never, touch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.lengths import margin_of, nearness_of
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.tested_shapes import shapes_of_links
from armillary.kinematics.state import home
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pairs import Pairs
from armillary.model.link_pattern import is_exact, link_of, links_of
from armillary.model.parents import nearest
from armillary.model.rules import Rule, RuleReason, Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.tree import Tree
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.sweeps.samples import Samples
from armillary.sweeps.samples import samples as uniform_samples

__all__ = ["LEARNED", "learn_rules"]

Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

FIRST_BLOCK: Final = 64
LARGEST_BLOCK: Final = 4096
"""Rows at once; most pairs are decided by the first few."""

LEARNED: Final = (
    RuleReason.ADJACENT,
    RuleReason.DEFAULT,
    RuleReason.ALWAYS,
    RuleReason.NEVER,
)
"""The reasons that `learn_rules` finds, in the order in which it looks for them."""


def learn_rules(
    cell: Workcell,
    *,
    samples: int = 10_000,
    seed: int = 0,
    margin: float = 0.0,
    within: Mapping[str, tuple[float, float]] | None = None,
    meshes: MeshSource | None = None,
) -> Rules:
    """Return rules that leave out pairs of links which need no test.

    As MoveIt's setup assistant does, it looks at random joint positions, uniform within
    the limits, and at home. A pair is left out with the reason

    - `adjacent`: the links share a joint, see `joined` of `Where`;
    - `default`: they touch at home;
    - `always`: they touch in every sample;
    - `never`: they touch in no sample.

    It looks at all pairs of links of one manipulator, and at pairs of two manipulators
    that the cell's rules test, if no state can move one base relative to the other.
    Rules for other pairs stay, as do those of one pair that somebody has left out for
    another reason than these. `never` is as good as the samples are: a pair that
    touches in one of 10 000 positions is found with a probability of 63 %.

    Args:
        cell: The cell that has the links, as it was built.
        samples: How many joint positions.
        seed: Another integer of 0 to 2^128 - 1 gives other positions.
        margin: Links nearer than this count as touching [m].
        within: The least and greatest value of joints [m or rad] by their names, in
            place of their limits; joints that turn without limits take one turn.
        meshes: As for `Cell.collision`; meshes are treated by their hulls.

    Returns:
        Rules of the cell with one for each pair left out, which has the reason.

    Raises:
        UnknownName: A joint of `within` does not exist.
        ModelError: A mesh cannot be read, a joint has no limits, or the margin is
            invalid.
        SweepError: `samples` or `seed` is not an integer in its range, or the cell has
            no joint.
    """
    margin = margin_of(margin)
    drawn = _drawn(cell, samples, seed, within)
    tree = Tree.of(cell)
    anchors = _anchors(cell, tree)
    rules, kept = _start(cell, anchors)
    decided = CollisionPairs(cell, _without_neighbours(rules))
    pairs = decided.pairs(tree)
    # Of robots whose bases can be moved apart, no sample says anything: they stay
    # tested.
    pairs = pairs.part(np.flatnonzero(_are_fixed(cell, anchors, pairs)))
    shapes = shapes_of_links(cell, pairs, meshes)
    contacts = PlacedPairs.of_shapes(cell, home(cell), pairs, shapes)
    reasons = _reasons(contacts, decided.are_joined(tree, pairs), drawn, margin)
    named = (
        Rule(a=link_of(a), b=link_of(b), reason=reason)
        for (a, b), reason in zip(pairs, reasons, strict=True)
        if reason
    )
    return rules.extended([*named, *kept])


def _drawn(
    cell: Workcell,
    count: int,
    seed: int,
    within: Mapping[str, tuple[float, float]] | None,
) -> Samples:
    """Return the samples, with one turn for joints that turn without limits."""
    lower, upper = cell.limits
    turns = {
        name: (-math.pi, math.pi)
        for k, name in enumerate(cell.joint_names)
        if cell.links[cell.joints.links[k]].joint.unit is Unit.RADIAN
        and not np.isfinite([lower[k], upper[k]]).all()
    }
    return uniform_samples(cell, count, seed=seed, within=turns | dict(within or {}))


def _start(cell: Workcell, anchors: Indices) -> tuple[Rules, list[Rule]]:
    """Return the rules of a cell with all pairs within manipulators tested first.

    Learned rules of pairs that are looked at are left out, and what was said of a
    manipulator alone. Of that, rules that name a link and have another reason than
    learned ones are returned apart.
    """
    first: list[Rule] = []
    rules = cell.rules
    for manipulator in cell.manipulators:
        own_links = links_of(manipulator.name)
        first += [
            Rule(a=own_links, b=own_links, tested=True, reason=RuleReason.SELF),
            Rule(a=own_links, b=own_links, where="rigid", reason=RuleReason.RIGID),
        ]
        rules = rules.without_self(manipulator.name)
    # What `without_self` has removed and a person had written: kept, unless learned
    # again.
    left = set(rules.rules)
    remaining = [
        rule
        for rule in cell.rules.rules
        if rule not in left
        and (is_exact(rule.a) or is_exact(rule.b))
        and rule.where == "any"
        and rule.reason not in {*LEARNED, RuleReason.RIGID}
    ]
    others = (r for r in rules.rules if not _is_learned(cell, anchors, r))
    return msgspec.structs.replace(rules, rules=(*first, *others)), remaining


def _is_learned(cell: Workcell, anchors: Indices, rule: Rule) -> bool:
    """Return whether a rule leaves out one pair for a reason that is found again."""
    if rule.tested or rule.where != "any" or rule.reason not in LEARNED:
        return False
    if not (is_exact(rule.a) and is_exact(rule.b)):
        return False
    links = [cell.frame(side).link for side in (rule.a, rule.b)]
    return min(links) >= 0 and bool(np.ptp(anchors[links]) == 0)


def _without_neighbours(rules: Rules) -> Rules:
    """Return rules that leave out no pair for being adjacent, or touching at home."""
    others = (r for r in rules.rules if r.where not in {"adjacent", "joined", "home"})
    return msgspec.structs.replace(rules, rules=tuple(others))


def _anchors(cell: Workcell, tree: Tree) -> Indices:
    """Return of each link the nearest one before it whose base can be moved."""
    loose = {tree.base_link(k) for k in tree.movable}
    anchors = nearest(tree.parents, range(len(cell.links)), loose.__contains__)
    return np.array(anchors, np.int64)


def _are_fixed(cell: Workcell, anchors: Indices, pairs: Pairs) -> Truths:
    """Return of which pairs the relative pose follows from joint positions alone."""
    numbers = [cell.frame(name).link for name in pairs.links]
    ends = anchors[numbers][pairs.indices]
    return np.asarray(ends[:, 0] == ends[:, 1])


def _reasons(
    contacts: PlacedPairs, are_joined: Truths, samples: Samples, margin: float
) -> list[str]:
    """Return the reason of each pair to leave it out, empty where it is tested."""
    reasons = np.where(are_joined, RuleReason.ADJACENT, "").astype(object)
    left = np.flatnonzero(~are_joined)
    # What touches at home touches by design, as neighbours in a casing do.
    home_poses = contacts.poses(contacts.state.q[np.newaxis])
    near = max(margin, nearness_of(contacts.extent))
    at_home = contacts.touching(home_poses, near, left)[0]
    reasons[left[at_home]] = RuleReason.DEFAULT
    left = left[~at_home]
    # Of each pair, whether it touched and whether it was free in some sample. A pair
    # with both is tested and needs no more samples, so blocks grow as pairs get fewer.
    touched, free = np.zeros((2, len(reasons)), np.bool_)
    start, step = 0, FIRST_BLOCK
    while start < samples.count and len(left):
        X = contacts.poses(samples.rows(start, min(start + step, samples.count)))
        is_known = np.isfinite(X).all(axis=(1, 2, 3))  # else a loop cannot be closed
        touching = contacts.touching(X[is_known], margin, left)
        touched[left] |= touching.any(axis=0)
        free[left] |= (~touching).any(axis=0)
        left = left[~(touched[left] & free[left])]
        start, step = start + step, min(4 * step, LARGEST_BLOCK)
    reasons[left[touched[left]]] = RuleReason.ALWAYS
    reasons[left[free[left]]] = RuleReason.NEVER
    return reasons.tolist()
