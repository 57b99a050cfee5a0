"""`armillary sweep`: what the library sweeps, from options, resumable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import armillary as arm

COUNT = 500
FK = ("--ask", "fk", "--samples", COUNT, "--out", "out.zarr")


@pytest.fixture(scope="module")
def robot() -> arm.Cell:
    return arm.example("irb2400")


@pytest.fixture
def sweep(run, robot: arm.Cell, tmp_path: Path, monkeypatch):
    """The verb, of a robot in a file of the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    arm.save(robot, "robot.cell.json")
    return lambda *arguments: run("sweep", "robot.cell.json", *arguments)


def test_it_is_the_sweep_of_the_library(sweep, robot: arm.Cell):
    asked = ["--ask", "q,fk,collision,clearance", "--frame", "tool0", "--dtype"]
    more = ["float32", "--samples", "5e2", "--seed", 3, "--margin", 0.01]
    result = sweep(*asked, *more, "--out", "out.zarr")
    assert (result.code, result.err) == (0, "")
    check = robot.collision(margin=0.01)
    question = {
        "q": arm.sweeps.rows,
        "pose": robot.fk("tool0", state=robot.home, dtype=np.float32),
        "touching": check,
        "clearance": robot.collision().clearance,
    }
    samples = robot.samples(COUNT, seed=3)
    Q = samples.rows(0, COUNT)
    found = {
        name: np.fromfile(f"out.zarr/{name}/{file}", dtype)[: COUNT * size]
        for name, file, dtype, size in (
            ("q", "c.0.0", float, 6),
            ("pose", "c.0.0.0", np.float32, 16),
            ("touching", "c.0", bool, 1),
            ("clearance", "c.0", float, 1),
        )
    }
    for name, ask in question.items():
        assert np.array_equal(found[name], ask(Q).ravel()), name
    share = f"touching: {check(Q).sum():,} rows, {check(Q).mean():.2%}"
    assert result.out.splitlines()[2] == share
    again = sweep(*asked, *more, "--out", "out.zarr", "--json")
    said = json.loads(again.out)
    assert said.pop("seconds") > 0.0
    assert said == {
        "cell": "irb2400",
        "path": os.path.abspath("out.zarr"),
        "results": ["q", "pose", "touching", "clearance"],
        "rows": COUNT,
        "computed": 0,
        "touching": int(check(Q).sum()),
    }
    assert (
        "0 computed now: all rows were already there"
        in sweep(*asked, *more, "--out", "out.zarr").out
    )


def test_what_python_began_is_continued(sweep, robot: arm.Cell):
    fk = robot.fk("tool0", state=robot.home)
    arm.sweep({"pose": fk}, robot.samples(COUNT), "out.zarr", chunk=100)
    Path("out.zarr/pose/c.2.0.0").unlink()
    result = sweep(*FK, "--frame", "tool0")
    assert "\n100 computed now" in result.out


def test_joints_that_differ(sweep, robot: arm.Cell):
    q = "10,20,-10,0,45,0"
    given = ["--ask", "q", "--joints", "joint_4,joint_2", "--q", q, "--degrees"]
    result = sweep(*given, "--samples", 9, "--out", "q.npy")
    assert result.code == 0, result.err
    Q, fixed = np.load("q.npy"), [0, 2, 4, 5]
    home = np.radians([10, 20, -10, 0, 45, 0])
    assert np.abs(Q[:, fixed] - home[fixed]).max() < 1e-12
    assert np.ptp(Q[:, 1]) > 0.1 and np.ptp(Q[:, 3]) > 0.1
    result = sweep(*given, "--grid", "-90:90:3,5", "--out", "grid.npy")
    assert result.code == 0, result.err
    expected = np.tile(home, (3, 1))
    expected[:, 3], expected[:, 1] = np.radians([-90, 0, 90]), np.radians(5)
    assert np.abs(np.load("grid.npy") - expected).max() < 1e-12


def test_joint_positions_of_files(sweep, robot: arm.Cell):
    Q = robot.samples(COUNT).rows(0, COUNT)
    np.save("q.npy", Q)
    given = ["--ask", "fk", "--frame", "tool0", "--relative-to", "link_1"]
    assert sweep(*given, "--q-file", "q.npy", "--out", "x.npy").code == 0
    fk = robot.fk("tool0", relative_to="link_1")
    assert np.array_equal(np.load("x.npy"), fk(Q))


