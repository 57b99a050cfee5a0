"""Large batches shared among threads."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from armillary.errors import KernelError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Pieces for each thread, so that one on a busy processor does not hold up the rest.
PIECES_PER_THREAD = 4
# Large pieces start at multiples of this, so that their blocks are whole and aligned.
GRAIN = 16


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """Return how many threads a large batch uses unless the call says.

    Raises:
        KernelError: The environment's `ARMILLARY_THREADS` is not a number of threads.
    """
    value = os.environ.get("ARMILLARY_THREADS")
    if value is None:
        return available_processors()
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise KernelError(
            f"ARMILLARY_THREADS is {value!r}; it takes a number of threads from 1 up."
        )
    return int(value)


def share(
    length: int,
    threads: int,
    work: Callable[[slice], None],
    most_pieces: int,
    *,
    block: int = 1,
) -> None:
    """Do `work` on all of 0..length in pieces, with the help of other threads.

    Returns when all of it is done. An error of any piece is raised again.

    Args:
        length: How much there is.
        threads: How many threads take part.
        work: What is done on a piece.
        most_pieces: How many pieces there are at most, but for each thread one.
        block: Pieces start at multiples of this: that many rows take as long as one.
    """
    blocks = -(-length // block)
    count = min(blocks, threads * PIECES_PER_THREAD, max(threads, most_pieces))
    if length >= GRAIN * GRAIN * count:
        block = max(block, GRAIN)
    blocks = -(-length // block)
    edges = [blocks * k // count * block for k in range(count)] + [length]
    # Threads take pieces from the left until none is left: popleft is atomic.
    pieces = deque(map(slice, edges[:-1], edges[1:]))

    def take_pieces() -> None:
        while pieces:
            try:
                piece = pieces.popleft()
            except IndexError:  # another thread was faster
                return
            work(piece)

    others: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no thread to be had: do without
        others += (_pool().submit(take_pieces) for _ in range(min(threads, count) - 1))
    try:
        take_pieces()
    finally:
        pieces.clear()
        waited = [other for other in others if not other.cancel()]
        errors = [other.exception() for other in waited]
    for error in errors:
        if error is not None:
            raise error


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # single calls need none

    return ThreadPoolExecutor(available_processors(), thread_name_prefix="armillary")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
