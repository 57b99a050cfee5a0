"""Several records at once: the same as one by one, whatever a block of rows is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from armillary.errors import KernelError
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import Each, program
from armillary.kernel.tables import Table, chosen_index, index, reals
from armillary.trace import Port
from armillary.trace.functions import select, sin

Array = npt.NDArray[np.float64]

MOST = 21
STEPS = Table(
    "steps",
    (
        *(index("here", "pairs"), index("next", "pairs"), index("any", "pairs")),
        *(index("total_here", "totals"), index("total_next", "totals")),
        *(index("other", "others"), reals("weight", (2,))),
    ),
)
SEVERAL = "here", "next", "total_here", "total_next"


def walk(*, several: tuple[str, ...] = SEVERAL) -> Pipeline:
    """Return a pipeline that adds to numbers in place, and writes some of them twice.

    Entry k + 1 of `totals` is written by record k and, with the same number, by k + 1.
    """

    def values(pair: tuple[float, float], others: list[float]) -> float:
        return sin(pair[0] * others[0]) + pair[1] * others[1]

    totals = program(
        lambda here, next, factors: (values(here, factors), values(next, factors)),
        "total_here total_next",
        here=(2,),
        next=(2,),
        factors=(2,),
    )
    add = program(
        lambda total_here, any, other, weight: (
            total_here + any[0] * weight[0] + other[1] * weight[1]
        ),
        "total_here",
        total_here=(),
        any=(2,),
        other=(3,),
        weight=(2,),
    )
    move = program(
        lambda here, weight: [here[0] + weight[0], here[1] - weight[1]],
        "here",
        here=(2,),
        weight=(2,),
    )
    return Pipeline(
        "walk",
        (Port("pairs", (MOST + 1, 2)), Port("others", (5, 3)), Port("factors", (2,))),
        (STEPS,),
        (
            Each("steps", (totals,), several=several),
            Each("steps", (add,), several=several),
            Each("steps", (move,), several=several),
        ),
        ("totals", "pairs"),
        (Port("totals", (MOST + 1,)),),
    )


def records(count: int) -> dict[str, dict[str, Array]]:
    rng = np.random.default_rng(count)
    here = np.arange(count)
    fields = {
        "here": here,
        "next": here + 1,
        "any": rng.integers(0, MOST, count),
        "total_here": here,
        "total_next": here + 1,
        "other": rng.integers(0, 5, count),
        "weight": rng.normal(size=(count, 2)),
    }
    return {"steps": fields}


def rows(batch: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(7)
    shapes = (MOST + 1, 2), (5, 3), (2,)
    return [rng.normal(size=(*batch, *shape)) for shape in shapes]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, MOST])
@pytest.mark.parametrize("batch", [(), (1,), (3, 2)], ids=str)
def test_machine_code_is_the_reference(count: int, batch: tuple[int, ...]):
    given = rows(batch)
    for lanes in (1, None):
        kernel = compile_pipeline(walk(), lanes=lanes)(records(count))
        one_by_one = compile_pipeline(walk(several=()), lanes=lanes)(records(count))
        expected = evaluate(walk(), kernel.tables, *given)
        of_reference, pairs = expected
        for totals, moved in (kernel(*given), one_by_one(*given)):
            assert moved == pytest.approx(pairs, rel=1e-13, abs=1e-13)
            # entries of scratch behind these are never written
            written = slice(count + 1)
            right = of_reference[..., written]
            assert totals[..., written] == pytest.approx(right, rel=1e-13, abs=1e-13)


def test_rows_with_numbers_too_large_for_a_formula_are_computed_again():
    pairs, others, factors = rows((3,))
    pairs[1, 4, 0] = 3e9
    kernel = compile_pipeline(walk(), lanes=1)(records(9))
    totals, _ = kernel(pairs, others, factors)
    plain, _ = kernel(rows((3,))[0], others, factors)
    assert totals[[0, 2], :10] == pytest.approx(plain[[0, 2], :10], rel=1e-15)
    expected = evaluate(walk(), kernel.tables, pairs, others, factors)[0]
    assert totals[1, :10] == pytest.approx(expected[1, :10], rel=1e-13, abs=1e-13)


def test_what_cannot_run_at_once_is_refused():
    pipeline = walk()

    def with_each(each: Each) -> Pipeline:
        return replace(pipeline, stages=(each,), results=("pairs",))

    regions = [stage for stage in pipeline.stages if isinstance(stage, Each)]
    (totals,), (add,), (move,) = (each.stages for each in regions)
    with pytest.raises(KernelError, match="are indices of a record"):
        with_each(Each("steps", (totals,), several=(*SEVERAL, "weight")))
    with pytest.raises(KernelError, match="write entries of"):
        with_each(Each("steps", (add,), several=("here",)))
    with pytest.raises(KernelError, match="cannot run at once"):
        with_each(Each("steps", (totals,), together=True, several=SEVERAL))
    halve = program(lambda next: next[0] / 2.0, "total_here", next=(2,))
    with pytest.raises(KernelError, match="'next', an entry that another record"):
        with_each(Each("steps", (move, halve), several=SEVERAL))
    first = program(lambda pairs: pairs[0][1], "first", pairs=(MOST + 1, 2))
    with pytest.raises(KernelError, match="all of 'pairs'"):
        replace(pipeline, stages=(*pipeline.stages, first))
    tables = records(5)
    tables["steps"]["next"] = tables["steps"]["next"][::-1]
    with pytest.raises(KernelError, match="'next' of one is not one more"):
        compile_pipeline(pipeline, lanes=1)(tables)


# Entries that rows choose


CHOOSING = Table(
    "places",
    (
        *(index("before", "places"), index("place", "places")),
        *(index("picked", "sums"), reals("position")),
        chosen_index("next_start", "starts", "before"),
        *(chosen_index("own", "pairs", "place"), chosen_index("end", "pairs", "place")),
    ),
)


def choosing(*, several: bool) -> Pipeline:
    """Return a pipeline that finds where numbers lie between `starts`, and looks up.

    The next start is one ahead of the place before, and `end` two ahead of the place.
    """
    find = program(
        lambda before, next_start, position: (
            before + select(next_start <= position, 1.0, 0.0)
        ),
        "place",
        before=(),
        next_start=(),
        position=(),
    )
    look = program(
        lambda own, end: own[0] + 10.0 * end[1], "picked", own=(2,), end=(2,)
    )
    fields = ("picked",) if several else ()
    return Pipeline(
        "choosing",
        (Port("starts", (5,)), Port("pairs", (5, 2)), Port("first", ())),
        (CHOOSING, Table("begin", (index("begun", "places"),), is_single=True)),
        (
            Each("begin", (program(lambda first: first, "begun", first=()),)),
            Each("places", (find,)),
            Each("places", (look,), several=fields),
        ),
        ("places", "sums"),
        (Port("places", (12,)), Port("sums", (11,))),
    )


def chosen_records() -> dict[str, dict[str, Array]]:
    here = np.arange(11)
    fields = {
        **{"before": here, "place": here + 1, "picked": here, "position": here + 0.0},
        **{"next_start": here * 0 + 1, "own": here * 0, "end": here * 0 + 2},
    }
    return {"places": fields, "begin": {"begun": np.array([0])}}


@pytest.mark.parametrize("several", [True, False])
def test_each_row_chooses_its_entries(*, several: bool):
    rng = np.random.default_rng(3)
    starts = np.cumsum(rng.uniform(0.6, 3.0, size=(6, 5)), axis=-1)
    starts[:, 0], starts[:, -1] = -1.0, 20.0
    pairs = rng.normal(size=(6, 5, 2))
    # before, behind, between, and no place at all
    first = np.array([0.0, -3.0, 40.0, 0.7, np.nan, 1.0])
    pipeline = choosing(several=several)
    kernel = compile_pipeline(pipeline, lanes=1)(chosen_records())
    places, sums = kernel(starts, pairs, first)
    right_places, right_sums = evaluate(pipeline, kernel.tables, starts, pairs, first)
    np.testing.assert_array_equal(places, right_places)
    assert sums == pytest.approx(right_sums, rel=1e-14)
    inner = np.searchsorted(starts[0, 1:], np.arange(11.0), side="right")
    np.testing.assert_array_equal(places[0, 1:], inner)
    own, end = pairs[0, inner, 0], pairs[0, np.minimum(inner + 2, 4), 1]
    assert sums[0] == pytest.approx(own + 10.0 * end, rel=1e-14)


def test_rows_that_choose_entries_are_computed_one_at_a_time():
    with pytest.raises(KernelError, match="compile it with lanes=1"):
        compile_pipeline(choosing(several=True), lanes=4)


def test_what_chooses_is_one_number_of_the_same_table():
    pipeline = choosing(several=True)
    for by in ("own", "begun"):
        fields = (*CHOOSING.fields[:-1], chosen_index("end", "pairs", by))
        table = Table(CHOOSING.name, fields)
        with pytest.raises(KernelError, match="what chooses 'end'"):
            replace(pipeline, tables=(table, *pipeline.tables[1:]))
