"""Compiled code on disk: private to the user, checked before it is trusted.

A file holds a header, a digest of its key and its code, and the code. It is written
beside its place and moved there in one step, so that readers see a whole file or none.
A folder that is a link, that belongs to somebody else, or that others may write, is not
used; a file whose digest does not match counts as absent and is written again.

`ARMILLARY_CACHE` names another folder, in which `~` is the user's; `off` in any case
turns the cache off.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import stat
import sys
import time
from pathlib import Path

from armillary.replaced_file import replacing
from armillary.user_folder import user_folder

MAGIC = b"armillary code 2\n"
SIZE_LIMIT = 512 * 2**20

# Pruning leaves room for what several processes store until they prune again.
SIZE_AFTER_PRUNING = SIZE_LIMIT * 7 // 8
SIZE_PER_PRUNING = SIZE_LIMIT // 64

HEADER_SIZE = len(MAGIC) + hashlib.sha256().digest_size
STORES_PER_PRUNING = 32
UNFINISHED = ".new-"
LONGEST_WRITING = 3600.0  # [s]

_stores = itertools.count()
_unpruned = [0]  # bytes stored since the last pruning


def folder() -> Path | None:
    """Return where code is kept; None where there is no such place, or none wanted."""
    value = os.environ.get("ARMILLARY_CACHE")
    if value:
        return None if value.lower() == "off" else Path(os.path.expanduser(value))
    return user_folder(
        windows=("LOCALAPPDATA", "AppData", "Local"),
        mac=("Library", "Caches"),
        other=("XDG_CACHE_HOME", ".cache"),
    )


def load(key: str) -> bytes | None:
    """Return the code stored under `key`, None where there is none that is whole."""
    place = _trusted_folder()
    if place is None:
        return None
    path = _entry(place, key)
    try:
        content = _read(path)
    except OSError:
        return None
    code = content[HEADER_SIZE:]
    # The digest covers the key too: a file that was renamed is another program's.
    if content[:HEADER_SIZE] != _header(key, code):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # what was used last is kept longest
    return code


def store(key: str, code: bytes) -> None:
    """Keep `code` under `key`; a disk that is full or read-only is not an error."""
    place = _trusted_folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        entry = _entry(place, key)
        with replacing(entry, draft=UNFINISHED, mode=0o600) as file:
            file.write(_header(key, code) + code)
    _unpruned[0] += HEADER_SIZE + len(code)
    # Looking at all files takes longer than to write one, so it is done now and then.
    if next(_stores) % STORES_PER_PRUNING == 0 or _unpruned[0] > SIZE_PER_PRUNING:
        _unpruned[0] = 0
        _prune(place)


def _entry(place: Path, key: str) -> Path:
    return place / f"{key}.o"


def _header(key: str, code: bytes) -> bytes:
    return MAGIC + hashlib.sha256(key.encode() + code).digest()


def _read(path: Path) -> bytes:
    """Return the content of a plain file; a pipe or a device would block or not end."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > SIZE_LIMIT:
            raise OSError(errno.EINVAL, "no entry of the cache")
        return file.read()


def _trusted_folder() -> Path | None:
    """Return the folder, made if need be, or None where it is not ours alone."""
    place = folder()
    if place is None:
        return None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if sys.platform != "win32" and (
        status.st_uid != os.getuid() or status.st_mode & 0o022
    ):
        return None
    return place


def _prune(place: Path) -> None:
    """Remove what was used least recently while there is too much, and left-overs."""
    total, now = 0, time.time()
    # What claims to be used in the future has a wrong time, and goes first.
    files = [
        (modified if modified < now + LONGEST_WRITING else 0.0, size, path)
        for modified, size, path in _files(place)
    ]
    for modified, size, path in sorted(files, reverse=True):
        total += size
        is_left_over = (
            path.name.startswith(UNFINISHED) and modified < now - LONGEST_WRITING
        )
        if total > SIZE_AFTER_PRUNING or is_left_over:
            with contextlib.suppress(OSError):
                path.unlink()


def _files(place: Path) -> list[tuple[float, int, Path]]:
    """Return when each file was used, its size, and where it is."""
    files: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place):
            with contextlib.suppress(OSError):  # another process removed it
                status = entry.stat(follow_symlinks=False)
                is_ours = entry.name.endswith(".o") or entry.name.startswith(UNFINISHED)
                if is_ours and stat.S_ISREG(status.st_mode):
                    files.append((status.st_mtime, status.st_size, Path(entry.path)))
    return files
