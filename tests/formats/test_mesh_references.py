"""References to meshes in files that are written into another folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.formats.mesh.files import MeshFiles
from armillary.model.shapes import Mesh

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.5"/><up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="c"><phong><diffuse>
<color>1 0 0 1</color></diffuse></phong></technique></profile_COMMON></effect>
</library_effects><library_materials><material id="m"><instance_effect url="#e"/>
</material></library_materials><library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">{}</float_array><technique_common>
<accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor>
</technique_common></source><vertices id="v"><input semantic="POSITION" source="#p"/>
</vertices><triangles count="4" material="s"><input semantic="VERTEX" source="#v"
offset="0"/><p>{}</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="s" target="#m"/>
</technique_common></bind_material></instance_geometry></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
ROBOT = """<robot name="r"><link name="world"/><link name="a"><inertial>
<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://pack/meshes/a.dae"/></geometry></visual>
<collision><geometry><mesh filename="../meshes/b.obj" scale="2 2 -2"/></geometry>
</collision></link><joint name="j" type="continuous"><parent link="world"/>
<child link="a"/></joint></robot>"""


@pytest.fixture
def robot(tmp_path: Path) -> arm.Cell:
    """A robot in a package, with meshes of two kinds."""
    pack = tmp_path / "pack"
    for name in ("urdf", "meshes"):
        (pack / name).mkdir(parents=True)
    (pack / "package.xml").write_text("<package><name>pack</name></package>")
    numbers = " ".join(map(str, CORNERS.ravel()))
    text = DAE.format(numbers, " ".join(str(k) for face in FACES for k in face))
    (pack / "meshes/a.dae").write_text(text)
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES]
    (pack / "meshes/b.obj").write_text("\n".join(lines))
    (pack / "urdf/r.urdf").write_text(ROBOT)
    (tmp_path / "out").mkdir()
    return arm.load(pack / "urdf/r.urdf")


@pytest.mark.parametrize("ending", [".urdf", ".sdf", ".actin.xml"])
def test_relative_references_lead_to_the_same_files(
    robot: arm.Cell, tmp_path: Path, ending: str
):
    path = tmp_path / "out" / f"r{ending}"
    report = arm.save(robot, path)
    assert any("named from the folder" in d.message for d in report.diagnostics)
    text = path.read_text()
    assert "../pack/meshes/b.obj" in text and "package://pack/meshes/a.dae" in text
    # In the folder of the package nothing changes.
    same = tmp_path / "pack" / "urdf" / f"again{ending}"
    report = arm.save(robot, same)
    assert not any("named from" in d.message for d in report.diagnostics)
    assert "../meshes/b.obj" in same.read_text()


def test_mujoco_reads_all_meshes(robot: arm.Cell, tmp_path: Path):
    """It knows neither packages nor COLLADA, and no body called `world`."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "out" / "r.mjcf.xml"
    report = arm.save(robot, path)
    assert not any("mesh" in str(d) for d in report.diagnostics if d.code == "not-kept")
    model = mujoco.MjModel.from_xml_path(str(path))
    assert model.nmesh == 2 and model.njnt == 1
    again = arm.load(path, folders=[tmp_path / "pack"])
    (visual,), (collision,) = (
        list(getattr(again.workcell.links[-1], name))
        for name in ("visuals", "collisions")
    )
    assert isinstance(visual, Mesh) and isinstance(collision, Mesh)
    assert visual.colour == (1.0, 0.0, 0.0, 1.0)
    meshes = again.meshes
    assert isinstance(meshes, MeshFiles)
    found = meshes.triangles(visual)
    assert found is not None
    corners = {tuple(row) for row in found.vertices.tolist()}
    assert corners == {tuple(row) for row in (0.5 * CORNERS).tolist()}
    assert collision.scale == (2.0, 2.0, -2.0)
    assert again.joint_names == ("j",)
    assert [m.name for m in again.workcell.manipulators] == ["r"]
    assert [link.name for link in again.workcell.links] == ["world", "a"]


def test_a_native_file_elsewhere_names_the_bundle(robot: arm.Cell, tmp_path: Path):
    """Its references never change, so that it is equal to the cell."""
    away = tmp_path / "out" / "r.cell.json"
    (found,) = arm.save(robot, away).diagnostics
    assert found.code == "reference-missing" and "r.cell.zip" in str(found)
    assert arm.load(away) == robot
    assert arm.save(robot, tmp_path / "pack/urdf/r.cell.json").diagnostics == ()
    # What the environment or the caller knows is found from everywhere.
    known = arm.load(
        tmp_path / "pack/urdf/r.urdf", packages={"pack": tmp_path / "pack"}
    )
    (found,) = arm.save(known, away).diagnostics
    assert "'../meshes/b.obj' will not" in found.message


def test_files_in_a_bundle_are_not_beside_what_is_written(
    robot: arm.Cell, tmp_path: Path
):
    mujoco = pytest.importorskip("mujoco")
    packed = tmp_path / "out" / "r.cell.zip"
    arm.save(robot, packed)
    cell = arm.load(packed)
    report = arm.save(cell, tmp_path / "out" / "r.urdf")
    messages = [d.message for d in report.diagnostics if d.code == "reference-missing"]
    assert [m.partition(" is in a bundle")[0] for m in messages] == [
        "the file of mesh 'files/b.obj' and 1 more"
    ]
    path = tmp_path / "out" / "r.mjcf.xml"  # has them beside it
    report = arm.save(cell, path)
    assert "reference-missing" not in {d.code for d in report.diagnostics}
    assert mujoco.MjModel.from_xml_path(str(path)).nmesh == 2
