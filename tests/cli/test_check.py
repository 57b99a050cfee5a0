"""`armillary check`: all diagnostics, and an exit code that scripts can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import armillary as arm
from armillary.errors import FormatError, ModelError
from armillary.formats import registry
from armillary.formats.diagnostic import Place, Report
from armillary.formats.mesh import MeshFiles
from armillary.formats.registry import Loaded
from armillary.shapes import HalfSpace, Sphere


def stub(monkeypatch: pytest.MonkeyPatch, *kinds: str, cell: arm.Cell) -> None:
    """Have every file read as `cell`, with diagnostics of these kinds."""

    def read(path: str, **_: object) -> Loaded:
        report = Report()
        for k, kind in enumerate(kinds, start=1):
            getattr(report, kind)(Place(path, k, 7), f"code-{k}", f"fault {k}")
        report.raise_if_errors()
        return Loaded(cell.workcell, report, MeshFiles("."), {})

    monkeypatch.setattr(registry, "load", read)


def test_a_clean_file(run, file: str):
    result = run("check", file)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{file}: 0 errors, 0 warnings\n"


def test_warnings_are_not_errors(run, cell: arm.Cell, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, "warning", "note", "warning", cell=cell)
    result = run("check", "x.urdf")
    assert result.code == 0
    assert result.out.splitlines() == [
        "x.urdf:1:7: warning[code-1]: fault 1",
        "x.urdf:2:7: note[code-2]: fault 2",
        "x.urdf:3:7: warning[code-3]: fault 3",
        "x.urdf: 0 errors, 2 warnings",
    ]


def test_all_errors_are_printed(run, cell: arm.Cell, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, "warning", "error", "error", cell=cell)
    result = run("check", "x.urdf")
    assert result.code == 1
    assert result.out.splitlines() == [
        "x.urdf:2:7: error[code-2]: fault 2",
        "x.urdf:3:7: error[code-3]: fault 3",
        "x.urdf:1:7: warning[code-1]: fault 1",
        "x.urdf: 2 errors, 1 warning",
    ]


def test_plain_texts_among_the_diagnostics_are_errors(
    run, monkeypatch: pytest.MonkeyPatch
):
    def read(path: str, **_: object) -> object:
        raise FormatError("it is broken")

    monkeypatch.setattr(registry, "load", read)
    result = run("check", "x.urdf")
    assert result.code == 1
    assert result.out == "it is broken\nx.urdf: 1 error, 0 warnings\n"


def test_a_cell_that_cannot_be(run, monkeypatch: pytest.MonkeyPatch):
    def read(path: str, **_: object) -> object:
        raise ModelError("two bases")

    monkeypatch.setattr(registry, "load", read)
    result = run("check", "x.urdf")
    assert (result.code, result.out) == (1, "two bases\nx.urdf: 1 error, 0 warnings\n")


def test_limits_that_leave_nothing(run, monkeypatch: pytest.MonkeyPatch):
    def finger(name: str, low: float, **more: object) -> arm.Link:
        return arm.Link(
            name=name,
            parent="palm",
            joint=arm.joints.Revolute(),
            limits=arm.Limits(lower=low, upper=low + 0.5),
            **more,  # type: ignore[arg-type]
        )

    links = [
        arm.Link(name="palm"),
        finger("a", 0.0),
        finger("b", 2.0, coupling=arm.Coupling(of="a")),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="hand", links=links)])
    stub(monkeypatch, "warning", cell=cell)
    result = run("check", "x.urdf")
    assert result.code == 1
    first, second, last = result.out.splitlines()
    assert "warning" in first
    assert "'a'" in second
    assert last == "x.urdf: 1 error, 1 warning"


def test_a_file_that_breaks_off(run, tmp_path: Path, file: str):
    text = Path(file).read_bytes()
    cut = tmp_path / "cut.cell.json"
    cut.write_bytes(text[: len(text) // 2])
    result = run("check", str(cut))
    assert result.code == 1
    assert result.out.splitlines()[-1].endswith("cut.cell.json: 1 error, 0 warnings")


def test_a_missing_file(run):
    result = run("check", "nowhere.urdf")
    assert result.code == 1
    assert "error[no-such-file]" in result.out


NO_MASS = """<robot name="r">
<link name="a"><inertial/></link>
</robot>
"""


def test_strict_refuses_what_leaves_no_doubt(run, tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(NO_MASS)
    result = run("check", str(path))
    assert result.code == 0
    assert "0 errors, 2 warnings" in result.out
    result = run("check", str(path), "--strict")
    assert result.code == 1
    assert "2 errors, 0 warnings" in result.out


def test_a_guess_is_reported_with_its_option(run, tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" '
        'type="revolute"><parent link="a"/><child link="b"/>'
        '<limit lower="2" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    result = run("check", str(path))
    assert result.code == 1
    assert "With --lenient, they are swapped." in result.out
    assert run("check", str(path), "--lenient").code == 0


def sliding_balls(name: str, count: int, lower: float) -> arm.Manipulator:
    """Return balls of which each slides along x from the one before it."""
    balls = [arm.Link(name="a", collisions=[Sphere(radius=0.1)])]
    for ball in "bc"[: count - 1]:
        balls.append(
            arm.Link(
                name=ball,
                parent=balls[-1].name,
                joint=arm.joints.Prismatic(axis=(1, 0, 0)),
                limits=arm.Limits(lower=lower, upper=2.0),
                collisions=[Sphere(radius=0.1)],
            )
        )
    return arm.Manipulator(name=name, links=balls)


def test_links_that_touch_at_home_are_warnings(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    cell = arm.Cell(manipulators=[sliding_balls("m", 2, lower=0.15)])
    arm.save(cell, "free.cell.json")
    assert run("check", "free.cell.json").out == (
        "free.cell.json: 0 errors, 0 warnings\n"
    )
    cell = cell.replace(rules=arm.Rules.everything())
    arm.save(cell, "x.cell.json")
    result = run("check", "x.cell.json", "--explain")
    assert result.code == 0
    first, *_, last = result.out.splitlines()
    assert first.startswith(
        "x.cell.json: warning[links-touch]: At home, links 'm/a' and 'm/b' overlap by "
        "0.05 m at (0.075, 0, 0)"
    )
    assert "links-touch:" in result.out
    assert last == "x.cell.json: 0 errors, 1 warning"


def test_links_that_cannot_be_tested_are_warnings(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    floors = [
        arm.Manipulator(name=n, links=[arm.Link(name="f", collisions=[HalfSpace()])])
        for n in "ab"
    ]
    arm.save(arm.Cell(manipulators=floors), "x.cell.json")
    result = run("check", "x.cell.json")
    assert result.code == 0
    assert "x.cell.json: warning[links-untested]: Links are not tested" in result.out
    assert result.out.endswith("0 errors, 1 warning\n")


MESHES = """<robot name="r">
<link name="a"><visual><geometry><mesh filename="bad.stl"/></geometry></visual>
<collision><geometry><mesh filename="missing.stl"/></geometry></collision></link>
<link name="b"><collision><geometry><mesh filename="missing.stl"/></geometry>
</collision><visual><geometry><mesh filename="missing.obj"/></geometry></visual></link>
<link name="c"><collision><geometry><mesh filename="point.stl"/></geometry></collision>
</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="k" type="revolute"><parent link="b"/><child link="c"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>
"""
POINT = "solid p\nfacet normal 0 0 1\nouter loop\n" + 3 * "vertex 1 1 1\n"


@pytest.mark.parametrize("folders", [(), ("--folder", ".")])
def test_meshes_that_are_missing_or_refused(
    run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folders: tuple[str, ...],
):
    monkeypatch.chdir(tmp_path)
    Path("r.urdf").write_text(MESHES)
    Path("bad.stl").write_text("no mesh")
    Path("point.stl").write_text(POINT + "endloop\nendfacet\nendsolid p\n")
    result = run("check", "r.urdf", *folders)
    assert result.code == 0
    warned = [line for line in result.out.splitlines() if "warning[" in line]
    for name in ("missing.stl", "missing.obj", "bad.stl", "point.stl"):
        named = [line for line in warned if name in line and "untested" not in line]
        assert len(named) == 1 or (named and name == "point.stl"), warned
    assert sum("warning[links-untested]" in line for line in warned) == 1
    assert result.out.endswith(f"0 errors, {len(warned)} warnings\n")


def test_robots_that_nobody_tests_are_named(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    balls = [arm.Link(name="l0", collisions=[Sphere(radius=0.05)])]
    for k in (1, 2, 3):
        turn = arm.joints.Revolute(precursor=arm.Pose.translation(0.2, 0, 0))
        shape = Sphere(radius=0.05 if k < 3 else 0.36)
        balls.append(
            arm.Link(name=f"l{k}", parent=f"l{k - 1}", joint=turn, collisions=[shape])
        )
    robot = arm.Manipulator(name="robot", links=balls)
    arm.save(arm.Cell(manipulators=[robot]), "x.cell.json")
    result = run("check", "x.cell.json")
    assert "warning[links-untested]: No pair of links of 'robot'" in result.out
    assert "by --self-collision" in result.out
    (line, _) = result.out.splitlines()
    assert line.endswith("or say that this is meant by --no-self-collision.")
    assert result.out.endswith("0 errors, 1 warning\n")
    result = run("check", "x.cell.json", "--self-collision")
    assert "note[touch-at-home]: Links that touch at home" in result.out
    assert "'robot/l1' and 'robot/l3'. 'armillary rules FILE --out" in result.out
    assert result.out.endswith("0 errors, 0 warnings\n")
    result = run("check", "x.cell.json", "--no-self-collision")
    assert result.out == "x.cell.json: 0 errors, 0 warnings\n"


def test_json(run, tmp_path: Path, file: str):
    assert json.loads(run("check", file, "--json").out) == {"diagnostics": []}
    text = Path(file).read_text()
    (tmp_path / "short.cell.json").write_text(text[: len(text) // 2])
    result = run("check", str(tmp_path / "short.cell.json"), "--json")
    assert result.code == 1
    (first, *_) = json.loads(result.out)["diagnostics"]
    assert first["severity"] == "error"
    assert first["message"]


@pytest.mark.filterwarnings("default")
def test_untested_robots_are_listed_by_one_warning(run, file: str):
    """No rule tests these two robots against themselves."""
    manipulators = [sliding_balls(name, 3, lower=1.0) for name in ("left", "right")]
    mounts = [arm.Mount(manipulator="right", pose=arm.Pose.translation(0, 5, 0))]
    arm.save(arm.Cell(manipulators=manipulators, mounts=mounts), "two.cell.json")
    result = run("check", "two.cell.json")
    assert result.out.count("links-untested") == 1
    assert "no rule says so: 'left', 'right'" in result.out
    assert "'left', for example, against itself by --self-collision" in result.out
    result = run("collide", "two.cell.json")
    assert result.err.count("no rule says so") == 1
