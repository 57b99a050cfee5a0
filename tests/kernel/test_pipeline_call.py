"""Pipelines that call others, and that write entries of columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError, ShapeError
from armillary.kernel import pipeline_code
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import Callees, compile_pipeline
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kernel.stages import Call, Each, Stage, When, While
from armillary.kernel.tables import Table, code, index, reals, record
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

Array = np.ndarray
LANES = pytest.mark.parametrize("lanes", [1, 4, 8, 16])
TYPES = pytest.mark.parametrize("kind", ["float64", "float32"])
TERMS = Table("terms", (reals("factor", (2,)),))
JOBS = Table("jobs", (code("what"), index("entry", "entries")))
ENTRIES = 3


def program(formula: Any, output: str, **inputs: tuple[int, ...]) -> Program:
    return trace(formula, name=output, outputs=(output,), **inputs)


def polynomial() -> Pipeline:
    """Return y = sum of factor[0] x[0] + factor[1] x[1] of all terms, halved below 8.

    Each row takes its own number of turns.
    """
    terms = (
        program(lambda _: 0.0, "y", x=(2,)),
        Each("terms", (program(_term, "y", y=(), x=(2,), factor=(2,)),)),
        program(lambda y: abs(y) - 8.0, "large", y=()),
        While("large", (program(_half, "y", y=()), program(_large, "large", y=())), 50),
    )
    return Pipeline("polynomial", (Port("x", (2,)),), (TERMS,), terms, ("y",))


def _term(y: Any, x: Any, factor: Any) -> Any:
    return y + factor[0] * x[0] + factor[1] * x[1]


def _half(y: Any) -> Any:
    return 0.5 * y


def _large(y: Any) -> Any:
    return abs(y) - 8.0


def largest() -> Pipeline:
    """Return y = max x."""
    stage = program(lambda x: select(x[0] > x[1], x[0], x[1]), "y", x=(2,))
    return Pipeline("largest", (Port("x", (2,)),), (), (stage,), ("y",))


def expected(factors: list[Array], where: list[int], x: Array) -> Array:
    entries = np.stack([x * (k + 1) for k in range(ENTRIES)], axis=1)
    total = np.zeros(len(x))
    for factor, at in zip(factors, where, strict=True):
        here = entries[:, at]
        if len(factor):
            y = (here @ factor.T).sum(axis=1)
            for _ in range(50):
                y = np.where(abs(y) > 8.0, 0.5 * y, y)
        else:
            y = here.max(axis=1)
        total += np.where(here[:, 0] > 0.0, y, 0.0)
        entries[:, at] = entries[:, at] + 1.0
    return total


def caller() -> Pipeline:
    """Return the sum of what jobs return where their entry is above 0."""
    entries = program(
        lambda x: [[(k + 1) * a for a in x] for k in range(ENTRIES)], "entries", x=(2,)
    )
    job: tuple[Stage, ...] = (
        program(lambda entry: entry[0], "going", entry=(2,)),
        When(
            "going",
            (
                Call("what", ("entry",), (Port("value", ()),)),
                program(lambda s, y: s + y, "total", total=(), value=()),
            ),
        ),
        program(lambda entry: [a + 1.0 for a in entry], "entry", entry=(2,)),
    )
    stages = entries, program(lambda _: 0.0, "total", x=(2,)), Each("jobs", job)
    return Pipeline("caller", (Port("x", (2,)),), (JOBS,), stages, ("total",))


@pytest.fixture(params=["spliced", "called"])
def inline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put programs where they are used, or make each a function."""
    if request.param == "called":
        monkeypatch.setenv("ARMILLARY_CACHE", "off")
        monkeypatch.setattr(pipeline_code, "INLINE", -1)


@pytest.mark.sampled(4)
@LANES
@TYPES
def test_records_choose_what_is_called(lanes: int, kind: str, inline: None):
    rng = np.random.default_rng(lanes)
    sets = [rng.normal(size=(k, 2)) for k in (3, 1, 20)]
    many, one = callees(sets, kind, lanes)
    where = [2, 0, 1, 2]
    tables = {"what": [many.codes[0], one.codes[0], *many.codes[1:]], "entry": where}
    kernel = compile_pipeline(caller(), dtype=kind, lanes=lanes)(
        {"jobs": tables}, [many, one]
    )
    del many, one
    x = rng.normal(size=(57, 2))
    factors = [sets[0], np.zeros((0, 2)), *sets[1:]]
    tolerance = 1e-12 if kind == "float64" else 2e-4
    np.testing.assert_allclose(
        kernel(x), expected(factors, where, x), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        kernel._native.with_numpy()(x)[0],
        expected(factors, where, x),
        rtol=tolerance,
        atol=tolerance,
    )


