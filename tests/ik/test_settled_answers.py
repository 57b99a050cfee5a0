"""Answers of general arms that the first search settles, and its steps."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.ik.closed_forms.general_6r.found_solutions import APART, FoundSolutions
from armillary.ik.closed_forms.general_6r.geometry import turned
from armillary.ik.closed_forms.general_6r.solver import SixAxesSolver
from armillary.ik.closed_forms.general_6r.stages import newton_program
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kernel import vectorize
from arms import arm_of_axes

POINTS = [[0, 0, 0.2], [0, 0, 0.25], *[[0, 0, 0.79]] * 2]
"""Of an arm with an offset wrist, whose roots are often double."""


def arm_and_poses(name: str, count: int) -> tuple[InverseKinematics, np.ndarray]:
    """Return the inverse kinematics of an arm, and some random poses that it has."""
    rng = np.random.default_rng(3)
    axes, points = rng.normal(size=(6, 3)), rng.uniform(-0.5, 0.5, (6, 3))
    if name == "offset wrist":
        x, y, z = np.eye(3)
        axes = np.array([z, y, -y, -x, -y, -x])
        points = np.array([*POINTS, [0.54, 0, 0.79], [0.7, -0.15, 0.79]])
    cell = arm_of_axes("R" * 6, axes, points)
    q = rng.uniform(-np.pi, np.pi, (count, 6))
    return cell.ik("tool"), np.asarray(cell.fk("tool")(q))


@pytest.mark.parametrize("name", ["random", "offset wrist"])
def test_targets_that_the_first_search_settles_ask_for_nothing_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ik, X = arm_and_poses(name, 40)
    before = ik.all(X)
    asked: list[int] = []
    solve = SixAxesSolver.solve

    def counted(self: SixAxesSolver, inner: np.ndarray, **options: object) -> object:
        asked.append(len(inner))
        return solve(self, inner, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SixAxesSolver, "solve", counted)
    monkeypatch.setattr(SixAxesSolver, "solve_one", None)
    batch = ik.all(X)
    assert sum(asked) <= 4
    np.testing.assert_array_equal(batch.q, before.q)
    settled = [k for k in range(40) if batch.complete[k]][:10]
    left = len(asked)
    for k in settled:
        one = ik.all(X[k])
        np.testing.assert_array_equal(one.q, batch.q[k])
        np.testing.assert_array_equal(one.reason, batch.reason[k])
        np.testing.assert_array_equal(one.residual, batch.residual[k])
    assert len(asked) == left


def test_a_target_that_is_not_a_pose_is_settled_by_nothing() -> None:
    ik, X = arm_and_poses("random", 5)
    X = X.copy()
    X[1, 0, 0], X[2, :3, 3], X[3, 3, 3] = np.nan, np.inf, 2.0
    answers = ik.all(X)
    assert (answers.reason[1:4] == arm.Reason.INVALID_TARGET).all()
    assert np.isnan(answers.q[1:4]).all()
    assert answers.success[[0, 4]].any(axis=1).all()


def test_a_last_step_leaves_no_error() -> None:
    """Its error is not seen, so it is taken only where it must be one of rounding."""
    rng = np.random.default_rng(8)
    worst, lasts = 0.0, 0
    for _ in range(20):
        links = np.tile(np.eye(4), (5, 1, 1))
        links[:, :3, :3] = np.linalg.qr(rng.normal(size=(5, 3, 3)))[0]
        links[:, :3, :3] *= np.linalg.det(links[:, :3, :3])[:, np.newaxis, np.newaxis]
        links[:, :3, 3] = rng.uniform(-0.5, 0.5, (5, 3))
        q = rng.uniform(-np.pi, np.pi, (200, 6))
        start = q + rng.normal(size=q.shape) * 10.0 ** rng.uniform(-10, -6, (200, 1))
        inner = _chain(links, q)
        ahead, error, _, regular, active = vectorize(
            newton_program(), start, inner, np.ascontiguousarray(links[:, :3])
        )
        is_last = (np.asarray(active) < 1.0) & (np.asarray(ahead) != start).any(axis=1)
        lasts += int(is_last.sum())
        apart = np.abs(_chain(links, np.asarray(ahead)) - inner).max(axis=(1, 2))
        worst = max(worst, apart[is_last].max())
        assert (np.asarray(regular)[is_last] == 1.0).all()
        assert (np.asarray(error)[is_last] <= 1e-14).all()
    assert lasts > 1000
    assert worst < 5e-14


def _chain(links: np.ndarray, q: np.ndarray) -> np.ndarray:
    X = turned(q[:, 0])
    for k, link in enumerate(links):
        X = X @ link @ turned(q[:, k + 1])
    return X


def test_most_copies_are_left_out_in_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 400):
        rows, keys = rng.integers(0, 5, count), 0.3 * rng.integers(-2, 2, (count, 3))
        parts = rows, rng.normal(size=(count, 6)), keys, np.ones(count)
        found = FoundSolutions(*parts, 5).thinned()
        table = np.column_stack([rows, np.rint(keys / APART)])
        _, first = np.unique(table, axis=0, return_index=True)
        np.testing.assert_array_equal(found.angles, parts[1][first])
