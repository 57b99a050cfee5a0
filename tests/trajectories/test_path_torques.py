"""Torques along paths stay within limits, and the motion uses them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, StateError
from armillary.trajectories.timed_path import PathReason, TimedPath
from masses import with_drives, with_inertias, with_links

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return with_inertias(arm.example("ur5e_on_oval"), 1)


def walks(seed: int, batch: int, knots: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.cumsum(0.2 * rng.normal(size=(batch, knots, 7)), axis=1)


def enough(cell: arm.Cell, paths: Array, factor: float) -> Array:
    """Limits that hold the cell at rest at waypoints, and some more."""
    still = np.zeros_like(paths)
    held = np.abs(cell.inverse_dynamics()(paths, still, still))
    return factor * (held.max(axis=(0, 1)) + 5.0)


def torques_at_points(cell: arm.Cell, timed: TimedPath, row: int) -> Array:
    """Torques before and after each point of the grid, shape (2, g - 1, n).

    Friction at rest is that of the motion that begins or ends there.
    """
    speed, s = timed.speed[row], timed.parameter[row]
    x, u = speed**2, np.diff(speed**2) / (2 * np.diff(s))
    parts = np.arange(len(s)) / ((len(s) - 1) // (timed.curve.at.shape[-1] - 1))
    q, slope, bend = timed.curve.evaluate((row,), parts)
    rates = slope * np.maximum(speed, 1e-12)[:, None]
    dynamics = cell.inverse_dynamics()
    return np.stack(
        [
            dynamics(q[k], rates[k], slope[k] * u[:, None] + bend[k] * x[k, None])
            for k in (slice(None, -1), slice(1, None))
        ]
    )


@pytest.mark.thorough
@pytest.mark.parametrize("friction", [False, True])
def test_limits_hold_at_all_points(cell: arm.Cell, friction: bool):
    if friction:
        cell = with_drives(cell, 2)
    paths = walks(1, 5, 4)
    limits = enough(cell, paths, 3.0)
    timed = cell.time_path(
        paths, torque=limits, velocity=np.inf, acceleration=np.inf, intervals=50
    )
    assert timed.success.all()
    for row in range(5):
        use = np.abs(torques_at_points(cell, timed, row)) / limits
        assert use.max() <= 1.0 + 1e-7
        # A joint is at its limit nearly everywhere; braking forgoes what viscous
        # friction helps.
        most = use.max(axis=(0, 2))
        assert np.median(most) > 0.99
        assert (most > 0.9).mean() > 0.9


def test_limits_of_both_directions(cell: arm.Cell):
    paths = walks(2, 4, 3)
    most = enough(cell, paths, 3.0)
    one = cell.time_path(paths, torque=most, acceleration=np.inf)
    lower = -most / 2.0
    other = cell.time_path(paths, torque=(lower, most), acceleration=np.inf)
    assert other.success.all()
    for row in range(4):
        torques = torques_at_points(cell, other, row)
        assert (torques >= lower - 1e-7 * most).all()
        assert (torques <= most + 1e-7 * most).all()
    assert (other.duration >= one.duration * (1 - 1e-9)).all()
    assert other.duration.sum() > one.duration.sum()


def test_great_limits_change_nothing(cell: arm.Cell):
    paths = walks(3, 3, 4)
    free = cell.time_path(paths, acceleration=5.0)
    limited = cell.time_path(paths, acceleration=5.0, torque=1e6)
    assert limited.time == pytest.approx(free.time, rel=1e-9)
    endless = cell.time_path(paths, acceleration=5.0, torque=np.inf)
    assert endless.time == pytest.approx(free.time, rel=1e-9)


def test_a_load_takes_longer(cell: arm.Cell):
    """A pendulum that is swung up: the same torque accelerates it less upward."""
    link = arm.Link(
        name="bob",
        parent="base",
        joint=arm.joints.Revolute(axis=(0, -1, 0)),
        limits=arm.Limits(velocity=20.0, effort=30.0),
        inertia=arm.SpatialInertia.from_centre(1.0, (1.0, 0, 0), np.zeros((3, 3))),
    )
    pendulum = arm.Cell(
        manipulators=[arm.Manipulator(name="arm", links=[arm.Link(name="base"), link])]
    )
    weight = 9.81
    up = pendulum.time_path([[-0.05], [0.05]], torque=True, intervals=400)
    # M = 1: accelerates at 30 - m g cos q, brakes at 30 + m g cos q
    faster, slower = 30.0 + weight, 30.0 - weight
    expected = np.sqrt(2 * 0.1 * (faster + slower) / (faster * slower))
    assert up.duration == pytest.approx(expected, rel=1e-3)
    again = pendulum.time_path([[-0.05], [0.05]], torque=30.0, intervals=400)
    assert again.time.tolist() == up.time.tolist()


def test_too_low_to_rest(cell: arm.Cell):
    paths = walks(4, 2, 3)
    limits = enough(cell, paths, 3.0)
    rows = np.stack([limits, 0.05 * limits])
    timed = cell.time_path(paths, torque=rows, acceleration=5.0)
    names = [PathReason(int(number)).name for number in timed.reason]
    assert names == ["TIMED", "OVERLOADED"]
    assert np.isnan(timed.time[1]).all()


def test_what_is_refused(cell: arm.Cell):
    path = walks(5, 1, 3)[0]
    with pytest.raises(ModelError, match="No joint has an effort limit"):
        with_links(
            cell, lambda link: link.replace(limits=arm.Limits(velocity=1.0))
        ).time_path(path, torque=True)
    with pytest.raises(StateError, match="give torque="):
        cell.time_path(path, acceleration=1.0, state=cell.home)
    with pytest.raises(ShapeError, match="torque is one number, or"):
        cell.time_path(path, acceleration=1.0, torque=np.ones(6))
    with pytest.raises(ModelError, match="torque is negative or NaN"):
        cell.time_path(path, acceleration=1.0, torque=-1.0)
    with pytest.raises(ModelError, match="above the upper one"):
        cell.time_path(path, acceleration=1.0, torque=(np.ones(7), np.zeros(7)))
    with pytest.raises(ModelError, match="no limit of velocity, acc"):
        cell.time_path(path, torque=np.inf, velocity=np.inf, acceleration=np.inf)
