from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats.target import write_bytes

as_root = hasattr(os, "geteuid") and os.geteuid() == 0


def refusal(path: str | Path) -> str:
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
    assert "unwritable-file]: the file cannot be written: No space left" in refusal(
        path
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_impossible_targets_are_refused(tmp_path: Path):
    assert "error[no-such-folder]" in refusal(tmp_path / "none" / "a.txt")
    assert "error[not-a-file]: this is no plain file" in refusal(tmp_path)
    assert "error[unwritable-file]" in refusal(f"{tmp_path}/a\0b")
    os.mkfifo(tmp_path / "pipe")
    assert "error[not-a-file]" in refusal(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert "error[" in refusal(tmp_path / "loop")


@pytest.mark.skipif(as_root, reason="root may write anywhere")
def test_folder_without_permission_is_told(tmp_path: Path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refusal(tmp_path / "a.txt")