def test_inverse_kinematics_of_a_grid(sweep, robot: arm.Cell):
    given = ["--ask", "ik", "--frame", "tool0", "--grid", "0.8:1.2:5,-0.2:0.2:3,0.7"]
    turns = ["--rpy", "0,90,0", "--rpy", "-10,120,0", "--degrees"]
    result = sweep(*given, *turns, "--out", "ik.zarr")
    assert result.code == 0, result.err
    grid = arm.grid(
        [np.linspace(0.8, 1.2, 5), np.linspace(-0.2, 0.2, 3), [0.7]],
        rotations=[
            arm.Pose.from_rpy(*np.radians(each)).matrix()[:3, :3]
            for each in ([0, 90, 0], [-10, 120, 0])
        ],
    )
    answer = robot.ik("tool0")(grid.rows(0, grid.count))
    q = np.fromfile("ik.zarr/q/c.0.0")[: 6 * grid.count].reshape(-1, 6)
    assert np.abs(q - answer.q)[answer.success].max() < 1e-9
    assert f"success: {answer.success.sum()} rows" in result.out
    # Voxels as far apart as points count each point once.
    result = sweep(*given, *turns, "--voxels", 0.1, "--out", "ik.npz", "--json")
    said = json.loads(result.out)
    assert said["success"] == said["voxels"]["rows"] == answer.success.sum()
    with np.load("ik.npz") as file:
        counts = file["count"]
    per_point = answer.success.reshape(5, 3, 1, 2).sum(axis=-1)
    assert np.array_equal(counts[:, ::2], per_point)


def test_targets_of_files(sweep, robot: arm.Cell):
    X = robot.fk("tool0")(robot.samples(20).rows(0, 20))
    np.save("x.npy", X)
    np.save("points.npy", X[:, :3, 3])
    given = ["--ask", "ik", "--frame", "tool0", "--targets"]
    assert "success: 20 rows" in sweep(*given, "x.npy", "--out", "a.zarr").out
    free = [*given, "points.npy", "--rotation", "none", "--out", "b.zarr"]
    assert "success: 20 rows" in sweep(*free).out
    result = sweep(*given, "points.npy", "--out", "c.zarr")
    assert result.code == 2
    assert "--rotation none" in result.err
    result = sweep(*given, "x.npy", "--voxels", 0.2, "--out", "d.npz", "--json")
    assert json.loads(result.out)["voxels"]["rows"] == 20


def test_voxels_hold_all_that_is_reached(sweep, robot: arm.Cell):
    given = ["--ask", "fk,collision", "--frame", "tool0", "--samples", COUNT]
    result = sweep(*given, "--voxels", 0.2, "--out", "map.npz", "--json")
    said = json.loads(result.out)
    with np.load("map.npz") as file:
        counts, touching = file["count"], file["touching_count"]
        about = json.loads(str(file["about"]))
    Q = robot.samples(COUNT).rows(0, COUNT)
    points = robot.fk("tool0")(Q)[:, :3, 3]
    lower = said["voxels"]["lower"]
    expected = np.zeros(counts.shape, int)
    places = np.floor((points - lower) / 0.2).astype(int)
    np.add.at(expected, tuple(places.T), 1)
    assert np.array_equal(counts, expected)
    assert counts.sum() == said["voxels"]["rows"] == COUNT
    assert touching.sum() == said["touching"] == robot.collision()(Q).sum()
    assert about["reductions"][""]["lower"] == lower
    box = ["--box", "0:1,-1:1,0:1", "--out", "box.npz"]
    result = sweep(*given, "--voxels", 0.2, *box)
    inside = ((points >= [0, -1, 0]) & (points < [1, 1, 1])).all(axis=1).sum()
    assert f"5 x 10 x 5 from 0 -1 0\n{inside} rows in them\n" in result.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--ask", "fkk"], "Did you mean 'fk'"),
        (["--ask", "fk,fk"], "each question once"),
        (["--ask", "fk,ik"], "ask it alone"),
        (["--ask", "ik"], "ik takes poses, and --samples joint positions"),
        (["--ask", "ik", "--grid", "1,0,1"], "add --rpy R,P,Y"),
        (["--ask", "ik", "--grid", "1,0", "--rpy", "0,0,0"], "x, y and z"),
        (["--ask", "ik", "--grid", "1,0,1", "--rpy", "0,0"], "roll,pitch,yaw"),
        (["--ask", "fk", "--grid", "1,0,1"], "6 joints differ"),
        (["--ask", "fk", "--grid", "0:1,0,0,0,0,0"], "'0:1' does not describe an axis"),
        (["--ask", "fk", "--grid", "a,0,0,0,0,0"], "'a' is not a finite number"),
        (["--ask", "fk", "--targets", "x.npy"], "--q-file"),
        (["--ask", "fk", "--q-file", "none.npy"], "there is no such file"),
        (["--ask", "fk", "--q-file", "robot.cell.json"], "not an NPY file"),
        (["--ask", "fk", "--q-file", "wide.npy"], "(..., 6)"),
        (["--ask", "fk", "--q-file", "empty.npy"], "at least one sample"),
        (["--ask", "fk", "--q-file", "nan.npy"], "row 1: the samples are NaN"),
        (["--ask", "fk", "--q-file", "x.npy", "--seed", 1], "--seed has no meaning"),
        (["--ask", "fk", "--degrees"], "--degrees has no meaning"),
        (["--ask", "fk", "--rpy", "0,0,0"], "a grid for ik"),
        (["--ask", "fk", "--frame", "tool"], "tool0"),
        (["--ask", "fk", "--joints", "joint"], "joint_1"),
        (["--ask", "fk", "--within", "joint_1=2:1"], "--within 'joint_1=0:1'"),
        (["--ask", "fk", "--margin", 0.1], "--margin is of --ask collision"),
        (["--ask", "collision", "--frame", "tool0"], "--frame is of --ask fk or ik"),
        (["--ask", "collision", "--dtype", "float32"], "--dtype is of --ask fk"),
        (["--ask", "fk", "--voxels", 0], "a length above 0"),
        (["--ask", "fk", "--voxels", 1e-6, "--out", "x.npz"], "larger voxels"),
        (["--ask", "fk", "--voxels", 0.1], "with --voxels they go to a file '.npz'"),
        (["--ask", "fk,q", "--voxels", 0.1], "nothing else"),
        (["--ask", "fk", "--box", "0:1,0:1,0:1"], "add --voxels"),
        (["--ask", "fk", "--voxels", 0.1, "--box", "0:1"], "x, y and z"),
        (["--ask", "fk,q", "--out", "x.npy"], "can hold one array"),
        (["--ask", "fk", "--out", "."], "has not been written by a sweep"),
        (["--ask", "fk", "--samples", "1e12", "--chunk", 10**12], "smaller --chunk"),
        (["--ask", "fk", "--out", "x.csv"], "not the folder of a Zarr group"),
        (["--ask", "fk", "--samples", "1e18"], "larger --chunk"),
    ],
    ids=lambda each: " ".join(map(str, each)) if isinstance(each, list) else "",
)
def test_wrong_requests_are_failures(sweep, given, message):
    np.save("wide.npy", np.zeros((3, 7)))
    np.save("empty.npy", np.zeros((0, 6)))
    np.save("nan.npy", np.where(np.arange(18).reshape(3, 6) == 7, np.nan, 0.0))
    sources = {"--samples", "--grid", "--targets", "--q-file"}
    more = [] if sources & set(given) else ["--samples", COUNT]
    result = sweep("--out", "out.zarr", *more, *given)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "given",
    [
        ["--samples", 0],
        ["--samples", "1.5"],
        ["--samples", "inf"],
        ["--samples", 9, "--within", "joint_1"],
        ["--samples", 9, "--grid", "1"],
        ["--samples", 9, "--chunk", 0],
        [],
    ],
    ids=str,
)
def test_wrong_usage_is_reported(sweep, given):
    result = sweep("--ask", "fk", "--out", "out.zarr", *given)
    assert result.code == 2
    assert result.err.startswith("usage: armillary sweep")