def callees(sets: list[Array], kind: str, lanes: int) -> tuple[Callees, Callees]:
    starts = np.cumsum([0, *(len(each) for each in sets)])
    spans = np.stack([starts[:-1], np.diff(starts)], axis=1)
    made = {"dtype": np.dtype(kind), "lanes": lanes}
    tables = {"terms": {"factor": np.concatenate(sets)}}
    return (
        Callees.of(polynomial(), tables, {"terms": spans}, **made),
        Callees.of(largest(), {}, {}, **made),
    )


def test_codes_must_be_of_what_is_called():
    _, one = callees([np.ones((1, 2))], "float64", 4)
    other, _ = callees([np.ones((1, 2))], "float64", 4)
    code_ = compile_pipeline(caller(), lanes=4)
    jobs = {"what": one.codes, "entry": [0]}
    assert code_({"jobs": jobs}, [one])([1.0, 2.0]) == 2.0
    with pytest.raises(KernelError, match="not a code"):
        code_({"jobs": jobs}, [other])
    with pytest.raises(KernelError, match="same type and lanes"):
        compile_pipeline(caller(), lanes=8)({"jobs": jobs}, [one])


def test_a_kernel_that_calls_is_not_pickled():
    _, one = callees([np.ones((1, 2))], "float64", 4)
    kernel = compile_pipeline(caller(), lanes=4)(
        {"jobs": {"what": one.codes, "entry": [0]}}, [one]
    )
    with pytest.raises(KernelError, match="cannot be pickled"):
        pickle.dumps(kernel)


@LANES
def test_rows_that_a_region_leaves_alone_keep_their_entries(lanes: int, inline: None):
    entries = program(lambda x: [[k, *x] for k in range(ENTRIES)], "entries", x=(2,))
    table = Table("jobs", (index("entry", "entries"),))
    stages = (
        entries,
        program(lambda x: x[0], "going", x=(2,)),
        When(
            "going",
            (
                Each(
                    "jobs",
                    (program(lambda e: [a + 1.0 for a in e], "entry", entry=(3,)),),
                ),
            ),
        ),
    )
    pipeline = Pipeline("kept", (Port("x", (2,)),), (table,), stages, ("entries",))
    x = np.random.default_rng(lanes).normal(size=(37, 2))
    kernel = compile_pipeline(pipeline, lanes=lanes)({"jobs": {"entry": [2, 0, 2]}})
    added = np.array([1.0, 0.0, 2.0])[:, None] * (x[:, :1, None] > 0.0)
    given = np.stack([np.column_stack([np.full(37, k), x]) for k in range(3)], axis=1)
    np.testing.assert_allclose(kernel(x), given + added)
    np.testing.assert_allclose(kernel._native.with_numpy()(x)[0], given + added)


def test_a_call_needs_a_record_with_its_code():
    with pytest.raises(KernelError, match="no record around a call"):
        Pipeline(
            "caller",
            (Port("x", (2,)),),
            (JOBS,),
            (Call("what", ("x",), (Port("value", ()),)),),
            ("value",),
        )


