"""Meshes in collision checks: as their hulls, with one warning."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.formats.mesh import MeshFiles
from armillary.model.shapes import Mesh
from armillary.shapes import Box, ConvexPolyhedron, Sphere

CUBE = np.array(np.meshgrid(*[[-1, 1]] * 3, indexing="ij")).reshape(3, -1).T
SQUARES = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5)]
"""The cube without its top: a tub, in numbers of OBJ."""

URDF = """<robot name="r">
  <link name="base"/>
  <link name="tub">
    <collision><origin xyz="0 0 1"/><geometry>
      <mesh filename="{file}" scale="0.1 0.1 0.2"/>
    </geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="tub"/><axis xyz="0 0 1"/>
  </joint>
</robot>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    lines = [f"v {x} {y} {z}" for x, y, z in CUBE]
    lines += ["f " + " ".join(map(str, face)) for face in SQUARES]
    (tmp_path / "tub.obj").write_text("\n".join(lines) + "\n")
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.format(file="tub.obj"))
    return path


def with_ball(cell: arm.Cell) -> arm.Cell:
    ball = arm.Link(name="ball", collisions=[Sphere(radius=0.01)])
    at = arm.Pose.translation(0, 0, 1.0)  # in the middle of the tub
    return cell.add(arm.Manipulator(name="ball", links=[ball]), pose=at, bolted=False)


def quiet(cell: arm.Cell, *args: Any, **more: Any) -> Any:
    with pytest.warns(UserWarning, match="convex hull"):
        return cell.collision(*args, **more)


def test_a_loaded_robot_is_tested_by_its_hulls(robot: Path):
    cell = with_ball(arm.load(robot))
    with pytest.warns(UserWarning, match=r"of 'r/tub' are meshes; .* convex hull"):
        check = cell.collision()
    assert check([0.3])
    tub = Box(size=(0.2, 0.2, 0.4), pose=arm.Pose.translation(0, 0, 1))
    by_hand = cell.exchange(
        arm.Manipulator(
            name="r",
            links=[
                link if link.name == "base" else link.replace(collisions=[tub])
                for link in cell.manipulators[0].links
            ],
        )
    )
    for x in (0.05, 0.2, 0.7):
        moved = cell.home.place("ball", arm.Pose.translation(x, 0.1, 1.1))
        found, expected = (
            each.collision(each.bind(moved)).clearance([[0.1], [0.9]])
            for each in (cell, by_hand)
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_warning_says_so_once(robot: Path):
    cell = with_ball(arm.load(robot))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            cell.collision(cell.home, margin=0.1)
    assert len(told) == 1
    assert Path(told[0].filename) == Path(__file__)


def test_edited_and_pickled_cells_know_their_files(robot: Path):
    cell = with_ball(arm.load(robot))
    again = pickle.loads(pickle.dumps(cell))
    assert again == cell
    check = quiet(again)
    assert check([0.0])
    with pytest.warns(UserWarning, match="convex hull"):
        assert pickle.loads(pickle.dumps(check))([0.0])
    scaled = cell.scaled(2.0)
    assert quiet(scaled).clearance([0.0]) == pytest.approx(
        2.0 * quiet(cell).clearance([0.0])
    )


def test_violations_of_a_loaded_cell_know_its_files(robot: Path):
    cell = with_ball(arm.load(robot))
    with pytest.warns(UserWarning, match="convex hull"):
        found = cell.violations(cell.home)
    assert [each.kind for each in found] == ["collision"]


def test_a_cell_made_by_hand_says_where_files_are(robot: Path):
    link = arm.Link(name="l", collisions=[Mesh(file="tub.obj")])
    parts = [arm.Manipulator(name=n, links=[link]) for n in "ab"]
    cell = arm.Cell(manipulators=parts)
    said = r"'a/l'.*'tub.obj'.*meshes=loaded.meshes.*mesh.MeshFiles"
    with pytest.raises(ModelError, match=said):
        cell.collision()
    assert len(cell.collision(rules=cell.rules.exclude("a/l", "*")).pairs) == 0
    files = MeshFiles(robot.parent)
    assert quiet(cell, meshes=files)([])
    assert quiet(arm.Cell(manipulators=parts, meshes=files))([])


@pytest.mark.parametrize("file", ["lost.obj", "../secret.obj", "package://a/b.obj"])
def test_meshes_that_cannot_be_read_are_errors(robot: Path, file: str):
    robot.write_text(URDF.format(file=file))
    cell = with_ball(arm.load(robot))
    with pytest.raises(ModelError, match=r"'r/tub' is the mesh .*rules\.exclude"):
        cell.collision()
    lenient = MeshFiles(robot.parent, missing="warn")
    with pytest.raises(ModelError, match=r"'r/tub'"):
        cell.collision(meshes=lenient)


def test_files_of_packages_are_found(robot: Path):
    robot.write_text(URDF.format(file="package://tubs/tub.obj"))
    folder = robot.parent / "elsewhere"
    folder.mkdir()
    (robot.parent / "tub.obj").rename(folder / "tub.obj")
    cell = with_ball(arm.load(robot, packages={"tubs": folder}))
    assert quiet(cell)([0.0])


def test_hulls_are_around_every_corner_of_loaded_meshes(robot: Path):
    mesh = Mesh(file="tub.obj", scale=(0.1, -0.2, 0.3))
    hull = MeshFiles(robot.parent).hull(mesh)
    assert isinstance(hull, ConvexPolyhedron)
    assert hull.volume == pytest.approx(8 * 0.006, rel=1e-6)
