"""Hulls of meshes on disk: found by the bytes of the file, which is not read then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.mesh import read
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mesh.stl import stl_bytes
from armillary.model.shapes import Box, Mesh

SIZE = (1.0, 2.0, 3.0)


def stl(size: tuple[float, float, float] = SIZE) -> bytes:
    box = Box(size=size).triangles()
    return stl_bytes(box.vertices[box.faces])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "box.stl"
    path.write_bytes(stl())
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read rather than found."""
    found: list[str] = []
    real = read.read_surface

    def counted(path: Path, **options: Any) -> Any:
        found.append(path.name)
        return real(path, **options)

    monkeypatch.setattr(read, "read_surface", counted)
    return found


def hull(file: Path, **fields: Any) -> Any:
    return MeshFiles(file.parent).hull(Mesh(file=file.name, **fields))


def test_a_mesh_is_read_once(file: Path, reads: list[str]):
    first, again = hull(file), hull(file)
    assert reads == ["box.stl"]
    assert again == first
    assert np.array_equal(np.ptp(np.array(again.vertices), axis=0), SIZE)


def test_whatever_decides_the_corners_makes_them_others(file: Path, reads: list[str]):
    hull(file)
    larger = hull(file, scale=(2.0, 1.0, 1.0))
    assert np.array_equal(np.ptp(np.array(larger.vertices), axis=0), (2.0, 2.0, 3.0))
    file.write_bytes(stl((1.0, 1.0, 1.0)))
    changed = hull(file)
    assert np.array_equal(np.ptp(np.array(changed.vertices), axis=0), (1.0, 1.0, 1.0))
    assert len(reads) == 3
    # Neither its place nor the looks of the shape do.
    other = file.with_name("other.stl")
    other.write_bytes(file.read_bytes())
    named = hull(other, name="n", colour=(1.0, 0.0, 0.0, 1.0))
    assert named.vertices == changed.vertices
    assert (named.name, named.colour) == ("n", (1.0, 0.0, 0.0, 1.0))
    assert len(reads) == 3


def test_what_was_read_before_counts(file: Path, reads: list[str]):
    files, mesh = MeshFiles(file.parent), Mesh(file=file.name)
    files.triangles(mesh)
    file.write_bytes(stl((1.0, 1.0, 1.0)))
    kept: Any = files.hull(mesh)
    assert np.array_equal(np.ptp(np.array(kept.vertices), axis=0), SIZE)
    # It is not taken for the hull of what the file has now.
    now = hull(file)
    assert np.array_equal(np.ptp(np.array(now.vertices), axis=0), (1.0, 1.0, 1.0))


def test_warnings_come_each_time(file: Path, reads: list[str]):
    file.write_bytes(stl() + b"more")
    for _ in range(2):
        files = MeshFiles(file.parent)
        assert files.hull(Mesh(file=file.name)) is not None
        assert len(files.report.diagnostics) == 1
    assert len(reads) == 2


def test_a_mesh_that_may_refer_to_others_is_read_each_time(
    tmp_path: Path, reads: list[str]
):
    box = Box(size=SIZE).triangles()
    lines = [f"v {x} {y} {z}" for x, y, z in box.vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in box.faces.tolist()]
    path = tmp_path / "box.obj"
    path.write_text("\n".join(lines))
    assert hull(path) == hull(path)
    assert len(reads) == 2


def test_faults_are_raised_each_time(file: Path):
    hull(file)
    for content in (b"", stl()[:-1], b"PK\x03\x04" + bytes(100)):
        file.write_bytes(content)
        for _ in range(2):
            with pytest.raises(FormatError):
                hull(file)
    file.unlink()
    with pytest.raises(FormatError, match="box"):
        hull(file)
    assert MeshFiles(file.parent, missing="warn").hull(Mesh(file=file.name)) is None


def test_a_file_that_is_too_large_is_refused_as_before(file: Path):
    hull(file)
    small = MeshFiles(file.parent, size_cap=100)
    with pytest.raises(FormatError, match="more than 100"):
        small.hull(Mesh(file=file.name))


def test_a_damaged_entry_is_made_anew(file: Path, cache: Path, reads: list[str]):
    first = hull(file)
    for path in cache.glob("*.arrays"):
        path.write_bytes(path.read_bytes()[:-1])
    assert hull(file) == first
    assert len(reads) == 2
