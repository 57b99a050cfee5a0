"""Ways along constraints by two trees, one from the start and one from the goals.

This is RRT-Connect (Kuffner and LaValle, "RRT-Connect: an efficient approach to
single-query path planning", 2000) with nodes that are projected onto the constraints
(Berenson et al., "Manipulation planning on constraint manifolds", 2009). Many samples
are followed at once, a step of each in one batch: the nearest node of one tree goes
towards each of them as far as it can, then that of the other tree towards where these
ended. Motions between nodes are sampled; those of a way that joins both trees are
proven, and where a proof fails, the node behind it and all that grew from it are left
out.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.search import is_over
from armillary.planning.graph import (
    Answer,
    GraphQuery,
    random_positions,
    shortened,
)
from armillary.planning.motions import MotionTests, Way

__all__ = ["Searched", "SurfaceTree", "search"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

AT_ONCE: Final = 32
"""Samples that are followed at once."""

STEP: Final = 0.15
"""Weighted length of a step before it is projected [rad or m]."""

STEPS: Final = 64
"""The most steps towards a sample."""

FARTHEST: Final = 2.0
"""By how much a projected step may be longer; else it leads elsewhere."""

LEAST: Final = 0.05
"""A step that comes nearer to its sample by a smaller part of `STEP` is the last."""

SAME: Final = 1e-12
"""Positions that are nearer to each other are the same."""


class Searched(NamedTuple):
    """What a search found.

    Attributes:
        answer: The way, if there is one.
        samples: How many positions trees grew to.
        nodes: How many positions they had.
    """

    answer: Answer
    samples: int
    nodes: int


def search(question: GraphQuery, motions: MotionTests, most: int) -> Searched:
    """Return a way along constraints, shortened.

    The deadline ends it, and `most` nodes or samples.
    """
    goals = question.goals
    straight = motions.between(
        np.broadcast_to(question.start, goals.shape).copy(), goals
    )
    found = [(k, way) for k, way in enumerate(straight) if way is not None]
    if found:
        lengths = [motions.lengths(way[:-1], way[1:]).sum() for _, way in found]
        goal, first = found[int(np.argmin(lengths))]
        return Searched(Answer(shortened(first, question, motions), goal), 0, 0)
    rng = np.random.default_rng(question.seed)
    trees = SurfaceTrees(motions, question.start, goals)
    samples = 0
    while trees.nodes < most and samples < most and not is_over(question.deadline):
        way, goal = trees.grow(rng, question.deadline)
        samples += AT_ONCE
        if way is not None:
            short = shortened(way, question, motions)
            return Searched(Answer(short, goal), samples, trees.nodes)
    return Searched(Answer(None, -1), samples, trees.nodes)


class Followed(NamedTuple):
    """Where steps towards samples ended.

    Attributes:
        node: The last node of each, shape (k,).
        is_there: Which of them are the sample, shape (k,).
    """

    node: Indices
    is_there: Truths


@final
class SurfaceTree:
    """Joint positions, and from which one each was reached."""

    def __init__(self, roots: Array, weights: Array) -> None:
        self.weights = weights
        self.q = roots.copy()
        self.z = roots * weights
        self.before = np.full(len(roots), -1, np.int64)
        self.root = np.arange(len(roots))
        self.count = len(roots)
        self.is_left_out = np.zeros(len(roots), np.bool_)

    def nearest(self, q: Array) -> Indices:
        """Return the nodes nearest to joint positions, shape (k,)."""
        # |z - w|^2 less |w|^2, which is the same for all nodes.
        z = self.z[: self.count]
        square = (z * z).sum(axis=1) - 2.0 * (q * self.weights) @ z.T
        square[:, self.is_left_out[: self.count]] = np.inf
        return np.asarray(square.argmin(axis=1), np.int64)

    def grow(self, q: Array, before: Indices) -> Indices:
        """Add nodes, and return their numbers."""
        first, self.count = self.count, self.count + len(q)
        if self.count > len(self.q):
            more = max(self.count, 1024)
            for name in ("q", "z", "before", "root", "is_left_out"):
                held = getattr(self, name)
                room = np.zeros((more, *held.shape[1:]), held.dtype)
                setattr(self, name, np.concatenate([held, room]))
        rows = slice(first, self.count)
        self.q[rows], self.z[rows] = q, q * self.weights
        self.before[rows], self.root[rows] = before, self.root[before]
        return np.arange(first, self.count)

    def leave_out(self, node: int) -> None:
        """Leave a node out, and all that grew from it."""
        out, before = self.is_left_out[: self.count], self.before[: self.count]
        more = np.array([node])
        while len(more):
            out[more] = True
            more = np.flatnonzero((before >= 0) & out[before] & ~out)

    def way_to(self, node: int) -> list[int]:
        """Return the nodes from a root to a node."""
        nodes = [node]
        while self.before[nodes[-1]] >= 0:
            nodes.append(int(self.before[nodes[-1]]))
        return nodes[::-1]


@final
class SurfaceTrees:
    """Two trees that grow until a proven way joins them.

    Attributes:
        motions: What tests motions, along constraints.
        trees: That of the start, and that of the goals.
    """

    def __init__(self, motions: MotionTests, start: Array, goals: Array) -> None:
        """Begin with the start, shape (n,), and the goals, shape (k, n)."""
        self.motions = motions
        weights = motions.manifold.weights
        self.trees = (
            SurfaceTree(start[np.newaxis], weights),
            SurfaceTree(goals, weights),
        )

    @property
    def nodes(self) -> int:
        """Return how many nodes both have."""
        return sum(tree.count for tree in self.trees)

    def grow(self, rng: np.random.Generator, deadline: int) -> tuple[Way, int]:
        """Follow some samples; return a way that joins both trees, and which goal.

        Args:
            rng: Where samples come from.
            deadline: When to stop [ns], 0 for never.

        Returns:
            Way points, shape (k, n), every motion between which is proven, and the
            number of the goal; None and -1 as long as no way is found.
        """
        manifold = self.motions.manifold
        # The smaller tree grows first, so that neither is far ahead.
        one, other = sorted(self.trees, key=lambda tree: tree.count)
        samples = random_positions(manifold, rng, AT_ONCE)
        # One of them is an end of the other tree, so that what is near is tried first.
        ends = np.flatnonzero(~other.is_left_out[: other.count])
        samples = np.concatenate([other.q[ends[-1:]], samples])
        reached = np.unique(self._followed(one, samples, deadline).node)
        there = self._followed(other, one.q[reached], deadline)
        for k in np.flatnonzero(there.is_there).tolist():
            if is_over(deadline):
                break
            way = self._joined(one, int(reached[k]), other, int(there.node[k]))
            if way is not None:
                return way
        return None, -1

    def _followed(self, tree: SurfaceTree, samples: Array, deadline: int) -> Followed:
        """Let a tree grow towards samples, as far as steps lead nearer to them."""
        manifold, weights = self.motions.manifold, tree.weights
        node = tree.nearest(samples)
        there = np.zeros(len(samples), np.bool_)
        rows = np.arange(len(samples))
        for _ in range(STEPS):
            if not len(rows) or is_over(deadline):
                break
            here, way = tree.q[node[rows]], samples[rows] - tree.q[node[rows]]
            left = np.sqrt(way * way @ weights**2.0)
            # Branches that stand at their sample already are done.
            is_here = left <= SAME
            if is_here.any():
                there[rows[is_here]] = True
                go_on = ~is_here
                rows, here = rows[go_on], here[go_on]
                way, left = way[go_on], left[go_on]
            is_last = left <= STEP
            part = np.minimum(1.0, STEP / left)
            # Samples are on the constraints: the last step ends there to the last bit.
            found, good = samples[rows].copy(), is_last.copy()
            if not is_last.all():
                steps = here + part[:, None] * way
                found[~is_last], good[~is_last] = manifold.project(steps[~is_last])
            # A step that projects far away, or does not lead nearer, ends its branch.
            moved = self.motions.lengths(here, found)
            nearer = left - self.motions.lengths(found, samples[rows])
            good &= (moved < FARTHEST * STEP) & (is_last | (nearer > LEAST * STEP))
            kept = np.flatnonzero(good)
            # Ends and middles alone are tested; ways that join trees are proven later.
            both = np.concatenate([found[kept], 0.5 * (here + found)[kept]])
            free = self.motions.are_free(both).reshape(2, -1).all(axis=0)
            kept = kept[free]
            self.motions.edges += len(rows)
            node[rows[kept]] = tree.grow(found[kept], node[rows[kept]])
            there[rows[kept]] = is_last[kept]
            rows = rows[kept[~is_last[kept]]]
        return Followed(node, there)

    def _joined(
        self, one: SurfaceTree, a: int, other: SurfaceTree, b: int
    ) -> tuple[Way, int] | None:
        """Return the proven way through two nodes at the same positions, if it is."""
        if one is self.trees[1]:
            one, a, other, b = other, b, one, a
        first, last = one.way_to(a), other.way_to(b)
        if one.is_left_out[first].any() or other.is_left_out[last].any():
            return None
        q = np.concatenate([one.q[first], other.q[last[-2::-1]]])
        ways = self.motions.between(q[:-1], q[1:])
        whole = [way[1:] for way in ways if way is not None]
        if len(whole) == len(ways):
            return np.concatenate([q[:1], *whole]), int(other.root[b])
        # What is behind the first motion that is not free is left out, in both trees,
        # so that they grow there in another way.
        for k, way in enumerate(ways):
            if way is None and k + 1 < len(first):
                one.leave_out(first[k + 1])
                break
        for k, way in enumerate(reversed(ways)):
            if way is None and k + 1 < len(last):
                other.leave_out(last[k + 1])
                break
        return None
