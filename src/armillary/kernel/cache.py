"""Compiled code on disk: private to the user, checked before it is trusted.

A file holds a header, a digest of its key and its code, and the code. It is written
beside its place and moved there in one step, so that readers see a whole file or none.
A folder that is a link, that belongs to somebody else, or that others may write, is not
used; a file whose digest does not match counts as absent and is written again.

`ARMILLARY_CACHE` names another folder; `off` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

MAGIC = b"armillary code 2\n"
SIZE_LIMIT = 512 * 2**20

HEADER_SIZE = len(MAGIC) + hashlib.sha256().digest_size
STORES_PER_PRUNING = 32
UNFINISHED = ".new-"
LONGEST_WRITING = 3600.0  # [s]

_stores = itertools.count()


def folder() -> Path | None:
    """Return where code is kept; None where there is no such place, or none wanted."""
    wish = os.environ.get("ARMILLARY_CACHE")
    if wish == "off":
        return None
    if wish:
        return Path(wish)
    if sys.platform == "win32":
        base = _folder_of("LOCALAPPDATA", "AppData", "Local")
    elif sys.platform == "darwin":
        base = _home("Library", "Caches")
    else:
        base = _folder_of("XDG_CACHE_HOME", ".cache")
    return base and base / "armillary"


def _folder_of(variable: str, *default: str) -> Path | None:
    """Return what an environment variable says, if it is absolute, or a default."""
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else _home(*default)


def _home(*parts: str) -> Path | None:
    home = os.path.expanduser("~")
    return Path(home, *parts) if os.path.isabs(home) else None


def load(key: str) -> bytes | None:
    """Return the code stored under `key`, None where there is none that is whole."""
    place = _trusted_folder()
    if place is None:
        return None
    path = _entry(place, key)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[HEADER_SIZE:]
    if content[:HEADER_SIZE] != _header(key, code):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # what was used last is kept longest
    return code


def store(key: str, code: bytes) -> None:
    """Keep `code` under `key`; a disk that is full or read-only is no error."""
    place = _trusted_folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        _write(_entry(place, key), _header(key, code) + code)
    if next(_stores) % STORES_PER_PRUNING == 0:
        _prune(place)


def _entry(place: Path, key: str) -> Path:
    return place / f"{key}.o"


def _header(key: str, code: bytes) -> bytes:
    return MAGIC + hashlib.sha256(key.encode() + code).digest()


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


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
    total = 0
    for modified, size, path in sorted(_files(place), reverse=True):
        total += size
        is_left_over = (
            path.name.startswith(UNFINISHED)
            and modified < time.time() - LONGEST_WRITING
        )
        if total > SIZE_LIMIT or is_left_over:
            with contextlib.suppress(OSError):
                path.unlink()


def _files(place: Path) -> list[tuple[float, int, Path]]:
    """Return when each file was used, its size, and where it is."""
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place):
            with contextlib.suppress(OSError):  # another process removed it
                status = entry.stat(follow_symlinks=False)
                is_ours = entry.name.endswith(".o") or entry.name.startswith(UNFINISHED)
                if is_ours and stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
    return found
