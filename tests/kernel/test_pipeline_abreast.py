"""Records of a row in lanes: machine code, the reference, and the same with `Each`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.compiler import kernel_text
from armillary.kernel.javascript import pipeline_function
from armillary.kernel.machine_type import F64
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import (
    Abreast,
    Each,
    Farthest,
    Stage,
    When,
    While,
    program,
)
from armillary.kernel.tables import Table, index, reals, span
from armillary.trace import Port
from armillary.trace.functions import select, sin

COUNT = 11
TERMS = Table(
    "terms", (reals("weight", (2,)), index("term", "terms_of"), index("out", "sums"))
)
MORE = Table("more", (reals("shift"),))
TABLES = {
    "terms": {
        "weight": np.random.default_rng(1).normal(size=(COUNT, 2)),
        "term": np.arange(COUNT),
        "out": np.arange(COUNT)[::-1],
    },
    "more": {"shift": [0.3, -0.2, 0.5]},
}


def terms(*, refilled: bool = False) -> Pipeline:
    """Return sums that differ by term, of rows whose second number is above 0.

    A term is halved until it is small, which takes lanes different times.

    refilled: Whether lanes take other terms then; all terms run.
    """
    begin = program(
        lambda x: (
            [[x[0] + k, x[1] * k] for k in range(COUNT)],
            [sin(3.0 * k + x[2]) for k in range(COUNT)],
            x[1],
            [0.0] * COUNT,
        ),
        "terms_of wanted going sums",
        x=(3,),
    )
    start = program(
        lambda term, weight, x: (term[0] * weight[0] + x[2] * weight[1], 0.0, 1.0),
        "value turns active",
        term=(2,),
        weight=(2,),
        x=(3,),
    )
    halve = program(
        lambda value, turns: (
            0.5 * value,
            turns + 1.0,
            select(value * value > 0.1, 1.0, 0.0),
        ),
        "value turns active",
        value=(),
        turns=(),
    )
    add = program(lambda value, shift: value + shift, "value", value=(), shift=())
    finish = program(
        lambda value, turns, term: (value + turns, [term[0], term[1] + 1.0]),
        "out term",
        value=(),
        turns=(),
        term=(2,),
    )
    inner: tuple[Stage, ...] = (
        start,
        While("active", (halve,), limit=20),
        Each("more", (add,)),
        finish,
    )
    chosen = "" if refilled else "wanted"
    region = Abreast("terms", inner, chosen=chosen, refilled=refilled)
    stages = begin, When("going", (region,))
    return Pipeline(
        "terms", (Port("x", (3,)),), (TERMS, MORE), stages, ("sums", "terms_of")
    )


def rows() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(29, 3))
    x[5] = x[4]  # as padding is
    x[9, 0] = np.nan
    return x


@pytest.mark.parametrize("refilled", [False, True])
@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_code_is_the_reference_whatever_the_lanes(lanes: int, refilled: bool):
    pipeline = terms(refilled=refilled)
    kernel = compile_pipeline(pipeline, lanes=lanes)(TABLES)
    x = rows()
    wanted = evaluate(pipeline, kernel._native.tables, x)
    found = kernel(x)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)
    assert (found[0] != 0.0).any() and (found[0] == 0.0).any()
    for k, row in enumerate(x):
        for a, b in zip(kernel(row), found, strict=True):
            np.testing.assert_array_equal(a, b[k])


def test_records_may_be_fewer_than_they_are_chosen_from():
    few = {name: value[:3] for name, value in TABLES["terms"].items()}
    kernel = compile_pipeline(terms())({**TABLES, "terms": few})
    x = rows()
    wanted = evaluate(terms(), kernel._native.tables, x)
    np.testing.assert_allclose(kernel(x)[0], wanted[0], rtol=0, atol=1e-14)
    none = {name: value[:0] for name, value in few.items()}
    kernel = compile_pipeline(terms())({**TABLES, "terms": none})
    assert (kernel(x)[0] == 0.0).all()


def test_entries_that_are_only_written_can_be_packed():
    """As many as run, in order; what is read is at its own place."""
    table = Table("some", (index("a", "x"), index("b", "y")))
    begin = program(lambda x: ([x[0]] * 7, [0.0] * 7), "sign y", x=(7,))
    write = program(lambda a: (a + 0.5, 2.0 * a), "a b", a=())
    region = Abreast("some", (write,), chosen="x", packed=True)
    ports = (Port("x", (7,)),)
    pipeline = Pipeline("p", ports, (table,), (begin, region), ("x", "y"))
    rows_of = {"a": np.arange(7), "b": np.arange(7)}
    kernel = compile_pipeline(pipeline)({"some": rows_of})
    x = np.array([[-1.0, 2.0, 3.0, 0.0, 5.0, -2.0, 1.0], [1.0] * 7, [-1.0] * 7])
    found = kernel(x)
    np.testing.assert_array_equal(found[0], np.where(x > 0.0, x + 0.5, x))
    np.testing.assert_array_equal(found[1][0], [4.0, 6.0, 10.0, 2.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(found[1][1:], [[2.0] * 7, [0.0] * 7])
    for a, b in zip(found, evaluate(pipeline, kernel._native.tables, x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_columns_of_the_row_are_not_written_by_its_records():
    write = program(lambda x, shift: x + shift, "x", x=(), shift=())
    with pytest.raises(KernelError, match="'x' is written for each record of 'more'"):
        Pipeline("p", (Port("x", ()),), (MORE,), (Abreast("more", (write,)),), ("x",))


def test_fields_are_numbers_or_indices():
    tables = Table("ranges", (span("some", "more"),)), MORE
    write = program(lambda x: x + 1.0, "y", x=())
    with pytest.raises(KernelError, match="'some' is of the kind 'span'"):
        Pipeline("p", (Port("x", ()),), tables, (Abreast("ranges", (write,)),), ("x",))


def test_a_choice_has_a_number_for_each_record():
    write = program(lambda x: x + 1.0, "y", x=())
    region = Abreast("more", (write,), chosen="x")
    with pytest.raises(KernelError, match="'x' has not one number for each record"):
        Pipeline("p", (Port("x", ()),), (MORE,), (region,), ("x",))


def test_lanes_are_refilled_where_all_records_run_a_loop():
    write = program(lambda x: x + 1.0, "y", x=())
    region = Abreast("more", (write,), refilled=True)
    with pytest.raises(KernelError, match="lanes of 'more' are refilled"):
        Pipeline("p", (Port("x", ()),), (MORE,), (region,), ("x",))


@pytest.mark.parametrize(
    ("lanes", "features", "name"),
    [(4, "+avx,+avx2", "avx2.permps"), (8, "+avx512f", "avx512.permvar")],
)
def test_rows_share_lanes_where_an_instruction_permutes_them(
    lanes: int, features: str, name: str
):
    for refilled in (False, True):
        pipeline = terms(refilled=refilled)
        assert name in kernel_text(pipeline, F64.wide(lanes), features)
        assert name not in kernel_text(pipeline, F64.wide(lanes), "+sse2")


def test_records_of_many_rows_are_those_of_each_row_alone():
    """Also those of rows that no record of is chosen, and of rows that are repeated."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(41, 3))
    x[7:12] = x[6]
    x[20:30, 1] = -1.0
    for refilled in (False, True):
        kernel = compile_pipeline(terms(refilled=refilled))(TABLES)
        found = kernel(x)
        for k, row in enumerate(x):
            for a, b in zip(kernel(row), found, strict=True):
                np.testing.assert_array_equal(a, b[k])


