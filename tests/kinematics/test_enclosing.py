"""Enclosures of passive joints beside dense samples, and beside 50 digits."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.kinematics.closing import enclosing
from armillary.kinematics.closing.branch import home_branch
from armillary.kinematics.closing.enclosing import (
    Stretches,
    hull,
    refined,
    with_passive,
)
from armillary.trace import Op, evaluate
from exact_operations import exact_operation
from linkages import five_bar, slider_crank

Array = npt.NDArray[np.float64]

HALF = {
    "five_bar": 0.006,
    "delta": 0.04,
    "palletiser": 0.01,
    "two_finger_gripper": 0.005,
    "stewart": 0.002,
}
"""Half a stretch of each mechanism that is proven mostly [rad or m]."""


@cache
def mechanism(name: str) -> arm.Cell:
    return arm.example(name)


def positions(cell: arm.Cell, count: int, seed: int) -> Array:
    """Positions at which loops close, shape (count, n)."""
    lower, upper = cell.limits
    rng = np.random.default_rng(seed)
    q = rng.uniform(
        np.maximum(lower, -3.0), np.minimum(upper, 3.0), (9 * count, len(lower))
    )
    return q[cell.close_loops(q).success][:count]


def enclosed(cell: arm.Cell, half: float, *, count: int, seed: int) -> Stretches:
    """Stretches at random rates, with what is known of passive joints."""
    q = positions(cell, count, seed)
    rng = np.random.default_rng(seed)
    reach, spread = (rng.uniform(0.2, 1.0, q.shape) * size for size in (half, 0.1))
    rate = rng.uniform(-2.0, 2.0, q.shape)
    given = Stretches(q, reach, rate, spread)
    branch = home_branch(cell.workcell)
    each = [with_passive(branch, given.of(np.array([k]))) for k in range(count)]
    return Stretches(*map(np.concatenate, zip(*each, strict=True)))


def rates_at(cell: arm.Cell, x: Array) -> Array:
    """dp/dq at positions of all joints, from the rates of all rows, shape (m, n)."""
    system = cell.workcell.loop_system
    rows = np.zeros((0, len(x)))
    for equations in system.equations:
        own = np.zeros((equations.size, len(x)))
        own[:, list(equations.joints)] = equations.rows(x.tolist()).rates
        rows = np.concatenate([rows, own])
    n = system.count
    return np.asarray(np.linalg.lstsq(rows[:, n:], -rows[:, :n])[0], np.float64)


@pytest.mark.parametrize("name", HALF)
def test_assemblies_and_rates_stay_where_they_are_proven_to_be(name: str):
    cell = mechanism(name)
    found = enclosed(cell, HALF[name], count=6, seed=3)
    n, rng = len(cell.joint_names), np.random.default_rng(4)
    assert found.is_known.sum() >= 4
    used = []
    for k in np.flatnonzero(found.is_known):
        q, reach, rate, spread = (part[k] for part in found)
        signs = np.concatenate(
            [rng.choice([-1.0, 1.0], (40, n)), rng.uniform(-1, 1, (20, n))]
        )
        at = q[:n] + signs * reach[:n]
        solved = cell.close_loops(at, near=np.tile(q[n:], (60, 1))).passive
        away = np.abs(solved - q[n:])
        assert (away <= reach[n:]).all()
        used.append((away.max(axis=0) / reach[n:]).max())
        for row, p in zip(at[::6], solved[::6], strict=True):
            moved = rate[:n] + rng.choice([-1.0, 1.0], n) * spread[:n]
            true = rates_at(cell, np.concatenate([row, p])) @ moved
            assert (np.abs(true - rate[n:]) <= spread[n:]).all()
    # Boxes are no more than a few times as wide as what is in them.
    assert np.median(used) > 0.2


@pytest.mark.parametrize("name", ["five_bar", "two_finger_gripper", "stewart"])
def test_corners_by_50_digits(name: str):
    cell = mechanism(name)
    found = enclosed(cell, HALF[name], count=4, seed=5)
    k = int(np.flatnonzero(found.is_known)[0])
    n = len(cell.joint_names)
    q, reach = found.q[k], found.reach[k]
    corners = list(itertools.product([-1, 1], repeat=n))[:: max(1, 2**n // 8)]
    with mpmath.workdps(50):
        for signs in corners:
            u = [
                mpmath.mpf(x) + sign * mpmath.mpf(r)
                for x, r, sign in zip(q[:n], reach[:n], signs, strict=True)
            ]
            p = closed(cell, u, [mpmath.mpf(x) for x in q[n:]])
            for x, middle, r in zip(p, q[n:], reach[n:], strict=True):
                assert abs(x - mpmath.mpf(middle)) <= mpmath.mpf(r)


def closed(cell: arm.Cell, u: list[Any], p: list[Any]) -> list[Any]:
    """Close loops by Newton's method with numbers of mpmath."""
    system = cell.workcell.loop_system
    n, m = len(u), len(p)
    addresses = [row for block in system.blocks for row in block.rows]
    values: Any = mpmath.matrix(m, 1)
    for _ in range(7):
        x = [*u, *p]
        J: Any = mpmath.matrix(m, m)
        for r, (loop, row) in enumerate(addresses):
            each = system.equations[loop]
            given = [x[k] for k in each.joints]
            numbers = evaluate(each.program, given, meaning)
            values[r] = numbers[row]
            rates = numbers[each.size :][row * len(given) : (row + 1) * len(given)]
            for k, rate in zip(each.joints, rates, strict=True):
                if k >= n:
                    J[r, k - n] = rate
        step = mpmath.lu_solve(J, values)
        p = [a - b for a, b in zip(p, step, strict=True)]
    assert max(abs(each) for each in values) < mpmath.mpf(10) ** -45
    return p


