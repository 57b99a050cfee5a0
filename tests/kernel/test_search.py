"""The native search: every problem ends, alone or among others, with the same bits."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from armillary.kernel import compiler, seed_table
from armillary.kernel import search as search_module
from armillary.kernel.machine_type import F64
from armillary.kernel.search import (
    Search,
    SearchOptions,
    SearchPlan,
    SearchResult,
    deadline_of,
    make_plan,
)
from armillary.kernel.search_code import search_code
from armillary.kernel.search_layout import (
    INVALID,
    SOLVED,
    STOPPED,
    UNSOLVED,
    SearchLayout,
)
from armillary.kernel.seed_table import SeedTable, make_seed_table
from armillary.trace import Program, trace
from armillary.trace.functions import select

SCALES = (1.0, 1.0, 1.0)


def _step() -> Program:
    """Return Newton's step for x^2 = a, y^2 = b, z^2 = c."""

    def equations(x: Any, square: Any) -> Any:
        off = [u * u - s for u, s in zip(x, square, strict=True)]
        new = [u - e / (2.0 * u) for u, e in zip(x, off, strict=True)]
        return new, [sum((e * e for e in off), 0.0)]

    return trace(equations, name="roots", outputs=("x", "error"), x=(3,), square=(3,))


def _guard() -> Program:
    """Let numbers below 1000 pass."""
    return trace(
        lambda square: select(square[0] < 1000.0, 1.0, 0.0), name="guard", square=(3,)
    )


@pytest.fixture(scope="module")
def search() -> Search:
    return Search(_step(), _guard(), SCALES)


@pytest.fixture(scope="module")
def table() -> SeedTable:
    x = np.random.default_rng(0).uniform(0.1, 10.0, (2000, 3))
    return make_seed_table(x * x, x, (0, 1, 2), np.array(SCALES), 20)


@pytest.fixture(scope="module")
def plan(table: SeedTable) -> SearchPlan:
    return _plan(table)


def _plan(
    table: SeedTable, constants: np.ndarray | None = None, **search_options: Any
) -> SearchPlan:
    return make_plan(
        table=table,
        tolerances=np.array([1e-18]),
        lower=np.full(3, 0.1),
        upper=np.full(3, 10.0),
        search_options=SearchOptions(**search_options),
        constants=constants,
    )


def _problems(count: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.5, 90.0, (count, 3))


def _same(a: SearchResult, b: SearchResult) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for name in ("unknowns", "errors", "endings")
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1001])
def test_every_problem_is_solved(search: Search, plan: SearchPlan, count: int):
    problems = _problems(count)
    found = search(problems, plan)
    assert found.failures == 0
    assert (found.endings[:, 0] == SOLVED).all()
    assert found.unknowns**2 == pytest.approx(problems, abs=1e-8)
    assert (found.errors <= 1e-18).all()


def test_answers_do_not_depend_on_order_or_threads(
    search: Search, plan: SearchPlan, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search_module, "PROBLEMS_PER_THREAD", 10)
    problems = _problems(500)
    straight = search(problems, plan)
    backwards = search(np.ascontiguousarray(problems[::-1]), plan)
    assert np.array_equal(backwards.unknowns[::-1], straight.unknowns)
    assert _same(search(problems, plan, threads=3), straight)


def test_rows_may_lie_apart(search: Search, plan: SearchPlan):
    problems = _problems(50)
    wide = np.hstack([problems, np.full((50, 2), np.nan)])
    assert _same(search(wide, plan), search(problems, plan))


def test_what_makes_no_sense_is_refused_alone(search: Search, plan: SearchPlan):
    problems = _problems(9)
    problems[2, 1] = np.nan
    problems[5, 2] = np.inf
    problems[8, 0] = 1e4
    found = search(problems, plan)
    assert list(np.flatnonzero(found.endings[:, 0] == INVALID)) == [2, 5, 8]
    assert found.failures == 3
    assert np.isnan(found.unknowns[[2, 5, 8]]).all()
    assert np.isnan(found.errors[[2, 5, 8]]).all()
    assert (np.delete(found.endings[:, 0], [2, 5, 8]) == SOLVED).all()


