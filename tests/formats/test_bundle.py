"""Bundles: a cell, its meshes and motions in one archive, which is not trusted."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import zip_archive
from armillary.errors import FormatError, ModelError
from armillary.formats.mesh import MeshFiles
from armillary.shapes import Mesh
from armillary.zip_archive import ArchiveError, ZipArchive, zip_bytes

OBJ = "mtllib looks.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n"
MTL = "newmtl red\nKd 1 0 0\nmap_Kd ../textures/wood.png\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 4, 4) + bytes(20)
STL = "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
STL += "vertex 0 1 0\nendloop\nendfacet\nendsolid s\n"
DAE = b"<COLLADA><library_images><image><init_from>a%20b.png</init_from></image>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a robot whose meshes are where robots have them."""
    files = {
        "robot/package.xml": "<package><name>robot</name></package>",
        "robot/meshes/tip.obj": OBJ,
        "robot/meshes/looks.mtl": MTL,
        "robot/textures/wood.png": PNG,
        "robot/urdf/near.stl": STL,
        "robot/urdf/deep/far.dae": DAE,
        "robot/urdf/deep/a b.png": PNG,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path / "robot" / "urdf"


def cell_of(folder: Path, *references: str) -> arm.Cell:
    shapes = [Mesh(file=each) for each in references]
    links = [
        arm.Link(name="base", visuals=shapes),
        arm.Link(name="tip", parent="base", joint=arm.joints.Revolute()),
    ]
    robot = arm.Manipulator(name="robot", links=links)
    return arm.Cell(name="robot", manipulators=[robot], meshes=MeshFiles(folder))


def move(names=()) -> arm.Motion:
    return arm.Motion.through(
        [0.0, 2.0], [[0.0], [1.0]], [[0.0], [0.0]], joint_names=names
    )


def codes(report) -> list[str]:
    return [each.code for each in report.diagnostics]


def names(path: Path) -> list[str]:
    return zipfile.ZipFile(path).namelist()


def test_a_bundle_holds_a_cell_with_its_meshes_and_motions(folder: Path, tmp_path):
    cell = cell_of(folder, "near.stl", "package://robot/meshes/tip.obj")
    motion = move(cell.joint_names)
    path, again = tmp_path / "x.cell.zip", tmp_path / "y.cell.zip"
    report = arm.save(cell, path, motions={"to/and fro": motion}, lossless=True)
    assert codes(report) == []
    assert names(path) == [
        "cell.json",
        "motions/to%2Fand fro.json",
        "near.stl",
        "packages/robot/meshes/looks.mtl",
        "packages/robot/meshes/tip.obj",
        "packages/robot/textures/wood.png",
    ]
    (folder / "near.stl").unlink()  # nothing outside of the bundle is needed
    back = arm.load(path)
    assert back == cell
    (shape, tip) = back.manipulators[0].links[0].visuals
    assert len(back.meshes.triangles(shape).faces) == 1
    (part,) = back.meshes.parts(tip)
    assert part.texture.image == PNG
    assert part.lost == ""
    np.testing.assert_array_equal(back.motions["to/and fro"].q, motion.q)
    arm.save(back, again)
    assert again.read_bytes() == path.read_bytes()
    other = pickle.loads(pickle.dumps(back))
    assert len(other.meshes.triangles(shape).faces) == 1
    assert {*other.motions} == {*back.replace(name="b").motions} == {"to/and fro"}
    # What cannot hold motions says so.
    report = arm.save(back, tmp_path / "a.cell.json")
    assert "reference-missing" in codes(report)
    assert "a motion is not kept" in str(report.diagnostics[-1])


def test_references_that_lead_out_are_replaced_and_stay_so(folder: Path, tmp_path):
    cell = cell_of(folder, "../meshes/tip.obj", str(folder / "deep/far.dae"))
    path = tmp_path / "x.cell.zip"
    assert codes(arm.save(cell, path, lossless=True)) == ["mesh-renamed"]
    assert names(path)[1:] == [
        "files/meshes/looks.mtl",
        "files/meshes/tip.obj",
        "files/textures/wood.png",
        "files/urdf/deep/a b.png",
        "files/urdf/deep/far.dae",
    ]
    back = arm.load(path)
    shapes = back.manipulators[0].links[0].visuals
    assert [each.file for each in shapes] == [
        "files/meshes/tip.obj",
        "files/urdf/deep/far.dae",
    ]
    (part,) = back.meshes.parts(shapes[0])
    assert part.texture.image == PNG
    assert codes(arm.save(back, tmp_path / "y.cell.zip")) == []
    assert (tmp_path / "y.cell.zip").read_bytes() == path.read_bytes()


def test_an_unpacked_bundle_is_the_same_cell(folder: Path, tmp_path: Path):
    cell = cell_of(folder, "near.stl", "package://robot/meshes/tip.obj")
    arm.save(cell, tmp_path / "x.cell.zip")
    there = tmp_path / "there"
    zipfile.ZipFile(tmp_path / "x.cell.zip").extractall(there)
    back = arm.load(there / "cell.json", folders=[there / "packages"])
    assert back == cell
    for shape in back.manipulators[0].links[0].visuals:
        assert len(back.meshes.triangles(shape).faces) == 1


def test_meshes_that_are_missing_are_warned_and_found_beside_it(folder, tmp_path):
    cell = cell_of(folder, "gone.stl")
    report = arm.save(cell, tmp_path / "x.cell.zip")
    assert codes(report) == ["mesh-left-out"]
    with pytest.raises(FormatError, match=r"'gone\.stl' is not in the bundle"):
        arm.save(cell, tmp_path / "x.cell.zip", lossless=True)
    back = arm.load(tmp_path / "x.cell.zip")
    with pytest.raises(FormatError, match=r"'gone\.stl' is not in the bundle"):
        back.meshes.triangles(Mesh(file="gone.stl"))
    (tmp_path / "gone.stl").write_text(STL)
    assert back.meshes.triangles(Mesh(file="gone.stl")) is not None
    unknown = arm.Cell.of(cell.workcell)
    assert codes(arm.save(unknown, tmp_path / "x.cell.zip")) == ["mesh-left-out"]


@pytest.mark.parametrize(
    "reference", ["../x.stl", "/etc/passwd", "file:///etc/passwd", "a/../../x.stl"]
)
def test_references_never_lead_out_of_a_bundle(tmp_path: Path, reference: str):
    (tmp_path / "x.stl").write_text(STL)
    folder = tmp_path / "inner"
    folder.mkdir()
    path = folder / "x.cell.zip"
    arm.save(cell_of(folder), path)
    with pytest.raises(FormatError, match=r"reference-missing|outside"):
        arm.load(path).meshes.triangles(Mesh(file=reference))


def test_a_faulty_motion_is_left_out(tmp_path: Path, caplog):
    cell = cell_of(tmp_path)
    arm.save(cell, tmp_path / "x.cell.zip")
    with zipfile.ZipFile(tmp_path / "x.cell.zip", "a") as archive:
        archive.writestr("motions/m.json", '{"kind": "no motion"}')
    assert arm.load(tmp_path / "x.cell.zip").motions == {}
    assert "bad-motion" in caplog.text
    with pytest.raises(FormatError, match="bad-motion"):
        arm.load(tmp_path / "x.cell.zip", strict=True)
    for motions in ({"m": 3}, {"": 3}):
        with pytest.raises(ModelError, match="motion"):
            arm.save(cell, tmp_path / "x.cell.zip", motions=motions)


def test_convert_makes_a_bundle_of_a_robot(folder: Path, tmp_path: Path):
    urdf = folder / "r.urdf"
    urdf.write_text(
        "<robot name='r'><link name='a'><visual><geometry>"
        "<mesh filename='package://robot/meshes/tip.obj'/></geometry></visual></link>"
        "</robot>"
    )
    out = tmp_path / "r.cell.zip"
    command = [sys.executable, "-m", "armillary", "convert", str(urdf), str(out)]
    subprocess.run(command, check=True, env={**os.environ})
    assert "packages/robot/textures/wood.png" in names(out)
    assert arm.load(out).workcell == arm.load(urdf).workcell


# Archives that are not trusted


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], deflated=False) -> bytes:
    held = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(held, "w", kind) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return held.getvalue()


