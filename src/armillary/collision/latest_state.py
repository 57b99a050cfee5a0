"""Single answers of checks of states that follow one another.

Where bodies moved in the world, a check of the new state differs from that of the last
one by a few records. The records here are changed in place, one state after the other,
so that the first answer about a state costs what moved. Checks that are asked again
have records of their own, see `LatestState.records`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import BlocksOnBases
from armillary.collision.columns import SHAPES, CheckColumns
from armillary.collision.placed_pairs import PlacedPairs, rounded_up
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kernel.tables import copied
from armillary.kinematics.state import State
from armillary.model.tree import Tree

__all__ = ["LatestState"]

Array = npt.NDArray[np.float64]

MOST_KEPT: Final = 8
"""Margins for which tables keep such records."""


class _Buffers(NamedTuple):
    """What is changed in place.

    Attributes:
        spheres: The records of spheres.
        shapes: Those of shapes.
        centre: The centres of spheres in their records, shape (l + n, 3).
        pose: Where shapes are in theirs, shape (n, 3, 4).
        centres: The same centres in float64.
        reaches: How far from the world's origin links are, shape (l,) [m].
        ask: Answers one row by these records.
    """

    spheres: npt.NDArray[Any]
    shapes: npt.NDArray[Any]
    centre: npt.NDArray[Any]
    pose: npt.NDArray[Any]
    centres: Array
    reaches: Array
    ask: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@final
class LatestState:
    """The records of whether links touch, of the state that was asked last.

    Threads may share it: one has it at a time, others go without.

    Attributes:
        joints: How many joint positions it takes.
        dtype: Of which type.
    """

    def __init__(
        self,
        pairs: PlacedPairs,
        records: PipelineRecords,
        columns: CheckColumns,
        margin: float,
        others: dict[float, LatestState],
    ) -> None:
        """Begin with a check in which shapes that move together are apart.

        Its cell has no joints that loops determine, which are not looked at.

        Args:
            pairs: Its pairs.
            records: Its records.
            columns: Their columns.
            margin: What is nearer touches [m].
            others: Those that are as exact as another extent of the cell asks for, by
                this; see `PlacedPairs.extent`.
        """
        self.joints = pairs.moving.joints
        self.dtype = records.code.made_for[0]
        self._pairs, self._records = pairs, records
        self._columns, self._margin, self._others = columns, margin, others
        self._extent = pairs.extent
        # Where bodies are; None after a failure, which leaves records of no state.
        self._tree: Tree | None = pairs.state.tree
        self._q = pairs.state.q
        self._free = pairs.moving.free_bases(self._tree)
        self._now = self._extent
        self._farthest: float = math.nan
        self._on: dict[int, BlocksOnBases] = {}
        self._lock = threading.Lock()

    @classmethod
    def keep(
        cls,
        pairs: PlacedPairs,
        records: PipelineRecords,
        columns: CheckColumns,
        margin: float,
    ) -> None:
        """Let the tables of a check keep its records for states that follow.

        Arguments are those of the constructor.
        """
        known: dict[float, LatestState] = pairs.tables.latest
        before = known.get(margin)
        others = {} if before is None else before._others
        for few in (known, others):
            if len(few) >= MOST_KEPT:
                few.clear()
        made = cls(pairs, records, columns, margin, others)
        known[margin] = others[pairs.extent] = made

    def ask(self, state: State, q: npt.NDArray[Any]) -> Any:
        """Return the verdict of the kernel; None where it takes a check of its own.

        Args:
            state: The state, which attaches bases as that of the tables does.
            q: Joint positions of the type that is computed in, shape (joints,).
        """
        extent, verdict = self._ask(state, q)
        if extent is None or extent == self._extent:
            return verdict
        other = self._others.get(extent)
        if other is None:
            return None
        # It is asked first from now on.
        self._pairs.tables.latest[self._margin] = other
        return other._ask(state, q)[1]

    def _ask(self, state: State, q: npt.NDArray[Any]) -> tuple[float | None, Any]:
        """Return the extent of the cell, and the verdict if these records are for it.

        The extent is None where others have to answer.
        """
        # A fork may copy the lock while another thread has it: nobody waits for it.
        if not self._lock.acquire(blocking=False):
            return None, None
        try:
            extent = self._follow(state)
            is_right = extent == self._extent
            return extent, self._buffers.ask(q).item() if is_right else None
        finally:
            self._lock.release()

    def records(self, state: State) -> PipelineRecords | None:
        """Return the records of a check of a state; None as `ask` does."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._follow(state) != self._extent:
                return None
            own = copied(self._buffers.spheres), copied(self._buffers.shapes)
        finally:
            self._lock.release()
        for each in own:
            each.flags.writeable = False
        return self._with(*own)

    def _with(
        self, spheres: npt.NDArray[Any], shapes: npt.NDArray[Any]
    ) -> PipelineRecords:
        names = self._columns.spheres.name, SHAPES
        return self._records.with_tables(
            dict(zip(names, (spheres, shapes), strict=True))
        )

    def _follow(self, state: State) -> float | None:
        """Make the records those of a state, and return the extent of the cell in it.

        It is None where more changes than where bodies stand in the world: the poses of
        links at the same q; or where what moves together may touch.
        """
        tree, last, q = state.tree, self._tree, state.q
        if tree is last and q is self._q:
            return self._now
        if last is None:
            return None
        bases = tree.moved_since(last)
        if not self._free.issuperset(bases):
            return None
        buffers, self._tree = self._buffers, None
        if bases and not self._writes(tree, bases):
            return None
        if q is not self._q and (q != self._q).any():
            buffers.reaches[:] = self._pairs.reaches_at(q, buffers.centres)
        # The precision depends on how far away shapes are.
        farthest: Any = np.maximum.reduce(buffers.reaches, initial=0.0)
        if farthest != self._farthest:
            self._farthest, self._now = farthest, rounded_up(float(farthest))
        self._tree, self._q = tree, q
        return self._now

    def _writes(self, tree: Tree, bases: Sequence[int]) -> bool:
        """Write where bases are.

        Returns:
            Whether the spheres around shapes that move together are apart.
        """
        tables, buffers = self._pairs.tables, self._buffers
        if len(bases) == 1:
            (k,) = bases
            on = self._on.get(k)
            if on is None:
                on = self._on[k] = tables.blocks_on(bases)
            blocks = tree.base_matrix(k) @ on.blocks
        else:
            on = tables.blocks_on(bases)
            blocks = tree.base_matrices[on.bases] @ on.blocks
        centres, which, count = blocks[:, :3, 8], on.which, on.links
        buffers.centre[which] = buffers.centres[which] = centres
        buffers.pose[on.shapes] = blocks[count:, :3, 4:8]
        links = which[:count]
        buffers.reaches[links] = tables.reaches(centres[:count], links)
        if not len(tables.together):
            return True
        gaps = tables.gaps_on(bases, buffers.centres[len(buffers.reaches) :])
        return bool(np.minimum.reduce(gaps, initial=np.inf) > max(self._margin, 0.0))

    @cached_property
    def _buffers(self) -> _Buffers:
        """Return the records of the first state, which are changed from then on."""
        own, columns, pairs = self._records, self._columns, self._pairs
        spheres = copied(own.tables[columns.spheres.name])
        shapes = copied(own.tables[SHAPES])
        changed = self._with(spheres, shapes)
        words = changed.words
        return _Buffers(
            spheres,
            shapes,
            spheres[columns.centre.name],
            shapes[columns.shape_pose.name],
            pairs.placed.spheres.copy(),
            pairs.reaches.copy(),
            own.pipeline.for_one(words, (words, changed), changed.kernel),
        )