@pytest.mark.parametrize("count", [1, 6])
def test_what_has_no_answer_ends_with_the_nearest(
    search: Search, table: SeedTable, count: int
):
    problems = np.tile([4.0, 9.0, -1.0], (count, 1))
    found = search(problems, _plan(table, starts=5))
    assert (found.endings[:, 0] == UNSOLVED).all()
    assert (found.endings[:, 2] >= 5).all()
    assert found.failures == count
    assert np.isfinite(found.unknowns).all()
    left = ((found.unknowns**2 - problems) ** 2).sum(axis=1)
    assert found.errors[:, 0] == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize("count", [1, 6])
def test_late_starts_end_where_their_error_is_still(table: SeedTable, count: int):
    """Its least error is 1, which it comes nearer by a quarter in each step."""

    def to_the_middle(x: Any, middle: Any) -> Any:
        new = [0.5 * (u + c) for u, c in zip(x, middle, strict=True)]
        off = [u - c for u, c in zip(x, middle, strict=True)]
        return new, [1.0 + sum((d * d for d in off), 0.0)]

    ports = {"x": (3,), "middle": (3,)}
    step = trace(to_the_middle, name="still", outputs=("x", "error"), **ports)
    search, problems = Search(step, _guard(), SCALES), np.full((count, 3), 5.0)
    options = {"patient_after": 0, "starts": 1, "patient_steps": 20}
    steps = [
        search(
            problems, _plan(table, patient_change=change, steps=least, **options)
        ).endings
        for change, least in ((0.0, 2), (1e-3, 2), (1e-3, 15))
    ]
    assert [(each[:, 0] == UNSOLVED).all() for each in steps] == [True] * 3
    never, soon, late = (each[:, 1].tolist() for each in steps)
    assert never == [20] * count
    assert late == [15] * count
    assert all(2 < k < 15 for k in soon)


def test_the_first_start_is_the_given_one(search: Search, table: SeedTable):
    problems = _problems(20)
    roots = np.sqrt(problems)
    found = search(problems, _plan(table), seeds=-roots)
    assert found.unknowns == pytest.approx(-roots)
    assert (found.endings[:, 1:] == 1).all()


def test_table_starts_come_nearest_first(search: Search, table: SeedTable):
    """A search that may not move ends at the entry that it started from."""
    problems = _problems(40)
    still = _plan(table, starts=1, steps=1, table_starts=1)
    entries = table.starts[~np.isnan(table.starts[:, 0])]
    first = search(problems, still).unknowns
    levels = seed_table.levels_of(np.array(SCALES))
    rounding = 3.0 * 100.0 / levels  # of features, in three directions
    inverse, origin = table.grid[3], table.grid[:3]
    for problem, start in zip(problems, first, strict=True):
        same = np.floor((entries**2 - origin) * inverse) == np.floor(
            (problem - origin) * inverse
        )
        near = entries[same.all(axis=1)]
        best = np.sqrt(((near**2 - problem) ** 2).sum(axis=1).min(initial=math.inf))
        if np.isfinite(best):
            assert np.linalg.norm(start**2 - problem) <= best + 2.0 * rounding


def test_a_chain_goes_on_from_the_answer_before(search: Search, plan: SearchPlan):
    a = np.linspace(1.0, 50.0, 200)
    problems = np.stack([a, a, a], axis=1)
    found = search.chain(problems, plan, np.array([1.0, -1.0, 1.0]))
    assert found.failures == 0
    assert np.array_equal(np.sign(found.unknowns), np.tile([1, -1, 1], (200, 1)))


def test_a_chain_goes_on_from_the_last_one_solved(search: Search, plan: SearchPlan):
    problems = np.tile([4.0, 9.0, 16.0], (5, 1))
    problems[1, 0] = np.nan
    problems[3, 2] = -1.0
    found = search.chain(problems, plan, np.array([2.0, -3.0, 4.0]))
    assert list(found.endings[:, 0]) == [SOLVED, INVALID, SOLVED, UNSOLVED, SOLVED]
    expected = np.tile([2.0, -3.0, 4.0], (3, 1))
    assert found.unknowns[[0, 2, 4]] == pytest.approx(expected)