def meaning(thing: Any) -> Any:
    return exact_operation(thing.name) if isinstance(thing, Op) else mpmath.mpf(thing)


@pytest.mark.parametrize("half", [0.05, 0.3])
def test_what_is_known_of_long_stretches_holds_for_all_of_them(half: float):
    """Many reach positions at which a five-bar cannot be assembled: none is known."""
    cell = mechanism("five_bar")
    found = enclosed(cell, half, count=60, seed=6)
    rng = np.random.default_rng(7)
    for k in range(60):
        q, reach = found.q[k], found.reach[k]
        at = q[:2] + rng.uniform(-1.0, 1.0, (200, 2)) * reach[:2]
        solved = cell.close_loops(at).passive
        if found.is_known[k]:
            assert (np.abs(solved - q[2:]) <= reach[2:]).all()
    assert not found.is_known.all()


def test_stretches_are_halved_until_all_are_known():
    cell = mechanism("five_bar")
    q0, q1 = np.array([1.0, 2.0]), np.array([1.6, 2.4])

    def at(t: Array) -> Array:
        return q0 + t[:, None] * (q1 - q0)

    def stretches(a: Array, b: Array) -> Stretches:
        half = 0.5 * (b - a)[:, None] * np.abs(q1 - q0)
        rate = np.tile(q1 - q0, (len(a), 1))
        return Stretches(at(0.5 * (a + b)), half, rate, np.zeros_like(rate))

    branch = home_branch(cell.workcell)
    times, found = refined(branch, np.array([0.0, 1.0]), at, stretches, 1e-6)
    assert found.is_known.all()
    assert 8 < len(found.q) < 200
    assert (np.diff(times) > 0.0).all()
    dense = np.linspace(0.0, 1.0, 2001)
    passive = cell.close_loops(at(dense)).passive
    lower, upper = hull(found)
    assert ((passive >= lower[2:]) & (passive <= upper[2:])).all()
    slopes = np.abs(np.diff(passive, axis=0) / np.diff(dense)[:, None])
    assert (slopes.max(axis=0) <= found.fastest[:, 2:].max(axis=0)).all()
    assert found.fastest[:, 2:].max() < 2.0 * slopes.max()


def test_a_motion_behind_a_long_rest_is_halved(monkeypatch: pytest.MonkeyPatch):
    cell = mechanism("five_bar")
    q0, q1 = np.array([1.0, 2.0]), np.array([1.6, 2.4])

    def at(t: Array) -> Array:
        return q0 + t.clip(0.0)[:, None] * (q1 - q0)

    def stretches(a: Array, b: Array) -> Stretches:
        half = 0.5 * (b.clip(0.0) - a.clip(0.0))[:, None] * np.abs(q1 - q0)
        rate = np.where((b > 0.0)[:, None], q1 - q0, 0.0)
        return Stretches(at(0.5 * (a + b)), half, rate, np.zeros_like(rate))

    monkeypatch.setattr(enclosing, "MOST_STRETCHES", 200)
    monkeypatch.setattr(enclosing, "MOST_NUMBERS", 1000)
    times = np.append(np.linspace(-300.0, 0.0, 301), 1.0)
    times, found = refined(home_branch(cell.workcell), times, at, stretches, 1e-6)
    assert found.is_known.all()
    assert (times > 0.0).sum() > 8


def test_a_robot_is_known_while_loops_of_another_do_not_close():
    """What bounds speeds of one has to hold where nothing is known of the other."""
    slider, bars = (
        make(np.random.default_rng(0)).manipulator()
        for make in (slider_crank, five_bar)
    )
    robots = [arm.Manipulator(name="slider", links=slider.links, loops=slider.loops)]
    robots.append(arm.Manipulator(name="bars", links=bars.links, loops=bars.loops))
    cell = arm.Cell(manipulators=robots)
    q1 = np.array([0.5, 3.0, -3.0])
    q0 = np.zeros(3)

    def at(t: Array) -> Array:
        return q0 + t[:, None] * (q1 - q0)

    def stretches(a: Array, b: Array) -> Stretches:
        half = 0.5 * (b - a)[:, None] * np.abs(q1 - q0)
        rate = np.tile(q1 - q0, (len(a), 1))
        return Stretches(at(0.5 * (a + b)), half, rate, np.zeros_like(rate))

    times = np.linspace(0.0, 1.0, 101)
    branch = home_branch(cell.workcell)
    times, found = refined(branch, times, at, stretches, 1e-3)
    names = [*cell.joint_names, *cell.passive_names]
    own = [k for k, name in enumerate(names) if name.startswith("slider")]
    unknown = ~found.is_known
    assert 0 < unknown.sum() < len(unknown)
    assert np.isfinite(found.reach[:, own]).all()
    lower, upper = hull(found)
    reach = found.reach[:, own]
    assert (found.q[:, own] - reach >= lower[own]).all()
    assert (found.q[:, own] + reach <= upper[own]).all()
