"""Samples within limits that couple joints: all of them, uniform, made anywhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError

UNIT = arm.Limits(lower=-1.0, upper=1.0)


def cell_of(*limits: arm.CoupledLimit, count: int = 3) -> arm.Cell:
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    links = [arm.Link(name="base")]
    for k in range(count):
        links.append(
            arm.Link(name=f"j{k}", parent=links[-1].name, joint=slide, limits=UNIT)
        )
    made = arm.Manipulator(name="arm", links=links, coupled_limits=limits)
    return arm.Cell(manipulators=[made])


def test_rows_hold_and_do_not_depend_on_where_they_are_made():
    cell = cell_of(arm.CoupledLimit(joints={"j0": 1, "j1": 1, "j2": 0.5}, upper=-0.5))
    samples = cell.samples(5000, seed=3)
    rows = samples.rows(0, 5000)
    assert cell.within_limits(rows).all()
    assert np.array_equal(samples.rows(1234, 1300), rows[1234:1300])
    same = pickle.loads(pickle.dumps(samples))
    assert np.array_equal(same.rows(4999, 5000), rows[-1:])
    assert same.digest == samples.digest
    assert samples.digest != cell_of().samples(5000, seed=3).digest
    assert samples.named_joints.names == ("j0", "j1", "j2")


def test_rows_are_uniform():
    # In the triangle j0 + j1 <= 0 of the square, the mean is at -1/3, -1/3.
    cell = cell_of(arm.CoupledLimit(joints={"j0": 1, "j1": 1}, upper=0.0), count=2)
    rows = cell.samples(40_000, seed=1).rows(0, 40_000)
    assert np.allclose(rows.mean(axis=0), -1.0 / 3.0, atol=0.01)
    # Of four triangles alike each has a fourth.
    low = (rows < 0.0).all(axis=1)
    assert abs(low.mean() - 0.5) < 0.01
    lower = rows.sum(axis=1) < -1.0
    assert abs((low & lower).mean() - 0.25) < 0.01


def test_a_thin_slab_is_filled():
    # One in ten thousand of the box: most rows end walks.
    thin = arm.CoupledLimit(joints={"j0": 1, "j1": -1}, lower=0.3, upper=0.3 + 1e-4)
    cell = cell_of(thin)
    rows = cell.samples(300, seed=2).rows(0, 300)
    assert cell.within_limits(rows).all()
    assert (np.ptp(rows, axis=0) > [1.4, 1.4, 1.8]).all()
    assert abs(rows[:, 2].mean()) < 0.15
    part = (rows[:, 0] - rows[:, 1] - 0.3) / 1e-4
    assert 0.4 < part.mean() < 0.6


def test_other_joints_are_at_home_and_ranges_may_leave_no_room():
    cell = cell_of(arm.CoupledLimit(joints={"j0": 1, "j1": 1}, upper=-0.5))
    home = cell.home.q
    rows = cell.samples(200, joints=["j2", "j0"]).rows(0, 200)
    assert (rows[:, 1] + home[1] <= -0.5).all()
    assert rows[:, 0].max() > 0.9
    free = cell.samples(50, joints=["j2"])
    assert free.rows(0, 50).shape == (50, 1)
    with pytest.raises(ModelError, match=r"cannot be sampled.*no room"):
        cell.samples(10, within={"j0": (0.5, 1.0), "j1": (0.5, 1.0)})


def test_cells_without_them_are_sampled_as_before():
    rows = cell_of().samples(4, seed=7).rows(0, 4)
    bits = np.random.Generator(np.random.PCG64DXSM(7)).random((4, 3))
    assert np.allclose(rows, 2.0 * bits - 1.0)


def test_sweeps_of_them_say_of_which_cell_they_are(tmp_path: Path):
    cell = cell_of(arm.CoupledLimit(joints={"j0": 1, "j1": 1}, upper=0.0))
    samples = cell.samples(64)
    out = arm.sweep(cell.fk("j2"), samples, tmp_path / "out.zarr")
    again = arm.sweep(cell.fk("j2"), samples, tmp_path / "out.zarr")  # resumes
    assert np.array_equal(out["pose"], cell.fk("j2")(samples.rows(0, 64)))
    assert again.computed == 0
    with pytest.raises(arm.errors.ShapeError, match="samples are joint positions"):
        arm.sweep(cell.ik("j2", rotation="", position="x"), samples, tmp_path / "ik")
