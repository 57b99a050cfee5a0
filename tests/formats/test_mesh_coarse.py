"""Large binary STL files are shown with fewer triangles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.mesh import MeshFiles
from armillary.formats.mesh.stl import START, TRIANGLE
from armillary.model.geometry.triangles import Triangles
from armillary.model.shapes import Mesh, Sphere


@pytest.fixture(scope="module")
def ball() -> Triangles:
    whole = Sphere(radius=1.0).triangles(2e-5)
    return Triangles(whole.vertices * 0.5 + (3.0, -1.0, 0.2), whole.faces)


def stl(path: Path, corners: np.ndarray) -> Path:
    rows = np.zeros(len(corners), TRIANGLE)
    rows["corners"] = corners
    path.write_bytes(
        b"".ljust(START - 4) + len(rows).to_bytes(4, "little") + rows.tobytes()
    )
    return path


@pytest.fixture
def files(tmp_path: Path, ball: Triangles) -> MeshFiles:
    """Reads a ball that is larger than other files may be."""
    path = stl(tmp_path / "ball.stl", ball.corners)
    return MeshFiles(tmp_path, size_cap=path.stat().st_size // 2)


def test_large_stl_is_coarse_and_says_of_how_many(files: MeshFiles, ball: Triangles):
    parts = files.parts(Mesh(file="ball.stl", scale=(2.0, 2.0, 2.0)))
    assert parts is not None
    (part,) = parts
    assert part.whole == len(ball.faces)
    assert 20_000 < len(part.triangles.faces) < len(ball.faces)
    centre = np.array((6.0, -2.0, 0.4))
    radii = np.linalg.norm(part.triangles.vertices - centre, axis=1)
    assert radii == pytest.approx(1.0, abs=1e-4)
    # Its triangles face outwards, and enclose what the ball does.
    corners = part.triangles.corners
    assert np.linalg.det(corners - centre).sum() / 6.0 == pytest.approx(
        4.0 / 3.0 * np.pi, rel=1e-2
    )
    with pytest.raises(FormatError, match="more than"):
        files.triangles(Mesh(file="ball.stl"))


def test_still_larger_files_are_refused_unread(tmp_path: Path):
    """A file without bytes on disk that says it has 10^9 triangles."""
    count = 10**9
    with (tmp_path / "x.stl").open("wb") as file:
        file.write(b"".ljust(START - 4) + count.to_bytes(4, "little"))
        file.truncate(START + TRIANGLE.itemsize * count)
    with pytest.raises(FormatError, match="more than"):
        MeshFiles(tmp_path).parts(Mesh(file="x.stl"))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_numbers_that_are_not_finite_are_refused(value: float, tmp_path: Path):
    corners = np.zeros((100, 3, 3))
    corners[70, 1, 2] = value
    size = stl(tmp_path / "x.stl", corners).stat().st_size
    with pytest.raises(FormatError, match="finite"):
        MeshFiles(tmp_path, size_cap=size - 1).parts(Mesh(file="x.stl"))


@pytest.mark.parametrize("data", [b"solid x\n" + bytes(200), b"", bytes(300)])
def test_other_files_are_refused_as_ever(data: bytes, tmp_path: Path):
    (tmp_path / "x.stl").write_bytes(data + b" ")
    with pytest.raises(FormatError):
        MeshFiles(tmp_path, size_cap=len(data)).parts(Mesh(file="x.stl"))


def test_what_is_within_a_cell_has_no_triangles(tmp_path: Path):
    corners = Triangles(np.zeros((3, 3)), [(0, 1, 2)]).corners.repeat(9, axis=0)
    size = stl(tmp_path / "x.stl", corners).stat().st_size
    with pytest.raises(FormatError):
        MeshFiles(tmp_path, size_cap=size - 1).parts(Mesh(file="x.stl"))
