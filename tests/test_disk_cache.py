"""Compiled code on disk: private, whole or absent, bounded, shared by processes."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary.disk_cache as cache

KEY, OTHER = "a" * 64, "b" * 64
CODE = bytes(range(256)) * 20

posix = pytest.mark.skipif(sys.platform == "win32", reason="no modes and owners")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which does not exist yet."""
    folder = tmp_path / "deep" / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


def entry(place: Path, key: str = KEY) -> Path:
    return place / f"{key}.o"


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


# What is stored is found, and nothing else.


@pytest.mark.parametrize("code", [CODE, b"", b"\0", cache.MAGIC * 3])
def test_what_is_stored_is_found(place: Path, code: bytes):
    assert cache.load(KEY) is None
    cache.store(KEY, code)
    assert cache.load(KEY) == code
    assert cache.load(OTHER) is None
    assert names(place) == {f"{KEY}.o"}


def test_a_later_code_replaces_an_earlier(place: Path):
    cache.store(KEY, b"old")
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in the magic": lambda content: content[:5],
    "cut in the digest": lambda content: content[: cache.HEADER_SIZE - 1],
    "header alone": lambda content: content[: cache.HEADER_SIZE],
    "cut by one": lambda content: content[:-1],
    "longer by one": lambda content: content + b"\0",
    "first bit": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "last bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "bit of the digest": lambda content: (
        content[: len(cache.MAGIC)]
        + bytes([content[len(cache.MAGIC)] ^ 128])
        + content[len(cache.MAGIC) + 1 :]
    ),
    "other version": lambda content: content.replace(b"code 2", b"code 1", 1),
    "zeros": lambda content: bytes(len(content)),
    "code without a header": lambda content: content[cache.HEADER_SIZE :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_counts_as_absent(place: Path, damage: str):
    cache.store(KEY, CODE)
    path = entry(place)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_code_of_another_key_is_not_taken(place: Path):
    cache.store(KEY, CODE)
    os.replace(entry(place), entry(place, OTHER))
    assert cache.load(OTHER) is None


def test_an_entry_that_is_not_a_file_counts_as_absent(place: Path):
    cache.store(OTHER, CODE)
    entry(place).mkdir()
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert names(place) == {f"{KEY}.o", f"{OTHER}.o"}


@posix
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device", "link"])
def test_an_entry_that_is_not_a_plain_file_is_not_read(
    place: Path, tmp_path: Path, kind: str
):
    """A pipe would block, a device never end; a link may lead to either."""
    cache.store(KEY, CODE)
    path, other = entry(place), tmp_path / "other"
    content = path.read_bytes()
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        other.write_bytes(content)
        path.symlink_to(other)
    else:
        os.mkfifo(path if kind == "pipe" else other)
        if kind == "link to a pipe":
            path.symlink_to(other)
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_an_entry_of_any_size_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch):
    cache.store(KEY, CODE)
    monkeypatch.setattr(cache, "SIZE_LIMIT", len(CODE))
    assert cache.load(KEY) is None


# Arrays.

MADE_BY = ("armillary.disk_cache",)
TABLES = (
    np.arange(6.0).reshape(2, 3),
    np.array(7),
    np.zeros((0, 4), np.int16),
    np.asfortranarray(np.eye(3, dtype=np.float32)),
)