def info(name: str, **fields) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def flagged(data: bytes, flags: int) -> bytes:
    """The same archive with flags in both heads of its only file."""
    changed = bytearray(data)
    struct.pack_into("<H", changed, 6, flags)
    struct.pack_into("<H", changed, data.index(b"PK\1\2") + 8, flags)
    return bytes(changed)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives_are_refused():
    link = (stat.S_IFLNK | 0o777) << 16
    twice = zipped(("a", b"1"), ("a", b"2"))
    two = bytearray(zipped(("a", bytes(50)), ("b", bytes(50))))
    second = two.rindex(b"PK\1\2")
    struct.pack_into("<I", two, second + 42, 10)  # begins inside of the first
    hostile = {
        "../a": "is not the name of a file inside",
        "/a": "is not the name of a file inside",
        "a/../b": "is not the name of a file inside",
        "a//b": "is not the name of a file inside",
        "C:/a": "is not the name of a file inside",
        "a\\b": "is not the name of a file inside",
        "a\nb": "is not the name of a file inside",
        "a" * 5000: "is not the name of a file inside",
    }
    cases = [(zipped((info(name), b"x")), why) for name, why in hostile.items()]
    cases += [
        (twice, "'a' occurs twice"),
        (bytes(two), "shares bytes with another file"),
        (zipped((info("a", external_attr=link), b"/etc")), "'a' is a link"),
        (
            zipped((info("a", compress_type=zipfile.ZIP_BZIP2), b"x")),
            "method 12",
        ),
        (flagged(zipped(("a", b"x")), 1), "'a' is encrypted"),
        (zipped(("a", bytes(1 << 21)), deflated=True), "becomes 1"),
        (zipped(("a", b"x"))[:-10], "is damaged"),
        (b"PK\3\4", "is damaged"),
    ]
    for data, why in cases:
        with pytest.raises(ArchiveError, match=why):
            ZipArchive(data)


