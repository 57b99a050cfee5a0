"""Reductions are what rows come to, for any chunks, workers and interruptions."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import SweepError, UnknownName

COUNT = 5000
LOWER, UPPER = (-1.0, -1.5, -0.5), (1.0, 1.5, 2.0)


def graded(rows):
    """Results with many equal values, NaN, and groups."""
    value = np.round(np.sin(10 * rows[:, 0]), 1)
    value[value > 0.9] = np.nan
    return {
        "value": value,
        "good": rows[:, 1] > 0.0,
        "group": (np.abs(rows[:, 2]) * 3).astype(np.int64) % 5,
    }


def asked(cell: arm.Cell):
    return {"pose": cell.fk("tool0"), "touch": cell.collision(), "g": graded}


def reductions():
    sweeps = arm.sweeps
    box = {"lower": LOWER, "upper": UPPER, "size": 0.25}
    return {
        "reach": sweeps.Voxels(**box),
        "free": sweeps.Voxels(**box, where="g_good"),
        "hist": sweeps.Histogram(of="pose", edges=np.linspace(-1, 1, 9)),
        "good": sweeps.Count(of="g_good"),
        "by": sweeps.Count(of="g_good", by="g_group", groups=6),
        "rows": sweeps.Count(of="touch", by=700),
        "most": sweeps.Best(of="g_value", by="g_group", groups=6),
        "least": sweeps.Best(of="g_value", least=True, by=900),
        "one": sweeps.Best(of="g_value"),
    }


def expected(cell: arm.Cell, samples) -> dict[str, np.ndarray]:
    """The same, written out."""
    Q = samples.rows(0, COUNT)
    X, touch, g = cell.fk("tool0")(Q), cell.collision()(Q), graded(Q)
    edges = [np.arange(12 + 1) * 0.25 + LOWER[k] for k in range(3)]
    edges = [e[e <= UPPER[k] + 1e-9] for k, e in enumerate(edges)]
    found = {}
    for name, rows in (("reach", slice(None)), ("free", g["good"])):
        found[f"{name}_count"] = np.histogramdd(X[rows, :3, 3], edges)[0]
    bins = np.linspace(-1, 1, 9)
    found["hist_count"] = [
        [np.histogram(X[:, i, j], bins)[0] for j in range(4)] for i in range(4)
    ]
    found["good_count"] = [g["good"].sum()]
    found["by_count"] = [(g["good"] & (g["group"] == k)).sum() for k in range(6)]
    found["rows_count"] = [touch[a : a + 700].sum() for a in range(0, COUNT, 700)]
    groups = [np.flatnonzero(g["group"] == k) for k in range(6)]
    found |= best("most", g["value"], groups, np.nanargmax)
    groups = [np.arange(a, min(a + 900, COUNT)) for a in range(0, COUNT, 900)]
    found |= best("least", g["value"], groups, np.nanargmin)
    found |= best("one", g["value"], [np.arange(COUNT)], np.nanargmax)
    return found


def best(name, values, groups, first):
    rows = [int(g[first(values[g])]) if len(g) else -1 for g in groups]
    value = [values[row] if row >= 0 else np.nan for row in rows]
    return {f"{name}_value": value, f"{name}_row": rows}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("executor", "chunk"), [("threads", None), ("threads", 333), ("processes", 333)]
)
def test_they_are_what_rows_come_to(cell: arm.Cell, executor, chunk):
    samples = cell.samples(COUNT)
    found = arm.sweep(
        asked(cell), samples, reduce=reductions(), chunk=chunk, executor=executor
    )
    wanted = expected(cell, samples)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert np.array_equal(found[name], value, equal_nan=True), name


def test_nan_is_neither_true_nor_anywhere():
    """A row counts where its value is a number but 0, and its position is known."""
    points = np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.3, 0.1, 0.1]])

    def ask(rows):
        value = np.array([np.nan, 0.0, 2.0])[rows[:, 0].astype(int)]
        places = points[rows[:, 0].astype(int)]
        unknown = np.where(rows[:, :1] == 0.0, np.nan, places)
        down = -rows[:, 0]
        return {"value": value, "place": places, "unknown": unknown, "down": down}

    box = {"lower": (0, 0, 0), "upper": (0.4, 0.2, 0.2), "size": 0.2}
    reduce = {
        "n": arm.sweeps.Count(of="value"),
        "where": arm.sweeps.Voxels(**box, of="place", where="value"),
        "known": arm.sweeps.Voxels(**box, of="unknown"),
        "bins": arm.sweeps.Histogram(of="value", edges=[0.0, 1.0, 3.0]),
        "groups": arm.sweeps.Best(of="value", by=1),
        "first": arm.sweeps.Best(of="down"),
    }
    rows = [[0.0], [1.0], [2.0]]
    found = arm.sweep(ask, rows, reduce=reduce, executor="threads", chunk=2)
    assert found["n_count"] == [1]
    assert np.array_equal(found["where_count"].ravel(), [0, 1])
    assert np.array_equal(found["known_count"].ravel(), [1, 1])
    assert np.array_equal(found["bins_count"], [1, 1])
    assert np.array_equal(found["groups_value"], [np.nan, 0.0, 2.0], equal_nan=True)
    assert np.array_equal(found["groups_row"], [-1, 1, 2])
    assert (found["first_row"], found["first_value"]) == (0, 0.0)


def test_voxels_of_samples():
    turns = [np.eye(3), np.diag([1.0, -1.0, -1.0])]
    grid = arm.grid([[0.1, 0.3], [0.1], [0.1]], rotations=turns)
    voxels = arm.sweeps.Voxels(
        lower=(0, 0, 0), upper=(0.4, 0.2, 0.2), size=0.2, of="samples"
    )
    found = arm.sweep(arm.sweeps.rows, grid, reduce=voxels)
    assert np.array_equal(found["count"], [[[2]], [[2]]])


def test_resumes_from_a_file(cell: arm.Cell, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(import_module("armillary.sweeps.sweep"), "INTERVAL", 0.0)
    samples, path = cell.samples(COUNT), tmp_path / "out.npz"
    whole = arm.sweep(asked(cell), samples, reduce=reductions(), executor="threads")
    merged = import_module("armillary.sweeps.sweep").Merged
    save, calls = merged.save, []

    def full(self):
        calls.append(1)
        if len(calls) > 5:  # the first one begins the file
            raise OSError(28, "No space left on device")
        save(self)

    more = {"reduce": reductions(), "executor": "threads", "chunk": 250}
    with monkeypatch.context() as patch:
        patch.setattr(merged, "save", full)
        with pytest.raises(SweepError, match=r"ended: No space left.*continues"):
            arm.sweep(asked(cell), samples, path, **more)
    found = arm.sweep(asked(cell), samples, path, **more)
    assert found.computed == COUNT - 4 * 250
    for name in whole:
        assert np.array_equal(found[name], whole[name], equal_nan=True), name
    assert arm.sweep(asked(cell), samples, path, **more).computed == 0
    with pytest.raises(SweepError, match="other samples"):
        arm.sweep(asked(cell), cell.samples(COUNT, seed=1), path, **more)
    with pytest.raises(SweepError, match="another question"):
        other = arm.sweeps.Count(of="touch")
        arm.sweep(asked(cell), samples, path, reduce=other, executor="threads")
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
    assert about["cells"][0].startswith("irb2400 ")
    assert about["reductions"] == {
        name: {
            "kind": type(each).__name__,
            **json.loads(json.dumps(asdict(each), default=list)),
        }
        for name, each in reductions().items()
    }


def test_damaged_files_are_refused(cell: arm.Cell, tmp_path: Path):
    path, check, samples = tmp_path / "out.npz", cell.collision(), cell.samples(99)
    count = arm.sweeps.Count(of="touching", by=9)

    def sweep():
        return arm.sweep(check, samples, path, reduce=count, chunk=10)

    expected = sweep()["count"]
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    inside = bytearray(whole)
    inside[whole.index(expected.tobytes()) + 8] ^= 1
    contents = [b"", whole[:-50], bytes(inside)]
    changes = ({"count": expected[:-1]}, {"count": expected > 0}, {"chunks": expected})
    for changed in (*changes, {"about": np.array("[]")}, {"about": np.zeros(3)}):
        np.savez(path, **(arrays | changed))
        contents.append(path.read_bytes())
    np.savez(path, about=arrays["about"])
    contents.append(path.read_bytes())
    with path.open("wb") as file:
        np.save(file, expected)
    for content in [*contents, path.read_bytes()]:
        path.write_bytes(content)
        with pytest.raises(SweepError, match="or it is damaged"):
            sweep()
    path.write_bytes(whole)
    assert sweep().computed == 0


def test_integers_of_numpy_and_truths(cell: arm.Cell):
    """Are as good as those of Python, and are counted by histograms."""
    check, samples = cell.collision(), cell.samples(100)
    reduce = {
        "n": arm.sweeps.Count(of="touching", by=np.int64(10)),
        "h": arm.sweeps.Histogram(of="touching", edges=[0, 1, 2]),
    }
    found = arm.sweep(check, samples, reduce=reduce)
    touching = check(samples.rows(0, 100))
    assert np.array_equal(found["n_count"], touching.reshape(10, 10).sum(axis=1))
    assert np.array_equal(found["h_count"], [np.sum(~touching), np.sum(touching)])


def test_every_edge_tells_reductions_apart(cell: arm.Cell, tmp_path: Path):
    """Also one that the text of a long array does not show."""
    check, samples, path = cell.collision(), cell.samples(9), tmp_path / "out.npz"
    one = np.linspace(0.0, 1.0, 2000)
    other = one.copy()
    other[1000] += 1e-5
    first, second = (
        arm.sweeps.Histogram(of="clearance", edges=each) for each in (one, other)
    )
    for _ in range(2):
        arm.sweep(check.clearance, samples, path, reduce=first)
    with pytest.raises(SweepError, match="another question"):
        arm.sweep(check.clearance, samples, path, reduce=second)


def test_folders_are_made(cell: arm.Cell, tmp_path: Path):
    count = arm.sweeps.Count(of="touching")
    check, samples = cell.collision(), cell.samples(9)
    arm.sweep(check, samples, tmp_path / "a" / "b.npz", reduce=count)
    arm.sweep(check, samples, tmp_path / "c" / "d.npy")
    assert (tmp_path / "a" / "b.npz").exists() and (tmp_path / "c" / "d.npy").exists()


def sweeps_refused():
    sweeps = arm.sweeps
    yield sweeps.Count(of="value"), UnknownName, "g_value"
    yield sweeps.Count(of="pose"), SweepError, "number in each row"
    yield sweeps.Count(of="touch", by=0), SweepError, "by=0"
    yield sweeps.Count(of="touch", by="g_group"), SweepError, "groups="
    yield sweeps.Count(of="touch", by="g_value", groups=3), SweepError, "whole numbers"
    yield sweeps.Count(of="touch", by="g_group", groups=2), SweepError, "from 0 to 1"
    yield sweeps.Histogram(of="g_value", edges=[1, 0]), SweepError, "ascend"
    box = {"lower": LOWER, "upper": UPPER}
    yield sweeps.Voxels(**box, size=0.0), SweepError, "size > 0"
    yield sweeps.Voxels(**box, size=1e-6), SweepError, "voxels of 8 bytes .* use larger"
    yield sweeps.Voxels(**box, size=1e-320), SweepError, "larger voxels"
    inverted = {"lower": UPPER, "upper": LOWER, "size": 1.0}
    yield sweeps.Voxels(**inverted), SweepError, "lower < upper"
    unknown = {"lower": (np.nan, 0, 0), "upper": UPPER, "size": 1.0}
    yield sweeps.Voxels(**unknown), SweepError, "NaN"
    yield sweeps.Voxels(**box, size=1.0, of="g_value"), SweepError, "positions or poses"
    yield sweeps.Voxels(**box, size=1.0, where="pose"), SweepError, "number in each row"
    yield 3, SweepError, "Voxels, Count"
    yield sweeps.Count(of="touch", by=2.5), SweepError, "must be an integer"
    many = sweeps.Count(of="touch", by="g_group", groups=10**15)
    yield many, SweepError, "groups of 16 bytes .* use fewer"


@pytest.mark.parametrize(("reduce", "error", "message"), list(sweeps_refused()))
def test_reductions_are_refused(cell: arm.Cell, reduce, error, message):
    samples = cell.samples(COUNT)
    with pytest.raises(error, match=message):
        arm.sweep(asked(cell), samples, reduce={"a": reduce}, executor="threads")


def test_names_of_reductions_are_texts(cell: arm.Cell):
    reduce = {3: arm.sweeps.Count(of="touching")}
    with pytest.raises(SweepError, match="reduce= has the name 3; names are texts"):
        arm.sweep(cell.collision(), cell.samples(9), reduce=reduce)


def test_several_reductions_have_names(cell: arm.Cell):
    reduce = [arm.sweeps.Count(of="touching")]
    with pytest.raises(SweepError, match=r"reduce= is a list; .* a mapping of names"):
        arm.sweep(cell.collision(), cell.samples(9), reduce=reduce)


def test_paths_fit(cell: arm.Cell, tmp_path: Path):
    count = arm.sweeps.Count(of="touching")
    with pytest.raises(SweepError, match="npz"):
        arm.sweep(cell.collision(), cell.samples(9), tmp_path / "a", reduce=count)
    with pytest.raises(SweepError, match="npz"):
        arm.sweep(cell.collision(), cell.samples(9), tmp_path / "a.npz")
    with pytest.raises(SweepError, match=r"a\.csv' is not the folder of a Zarr group"):
        arm.sweep(cell.collision(), cell.samples(9), tmp_path / "a.csv")
