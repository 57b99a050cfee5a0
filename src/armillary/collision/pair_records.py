"""Records of pairs of shapes, most of them those of the last check like it.

Three changes write few of them: other obstacles, obstacles of the same kinds that are
of other sizes or elsewhere, and bodies that moved in the world.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.collision.check_tables import RecordsBehind
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.shape_pairs import Placed
from armillary.kernel.column_function import ColumnCode
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = [
    "Changes",
    "PairQuestion",
    "PairRecords",
    "PlacedQuestion",
    "Tables",
    "placed_records",
    "records_of",
]

Indices = npt.NDArray[np.int64]

MOST_CACHED: Final = 8
"""Questions whose latest records tables keep."""

Tables: TypeAlias = dict[str, Mapping[str, Any]]
"""Records of some tables: for each an array for each of its fields."""

Changes: TypeAlias = dict[str, tuple[Indices, Mapping[str, Any]]]
"""Records that change, as `PipelineRecords.changed` takes them."""


class PlacedQuestion(Protocol):
    """What is asked of pairs of a check, in states in which bodies move."""

    @property
    def code(self) -> CompiledPipeline | ColumnCode:
        """Return the code that answers it."""
        ...

    @property
    def key(self) -> Hashable:
        """Return what equal questions share."""
        ...

    def called(self, pairs: PlacedPairs) -> Called:
        """Return the code of pairs of shapes."""
        ...

    def whole(self, pairs: PlacedPairs, called: Called) -> Tables:
        """Return all records."""
        ...

    def places(
        self, pairs: PlacedPairs, spheres: Indices, shapes: Indices
    ) -> Changes | None:
        """Return the numbers that change where bodies moved; None for all.

        Args:
            pairs: The pairs, where they are now.
            spheres: The spheres that moved.
            shapes: The shapes that did.
        """
        ...


class PairQuestion(PlacedQuestion, Protocol):
    """The same among obstacles."""

    @property
    def numbered(self) -> Sequence[Port]:
        """Return the columns whose entries are numbered as spheres are."""
        ...

    def behind(self, pairs: PlacedPairs, called: Called, part: RecordsBehind) -> Tables:
        """Return the records from some links on."""
        ...

    def sizes(self, pairs: PlacedPairs, part: RecordsBehind) -> Tables:
        """Return those of their numbers that depend on sizes and places of shapes."""
        ...

    def limits(self, pairs: PlacedPairs) -> Tables:
        """Return the records that depend on the largest sum of radii, if any do."""
        ...


@final
class PairRecords(msgspec.Struct, frozen=True, eq=False):
    """The records of a check.

    Attributes:
        question: What is asked.
        records: The records of all tables.
        placed: Where the shapes are.
        pose_key: What decides where moving links are, as `MovingLinks.pose_key`.
        largest: The greatest sum of radii of two spheres that are compared [m].
        first: The records that they are made from, by bodies that moved alone.
    """

    question: PlacedQuestion
    records: PipelineRecords
    placed: Placed
    pose_key: Hashable
    largest: float
    first: object

    @classmethod
    def of(cls, question: PlacedQuestion, pairs: PlacedPairs) -> PairRecords:
        """Return the records of a check, all of them new."""
        called = question.called(pairs)
        tables = question.whole(pairs, called)
        packed = PipelineRecords.of(question.code, tables, called.callees)
        largest = pairs.tables.largest
        return cls(question, packed, pairs.placed, pairs.pose_key, largest, object())

    def extended(self, question: PairQuestion, pairs: PlacedPairs) -> PairRecords:
        """Return those of a check of the same pairs, and of some with obstacles.

        Args:
            question: What is asked, as of these.
            pairs: The pairs.
        """
        tables = pairs.tables
        records = self._behind(question, pairs)
        if tables.largest > self.largest:
            first = np.zeros(1, np.int64)
            limits = question.limits(pairs).items()
            records = records.changed({name: (first, given) for name, given in limits})
        return replace(
            self,
            records=records,
            placed=pairs.placed,
            largest=max(self.largest, tables.largest),
            first=object(),
        )

    def _behind(self, question: PairQuestion, pairs: PlacedPairs) -> PipelineRecords:
        """Return the records with those of pairs with obstacles behind them."""
        tables, part = pairs.tables, pairs.tables.part
        # Only sizes and places are new where there were others of the same kinds, and
        # the same around them, but for bodies that moved.
        latest: dict[Any, tuple[PairRecords, PipelineRecords]] = {}
        if tables.layout is not None:
            latest = kept(tables.layout, "records", dict[Any, Any])
            before, same = latest.get(question.key, (None, None))
            if before and same and before.first is self.first:
                own = same.with_fronts(before.records, self.records)
                return own.with_numbers(question.sizes(pairs, part))
        called = question.called(pairs)
        more = question.behind(pairs, called, part)
        # Spheres around obstacles come between those of links and of shapes.
        by = len(tables.fixed.rows) - part.links
        moved = {column.name: (part.links, by) for column in question.numbered}
        known = self.records
        made = known.extended(more, called.callees[len(known.callees) :], moved=moved)
        if len(latest) >= MOST_CACHED:
            latest.clear()
        latest[question.key] = self, made
        return made

    def moved(self, pairs: PlacedPairs) -> PairRecords | None:
        """Return those of a check of the same tables in another state.

        It is None where moving links stand elsewhere: then all are made anew.
        """
        now = pairs.placed
        if pairs.pose_key != self.pose_key:
            return None
        if now is self.placed:
            return self
        # Spheres around links that moved, and around their shapes; then these.
        last = pairs.moved_from
        if last is not None and last[0] is self.placed:
            spheres, shapes = last[1].which, last[1].shapes
        else:
            is_other = (self.placed.whole != now.whole).any(axis=(1, 2))
            spheres, links = np.flatnonzero(is_other), now.links
            shapes = spheres[spheres.searchsorted(links) :] - links
        changes = self.question.places(pairs, spheres, shapes)
        if changes is None:
            return None
        records = self.records.changed(changes)
        key, largest = self.pose_key, self.largest
        return PairRecords(self.question, records, now, key, largest, self.first)


def records_of(question: PairQuestion, pairs: PlacedPairs) -> PairRecords:
    """Return the records of a check, most of them those of the last one like it."""
    # Obstacles are new: their records follow those of the same check without them.
    if pairs.before is not None:
        return records_of(question, pairs.before).extended(question, pairs)
    return placed_records(question, pairs)


def placed_records(question: PlacedQuestion, pairs: PlacedPairs) -> PairRecords:
    """Return the same of a question that does not know obstacles from links."""
    # States that attach the same differ in where bodies are: the records of the last
    # one are those of this one, but for the bodies that moved.
    latest = kept(pairs.tables, "latest records", dict[Any, PairRecords])
    key = question.key
    before = latest.get(key)
    now = before and before.moved(pairs)
    if now is None:
        now = PairRecords.of(question, pairs)
        if len(latest) >= MOST_CACHED:
            latest.clear()
    latest[key] = now
    return now
