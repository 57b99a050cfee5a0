"""Bounds of deviations, compared with dense samples of forward kinematics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary.kinematics.kernels import selection_of
from armillary.planning.deviation import Deviations, ToolChain, chain_of, path_error
from armillary.planning.segments import Arc, Line
from armillary.planning.tool_curve import Blend, ToolCurve, curve_through
from strategies import cells_and_states, laws

DENSE = np.linspace(0.0, 1.0, 101)


def chain_between(
    cell: arm.Cell, frame: str, seen: str, q: np.ndarray, state: Any = None
) -> ToolChain | None:
    box = q.min(axis=0) - 0.1, q.max(axis=0) + 0.1
    ends = cell.workcell.frame(frame), cell.workcell.frame(seen)
    return chain_of(cell.workcell, ends, None, state, box)


def bounds_of(
    cell: arm.Cell,
    names: tuple[str, str],
    chain: ToolChain,
    curve: ToolCurve,
    samples: tuple[np.ndarray, np.ndarray, np.ndarray],
    state: Any = None,
) -> Deviations:
    s, q, piece = samples
    h = np.diff(s)
    kernel = path_error(cell.workcell, names, cell.joint_names, state)
    errors = [
        kernel(
            q[k : len(q) - 1 + k],
            np.diff(q, axis=0),
            *(
                part * scale
                for part, scale in zip(
                    curve.points(s[k : len(s) - 1 + k], piece),
                    (1.0, h[:, None], h[:, None] ** 2),
                    strict=True,
                )
            ),
        )
        for k in range(2)
    ]
    return chain.deviations(q, np.stack(errors), curve, piece, h)


def measured(
    fk: Any, curve: ToolCurve, s: np.ndarray, q: np.ndarray, piece: np.ndarray
) -> np.ndarray:
    """Return the greatest of many deviations between samples, (k, 2)."""
    Q = q[:-1, None] + DENSE[:, None] * np.diff(q, axis=0)[:, None]
    S = s[:-1, None] + DENSE * np.diff(s)[:, None]
    X = fk(Q.reshape(-1, q.shape[1]))
    Y = curve.points(S.ravel(), np.repeat(piece, len(DENSE))).pose
    apart = np.linalg.norm(X[:, :3, 3] - Y[:, :3, 3], axis=1)
    chord = np.linalg.norm(X[:, :3, :3] - Y[:, :3, :3], 2, axis=(1, 2))
    angle = 2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0))
    both = np.stack([apart, angle], axis=1)
    return both.reshape(len(piece), len(DENSE), 2).max(axis=1)


@given(cells_and_states(), st.integers(0, 2**32))
@laws(25)
def test_no_tool_is_farther_from_its_curve(drawn: Any, seed: int):
    cell, state = drawn
    rng = np.random.default_rng(seed)
    frame, seen = rng.choice(cell.frame_names, 2).tolist()
    q = rng.uniform(-2.0, 2.0, len(cell.joint_names))
    size = 10.0 ** rng.uniform(-3.0, -1.0)
    Q = np.stack([q, q + size * rng.uniform(-1.0, 1.0, len(q))])
    chain = chain_between(cell, frame, seen, Q, state)
    fk = cell.fk(frame, relative_to=seen, state=state)
    first, last = fk(Q)
    if chain is None or np.abs(first - last).max() < 1e-6 or not chain.is_known:
        return
    blend = Blend(0.0, None)
    through = 0.5 * (first + last)[:3, 3] + 0.01 * size * rng.normal(size=3)
    segment = rng.choice([Line(last), Arc(to=last, through=through)])
    try:
        curve = curve_through(first, [segment], ["it"], blend)
    except arm.ArmillaryError:  # points on a line
        return
    s = np.array([0.0, curve.length])
    samples = s, Q, np.zeros(1, np.int64)
    found = bounds_of(cell, (frame, seen), chain, curve, samples, state)
    true = measured(fk, curve, *samples)
    assert (true <= found.bound * (1.0 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize(
    ("name", "frame", "seen"),
    [
        ("irb2400", "tool0", "world"),
        ("two_arms_positioner", "left/tcp", "seam"),
        ("two_arms_positioner", "seam", "left/tcp"),
        ("two_arms_positioner", "left/tcp", "right/tcp"),
        ("ur5e_on_oval", "tool0", "world"),
        ("ur5e_on_oval", "world", "tool0"),
    ],
)
def test_bounds_are_near_what_is_measured(name: str, frame: str, seen: str):
    cell = arm.example(name)
    rng = np.random.default_rng(3)
    fk = cell.fk(frame, relative_to=seen)
    ratios: list[np.ndarray] = []
    for _ in range(12):
        q = cell.home.q + rng.uniform(-0.8, 0.8, len(cell.joint_names))
        Q = np.stack([q, q + 0.004 * rng.uniform(-1.0, 1.0, len(q))])
        chain = chain_between(cell, frame, seen, Q)
        assert chain is not None
        assert chain.is_known
        first, last = fk(Q)
        curve = curve_through(first, [Line(last)], ["it"], Blend(0.0, None))
        samples = np.array([0.0, curve.length]), Q, np.zeros(1, np.int64)
        found = bounds_of(cell, (frame, seen), chain, curve, samples)
        true = measured(fk, curve, *samples)
        assert (true <= found.bound).all()
        ratios.append(found.bound[0] / np.maximum(true[0], 1e-9))
    assert np.median(ratios, axis=0)[0] < 1.3


def test_where_a_twist_jumps_there_is_a_bound():
    cell = arm.example("ur5e_on_oval")  # straights of the track end at 1.5 m
    fk = cell.fk("tool0")
    q = np.array([1.5, 0.3, -1.2, 1.5, 0.2, 0.4, 0.1])
    for size in (1e-2, 1e-3, 1e-4, 1e-5):
        for part in (0.0, 1e-9, 0.3, 0.5, 1.0):
            Q = np.stack([q, q])
            Q[:, 0] += size * np.array([-part, 1.0 - part])
            Q[1, 1:] += size * np.array([0.2, -0.1, 0.2, 0.3, -0.2, 0.4])
            chain = chain_between(cell, "tool0", "world", Q)
            assert chain is not None
            first, last = fk(Q)
            curve = curve_through(first, [Line(last)], ["it"], Blend(0.0, None))
            samples = np.array([0.0, curve.length]), Q, np.zeros(1, np.int64)
            found = bounds_of(cell, ("tool0", "world"), chain, curve, samples)
            true = measured(fk, curve, *samples)
            assert (true <= found.bound).all()
            assert found.bound[0, 0] <= 4.0 * size


def test_what_nothing_is_known_of_has_no_chain():
    cell = arm.example("palletiser")
    q = np.zeros((2, len(cell.joint_names)))
    assert chain_between(cell, "flange", "world", q) is None
    assert selection_of(cell.workcell, None).inputs == (0, 1, 2, 3)


def test_samples_that_were_not_found_have_infinite_bounds():
    cell = arm.example("irb2400")
    fk = cell.fk("tool0")
    Q = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [np.nan] * 6])
    chain = chain_between(cell, "tool0", "world", Q[:1])
    assert chain is not None
    last = fk(Q[0])
    last[0, 3] += 0.1
    curve = curve_through(fk(Q[0]), [Line(last)], ["it"], Blend(0.0, None))
    samples = np.array([0.0, curve.length]), Q, np.zeros(1, np.int64)
    found = bounds_of(cell, ("tool0", "world"), chain, curve, samples)
    assert np.isinf(found.bound).all()
