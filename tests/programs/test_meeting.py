"""Motions that meet what moves keep limits everywhere, and are found where any is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from armillary.programs.ending import Impossible, RunReason
from armillary.programs.meeting import Arrivals, quickest
from armillary.programs.mover import Mover
from armillary.programs.tracks import JointValues
from armillary.trajectories.motion import Motion

Array = npt.NDArray[np.float64]

N = 6
FAR, FAST, STRONG = 3.0, 2.0, 8.0  # limits of positions, rates and accelerations


def mover() -> Mover:
    """Joints with the same limits."""
    ones = np.ones((2, N)) * [[-1.0], [1.0]]
    return Mover(None, FAR * ones, FAST * ones, STRONG * ones)


def moved(first: JointValues, last: JointValues) -> Motion:
    """The motion from some values of joints to others that do not change."""

    def arrivals(durations: Array) -> Arrivals:
        shape = len(durations), N
        ends = JointValues(*(np.broadcast_to(part, shape) for part in last))
        return Arrivals(ends, np.zeros(len(durations), np.int64))

    return quickest(mover(), first, arrivals)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_duration_is_found_by_few_questions(seed: int):
    # Limits between samples were kept by longer and longer durations, each of which
    # asked for inverse kinematics again: up to 26 times, and 9 in a run of a belt.
    rng = np.random.default_rng(seed)
    first, last = drawn(rng, 0.0), drawn(rng, 0.1)
    asked: list[Array] = []

    def arrivals(durations: Array) -> Arrivals:
        asked.append(durations)
        shape = len(durations), N
        ends = JointValues(*(np.broadcast_to(part, shape) for part in last))
        return Arrivals(ends, np.zeros(len(durations), np.int64))

    T = quickest(mover(), first, arrivals).duration
    assert len(asked) <= 5
    ends = [np.stack(pair) for pair in zip(first, last, strict=True)]
    shorter = Motion.through([0.0, 0.99999 * T], *ends)
    found = shorter.at(np.linspace(0.0, shorter.duration, 5001))
    rates, bends = np.abs(found.qd).max() / FAST, np.abs(found.qdd).max() / STRONG
    assert max(rates, bends) > 1.0


def drawn(rng: np.random.Generator, share: float) -> JointValues:
    """Values within limits, from which joints can come to rest within them."""
    q = rng.uniform(-0.9 * FAR, 0.9 * FAR, N)
    return JointValues(q, share * rng.uniform(-FAST, FAST, N), np.zeros(N))


@pytest.mark.parametrize("seed", range(12))
def test_motions_keep_limits_at_all_instants(seed: int):
    # Rates were exceeded by 0.25 % between the samples at which they were compared,
    # and of ends with great rates one in five was said not to be reached.
    rng = np.random.default_rng(seed)
    for share_first, share_last in ((0.0, 0.2), (0.0, 0.7), (0.5, 0.0), (0.4, 0.7)):
        first, last = drawn(rng, share_first), drawn(rng, share_last)
        motion = moved(first, last)
        found = motion.at(np.linspace(0.0, motion.duration, 5001))
        assert np.abs(found.q).max() <= FAR + 1e-8
        assert np.abs(found.qd).max() <= FAST * (1.0 + 3e-6)
        assert np.abs(found.qdd).max() <= STRONG * (1.0 + 3e-6)
        for values, k in ((first, 0), (last, -1)):
            for part, of in zip(values, (found.q, found.qd, found.qdd), strict=True):
                assert of[k] == pytest.approx(part, abs=1e-9)
        # Positions, rates and accelerations are smooth where parts meet.
        inner = motion.times[1:-1]
        before, after = motion.at(inner - 1e-9), motion.at(inner + 1e-9)
        assert np.abs(before.qd - after.qd).max(initial=0.0) < 1e-6
        assert np.abs(before.qdd - after.qdd).max(initial=0.0) < 1e-5


def test_what_cannot_stop_within_limits_is_refused():
    first = JointValues(np.full(N, 2.95), np.full(N, 1.9), np.zeros(N))
    rest = JointValues(np.zeros(N), np.zeros(N), np.zeros(N))
    with pytest.raises(Impossible) as refused:
        moved(first, rest)
    assert refused.value.reason in {RunReason.LIMITS, RunReason.OUTRUN}


def test_the_reason_is_that_of_motions_that_reach_the_frame():
    """It was that of the longest motion, after which the part is out of reach again."""
    first = JointValues(np.full(N, 2.95), np.full(N, 1.9), np.zeros(N))

    def arrivals(durations: Array) -> Arrivals:
        still = np.zeros((len(durations), N))
        far = np.where(durations > 0.5, int(RunReason.OUT_OF_REACH), 0)
        return Arrivals(JointValues(still, still, still), far)

    with pytest.raises(Impossible) as refused:
        quickest(mover(), first, arrivals)
    assert refused.value.reason in {RunReason.LIMITS, RunReason.OUTRUN}


def test_one_polynomial_serves_where_it_can():
    still = np.zeros(N)
    first = JointValues(np.zeros(N), still, still)
    last = JointValues(np.full(N, 0.5), np.full(N, 0.3), still)
    assert len(moved(first, last).times) == 2
