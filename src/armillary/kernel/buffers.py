"""Memory of large results, used again: fresh pages cost more than what is computed.

The system maps, clears and unmaps the pages of a large array at each call. A result
from here gives its memory back when the last view of it is gone; a few are cached.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SMALLEST = 16 * 2**20  # of an array whose memory is cached [bytes]
MOST = 256 * 2**20  # that is cached [bytes]
STREAM_FROM = 24 * 2**20  # results larger than this are written past the caches [bytes]

_cached: dict[int, Array] = {}


class _Lease:
    """What owns the memory of a result: the base of the array and of all its views."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory: Array) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self, cached: dict[int, Array] = _cached) -> None:
        cached[id(self._memory)] = self._memory
        while sum(memory.nbytes for memory in list(cached.values())) > MOST:
            cached.pop(next(iter(list(cached))), None)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a new array of unknown content, as `np.empty` does."""
    array = np.empty(shape, dtype)  # pages are mapped when they are first written
    size = array.nbytes
    if not SMALLEST <= size <= MOST:
        return array
    memory = _taken(size)
    if memory is None:
        memory = array.reshape(-1).view(np.uint8)
    return np.asarray(_Lease(memory))[:size].view(dtype).reshape(shape)


def _taken(size: int) -> Array | None:
    """Return cached memory of about `size` bytes; another thread may be faster."""
    for key, memory in list(_cached.items()):
        if size <= memory.nbytes <= 2 * size:
            taken = _cached.pop(key, None)
            if taken is not None:
                return taken
    return None
