"""Motions keep limits at all instants, by as little as it takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.trajectories import kept_limits
from armillary.trajectories.curve import hermite_coefficients, natural_spline
from armillary.trajectories.kept_limits import (
    greatest_ratios,
    limited_spline,
    slowed,
    spline_excess,
)
from armillary.trajectories.motion import Motion

Array = npt.NDArray[np.float64]

N = 4
LOWER, UPPER = -np.ones(N), np.ones(N)
ROWS = np.vstack([np.eye(N), -np.eye(N)]), np.concatenate([UPPER, -LOWER])


def samples(seed: int) -> tuple[Array, Array]:
    """Parameters, and positions within limits that some reach with a kink."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.uniform(0.01, 0.1, 25))
    way = np.cumsum(rng.normal(0.0, 0.4, (25, N)), axis=0)
    return at, np.clip(way, LOWER, UPPER)


def values(at: Array, knots: Array) -> Array:
    """Positions between samples, shape (k, m, n)."""
    curve = hermite_coefficients(np.diff(at), knots)
    return np.linspace(0.0, 1.0, 201)[:, None] ** np.arange(6) @ curve


@pytest.mark.parametrize("seed", range(20))
def test_splines_are_brought_within_limits(seed: int):
    at, q = samples(seed)
    knots = natural_spline(at, q)
    before = values(at, knots)
    excess = np.abs(before).max() - 1.0
    curve = hermite_coefficients(np.diff(at), knots)
    found = spline_excess(curve, q, ROWS)
    assert excess > 1e-3
    assert excess - 1e-12 <= found <= excess * (1.0 + 1e-2)
    kept = np.stack(limited_spline(at, knots, ROWS), axis=1)
    after = values(at, kept)
    assert np.abs(after).max() <= 1.0 + 1e-12
    assert np.abs(after[[0, -1], [0, -1]] - q[[0, -1]]).max() < 1e-12
    # It is smooth, and cubic between samples.
    curve = hermite_coefficients(np.diff(at), kept)
    assert np.abs(curve[:, 4:]).max() < 1e-10
    # It is as near to the samples as they are to each other.
    assert np.abs(kept[:, 0] - q).max() <= np.abs(np.diff(q, axis=0)).max()


@pytest.mark.parametrize("seed", range(5))
def test_what_joints_do_together_stays_as_it_was(seed: int):
    """The sum of joints that is straight along the path stays straight."""
    at, q = samples(seed)
    weights = np.array([0.3, -1.0, 2.0, 0.5])
    total = np.append(q, (0.2 + 0.7 * at - q @ weights)[:, None], axis=1)
    rows = np.pad(ROWS[0], ((0, 0), (0, 1))), ROWS[1]
    kept = limited_spline(at, natural_spline(at, total), rows)
    found = values(at, np.stack(kept, axis=1))
    s = at[:-1, None] + np.linspace(0.0, 1.0, 201) * np.diff(at)[:, None]
    straight = found[..., :N] @ weights + found[..., N]
    assert np.abs(straight - 0.2 - 0.7 * s).max() < 1e-12


def test_splines_within_limits_stay_as_they_are():
    at, q = samples(0)
    knots = natural_spline(at, 0.3 * q)
    kept = np.stack(limited_spline(at, knots, ROWS), axis=1)
    assert np.abs(kept - knots).max() < 1e-9 * np.abs(knots).max()


def timed(seed: int) -> tuple[Motion, Array, Array]:
    """The fastest motion through random positions, and its limits."""
    rng = np.random.default_rng(seed)
    cell = arm.example("irb2400")
    way = np.cumsum(rng.uniform(-0.5, 0.5, (5, 6)), axis=0)
    rates = np.stack([-rng.uniform(0.5, 2.0, 6), rng.uniform(0.5, 2.0, 6)])
    bends = np.stack([-rng.uniform(2.0, 9.0, 6), rng.uniform(2.0, 9.0, 6)])
    found = cell.time_path(
        way,
        velocity=(rates[0], rates[1]),
        acceleration=(bends[0], bends[1]),
        intervals=6,
    )
    return found.motion(), rates, bends


def excess(motion: Motion, rates: Array, bends: Array) -> float:
    """By which ratio dense samples exceed limits, of accelerations its square root."""
    k = np.repeat(np.arange(len(motion.law)), 401)
    share = np.tile(np.linspace(0.0, 1.0, 401), len(motion.law))
    _, qd, qdd, _ = motion._evaluated(k, share * np.diff(motion.times)[k])
    of_rates = np.maximum(qd / rates[1], qd / rates[0]).max()
    of_bends = np.maximum(qdd / bends[1], qdd / bends[0]).max()
    return float(max(of_rates, of_bends**0.5))


@pytest.mark.parametrize("seed", range(12))
def test_motions_are_slowed_by_as_little_as_limits_need(seed: int):
    motion, rates, bends = timed(seed)
    before = excess(motion, rates, bends)
    (ratio,) = greatest_ratios([motion], rates, bends)
    over = max(before - 1.0, 0.0)
    assert 1.0 + over - 1e-12 <= ratio <= 1.0 + 1.002 * over + 1e-9
    (kept,) = slowed([motion], rates, bends)
    assert excess(kept, rates, bends) <= 1.0 + 1e-9
    assert kept.duration == pytest.approx(motion.duration * ratio, rel=1e-9)


def test_most_of_these_motions_were_too_fast():
    assert sum(excess(*timed(seed)) > 1.0 + 1e-6 for seed in range(12)) > 6


def test_motions_are_judged_together_as_they_are_alone():
    many = [timed(seed) for seed in range(4)]
    _, rates, bends = many[0]
    motions = [motion for motion, _, _ in many]
    together = greatest_ratios(motions, rates, bends)
    alone = [greatest_ratios([motion], rates, bends)[0] for motion in motions]
    assert together.tolist() == alone


@pytest.mark.parametrize("most", [1, 2])
def test_what_one_motion_takes_is_not_taken_from_others(
    most: int, monkeypatch: pytest.MonkeyPatch
):
    """A motion that needs more intervals than it may have leaves others as they are."""
    monkeypatch.setattr(kept_limits, "LEAST_PIECES", 1)
    monkeypatch.setattr(kept_limits, "MOST_INTERVALS", most)
    motion, rates, bends = timed(1)
    hard, *_ = timed(5)
    easy = motion.stretched(1.2 * motion.duration)
    motions = [easy, hard, motion]
    together = greatest_ratios(motions, rates, bends)
    alone = [greatest_ratios([each], rates, bends)[0] for each in motions]
    assert together.tolist() == alone
    # What is given instead of the ratio is a bound of it.
    assert together[2] >= excess(motion, rates, bends)


def test_motions_within_limits_stay_the_same_objects():
    motion, rates, bends = timed(0)
    (kept,) = slowed([motion], 2.0 * rates, 4.0 * bends)
    assert kept is motion
