from __future__ import annotations

import os
import socket
import stat
import sys
import tracemalloc
from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats.files import likely_file, read_bytes, write_bytes

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file kinds")


def refusal(path, cap: int = 1000) -> tuple[str, str]:
    with pytest.raises(FormatError) as caught:
        read_bytes(path, cap)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.place.path == os.fspath(path)
    return diagnostic.code, str(diagnostic)


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_files_up_to_the_cap_are_read_whole(tmp_path, size):
    file = tmp_path / "a.bin"
    data = bytes(i % 256 for i in range(size))
    file.write_bytes(data)
    assert read_bytes(file, 1000) == data
    assert read_bytes(str(file), 1000) == data


def test_a_file_beyond_the_cap_is_refused(tmp_path):
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(1001))
    code, text = refusal(file)
    assert code == "file-too-large"
    assert "the file has 1001 bytes, more than 1000" in text


def test_a_file_of_a_gigabyte_is_refused_without_room_for_it(tmp_path):
    file = tmp_path / "huge.urdf"
    with open(file, "wb") as handle:
        handle.truncate(1 << 30)
    tracemalloc.start()
    try:
        code, _ = refusal(file, 64 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code == "file-too-large"
    assert peak < 1 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
def test_a_file_that_hides_its_size_is_read_under_the_cap():
    assert os.stat("/proc/self/maps").st_size == 0
    assert refusal("/proc/self/maps", 100)[0] == "file-too-large"
    assert len(read_bytes("/proc/self/maps", 1 << 24)) > 100


def test_a_missing_file_is_reported_with_its_nearest_neighbour(tmp_path):
    (tmp_path / "ur5.urdf").write_text("")
    code, text = refusal(tmp_path / "ur5.udrf")
    assert code == "no-such-file"
    assert text.endswith("no such file. Did you mean 'ur5.urdf'?")


def test_a_missing_folder_is_reported(tmp_path):
    assert refusal(tmp_path / "no" / "ur5.urdf")[1].endswith("no such file")
    assert likely_file(tmp_path / "no" / "ur5.urdf") is None


def test_a_folder_is_refused(tmp_path):
    code, text = refusal(tmp_path)
    assert code == "not-a-file"
    assert "this is a folder" in text


@posix
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code, text = refusal(tmp_path / "pipe")
    assert code == "not-a-file"
    assert "this is a pipe" in text


@posix
def test_devices_and_sockets_are_refused(tmp_path, monkeypatch):
    assert "this is a device" in refusal("/dev/zero")[1]
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert "this is a socket" in refusal("socket")[1]


@posix
def test_a_link_in_a_circle_is_reported(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop")[0] == "unreadable-file"


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 5000])
def test_paths_that_no_system_has_are_reported(path):
    assert refusal(path)[0] in ("unreadable-file", "no-such-file")


as_root = hasattr(os, "geteuid") and os.geteuid() == 0


def not_written(path: str | Path) -> str:
    with pytest.raises(FormatError) as caught:
        write_bytes(path, b"new")
    return str(caught.value)


def test_file_is_made_and_replaced(tmp_path: Path):
    path = tmp_path / "a.txt"
    write_bytes(path, b"one")
    assert path.read_bytes() == b"one"
    write_bytes(str(path), b"")
    assert path.read_bytes() == b""
    assert os.listdir(tmp_path) == ["a.txt"]


def test_name_may_be_as_long_as_names_may_be(tmp_path: Path):
    path = tmp_path / ("a" * 255)
    write_bytes(path, b"one")
    assert path.read_bytes() == b"one"


def test_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_bytes("a.txt", b"one")
    assert (tmp_path / "a.txt").read_bytes() == b"one"


@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
def test_rights_are_kept(tmp_path: Path):
    path = tmp_path / "a.txt"
    mask = os.umask(0o022)
    try:
        write_bytes(path, b"one")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o600)
    write_bytes(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_link_stays_and_its_target_is_replaced(tmp_path: Path):
    (tmp_path / "real.txt").write_bytes(b"one")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_bytes(link, b"two")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"two"


def test_nothing_is_left_where_writing_fails(tmp_path: Path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert "unwritable-file]: the file cannot be written: No space left" in not_written(
        path
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_impossible_targets_are_refused(tmp_path: Path):
    assert "error[no-such-folder]" in not_written(tmp_path / "none" / "a.txt")
    assert "error[not-a-file]: this is not a plain file" in not_written(tmp_path)
    assert "error[unwritable-file]" in not_written(f"{tmp_path}/a\0b")
    os.mkfifo(tmp_path / "pipe")
    assert "error[not-a-file]" in not_written(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert "error[" in not_written(tmp_path / "loop")


@pytest.mark.skipif(as_root, reason="root may write anywhere")
def test_folder_without_permission_is_reported(tmp_path: Path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in not_written(tmp_path / "a.txt")