def test_a_grid_of_one_place_works(search: Search):
    one = np.tile([4.0, 4.0, 4.0], (100, 1))
    plan = _plan(make_seed_table(one, np.sqrt(one), (0, 1, 2), np.array(SCALES), 20))
    assert search(_problems(10), plan).failures == 0


LANES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("sizes", [(3, 3, 0, 1), (7, 12, 5, 2), (1, 1, 1, 1)])
def test_vectors_are_aligned(lanes: int, sizes: tuple[int, ...]):
    """Programs read whole vectors, with instructions that trap elsewhere."""
    state = SearchLayout(*sizes, lanes).state
    vector = 8 * lanes
    for field, kind in state.kinds.items():
        assert state.offsets[field] % kind.bytes == 0, field
    programs = ("here", "there", "parameters", "shared", "errors", "verdict")
    assert all(state.offsets[field] % vector == 0 for field in programs)
    assert state.align % vector == 0


@pytest.mark.parametrize("lanes", LANES)
def test_any_number_of_lanes_finds_the_answers(
    table: SeedTable, plan: SearchPlan, monkeypatch: pytest.MonkeyPatch, lanes: int
):
    monkeypatch.setattr(compiler, "native_reals", lambda bits: F64.wide(lanes))
    search = Search(_step(), _guard(), SCALES)
    assert search.lanes == lanes
    problems = _problems(67)
    for count in (1, 67):
        found = search(problems[:count], plan)
        assert found.failures == 0
        assert found.unknowns**2 == pytest.approx(problems[:count], abs=1e-8)


@pytest.mark.parametrize("lanes", LANES)
def test_lanes_that_share_a_problem_find_what_one_would(
    table: SeedTable, monkeypatch: pytest.MonkeyPatch, lanes: int
):
    """The answer is that of the first good start, however many are tried at once."""
    monkeypatch.setattr(compiler, "native_reals", lambda bits: F64.wide(lanes))
    search = Search(_step(), _guard(), SCALES)
    problems = _problems(30)
    problems[3] = 4.0, 9.0, -1.0  # without an answer
    problems[4, 1] = np.nan
    seeds = np.random.default_rng(2).uniform(-9.0, 9.0, problems.shape)
    for options in (
        {},
        {"table_starts": 0},
        {"steps": 4, "stale_from": 2},
        {"steps": 3, "starts": 5},
        {"starts": 2},
    ):
        plan = _plan(table, **options)
        for first in (None, seeds):
            together = search(problems, plan, seeds=first)
            for k in range(len(problems)):
                one = slice(k, k + 1)
                part = None if first is None else first[one]
                alone = search(problems[one], plan, seeds=part)
                assert _same(alone, together.at(np.array([k])))
                assert alone.failures == (alone.endings[0, 0] != SOLVED)


def test_other_registers_have_code_too(table: SeedTable, plan: SearchPlan):
    """What Arm, SSE2 and AVX-512 would run is accepted by LLVM, with generic code."""
    import llvmlite.binding as llvm

    for lanes in (1, 2, 8, 16):
        for avx2 in (True, False):
            text = search_code(
                _step(), _guard(), lanes, pairs=2, levels=3000, avx2=avx2
            )
            llvm.parse_assembly(text).verify()


def test_generic_squares_equal_those_of_the_instruction(
    search: Search, plan: SearchPlan, monkeypatch: pytest.MonkeyPatch
):
    def generic(*programs: Any, **options: Any) -> str:
        return search_code(*programs, **{**options, "avx2": False})

    problems = _problems(100)
    monkeypatch.setattr("armillary.kernel.search_code.search_code", generic)
    monkeypatch.setenv("ARMILLARY_CACHE", "off")  # it knows the instruction's code
    other = Search(_step(), _guard(), SCALES)
    assert _same(other(problems, plan), search(problems, plan))