SOME = Table("some", (reals("size"), index("out", "sums"), index("entry", "numbers")))
CORNERS = Table("corners", (reals("points", (3, 2)),))
RECORDS = {
    "some": {
        "size": 10.0 ** np.arange(7.0, 7.0 + COUNT),
        "out": np.arange(COUNT),
        "entry": np.arange(COUNT),
    },
    "corners": {"points": np.random.default_rng(2).uniform(9.0, 99.0, (1, 3, 2))},
}


def of_records(*stages: Stage, refilled: bool) -> Pipeline:
    """Return the entries that records write of `sums` and `numbers`."""
    begin = program(
        lambda x: ([0.0 * x[0]] * COUNT, [9.0 + x[0] * k for k in range(COUNT)]),
        "sums numbers",
        x=(3,),
    )
    region = Abreast("some", stages, refilled=refilled)
    ports, tables = (Port("x", (3,)),), (SOME, CORNERS)
    return Pipeline("some", ports, tables, (begin, region), ("sums", "numbers"))


def check_reference(pipeline: Pipeline, lanes: int) -> None:
    kernel = compile_pipeline(pipeline, lanes=lanes)(RECORDS)
    x = np.abs(np.random.default_rng(0).normal(size=(23, 3)))
    wanted = evaluate(pipeline, kernel._native.tables, x)
    for a, b in zip(kernel(x), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=0)


def test_what_lanes_would_flag_in_the_middle_of_a_loop_does_not_count():
    """Rows with sines of large numbers are computed again; here none is large."""
    begin = program(lambda x, size: (x[0] * size, 1.0), "value on", x=(3,), size=())
    halve = program(
        lambda value: (0.5 * value, select(value > 4.0, 1.0, 0.0)),
        "value on",
        value=(),
    )
    end = program(lambda value: 2.0 * sin(value), "out", value=())
    stages = begin, While("on", (halve,), limit=200), end
    rows = list[Any]()

    def again(x: Any) -> Any:
        rows.append(x)
        return evaluate(pipeline, kernel._native.tables, x)

    x = np.random.default_rng(0).uniform(1.0, 2.0, (23, 3))
    for refilled in (False, True):
        pipeline = of_records(*stages, refilled=refilled)
        kernel = compile_pipeline(pipeline)(RECORDS).with_flagged_rows(again)
        found, _ = kernel(x)
        assert (found != 0.0).all()
    assert not rows


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("refilled", [False, True])
def test_what_a_search_finds_is_for_the_lanes_that_begin(refilled: bool, lanes: int):
    aim = program(lambda x, size: ([x[1], x[2], size], 1.0), "way on", x=(3,), size=())
    halve = program(
        lambda p, size: ([0.5 * k for k in p], select(p[2] * size > 1e9, 1.0, 0.0)),
        "p on",
        p=(3,),
        size=(),
    )
    end = program(lambda p: p[0] + 2.0 * p[1] + 3.0 * p[2], "out", p=(3,))
    search = Farthest("corners", "points", "way", Port("p", (3,)))
    stages = aim, search, While("on", (halve,), limit=200), end
    check_reference(of_records(*stages, refilled=refilled), lanes)


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("refilled", [False, True])
def test_entries_that_a_loop_writes_stay_where_it_has_ended(refilled: bool, lanes: int):
    begin = program(lambda x: 1.0 + 0.0 * x[0], "on", x=(3,))
    halve = program(
        lambda entry: (0.5 * entry, select(entry > 1.0, 1.0, 0.0)),
        "entry on",
        entry=(),
    )
    stages = begin, While("on", (halve,), limit=200)
    check_reference(of_records(*stages, refilled=refilled), lanes)


def test_it_has_no_javascript():
    with pytest.raises(KernelError, match="abreast"):
        pipeline_function(terms(), TABLES, "f")