def test_some_records_at_a_time():
    # Each record writes twice its number, plus x, to an entry.
    stage = program(lambda x, number: x + 2.0 * number, "place", x=(), number=())
    table = Table("jobs", (reals("number"), index("place", "places")))
    code = compile_pipeline(
        Pipeline(
            "jobs",
            (Port("x", ()),),
            (table,),
            (Each("jobs", (stage,)),),
            ("places",),
            (Port("places", (3,)),),
        )
    )
    records = {"number": np.arange(7.0), "place": np.arange(7) % 3}
    some = PipelineRecords.of(code, {"jobs": records}).by_record("jobs", "place")
    X = np.arange(10.0)
    assert some.whole(1.0).tolist() == [13.0, 9.0, 11.0]  # the last of each place
    for which in ([5, 0], [1, 6, 2]):
        kernel = some.of(np.array(which))
        found = kernel(X)[:, : len(which)]
        np.testing.assert_array_equal(found, X[:, None] + 2.0 * np.array(which))
        asked = some.ask(np.array(which), np.array(4.0))
        np.testing.assert_array_equal(asked[: len(which)], 4.0 + 2.0 * np.array(which))
    first = some.ask(np.array([3, 4]), np.array(0.0))
    some.ask(np.array([5]), np.array(0.0))
    assert first[:2].tolist() == [6.0, 8.0]  # which a later call has not written to
    with some.lock:  # as while another thread asks
        assert some.ask(np.array([3]), np.array(1.0))[0] == 7.0
    assert not some.lock.locked()
    with pytest.raises(KernelError, match="room for 3 records of 'jobs', not for 4"):
        some.ask(np.arange(4), np.array(1.0))
    assert not some.lock.locked()
    with pytest.raises(KernelError, match="room for 3 records of 'jobs', not for 4"):
        some.of(np.arange(4))


# records that callers give


def scaled() -> Pipeline:
    """Return y = gain (x[0] + 2 x[1]) + shift[0] - shift[1], of what callers give."""
    gain = Table("gain", (reals("gain"),), is_single=True)
    shift = Table("shift", (reals("shift", (2,)),), is_single=True)
    stage = program(_scaled, "y", x=(2,), gain=(), shift=(2,))
    return Pipeline(
        "scaled",
        (Port("x", (2,)),),
        (TERMS, gain, shift),
        (Each("gain", (Each("shift", (stage,)),)), Each("terms", (_added(),))),
        ("y",),
        given=("gain", "shift"),
    )


def _scaled(x: Any, gain: Any, shift: Any) -> Any:
    return gain * (x[0] + 2.0 * x[1]) + shift[0] - shift[1]


def _added() -> Program:
    return program(_term, "y", y=(), x=(2,), factor=(2,))


def giver() -> Pipeline:
    """Return the sum of what pairs return, each with records of two tables."""
    values = Table("values", (reals("first", (2,)), reals("others", (3,))))
    pairs = Table("pairs", (record("a", "values"), record("b", "values"), code("what")))
    pair = (
        Call("what", ("x",), (Port("value", ()),), ("a", "b")),
        program(lambda s, y: s + y, "total", total=(), value=()),
    )
    stages = program(lambda _: 0.0, "total", x=(2,)), Each("pairs", pair)
    return Pipeline("giver", (Port("x", (2,)),), (values, pairs), stages, ("total",))


@LANES
@TYPES
def test_calls_give_records(lanes: int, kind: str) -> None:
    rng = np.random.default_rng(lanes)
    factors, numbers = rng.normal(size=(3, 2)), rng.normal(size=(4, 5))
    made = {"dtype": np.dtype(kind), "lanes": lanes}
    terms = {"terms": {"factor": factors}}
    called = Callees.of(scaled(), terms, {"terms": [[0, 1], [1, 2]]}, **made)
    a, b, which = [3, 0, 1], [0, 2, 1], [0, 1, 1]
    code_ = compile_pipeline(giver(), dtype=kind, lanes=lanes)
    values = {"first": numbers[:, :2], "others": numbers[:, 2:]}
    pairs = {"a": a, "b": b, "what": called.codes[which]}
    kernel = code_({"values": values, "pairs": pairs}, [called])
    x = rng.normal(size=(37, 2))
    parts = [factors[:1], factors[1:]]
    total = sum(
        numbers[i, 0] * (x[:, 0] + 2.0 * x[:, 1])
        + numbers[j, 0]
        - numbers[j, 1]
        + (x @ parts[k].T).sum(axis=1)
        for i, j, k in zip(a, b, which, strict=True)
    )
    most = {"rtol": 1e-12, "atol": 1e-12}
    if kind == "float32":
        most = {"rtol": 2e-4, "atol": 2e-4}
    np.testing.assert_allclose(kernel(x), total, **most)
    np.testing.assert_allclose(kernel._native.with_numpy()(x)[0], total, **most)


