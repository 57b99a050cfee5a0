from __future__ import annotations

import gc
import logging
import os
from pathlib import Path

import pytest

from armillary.errors import FormatError, ModelError, UnknownName
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.mesh import read_triangles
from armillary.formats.registry import (
    FORMATS,
    NAMED_ONLY,
    log,
    read,
    save,
    write,
)
from armillary.model.joint import Joint
from armillary.model.joints import Fixed, OvalTrack, Revolute
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.paused_collector import collector_paused
from armillary.spatial.pose import Pose
from armillary.zip_archive import zip_bytes

NAMES = [each.name for each in FORMATS]


def load(path, **options) -> Workcell:
    found, report = read(path, **options)
    log(report)
    return found


class Crank(Joint, frozen=True):
    arm: float

    def pose(self, q):
        return Pose.rotation_z(q) @ Pose.translation(self.arm, 0.0, 0.0)


def cell(joint: Joint | None = None) -> Workcell:
    tip = Link(name="tip", parent="base", joint=joint or Revolute(axis=(0, 1, 0)))
    arm = Manipulator(name="arm", links=(Link(name="base"), tip))
    return Workcell(name="arm", manipulators=(arm,))


def refusal(path: str | Path, **options) -> str:
    with pytest.raises(FormatError) as caught:
        load(path, **options)
    return str(caught.value)


def test_table_is_sound():
    assert len(set(NAMES)) == len(NAMES)
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert all(each.suffixes and each.title for each in FORMATS)
    assert all(s.startswith(".") and s == s.lower() for s in suffixes)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_knows_its_own_files_and_no_others(name: str):
    data, _ = write(cell(), format=name)
    assert [each.name for each in FORMATS if each.sniff(data)] == [name]
    for junk in (b"", b"{}", b"<a/>", b"links", b"\x00" * 100, b"\xff"):
        assert not any(each.sniff(junk) for each in FORMATS)


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
def test_every_format_keeps_a_simple_arm(tmp_path: Path, form):
    for suffix in form.suffixes:
        path = tmp_path / f"arm{suffix}"
        report = save(cell(), path)
        assert report.count(Severity.ERROR) == report.count(Severity.WARNING) == 0
        back = load(path)
        assert back.joint_names == ("tip",)
        X = back.manipulators[0].link("tip").joint.transform(0.5)
        assert X.approx_equal(Pose.rotation_y(0.5), 1e-15)
        assert read(str(path))[0] == back == load(path, format=form.name)
        again = tmp_path / f"again{suffix}"
        save(back, again)
        assert again.read_bytes() == path.read_bytes()


# Which format a file is of.


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
@pytest.mark.parametrize(
    "name", ["arm", "arm.json", "arm.xml", "arm.CELL", "ärm.tar.gz"]
)
def test_contents_tell_the_format_of_other_names(tmp_path: Path, form, name):
    path = tmp_path / name
    save(cell(), path, format=form.name)
    assert load(path).joint_names == ("tip",)


def test_case_of_the_ending_does_not_count(tmp_path: Path):
    save(cell(), tmp_path / "ARM.Cell.JSON")
    assert load(tmp_path / "ARM.Cell.JSON") == cell()


def test_name_and_contents_must_agree(tmp_path: Path):
    path = tmp_path / "arm.kinematic.json"
    save(cell(), path, format="cell")
    assert refusal(path) == (
        f"{path}: error[wrong-content]: the name says Isaac's kinematic tree, but "
        "the contents look like armillary's own format. Rename the file, or say "
        "format='cell'."
    )
    assert load(path, format="cell") == cell()


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
@pytest.mark.parametrize("data", [b"", b"{", b"<", b"[1, 2]", b"\x00\xff", b"junk"])
def test_reader_of_the_name_explains_what_nobody_knows(tmp_path: Path, form, data):
    path = tmp_path / f"arm{form.suffixes[0]}"
    path.write_bytes(data)
    found = refusal(path)
    assert found.startswith(str(path))
    assert "unknown-format" not in found