def test_damaged_files_are_refused_when_they_are_read():
    data = bytearray(zipped(("a", b"hello")))
    data[data.index(b"hello")] ^= 1
    with pytest.raises(ArchiveError, match="'a' is damaged: Bad CRC"):
        ZipArchive(bytes(data)).read("a")


def test_archives_are_bounded(monkeypatch: pytest.MonkeyPatch):
    data = zipped(("a", bytes(600)), ("b", bytes(600)))
    content = msgspec.structs.replace(zip_archive.ARCHIVE_CONTENT, most=1000)
    files = msgspec.structs.replace(zip_archive.ARCHIVE_FILES, most=1)
    monkeypatch.setattr(zip_archive, "ARCHIVE_CONTENT", content)
    with pytest.raises(ArchiveError, match="have 1200 bytes together, more than 1000"):
        ZipArchive(data)
    monkeypatch.setattr(zip_archive, "ARCHIVE_FILES", files)
    with pytest.raises(ArchiveError, match="holds 2 files, more than 1"):
        ZipArchive(data)


def test_what_is_written_is_never_refused_as_a_bomb():
    files = {"a": bytes(1 << 21), "b": b"", "c": os.urandom(100)}
    data = zip_bytes(files, first="c")
    assert data == zip_bytes(dict(reversed(files.items())), first="c")
    archive = ZipArchive(data)
    assert {name: archive.read(name) for name in archive.names} == files


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (zipped(("robot.urdf", b"<robot/>")), "without cell.json"),
        (zipped(("cell.json", b"{}")), "error"),
        (b"no archive", "bad-archive"),
        (zipped(("cell.json", b"{}"), ("../x", b"")), "bad-archive"),
    ],
    # Archives have the time in them, and workers collect at different times.
    ids=["robot", "empty cell", "text", "path"],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, why: str):
    path = tmp_path / "x.cell.zip"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=why):
        arm.load(path)
    with pytest.raises(FormatError, match=r"no-cell|bad-archive|error"):
        arm.load(path, format="bundle")


