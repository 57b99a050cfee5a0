"""Ways along constraints or of closed loops: found by the native loop, then proven.

The loop grows two trees whose nodes are projected onto the constraints (Berenson et
al., "Manipulation planning on constraint manifolds", 2009), and samples motions along
them. What it returns are points between which a projected motion is free at these
samples. Here such motions are replaced by straight ones, as short as tolerances ask
for, which are proven. A motion for which that fails is replaced by a detour, found with
more samples; where there is none, all of the way is searched for again with more.
Ways of closed loops, which the loop can only sample, are proven by the same steps.
"""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.search import is_over
from armillary.planning.graph import Answer, GraphQuery
from armillary.planning.layout import FOUND
from armillary.planning.loop import NativeLoop, Problem
from armillary.planning.motions import MotionTests, Way

__all__ = ["Searched", "SurfaceSearch"]

Array = npt.NDArray[np.float64]

SAME: Final = 1e-6
"""Way points that are nearer to each other are one, as weighted lengths."""

DETOURS: Final = 2
"""How often a detour may have detours."""

FINER: Final = 4.0
"""How many times as many samples a detour has."""

FINEST: Final = 64.0
"""The most that a search has."""


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


@final
class SurfaceSearch:
    """A search for a proven way along constraints, or of closed loops.

    Attributes:
        loop: The native loop, with the projection onto the constraints if any.
        motions: What proves motions.
    """

    def __init__(self, loop: NativeLoop, motions: MotionTests) -> None:
        """Take what searches, and what proves."""
        self.loop, self.motions = loop, motions
        self._samples = self._nodes = 0

    def __call__(self, question: GraphQuery) -> Searched:
        """Return a proven way to one of the goals, if one is found in time."""
        finer = 1.0
        for more in count():
            problem = Problem(
                question.start,
                question.goals,
                question.seed + more,
                question.deadline,
                question.improve,
            )
            found, goal = self._solved(problem, finer)
            if found is None:
                break
            way = self._proven(found, problem, finer * FINER, DETOURS)
            if way is not None:
                return self._searched(Answer(way, goal))
            if is_over(question.deadline):
                break
            finer = min(2.0 * finer, FINEST)
        return self._searched(Answer(None, -1))

    def _searched(self, answer: Answer) -> Searched:
        return Searched(answer, self._samples, self._nodes)

    def _solved(self, problem: Problem, finer: float) -> tuple[Way, int]:
        """Return what the loop finds with so many times as many samples of motions."""
        found = self.loop.finer(finer).solve(problem)
        edges, checks, _, samples, nodes = found.counts
        self.motions.edges += edges
        self.motions.checks += checks
        self._samples += samples
        self._nodes = max(self._nodes, nodes)
        if found.status != FOUND:
            return None, -1
        # Nodes of trees are rounded, and points may be there twice.
        q = found.q
        inner, is_done = self.motions.manifold.project(q[1:-1])
        q[1:-1][is_done] = inner[is_done]
        is_new = self.motions.lengths(q[:-1], q[1:]) > SAME
        is_new[0] = True
        return np.concatenate([q[:-1][is_new], q[-1:]]), found.goal

    def _proven(self, q: Array, problem: Problem, finer: float, detours: int) -> Way:
        """Return a proven way through points, with detours where motions are not."""
        ways = self.motions.between(q[:-1], q[1:])
        parts = [q[:1]]
        for k, way in enumerate(ways):
            proven = way
            if proven is None and detours and not is_over(problem.deadline):
                between = problem._replace(
                    start=q[k], goals=q[k + 1 : k + 2].copy(), improve=0
                )
                found, _ = self._solved(between, finer)
                if found is not None:
                    proven = self._proven(found, between, finer * FINER, detours - 1)
            if proven is None:
                return None
            parts.append(proven[1:])
        return np.concatenate(parts)
