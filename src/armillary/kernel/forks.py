"""The locks of compilation, for which a fork waits.

A fork copies a lock that another thread holds, and nobody releases the copy. Each fork
therefore acquires all of them first, in the order in which compilation nests them. They
are reentrant, so that a thread that holds some may fork.
"""

from __future__ import annotations

import os
import sys
import threading

# The first of several threads that want a kernel compiles it, the others wait.
PROGRAM_LOCKS = [threading.RLock() for _ in range(64)]
# Held while LLVM is imported.
IMPORT_LOCK = threading.RLock()

_acquired: list[threading.RLock] = []


def _acquire_all() -> None:
    for lock in (*PROGRAM_LOCKS, IMPORT_LOCK):
        lock.acquire()
        _acquired.append(lock)
    if native := sys.modules.get("armillary.kernel.jit"):
        native.LLVM_LOCK.acquire()
        _acquired.append(native.LLVM_LOCK)


def _release_all() -> None:
    while _acquired:
        _acquired.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all,
        after_in_parent=_release_all,
        after_in_child=_release_all,
    )
