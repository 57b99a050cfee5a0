"""The locks of this package, for which a fork waits or which it makes anew.

A fork copies a lock that another thread holds, and nobody releases the copy. Each fork
therefore acquires those of compilation first, in the order in which compilation nests
them. They are reentrant, so that a thread that holds some may fork. Before Python 3.12
a cached property has a lock, too; the child gets new ones.

Forks run what was registered last first. `logging` is registered before these locks:
modules are imported that make loggers, so its lock is acquired after them everywhere.
"""

from __future__ import annotations

import gc
import logging  # noqa: F401  # pyright: ignore[reportUnusedImport]
import os
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any


class ImportLock:
    """A lock that a thread may acquire again; it pauses the garbage collector.

    Attributes:
        lock: The lock alone.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._before: list[tuple[bool, int]] = []

    def acquire(self) -> bool:
        """Acquire it, which waits until no other thread has it."""
        self.lock.acquire()
        # As `collector_paused` does, whose generator costs several times the lock:
        # calls acquire it for imports that were made long ago.
        self._before.append((gc.isenabled(), len(sys.modules)))
        gc.disable()
        return True

    def release(self) -> None:
        """Release it once."""
        was_on, modules = self._before.pop()
        if was_on:
            if len(sys.modules) > modules and not gc.get_freeze_count():
                # What modules have made stays. So it joins the oldest values at once,
                # and is not looked through again by the next two collections. There
                # are only so many modules: this does not put off collections for ever.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
        self.lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


# The first of several threads that want a kernel compiles it, the others wait.
PROGRAM_LOCKS = [threading.RLock() for _ in range(64)]
# Held while LLVM is imported, and what else is imported only when it is asked for: a
# module that another thread imports has a lock that a fork would copy, too.
IMPORT_LOCK = ImportLock()

_acquired: list[threading.RLock | ImportLock] = []


def _acquire_all() -> None:
    for lock in (*PROGRAM_LOCKS, IMPORT_LOCK):
        lock.acquire()
        _acquired.append(lock)
    if native := sys.modules.get("armillary.kernel.jit"):
        native.LLVM_LOCK.acquire()
        _acquired.append(native.LLVM_LOCK)


def _release_all() -> None:
    # The last lock that is released lets another thread fork, whose locks are its own.
    own = _acquired[::-1]
    _acquired.clear()
    for lock in own:
        lock.release()


def _after_in_child() -> None:
    _release_all()
    if sys.version_info < (3, 12):
        for cached in _cached_properties():
            cached.lock = threading.RLock()


def _cached_properties() -> Iterator[Any]:
    """Yield the cached properties of all classes of the package."""
    modules = [m for name, m in sys.modules.items() if name.startswith("armillary.")]
    for module in modules:
        for kind in tuple(vars(module).values()):
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                values = vars(kind).values()
                yield from (x for x in values if isinstance(x, cached_property))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all,
        after_in_parent=_release_all,
        after_in_child=_after_in_child,
    )
