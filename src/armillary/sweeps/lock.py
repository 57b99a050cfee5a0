"""A lock that lets one sweep at a time write to a path, and ends with its process.

The call of a sweep holds it, not its workers, which may run on other machines. It is a
lock of the operating system on a file beside the path: the system releases it however
the process ends, and on network file systems that support locks it holds between
machines. Where a file system has no locks, the existence of the file is the lock: the
file names the process and the machine that made it, and does not count if that process
of this machine has ended.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

from armillary.errors import SweepError, quote

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["only_sweep"]

BUSY: Final = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
NO_LOCKS: Final = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
OWN: Final = ".own"  # ends the name of a file that is the lock itself
IS_WINDOWS: Final = sys.platform == "win32"
# On Windows locked bytes cannot be read, so one far behind the content is locked.
LOCKED_BYTE: Final = 1 << 30

_held: set[int] = set()  # descriptors of lock files


class _Busy(Exception):
    """Another sweep has the lock."""


@contextlib.contextmanager
def only_sweep(path: Path) -> Generator[None]:
    """Lock a path of results against other sweeps while the block runs.

    Raises:
        SweepError: Another sweep writes to it.
        OSError: The folder of the path cannot be written.
    """
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    file = real.with_name(f".{real.name}.lock")
    try:
        try:
            handle = _locked(file)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            file.unlink(missing_ok=True)
            file = file.with_suffix(OWN)
            handle = _made(file)
    except _Busy:
        raise SweepError(_refusal(path, file)) from None
    try:
        yield
    finally:
        _release(file, handle)


def _refusal(path: Path, file: Path) -> str:
    who = _holder(file)
    by = f" (process {who['process']} on {who['machine']})" if who else ""
    text = (
        f"Another sweep{by} is writing to {quote(str(path))}. Wait until it has ended, "
        "or choose another path."
    )
    if file.suffix == OWN:
        text += f" If none is, remove {quote(file.name)} beside it."
    return text


def _locked(file: Path) -> int:
    """Return the descriptor of a file that the system has locked.

    Raises:
        _Busy: Another sweep has locked it.
        OSError: It cannot be opened, or this file system has no locks.
    """
    while True:
        handle = os.open(file, OPEN, 0o666)
        try:
            _lock(handle)
            # Its last holder may have removed it between the two calls.
            if _is_at(handle, file):
                return _signed(handle)
        except OSError as error:
            os.close(handle)
            if error.errno in BUSY:
                raise _Busy from error
            raise
        os.close(handle)


def _made(file: Path) -> int:
    """Return the descriptor of a file that is made by this call.

    Raises:
        _Busy: It exists, and the process that made it may still run.
    """
    while True:
        try:
            return _signed(os.open(file, OPEN | os.O_EXCL, 0o666))
        except FileExistsError as error:
            who = _holder(file)
            if who is None or who["machine"] != socket.gethostname():
                raise _Busy from error
            if _is_alive(who["process"]):
                raise _Busy from error
            file.unlink(missing_ok=True)


def _lock(handle: int) -> None:
    """Lock an open file, at once or not at all."""
    if sys.platform == "win32":
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def _signed(handle: int) -> int:
    """Write the holder into the file; return its descriptor."""
    who = {"process": os.getpid(), "machine": socket.gethostname()}
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(who).encode())
    _held.add(handle)
    return handle


def _holder(file: Path) -> dict[str, Any] | None:
    """Return the holder that a file names; None if it names none."""
    try:
        holder = json.loads(file.read_bytes())
        return {"process": int(holder["process"]), "machine": str(holder["machine"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_alive(process: int) -> bool:
    """Tell whether a process of this machine runs, or may run."""
    if IS_WINDOWS:
        return True  # its file systems have locks; os.kill would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _release(file: Path, handle: int) -> None:
    """Remove a lock file: before others can lock it, or, on Windows, open it."""
    if handle not in _held:
        return  # a forked process, which does not hold it
    _held.discard(handle)
    if not IS_WINDOWS:
        file.unlink(missing_ok=True)
    os.close(handle)
    if IS_WINDOWS:
        with contextlib.suppress(OSError):  # another sweep has opened it
            file.unlink()


def _leave_to_parent() -> None:
    """Close lock files in a forked process, which would hold them longer."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
