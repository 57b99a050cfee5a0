"""Packages and models that the environment names, or in which a file is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Diagnostic, Place
from armillary.formats.mesh import MeshFiles
from armillary.formats.paths import Roots
from armillary.model.shapes import Mesh
from work import counted

VARIABLES = (
    "AMENT_PREFIX_PATH",
    "ROS_PACKAGE_PATH",
    "GAZEBO_MODEL_PATH",
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def package(folder: Path, name: str = "") -> Path:
    """A package of ROS with a mesh."""
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes/a.stl").write_text("solid\nendsolid\n")
    (folder / "package.xml").write_text(
        f"<package><name> {name or folder.name} </name></package>"
    )
    return folder


def model(folder: Path) -> Path:
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes/a.stl").write_text("solid\nendsolid\n")
    (folder / "model.config").touch()
    return folder


def find(reference: str, base: Path, roots: Roots | None = None) -> Path | Diagnostic:
    return (roots or Roots()).find(reference, base=base, place=Place("x.urdf"))


def code(found: Path | Diagnostic) -> str:
    assert isinstance(found, Diagnostic)
    return found.code


def test_a_file_may_refer_to_its_own_package(tmp_path: Path):
    own = package(tmp_path / "checkout", "arm_description")
    base = own / "urdf" / "variants"
    base.mkdir(parents=True)
    mesh = (own / "meshes/a.stl").resolve()
    for reference in (
        "package://arm_description/meshes/a.stl",
        "package:///arm_description/meshes/a.stl",
        "package://checkout/meshes/a.stl",
        "../../meshes/a.stl",
        mesh.as_uri(),
    ):
        assert find(reference, base) == mesh
    assert code(find("package://other/meshes/a.stl", base)) == "reference-package"


def test_a_file_may_not_refer_to_what_is_around_its_package(tmp_path: Path):
    own = package(tmp_path / "arm")
    (tmp_path / "key.stl").touch()
    (own / "link.stl").symlink_to(tmp_path / "key.stl")
    for reference in (
        "../key.stl",
        "link.stl",
        "package://arm/../key.stl",
        "package://arm/%2e%2e/key.stl",
        "package://arm/link.stl",
    ):
        assert code(find(reference, own)) == "reference-outside"


def test_only_the_nearest_package_is_ones_own(tmp_path: Path):
    outer = package(tmp_path / "outer")
    inner = package(outer / "inner")
    found = find("package://outer/meshes/a.stl", inner)
    assert code(found) == "reference-package"


def test_a_package_beside_is_named_in_the_hint(tmp_path: Path):
    own, other = package(tmp_path / "arm"), package(tmp_path / "gripper")
    found = find("package://gripper/meshes/a.stl", own)
    assert isinstance(found, Diagnostic)
    assert f"packages={{'gripper': '{other.resolve()}'}}" in found.hint
    roots = Roots(packages={"gripper": other})
    mesh = (other / "meshes/a.stl").resolve()
    assert find("package://gripper/meshes/a.stl", own, roots) == mesh


def test_the_home_of_a_user_is_not_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = package(tmp_path / "me")
    (home / "downloads").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(Path, "home", lambda: home)
    found = find("package://me/meshes/a.stl", home / "downloads")
    assert code(found) == "reference-package"
    assert code(find("../meshes/a.stl", home / "downloads")) == "reference-outside"


def test_packages_of_ros_2_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    arm = package(tmp_path / "install/arm/share/arm")
    gripper = package(tmp_path / "ros/share/gripper")
    prefixes = [str(tmp_path / "install/arm"), "", str(tmp_path / "ros"), "share"]
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(prefixes))
    for each in (arm, gripper):
        found = find(f"package://{each.name}/meshes/a.stl", tmp_path)
        assert found == (each / "meshes/a.stl").resolve()
    assert code(find("package://other/a.stl", tmp_path)) == "reference-package"
    (tmp_path / "robots").mkdir()
    way_out = "package://arm/../../../../ros/share/gripper/meshes/a.stl"
    found = find(way_out, tmp_path / "robots")
    assert code(found) == "reference-outside"


def test_packages_of_ros_1_are_found_below_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = package(tmp_path / "src/group/arm_checkout", "arm")
    package(tmp_path / "src/zzz/arm")
    package(tmp_path / "src/ignored/hand")
    (tmp_path / "src/ignored/CATKIN_IGNORE").touch()
    package(tmp_path / "src/.hidden/foot")
    itself = package(tmp_path / "itself")
    entries = [str(tmp_path / "src"), str(itself), str(tmp_path / "no-such-folder")]
    monkeypatch.setenv("ROS_PACKAGE_PATH", os.pathsep.join(entries))
    found = find("package://arm/meshes/a.stl", tmp_path)
    assert found == (first / "meshes/a.stl").resolve()
    found = find("package://itself/meshes/a.stl", tmp_path)
    assert found == (itself / "meshes/a.stl").resolve()
    for name in ("hand", "foot"):
        found = find(f"package://{name}/meshes/a.stl", tmp_path)
        assert code(found) == "reference-package"


def test_circles_of_folders_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for k in range(3):
        (tmp_path / f"src/{k}").mkdir(parents=True)
        for j in range(3):
            (tmp_path / f"src/{k}/{j}").symlink_to(tmp_path / "src")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "src"))
    with counted() as work:
        assert code(find("package://a/b.stl", tmp_path)) == "reference-package"
    assert work.lines < 5_000_000


@pytest.mark.parametrize("variable", VARIABLES[2:])
def test_models_of_gazebo_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
):
    table = model(tmp_path / "models/table")
    reference = "model://table/meshes/a.stl"
    found = find(reference, tmp_path)
    assert code(found) == "reference-package"
    monkeypatch.setenv(variable, str(tmp_path / "models"))
    assert find(reference, tmp_path) == (table / "meshes/a.stl").resolve()
    (tmp_path / "key.stl").touch()
    (tmp_path / "robots").mkdir()
    found = find("model://table/../../key.stl", tmp_path / "robots")
    assert code(found) == "reference-outside"


def test_a_model_knows_its_own_files(tmp_path: Path):
    table = model(tmp_path / "table")
    mesh = (table / "meshes/a.stl").resolve()
    assert find("model://table/meshes/a.stl", table) == mesh
    other = tmp_path / "elsewhere"
    other.mkdir()
    for roots in (Roots(packages={"table": table}), Roots(folders=[tmp_path])):
        assert find("model://table/meshes/a.stl", other, roots) == mesh


def test_what_the_caller_names_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package(tmp_path / "a/share/arm")
    mine = package(tmp_path / "b/arm")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "a"))
    for roots in (Roots(packages={"arm": mine}), Roots(folders=[tmp_path / "b"])):
        found = find("package://arm/meshes/a.stl", tmp_path, roots)
        assert found == (mine / "meshes/a.stl").resolve()


def test_meshes_are_read_from_the_own_package(tmp_path: Path):
    own = package(tmp_path / "arm")
    (own / "urdf").mkdir()
    path = own / "urdf/arm.urdf"
    path.write_text(
        '<robot name="r"><link name="a"><visual><geometry>'
        '<mesh filename="package://arm/meshes/b.stl"/></geometry></visual></link></robot>'
    )
    (own / "meshes/b.stl").write_text(
        "solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
        "vertex 0 1 0\nendloop\nendfacet\nendsolid\n"
    )
    (shape,) = registry.read(path)[0].manipulators[0].links[0].visuals
    assert isinstance(shape, Mesh)
    triangles = MeshFiles(path.parent).triangles(shape)
    assert triangles is not None
    assert len(triangles.faces) == 1


SCENE = """<WorkCell name="w">
  <Include file="../../Devices/arm/arm.xml"/>
  <Include file="../../Objects/table.xml"/>
</WorkCell>
"""


def test_the_call_that_loads_a_scene_is_reported(tmp_path: Path):
    data = tmp_path / "ModelData"
    for name, text in {
        "Scenes/cell/cell.wc.xml": SCENE,
        "Devices/arm/arm.xml": '<SerialDevice name="arm"><Frame name="b"/>'
        '<Include file="../common.xml"/></SerialDevice>',
        "Devices/common.xml": '<Frame name="c" refframe="b"/>',
        "Objects/table.xml": '<Frame name="table" refframe="WORLD"/>',
    }.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)
    scene = data / "Scenes/cell/cell.wc.xml"
    with pytest.raises(FormatError) as caught:
        registry.read(scene)[0]
    hints = {
        found.hint
        for found in caught.value.diagnostics
        if found.code == "reference-outside"
    }
    assert hints == {
        f"If it is trusted to be there, allow its folder: folders=['{data.resolve()}']."
    }
    cell = registry.read(scene, folders=[data.resolve()])[0]
    assert {m.name for m in cell.manipulators} == {"environment", "arm"}
