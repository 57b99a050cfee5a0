"""Damaged files of every format are read, or refused by errors of ours."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mutations import Source, sources

SOURCES = sources()


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_damaged_files_are_read_or_refused(source: Source, tmp_path: Path, seed: int):
    draw = random.Random(f"{seed} {source.name}")
    assert next(source.faults(tmp_path, draw, 20), None) is None


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_sound_files_are_read(source: Source, tmp_path: Path):
    for name, text in (*source.beside, (source.name, source.data.decode("latin-1"))):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert source.read(tmp_path / source.name) is not None