class Maker:
    """Make arrays, and count how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> tuple[np.ndarray, ...]:
        self.count += 1
        return TABLES


def tables(make: Maker, *parts: Any, what: str = "tables") -> None:
    found = cache.cached_arrays(what, parts or ("a", 1.0), make, made_by=MADE_BY)
    for array, wanted in zip(found, TABLES, strict=True):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.usefixtures("place")
def test_arrays_that_were_read_are_aligned_and_share_memory():
    made = [np.arange(5, dtype=np.int8), np.arange(9.0), np.array("text"), np.eye(64)]
    cache.cached_arrays("odd", [1], lambda: made, made_by=MADE_BY)
    found = cache.cached_arrays("odd", [1], lambda: made, made_by=MADE_BY)
    for array, wanted in zip(found, made, strict=True):
        np.testing.assert_array_equal(array, wanted)
        assert array.flags.aligned
    assert not found[0].flags.owndata


@pytest.mark.usefixtures("place")
def test_arrays_are_made_once_for_the_same_parts():
    make = Maker()
    tables(make)
    tables(make)
    assert make.count == 1
    others: list[tuple[Any, ...]] = [
        ("b", 1.0),
        ("a", 2.0),
        ("a", 1),
        ("a1.0",),
        ("a", [1.0]),
        ("a", [[1.0]]),
        (1.0, "a"),
    ]
    for parts in others:
        tables(make, *parts)
    assert make.count == 1 + len(others)
    tables(make, what="other tables")
    assert make.count == 2 + len(others)


@pytest.mark.usefixtures("place")
def test_arrays_of_another_version_of_a_library_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The library itself is not imported: that takes longer than to load arrays."""
    package = tmp_path / "hull_maker"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)
    made: list[int] = []

    def make() -> list[int]:
        made.append(1)
        return made

    for version in ("1.0", "1.0", "2.0"):
        (package / "version.py").write_text(f"version = {version!r}")
        cache._digest_of.cache_clear()
        cache.cached_arrays("hulls", ["a"], make, made_by=("hull_maker",))
    assert len(made) == 2


@pytest.mark.usefixtures("place")
def test_arrays_of_another_source_are_not_taken(monkeypatch: pytest.MonkeyPatch):
    make = Maker()
    tables(make)
    monkeypatch.setattr(cache, "source_digest", lambda modules: b"another")
    tables(make)
    assert make.count == 2
    monkeypatch.setattr(cache, "source_digest", lambda modules: None)  # no source
    tables(make)
    tables(make)
    assert make.count == 4


def forget_sources() -> None:
    for each in (
        cache._digest_of,
        cache._listing,
        cache._as_it_lies,
        cache._kept_digest,
    ):
        each.cache_clear()


def as_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a folder a package of ours, and return its name."""
    name = "armillary.made"
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    find = cache.find_spec
    monkeypatch.setattr(cache, "find_spec", lambda n: spec if n == name else find(n))
    return name


@pytest.mark.usefixtures("place")
def test_sources_are_read_again_where_any_file_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever the clock of a file is set to: `ctime` cannot be set."""
    package = tmp_path / "made"
    package.mkdir()
    (package / "one.py").write_text("1")
    (package / "notes.txt").write_text("1")
    name = as_package(package, monkeypatch)
    read: list[Path] = []

    def listed(*_: object) -> list[Path]:
        read.append(package)
        return list(package.iterdir())

    monkeypatch.setattr(cache, "_listed", listed)
    now = time.time_ns()
    later = now + 100 * cache.CLOCK_STEP
    monkeypatch.setattr(cache, "BEGAN", later)

    def digest(at: int = later) -> bytes | None:
        forget_sources()
        monkeypatch.setattr(time, "time_ns", lambda: at)
        return cache.source_digest((name,))

    try:
        first = digest()
        assert first is not None
        assert len(read) == 1
        assert digest() == first
        assert len(read) == 1  # nothing was read
        assert digest(now) == first  # another change may come within the same tick
        assert len(read) == 2
        status = (package / "one.py").stat()
        (package / "one.py").write_text("2")
        os.utime(package / "one.py", ns=(status.st_atime_ns, status.st_mtime_ns))
        second = digest()
        assert second not in {None, first}
        (package / "two.py").write_text("3")
        assert digest() not in {None, first, second}
        (package / "two.py").unlink()
        (package / "one.py").write_text("1")
        assert digest() == first
    finally:
        monkeypatch.undo()
        forget_sources()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("is_listed", [True, False])
