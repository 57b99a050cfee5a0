"""Python's search for cyclic garbage, which a file has none of."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["no_search"]


@contextmanager
def no_search() -> Generator[None]:
    """Make many values without Python's search for cycles among them.

    It would look through all of a large cell time and again, a fifth of the time that
    reading one takes. Threads may overlap: each leaves the search as it found it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
