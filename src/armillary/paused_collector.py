"""The garbage collector, paused while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Generator[None]:
    """Pause the garbage collector while many values without cycles are made.

    It looks through all of them again and again: a fifth of the time in which a large
    cell is read, or the package imported. Threads may overlap: each leaves the
    collector as it found it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