def test_what_older_code_makes_is_not_found_by_newer(
    is_listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Sources may be changed while a process runs what it has imported of them."""
    package = tmp_path / "made"
    package.mkdir()
    (package / "one.py").write_text("old")
    name = as_package(package, monkeypatch)
    make = Maker()

    def asked(began: int, process: bytes) -> int:
        """Return how often tables were made after a process asked for them."""
        forget_sources()
        monkeypatch.setattr(cache, "BEGAN", began)
        monkeypatch.setattr(cache, "OWN", process)
        cache.cached_arrays("tables", ["a"], make, made_by=(name,))
        return make.count

    changed = (package / "one.py").stat().st_ctime_ns
    if is_listed:  # as if that were long ago
        monkeypatch.setattr(time, "time_ns", lambda: changed + 10 * cache.CLOCK_STEP)
    try:
        assert asked(changed - 1, b"older") == 1
        assert asked(changed - 1, b"older") == 1  # a fork of it
        assert asked(changed - 1, b"another") == 2
        assert asked(changed + 1, b"newer") == 3
        assert asked(changed + 1, b"a later one") == 3
    finally:
        monkeypatch.undo()
        forget_sources()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_arrays_are_made_again(place: Path, damage: str):
    make = Maker()
    tables(make)
    (path,) = place.iterdir()
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    tables(make)
    tables(make)
    assert make.count == 2


class Alarm:
    """An object that shows it if it is unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("code ran",)


def test_what_is_stored_never_runs(place: Path):
    """Also where the digest is right: NumPy would unpickle arrays of objects."""
    make = Maker()
    tables(make)
    (path,) = place.iterdir()
    stream = io.BytesIO()
    np.save(stream, np.array([Alarm()], object), allow_pickle=True)
    contents = (stream.getvalue(), b"\x93NUMPY\x01\x00", b"no arrays", CODE)
    for count, content in enumerate(contents):
        cache.store(path.stem, content, cache.ARRAYS)
        tables(make)
        assert make.count == 2 + count


def test_arrays_without_a_disk(place: Path, monkeypatch: pytest.MonkeyPatch):
    make = Maker()
    monkeypatch.setattr(cache, "replacing", failing(errno.ENOSPC))
    tables(make)
    tables(make)
    assert make.count == 2
    monkeypatch.undo()
    monkeypatch.setenv("ARMILLARY_CACHE", str(place))
    tables(make)
    shutil.rmtree(place)  # the folder disappears
    tables(make)
    tables(make)
    assert make.count == 4
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    tables(make)
    assert make.count == 5


@pytest.mark.usefixtures("place")
def test_errors_of_makers_are_raised():
    def fail() -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        cache.cached_arrays("tables", ["a"], fail, made_by=MADE_BY)


# Which folder.


@pytest.mark.parametrize("word", ["off", "OFF", "Off"])
def test_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str):
    monkeypatch.setenv("ARMILLARY_CACHE", word)
    monkeypatch.chdir(tmp_path)
    assert cache.folder() is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert names(tmp_path) == set()


