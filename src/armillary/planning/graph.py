"""Graphs of motions that many questions share, tested when they are needed.

Nodes are random joint positions, projected onto constraints where there are any; each
is joined to its nearest neighbours, as many as the PRM* of Karaman and Frazzoli
("Sampling-based algorithms for optimal motion planning", 2011) has, so that ways become
the shortest as nodes grow in number. Motions are tested when the shortest way is to use
them (Bohlin and Kavraki, "Path planning using lazy PRM", 2000), all those of a way in
one batch. So the way that is found is the shortest of those that are free, whatever was
asked before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.search import is_over
from armillary.planning.constraint import Manifold
from armillary.planning.motions import MotionTests, Way

__all__ = [
    "Answer",
    "Chords",
    "Graph",
    "GraphQuery",
    "merged",
    "random_positions",
    "refined",
    "shortened",
]

Array = npt.NDArray[np.float64]
Edges = list[list[tuple[int, float]]]
Pair = tuple[int, int]
Ways = dict[Pair, Way]

START: Final = -1
"""The number of the start, beside the nodes of a graph."""

FIRST_GOAL: Final = -2
"""That of the first goal; the next ones are below."""

CHORDS: Final = 24
"""Shortcuts that are tested at once."""

GAIN: Final = 1e-3
"""The least gain of a shortcut, as a part of the length of the way."""

SHORTENINGS: Final = 12
"""How often at most."""

BLOCK: Final = 256
"""Nodes whose distances from all others are computed at once."""


class GraphQuery(NamedTuple):
    """What is asked of a graph.

    Attributes:
        start: Joint positions [m or rad], shape (n,).
        goals: The same, shape (k, n).
        seed: Another number gives other shortcuts.
        deadline: When to stop [ns], see `deadline_of`; 0 for never.
        improve: Until when a planner makes a way shorter, 0 for not at all;
            graphs do not.
    """

    start: Array
    goals: Array
    seed: int
    deadline: int
    improve: int = 0


class Answer(NamedTuple):
    """What a graph answers.

    Attributes:
        q: Way points [m or rad], shape (k, n); None if there is no way.
        goal: Which goal it leads to.
    """

    q: Way
    goal: int


@final
@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, their neighbours, and what is known of the motions between them.

    Attributes:
        Q: Nodes [m or rad], shape (k, n).
        is_free: Which of them touch nothing, shape (k,).
        edges: The neighbours of each, with the lengths of the motions.
        ways: The motions that were tested, by both nodes, the lower one first.
        proven: Those of them that were sampled at first and then proven.
    """

    Q: Array
    is_free: npt.NDArray[np.bool_]
    edges: Edges
    ways: Ways
    proven: set[Pair]

    @classmethod
    def of(cls, Q: Array, motions: MotionTests) -> Graph:
        """Join nodes to their nearest neighbours."""
        nothing = cls(Q[:0], np.zeros(0, np.bool_), [], {}, set())
        return nothing.grown(Q, motions)

    def grown(self, Q: Array, motions: MotionTests) -> Graph:
        """Return the graph with more nodes; it knows what this one does."""
        every = np.concatenate([self.Q, Q])
        is_free = np.concatenate([self.is_free, _are_good(Q, motions)])
        edges = [list(near) for near in self.edges] + [[] for _ in Q]
        if len(Q):
            _join(every * motions.manifold.weights, len(self.Q), edges)
        return Graph(every, is_free, edges, self.ways, self.proven)

    def again(self, motions: MotionTests) -> Graph:
        """Return the graph for another check, of which nothing is known but nodes."""
        return replace(self, is_free=_are_good(self.Q, motions), ways={}, proven=set())

    def test(self, motions: MotionTests) -> None:
        """Test all motions between free nodes in one batch."""
        pairs = sorted(
            (a, b)
            for a, near in enumerate(self.edges)
            if self.is_free[a]
            for b, _ in near
            if a < b and self.is_free[b] and (a, b) not in self.ways
        )
        if pairs:
            first, last = np.array(pairs).T
            found = motions.between(self.Q[first], self.Q[last])
            self.ways.update(zip(pairs, found, strict=True))

    def ask(
        self, question: GraphQuery, motions: MotionTests, prover: MotionTests
    ) -> Answer:
        """Return the shortest free way along the motions of the graph, shortened.

        Args:
            question: What is asked.
            motions: What tests motions.
            prover: What proves those of a way: the same, or where it only samples
                motions another one.
        """
        way, goal = _Search(self, question, motions, prover).run()
        if way is None:
            return Answer(None, -1)
        return Answer(shortened(way, question, motions, prover), goal)


