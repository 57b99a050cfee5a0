"""Distances of all pairs of links in one state, several pairs at once, by formulas.

A formula takes as long for one row as for eight. Here rows are pairs: each has the
numbers of the poses of its links and of its shapes, whose records lanes load.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.distance.columns import RECORDS
from armillary.collision.distance.pair_kernel import LINKS_OF, numbered_code
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.shape_pairs import PairKind
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kernel.tables import pack_all
from armillary.model.fields import kept
from armillary.model.shapes import ConvexPolyhedron

__all__ = ["NumberedPairs"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST: Final = 64
"""Of fewer pairs one after the other is as quick."""


@final
class _NumberedKind(msgspec.Struct, frozen=True, eq=False):
    """Pairs of two kinds of shapes.

    Attributes:
        code: What measures them.
        records: Of its tables, but for those of poses of links.
        numbers: What it takes of each pair: of both links, then of both shapes.
        pairs: Which of all pairs they are.
    """

    code: CompiledPipeline
    records: Mapping[str, Array]
    numbers: tuple[Array, ...]
    pairs: Indices

    @classmethod
    def of(cls, kind: PairKind, pairs: PlacedPairs) -> Self:
        """Return the pairs of a kind, where shapes are placed."""
        code = numbered_code(*kind.forms, "value")
        given = {**RECORDS, **kind.records(pairs.placed)}
        tables = [t for t in code.pipeline.tables if t.name not in LINKS_OF]
        records = {table.name: given[table.name] for table in tables}
        columns, (dtype, _) = code.pipeline.columns, code.made_for
        packed = pack_all(tables, records, columns, dtype)

        def numbers() -> tuple[Array, ...]:
            links = pairs.tables.shape_rows[kind.sides]
            return tuple(x.astype(np.float64) for x in (*links, *kind.places))

        owner = pairs.tables.layout or pairs.tables
        # Pairs with obstacles may have the same forms as those of the cell alone.
        key = "numbers of pairs", int(kind.pairs[0])
        return cls(code, packed, kept(owner, key, numbers), kind.pairs)

    def kernel(self, links: Array) -> Kernel:
        """Return the kernel that reads poses of links, shape (f, 12)."""
        known = {**self.records, **dict.fromkeys(LINKS_OF, links)}
        tables = {t.name: known[t.name] for t in self.code.pipeline.tables}
        return self.code.bound(tables, ())


@final
class NumberedPairs(msgspec.Struct, frozen=True, eq=False):
    """What measures pairs of links that have one shape each, at one state at a time.

    Attributes:
        kinds: The pairs, by the kinds of their shapes.
        lock: Held while kernels read the poses of a call.
        links: Where those are, shape (f, 12).
        kernels: The kernel of each kind, which reads them there.
    """

    kinds: tuple[_NumberedKind, ...]
    lock: threading.Lock
    links: Array
    kernels: tuple[Kernel, ...]

    @classmethod
    def of(cls, pairs: PlacedPairs) -> Self | None:
        """Return what measures some pairs; None where this is not the way to do it.

        It is that of many pairs with formulas. Where links have several shapes, spheres
        leave most of them out; pairs of spheres have code of their own.
        """
        tables = pairs.tables
        of_spheres, _, _ = tables.split
        is_single = len(tables.pairs.pairs) == len(tables.tested)
        is_many = len(tables.tested) >= FEWEST
        if len(of_spheres) or not (is_single and is_many and tables.are_formulas):
            return None
        shapes = [form for kind in tables.pairs.kinds for form in kind.forms]
        if any(isinstance(form, ConvexPolyhedron) for form in shapes):
            return None  # its corners are a table of each
        kinds = tuple(_NumberedKind.of(kind, pairs) for kind in tables.pairs.kinds)
        links = np.zeros((pairs.moving.count, 12))
        kernels = tuple(kind.kernel(links) for kind in kinds)
        return cls(kinds, threading.Lock(), links, kernels)

    def distances(self, X: Array) -> Array:
        """Return the distance of each pair of links.

        X: Poses of moving links, shape (f, 3, 4).

        Returns:
            Distances [m], shape (k,); NaN where the pose of a link is.
        """
        poses = X.reshape(-1, 12)
        # A fork may copy the lock while another thread has it: waiting would not end.
        if not self.lock.acquire(blocking=False):
            own = poses.copy()
            return self._measured(own, tuple(kind.kernel(own) for kind in self.kinds))
        try:
            self.links[:] = poses
            return self._measured(self.links, self.kernels)
        finally:
            self.lock.release()

    def _measured(
        self, links: Array, kernels: tuple[Callable[..., Array], ...]
    ) -> Array:
        values = np.empty(sum(len(kind.pairs) for kind in self.kinds))
        is_known = bool(np.isfinite(links).all())
        for kind, kernel in zip(self.kinds, kernels, strict=True):
            found = kernel(*kind.numbers)
            if not is_known:
                # A formula may not read all of a pose, as that of a ball that turns.
                a, b = (numbers.astype(np.int64) for numbers in kind.numbers[:2])
                found[~np.isfinite(links[a] + links[b]).all(axis=1)] = np.nan
            values[kind.pairs] = found
        return values