PLACES: list[tuple[str, dict[str, str], str]] = [
    ("linux", {"XDG_CACHE_HOME": "/x/cache", "HOME": "/h"}, "/x/cache/armillary"),
    ("linux", {"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/armillary"),
    ("linux", {"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/armillary"),
    ("linux", {"HOME": "/h"}, "/h/.cache/armillary"),
    ("linux", {"HOME": "/h", "ARMILLARY_CACHE": ""}, "/h/.cache/armillary"),
    ("linux", {"HOME": "/h", "ARMILLARY_CACHE": "/else"}, "/else"),
    ("linux", {"HOME": "/h", "ARMILLARY_CACHE": "~/else"}, "/h/else"),
    ("darwin", {"HOME": "/h"}, "/h/Library/Caches/armillary"),
    ("win32", {"LOCALAPPDATA": "/l", "HOME": "/h"}, "/l/armillary"),
    ("win32", {"HOME": "/h"}, "/h/AppData/Local/armillary"),
]


@posix
@pytest.mark.parametrize(("system", "environment", "wanted"), PLACES)
def test_place_on_each_system(
    system: str,
    environment: dict[str, str],
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("ARMILLARY_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert cache.folder() == Path(wanted)


@posix
def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch):
    for name in ("ARMILLARY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache.folder() is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None


# Whom it trusts.


@posix
def test_the_folder_and_its_files_are_private(place: Path):
    old = os.umask(0)
    try:
        cache.store(KEY, CODE)
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(place).stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o722, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_used(place: Path, mode: int):
    cache.store(KEY, CODE)
    place.chmod(mode)
    assert cache.load(KEY) is None
    cache.store(OTHER, CODE)
    assert names(place) == {f"{KEY}.o"}
    place.chmod(0o755)  # others may read it
    assert cache.load(KEY) == CODE


@posix
def test_a_folder_of_somebody_else_is_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    cache.store(KEY, CODE)
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert cache.load(KEY) is None
    cache.store(OTHER, CODE)
    assert names(place) == {f"{KEY}.o"}


@posix
@pytest.mark.parametrize("mode", [0o666, 0o602, 0o620])
def test_a_file_that_others_may_write_is_not_read(place: Path, mode: int):
    """It may lie there from when others could write to the folder."""
    cache.store(KEY, CODE)
    entry(place).chmod(mode)
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)  # a file of its own in its place
    assert cache.load(KEY) == CODE


@posix
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="not root")
def test_a_file_of_somebody_else_is_not_read(place: Path):
    cache.store(KEY, CODE)
    os.chown(entry(place), 12345, -1)
    assert cache.load(KEY) is None


@posix
def test_a_link_in_place_of_the_folder_is_not_used(place: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    place.parent.mkdir()
    place.symlink_to(elsewhere)
    cache.store(KEY, CODE)
    assert names(elsewhere) == set()
    place.unlink()
    cache.store(KEY, CODE)
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    assert cache.load(KEY) is None


@posix
def test_a_dangling_link_or_a_file_in_place_of_the_folder(place: Path, tmp_path: Path):
    place.parent.mkdir()
    place.symlink_to(tmp_path / "nowhere")
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert not (tmp_path / "nowhere").exists()
    place.unlink()
    place.write_text("a file")
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert place.read_text() == "a file"


# Disks that fail.


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_disk_that_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch):
    cache.store(KEY, CODE)
    monkeypatch.setattr(cache, "replacing", failing(errno.EROFS))
    monkeypatch.setattr(os, "utime", failing(errno.EROFS))
    cache.store(OTHER, CODE)
    assert cache.load(KEY) == CODE
    assert cache.load(OTHER) is None


def test_a_disk_on_which_no_folder_can_be_made(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Path, "mkdir", failing(errno.EROFS))
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None


@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_disk_that_is_full(place: Path, monkeypatch: pytest.MonkeyPatch, step: str):
    cache.store(KEY, b"old")
    if step == "replace":
        monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))
    else:
        real = os.fdopen

        class Full:
            def __init__(self, handle: int, mode: str) -> None:
                self.file = real(handle, mode)

            def __enter__(self) -> Full:
                return self

            def __exit__(self, *_: object) -> None:
                self.file.close()

            def write(self, content: bytes) -> None:
                self.file.write(content[:100])
                self.file.flush()
                raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(os, "fdopen", Full)
    cache.store(KEY, CODE)
    assert cache.load(KEY) == b"old"
    assert names(place) == {f"{KEY}.o"}


def test_an_interrupt_while_writing_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.store(KEY, CODE)
    assert names(place) == set()


# How much is kept.


@pytest.fixture
def always_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "STORES_PER_PRUNING", 1)
    monkeypatch.setattr(
        cache, "SIZE_AFTER_PRUNING", 3 * (len(CODE) + cache.HEADER_SIZE)
    )


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.usefixtures("always_pruned")
def test_what_was_used_least_recently_goes_first(place: Path):
    keys = [letter * 64 for letter in "abc"]
    for k, key in enumerate(keys):
        cache.store(key, CODE)
        age(entry(place, key), 1000.0 - k)
    assert cache.load(keys[0]) == CODE  # used again
    cache.store("d" * 64, CODE)
    assert {path.stem[0] for path in place.iterdir()} == {"a", "c", "d"}
    cache.store("e" * 64, CODE)
    assert {path.stem[0] for path in place.iterdir()} == {"a", "d", "e"}


