"""Samples are the same wherever and in whichever chunks they are made."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, SweepError, UnknownName
from armillary.kinematics import identity
from armillary.sweeps.samples import as_samples


@pytest.mark.parametrize("joints", [None, ["joint_1"], ["joint_3", "joint_1"]])
def test_parts_are_the_whole(cell: arm.Cell, joints: list[str] | None):
    samples = cell.samples(1000, seed=3, joints=joints)
    whole = samples.rows(0, 1000)
    for edges in ([0, 1, 2, 3, 1000], [0, 333, 334, 777, 1000]):
        parts = [samples.rows(a, b) for a, b in pairwise(edges)]
        assert np.array_equal(np.concatenate(parts), whole)
    again = pickle.loads(pickle.dumps(samples))
    assert np.array_equal(again.rows(500, 600), whole[500:600])


def test_samples_are_arrays_where_one_is_asked_for(cell: arm.Cell):
    samples = cell.samples(20, seed=3)
    whole = samples.rows(0, 20)
    assert np.array_equal(np.asarray(samples), whole)
    assert np.array(samples, dtype=np.float32).dtype == np.float32
    assert np.array_equal(cell.fk("tool0")(samples), cell.fk("tool0")(whole))
    with pytest.raises(ValueError, match="copy"):
        np.array(samples, copy=False)


def test_a_cell_is_recognised_once(monkeypatch: pytest.MonkeyPatch):
    hashed: list[object] = []

    class Counted(identity._Pickler):
        def dump(self, obj: object, /) -> None:
            hashed.append(obj)
            super().dump(obj)

    monkeypatch.setattr(identity, "_Pickler", Counted)
    cell = arm.example("irb2400")
    first, second = cell.samples(10), cell.samples(20, seed=1)
    q = second.rows(0, 2)
    motion = cell.time_path(q, acceleration=1.0, velocity=1.0).motion()
    assert first.cell_digest == second.cell_digest == motion.bound(cell).digest
    assert [each is cell.workcell for each in hashed] == [True]
    assert first.cell_digest == identity.digest(cell.workcell)


def test_counts_extend_each_other(cell: arm.Cell):
    few, many = cell.samples(10), cell.samples(1000)
    assert np.array_equal(few.rows(0, 10), many.rows(0, 10))


def test_seeds_differ(cell: arm.Cell):
    a, b = (cell.samples(100, seed=seed).rows(0, 100) for seed in (0, 1))
    assert not np.isin(a, b).any()


def test_uniform_within_limits(cell: arm.Cell):
    count = 100_000
    rows = cell.samples(count).rows(0, count)
    lower, upper = cell.limits
    assert (rows >= lower).all() and (rows <= upper).all()
    share = (rows - lower) / (upper - lower)
    # Kolmogorov-Smirnov, of each joint, at a level of about 1e-6.
    share.sort(axis=0)
    ideal = (np.arange(count) + 0.5) / count
    assert np.abs(share - ideal[:, None]).max() < 2.7 / np.sqrt(count)
    assert np.abs(np.corrcoef(rows.T) - np.eye(6)).max() < 5.0 / np.sqrt(count)


def test_known_numbers(cell: arm.Cell):
    """The rows of a seed are part of files; they never change."""
    lower, upper = cell.limits
    expected = np.random.Generator(np.random.PCG64DXSM(7)).random((5, 6))
    found = (cell.samples(5, seed=7).rows(0, 5) - lower) / (upper - lower)
    assert np.abs(found - expected).max() < 1e-12


def test_ranges_replace_limits():
    cell = arm.example("ur5e_on_oval")
    with pytest.raises(ModelError, match="within="):
        cell.samples(10)
    rows = cell.samples(100, within={"cart": (2.0, 3.0)}).rows(0, 100)
    at = cell.joint("cart")
    assert rows[:, at].min() >= 2.0 and rows[:, at].max() <= 3.0


def test_samples_are_refused(cell: arm.Cell):
    with pytest.raises(SweepError, match="at least one sample"):
        cell.samples(0)
    with pytest.raises(SweepError, match="at least one joint"):
        cell.samples(1, joints=[])
    with pytest.raises(SweepError, match="seed"):
        cell.samples(1, seed=-1)
    with pytest.raises(SweepError, match=r"count is 10\.5; it must be an integer"):
        cell.samples(10.5)
    with pytest.raises(ModelError, match="two numbers"):
        cell.samples(1, within={"joint_1": (0.0, 1.0, 2.0)})
    with pytest.raises(UnknownName):
        cell.samples(1, joints=["joint_9"])
    with pytest.raises(ModelError, match="joints= has not"):
        cell.samples(1, joints=["joint_1"], within={"joint_2": (0, 1)})


def test_grid_is_every_combination():
    grid = arm.grid([[1, 2], [3, 4, 5]])
    expected = [[a, b] for a in (1, 2) for b in (3, 4, 5)]
    assert np.array_equal(grid.rows(0, grid.count), expected)
    assert np.array_equal(grid.rows(2, 5), expected[2:5])


def test_grid_of_poses():
    turns = [np.eye(3), np.diag([1.0, -1.0, -1.0])]
    grid = arm.grid([[1], [2, 3], [4]], rotations=turns)
    X = grid.rows(0, grid.count)
    assert X.shape == (4, 4, 4)
    assert np.array_equal(X[:, :3, 3], [[1, 2, 4], [1, 2, 4], [1, 3, 4], [1, 3, 4]])
    assert np.array_equal(X[:2, :3, :3], turns)
    assert (X[:, 3] == [0, 0, 0, 1]).all()


@pytest.mark.parametrize(
    ("axes", "rotations", "message"),
    [
        ([], None, "at least one axis"),
        ([[1.0], []], None, "Axis 1"),
        ([[np.nan]], None, "finite"),
        ([[1.0]], np.eye(3)[None], "three axes"),
        ([[1.0]] * 3, np.eye(3), r"\(r, 3, 3\)"),
    ],
)
def test_grids_are_refused(axes, rotations, message):
    with pytest.raises(ShapeError, match=message):
        arm.grid(axes, rotations=rotations)


def test_files_are_read(tmp_path: Path):
    rows = np.random.default_rng(0).random((100, 3))
    np.save(tmp_path / "rows.npy", rows)
    found = as_samples(tmp_path / "rows.npy")
    assert (found.count, found.shape) == (100, (3,))
    sent = pickle.loads(pickle.dumps(found.part(7, 50)))
    assert np.array_equal(sent.rows(7, 50), rows[7:50])
    assert found.digest == as_samples(rows).digest
    sent = pickle.loads(pickle.dumps(as_samples(rows).part(7, 50)))
    assert sent.count == 43
    assert np.array_equal(sent.rows(7, 50), rows[7:50])


def test_zarr_arrays_are_read(tmp_path: Path):
    zarr = pytest.importorskip("zarr")
    rows = np.random.default_rng(0).random((100, 3))
    path = tmp_path / "rows.zarr"
    zarr.create_array(path, data=rows, chunks=(7, 3))
    assert np.array_equal(as_samples(path).rows(5, 22), rows[5:22])
    assert np.array_equal(as_samples(path).read(5, 30).rows(9, 22), rows[9:22])
    with pytest.raises(SweepError, match="not a Zarr array"):
        as_samples(tmp_path)


@pytest.mark.parametrize("given", [[], np.zeros((0, 6)), "absent.npy", ["a"], 3.0])
def test_no_samples(given):
    with pytest.raises(SweepError):
        as_samples(given)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2,3\n4,5,6\n", "not an NPY file"),
        (np.array(3.0), r"shape \(\)"),
        (np.array(["a"]), "type <U1"),
    ],
)
def test_files_of_other_content(tmp_path: Path, content, message: str):
    path = tmp_path / "rows.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(SweepError, match=message):
        as_samples(path)


def test_rows_of_integers_of_numpy(cell: arm.Cell):
    samples = cell.samples(50)
    rows = samples.rows(np.int64(3), np.int64(5))
    assert np.array_equal(rows, samples.rows(0, 50)[3:5])