def test_another_sweep_is_refused(sweep):
    assert sweep(*FK).code == 0
    for more, message in (
        (["--seed", 1], "other samples"),
        (["--dtype", "float32"], "another question"),
        (["--chunk", 7], "leave out --chunk"),
        (["--no-resume"], "--no-resume was given"),
    ):
        result = sweep(*FK, *more)
        assert result.code == 2
        assert message in result.err


def test_ranges_replace_missing_limits(run, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(arm.example("ur5e_on_oval"), "oval.cell.json")
    given = ["sweep", "oval.cell.json", "--ask", "q", "--samples", 9, "--out", "q.npy"]
    result = run(*given)
    assert result.code == 2
    assert "--within 'track/cart=0:1'" in result.err
    assert run(*given, "--within", "cart=-2:-1").code == 0
    cart = np.load("q.npy")[:, 0]
    assert cart.min() >= -2.0 and cart.max() <= -1.0


def test_a_scheduler_that_is_not_there(sweep, monkeypatch):
    pytest.importorskip("distributed")
    from armillary.cli import sweep as verb

    monkeypatch.setattr(verb, "CONNECTING", 0.2)
    for address in ("tcp://127.0.0.1:9", "no://such"):
        result = sweep(*FK, "--dask", address)
        assert result.code == 2
        assert f"No Dask scheduler answers at '{address}'" in result.err
        assert "dask worker" in result.err
    assert not Path("out.zarr").exists()


def test_dask_that_is_not_installed(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = sweep(*FK, "--dask", "tcp://127.0.0.1:8786")
    assert result.code == 2
    assert "armillary[sweep]" in result.err


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of the cluster itself
def test_it_runs_on_a_cluster(sweep):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        result = sweep(*FK, "--chunk", 100, "--dask", cluster.scheduler_address)
    assert result.code == 0, result.err
    assert "500 computed now" in result.out
    assert "0 computed now: all rows were already there" in sweep(*FK).out


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_interrupts_lose_nothing(sweep, robot: arm.Cell):
    X = robot.fk("tool0")(robot.samples(60_000).rows(0, 60_000))
    np.save("x.npy", X)
    given = ["--ask", "ik", "--targets", "x.npy", "--chunk", 500, "--out", "ik.zarr"]
    given = [*given, "--rotation", "xy"]  # a search
    program = [sys.executable, "-m", "armillary", "sweep", "robot.cell.json"]
    process = subprocess.Popen(
        [*program, *map(str, given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 300.0
    while not list(Path().glob("ik.zarr/q/c.*")) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert (out, err) == ("", "interrupted; the same command continues\n")
    done = len(list(Path().glob("ik.zarr/q/c.*")))
    assert 0 < done <= 120  # all of them where others kept this process from looking
    if done < 120:
        assert f"\n{60_000 - 500 * done:,} computed now" in sweep(*given).out