# Motions in archives of arrays


def test_motions_in_archives_are_bounded(tmp_path: Path):
    motion = move()
    path = tmp_path / "m.npz"
    motion.write(path)
    files = dict(zip_files(path))
    np.testing.assert_array_equal(arm.Motion.read(path).q, motion.q)
    huge = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    np.lib.format.write_array_header_1_0(huge, head)
    for law, why in (
        (huge.getvalue(), "longer than its file"),
        (b"", "holds no motion"),
    ):
        path.write_bytes(zipped(*({**files, "law.npy": law}).items()))
        with pytest.raises(FormatError, match=why):
            arm.Motion.read(path)
    path.write_bytes(zipped(*files.items(), ("x", bytes(1 << 24)), deflated=True))
    with pytest.raises(FormatError, match="times as large"):
        arm.Motion.read(path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(FormatError, match="not a plain file"):
        arm.Motion.read(tmp_path / "pipe.json")


def zip_files(path: Path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


# Meshes in stages of USD

PART = """#usda 1.0
(defaultPrim = "part")
def Xform "part" {
    def Mesh "solid" {
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    }
}
"""
STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "one" (references = @parts/part.usda@) {}
def Xform "two" (references = @parts/part.usda@) { }
"""


@pytest.mark.parametrize("is_outside", [False, True])
def test_stages_of_meshes_and_their_layers_are_in_a_bundle(
    tmp_path: Path, is_outside: bool
):
    pytest.importorskip("pxr")
    folder = tmp_path / "lab"
    (folder / "parts").mkdir(parents=True)
    (folder / "stage.usda").write_text(STAGE)
    (folder / "parts" / "part.usda").write_text(PART)
    stage = os.fspath(folder / "stage.usda") if is_outside else "stage.usda"
    cell = cell_of(folder, f"{stage}#/one", f"{stage}#/two")
    report = arm.save(cell, tmp_path / "lab.cell.zip")
    assert codes(report) == (["mesh-renamed"] if is_outside else [])
    top = "files/" if is_outside else ""
    names = zipfile.ZipFile(tmp_path / "lab.cell.zip").namelist()
    assert names == ["cell.json", f"{top}parts/part.usda", f"{top}stage.usda"]
    shutil.rmtree(folder)
    for _ in range(2):  # also what is saved again
        cell = arm.load(tmp_path / "lab.cell.zip")
        shapes = cell.workcell.links[0].visuals
        assert [each.file for each in shapes] == [
            f"{top}stage.usda#/one",
            f"{top}stage.usda#/two",
        ]
        for mesh in shapes:
            assert cell.meshes is not None
            solid = cell.meshes.triangles(mesh)
            assert solid.moments.volume == pytest.approx(1 / 6)
        assert codes(arm.save(cell, tmp_path / "lab.cell.zip")) == []


def test_a_stage_in_a_bundle_that_refers_outside_is_not_followed(tmp_path: Path):
    pytest.importorskip("pxr")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "part.usda").write_text(PART)
    stage = STAGE.replace("parts/part.usda", os.fspath(secret / "part.usda"))
    native = tmp_path / "a.cell.json"
    arm.save(cell_of(tmp_path, "stage.usda#/one"), native)
    files = {"cell.json": native.read_bytes(), "stage.usda": stage.encode()}
    (tmp_path / "bad.cell.zip").write_bytes(zip_bytes(files))
    cell = arm.load(tmp_path / "bad.cell.zip")
    mesh = cell.workcell.links[0].visuals[0]
    assert cell.meshes is not None
    with pytest.raises(FormatError, match="empty-mesh"):
        cell.meshes.triangles(mesh)
    found = [each.code for each in cell.meshes.report.diagnostics]
    assert set(found) == {"reference-outside"}
