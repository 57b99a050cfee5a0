"""Tasks of lower priority numbers come first, whatever the others ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import lsq_linear, minimize

import armillary as arm
from armillary import tasks
from armillary.errors import ModelError

Array = npt.NDArray[np.float64]
HOME = np.array([0.1, 0.2, -1.2, 1.5, -1.0, -1.4, 0.3])


def sums(q: Any) -> list[Any]:
    return [q[1] + q[2], q[3] - 2.0 * q[5], q[0]]


def jacobians(cell: arm.Cell, q: Array) -> list[Array]:
    """Return those of the position, and of `sums`."""
    J = np.array([[0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, -2, 0], [1, 0, 0, 0, 0, 0, 0]])
    return [cell.jacobian("tool0")(q)[:3], J.astype(np.float64)]


def lexicographic(
    levels: list[tuple[Array, Array]], low: Array, high: Array, damping: float
) -> Array:
    """Return the best rates of each level within those before it, by SciPy."""
    J, wanted = levels[0]
    c = J.shape[1]
    rows = np.vstack([J, damping * np.eye(c)])
    x = lsq_linear(rows, np.r_[wanted, np.zeros(c)], (low, high), tol=1e-14).x
    for k in range(1, len(levels)):
        J, wanted = levels[k]
        held = np.vstack([rows for rows, _ in levels[:k]])
        reached = held @ x

        def cost(y: Array, J: Array = J, wanted: Array = wanted) -> float:
            return float(((J @ y - wanted) ** 2).sum() + damping**2 * (y @ y))

        def slope(y: Array, J: Array = J, wanted: Array = wanted) -> Array:
            return 2.0 * (J.T @ (J @ y - wanted) + damping**2 * y)

        x = minimize(
            cost,
            x,
            jac=slope,
            bounds=list(zip(low, high, strict=True)),
            constraints={
                "type": "eq",
                "fun": lambda y, held=held, reached=reached: held @ y - reached,
                "jac": lambda y, held=held: held,
            },
            options={"ftol": 1e-15, "maxiter": 300},
        ).x
    return x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_each_level_is_the_best_within_those_before_it(
    rail: arm.Cell, seed: int
) -> None:
    random = np.random.default_rng(seed)
    fast = np.full(7, 2.0)
    fast[seed] = 0.05  # so that bounds matter
    control = rail.controller(
        [tasks.Function(sums, priority=7, weight=30.0), tasks.Position("tool0")],
        velocity=fast,
        acceleration=1e6,
        limits=False,
    )
    q = HOME + random.uniform(-0.3, 0.3, 7)
    to = rail.fk("tool0")(q)[:3, 3] + random.uniform(-0.06, 0.06, 3)
    values = np.array(sums(q)) + random.uniform(-0.05, 0.05, 3)
    step = control(q, np.zeros(7), [values, to])

    first, second = jacobians(rail, q)
    wanted = 10.0 * (to - rail.fk("tool0")(q)[:3, 3])
    others = 10.0 * (values - np.array(sums(q)))
    # The greatest weight, here of what comes last, is 30.
    best = lexicographic([(first, wanted), (second, others)], -fast, fast, 0.01)
    assert first @ step.qd == pytest.approx(first @ best, abs=2e-5)
    missing, least = (
        np.linalg.norm(second @ x - others) for x in (np.asarray(step.qd), best)
    )
    assert missing <= least + 1e-3


def test_what_comes_last_takes_nothing(rail: arm.Cell) -> None:
    q, qd = HOME, np.zeros(7)
    X = rail.fk("tool0")(q)
    goal = X.copy()
    goal[:3, 3] += [0.03, -0.02, 0.05]
    pull = X[:3, 3] + [0.0, 0.0, 0.4]
    options: dict[str, Any] = {"acceleration": 1e6, "limits": False}
    alone = rail.controller([tasks.Frame("tool0")], **options)(q, qd, [goal])
    equal = rail.controller(
        [tasks.Frame("tool0"), tasks.Position("tool0", axes="z")], **options
    )(q, qd, [goal, pull])
    after = rail.controller(
        [
            tasks.Frame("tool0"),
            tasks.Position("tool0", axes="z", weight=100.0, priority=1),
        ],
        **options,
    )(q, qd, [goal, pull])
    J = rail.jacobian("tool0")(q)
    assert np.abs(J @ (after.qd - alone.qd)).max() < 1e-5
    assert np.abs(J @ (equal.qd - alone.qd)).max() > 0.1


def test_three_levels_and_a_posture(rail: arm.Cell) -> None:
    control = rail.controller(
        [
            tasks.Posture(),
            tasks.AlignAxis("tool0", priority=2),
            tasks.Position("tool0", axes="xy", priority=1),
            tasks.Coupling({rail.joint_names[0]: 1.0}),
        ],
        acceleration=1e6,
        velocity=5.0,
    )
    q, qd = HOME, np.zeros(7)
    X = rail.fk("tool0")(q)
    targets = [None, -X[:3, 2] + [0.1, 0.2, 0.3], X[:3, 3] + [0.05, 0.02, 0.0], q[0]]
    step = control(q, qd, targets)
    J = rail.jacobian("tool0")(q)
    assert step.qd[0] == pytest.approx(0.0, abs=1e-5)  # others ask for 26 rad/s
    assert J[:2] @ step.qd == pytest.approx([0.5, 0.2], abs=1e-3)


def test_slow_motion_takes_tasks_by_priority(rail: arm.Cell) -> None:
    q, qd = HOME, np.zeros(7)
    X = rail.fk("tool0")(q)
    listed = [
        tasks.Position("tool0", axes="z", priority=1),
        tasks.Position("tool0"),
    ]
    options: dict[str, Any] = {"acceleration": 1e6, "conflict": "slow"}
    targets = [X[:3, 3] + [0.0, 0.0, 0.2], X[:3, 3] + [0.02, 0.0, 0.0]]
    step = rail.controller(listed, **options)(q, qd, targets)
    J = rail.jacobian("tool0")(q)[:3]
    assert J @ step.qd == pytest.approx([0.2, 0.0, 0.0], abs=1e-4)


def test_a_priority_is_a_whole_number() -> None:
    with pytest.raises(ModelError, match="whole number"):
        tasks.Frame("tool0", priority=0.5)  # type: ignore[arg-type]
