"""Cells whose collision shapes are replaced by simpler ones around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.cli.main import main
from armillary.errors import ModelError, UnknownName
from armillary.model.shapes import Mesh
from armillary.shapes import Box, ConvexPolyhedron, HalfSpace, Sphere

WEDGE = "v 0 0 0\nv 3 0 0\nv 0 2 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
URDF = """<robot name="r">
  <link name="base"/>
  <link name="wedge">
    <collision><origin xyz="0 0 1"/><geometry>
      <mesh filename="wedge.obj" scale="0.1 0.1 0.1"/>
    </geometry></collision>
    <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="wedge"/><axis xyz="0 0 1"/>
  </joint>
</robot>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    (tmp_path / "wedge.obj").write_text(WEDGE)
    (tmp_path / "robot.urdf").write_text(URDF)
    return tmp_path / "robot.urdf"


def shapes(cell: arm.Cell) -> tuple[arm.shapes.Shape, ...]:
    return cell.manipulators[0].links[1].collisions


def test_meshes_become_hulls_and_need_no_files_then(robot: Path, tmp_path: Path):
    cell = arm.load(robot).with_collisions("hulls")
    hull, box = shapes(cell)
    assert isinstance(hull, ConvexPolyhedron)
    assert hull.volume == pytest.approx(1e-3)
    assert hull.pose.position == (0.0, 0.0, 1.0)
    assert box == Box(size=(0.1, 0.1, 0.1))
    path = tmp_path / "robot.cell.json"
    arm.save(cell, path)
    (tmp_path / "wedge.obj").unlink()
    again = arm.load(path)
    ball = arm.Link(name="ball", collisions=[Sphere(radius=0.01)])
    again = again.add(
        arm.Manipulator(name="ball", links=[ball]),
        pose=arm.Pose.translation(0.1, 0.05, 1.03),
    )
    assert again.collision()([0.0])  # without a warning
    assert not again.collision()([np.pi])


def test_meshes_become_convex_parts(robot: Path):
    pytest.importorskip("coacd")
    *parts, box = shapes(arm.load(robot).with_collisions("parts"))
    assert sum(part.volume for part in parts) == pytest.approx(1e-3, rel=0.2)
    assert box == Box(size=(0.1, 0.1, 0.1))


def test_links_become_spheres(robot: Path):
    cell = arm.load(robot)
    found = shapes(cell.with_collisions("spheres", count=5))
    assert 2 <= len(found) <= 5
    assert all(isinstance(each, Sphere) for each in found)
    points = np.array([(0, 0, 1), (0.3, 0, 1), (0, 0.2, 1), (0, 0, 1.1)])
    points = np.vstack([points, 0.05 * np.array([(1, 1, 1), (-1, -1, -1)])])
    depths = [
        np.linalg.norm(points - each.pose.position, axis=1) - each.radius
        for each in found
    ]
    assert np.min(depths, axis=0).max() <= 1e-9
    floor = arm.Link(name="f", collisions=[HalfSpace()])
    ground = arm.Cell(manipulators=[arm.Manipulator(name="g", links=[floor])])
    assert ground.with_collisions("spheres") == ground


def test_what_cannot_be_replaced_is_an_error(robot: Path):
    with pytest.raises(UnknownName, match="hulls"):
        arm.load(robot).with_collisions("hull")
    link = arm.Link(name="l", collisions=[Mesh(file="wedge.obj")])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=[link])])
    for kind in ("hulls", "parts", "spheres"):
        with pytest.raises(ModelError, match=r"'m/l' cannot be replaced.*meshes="):
            cell.with_collisions(kind)
    (robot.parent / "wedge.obj").unlink()
    with pytest.raises(ModelError, match=r"'r/wedge' cannot be replaced.*exist"):
        arm.load(robot).with_collisions("hulls")


def test_convert_puts_other_shapes_around(robot: Path, tmp_path: Path):
    out = tmp_path / "out.cell.json"
    command = ["convert", str(robot), str(out), "--collisions", "spheres"]
    assert main([*command, "--spheres", "3"]) == 0
    assert {type(each) for each in shapes(arm.load(out))} == {Sphere}
    assert len(shapes(arm.load(out))) <= 3