def test_unknown_files_are_reported_with_what_is_known(tmp_path: Path):
    path = tmp_path / "arm.odd"
    path.write_bytes(b"nothing known")
    found = refusal(path)
    assert found.startswith(f"{path}: error[unknown-format]: neither the ending nor")
    known = (*FORMATS, *NAMED_ONLY)
    assert all(f"{each.suffixes[0]} ({each.name})" in found for each in known)


def zipped(*names: str) -> bytes:
    return zip_bytes(dict.fromkeys(names, b"x"))


OTHER_KINDS = [
    ("arm.urdf", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ("arm.urdf", b"\n<!DOCTYPE html>\n<html><body/></html>", "a web page, not URDF"),
    ("arm.urdf", b"%PDF-1.7", "a PDF document"),
    ("arm.urdf", b"\x1f\x8b\x08", "(gzip), not URDF. Unpack it"),
    ("arm.cell.json", bytes(257) + b"ustar\0", "(tar), not armillary's own format"),
    ("arm.zip", zipped("a/b.urdf", "c.stl"), "load the model in it: 'a/b.urdf'"),
    ("arm.zip", zipped("c.stl"), "without cell.json or another model"),
    ("arm.zip", b"PK\3\4", "that is refused"),
    ("arm.json", b'{\n "kind": "armillary motion"}', "arm.Motion.read"),
    ("arm.urdf", b"x" * 80 + b"\1\0\0\0" + bytes(50), "a binary STL mesh, not a robot"),
    ("arm.urdf", b"solid a\nfacet normal 0 0 1", "a text STL mesh"),
    ("arm.urdf", b"<COLLADA/>", "a COLLADA mesh"),
    ("arm.json", b'{"asset": {}, "accessors": []}', "a glTF mesh"),
    ("arm.obj", b"# made\no a\nv 0 0 0\nf 1 1 1\n", "an OBJ mesh"),
    ("arm.ply", b"ply\nformat", "a PLY mesh"),
    ("arm.urdf", b"ISO-10303-21;\nHEADER;", "STEP, geometry of CAD, not URDF"),
    ("arm.igs", b" " * 72 + b"S      1\n", "IGES, geometry of CAD, which is not"),
    ("arm.wbt", b"#VRML_SIM R2023b utf8", "a world of Webots"),
    ("arm.xml", b"<launch/>", "a launch file of ROS"),
    ("package.xml", b"<package><name>a</name></package>", "of a ROS package"),
]


@pytest.mark.parametrize(("name", "data", "said"), OTHER_KINDS)
def test_what_a_file_is_is_said(tmp_path: Path, name: str, data: bytes, said: str):
    path = tmp_path / name
    path.write_bytes(data)
    found = refusal(path)
    assert "error[unknown-format]: this is" in found
    assert said in found


def test_what_a_mesh_is_not_is_said(tmp_path: Path):
    for _, data, said in OTHER_KINDS:
        if "git" in said or "web page" in said or "gzip" in said:
            path = tmp_path / "a.stl"
            path.write_bytes(data.lstrip())
            with pytest.raises(FormatError, match="not a mesh"):
                read_triangles(path)


def test_unknown_format_is_reported_before_the_file_is_looked_at():
    for call in (
        lambda: load("/nowhere/arm.urdf", format="urfd"),
        lambda: save(cell(), "/nowhere/arm.urdf", format="urfd"),
        lambda: write(cell(), format="urfd"),
    ):
        with pytest.raises(UnknownName, match=r"no format named 'urfd'\. Did you mean"):
            call()


# Files that are none.


def test_missing_file_is_reported_with_a_guess(tmp_path: Path):
    save(cell(), tmp_path / "robot.cell.json")
    found = refusal(tmp_path / "robto.cell.json")
    assert "error[no-such-file]: no such file. Did you mean 'robot.cell.json'?" in found


def test_what_is_not_a_plain_file_is_refused(tmp_path: Path):
    folder = tmp_path / "arm.cell.json"
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe.urdf")
    assert "error[not-a-file]: this is a folder" in refusal(folder)
    assert "error[not-a-file]: this is a pipe" in refusal(tmp_path / "pipe.urdf")
    assert "error[not-a-file]" in refusal("/dev/zero")


def test_a_file_of_a_gigabyte_is_not_begun(tmp_path: Path):
    path = tmp_path / "arm.cell.json"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    assert "error[file-too-large]: the file has 1073741824 bytes" in refusal(path)


# Joints of the caller's own.


@pytest.mark.parametrize("joints", [[Crank], (Crank,), {"Crank": Crank}, {Crank}])
def test_own_joints_are_known(tmp_path: Path, joints):
    mine = cell(Crank(arm=0.5))
    save(mine, tmp_path / "a.cell.json")
    assert load(tmp_path / "a.cell.json", joints=joints) == mine
    unknown = load(tmp_path / "a.cell.json").manipulators[0].link("tip").joint
    assert unknown == OpaqueJoint(kind="Crank", parameters='{"arm":0.5}')


def test_own_joints_may_have_another_tag(tmp_path: Path):
    save(cell(Crank(arm=0.5)), tmp_path / "a.cell.json")
    back = load(tmp_path / "a.cell.json", joints={"Crank": Crank})
    assert back == cell(Crank(arm=0.5))


class Fake(Joint, frozen=True):
    tag = "Revolute"

    def pose(self, q):
        return Pose.identity()


@pytest.mark.parametrize(
    ("joints", "why"),
    [
        ([Crank(arm=1.0)], "takes subclasses of Joint, not"),
        (["Crank"], "takes subclasses of Joint, not 'Crank'"),
        ([int], "takes subclasses of Joint, not"),
        ({"a": None}, "takes subclasses of Joint, not None"),
        ([Fake], "'Revolute' is armillary.model.joints.revolute.Revolute already"),
        ({"Fixed": Crank}, "'Fixed' is armillary.model.joints.fixed.Fixed already"),
    ],
)
def test_what_makes_no_joint_is_refused(joints, why):
    with pytest.raises(ModelError) as caught:
        load("/nowhere/arm.urdf", joints=joints)
    assert why in str(caught.value)


def test_built_in_joints_may_be_named_again(tmp_path: Path):
    save(cell(), tmp_path / "a.cell.json")
    assert load(tmp_path / "a.cell.json", joints=[Revolute, Fixed]) == cell()


# Warnings.


def test_warnings_are_values_of_read_and_lines_in_the_log(tmp_path: Path, caplog):
    path = tmp_path / "a.cell.json"
    save(cell(Crank(arm=0.5)), path)
    back, report = read(path)
    assert isinstance(report, Report)
    assert [found.code for found in report.diagnostics] == ["unknown-joint-type"]
    with caplog.at_level(logging.WARNING, logger="armillary.formats"):
        assert load(path) == back
    (record,) = caplog.records
    assert record.name == "armillary.formats"
    assert record.getMessage() == str(report.diagnostics[0])


def test_notes_are_not_warnings_in_the_log(tmp_path: Path, caplog):
    path = tmp_path / "a.kinematic.json"
    path.write_text('{"links": [{"name": "b", "parent": "a"}, {"name": "a"}]}')
    with caplog.at_level(logging.INFO, logger="armillary.formats"):
        load(path)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "error[order]" in refusal(path, strict_order=True)


# Saving.


SWAPPED = """<robot name="r"><link name="base"/><link name="tip"/>
<joint name="j" type="revolute"><parent link="base"/><child link="tip"/>
<limit lower="2" upper="1" effort="1" velocity="1"/></joint></robot>"""


def test_a_guess_is_asked_for(tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(SWAPPED)
    for how in ({}, {"strict": True}):
        with pytest.raises(FormatError, match="swapped-limits"):
            load(path, **how)
    cell = load(path, lenient=True)
    assert [bound.tolist() for bound in cell.limits] == [[1.0], [2.0]]


def test_strict_and_lenient_exclude_each_other(tmp_path: Path):
    with pytest.raises(ModelError, match="choose one of them"):
        read(tmp_path / "r.urdf", strict=True, lenient=True)


def test_what_nothing_is_computed_from_is_not_a_warning_in_the_log(
    tmp_path: Path, caplog
):
    path = tmp_path / "r.urdf"
    path.write_text(
        '<robot name="r"><gazebo/><transmission/><ros2_control/><link name="a"/>'
        "</robot>"
    )
    with caplog.at_level("WARNING", logger="armillary.formats"):
        _, report = read(path)
        load(path)
    assert caplog.records == []
    assert [str(d.severity.value) for d in report.diagnostics] == ["note"] * 3


def test_losses_are_reported_and_refused_on_request(tmp_path: Path):
    path = tmp_path / "a.kinematic.json"
    track = cell(OvalTrack(straight=1.0, radius=0.5))
    with pytest.raises(FormatError) as caught:
        save(track, path, lossless=True)
    first, *rest = caught.value.diagnostics
    assert str(first) == (
        "error[lossy]: Isaac's kinematic tree cannot hold all of cell 'arm'. What "
        "would be lost follows."
    )
    assert "lost-joint" in [found.code for found in rest]
    assert not path.exists()
    assert "lost-joint" in [found.code for found in save(track, path).diagnostics]
    assert path.exists()
    save(track, tmp_path / "a.cell.json", lossless=True)


def test_a_robot_that_is_tested_against_itself_is_as_read_from_its_urdf(
    tmp_path: Path,
):
    shape = "<collision><geometry><sphere radius='0.1'/></geometry></collision>"
    links = "".join(f"<link name='{name}'>{shape}</link>" for name in "abc")
    joints = "".join(
        f"<joint name='{a}{b}' type='continuous'><parent link='{a}'/>"
        f"<child link='{b}'/><origin xyz='0 0 1'/></joint>"
        for a, b in ("ab", "bc")
    )
    path = tmp_path / "r.urdf"
    path.write_text(f"<robot name='r'>{links}{joints}</robot>")
    robot = load(path)
    assert robot.rules != Workcell().rules
    assert save(robot, tmp_path / "s.urdf", lossless=True).diagnostics == ()
    assert load(tmp_path / "s.urdf").rules == robot.rules
    rules = robot.rules.exclude("a", "c")
    with pytest.raises(FormatError, match="which pairs of links are tested"):
        save(robot.replace(rules=rules), path, lossless=True)


@pytest.mark.parametrize("name", ["a.json", "a", "a.step", "cell.json"])
def test_a_name_that_tells_no_format_is_refused(tmp_path: Path, name):
    with pytest.raises(FormatError, match=r"\[unknown-format\].* Name a format with"):
        save(cell(), tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_cell_that_cannot_be_written_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "a.kinematic.json"
    save(cell(), path)
    old = path.read_bytes()
    with pytest.raises(FormatError, match="has 0 manipulators"):
        save(Workcell(), path)
    assert path.read_bytes() == old


def test_folder_that_does_not_exist_is_reported(tmp_path: Path):
    with pytest.raises(FormatError, match=r"error\[no-such-folder\]"):
        save(cell(), tmp_path / "none" / "a.cell.json")


def test_what_is_not_a_cell_is_not_saved(tmp_path: Path):
    with pytest.raises(ModelError, match=r"A Revolute is not a cell\."):
        save(Revolute(), tmp_path / "j.actin.xml")  # pyright: ignore
    assert list(tmp_path.iterdir()) == []


def test_the_garbage_collector_is_paused_and_resumed():
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_faulty_file_resumes_the_garbage_collector(tmp_path: Path):
    path = tmp_path / "faulty.cell.json"
    path.write_text('{"format": "armillary cell"')
    with pytest.raises(FormatError):
        load(path)
    assert gc.isenabled()