@pytest.mark.parametrize("count", [1, 6, 1001])
@pytest.mark.parametrize("seconds", [1e-4, 0.02])
def test_a_deadline_ends_a_search(
    search: Search, table: SeedTable, count: int, seconds: float
):
    problems = np.tile([4.0, 9.0, -1.0], (count, 1))
    endless = _plan(table, starts=10**9)
    deadline = deadline_of(seconds)
    found = search(problems, endless, deadline=deadline)
    assert time.monotonic_ns() >= deadline
    assert (found.endings[:, 0] == STOPPED).all()
    assert found.failures == count
    tried = found.endings[:, 2] > 0
    assert tried[: min(count, search.lanes)].all()
    assert np.isfinite(found.unknowns[tried]).all()
    assert np.isnan(found.unknowns[~tried]).all()
    left = ((found.unknowns**2 - problems) ** 2).sum(axis=1)
    assert found.errors[tried, 0] == pytest.approx(left[tried], rel=1e-9)


def test_a_deadline_is_kept_where_the_system_has_no_clock_gettime(
    search: Search, table: SeedTable, monkeypatch: pytest.MonkeyPatch
):
    def nothing(name: object) -> object:
        raise OSError(name)

    monkeypatch.setattr(search_module.ctypes, "CDLL", nothing)
    search_module.clock.cache_clear()
    endless = _plan(table, starts=10**9)
    problems = np.tile([4.0, 9.0, -1.0], (6, 1))
    deadline = deadline_of(0.01)
    found = search(problems, endless, deadline=deadline)
    assert time.monotonic_ns() >= deadline
    assert (found.endings[:, 0] == STOPPED).all()
    search_module.clock.cache_clear()


def test_a_stopped_search_keeps_the_nearest_of_all_lanes(
    search: Search, plan: SearchPlan
):
    """The first lane starts far away, and all stop after one step."""
    if search.lanes == 1:
        pytest.skip("there is one lane")
    problem, seed = np.array([[4.0, 9.0, 16.0]]), np.full((1, 3), 100.0)
    found = search(problem, plan, seeds=seed, deadline=1)
    assert found.endings[0, 0] == STOPPED
    assert np.abs(found.unknowns).max() < 20.0


def test_a_deadline_that_is_not_reached_changes_nothing(
    search: Search, plan: SearchPlan
):
    problems = _problems(100)
    found = search(problems, plan, deadline=deadline_of(60.0))
    assert _same(found, search(problems, plan))


def test_a_chain_keeps_its_deadline(search: Search, table: SeedTable):
    problems = np.tile([4.0, 9.0, 16.0], (5, 1))
    problems[2, 2] = -1.0
    endless = _plan(table, starts=10**9)
    found = search.chain(
        problems, endless, np.array([2.0, 3.0, 4.0]), deadline=deadline_of(0.1)
    )
    assert list(found.endings[:, 0]) == [SOLVED, SOLVED, STOPPED, STOPPED, STOPPED]


@pytest.mark.parametrize("count", [1, 6, 1001])
def test_constants_are_those_of_the_plan(table: SeedTable, count: int):
    """One search solves x^2 = a + c for any c."""

    def equations(x: Any, square: Any, more: Any) -> Any:
        wanted = [s + c for s, c in zip(square, more, strict=True)]
        off = [u * u - w for u, w in zip(x, wanted, strict=True)]
        new = [u - e / (2.0 * u) for u, e in zip(x, off, strict=True)]
        return new, [sum((e * e for e in off), 0.0)]

    step = trace(
        equations,
        name="roots",
        outputs=("x", "error"),
        x=(3,),
        square=(3,),
        more=(3,),
    )
    search = Search(step, _guard(), SCALES)
    problems = _problems(count)
    for more in ([0.0, 0.0, 0.0], [1.0, 20.0, 3.0]):
        found = search(problems, _plan(table, np.array(more)))
        assert found.failures == 0
        assert found.unknowns**2 == pytest.approx(problems + more, abs=1e-8)
