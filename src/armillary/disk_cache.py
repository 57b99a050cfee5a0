"""What later processes need not make again, on disk: code, arrays, formulas, cells.

The folder is private to the user, and what is in it is checked before it is trusted. A
file holds a header, a digest of its key and its content, and the content. It is written
beside its place and moved there in one step, so that readers see a whole file or none.
A folder that is a link, that belongs to somebody else, or that others may write, is not
used. Neither is such a file in it: others may have put it there when they still could.
A file whose digest does not match counts as absent and is written again. Arrays are in
the format of NumPy's `.npy` files, without Python objects: reading them runs nothing.
Formulas and cells are pickles, which are trusted as far as machine code is.

`ARMILLARY_CACHE` names another folder, in which `~` is the user's; `off` in any case
turns the cache off.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armillary.digests import hasher
from armillary.forks import IMPORT_LOCK
from armillary.replaced_file import replacing
from armillary.user_folder import user_folder

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.resources.abc import Traversable

__all__ = [
    "ARRAYS",
    "CODE",
    "DRAFTS",
    "FORMULAS",
    "READINGS",
    "cached_arrays",
    "folder",
    "load",
    "remove",
    "source_digest",
    "store",
]

Array = npt.NDArray[Any]

CODE: Final = ".o"
DRAFTS: Final = ".draft"
ARRAYS: Final = ".arrays"
FORMULAS: Final = ".formulas"
READINGS: Final = ".reading"
"""Endings of the names of files."""

ENDINGS: Final = (CODE, DRAFTS, ARRAYS, FORMULAS, READINGS)

SOURCES: Final = (".py", ".pyc", ".toml")
"""Endings of the files that decide what a package makes."""

MAGIC = b"armillary code 2\n"
SIZE_LIMIT = 512 * 2**20

# Pruning leaves room for what several processes store until they prune again.
SIZE_AFTER_PRUNING = SIZE_LIMIT * 7 // 8
SIZE_PER_PRUNING = SIZE_LIMIT // 64

HEADER_SIZE = len(MAGIC) + hasher().digest_size
STORES_PER_PRUNING = 32
UNFINISHED = ".new-"
LONGEST_WRITING = 3600.0  # [s]
CLOCK_STEP = 2_000_000_000  # of the times of files, at most [ns]

# A process runs what its files were when it began. What it makes once they have been
# changed is in no key but its own, and those of its forks.
BEGAN = time.time_ns()
OWN = os.urandom(16)

_stores = itertools.count()
_unpruned = [0]  # bytes stored since the last pruning


def folder() -> Path | None:
    """Return where files are kept; None where there is no place, or none wanted."""
    value = os.environ.get("ARMILLARY_CACHE")
    if value:
        return None if value.lower() == "off" else Path(os.path.expanduser(value))
    return user_folder(
        windows=("LOCALAPPDATA", "AppData", "Local"),
        mac=("Library", "Caches"),
        other=("XDG_CACHE_HOME", ".cache"),
    )


def cached_arrays(
    what: str,
    parts: Iterable[npt.ArrayLike],
    make: Callable[[], Sequence[npt.ArrayLike]],
    *,
    made_by: tuple[str, ...],
) -> list[Array]:
    """Return arrays that an earlier process has made, or else those that `make` makes.

    Args:
        what: What they are, for the key.
        parts: All that decides their numbers, texts and arrays.
        make: Makes them; what it raises is raised.
        made_by: The modules that do, see `source_digest`.
    """
    digest = hasher()
    for part in (what, *made_by, np.__version__, sys.byteorder):
        digest.update(f"{part}\n".encode())
    source = source_digest(made_by)
    if folder() is None or source is None:
        return list(map(np.asarray, make()))
    digest.update(source)
    for part in parts:
        array = np.asarray(part)
        digest.update(f"{array.dtype.str}{array.shape}\n".encode() + array.tobytes())
    key = digest.hexdigest()
    content = load(key, ARRAYS)
    if content is not None:
        with contextlib.suppress(ValueError, EOFError):  # made anew below
            return _unpacked(content)
    arrays = list(map(np.asarray, make()))
    store(key, _packed(arrays), ARRAYS)
    return arrays


def _packed(arrays: Iterable[Array]) -> bytes:
    stream = BytesIO()
    for array in arrays:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _unpacked(content: bytes) -> list[Array]:
    """Return the arrays that `_packed` has packed, which cannot be written.

    They share the memory of `content`: tables take megabytes, and each page of memory
    that a process touches first costs it a visit to the system.

    Raises:
        ValueError: It has not.
    """
    stream, arrays = BytesIO(content), list[Array]()
    while stream.tell() < len(content):
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("arrays are in the first version of the format")
        header = np.lib.format.read_array_header_1_0(stream)
        shape, is_by_column, dtype = header
        count, start = math.prod(shape), stream.tell()
        array = np.frombuffer(content, dtype, count, start) if count else np.empty(0)
        array = array.astype(dtype, copy=False)
        array = array.reshape(shape, order="F" if is_by_column else "C")
        # What follows texts or short numbers may lie anywhere.
        arrays.append(array if array.flags.aligned else array.copy())
        stream.seek(start + count * dtype.itemsize)
    return arrays


def source_digest(modules: tuple[str, ...]) -> bytes | None:
    """Return a digest of the source of modules; None where it cannot be read.

    What makes something is part of its key, as another source makes something else.

    Where a file has been changed since this process began, it may run what was there
    before: then no other process has its digest.

    modules: Of a package of ours all modules count, but not those of packages in it. A
        library is named as a whole, and counts by its `version.py`.
    """
    seen = _as_it_lies(modules)
    return _digest_of_all(modules) if seen is None else _kept_digest(modules, seen)


@lru_cache(maxsize=64)
def _kept_digest(modules: tuple[str, ...], seen: str) -> bytes | None:
    """Return a digest that another process has made of the same files."""

    def read() -> list[Array]:
        return [np.frombuffer(_digest_of_all(modules) or b"", np.uint8)]

    (known,) = cached_arrays("source", [seen], read, made_by=(__name__,))
    return known.tobytes() or None


def _digest_of_all(modules: tuple[str, ...]) -> bytes | None:
    digests = [_digest_of(name) for name in modules]
    return None if None in digests else b"".join(filter(None, digests))


@lru_cache(maxsize=64)
def _as_it_lies(modules: tuple[str, ...]) -> str | None:
    """Return what tells the content of packages without reading them, if anything.

    Whoever writes a file changes the time of its last change, which nobody can set:
    where that, and all else that the system says of a file, is as before, so is the
    content. To read some 200 files takes ten times as long as to ask for this. A clock
    has steps, so files that were changed a moment ago are read, as are those that were
    changed since this process began.
    """
    if sys.platform == "win32":  # it has no such time
        return None
    try:
        listed = [_listing(name) for name in modules]
    except (OSError, ValueError):  # in an archive, or a stand-in
        return None
    latest = max(changed for _, changed in listed)
    if not latest or latest > min(BEGAN, time.time_ns() - CLOCK_STEP):
        return None
    return "\n".join(text for text, _ in listed)


@lru_cache(maxsize=128)
def _listing(name: str) -> tuple[str, int]:
    """Return what the system says of the files of a package, and the latest change.

    Of a single module it is the digest of its source, and 0.

    Raises:
        OSError, ValueError: The package is in an archive, or a stand-in.
    """
    spec = find_spec(name)
    places = (spec and spec.submodule_search_locations) or ()
    if spec is None or not name.startswith("armillary.") or not places:
        return f"{name} {_digest_of(name)!r}", 0
    seen: list[str] = []
    latest = 0
    for place in places:
        seen.append(place)
        for entry in sorted(os.scandir(place), key=lambda each: each.name):
            if entry.name.endswith(SOURCES):
                status = entry.stat()
                latest = max(latest, status.st_ctime_ns)
                seen.append(
                    f"{entry.name} {status.st_dev} {status.st_ino} {status.st_size} "
                    f"{status.st_mtime_ns} {status.st_ctime_ns}"
                )
    return "\n".join(seen), latest


@lru_cache(maxsize=64)
def _digest_of(name: str) -> bytes | None:
    digest = hasher()
    try:
        spec = find_spec(name)
        loader: Any = spec and spec.loader
        source = (spec and spec.origin) or ""
        is_ours = name.startswith("armillary.")
        if is_ours and spec and spec.submodule_search_locations:
            # Without source, what is compiled from it counts.
            for file in sorted(_listed(name, spec), key=lambda entry: entry.name):
                if file.name.endswith(SOURCES):
                    digest.update(file.read_bytes())
                    digest.update(_own(file))
            return digest.digest()
        if not is_ours:
            source = os.path.join(os.path.dirname(source), "version.py")
        digest.update(loader.get_data(source))
        digest.update(_own(source))
    except (AttributeError, OSError, ValueError):  # ValueError: of a stand-in
        return None
    return digest.digest()


def _own(file: Any) -> bytes:
    """Return `OWN` for a file that was changed since this process began, else nothing.

    Files in archives are never changed.
    """
    with contextlib.suppress(OSError, TypeError):
        if os.stat(file).st_ctime_ns > BEGAN:
            return OWN
    return b""


def _listed(name: str, spec: ModuleSpec) -> Iterable[Traversable]:
    """Return the files of a package of ours."""
    places = spec.submodule_search_locations or ()
    if len(places) == 1 and os.path.isdir(places[0]):
        return Path(places[0]).iterdir()
    with IMPORT_LOCK:
        from importlib.resources import files  # a package in an archive

    return files(name).iterdir()


def load(key: str, ending: str = CODE) -> bytes | None:
    """Return what is stored under `key`, None where there is nothing that is whole."""
    place = _trusted_folder()
    if place is None:
        return None
    path = _entry(place, key, ending)
    try:
        header, content = _read(path)
    except OSError:
        return None
    # The digest covers the key too: a file that was renamed is another program's.
    if header != _header(key, content):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # what was used last is kept longest
    return content


def store(key: str, content: bytes, ending: str = CODE) -> None:
    """Keep `content` under `key`; a disk that is full or read-only is not an error."""
    place = _trusted_folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        entry = _entry(place, key, ending)
        with contextlib.suppress(FileNotFoundError):
            # What is replaced hands its mode on; nothing of others does.
            if not _is_ours(entry.lstat()):
                entry.unlink()
        with replacing(entry, draft=UNFINISHED, mode=0o600) as file:
            file.write(_header(key, content))
            file.write(content)
    _unpruned[0] += HEADER_SIZE + len(content)
    # Looking at all files takes longer than to write one, so it is done now and then.
    if next(_stores) % STORES_PER_PRUNING == 0 or _unpruned[0] > SIZE_PER_PRUNING:
        _unpruned[0] = 0
        _prune(place)


def remove(key: str, ending: str) -> None:
    """Remove what is stored under `key`, if anything is."""
    place = _trusted_folder()
    if place is not None:
        with contextlib.suppress(OSError):
            _entry(place, key, ending).unlink()


def _entry(place: Path, key: str, ending: str) -> Path:
    return place / f"{key}{ending}"


def _header(key: str, content: bytes) -> bytes:
    digest = hasher(key.encode())
    digest.update(content)
    return MAGIC + digest.digest()


def _read(path: Path) -> tuple[bytes, bytes]:
    """Return the header and the content of a file.

    Of a plain one: a pipe or a device would block or not end.
    """
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags)
    with open(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        is_plain = stat.S_ISREG(status.st_mode) and status.st_size <= SIZE_LIMIT
        if not (is_plain and _is_ours(status)):
            raise OSError(errno.EINVAL, "no entry of the cache")
        return file.read(HEADER_SIZE), file.readall()


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
    return place if stat.S_ISDIR(status.st_mode) and _is_ours(status) else None


def _is_ours(status: os.stat_result) -> bool:
    """Return whether something belongs to the user, and nobody else may write it."""
    if sys.platform == "win32":
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


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
                name = entry.name
                is_ours = name.endswith(ENDINGS) or name.startswith(UNFINISHED)
                if is_ours and stat.S_ISREG(status.st_mode):
                    files.append((status.st_mtime, status.st_size, Path(entry.path)))
    return files
