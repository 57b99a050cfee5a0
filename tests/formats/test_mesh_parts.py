"""Parts of meshes by their names, as `<submesh>` of SDF means them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import FormatError
from armillary.formats.mesh import MeshFiles
from armillary.formats.mesh.words import split_part, split_reference
from armillary.formats.registry import read
from armillary.model.shapes import Mesh

CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
HULL, WHEEL = CORNERS, CORNERS + np.array([10.0, 0.0, 3.0])

OBJ = """
v 0 0 0
v 1 0 0
v 0 2 0
o hull
f 1 2 3
v 10 0 3
v 11 0 3
v 10 2 3
g wheel front left
f -3 -2 -1
"""

GEOMETRY = """
<geometry id="triangle"><mesh>
<source id="s"><float_array id="f" count="9">0 0 0 1 0 0 0 2 0</float_array>
<technique_common><accessor source="#f" count="3" stride="3"/></technique_common>
</source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 1 2</p></triangles></mesh></geometry>
"""
# The node of a pivot has no name: its geometry belongs to the node above.
DAE = f"""<COLLADA><library_geometries>{GEOMETRY}</library_geometries>
<library_visual_scenes><visual_scene id="scene">
<node name="hull"><instance_geometry url="#triangle"/>
<node name="wheel"><translate>10 0 0</translate>
<node><translate>0 0 3</translate><instance_geometry url="#triangle"/></node>
</node></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#scene"/></scene></COLLADA>"""

DATA = CORNERS.astype("<f4").tobytes()
GLTF = {
    "scenes": [{"nodes": [0]}],
    "nodes": [
        {"mesh": 0, "children": [1]},
        {"name": "wheel", "mesh": 0, "translation": [10, 0, 3]},
    ],
    "meshes": [{"name": "hull", "primitives": [{"attributes": {"POSITION": 0}}]}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
    "bufferViews": [{"buffer": 0, "byteLength": 36}],
    "buffers": [
        {
            "byteLength": 36,
            "uri": "data:;base64," + base64.b64encode(DATA).decode(),
        }
    ],
}
FILES = {"part.obj": OBJ, "part.dae": DAE, "part.gltf": json.dumps(GLTF)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parts")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


@pytest.mark.parametrize("file", FILES)
def test_a_part_is_what_has_its_name(folder: Path, file: str) -> None:
    meshes = MeshFiles(folder)

    def corners(inside: str) -> np.ndarray:
        found = meshes.triangles(Mesh(file=f"{file}{inside}"))
        assert found is not None
        return found.vertices[np.lexsort(found.vertices.T)]

    def ordered(points: np.ndarray) -> np.ndarray:
        return points[np.lexsort(points.T)]

    np.testing.assert_allclose(corners("#hull"), ordered(HULL), atol=1e-12)
    np.testing.assert_allclose(corners("#wheel"), ordered(WHEEL), atol=1e-12)
    np.testing.assert_allclose(corners(""), ordered(np.vstack([HULL, WHEEL])))
    middle = (WHEEL.min(axis=0) + WHEEL.max(axis=0)) / 2
    np.testing.assert_allclose(corners("#wheel|centre"), ordered(WHEEL - middle))
    (shown,) = meshes.parts(Mesh(file=f"{file}#wheel", scale=(2.0, 1.0, 1.0))) or ()
    assert shown.triangles.vertices[:, 0].max() == pytest.approx(22.0)
    with pytest.raises(FormatError, match=r"no part 'whel' in this file.*wheel"):
        meshes.triangles(Mesh(file=f"{file}#whel"))


def test_groups_have_several_names(folder: Path) -> None:
    meshes = MeshFiles(folder)
    for name in ("front", "wheel front left"):
        found = meshes.triangles(Mesh(file=f"part.obj#{name}"))
        assert found is not None and found.vertices[:, 0].min() == 10.0


def test_names_may_hold_what_separates_them() -> None:
    assert split_reference("a.dae#b#c.dae#d") == ("a.dae", "b#c.dae#d")
    assert split_reference("a#b.stl") == ("a#b.stl", "")
    assert split_part("a|b") == ("a|b", False)
    assert split_part("a|b|centre") == ("a|b", True)


def test_a_submesh_of_sdf_is_that_part(folder: Path) -> None:
    text = """<sdf version="1.11"><model name="cart"><link name="base">
    <visual name="v"><geometry><mesh><uri>part.dae</uri>{}</mesh></geometry></visual>
    </link></model></sdf>"""
    part = "<submesh><name>wheel</name><center>true</center></submesh>"
    path = folder / "cart.sdf"
    path.write_text(text.format(part))
    cell, report = read(path)
    assert not report.diagnostics
    (shape,) = cell.manipulators[0].links[0].visuals
    assert isinstance(shape, Mesh) and shape.file == "part.dae#wheel|centre"
    again = folder / "again.sdf"
    arm.save(arm.load(path), again)
    assert "<name>wheel</name>" in again.read_text()
    assert arm.load(again).manipulators == cell.manipulators
    arm.save(arm.load(path), folder / "cart.cell.zip")
    packed = arm.load(folder / "cart.cell.zip")
    assert packed.manipulators == cell.manipulators
