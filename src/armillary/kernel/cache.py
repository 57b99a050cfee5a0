"""Compiled code on disk: private to the user, checked before it is trusted.

A file holds a header, a digest of what follows, and the code. It is written beside its
place and moved there in one step, so that readers see a whole file or none. A folder that
belongs to somebody else, or that others may write, is not used; a file whose digest does
not match counts as absent and is written again.

`ARMILLARY_CACHE` names another folder; `off` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

MAGIC = b"armillary code 1\n"
SIZE_LIMIT = 512 * 2**20


def folder() -> Path | None:
    """Return where code is kept; None where the user turned the cache off."""
    wish = os.environ.get("ARMILLARY_CACHE")
    if wish is not None:
        return None if wish in {"", "off"} else Path(wish)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
        base = Path(root) if root else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME")
        base = Path(root) if root else Path.home() / ".cache"
    return base / "armillary"


def load(key: str) -> bytes | None:
    """Return the code stored under `key`, None where there is none that is whole."""
    place = _trusted_folder()
    if place is None:
        return None
    try:
        content = (place / f"{key}.o").read_bytes()
    except OSError:
        return None
    digest = content[len(MAGIC) : len(MAGIC) + 32]
    code = content[len(MAGIC) + 32 :]
    if not content.startswith(MAGIC) or hashlib.sha256(code).digest() != digest:
        return None
    return code


def store(key: str, code: bytes) -> None:
    """Keep `code` under `key`; a disk that is full or read-only is no error."""
    place = _trusted_folder()
    if place is None:
        return
    content = MAGIC + hashlib.sha256(code).digest() + code
    with contextlib.suppress(OSError):
        handle, name = tempfile.mkstemp(dir=place, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, place / f"{key}.o")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
        _prune(place)


def _trusted_folder() -> Path | None:
    """Return the folder, made if need be, or None where it is not ours alone."""
    place = folder()
    if place is None:
        return None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.stat()
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
    """Remove the files that were used least recently while there is too much."""
    with contextlib.suppress(OSError):
        entries = [
            (status.st_mtime, status.st_size, path)
            for path in place.glob("*.o")
            if (status := path.stat())
        ]
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= SIZE_LIMIT:
                return
            path.unlink(missing_ok=True)
            total -= size
