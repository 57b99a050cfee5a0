"""Pipelines that call others, and that write entries of columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel import pipeline_code
from armillary.kernel.pipeline import Call, Each, Pipeline, Stage, When, While
from armillary.kernel.pipeline_kernel import Callees, compile_pipeline
from armillary.kernel.tables import Table, code, index, reals
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
