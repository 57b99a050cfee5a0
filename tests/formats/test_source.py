from __future__ import annotations

import os
import socket
import tracemalloc

import pytest

from armillary.errors import FormatError
from armillary.formats.source import likely_file, read_bytes

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


def test_a_missing_file_is_told_with_its_nearest_neighbour(tmp_path):
    (tmp_path / "ur5.urdf").write_text("")
    code, text = refusal(tmp_path / "ur5.udrf")
    assert code == "no-such-file"
    assert text.endswith("no such file. Did you mean 'ur5.urdf'?")


def test_a_missing_folder_is_told(tmp_path):
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
def test_a_link_in_a_circle_is_told(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop")[0] == "unreadable-file"


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 5000])
def test_paths_that_no_system_has_are_told(path):
    assert refusal(path)[0] in ("unreadable-file", "no-such-file")
