"""Cells of files that were read before: the same, and read anew for anything else."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import armillary as arm
from armillary.disk_cache import READINGS
from armillary.errors import FormatError
from armillary.forks import IMPORT_LOCK
from armillary.formats import kept_reading, registry, urdf
from armillary.formats.registry import Loaded

ROBOT = """<robot name="r" version="7.0">
  <link name="base"><collision><geometry><box size="1 2 3"/></geometry></collision>
  </link>
  <link name="hand"><visual><geometry><mesh filename="a.stl"/></geometry></visual>
  </link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="hand"/>
    <axis xyz="0 0 2"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <safety_controller k_velocity="1"/>
  </joint>
  <gazebo/><gazebo/>
</robot>
"""


@pytest.fixture(autouse=True, params=["memory", "disk"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of an empty cache; readings are in memory too, or nowhere else."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    monkeypatch.setattr(kept_reading, "MOST_KEPT", sys.maxsize)
    monkeypatch.setattr(kept_reading, "_recent", {})
    if request.param == "disk":
        monkeypatch.setattr(kept_reading, "MOST_BYTES", 0)
    return folder


memory = pytest.mark.parametrize("place", ["memory"], indirect=True)
disk = pytest.mark.parametrize("place", ["disk"], indirect=True)


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the URDF that are read rather than found."""
    found: list[str] = []

    def read(data: bytes, path: str, *rest: Any) -> Any:
        found.append(path)
        return urdf.FORMAT.read(data, path, *rest)

    counting = [
        replace(each, read=read) if each is urdf.FORMAT else each
        for each in registry.FORMATS
    ]
    monkeypatch.setattr(registry, "FORMATS", tuple(counting))
    return found


def kept(place: Path) -> list[Path]:
    return sorted(place.glob(f"*{READINGS}"))


def same(a: Loaded, b: Loaded) -> bool:
    return a.cell == b.cell and a.report.diagnostics == b.report.diagnostics


def test_a_file_is_read_once(robot: Path, place: Path, reads: list[str]):
    first = registry.load(robot)
    again = registry.load(robot)
    assert reads == [str(robot)]
    assert len(kept(place)) == 1
    # With all that was said of it, in the same order, and how often.
    messages = [each.message for each in again.report.diagnostics]
    assert any("version" in message for message in messages)
    assert any("there are 2" in message for message in messages)
    assert same(first, again)
    assert again.cell is not first.cell


def test_whatever_decides_a_cell_makes_it_another(
    robot: Path, place: Path, reads: list[str], tmp_path: Path
):
    registry.load(robot)
    moved = tmp_path / "other.urdf"  # its name is in diagnostics
    moved.write_text(ROBOT)
    ways: list[tuple[Path, dict[str, Any]]] = [
        (moved, {}),
        (robot, {"lenient": True}),
        (robot, {"swapped_limits": "swap"}),
        (robot, {"strict_order": True}),
    ]
    for count, (path, options) in enumerate(ways, 2):
        registry.load(path, **options)
        assert len(reads) == count
        assert len(kept(place)) == count
    robot.write_text(ROBOT.replace("1 2 3", "1 2 4"))
    changed: Any = registry.load(robot).cell.links[0].collisions[0]
    assert changed.size == (1.0, 2.0, 4.0)
    assert len(reads) == len(ways) + 2


@pytest.mark.parametrize("option", ["lenient", "strict", "strict_order"])
def test_options_may_be_any_truth(option: str, robot: Path, reads: list[str]):
    truths: list[Any] = [True, 1, np.array(True), [option]]
    for truth in truths:
        registry.load(robot, **{option: truth})
    assert len(reads) == 1


def test_folders_may_be_bytes(robot: Path, reads: list[str], tmp_path: Path):
    folders: list[Any] = [tmp_path, str(tmp_path), os.fsencode(tmp_path)]
    for folder in folders:
        found = registry.load(robot, folders=[folder], packages={"p": folder})
        assert any("a.stl" in each.message for each in found.report.diagnostics)
    assert len(reads) == 1