def _are_good(Q: Array, motions: MotionTests) -> npt.NDArray[np.bool_]:
    """Return which nodes touch nothing and satisfy constraints."""
    return motions.are_free(Q) & motions.manifold.is_near(Q)


def degree(nodes: int, joints: int) -> int:
    """Return how many neighbours a node of PRM* has: e (1 + 1 / n) log k."""
    wanted = math.ceil(math.e * (1.0 + 1.0 / joints) * math.log(nodes + 1))
    return max(1, min(wanted, nodes - 1))


def _nearest(z: Array, of: Array, count: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the nodes nearest to some positions, and their distances, (k, count)."""
    square = (of * of).sum(1)[:, None] + (z * z).sum(1) - 2.0 * of @ z.T
    count = min(count, len(z))
    near = np.argpartition(square, count - 1, axis=1)[:, :count]
    near.sort(axis=1)
    return near, np.sqrt(((of[:, None] - z[near]) ** 2.0).sum(axis=2))


def _join(z: Array, first: int, edges: Edges) -> None:
    """Join each node from the first one on to its nearest ones, both ways."""
    count = degree(*z.shape)
    found: dict[tuple[int, int], float] = {}
    for start in range(first, len(z), BLOCK):
        # The nearest of all is the node itself.
        near, far = _nearest(z, z[start : start + BLOCK], count + 1)
        for k, row in enumerate(zip(near.tolist(), far.tolist(), strict=True), start):
            for other, length in zip(*row, strict=True):
                if other != k:
                    found[min(k, other), max(k, other)] = length
    for (a, b), length in sorted(found.items()):
        edges[a].append((b, length))
        edges[b].append((a, length))


@final
class _Search:
    """The search for a way, in a graph with a start and goals beside its nodes.

    The start is node -1, goal k is node -2 - k.
    """

    def __init__(
        self,
        graph: Graph,
        question: GraphQuery,
        motions: MotionTests,
        prover: MotionTests,
    ) -> None:
        self.graph, self.question, self.motions = graph, question, motions
        self.prover = prover
        self.own: Ways = {}  # of the motions from the start and to the goals
        self.own_proven: set[Pair] = set()
        count = len(graph.Q)
        self.ends = np.concatenate([question.start[np.newaxis], question.goals])
        weights = motions.manifold.weights
        z, ends = graph.Q * weights, self.ends * weights
        self.more: dict[int, list[tuple[int, float]]] = {}
        # The start may go straight to each goal.
        straight = np.sqrt(((ends[1:] - ends[0]) ** 2.0).sum(axis=1))
        for k, length in enumerate(straight.tolist()):
            self._join(START, FIRST_GOAL - k, length)
        if count:
            near, far = _nearest(z, ends, degree(count, z.shape[1]))
            for k, row in enumerate(zip(near.tolist(), far.tolist(), strict=True)):
                for other, length in zip(*row, strict=True):
                    self._join(START - k, other, length)
        # Negative numbers count from the end.
        every = np.concatenate([z, ends[::-1]])
        left = [((every - goal) ** 2.0).sum(axis=1) for goal in ends[1:]]
        self.left: list[float] = np.sqrt(np.min(left, axis=0)).tolist()
        free = np.concatenate([graph.is_free, np.ones(len(ends), np.bool_)])
        self.free: list[bool] = free.tolist()

    def _join(self, a: int, b: int, length: float) -> None:
        self.more.setdefault(a, []).append((b, length))
        self.more.setdefault(b, []).append((a, length))

    def run(self) -> tuple[Way, int]:
        """Return the way points, and which goal they lead to."""
        also: list[Pair] = []
        while (nodes := self._shortest()) is not None:
            ways = self._tested(nodes, also)
            is_free = all(way is not None for way in ways)
            if is_free and self.prover is not self.motions:
                ways = self._proven(nodes, ways)
            whole = [way[1:] for way in ways if way is not None]
            if len(whole) == len(ways):
                return np.concatenate([self.ends[:1], *whole]), FIRST_GOAL - nodes[-1]
            if is_over(self.question.deadline):
                break
            # The next way goes near: motions there are tested along with it, as many
            # at once take little longer than few.
            bad = [k for k, way in enumerate(ways) if way is None]
            also = [
                (min(node, other), max(node, other))
                for node in {nodes[j] for k in bad for j in (k, k + 1)}
                for other, _ in self._near(node)
                if self.free[other]
            ]
        return None, -1

    def _near(self, node: int) -> list[tuple[int, float]]:
        own = self.more.get(node, [])
        return own if node < 0 else [*self.graph.edges[node], *own]

    def _shortest(self) -> list[int] | None:
        """Return the nodes of the shortest way by A*, without motions known to fail."""
        left, free, own, known = self.left, self.free, self.own, self.graph.ways
        best, before = {START: 0.0}, {START: START}
        line, done = [(left[START], START)], set[int]()
        while line:
            _, node = heapq.heappop(line)
            if node in done:
                continue
            if node <= FIRST_GOAL:
                nodes = [node]
                while nodes[-1] != START:
                    nodes.append(before[nodes[-1]])
                return nodes[::-1]
            done.add(node)
            so_far = best[node]
            for other, length in self._near(node):
                if other in done or not free[other]:
                    continue
                total = so_far + length
                if total >= best.get(other, math.inf):
                    continue
                pair = (node, other) if node < other else (other, node)
                if (own if pair[0] < 0 else known).get(pair, pair) is None:
                    continue
                best[other], before[other] = total, node
                heapq.heappush(line, (total + left[other], other))
        return None

    def _tested(self, nodes: list[int], also: list[Pair]) -> list[Way]:
        """Return the ways between nodes; those not known are tested in one batch.

        also: Pairs of nodes that are tested as well.
        """
        pairs = [(min(p), max(p)) for p in pairwise(nodes)]
        asked = dict.fromkeys([*pairs, *also])
        unknown = [pair for pair in asked if pair not in self._ways(pair)]
        if unknown:
            A, B = (np.stack([self._q(p[k]) for p in unknown]) for k in range(2))
            for pair, way in zip(unknown, self.motions.between(A, B), strict=True):
                self._ways(pair)[pair] = way
        found: list[Way] = []
        for pair, node in zip(pairs, nodes[:-1], strict=True):
            way = self._ways(pair)[pair]
            found.append(way if way is None or node == pair[0] else way[::-1])
        return found

    def _proven(self, nodes: list[int], ways: list[Way]) -> list[Way]:
        """Return the ways between nodes, None for those that are not proven."""
        pairs = [(min(p), max(p)) for p in pairwise(nodes)]
        left = [
            k
            for k, pair in enumerate(pairs)
            if pair not in (self.own_proven if pair[0] < 0 else self.graph.proven)
        ]
        found = list(ways)
        for k, way in zip(
            left, self.prover.proven([ways[k] for k in left]), strict=True
        ):
            found[k], pair = way, pairs[k]
            if way is None:
                self._ways(pair)[pair] = None
            elif pair[0] < 0:
                self.own_proven.add(pair)
            else:
                self.graph.proven.add(pair)
        return found

    def _ways(self, pair: tuple[int, int]) -> Ways:
        return self.own if pair[0] < 0 else self.graph.ways

    def _q(self, node: int) -> Array:
        return self.graph.Q[node] if node >= 0 else self.ends[START - node]


def shortened(
    way: Array, question: GraphQuery, motions: MotionTests, prover: MotionTests
) -> Array:
    """Return a way that is shorter, or the same: by shortcuts between its points."""
    rng = np.random.default_rng(question.seed)
    best, missed = way, 0
    for _ in range(SHORTENINGS):
        is_late = is_over(question.deadline)
        if len(best) <= 2 or missed > 1 or is_late:
            break
        fine = best if motions.manifold.parts else refined(best, motions)
        chords = Chords.of(fine, rng, motions)
        ways = motions.between(*chords.ends)
        now = chords.replaced(ways, motions)
        missed = missed + 1 if now is None else 0
        now = best if now is None else now
        best = now if motions.manifold.parts else merged(now, motions)
    # Parts of what is proven are proven, but for rounding.
    for last in (best, way):
        prover.is_proven[:] = prover.proves
        if prover.proven([last])[0] is not None:
            return last
    return way


@final
@dataclass(frozen=True, eq=False)
class Chords:
    """Motions between random points of a way, which may make it shorter.

    Attributes:
        points: The way, shape (k, n).
        along: Its length up to each point, shape (k,).
        first: Where motions begin, shape (c,).
        last: Where they end.
    """

    points: Array
    along: Array
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]

    @classmethod
    def of(cls, points: Array, rng: np.random.Generator, motions: MotionTests) -> Self:
        """Draw motions, of which the first one is from end to end."""
        lengths = motions.lengths(points[:-1], points[1:])
        along = np.concatenate([[0.0], np.cumsum(lengths)])
        i, j = np.sort(rng.integers(0, len(points), (2, CHORDS)), axis=0)
        i[0], j[0] = 0, len(points) - 1
        saves = along[j] - along[i] - motions.lengths(points[i], points[j])
        wanted = np.flatnonzero((j > i + 1) & (saves > GAIN * along[-1]))
        return cls(points, along, i[wanted], j[wanted])

    @property
    def ends(self) -> tuple[Array, Array]:
        """Return where motions begin and end, shape (c, n)."""
        return self.points[self.first], self.points[self.last]

    def replaced(self, ways: Sequence[Way], motions: MotionTests) -> Way:
        """Return the way with the best of free ways that do not overlap, None if none.

        ways: Those between the ends of motions, None where one is not free.
        """
        along = self.along
        spans = zip(self.first.tolist(), self.last.tolist(), ways, strict=True)
        gains: list[tuple[float, int, int, Array]] = []
        for i, j, shortcut in spans:
            if shortcut is None:
                continue
            length = motions.lengths(shortcut[:-1], shortcut[1:]).sum()
            gain = float(along[j] - along[i] - length)
            if gain > GAIN * along[-1]:
                gains.append((gain, i, j, shortcut))
        taken: list[tuple[int, int, Array]] = []
        for _, first, last, shortcut in sorted(gains, key=lambda each: -each[0]):
            if all(last <= a or first >= b for a, b, _ in taken):
                taken.append((first, last, shortcut))
        now = self.points
        # They are put in from the end.
        for first, last, shortcut in sorted(taken, key=lambda each: -each[0]):
            now = np.concatenate([now[:first], shortcut, now[last + 1 :]])
        return now if taken else None


def refined(way: Array, motions: MotionTests) -> Array:
    """Return a way with points within its motions."""
    lengths = motions.lengths(way[:-1], way[1:])
    step = max(float(lengths.sum()) / (2 * CHORDS), 1e-9)
    parts = [way[:1]]
    for a, b, length in zip(way[:-1], way[1:], lengths, strict=True):
        count = max(1, math.ceil(length / step))
        t = np.arange(1, count + 1)[:, None] / count
        part = a + t * (b - a)
        part[-1] = b
        parts.append(part)
    return np.concatenate(parts)


def merged(way: Array, motions: MotionTests) -> Array:
    """Return a way without points that lie on the straight motion past them."""
    kept = [way[0]]
    for here, behind in pairwise(way[1:]):
        last = kept[-1]
        past = motions.lengths(last[None], behind[None])[0]
        detour = motions.lengths(last[None], here[None])[0]
        detour += motions.lengths(here[None], behind[None])[0] - past
        if detour > 1e-9 * (1.0 + past):
            kept.append(here)
    return np.stack([*kept, way[-1]])


def random_positions(manifold: Manifold, rng: np.random.Generator, count: int) -> Array:
    """Return random positions that satisfy constraints, at most `count`.

    Args:
        manifold: The constraints.
        rng: Where random numbers come from.
        count: How many are tried.
    """
    n = len(manifold.lower)
    Q = rng.uniform(manifold.lower, manifold.upper, (count, n))
    found, is_done = manifold.project(Q)
    return np.ascontiguousarray(found[is_done])
