"""Pictures show the cell, the state and the layers that were asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.cli.main import main
from armillary.errors import ModelError, UnknownName, ViewError
from armillary.view.camera import FIELD_OF_VIEW, fitted
from armillary.view.shot import NAMES

pytest.importorskip("viser")
Image = pytest.importorskip("PIL.Image")

SIZE = (240, 180)


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    if not any(shutil.which(name) for name in NAMES):
        pytest.skip("there is no chromium; on Debian: apt install chromium")
    return arm.example("scara")


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(int)


def test_a_picture_shows_the_cell_in_its_state(cell: arm.Cell, tmp_path: Path):
    def drawn(state: arm.State, show: list[str]) -> np.ndarray:
        path = tmp_path / "scara.png"
        cell.shot(
            path,
            state,
            size=SIZE,
            look_from=(0.8, -1.0, 0.8),
            look_at=(0.2, 0.0, 0.2),
            show=show,
        )
        return pixels(path)

    ground = drawn(cell.home, [])
    turned = cell.home.replace(q=[1.0, 1.0, 0.0, 0.0])
    pictures = [drawn(state, ["visuals"]) for state in (cell.home, turned)]
    assert ground.shape == (SIZE[1], SIZE[0], 3)
    covered = [np.abs(each - ground).max(axis=2) > 30 for each in pictures]
    assert all(0.02 < each.mean() < 0.5 for each in covered)
    assert (covered[0] != covered[1]).mean() > 0.01


@pytest.mark.thorough
def test_the_command_line_draws_layers(cell: arm.Cell, tmp_path: Path):
    file, out = tmp_path / "scara.cell.json", tmp_path / "frames.png"
    arm.save(cell, file)
    camera = ["--from", "0.8,-1e0,0.9", "--look-at", "0.2,0,0.2"]
    words = ["--show", "frames", "--size", "240x180", "--q", "1,0,0,0", *camera]
    assert main(["shot", str(file), str(out), *words]) == 0
    frames = pixels(out)
    assert frames.shape == (180, 240, 3)
    for axis in (0, 1, 2):  # red, green, blue
        others = np.delete(frames, axis, axis=2).max(axis=2)
        assert (frames[:, :, axis] - others > 50).any()


TEXTURED = {
    "square.urdf": '<robot name="r"><link name="base"><visual><geometry>'
    '<mesh filename="square.obj"/></geometry></visual></link></robot>',
    "square.obj": "mtllib square.mtl\nusemtl m\n"
    "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\n"
    "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n",
    "square.mtl": "newmtl m\nKd 1 1 1\nmap_Kd square.png\n",
}


@pytest.mark.thorough
@pytest.mark.usefixtures("cell", "full_light")
def test_the_image_of_a_mesh_is_drawn_the_right_way_round(tmp_path: Path):
    """Its quarters are red, green, blue and black, from the upper left one on."""
    colours = np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (0, 0, 0)]])
    quarters = colours.astype(np.uint8).repeat(32, axis=0).repeat(32, axis=1)
    Image.fromarray(quarters).save(tmp_path / "square.png")
    for name, text in TEXTURED.items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "out.png"
    square = arm.load(tmp_path / "square.urdf")
    square.shot(out, size=(200, 200), look_from=(0, -6, 0), look_at=(0, 0, 0))
    found = pixels(out)[[[80], [120]], [80, 120]]
    assert np.array_equal(found > 100, colours > 0)


def test_without_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ViewError, match=r"needs a browser.*apt install chromium"):
        arm.example("scara").shot(tmp_path / "a.png", size=SIZE)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="a program made of a shell script")
def test_a_browser_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = tmp_path / "chromium"
    fake.write_text("#!/bin/sh\necho no display >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ViewError, match=r"ended at once. It wrote: no display"):
        arm.example("scara").shot(tmp_path / "a.png", size=SIZE)


def test_what_is_asked_for_is_checked_first(tmp_path: Path):
    cell, path = arm.example("scara"), tmp_path / "a.png"
    with pytest.raises(ViewError, match=r"There is no folder .*missing"):
        cell.shot(tmp_path / "missing" / "a.png")
    with pytest.raises(ViewError, match=r"is a folder; name a file, such as cell\.png"):
        cell.shot(tmp_path)
    for name in ("a.jpg", "a.JPEG", "a.pdf"):
        with pytest.raises(ViewError, match="is written as PNG, not as"):
            cell.shot(tmp_path / name)
    for timeout in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ModelError, match="timeout= is a positive time"):
            cell.shot(path, timeout=timeout)
    for size in ((0, 100), (10.5, 100), (10,), "10", 10):
        with pytest.raises(ModelError, match="from 1 to 8192"):
            cell.shot(path, size=size)
    with pytest.raises(UnknownName, match=r"no layer named 'frame'.*'frames'"):
        cell.shot(path, show=["frame"])
    with pytest.raises(ModelError, match="look_at is a point of three finite numbers"):
        cell.shot(path, look_at=(0.0, np.nan, 0.0))
    with pytest.raises(ModelError, match="at a finite distance"):
        cell.shot(path, look_from=(1.0, 0.0, 0.0), look_at=(1.0, 0.0, 0.0))


@pytest.mark.parametrize("view_from", [(0.75, -1.0, 0.6), (0, 0, 1), (0, -3, 0)])
def test_a_fitted_camera_sees_all_points_and_no_more(
    view_from: tuple[float, float, float],
):
    points = np.random.default_rng(0).uniform(-1, 2, (50, 3)) * (3.0, 1.0, 0.5)
    aspect = 1.5
    camera = fitted(points, view_from=view_from, aspect=aspect)
    X = arm.Pose.from_quaternion(camera.quaternion(), camera.position).inverse()
    right, down, ahead = X.matrix()[:3] @ np.c_[points, np.ones(50)].T
    assert (ahead > 0).all()
    slope = np.tan(FIELD_OF_VIEW / 2)
    nearest = np.maximum(abs(right) / aspect, abs(down)) / (slope * ahead)
    assert 0.9 < nearest.max() < 1.0
    along = (camera.position - camera.look_at) / np.linalg.norm(view_from)
    assert np.allclose(np.cross(along, view_from), 0.0, atol=1e-9)
