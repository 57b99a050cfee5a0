"""Ways along constraints or of closed loops: found by the native loop, then proven.

The loop grows two trees whose nodes are projected onto the constraints (Berenson et
al., "Manipulation planning on constraint manifolds", 2009), and samples motions along
them. What it returns are points between which a projected motion is free at these
samples. Here such motions are replaced by straight ones, as short as tolerances ask
for, which are proven. Motions for which that fails are replaced by detours, found with
more samples; where there are none, all of the way is searched for again with more.
Ways of closed loops, which the loop can only sample, are proven by the same steps.

Each problem is a generator that asks for searches and for proofs. So many problems take
these steps together: their searches on several threads, their proofs as rows of few
calls.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.search import is_over
from armillary.kernel.threads import share
from armillary.planning.graph import Answer, Chords, GraphQuery, merged, refined
from armillary.planning.layout import FOUND, PAUSED
from armillary.planning.loop import MOST_PAUSED, NativeLoop, PausingSearch
from armillary.planning.loop_memory import (
    Found,
    Problem,
)
from armillary.planning.motions import MotionTests, Way

__all__ = ["ProvenSearch", "Searched", "search_all"]

Array = npt.NDArray[np.float64]

SAME_POINT: Final = 1e-6
"""Way points that are nearer to each other are one, as weighted lengths."""

MOST_NESTED_DETOURS: Final = 2
"""How often a detour may have detours."""

FINER_DETOUR: Final = 4.0
"""How many times as many samples a detour has."""

FINEST_SEARCH: Final = 64.0
"""The most that a search has."""

MOST_MISSED_ROUNDS: Final = 2
"""After so many rounds of shortcuts that gain nothing another way is searched for."""

FIRST_SLICE: Final = 50_000_000
"""How long others wait for a search at first [ns]."""

ANOTHER: Final = 1 << 32
"""What the seed of a further search is larger by."""

POINTS_OF_STRAIGHT: Final = 2
"""Way points of a straight motion."""

PROOF_TIMES: Final = 2
"""So many times the time of the last proof is left for the next one."""


class Searched(NamedTuple):
    """What a search found.

    Attributes:
        answer: The way, if there is one.
        samples: How many positions trees grew to.
        nodes: How many positions they had.
        is_proven: Whether every motion of the way is proven to be free.
    """

    answer: Answer
    samples: int
    nodes: int
    is_proven: bool


class _Searches(NamedTuple):
    """Asks what the loop finds for problems, with so many times as many samples."""

    problems: list[Problem]
    finer: float


class _Proof(NamedTuple):
    """Asks for proven ways between positions, shapes (k, n)."""

    A: Array
    B: Array


class _Proven(NamedTuple):
    """Answers that: ways, and whether all of them are proven, not sampled."""

    ways: list[Way]
    is_certain: bool


class _FreeWay(NamedTuple):
    """A free way to a goal, and whether all of it is proven."""

    q: Array
    goal: int
    is_certain: bool


_Asks: TypeAlias = _Searches | _Proof


@final
class ProvenSearch:
    """A search for a proven way along constraints, or of closed loops.

    Attributes:
        loop: The native loop, with the projection onto the constraints if any.
        query: What is asked.
    """

    def __init__(self, loop: NativeLoop, query: GraphQuery) -> None:
        """Take what searches, and what is asked."""
        self.loop, self.query = loop, query
        self.samples = self.nodes = 0
        self._proof_took = 0

    def steps(self, motions: MotionTests) -> Generator[_Asks, Any, Searched]:
        """Ask for searches and proofs; return what is found at last.

        motions: What is asked for lengths.
        """
        query, finer = self.query, 1.0
        best: _FreeWay | None = None
        for more in count():
            problem = self._problem(more, query.deadline)
            ((found, goal),) = yield _Searches([problem], finer)
            if found is None:
                break
            best = yield from self._proven(found, goal, problem, finer * FINER_DETOUR)
            if best is not None:
                break
            if is_over(query.deadline):
                break
            finer = min(2.0 * finer, FINEST_SEARCH)
        if best is not None and query.improve:
            best = yield from self._improved(best, finer, motions)
        counts = self.samples, self.nodes
        if best is None:
            return Searched(Answer(None, -1), *counts, is_proven=False)
        return Searched(Answer(best.q, best.goal), *counts, best.is_certain)

    def _improved(
        self, best: _FreeWay, finer: float, motions: MotionTests
    ) -> Generator[_Asks, Any, _FreeWay]:
        """Return the shortest way that is found until the time is up."""
        if motions.manifold.parts:
            return (yield from self._pulled(best, finer, motions))
        return (yield from self._straightened(best, finer, motions))

    def _straightened(
        self, best: _FreeWay, finer: float, motions: MotionTests
    ) -> Generator[_Asks, Any, _FreeWay]:
        """Return the shortest way of straight motions that the loop finds in time.

        Half of the time that is left is for the next search, and then for its proof.
        """
        end, least = self.query.improve, motions.length_of(best.q)
        for more in count(1):
            left, proof = end - time.monotonic_ns(), PROOF_TIMES * self._proof_took
            slot = left // 2 if left > 2 * proof else left - proof
            if slot <= 0 or len(best.q) == POINTS_OF_STRAIGHT:
                break
            until = time.monotonic_ns() + slot
            problem = self._problem(more * ANOTHER, until)._replace(improve=until)
            ((found, to),) = yield _Searches([problem], finer)
            if found is None or motions.length_of(found) >= least:
                continue
            between = problem._replace(deadline=end)
            other = yield from self._proven(found, to, between, finer * FINER_DETOUR)
            best = self._better(best, other, motions)
            least = motions.length_of(best.q)
        return best

    def _pulled(
        self, best: _FreeWay, finer: float, motions: MotionTests
    ) -> Generator[_Asks, Any, _FreeWay]:
        """Return the shortest way along constraints that is found in time.

        Motions along constraints are curves, whose lengths the loop does not know. So
        ways of searches with other seeds are made shorter by proven shortcuts.
        """
        rng, now, end = np.random.default_rng(self.query.seed), best, self.query.improve
        for more in count(1):
            missed = 0
            while (
                missed < MOST_MISSED_ROUNDS
                and time.monotonic_ns() + self._proof_took < end
            ):
                chords = Chords.of(refined(now.q, motions), rng, motions)
                proven = yield from self._between(*chords.ends)
                q = chords.replaced(proven.ways, motions)
                missed = missed + 1 if q is None else 0
                if q is not None:
                    now = _FreeWay(q, now.goal, now.is_certain and proven.is_certain)
            if now is not best:
                # Points that are left out may come back, where those that are left are
                # too far from each other: only the way between them is proven.
                points = merged(now.q, motions)
                proven = yield from self._between(points[:-1], points[1:])
                best = self._better(best, _joined(points, proven, now), motions)
            if time.monotonic_ns() + PROOF_TIMES * self._proof_took >= end:
                return best
            problem = self._problem(more * ANOTHER, end)
            ((found, to),) = yield _Searches([problem], finer)
            other = None
            if found is not None:
                other = yield from self._proven(
                    found, to, problem, finer * FINER_DETOUR
                )
            now = best if other is None else other
        raise AssertionError("unreachable")

    def _better(
        self, best: _FreeWay, other: _FreeWay | None, motions: MotionTests
    ) -> _FreeWay:
        """Return the shorter way; what is proven is not given up for what is not."""
        if other is None or (best.is_certain and not other.is_certain):
            return best
        is_less = motions.length_of(other.q) < motions.length_of(best.q)
        return other if is_less else best

    def _problem(self, more: int, deadline: int) -> Problem:
        """Return the problem with a seed that is larger by so much."""
        start, goals, seed, _, _ = self.query
        return Problem(start, goals, seed + more, deadline)

    def _between(self, A: Array, B: Array) -> Generator[_Asks, Any, _Proven]:
        """Return proven ways between positions, and note how long that takes."""
        began = time.monotonic_ns()
        proven: _Proven = yield _Proof(A, B)
        self._proof_took = time.monotonic_ns() - began
        return proven

    def _proven(
        self, q: Array, goal: int, problem: Problem, finer: float
    ) -> Generator[_Asks, Any, _FreeWay | None]:
        """Return a proven way through points, with detours where motions are not."""
        if self.loop.tests.proves:
            return _FreeWay(q, goal, is_certain=True)
        parts = [q[k : k + 2] for k in range(len(q) - 1)]
        left: list[int] = list(range(len(parts)))
        is_certain = True
        for detours in range(MOST_NESTED_DETOURS, -1, -1):
            ends = np.stack([parts[k] for k in left])
            proven = yield from self._between(ends[:, 0], ends[:, 1])
            ways, is_certain = proven.ways, is_certain and proven.is_certain
            for k, way in zip(left, ways, strict=True):
                parts[k] = parts[k] if way is None else way
            bad = [k for k, way in zip(left, ways, strict=True) if way is None]
            if not bad:
                whole = np.concatenate([q[:1], *(part[1:] for part in parts)])
                return _FreeWay(whole, goal, is_certain)
            if not detours or is_over(problem.deadline):
                break
            asked = [
                problem._replace(
                    start=parts[k][0], goals=parts[k][1:].copy(), improve=0
                )
                for k in bad
            ]
            found = yield _Searches(asked, finer)
            if any(each is None for each, _ in found):
                break
            finer *= FINER_DETOUR
            # Motions of detours are proven next, in place of those that are not.
            inner = dict(zip(bad, (each for each, _ in found), strict=True))
            longer: list[Array] = []
            left.clear()
            for k, part in enumerate(parts):
                if k in inner:
                    points = inner[k]
                    pieces = [points[j : j + 2] for j in range(len(points) - 1)]
                    left += range(len(longer), len(longer) + len(pieces))
                    longer += pieces
                else:
                    longer.append(part)
            parts = longer
        return None


def _joined(points: Array, proven: _Proven, way: _FreeWay) -> _FreeWay | None:
    """Return proven ways between points of a way as one; None if one is missing."""
    parts = [part[1:] for part in proven.ways if part is not None]
    if len(parts) < len(proven.ways):
        return None
    q = np.concatenate([points[:1], *parts])
    return _FreeWay(q, way.goal, way.is_certain and proven.is_certain)


def search_all(
    searches: Mapping[int, ProvenSearch], motions: MotionTests, threads: int = 1
) -> dict[int, Searched]:
    """Return what searches find; many take their steps together.

    Args:
        searches: What is searched for, by the number of the problem.
        motions: What proves motions; it counts the work of each search.
        threads: How many threads share the native searches.
    """
    steps = {k: each.steps(motions) for k, each in searches.items()}
    asked = {k: next(each) for k, each in steps.items()}
    native = _NativeSearches(searches, motions, threads)
    answers: dict[int, Searched] = {}
    while asked:
        replies: dict[int, Any] = _proofs(asked, motions)
        replies.update(native.replies(asked))
        for k, reply in replies.items():
            try:
                asked[k] = steps[k].send(reply)
            except StopIteration as end:
                answers[k] = end.value
                del asked[k]
    return answers


def _proofs(asked: dict[int, _Asks], motions: MotionTests) -> dict[int, _Proven]:
    """Return the proven ways that are asked for, of all searches at once."""
    some = {k: each for k, each in asked.items() if isinstance(each, _Proof)}
    if not some:
        return {}
    owners = np.repeat(list(some), [len(each.A) for each in some.values()])
    A, B = (np.concatenate([each[k] for each in some.values()]) for k in range(2))
    motions.is_proven[:] = motions.proves
    ways = iter(motions.between(A, B, owners))
    return {
        k: _Proven([next(ways) for _ in each.A], bool(motions.is_proven[k]))
        for k, each in some.items()
    }


@final
class _NativeSearches:
    """Runs the native searches that problems ask for.

    Where there are several problems none waits long for another one: a search has a
    slice of time, and then pauses until its next one, which is twice as long. Those
    behind the first `MOST_PAUSED` that pause begin anew then.
    """

    def __init__(
        self,
        searches: Mapping[int, ProvenSearch],
        motions: MotionTests,
        threads: int,
    ) -> None:
        self.searches, self.motions, self.threads = searches, motions, threads
        self.found: dict[tuple[int, int], Found] = {}
        self.slices: dict[tuple[int, int], int] = {}
        self.paused: dict[tuple[int, int], PausingSearch] = {}

    def replies(self, asked: dict[int, _Asks]) -> dict[int, list[tuple[Way, int]]]:
        """Return what is found for those searches that have ended."""
        some = {k: each for k, each in asked.items() if isinstance(each, _Searches)}
        wanted = [
            (k, j)
            for k, each in some.items()
            for j in range(len(each.problems))
            if (k, j) not in self.found
        ]

        def run(number: int) -> None:
            k, j = which = wanted[number]
            search = self.paused.pop(which, None)
            if search is None:
                loop = self.searches[k].loop.finer(some[k].finer)
                search = loop.begun(some[k].problems[j])
            slice_ = self.slices.get(which, FIRST_SLICE)
            is_alone = len(self.searches) == 1
            found = search.run(0 if is_alone else time.monotonic_ns() + slice_)
            if found.status != PAUSED:
                self.found[which] = found
            elif len(self.paused) < MOST_PAUSED:
                self.slices[which], self.paused[which] = 2 * slice_, search
                return
            else:
                self.slices[which] = 2 * slice_
            search.close()

        def work(piece: slice) -> None:
            for number in range(piece.start, piece.stop):
                run(number)

        if len(wanted) == 1:
            run(0)
        elif wanted:
            share(len(wanted), self.threads, work, len(wanted))
        ended = [
            k
            for k, each in some.items()
            if all((k, j) in self.found for j in range(len(each.problems)))
        ]
        every = [(k, j) for k in ended for j in range(len(some[k].problems))]
        ways = iter(self._ways([k for k, _ in every], [self.found[x] for x in every]))
        for each in every:
            del self.found[each]
            self.slices.pop(each, None)
        return {k: [next(ways) for _ in some[k].problems] for k in ended}

    def _ways(
        self, owners: Sequence[int], found: Sequence[Found]
    ) -> list[tuple[Way, int]]:
        """Return what the loop found, on the constraints, and the goals it reaches."""
        motions = self.motions
        for k, each in zip(owners, found, strict=True):
            edges, checks, _, samples, nodes = each.counts
            motions.edges[k] += edges
            motions.checks[k] += checks
            search = self.searches[k]
            search.samples += samples
            search.nodes = max(search.nodes, nodes)
        there = [
            each.q
            for k, each in zip(owners, found, strict=True)
            if each.status == FOUND and not self.searches[k].loop.tests.proves
        ]
        if there:
            # Nodes of trees are rounded, and points may be there twice.
            inner = np.concatenate([q[1:-1] for q in there])
            on, is_done = motions.manifold.project(inner)
            inner[is_done] = on[is_done]
            ends = np.cumsum([len(q) - 2 for q in there])
            for q, points in zip(there, np.split(inner, ends[:-1]), strict=True):
                q[1:-1] = points
        ways: list[tuple[Way, int]] = []
        for k, each in zip(owners, found, strict=True):
            if each.status != FOUND:
                ways.append((None, -1))
                continue
            q = each.q
            if self.searches[k].loop.tests.proves:
                ways.append((q, each.goal))
                continue
            is_new = motions.lengths(q[:-1], q[1:]) > SAME_POINT
            is_new[0] = True
            ways.append((np.concatenate([q[:-1][is_new], q[-1:]]), each.goal))
        return ways
