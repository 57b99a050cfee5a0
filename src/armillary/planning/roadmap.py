"""Roadmaps: kept for many questions, and repaired when the scene changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError
from armillary.kernel.arguments import whole_number
from armillary.kernel.search import deadline_of
from armillary.model.fields import kept
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.constraint import FrameConstraint, Manifold
from armillary.planning.goals import FreeAxes, goals_of, positions_of
from armillary.planning.graph import Graph, GraphQuery, random_positions
from armillary.planning.motions import MotionTests
from armillary.planning.plan import Plan
from armillary.planning.planned_cell import PlannedCell, planned_cell, seconds_of
from armillary.planning.planner import STEP
from armillary.planning.region import Bounds, Region, region_of

__all__ = ["Roadmap", "roadmap"]

MOST_DOUBLINGS: Final = 5
"""How often a roadmap is doubled where a question has no way."""


def roadmap(  # noqa: PLR0913
    cell: Workcell,
    check: CollisionCheck,
    *,
    nodes: int = 1000,
    seed: int = 0,
    lazy: bool = False,
    bounds: Bounds | None = None,
    constraints: Sequence[FrameConstraint] = (),
    weights: npt.ArrayLike | None = None,
    resolution: float = STEP,
) -> Roadmap:
    """Return a roadmap of a cell: free motions that many questions share.

    Make it once, ask it often, and repair it when what must not touch changes:

        roadmap = cell.roadmap(cell.collision(state))
        plan = roadmap(q, goal)
        roadmap = roadmap.with_check(cell.collision(other))

    Args:
        cell: The cell.
        check: What must not touch, as for `planner`.
        nodes: Random joint positions that it begins with.
        seed: Another number gives others.
        lazy: Whether motions are tested when a question first needs them; by default
            all are tested now.
        bounds: As for a call of a planner.
        constraints: As for a call of a planner; each has a target.
        weights: As for `planner`.
        resolution: As for `planner`.

    Raises:
        ModelError: As for `planner`, a joint has no limits and no bounds, or a
            constraint has no target.
        UnknownName: A joint or frame does not exist.
        ShapeError: The weights have another shape.
    """
    count = whole_number("nodes", nodes, least=1)
    number = whole_number("seed", seed, least=0)
    planned = planned_cell(cell, check, weights, resolution)
    region = region_of(cell, None, (), bounds or {})
    is_open = ~(np.isfinite(region.lower) & np.isfinite(region.upper))
    if is_open.any():
        names = [cell.joint_names[k] for k in np.flatnonzero(is_open)]
        raise ModelError(
            f"The joints {', '.join(names[:3])} have no limits, among which random "
            "positions could be: give them, as bounds={name: (least, greatest)}."
        )
    nothing = np.empty((0, len(region.lower)))
    manifold = planned.manifold(constraints, None, nothing, region)
    motions = MotionTests(check, manifold, planned.step)
    Q = random_positions(manifold, np.random.default_rng(number), count)
    made = Roadmap(planned, manifold, region, Graph.of(Q, motions), count, number)
    if not lazy:
        made.graph.test(motions)
    return made


@final
@dataclass(frozen=True, eq=False, repr=False)
class Roadmap:
    """A graph of motions of a cell, see `Cell.roadmap`; threads may share it.

    It is of one check, and stays so: while another thread makes the one of another
    scene, answers are of the one that is asked.

    Attributes:
        planned: The cell, with the check.
        manifold: The constraints.
        region: Where joints may be.
        graph: Nodes, and what is known of motions between them.
        count: How many random positions were tried for them.
        seed: Which ones.
    """

    planned: PlannedCell
    manifold: Manifold
    region: Region
    graph: Graph
    count: int
    seed: int

    @property
    def check(self) -> CollisionCheck:
        """Return what must not touch."""
        return self.planned.check

    @property
    def nodes(self) -> int:
        """Return how many nodes it has."""
        return len(self.graph.Q)

    @property
    def edges(self) -> int:
        """Return how many pairs of nodes are neighbours."""
        return sum(map(len, self.graph.edges)) // 2

    @property
    def tested(self) -> int:
        """Return how many motions between nodes were tested."""
        return len(self.graph.ways)

    def __repr__(self) -> str:
        return (
            f"<roadmap of {self.nodes} nodes and {self.edges} edges, {self.tested} "
            f"tested, with {self.check!r}>"
        )

    def with_check(self, check: CollisionCheck, *, lazy: bool = True) -> Roadmap:
        """Return the roadmap with the same nodes for another check of the cell.

        Nodes are tested at once. Motions are tested when a question first needs them,
        or all in one batch.

        Args:
            check: What must not touch: in another state, scene, or margin.
            lazy: Whether motions are tested later.

        Raises:
            ModelError: The check is of another cell.
        """
        before = self.planned
        planned = planned_cell(self.check.cell, check, before.weights, before.step)
        manifold = self.manifold.in_state(check.state)
        motions = MotionTests(check, manifold, planned.step)
        graph = self.graph.again(motions)
        if not lazy:
            graph.test(motions)
        return replace(self, planned=planned, manifold=manifold, graph=graph)

    def __call__(  # noqa: PLR0913
        self,
        start: Any,
        goal: Any,
        *,
        seed: int = 0,
        timeout: float | None = 1.0,
        frame: str | None = None,
        relative_to: str = WORLD,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
    ) -> Plan:
        """Return a way from a start to a goal along motions of the roadmap.

        It is the shortest that the roadmap has, made shorter then by shortcuts, and
        proven as that of a planner. Where there is none, as many random positions as it
        has are added, and so on, up to 32 times as many. Further questions that have no
        way without them use them, too; others do not, so that no answer depends on what
        was asked before. Where there is none then, the reason is `NOT_FOUND`: a planner
        may find one.

        Args:
            start: As for a planner.
            goal: As for a planner.
            seed: Another number gives other shortcuts.
            timeout: Time for the answer [s]; None for as long as it takes.
            frame: As for a planner.
            relative_to: As for a planner.
            position: As for a planner.
            rotation: As for a planner.
            axes: As for a planner.

        Raises:
            ShapeError: As for a planner.
            ModelError: As for a planner.
            UnknownName: As for a planner.
        """
        seconds = seconds_of(timeout)
        number = whole_number("seed", seed, least=0)
        q0 = positions_of(start, self.check.state, "start")
        free = FreeAxes(frame, relative_to, position, rotation, axes)
        goals = self.planned.asked(
            q0, goals_of(self.check, q0, goal, free), self.region
        )
        if isinstance(goals, Plan):
            return goals
        query = GraphQuery(q0, goals.q, number, deadline_of(seconds))
        return self.planned.within(self.manifold, query, goals, self._graphs())

    def _graphs(self) -> Iterator[Graph]:
        """Yield the graph, and then larger ones, which are kept."""
        graph, count = self.graph, self.count
        yield graph
        for level in range(1, MOST_DOUBLINGS + 1):
            before = graph

            def grown(
                before: Graph = before, level: int = level, count: int = count
            ) -> Graph:
                motions = MotionTests(self.check, self.manifold, self.planned.step)
                rng = np.random.default_rng([self.seed, level])
                more = random_positions(self.manifold, rng, count)
                return before.grown(more, motions)

            graph = kept(self, ("grown", level), grown)
            yield graph
            count *= 2
