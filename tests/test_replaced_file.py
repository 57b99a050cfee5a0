"""A file is replaced at once, and nothing is left of what was interrupted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from armillary.replaced_file import replacing


def test_it_is_replaced_when_the_block_ends(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_has_changed(tmp_path: Path, error: type[BaseException]):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(error), replacing(path):
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_while_the_draft_is_opened(tmp_path: Path, monkeypatch):
    opened = os.open

    def interrupted(*args):
        os.close(opened(*args))
        assert len(os.listdir(tmp_path)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a"):
        pass
    assert not os.listdir(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "b" / "a"):
        pass
