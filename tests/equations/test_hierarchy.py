"""Rates within bounds against linear and quadratic programming."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

from armillary.ik.task_priority import Follower, Hierarchy, Progress
from armillary.kernel import compile, interpret, vectorize
from armillary.trace import Program, trace

N, CORNERS, COUNT = 6, 16, 60
SIZES = [(4,), (6,), (3, 2), (2, 2, 2)]


class Answer(NamedTuple):
    """What a hierarchy gave for many random problems."""

    x: np.ndarray
    scales: np.ndarray
    ended: np.ndarray


class Problems(NamedTuple):
    """Many random problems."""

    J: np.ndarray
    v: np.ndarray
    w: np.ndarray
    low: np.ndarray
    high: np.ndarray
    r: np.ndarray


@lru_cache
def program(
    sizes: tuple[int, ...], *, null: bool = True, bounds: bool = True, corners: int
) -> Program:
    """Return the program that follows a hierarchy of random rows."""
    m = sum(sizes)

    def equations(J, v, w, low, high, r, d, sharp):
        hierarchy = Hierarchy(
            rows=[list(row) for row in J],
            sizes=sizes,
            wanted=list(v),
            weights=list(w),
            null=list(r) if null else None,
            bounds=(list(low), list(high)) if bounds else None,
            damping=d,
            sharp=sharp,
        )
        follower = Follower(hierarchy)
        at = Progress.start(sizes, N)
        for _ in range(corners if bounds else hierarchy.levels):
            at = follower.corner(at)
        return [*at.z, *at.scales, at.remaining, at.level]

    n = (N,)
    shapes = {"J": (m, N), "v": (m,), "w": n, "low": n, "high": n, "r": n}
    return trace(equations, name="hierarchy", **shapes, d=(), sharp=())


def problems(sizes: tuple[int, ...], seed: int = 0, rank: int = 0) -> Problems:
    """Return random problems; some joints stand at a bound, some cannot move."""
    random = np.random.default_rng(seed)
    m, count = sum(sizes), COUNT
    J = random.normal(size=(count, m, N))
    if rank:
        J = random.normal(size=(count, m, rank)) @ random.normal(size=(count, rank, N))
    v = random.normal(size=(count, m)) * random.uniform(0, 3, (count, 1))
    low, high = (random.uniform(0, 2, (count, N)) for _ in range(2))
    chance = random.uniform(size=(count, N))
    low[chance < 0.1] = 0.0
    high[(chance > 0.05) & (chance < 0.15)] = 0.0
    w = np.exp(random.normal(size=(count, N)))
    return Problems(J, v, w, -low, high, random.normal(size=(count, N)))


def solved(
    sizes: tuple[int, ...],
    given: Problems,
    *,
    damping: float = 1e-5,
    sharp: float = 1.0,
    null: bool = True,
    bounds: bool = True,
    corners: int = CORNERS,
) -> Answer:
    """Return the answers."""
    made = program(sizes, null=null, bounds=bounds, corners=corners)
    out = np.asarray(vectorize(made, *given, damping**2, sharp))
    k = len(sizes)
    ended = (out[:, N + k] <= 0) & (out[:, N + k + 1] >= k + null)
    return Answer(out[:, :N], out[:, N : N + k], ended)


def parts(sizes: tuple[int, ...]) -> list[slice]:
    """Return the rows of each level."""
    ends = np.cumsum(sizes)
    return [slice(int(e) - s, int(e)) for s, e in zip(sizes, ends, strict=True)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", SIZES)
def test_bounds_hold_at_every_corner(sizes: tuple[int, ...]) -> None:
    given = problems(sizes)
    for corners in (1, 3, CORNERS):
        x = solved(sizes, given, corners=corners).x
        assert ((given.low <= x) & (x <= given.high)).all()


@pytest.mark.parametrize("sizes", SIZES)
def test_ways_end(sizes: tuple[int, ...]) -> None:
    assert solved(sizes, problems(sizes)).ended.mean() > 0.98


@pytest.mark.parametrize("sizes", SIZES)
def test_the_first_task_keeps_its_direction(sizes: tuple[int, ...]) -> None:
    given = problems(sizes)
    answer = solved(sizes, given)
    first = parts(sizes)[0]
    achieved = np.einsum("bij,bj->bi", given.J[:, first], answer.x)
    wanted = answer.scales[:, :1] * given.v[:, first]
    assert np.abs(achieved - wanted).max() < 1e-8
    assert 0 < (answer.scales[:, 0] < 1).mean() < 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sizes", [(4,), (6,), (3, 2)])
def test_each_task_goes_as_far_as_a_linear_program_finds(
    sizes: tuple[int, ...],
) -> None:
    given = problems(sizes)
    answer = solved(sizes, given)
    without = solved(
        sizes[:1],
        given._replace(J=given.J[:, : sizes[0]], v=given.v[:, : sizes[0]]),
        null=False,
    )
    for i in np.flatnonzero(answer.ended):
        held = np.zeros((0, N))
        ends = [*zip(given.low[i], given.high[i], strict=True), (0, 1)]
        for p, rows in enumerate(parts(sizes)):
            J = given.J[i, rows]
            start = J @ without.x[i] if p else np.zeros(len(J))
            change = given.v[i, rows] - start
            A = np.block([[held, np.zeros((len(held), 1))], [J, -change[:, None]]])
            b = np.concatenate([held @ answer.x[i], start])
            best = linprog([0] * N + [-1], A_eq=A, b_eq=b, bounds=ends)
            if p == 0 or without.ended[i]:
                assert best.x[-1] == pytest.approx(answer.scales[i, p], abs=1e-5)
            held = np.vstack([held, J])


@pytest.mark.parametrize("sizes", SIZES)
def test_the_rest_is_nearest_to_the_given_rates(sizes: tuple[int, ...]) -> None:
    given = problems(sizes)
    answer = solved(sizes, given)
    for i in np.flatnonzero(answer.ended):
        root, heavy = np.sqrt(given.w[i]), 1e6
        A = np.vstack([np.diag(root), heavy * given.J[i]])
        b = np.concatenate([root * given.r[i], heavy * given.J[i] @ answer.x[i]])
        slack = 1e-10
        ends = given.low[i] - slack, given.high[i] + slack
        best = lsq_linear(A, b, ends, method="bvls", tol=1e-14).x
        ours, theirs = (
            float(given.w[i] @ (x - given.r[i]) ** 2) for x in (answer.x[i], best)
        )
        assert ours <= theirs + 1e-3 * (1 + theirs)


def test_without_bounds_it_is_the_weighted_pseudo_inverse() -> None:
    given = problems((4,))
    x = solved((4,), given, bounds=False).x
    for i in range(COUNT):
        J, root = given.J[i], np.sqrt(given.w[i])
        inverse = np.linalg.pinv(J / root) / root[:, None]
        expected = given.r[i] + inverse @ (given.v[i] - J @ given.r[i])
        assert np.abs(x[i] - expected).max() < 1e-8


def test_it_is_the_core_of_velocity_control_with_weights_and_a_gradient() -> None:
    # qd = [J; N'W]^-1 [v; -N'F], N spanning the null space of J.
    given = problems((4,))
    F = given.r
    x = solved((4,), given._replace(r=-F / given.w), bounds=False).x
    for i in range(COUNT):
        J = given.J[i]
        N_J = np.linalg.svd(J)[2][4:].T
        whole = np.vstack([J, N_J.T * given.w[i]])
        right = np.concatenate([given.v[i], -N_J.T @ F[i]])
        assert np.abs(x[i] - np.linalg.solve(whole, right)).max() < 1e-8


def test_lower_levels_do_not_disturb_higher_ones() -> None:
    sizes = (3, 2)
    given = problems(sizes)
    alone = solved((3,), given._replace(J=given.J[:, :3], v=given.v[:, :3]))
    both = solved(sizes, given)
    assert np.abs(alone.scales[:, 0] - both.scales[:, 0]).max() < 1e-9
    first = given.J[:, :3]
    assert np.abs(np.einsum("bij,bj->bi", first, alone.x - both.x)).max() < 1e-8


def test_levels_without_bounds_are_nested_pseudo_inverses() -> None:
    given = problems((3, 2))
    x = solved(
        (3, 2), given._replace(w=np.ones((COUNT, N))), null=False, bounds=False
    ).x
    for i in range(COUNT):
        J1, J2 = given.J[i, :3], given.J[i, 3:]
        x1 = np.linalg.pinv(J1) @ given.v[i, :3]
        P = np.eye(N) - np.linalg.pinv(J1) @ J1
        expected = x1 + np.linalg.pinv(J2 @ P) @ (given.v[i, 3:] - J2 @ x1)
        assert np.abs(x[i] - expected).max() < 1e-8


def test_dependent_rows_are_met_as_well_as_they_can_be() -> None:
    given = problems((6,), rank=3)
    x = solved(
        (6,),
        given._replace(w=np.ones((COUNT, N))),
        damping=1e-3,
        null=False,
        bounds=False,
    ).x
    for i in range(COUNT):
        expected = np.linalg.pinv(given.J[i]) @ given.v[i]
        assert np.abs(x[i] - expected).max() < 1e-6 * (1 + np.abs(expected).max())


def test_plain_damping_is_damped_least_squares() -> None:
    given = problems((6,))
    x = solved(
        (6,),
        given._replace(w=np.ones((COUNT, N))),
        damping=0.3,
        sharp=0.0,
        null=False,
        bounds=False,
    ).x
    for i in range(COUNT):
        J = given.J[i]
        expected = J.T @ np.linalg.solve(J @ J.T + 0.09 * np.eye(6), given.v[i])
        assert np.abs(x[i] - expected).max() < 1e-9


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-7, 1e-3, 0.01, 0.03])
def test_rates_stay_bounded_towards_singularities(size: float) -> None:
    random = np.random.default_rng(1)
    J = random.normal(size=(COUNT, 6, N))
    U, S, V = np.linalg.svd(J)
    S[:, -1] = size
    given = problems((6,))._replace(
        J=U * S[:, None, :] @ V, w=np.ones((COUNT, N)), v=U[:, :, -1]
    )
    x = solved((6,), given, damping=0.01, null=False, bounds=False).x
    assert np.abs(np.linalg.norm(x, axis=1)).max() <= 1.74 / 0.01
    filtered = 1 - (0.01**2 / (size**2 + 0.01**2)) ** 8
    expected = filtered / size if size else 0.0
    assert np.linalg.norm(x, axis=1) == pytest.approx(expected, rel=1e-3, abs=0.01)


def test_the_three_evaluators_agree() -> None:
    given = Problems(*(array[:8] for array in problems((3, 2))))
    made = program((3, 2), corners=3)
    answers = [
        np.asarray(evaluate(made, *given, 1e-4, 1.0))
        for evaluate in (interpret, vectorize, lambda p, *a: compile(p)(*a))
    ]
    for other in answers[1:]:
        assert np.abs(answers[0] - other).max() < 1e-7