def test_records_that_are_given_are_checked() -> None:
    made = {"dtype": np.dtype(np.float64), "lanes": 4}
    terms = {"terms": {"factor": np.ones((1, 2))}}
    called = Callees.of(scaled(), terms, {"terms": (0, 1)}, **made)
    code_ = compile_pipeline(giver(), lanes=4)
    values = {"first": np.ones((2, 2)), "others": np.ones((2, 3))}
    for a, fault in ((2, "has 2 entries"), (-1, "has 2 entries")):
        pairs = {"a": [a], "b": [0], "what": called.codes}
        with pytest.raises(KernelError, match=fault):
            code_({"values": values, "pairs": pairs}, [called])
    plain = Callees.of(largest(), {}, {}, **made)
    pairs = {"a": [0], "b": [0], "what": plain.codes}
    with pytest.raises(KernelError, match="gives records"):
        code_({"values": values, "pairs": pairs}, [plain])
    stage = Call("what", ("x",), (Port("value", ()),), ("c",))
    with pytest.raises(KernelError, match="has the record 'c'"):
        table = Table("pairs", (code("what"),))
        each = Each("pairs", (stage,))
        Pipeline("lost", (Port("x", (2,)),), (table,), (each,), ("value",))
    with pytest.raises(KernelError, match="must have one record"):
        Pipeline("many", (Port("x", (2,)),), (TERMS,), (), ("x",), given=("terms",))


def test_records_with_more_behind_them_are_those_of_all() -> None:
    rng = np.random.default_rng(0)
    made = {"dtype": np.dtype(np.float64), "lanes": 4}
    calls = [
        Callees.of(scaled(), {"terms": {"factor": f}}, {"terms": (0, len(f))}, **made)
        for f in rng.normal(size=(2, 3, 2))
    ]
    code_ = compile_pipeline(giver(), lanes=4)
    numbers, x = rng.normal(size=(4, 5)), rng.normal(size=(9, 2))

    def values(some: Array) -> dict[str, Any]:
        return {"first": some[:, :2], "others": some[:, 2:]}

    def pairs(a: list[int], which: int) -> dict[str, Any]:
        codes = np.repeat(calls[which].codes, len(a), axis=0)
        return {"a": np.array(a), "b": np.array(a[::-1]), "what": codes}

    few = PipelineRecords.of(
        code_, {"values": values(numbers[:2]), "pairs": pairs([0, 1], 0)}, calls[:1]
    )
    more = {"values": values(numbers[2:]), "pairs": pairs([1, 3], 1)}
    both = few.extended(more, calls[1:], moved={})
    expected = few.kernel()(x) + PipelineRecords.of(
        code_, {"values": values(numbers), "pairs": pairs([1, 3], 1)}, calls[1:]
    ).kernel()(x)
    np.testing.assert_allclose(both.kernel()(x), expected)
    # Other numbers in those behind, which the first pairs do not lead to.
    other = both.with_numbers({"values": values(2.0 * numbers[2:])})
    first = few.kernel()(x)
    again = few.extended(
        {**more, "values": values(2.0 * numbers[2:])}, calls[1:], moved={}
    )
    np.testing.assert_array_equal(other.kernel()(x), again.kernel()(x))
    assert not np.allclose(other.kernel()(x), both.kernel()(x))
    np.testing.assert_array_equal(few.kernel()(x), first)
    beyond = {**more, "pairs": pairs([1, 4], 1)}
    with pytest.raises(KernelError, match="4 entries"):
        few.extended(beyond, calls[1:], moved={})
    with pytest.raises(KernelError, match="not a code"):
        few.extended({"pairs": pairs([0, 1], 1)}, [], moved={})
    with pytest.raises(ShapeError, match="numbers of shape"):
        both.with_numbers(
            {"values": {"first": numbers[:, :1], "others": numbers[:, 2:]}}
        )


def test_positions_in_columns_that_moved_are_those_of_the_same_entries() -> None:
    stage = program(lambda x: x + 1.0, "place", x=())
    table = Table("jobs", (index("place", "places"),))
    code_ = compile_pipeline(
        Pipeline(
            "jobs",
            (Port("x", ()),),
            (table,),
            (Each("jobs", (stage,)),),
            ("places",),
            (Port("places", (5,)),),
        )
    )
    known = PipelineRecords.of(code_, {"jobs": {"place": [0, 2, 1]}})
    made = known.extended(
        {"jobs": {"place": np.array([1, 2])}}, [], moved={"places": (1, 2)}
    )
    assert made.tables["jobs"]["place"].tolist() == [0, 4, 3, 1, 2]
    assert made.kernel()(1.0).tolist() == [2.0] * 5
