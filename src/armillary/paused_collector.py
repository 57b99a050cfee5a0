"""The garbage collector, paused while much is made that stays."""

from __future__ import annotations

import atexit
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


# A process ends with three collections, which look at all values: a third of what its
# end costs is the first. The other two take place even so, and find what it would have,
# before any function has lost the names of its module.
atexit.register(gc.disable)
