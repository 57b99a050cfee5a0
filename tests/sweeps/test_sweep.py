"""A sweep is the question asked of all rows, for any chunks and workers."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import armillary as arm
import sweep_functions
from armillary.errors import ShapeError, SweepError, UnknownName
from armillary.kinematics.identity import digest
from armillary.sweeps.zarr_group import TAIL

COUNT = 3000


@pytest.fixture(scope="module")
def samples(cell: arm.Cell) -> arm.sweeps.Samples:
    return cell.samples(COUNT, seed=1)


def questions(cell: arm.Cell):
    return {
        "q": arm.sweeps.rows,
        "pose": cell.fk("tool0"),
        "short": cell.fk("tool0", dtype=np.float32, form="quaternion"),
        "touching": cell.collision(),
        "clearance": cell.collision().clearance,
    }


@pytest.mark.parametrize("chunk", [None, 1, 7, 1000, COUNT, 2 * COUNT])
def test_it_is_the_question_of_all_rows(cell: arm.Cell, chunk: int | None):
    count = 40 if chunk == 1 else COUNT
    samples = cell.samples(count, seed=1)
    found = arm.sweep(questions(cell), samples, chunk=chunk)
    Q = samples.rows(0, count)
    for name, ask in questions(cell).items():
        assert np.array_equal(found[name], ask(Q)), name
        assert found[name].dtype == ask(Q).dtype
    assert found.computed == found.rows == count


def test_one_question_names_its_result(cell: arm.Cell, samples):
    assert list(arm.sweep(cell.fk("tool0"), samples)) == ["pose"]
    assert list(arm.sweep(cell.collision(), samples)) == ["touching"]
    assert list(arm.sweep(np.negative, samples, executor="threads")) == ["negative"]


def test_inverse_kinematics(cell: arm.Cell, samples):
    X = arm.sweep(cell.fk("tool0"), samples)["pose"]
    ik = cell.ik("tool0")
    expected = ik(X)
    for ask in (ik, partial(ik, tolerance=(1e-6, 1e-6))):
        found = arm.sweep(ask, X, chunk=700)
        assert list(found) == ["q", "success", "residual", "reason"]
        for name in found:
            assert np.array_equal(found[name], getattr(expected, name))
    every = arm.sweep({"all": ik.all}, X[:50])
    assert np.array_equal(every["all_q"], ik.all(X[:50]).q, equal_nan=True)


def test_all_answers_of_a_search_are_refused(cell: arm.Cell, samples):
    """Their number differs from target to target, so that a later row would not fit."""
    X = cell.fk("tool0")(samples.rows(0, 3))
    ik = cell.ik("tool0")
    searches = cell.ik("tool0", rotation="xy").all, partial(ik.all, method="numeric")
    for ask in searches:
        with pytest.raises(SweepError, match="another number of answers"):
            arm.sweep(ask, X)


def test_searches_do_not_depend_on_workers():
    cell = arm.example("ur5e_on_oval")
    ik = partial(cell.ik("tool0"), method="numeric")
    X = cell.fk("tool0")(cell.samples(300, within={"cart": (0, 6)}).rows(0, 300))
    expected = np.concatenate(
        [ik(X[start : start + 37]).q for start in range(0, 300, 37)]
    )
    for executor in ("threads", "processes"):
        found = arm.sweep(ik, X, chunk=37, executor=executor)
        assert np.array_equal(found["q"], expected)


def test_kernels_of_several_inputs(cell: arm.Cell):
    rows = np.random.default_rng(0).uniform(-1, 1, (100, 12))
    velocity = cell.velocity("tool0")
    found = arm.sweep(velocity, rows)
    (name,) = found
    assert np.array_equal(found[name], velocity(rows[:, :6], rows[:, 6:]))


def test_closed_loops(tmp_path: Path):
    cell = arm.example("delta")
    samples = cell.samples(500)
    fk = cell.fk("flange")
    found = arm.sweep(fk, samples, tmp_path / "out.zarr")
    expected = fk(samples.rows(0, 500))
    assert np.array_equal(found["pose"], expected, equal_nan=True)


@pytest.mark.parametrize("chunk", [None, 700])
def test_zarr_reads_the_group(cell: arm.Cell, samples, tmp_path: Path, chunk):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "deep" / "out.zarr"
    found = arm.sweep(questions(cell), samples, path, chunk=chunk)
    group = zarr.open_group(path, mode="r")
    assert sorted(group.array_keys()) == sorted(found)
    Q = samples.rows(0, COUNT)
    for name, ask in questions(cell).items():
        assert np.array_equal(group[name][:], ask(Q)), name
        assert np.array_equal(found[name], ask(Q)), name
        assert group[name].dtype == found[name].dtype
    assert group["clearance"].attrs["units"] == "m"
    about = group.attrs["armillary_sweep"]
    assert about["samples"]["seed"] == 1
    assert about["samples"]["joints"] == list(cell.joint_names)
    assert about["versions"]["armillary"]
    assert "collision check" in about["question"]["touching"]
    assert about["cells"][0].startswith("irb2400 ")


def arrays_of(path: Path) -> dict[str, dict]:
    """Return the metadata of the arrays of a group, from the files."""
    nodes = {
        file.parent.name: json.loads(file.read_text("utf-8"))
        for file in path.glob("*/zarr.json")
    }
    for node in nodes.values():
        node["dims"] = node["dimension_names"]
        node["about"] = node["attributes"]
    return nodes


def test_dimensions_joints_and_units_are_named(tmp_path: Path):
    cell = arm.example("oval_track_cell")
    names = cell.joint_names[1:]
    samples = cell.samples(6, joints=names)
    check = cell.collision()
    asked = {
        "q": arm.sweeps.rows,
        "pose": cell.fk("tool0", joints=names),
        "quat": cell.fk("tool0", joints=names, form="quaternion"),
        "several": cell.fk(["tool0", "tcp"], joints=names),
        "J": cell.jacobian("tool0", joints=names),
        "own": np.negative,
    }
    arm.sweep(asked, samples, tmp_path / "a", executor="threads")
    found = arrays_of(tmp_path / "a")
    q = found["q"]
    assert q["dims"] == ["row", "joint"]
    assert q["about"] == {
        "units": "m or rad",
        "joint": list(names),
        "joint_units": ["rad"] * 6 + ["m"],
    }
    assert found["J"]["dims"] == ["row", "twist", "joint"]
    assert found["J"]["about"]["joint"] == list(names)
    assert found["pose"]["dims"] == ["row", "pose_row", "pose_column"]
    assert found["several"]["dims"] == ["row", "frame", "pose_row", "pose_column"]
    assert found["quat"]["about"]["pose_part"][:4] == ["qw", "qx", "qy", "qz"]
    assert found["pose"]["about"]["units"] == "m; rotations have no unit"
    assert found["own"]["dims"] == ["row", "own_1"]
    assert found["own"]["about"] == {"units": "unknown"}

    whole = cell.joint_names
    asked = {"d": check.distances, "clearance": check.clearance, "g": check.gradients}
    arm.sweep(asked, np.zeros((3, len(whole))), tmp_path / "b")
    found = arrays_of(tmp_path / "b")
    assert found["d"]["about"]["pair"] == [f"{a} {b}" for a, b in check.pairs]
    assert found["d"]["about"]["units"] == found["clearance"]["about"]["units"] == "m"
    assert found["g"]["dims"] == ["row", "pair", "joint"]
    assert found["g"]["about"]["joint"] == list(whole)


def test_names_of_solvers_and_dynamics(cell: arm.Cell, samples, tmp_path: Path):
    """Joints of solvers are their own; a dimension is shared where it is the same."""
    X = cell.fk("tool0")(samples.rows(0, 5))
    ik, part = cell.ik("tool0"), cell.ik("tool0", joints=cell.joint_names[:4])
    arm.sweep({"one": ik, "part": part, "all": ik.all}, X, tmp_path / "a")
    found = arrays_of(tmp_path / "a")
    assert found["one_q"]["dims"] == ["row", "one_q_joint"]
    assert found["part_q"]["dims"] == ["row", "part_q_joint"]
    assert found["part_q"]["about"]["joint"] == list(part.joints)
    assert found["one_q"]["about"]["units"] == "rad"
    assert found["all_q"]["dims"] == ["row", "branch", "all_q_joint"]
    assert found["all_success"]["dims"] == ["row", "branch"]
    assert found["all_residual"]["dims"] == ["row", "branch", "residual_part"]
    flags = found["one_reason"]["about"]
    assert flags["flag_meanings"].split()[flags["flag_values"].index(3)] == (
        "OUT_OF_REACH"
    )
    # Joint positions that a sweep has written keep their names.
    pytest.importorskip("zarr")
    arm.sweep(arm.sweeps.rows, tmp_path / "a" / "part_q", tmp_path / "b")
    assert arrays_of(tmp_path / "b")["rows"]["about"]["joint"] == list(part.joints)


def test_arrays_fit_together_for_xarray(tmp_path: Path):
    """Each dimension has one size, and is no array of several dimensions itself."""
    cell = arm.example("irb2400")
    few = cell.joint_names[:2]
    asked = {"joint": cell.ik("tool0"), "b": cell.ik("tool0", joints=few)}
    asked |= {"list": arm.sweeps.rows}
    X = cell.fk("tool0")(np.zeros((2, 6)))
    arm.sweep(asked, X, tmp_path / "out")
    sizes: dict[str, int] = {}
    for name, node in arrays_of(tmp_path / "out").items():
        assert len({*node["dims"]}) == len(node["shape"])
        for dimension, size in zip(node["dims"], node["shape"], strict=True):
            assert sizes.setdefault(dimension, size) == size
            assert dimension != name


def test_the_cell_is_named(cell: arm.Cell, samples, tmp_path: Path):
    """Of samples, of checks and their methods, and of solvers."""
    X, Q = cell.fk("tool0")(samples.rows(0, 9)), samples.rows(0, 9)
    check, ik = cell.collision(), cell.ik("tool0")
    asked = {
        "fk": (cell.fk("tool0"), samples),
        "check": (partial(check.clearance), Q),
        "ik": (partial(ik, tolerance=(1e-6, 1e-6)), X),
        "all": (ik.all, X),
    }
    found = set()
    for name, (ask, rows) in asked.items():
        arm.sweep(ask, rows, tmp_path / name)
        node = json.loads((tmp_path / name / "zarr.json").read_text())
        found.update(node["attributes"]["armillary_sweep"]["cells"])
    (text,) = found
    assert text.startswith("irb2400 ") and len(text) == len("irb2400 ") + 64


def test_kernels_are_described(cell: arm.Cell, tmp_path: Path):
    samples = np.zeros((3, 6))
    asked = cell.fk("tool0"), cell.fk("link_6", relative_to="base")
    for k, ask in enumerate(asked):
        arm.sweep(ask, samples, tmp_path / str(k))
        node = json.loads((tmp_path / str(k) / "zarr.json").read_text("utf-8"))
        (text,) = node["attributes"]["armillary_sweep"]["question"].values()
        assert text == repr(ask)
    assert repr(asked[0]).startswith(
        "<kernel fk of irb2400/tool0 in irb2400 (6)->(4,4)"
    )
    assert "fk of irb2400/link_6 relative to irb2400/base in irb2400" in repr(asked[1])
    with pytest.raises(SweepError, match="another question"):
        arm.sweep(asked[1], samples, tmp_path / "0")


def test_integers_of_numpy(cell: arm.Cell, tmp_path: Path):
    samples = cell.samples(np.int64(9), seed=np.int32(1))
    arm.sweep(cell.fk("tool0"), samples, tmp_path / "out", chunk=np.int64(4))
    assert arm.sweep(cell.fk("tool0"), samples, tmp_path / "out").computed == 0


def test_solvers_are_described(cell: arm.Cell, tmp_path: Path):
    check = cell.collision()
    ask = partial(cell.ik("tool0", avoid=check), explain=False)
    X = cell.fk("tool0")(cell.samples(5).rows(0, 5))
    arm.sweep(ask, X, tmp_path / "out")
    node = json.loads((tmp_path / "out" / "zarr.json").read_text("utf-8"))
    about = node["attributes"]["armillary_sweep"]
    (text,) = about["question"].values()
    assert repr(ask.func) in text and text.endswith("explain=False)")
    assert "link_6 relative to world by joint_1, joint_2" in text
    assert repr(check) in text
    (one,) = about["cells"]
    assert one == f"irb2400 {digest(check.cell)}"


def test_descriptions_have_no_addresses(tmp_path: Path):
    ask = partial(sweep_functions.fails_at, 0.5)
    arm.sweep({"a": ask}, [[1.0]], tmp_path / "out", executor="threads")
    text = (tmp_path / "out" / "zarr.json").read_text("utf-8")
    assert "functools.partial(<function fails_at>, 0.5)" in text


def test_npy(cell: arm.Cell, samples, tmp_path: Path):
    path = tmp_path / "pose.npy"
    found = arm.sweep(cell.fk("tool0"), samples, path)
    assert np.array_equal(np.load(path), found["pose"])
    with pytest.raises(SweepError, match="exists"):
        arm.sweep(cell.fk("tool0"), samples, path)
    with pytest.raises(SweepError, match="one array"):
        arm.sweep(questions(cell), samples, tmp_path / "all.npy")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_resumes_what_is_missing(cell: arm.Cell, samples, tmp_path: Path):
    path = tmp_path / "out.zarr"
    asked = questions(cell)
    arm.sweep(asked, samples, path, chunk=500)
    whole = contents(path)
    chunks = sorted(path.glob("*/c.*"))
    assert len(chunks) == 5 * 6
    assert arm.sweep(asked, samples, path).computed == 0
    for gone in chunks[::11]:
        gone.unlink()
    chunks[1].write_bytes(b"cut")  # as by a crash of the machine
    (path / "pose" / ".part-left").write_bytes(b"half")
    lost = {each.name.split(".")[1] for each in [*chunks[::11], chunks[1]]}
    found = arm.sweep(asked, samples, path)
    assert found.computed == 500 * len(lost)
    assert contents(path) == whole


def test_results_do_not_depend_on_workers(cell: arm.Cell, samples, tmp_path: Path):
    asked = questions(cell)
    arm.sweep(asked, samples, tmp_path / "one", chunk=300)
    with ThreadPoolExecutor(5) as pool:
        arm.sweep(asked, samples, tmp_path / "five", chunk=300, executor=pool)
    arm.sweep(asked, samples, tmp_path / "other", chunk=300, executor="processes")
    assert contents(tmp_path / "one") == contents(tmp_path / "five")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_another_sweep_is_refused(cell: arm.Cell, samples, tmp_path: Path):
    path = tmp_path / "out.zarr"
    fk = cell.fk("tool0")
    arm.sweep(fk, samples, path)
    whole = contents(path)
    moved = cell.scaled(2.0)
    others = [
        (cell.fk("tool0", dtype=np.float32), samples, {}, "another question"),
        (cell.fk("link_1"), samples, {}, "another question"),
        (moved.fk("tool0"), samples, {}, "description is the same"),
        (fk, cell.samples(COUNT, seed=2), {}, "other samples"),
        # Only what differs is shown.
        (fk, cell.samples(COUNT + 1, seed=1), {}, f'samples: {{"total": {COUNT}}}, wh'),
        (fk, samples.rows(0, COUNT), {}, "other samples"),
        (fk, samples, {"chunk": 17}, "leave out chunk="),
        (fk, samples, {"resume": False}, "resume is False"),
    ]
    for ask, rows, more, message in others:
        with pytest.raises(SweepError, match=message):
            arm.sweep(ask, rows, path, **more)
    assert contents(path) == whole


def test_foreign_folders_are_refused(cell: arm.Cell, samples, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SweepError, match="has not been written by a sweep"):
        arm.sweep(cell.fk("tool0"), samples, tmp_path)
    (tmp_path / "zarr.json").write_text(json.dumps({"attributes": {}}))
    with pytest.raises(SweepError, match="has not been written by a sweep"):
        arm.sweep(cell.fk("tool0"), samples, tmp_path)


def test_digests_follow_the_cell():
    cells = [arm.example("irb2400") for _ in range(2)]
    asks = [cell.collision(margin=0.01) for cell in cells]
    assert digest(asks[0]) == digest(asks[1])
    assert digest(asks[0]) != digest(cells[0].collision(margin=0.02))


@pytest.mark.parametrize(
    ("ask", "rows", "error", "message"),
    [
        ("fk", np.zeros((5, 4)), ShapeError, r"shape \(\.\.\., 6\)"),
        ("fk", np.zeros((0, 6)), SweepError, "0 rows"),
        ("ik", None, ShapeError, "takes poses"),
        ("all", None, ShapeError, "takes poses"),
        ("clearance", np.zeros((5, 4)), ShapeError, r"shape \(\.\.\., 6\)"),
        (3, None, SweepError, "int is not a question"),
        ({}, None, SweepError, "mapping of questions is empty"),
        ({"a/b": np.negative}, None, SweepError, "cannot name a result"),
        (lambda rows: rows[:0], None, SweepError, "first dimension must be 1"),
        (lambda rows: rows.astype(str), None, SweepError, "real numbers"),
        (lambda rows: rows.astype(np.longdouble), None, SweepError, "at most float64"),
        (lambda rows: rows[:, :0], None, SweepError, "and none 0"),
        (lambda rows: np.ma.masked_less(rows, 0), None, SweepError, "masked"),
        (lambda rows: {}, None, SweepError, "returned no arrays"),
        (lambda rows: {"../a": rows}, None, SweepError, "cannot name a result"),
        (lambda rows: {1: rows}, None, SweepError, "cannot name a result"),
        (lambda rows: sys.exit(3), None, SweepError, "SystemExit: 3 at row 0"),
        (np.negative, np.zeros((5, 0)), SweepError, r"shape \(5, 0\)"),
    ],
)
def test_bad_input(cell: arm.Cell, samples, ask, rows, error, message):
    ours = {
        "fk": cell.fk("tool0"),
        "ik": cell.ik("tool0"),
        "all": cell.ik("tool0").all,
        "clearance": cell.collision().clearance,
    }
    ask = ours.get(str(ask), ask)
    with pytest.raises(error, match=message):
        arm.sweep(ask, samples if rows is None else rows, executor="threads")


def test_bad_chunks_and_executors(cell: arm.Cell, samples):
    fk = cell.fk("tool0")
    with pytest.raises(SweepError, match="at least one row"):
        arm.sweep(fk, samples, chunk=0)
    with pytest.raises(SweepError, match=r"chunk is 2\.5"):
        arm.sweep(fk, samples, chunk=2.5)
    with pytest.raises(SweepError, match="this machine has"):
        arm.sweep(fk, cell.samples(10**13))
    with pytest.raises(SweepError, match="smaller chunk="):
        arm.sweep(fk, cell.samples(10**13), "out.zarr", chunk=10**12)
    for count in (10**12, 10**18):
        with pytest.raises(SweepError, match="larger chunk="):
            arm.sweep(fk, cell.samples(count), "out.zarr", chunk=1000)
    with pytest.raises(SweepError, match="2\\^63"):
        arm.sweep(fk, arm.grid([np.arange(2000.0)] * 6), "out.zarr")
    with ThreadPoolExecutor(1) as pool:
        pass
    with pytest.raises(SweepError, match=r"takes no chunk: .*shutdown"):
        arm.sweep(fk, samples, executor=pool)
    with pytest.raises(UnknownName, match="threads"):
        arm.sweep(fk, samples, executor="thread")
    with pytest.raises(SweepError, match="get_executor"):
        arm.sweep(fk, samples, executor=3)


def test_the_number_of_chunks_is_bounded(cell: arm.Cell, tmp_path: Path, monkeypatch):
    sweep = import_module("armillary.sweeps.sweep")
    monkeypatch.setattr(sweep, "MOST_CHUNKS", 3)
    fk = cell.fk("tool0")
    assert arm.sweep(fk, cell.samples(6), tmp_path / "a", chunk=2).computed == 6
    with pytest.raises(SweepError, match="are 4 chunks; at most 3 are possible"):
        arm.sweep(fk, cell.samples(7), tmp_path / "b", chunk=2)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("executor", ["threads", None])
def test_nan_rows_are_found(cell: arm.Cell, samples, executor):
    rows = samples.rows(0, COUNT).copy()
    rows[1234, 2] = np.nan
    with pytest.raises(SweepError, match=r"Chunk 2 .*row 1234: .*NaN") as caught:
        arm.sweep(cell.fk("tool0"), rows, chunk=500, executor=executor)
    kept = caught.value.kept["pose"]
    assert np.isnan(kept[1000:1500]).all()
    rows[1234] = 0.0
    expected = cell.fk("tool0")(rows)
    assert np.array_equal(np.delete(kept, slice(1000, 1500), 0)[:1000], expected[:1000])


def test_rows_changed_in_place():
    """By one function they stay for others, and for the caller."""

    def doubled(rows):
        rows *= 2.0
        return rows

    given = np.arange(12.0).reshape(6, 2)
    asked = {"a": doubled, "b": arm.sweeps.rows, "c": doubled}
    found = arm.sweep(asked, given, executor="threads", chunk=2)
    assert np.array_equal(given, np.arange(12.0).reshape(6, 2))
    assert np.array_equal(found["b"], given)
    assert np.array_equal(found["a"], 2.0 * given)
    assert np.array_equal(found["c"], 2.0 * given)


def test_chunks_have_at_most_the_rows_of_the_sweep(cell: arm.Cell, tmp_path: Path):
    fk, samples = cell.fk("tool0"), cell.samples(10)
    arm.sweep(fk, samples, tmp_path / "out", chunk=2**62)
    (file,) = tmp_path.glob("out/pose/c.*")
    assert file.stat().st_size == 10 * 128 + TAIL
    assert arm.sweep(fk, samples, tmp_path / "out", chunk=10).computed == 0


def test_only_files_of_chunks_count(cell: arm.Cell, samples, tmp_path: Path):
    path, fk = tmp_path / "out", cell.fk("tool0")
    found = arm.sweep(fk, samples, path, chunk=1000)
    expected = found["pose"]
    moved = path / "pose" / "c.1.0.0"
    moved.rename(moved.with_name("c.1.0.0.old"))
    (path / "pose" / "c.txt").touch()
    with pytest.raises(SweepError, match=r"c\.1\.0\.0' has gone"):
        found["pose"]
    found = arm.sweep(fk, samples, path)
    assert found.computed == 1000
    assert np.array_equal(found["pose"], expected)


@pytest.mark.parametrize(
    "text", ["[]", "null", "3", '{"chunk": "1"}', '{"chunk": 0}', "[" * 100_000]
)
def test_damaged_groups_are_refused(cell: arm.Cell, samples, tmp_path: Path, text):
    node = '{"attributes": {"armillary_sweep": ' + text + "}}"
    (tmp_path / "zarr.json").write_text(node, "utf-8")
    with pytest.raises(SweepError, match="or it is damaged"):
        arm.sweep(cell.fk("tool0"), samples, tmp_path)


def test_results_that_do_not_fit_are_refused(
    cell: arm.Cell, samples, tmp_path: Path, monkeypatch
):
    fk, path = cell.fk("tool0"), tmp_path / "out"
    found = arm.sweep(fk, samples, path)
    memory = import_module("armillary.sweeps.fields")
    monkeypatch.setattr(memory, "memory_size", lambda: 1000.0)
    with pytest.raises(SweepError, match=r"read parts of .*pose'.* with zarr"):
        found["pose"]
    monkeypatch.undo()
    sweep = import_module("armillary.sweeps.sweep")
    free = SimpleNamespace(free=1000)
    monkeypatch.setattr(sweep, "disk_usage", lambda path: free)
    with pytest.raises(SweepError, match="disk has 1e-06 GB left"):
        arm.sweep(fk, samples, tmp_path / "out.npy")
    assert os.listdir(tmp_path) == ["out"]


def test_full_disk(cell: arm.Cell, samples, tmp_path: Path, monkeypatch):
    """What was whole before stays; the next call goes on."""
    group = import_module("armillary.sweeps.zarr_group")
    path = tmp_path / "out.zarr"
    fk = cell.fk("tool0")
    add, calls = group.ChunkWriter.add, []

    def full(self, results):
        calls.append(1)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        add(self, results)

    with monkeypatch.context() as patch:
        patch.setattr(group.ChunkWriter, "add", full)
        with pytest.raises(SweepError, match=r"ended: No space left.*continues"):
            arm.sweep(fk, samples, path, chunk=300)
    assert not list(path.glob("*/.part-*"))
    found = arm.sweep(fk, samples, path)
    assert 0 < found.computed < COUNT
    assert np.array_equal(found["pose"], fk(samples.rows(0, COUNT)))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_digests_are_those_of_other_processes(seed: int):
    """Also of sets, whose order differs from process to process."""
    program = "import sweep_functions as f, armillary.kinematics.identity as i\n"
    program += "print(i.digest([f.uses_globals, f.fails_at, {'a', 'b', 'c'}]))"
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        cwd=Path(sweep_functions.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    asked = [sweep_functions.uses_globals, sweep_functions.fails_at, {"c", "b", "a"}]
    assert said == f"{digest(asked)}\n"


class Asked:
    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self, rows):
        return self.factor * rows

    def twice(self, rows):
        return 2 * rows


def wrapped(rows):
    return rows


def test_functions_are_distinguished(monkeypatch):
    """By name, source text, arguments and the objects whose methods they are."""
    asks = [
        *(sweep_functions.total, sweep_functions.uses_globals),
        *(partial(sweep_functions.fails_at, value) for value in (1.0, 2.0)),
        *(Asked().twice, Asked(2.0).twice, Asked().__call__, Asked(3.0)),
    ]
    assert len({digest(each) for each in asks}) == len(asks)
    assert None not in map(digest, asks)
    before = digest(sweep_functions.uses_globals)
    monkeypatch.setattr(sweep_functions, "FACTOR", 3.0)
    assert digest(sweep_functions.uses_globals) == before
    source = inspect.getsource(sweep_functions.uses_globals).replace("FACTOR", "2.0")
    monkeypatch.setattr(inspect, "getsource", lambda function: source)
    assert digest(sweep_functions.uses_globals) != before


def nested(rows):
    def ask(rows):
        return 2.0 * rows

    return ask


@pytest.mark.parametrize(
    "ask",
    [
        lambda rows: 2.0 * rows,
        nested(None),
        partial(nested(None)),
        wraps(wrapped)(lambda rows: 3.0 * rows),
    ],
)
def test_functions_without_a_name_cannot_be_continued(tmp_path: Path, ask):
    samples = np.ones((3, 2))
    out, options = tmp_path / "out", {"executor": "threads"}
    found = arm.sweep({"a": ask}, samples, out, **options)
    assert found.computed == 3
    assert digest(ask) is None
    with pytest.raises(SweepError, match="is a lambda, is defined in a function"):
        arm.sweep({"a": ask}, samples, out, **options)


def test_called_objects_are_different_questions(tmp_path: Path, monkeypatch):
    samples = np.zeros((3, 2))
    for _ in range(2):
        arm.sweep({"a": Asked()}, samples, tmp_path / "out", executor="threads")
    with pytest.raises(SweepError, match="not its code or data"):
        arm.sweep({"a": Asked(2.0)}, samples, tmp_path / "out", executor="threads")
    monkeypatch.setattr(Asked, "__call__", Asked.twice)
    with pytest.raises(SweepError, match="not its code or data"):
        arm.sweep({"a": Asked()}, samples, tmp_path / "out", executor="threads")