@pytest.mark.usefixtures("always_pruned")
def test_only_files_of_the_cache_are_removed(place: Path):
    cache.store(KEY, CODE)
    cache.store(KEY, CODE, cache.ARRAYS)
    (place / "notes.txt").write_bytes(CODE * 10)
    (place / "folder.o").mkdir()
    for path in place.iterdir():
        age(path, 9000.0)
    for letter in "cdef":
        cache.store(letter * 64, CODE)
    assert {"notes.txt", "folder.o", f"{'f' * 64}.o"} <= names(place)
    assert not {f"{KEY}.o", f"{KEY}.arrays"} & names(place)


@pytest.mark.usefixtures("always_pruned")
def test_files_left_unfinished_are_removed_in_time(place: Path):
    cache.store(KEY, CODE)
    old, new = place / f"{cache.UNFINISHED}old", place / f"{cache.UNFINISHED}new"
    for path in (old, new):
        path.write_bytes(b"part")
    age(old, 2.0 * cache.LONGEST_WRITING)
    future = place / f"{cache.UNFINISHED}future"
    future.write_bytes(b"part")
    age(future, -1e6)
    cache.store(OTHER, CODE)
    assert names(place) == {f"{KEY}.o", f"{OTHER}.o", new.name}


@pytest.mark.usefixtures("always_pruned")
def test_entries_with_future_times_go_first(place: Path):
    for letter in "abc":
        cache.store(letter * 64, CODE)
    age(entry(place, "b" * 64), -1e6)
    cache.store("d" * 64, CODE)
    assert {path.stem[0] for path in place.iterdir()} == {"a", "c", "d"}


def test_the_limit_is_never_exceeded(place: Path, monkeypatch: pytest.MonkeyPatch):
    size = len(CODE) + cache.HEADER_SIZE
    monkeypatch.setattr(cache, "SIZE_LIMIT", 100 * size)
    monkeypatch.setattr(cache, "SIZE_AFTER_PRUNING", 88 * size)
    monkeypatch.setattr(cache, "SIZE_PER_PRUNING", 2 * size)
    for k in range(150):
        cache.store(f"{k:064}", CODE)
        assert sum(path.stat().st_size for path in place.iterdir()) <= 100 * size
    assert len(names(place)) >= 88


def test_pruning_is_not_done_at_every_store(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    pruned: list[Path] = []
    monkeypatch.setattr(cache, "_prune", pruned.append)
    for _ in range(2 * cache.STORES_PER_PRUNING):
        cache.store(KEY, CODE)
    assert pruned == [place, place]


@pytest.mark.usefixtures("always_pruned")
def test_files_that_vanish_while_pruning(place: Path, monkeypatch: pytest.MonkeyPatch):
    for letter in "abc":
        cache.store(letter * 64, CODE)
    files = cache._files(place)
    for _, _, path in files:
        path.unlink()
    monkeypatch.setattr(cache, "_files", lambda place: files * 2)
    cache.store(KEY, CODE)
    assert cache.load(KEY) in {CODE, None}


# Several processes.

WRITER = """
import sys
import armillary.disk_cache as cache
number = int(sys.argv[1])
code = bytes([number]) * 50_000
for turn in range(60):
    cache.store("a" * 64, code)
    found = cache.load("a" * 64)
    assert found is not None and len(found) == 50_000 and len(set(found)) == 1
    cache.store(f"{number}{turn}", code)
    assert cache.load(f"{number}{turn}") == code
"""


@pytest.mark.thorough
def test_processes_that_write_at_once(place: Path):
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(number)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    said = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 3, said
    assert len(names(place)) == 1 + 3 * 60
    assert not any(name.startswith(cache.UNFINISHED) for name in names(place))
