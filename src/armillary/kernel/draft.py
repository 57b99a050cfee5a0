"""Long code twice: quickly, for the first answer, and well, by a process beside.

LLVM's time is spent on register allocation and scheduling. Without these, long code is
there in a fifth of the time and takes 1.2 to 4 times as long: a draft. The cache keeps
it with the text that it is made of. Whoever loads a draft starts a process that makes
the code proper, stores it under the same key and removes the draft; then calls in this
process lead to it, too. Both give the same bits: what is rounded is decided in the text
(`contraction.py`), and LLVM may not change it.

That process ends with the one that started it, if that has made the draft. A process
that found it in the cache follows one that was too short; what that starts goes on to
the end, at most some seconds longer. Of several at a time one compiles, and the others
find what it has stored. A thread in place of it would hold LLVM's lock for seconds,
for which other compilation and forks would wait, and LLVM may not run while a process
ends. Drafts are made where sections are placed without LLVM, and where `sys.executable`
is Python: another program that embeds it would be started again.

`ARMILLARY_BACKGROUND=off` compiles all code properly at once.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Generator
from typing import Final

import msgspec

from armillary import disk_cache
from armillary.disk_cache import DRAFTS
from armillary.errors import KernelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.code import Code
from armillary.kernel.host import Target

if sys.platform == "linux":
    import fcntl

__all__ = [
    "improve",
    "is_long",
    "load",
    "main",
    "make",
    "wait",
]

LONG: Final = 10_000
"""Lines of IR, half a second of LLVM: a draft saves what its process costs."""

NICENESS: Final = 10
LOCK: Final = "background.lock"

_improving: list[threading.Thread] = []


class Draft(msgspec.Struct, frozen=True):
    """What a file in the cache holds.

    Attributes:
        text: The IR.
        target: The machine that the code is for.
        level, variables: How the code proper is made, see `jit.to_object`.
        code: An object file, of level 0.
    """

    text: str
    target: Target
    level: int
    variables: bool
    code: bytes


def is_long(text: str) -> bool:
    """Return whether IR is so long that a draft is worth its while."""
    return text.count("\n") >= LONG


def load(key: str) -> bytes | None:
    """Return the object file of the draft kept under `key`, None where none is."""
    draft = _kept(key) if _is_possible() else None
    return draft and draft.code


def make(
    key: str, text: str, target: Target, level: int, *, variables: bool
) -> bytes | None:
    """Return the object file of a draft, which is kept; None where that cannot be.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    if not _is_possible() or not _can_store():
        return None
    with IMPORT_LOCK:
        from armillary.kernel.jit import to_object  # imports LLVM

    code = to_object(text, target, 0, variables=variables)
    draft = Draft(text, target, level, variables, code)
    disk_cache.store(key, msgspec.msgpack.encode(draft), DRAFTS)
    return code if _kept(key) else None


def improve(key: str, code: Code, target: Target, *, to_the_end: bool) -> None:
    """Have the code proper made in another process, and replace the draft by it.

    Where the cache cannot be written, the draft stays.

    to_the_end: Whether that process goes on when this one has ended.
    """
    if not _can_store():
        return
    path = [os.path.abspath(each) for each in sys.path]
    run = (
        f"import sys; sys.path[:] = {path!r}; "
        "from armillary.kernel.draft import main; "
        f"main({key!r}, to_the_end={to_the_end})"
    )
    # A process or a thread that cannot be started, say because this process ends, is no
    # error: the draft stays in use.
    with contextlib.suppress(OSError, RuntimeError):
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", run],
            # A pipe is closed when this process ends, however it does.
            stdin=subprocess.DEVNULL if to_the_end else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for it
        )
        thread = threading.Thread(
            target=_replace_after,
            args=(process, key, code, target),
            name="armillary-draft",
            daemon=True,
        )
        thread.start()
        _improving[:] = [*(each for each in _improving if each.is_alive()), thread]


def wait() -> None:
    """Wait until all drafts of this process have been replaced, or cannot be."""
    for thread in list(_improving):
        thread.join()


def _replace_after(
    process: subprocess.Popen[bytes], key: str, code: Code, target: Target
) -> None:
    """Wait for a process, and lead the calls of a draft to what it has stored."""
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    proper = disk_cache.load(key)
    if proper is not None:
        with contextlib.suppress(KernelError):  # of a system that refuses memory
            code.replace(Code(proper, target))


def main(key: str, *, to_the_end: bool) -> None:
    """Make the code proper of the draft kept under `key`.

    to_the_end: Whether it goes on when stdin ends.
    """
    if not to_the_end:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    os.nice(NICENESS)
    with _alone():
        finish(key)


def finish(key: str) -> None:
    """Replace the draft kept under `key`, if there is one, by the code proper."""
    draft = _kept(key)
    if draft is None:
        return
    if disk_cache.load(key) is None:
        with IMPORT_LOCK:
            from armillary.kernel.jit import to_object  # imports LLVM

        made = to_object(
            draft.text, draft.target, draft.level, variables=draft.variables
        )
        if _kept(key) is None:
            return  # the folder may have been removed, and is not made again
        disk_cache.store(key, made)
    disk_cache.remove(key, DRAFTS)


def _end_with_stdin() -> None:
    # Not by sys.stdin: a thread with its lock makes Python abort at its end.
    while os.read(0, 1024):
        pass
    os._exit(0)  # also out of LLVM


@contextlib.contextmanager
def _alone() -> Generator[None]:
    """Wait until no other process makes code proper in this cache, and keep others out.

    Where files cannot be locked, several may make the same.
    """
    folder = disk_cache.folder()
    with contextlib.ExitStack() as stack:
        if folder is not None and sys.platform == "linux":
            with contextlib.suppress(OSError):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                handle = os.open(folder / LOCK, flags, 0o600)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _kept(key: str) -> Draft | None:
    content = disk_cache.load(key, DRAFTS)
    if content is None:
        return None
    try:
        return msgspec.msgpack.decode(content, type=Draft)
    except msgspec.DecodeError:
        return None


def _can_store() -> bool:
    folder = disk_cache.folder()
    return folder is not None and os.access(folder, os.W_OK)


def _is_possible() -> bool:
    """Return whether drafts may be used here.

    Raises:
        KernelError: The environment's `ARMILLARY_BACKGROUND` is neither on nor off.
    """
    value = os.environ.get("ARMILLARY_BACKGROUND", "on").lower()
    if value not in ("on", "off"):
        raise KernelError(
            f"ARMILLARY_BACKGROUND is {value!r}; it takes on, the default, and off."
        )
    is_python = os.path.basename(sys.executable or "").startswith("python")
    is_placed = sys.platform == "linux" and platform.machine() == "x86_64"
    is_frozen = getattr(sys, "frozen", False)
    return value == "on" and is_placed and is_python and not is_frozen