def test_a_process_that_reads_many_files_keeps_the_first(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_reading, "MOST_KEPT", 3)
    monkeypatch.setattr(kept_reading, "_readings", itertools.count())
    for k in range(5):
        path = tmp_path / f"{k}.urdf"
        path.write_text(ROBOT)
        registry.load(path)
    assert len(kept(place)) == 3


def test_what_others_decide_is_read_each_time(
    robot: Path, place: Path, reads: list[str], tmp_path: Path
):
    class Own(arm.Joint):
        tag = "own"

        def pose(self, q: Any) -> Any:
            return arm.Pose.translation(q, 0, 0)

    for count in (1, 2):
        registry.load(robot, joints=[Own])
        assert len(reads) == count
    assert kept(place) == []


def test_what_no_cache_is_wanted_for_is_read_each_time(
    robot: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    registry.load(robot)
    registry.load(robot)
    assert len(reads) == 2


def test_packages_and_folders_are_part_of_what_is_asked(
    robot: Path, place: Path, reads: list[str], tmp_path: Path
):
    ways: list[dict[str, Any]] = [
        {"folders": [tmp_path]},
        {"folders": [tmp_path, tmp_path / "b"]},
        {"packages": {"p": tmp_path}},
        {"packages": {"p": tmp_path / "b"}},
    ]
    first = [registry.load(robot, **options) for options in ways]
    assert len(reads) == len(kept(place)) == len(ways)
    again = [registry.load(robot, **options) for options in ways]
    assert all(map(same, first, again))
    assert len(reads) == len(ways)


def test_whether_meshes_are_there_is_asked_each_time(
    robot: Path, reads: list[str], tmp_path: Path
):
    def codes() -> set[str]:
        found = registry.load(robot, folders=[tmp_path]).report.diagnostics
        codes = {each.code for each in found if "a.stl" in each.message}
        assert codes == {
            each.code
            for each in registry.load(robot, folders=[tmp_path]).report.diagnostics
            if "a.stl" in each.message
        }
        return codes

    mesh, outside = tmp_path / "a.stl", tmp_path.parent / f"{tmp_path.name}.stl"
    assert codes() == {"reference-missing"}
    mesh.write_bytes(b"")
    assert codes() == set()
    assert len(reads) == 2
    mesh.unlink()
    outside.write_bytes(b"")
    mesh.symlink_to(outside)
    assert codes() == {"reference-outside"}
    mesh.unlink()
    assert codes() == {"reference-missing"}


def test_a_file_of_the_same_name_elsewhere_has_other_meshes(
    robot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = tmp_path / "other"
    other.mkdir()
    (other / robot.name).write_text(ROBOT)
    (tmp_path / "a.stl").write_bytes(b"")
    found: list[int] = []
    for folder in (tmp_path, other, tmp_path, other):
        monkeypatch.chdir(folder)
        report = registry.load(robot.name, folders=["."]).report
        found.append(sum("a.stl" in each.message for each in report.diagnostics))
    assert found == [0, 1, 0, 1]


PART = '<link name="part"><inertial><mass>{}</mass></inertial></link>'
WITH_FILES = {
    "sdf": (
        '<sdf version="1.9"><model name="m"><include merge="true">'
        "<uri>part.xml</uri></include></model></sdf>",
        f'<sdf version="1.9"><model name="p">{PART}</model></sdf>',
    ),
    "mjcf": (
        '<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>',
        '<mujocoinclude><body name="part"><inertial mass="{}" pos="0 0 0" '
        'diaginertia="1 1 1"/></body></mujocoinclude>',
    ),
}


@pytest.mark.parametrize("kind", WITH_FILES)
def test_what_includes_others_is_read_each_time(kind: str, place: Path, tmp_path: Path):
    text, part = WITH_FILES[kind]
    path = tmp_path / f"robot.{kind}"
    path.write_text(text)
    for mass in (1.0, 2.0):
        (tmp_path / "part.xml").write_text(part.format(mass))
        cell = registry.load(path).cell
        (found,) = (link for link in cell.links if link.name == "part")
        assert found.inertia is not None
        assert found.inertia.mass == mass
    assert kept(place) == []


@pytest.mark.parametrize("ending", [".sdf", ".mjcf", ".cell.json"])
def test_formats_whose_files_are_read_once(
    ending: str, robot: Path, place: Path, tmp_path: Path
):
    path = tmp_path / f"again{ending}"
    registry.save(registry.load(robot).cell, path)
    before = len(kept(place))
    first = registry.load(path)
    assert len(kept(place)) == before + 1
    assert same(first, registry.load(path))


@memory
def test_cells_of_one_file_share_what_is_immutable_alone(robot: Path):
    first = registry.load(robot).cell
    first.joint_names  # noqa: B018
    again = registry.load(robot).cell
    assert "joint_names" in first.__dict__
    assert "joint_names" not in again.__dict__
    assert again.manipulators[0] is first.manipulators[0]


@memory
def test_arrays_of_what_is_shared_cannot_be_written(robot: Path):
    first = registry.load(robot).cell.manipulators[0]
    for array in (*first.ranges, *first.limits, first.velocity_limits):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 5.0
    again = registry.load(robot).cell.manipulators[0]
    assert (again.ranges.lower == -1.0).all()


@memory
def test_a_large_file_leaves_room_for_others(
    robot: Path, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_reading, "MOST_KEPT", 0)  # nothing on disk
    monkeypatch.setattr(kept_reading, "MOST_BYTES", 2 * len(ROBOT))
    large = tmp_path / "large.urdf"
    large.write_text(ROBOT + 2 * len(ROBOT) * " ")
    for path in (robot, large, robot):
        registry.load(path)
    assert reads == [str(robot), str(large)]


@memory
def test_the_last_readings_stay_in_memory(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_reading, "MOST_KEPT", 0)  # nothing on disk
    paths = [tmp_path / f"{k}.urdf" for k in range(kept_reading.MOST_RECENT + 1)]
    for path in paths:
        path.write_text(ROBOT)
        registry.load(path)
    del reads[:]
    for path in paths[1:]:
        registry.load(path)
    assert reads == []
    registry.load(paths[0])  # in place of 1
    registry.load(paths[2])
    assert reads == [str(paths[0])]
    monkeypatch.setattr(kept_reading, "MOST_BYTES", 2 * len(ROBOT))
    registry.load(paths[1])
    assert len(kept_reading._recent) == 2
    registry.load(paths[2])
    assert reads == [str(paths[0]), str(paths[1])]


@memory
def test_threads_that_load_one_file_have_the_same(robot: Path):
    expected = registry.load(robot)
    found: list[Loaded] = []

    def ask() -> None:
        for _ in range(20):
            found.append(registry.load(robot))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(same(each, expected) for each in found)


def test_joints_of_unknown_types_are_read_each_time(place: Path, tmp_path: Path):
    class Own(arm.Joint):
        tag = "own"

        def pose(self, q: Any) -> Any:
            return arm.Pose.translation(q, 0, 0)

    links = [arm.Link(name="a"), arm.Link(name="b", parent="a", joint=Own())]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    path = tmp_path / "own.cell.json"
    arm.save(cell, path)
    unknown = arm.load(path)
    with pytest.raises(arm.errors.ArmillaryError):
        unknown.fk("b")([0.0])
    assert kept(place) == []
    assert arm.load(path, joints=[Own]).fk("b")([0.5])[0, 3] == 0.5


def test_faults_are_raised_each_time(robot: Path, place: Path, reads: list[str]):
    robot.write_text(ROBOT.replace('child link="hand"', 'child link="hnd"'))
    for _ in range(2):
        with pytest.raises(FormatError, match="hnd"):
            registry.load(robot)
    assert len(reads) == 2
    assert kept(place) == []


def test_a_report_that_left_out_some_is_made_anew(
    robot: Path, place: Path, reads: list[str]
):
    many = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="fixed">'
        f'<parent link="base"/><child link="l{k}"/></joint>'
        for k in range(120)
    )
    marks = "".join(
        f'<material name="m{k}"/>'
        f'<material name="m{k}"><color rgba="2 1 1 1"/></material>'
        for k in range(120)
    )
    robot.write_text(ROBOT.replace("</robot>", f"{many}{marks}</robot>"))
    first, again = registry.load(robot), registry.load(robot)
    assert any("more note" in each.message for each in first.report.diagnostics)
    assert same(first, again)
    assert len(reads) == 2
    assert kept(place) == []


@disk
def test_a_damaged_entry_is_read_anew(robot: Path, place: Path, reads: list[str]):
    first = registry.load(robot)
    (entry,) = kept(place)
    for damage in (entry.read_bytes()[:-1], b"", entry.read_bytes() + b"x"):
        entry.write_bytes(damage)
        assert same(registry.load(robot), first)
    assert len(reads) == 4


def test_warnings_of_the_model_come_each_time(robot: Path, place: Path):
    robot.write_text(ROBOT.replace('lower="-1" upper="1"', 'lower="-90" upper="90"'))
    for _ in range(2):
        with pytest.warns(UserWarning, match="are more than two turns") as caught:
            registry.load(robot)
        # Filters may name our modules.
        folders = Path(caught[0].filename).parts
        assert "armillary" in folders
        assert "msgspec" not in folders
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            registry.load(robot)
    assert len(kept(place)) == 1


def test_what_shows_warnings_may_wait_for_another_thread(
    robot: Path, monkeypatch: pytest.MonkeyPatch
):
    """No lock of imports is held where code of the caller runs."""
    robot.write_text(ROBOT.replace('lower="-1" upper="1"', 'lower="-90" upper="90"'))
    found: list[bool] = []

    def asks() -> None:
        found.append(IMPORT_LOCK.lock.acquire(blocking=False))
        if found[-1]:
            IMPORT_LOCK.lock.release()

    def show(*args: Any, **options: Any) -> None:
        thread = threading.Thread(target=asks)
        thread.start()
        thread.join()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        for _ in range(2):
            registry.load(robot)
    assert found == [True, True]


@pytest.mark.parametrize("name", arm.example_names())
def test_examples_are_the_same(name: str):
    first, again = arm.example(name), arm.example(name)
    assert first.workcell == again.workcell


ASK = """
import json, sys
import armillary as arm
cell = arm.load(sys.argv[1])
X = cell.fk("hand")([0.5])
print(json.dumps([list(sys.modules), X.tolist(), repr(cell)]))
"""


def test_another_process_neither_imports_the_reader_nor_compiles(
    robot: Path, place: Path
):
    def asked() -> list[Any]:
        command = [sys.executable, "-W", "error", "-c", ASK, str(robot)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    modules, X, shown = asked()
    files = sorted(os.listdir(place))
    found, *same = asked()
    assert {"pyexpat", "armillary.formats.urdf.read"} < set(modules)
    assert {"pyexpat", "armillary.formats.urdf.read"}.isdisjoint(found)
    assert same == [X, shown]
    # The formulas of what was found are the same to the bit: no code is made for them.
    assert sorted(os.listdir(place)) == files
    assert np.allclose(X, arm.load(robot).fk("hand")([0.5]), rtol=0, atol=0)


READ = """
import importlib, sys
from armillary.formats.kept_reading import MADE_BY
packages = [f"armillary.formats.{name}" for name in sys.argv[1:]]
importlib.import_module(f"{packages[0]}.read")
known = {*MADE_BY, *packages}
for name, module in sorted(sys.modules.items()):
    package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
    if name.startswith("armillary.") and known.isdisjoint({name, package}):
        print(name)
"""
DECIDE_NO_CELL = {
    *("digests", "disk_cache", "forks", "late_names", "paused_collector"),
    *("replaced_file", "user_folder"),
}
"""What readers import, and no cell depends on."""


@pytest.mark.parametrize("packages", [f.read_by for f in registry.FORMATS if f.read_by])
def test_the_source_of_all_that_reads_is_in_the_key(packages: tuple[str, ...]):
    command = [sys.executable, "-c", READ, *packages]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert {each.split(".")[1] for each in done.stdout.split()} <= DECIDE_NO_CELL
