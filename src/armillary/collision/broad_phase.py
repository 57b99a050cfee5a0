"""Broad phase of one state: the pairs of links whose spheres are near each other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.forks import IMPORT_LOCK
from armillary.kernel.binding import address_of

__all__ = ["BroadPhase"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

LIKELY: Final = 4096
"""For how many near pairs there is room at first."""


@final
class BroadPhase(msgspec.Struct, frozen=True, eq=False):
    """The spheres around links, and which pairs of links are tested.

    Attributes:
        radii: Of the spheres [m], shape (l,).
        codes: i l + j for both links of each pair, i < j, sorted, shape (k,).
        places: Where the pairs of these codes are among all, shape (k,).
        tested: A bit for each i and j, the first one lowest, shape (l, l / 8).
    """

    radii: Array
    codes: Indices
    places: Indices
    tested: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, tables: CheckTables) -> Self:
        """Return the broad phase of the pairs of a check."""
        count = len(tables.first) - 1
        tested = np.zeros((count, -(-count // 8)), np.uint8)
        i, j = np.divmod(tables.codes, max(1, count))
        np.bitwise_or.at(tested, (i, j // 8), (1 << j % 8).astype(np.uint8))
        order = np.argsort(tables.codes, kind="stable")
        radii = np.ascontiguousarray(tables.radii[:count], np.float64)
        return cls(radii, tables.codes[order], order, tested)

    def near(self, X: Array, rows: Indices, centres: Array, within: float) -> Indices:
        """Return the pairs whose spheres are near, or NaN.

        Args:
            X: Poses of moving links [m], shape (f, 3, 4).
            rows: The moving link of the sphere around each link, shape (l,).
            centres: Centres of these spheres in the moving links [m], shape (l, 3).
            within: How near [m]; below 0 it counts as 0, since spheres say nothing of
                the depth of what is in them.

        Returns:
            Positions of the pairs, sorted, shape (p,).
        """
        # They are kept here as long as the code reads them.
        poses, around = np.ascontiguousarray(X), np.ascontiguousarray(centres)
        rows = np.ascontiguousarray(rows, np.int64)
        count, least, (run, _) = len(rows), max(within, 0.0), _near_spheres()
        arrays = poses, rows, around, self.radii, self.tested
        points = np.empty((4, count + 7))

        def written(room: int) -> tuple[int, Indices]:
            found = np.empty(room, np.int64)
            memory = address_of(points), address_of(found), room
            return run(*map(address_of, arrays), count, least, *memory), found

        total, found = written(LIKELY)
        if total > LIKELY:
            total, found = written(total)
        return np.sort(self.places[self.codes.searchsorted(found[:total])])


@lru_cache(maxsize=1)
def _near_spheres() -> tuple[Callable[..., int], Any]:
    """Return the function of the native loop, and its code, which lives as long."""
    with IMPORT_LOCK:
        from armillary.kernel import compiler
        from armillary.kernel.host import host
    machine = host()

    def text() -> str:
        with IMPORT_LOCK:
            from armillary.kernel.builder import module_text
            from armillary.kernel.near_spheres_code import near_spheres

        return module_text([near_spheres()])

    key = compiler.key_of("near spheres", machine.identity)
    code = compiler.loaded(key, machine, text, 2, variables=True)
    numbers = ctypes.c_int64, ctypes.c_double
    memory = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int64, *[ctypes.c_void_p] * 5, *numbers, *memory
    )
    return prototype(code.address("near_spheres")), code
