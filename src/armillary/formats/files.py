"""Reading and writing files: plain ones only, bounded, as a whole or not at all."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from armillary.errors import FormatError, nearest, quote
from armillary.formats.diagnostic import Budget, fault
from armillary.limits import FILE_SIZE, NEIGHBOURS
from armillary.replaced_file import replacing

__all__ = ["likely_file", "read_bytes", "read_pieces", "write_bytes"]

# A pipe with no writer would block the opening; a terminal must not become ours.
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bytes(path: str | os.PathLike[str], cap: int = FILE_SIZE.most) -> bytes:
    """Return all bytes of a plain file.

    cap: The most bytes that the file may have; a larger one is not even begun.

    Raises FormatError for a missing file, one too large or not readable, and for
    folders, pipes, devices and sockets, none of which is opened.
    """
    name = os.fspath(path)
    try:
        # Looked at before it is opened, since opening alone can act on a device.
        _check(os.stat(name), name, cap)
        descriptor = os.open(name, _OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check(status, name, cap)
            data = file.read(status.st_size + 1)
            if len(data) > status.st_size:
                # The file grew, or is of a kind that hides its size.
                data += file.read(cap + 1 - len(data))
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error
    if len(data) > cap:
        raise Budget({FILE_SIZE: cap}).excess(FILE_SIZE, name)
    return data


def read_pieces(
    path: str | os.PathLike[str], cap: int, *, piece: int, start: int = 0
) -> Iterator[bytes]:
    """Yield the bytes of a plain file from `start` in pieces of this many bytes.

    Raises FormatError as `read_bytes` does.
    """
    name = os.fspath(path)
    try:
        _check(os.stat(name), name, cap)
        with os.fdopen(os.open(name, _OPEN_FLAGS), "rb") as file:
            status = os.fstat(file.fileno())
            _check(status, name, cap)
            file.seek(start)
            for at in range(start, status.st_size, piece):
                yield file.read(min(piece, status.st_size - at))
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a plain file by these bytes at once: readers see the old or the new.

    A symbolic link stays and its target is replaced; the permissions of a replaced
    file are kept.

    Raises FormatError if the folder does not exist or the system refuses.
    """
    name = os.fspath(path)
    try:
        target = os.path.realpath(name)
        folder = os.path.dirname(target)
        if os.path.exists(target) and not os.path.isfile(target):
            raise fault(
                name, "not-a-file", "this is not a plain file", hint="Name a file."
            )
        if not os.path.isdir(folder):
            raise fault(
                name,
                "no-such-folder",
                f"there is no folder {folder}",
                hint="Create it first.",
            )
        with replacing(target) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise fault(
            name, "unwritable-file", f"the file cannot be written: {reason}"
        ) from error


def likely_file(path: str | os.PathLike[str]) -> str | None:
    """Return the name in the same folder that is most like that of a missing file."""
    missing = Path(path)
    try:
        with os.scandir(missing.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, NEIGHBOURS.most)]
    except (OSError, ValueError):
        return None
    return nearest(missing.name, sorted(names))


def _check(status: os.stat_result, name: str, cap: int) -> None:
    """Raise unless the file is a plain one of at most `cap` bytes."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a plain file")
        raise fault(name, "not-a-file", f"this is {kind}", hint="Name a plain file.")
    Budget({FILE_SIZE: cap}).check(FILE_SIZE, status.st_size, name)


def _unreadable(name: str, error: OSError | ValueError) -> FormatError:
    """Return the error for a file that the system does not hand out."""
    if name.lstrip()[:1] in {"<", "{"}:
        text = "this is a text rather than the name of a file"
        return fault("<text>", "no-such-file", text, hint="Write it to a file first.")
    if isinstance(error, FileNotFoundError):
        likely = likely_file(name)
        hint = f"Did you mean {quote(likely)}?" if likely else ""
        return fault(name, "no-such-file", "no such file", hint=hint)
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return fault(name, "unreadable-file", f"the file cannot be read: {reason}")
