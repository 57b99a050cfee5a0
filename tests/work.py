"""Counts of work, which tests bound instead of the time that it takes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass
class Work:
    """What has been done: lines of Python that were executed on this thread.

    Loops inside C, as of regular expressions and NumPy, count as one line.
    """

    lines: int = 0


@contextmanager
def counted() -> Iterator[Work]:
    """Count the work of a block. Functions that it calls count, not its own lines.

    Threads would share its pieces as the machine has time, and a collection of garbage
    may end the life of anything: so the block has one thread and no such collection.
    """
    work, count = Work(), 0

    # It is called for each line: what it does takes most of the time of such tests.
    def in_frame(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return in_frame

    before, is_enabled = sys.gettrace(), gc.isenabled()
    threads = os.environ.get("ARMILLARY_THREADS")
    os.environ["ARMILLARY_THREADS"] = "1"
    gc.disable()
    sys.settrace(lambda frame, event, arg: in_frame)
    try:
        yield work
    finally:
        sys.settrace(before)
        work.lines = count
        if is_enabled:
            gc.enable()
        del os.environ["ARMILLARY_THREADS"]
        if threads is not None:
            os.environ["ARMILLARY_THREADS"] = threads


def lines(action: Callable[[], object]) -> int:
    """Return how many lines an action executes."""
    with counted() as work:
        action()
    return work.lines


def growth(action: Callable[[int], object], size: int) -> float:
    """Return how many times more lines an action executes at twice the size.

    Linear work gives about 2, quadratic work about 4.
    """
    action(size)  # imports, and what is cached
    return lines(lambda: action(2 * size)) / lines(lambda: action(size))
