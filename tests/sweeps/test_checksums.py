"""Chunks whose bytes have changed are found, by us and by zarr."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import SweepError
from armillary.sweeps import crc32c
from armillary.sweeps.zarr_group import TAIL

SAMPLES = np.arange(10.0).reshape(5, 2)
CHUNKS = 3  # of two rows; the last has one


def rows(path: Path, **options) -> arm.sweeps.SweepResult:
    return arm.sweep(arm.sweeps.rows, SAMPLES, path, chunk=2, **options)


@pytest.mark.parametrize("has_instruction", [None, False])
def test_published_checksums(has_instruction):
    """Those of RFC 3720, appendix B.4, and the check of the Rocksoft model."""
    _, function = crc32c.compiled(has_instruction)
    for data, expected in {
        bytes(32): 0x8A9136AA,
        b"\xff" * 32: 0x62A8AB43,
        bytes(range(32)): 0x46DD794E,
        bytes(reversed(range(32))): 0x113FDB5C,
        b"123456789": 0xE3069283,
        b"": 0,
    }.items():
        array = np.frombuffer(data, np.uint8)
        assert function(array.ctypes.data, len(data), 0) == expected
        for k in range(len(data) + 1):
            begun = function(array.ctypes.data, k, 0)
            rest = array[k:]
            assert function(rest.ctypes.data, len(rest), begun) == expected
        assert crc32c.crc32c(data) == expected


def test_every_flipped_byte_is_found(tmp_path: Path):
    """Of data, of the checksum, and of what fills the last chunk."""
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "out"
    rows(path)
    files = [path / "rows" / f"c.{k}.0" for k in range(CHUNKS)]
    for k, file in enumerate(files):
        whole = file.read_bytes()
        assert len(whole) == 2 * 16 + TAIL
        for at in range(len(whole)):
            changed = bytearray(whole)
            changed[at] ^= 1 << at % 8
            file.write_bytes(changed)
            if not 36 <= at < 40:  # where the checksum is that zarr does not know
                with pytest.raises(ValueError, match="checksum"):
                    zarr.open_array(path / "rows", mode="r")[2 * k : 2 * k + 2]
            found = rows(path)
            assert found.computed == (1 if k == CHUNKS - 1 else 2)
            assert file.read_bytes() == whole
    assert np.array_equal(zarr.open_array(path / "rows", mode="r")[:], SAMPLES)


def test_results_that_were_changed_are_not_returned(tmp_path: Path):
    found = rows(tmp_path / "out")
    assert np.array_equal(found["rows"], SAMPLES)
    file = tmp_path / "out" / "rows" / "c.1.0"
    whole = file.read_bytes()
    for changed in (whole[:-1], b"", whole + b"\0", whole[:7] + b"\x55" + whole[8:]):
        file.write_bytes(changed)
        with pytest.raises(SweepError, match=r"c\.1\.0' has gone or was changed"):
            found["rows"]
        assert rows(tmp_path / "out").computed == 2


def test_a_copy_of_another_chunk_is_found(tmp_path: Path):
    """Zarr reads it, since its rows are whole; they are not those of this place."""
    path = tmp_path / "out"
    asked = {"a": arm.sweeps.rows, "b": arm.sweeps.rows}
    arm.sweep(asked, SAMPLES, path, chunk=2)
    places = [path / "a" / "c.0.0", path / "a" / "c.1.0", path / "b" / "c.1.0"]
    for source, target in ((places[0], places[1]), (places[2], places[1])):
        whole = target.read_bytes()
        target.write_bytes(source.read_bytes())
        found = arm.sweep(asked, SAMPLES, path)
        assert found.computed == 2
        assert target.read_bytes() == whole


def test_samples_that_were_changed_are_not_used(tmp_path: Path):
    pytest.importorskip("zarr")
    path = tmp_path / "out"
    rows(path)
    file = path / "rows" / "c.1.0"
    file.write_bytes(file.read_bytes()[::-1])
    with pytest.raises(SweepError, match=r"Rows 0 to 4 of .*checksum.* computes them"):
        arm.sweep(arm.sweeps.rows, path / "rows")
    rows(path)
    found = arm.sweep(arm.sweeps.rows, path / "rows")
    assert np.array_equal(found["rows"], SAMPLES)


def test_large_chunks_are_read_in_blocks(tmp_path: Path, monkeypatch):
    """Behind the first block, and in the rows that fill the last chunk."""
    monkeypatch.setattr("armillary.sweeps.zarr_group.BLOCK", 40)
    samples = np.arange(50.0).reshape(25, 2)
    for _ in range(2):
        found = arm.sweep(arm.sweeps.rows, samples, tmp_path / "out", chunk=20)
        assert np.array_equal(found["rows"], samples)
    assert found.computed == 0
    file = tmp_path / "out" / "rows" / "c.1.0"
    whole = file.read_bytes()
    for at in (39, 41, 300):
        file.write_bytes(whole[:at] + b"\x55" + whole[at + 1 :])
        again = arm.sweep(arm.sweeps.rows, samples, tmp_path / "out")
        assert again.computed == 5
        assert file.read_bytes() == whole


def test_groups_of_earlier_versions(tmp_path: Path):
    """They had no checksums: zarr reads them; a sweep says why it does not go on."""
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "out"
    rows(path)
    for file in path.glob("rows/c.*"):
        file.write_bytes(file.read_bytes()[:-TAIL])
    for file in path.rglob("zarr.json"):
        node = json.loads(file.read_bytes())
        if node["node_type"] == "array":
            node["codecs"] = [node["codecs"][0]["configuration"]["codecs"][0]]
        node["attributes"].get("armillary_sweep", {}).pop("checksum", None)
        file.write_text(json.dumps(node))
    with pytest.raises(SweepError, match=r"earlier version.*without checksums"):
        rows(path)
    assert np.array_equal(zarr.open_group(path, mode="r")["rows"][:], SAMPLES)
