"""Records that run abreast: the same as one by one, whatever a block of rows is."""

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
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Port
from armillary.trace.functions import sin

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
ABREAST = "here", "next", "total_here", "total_next"


def walk(*, abreast: tuple[str, ...] = ABREAST) -> Pipeline:
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
            Each("steps", (totals,), abreast=abreast),
            Each("steps", (add,), abreast=abreast),
            Each("steps", (move,), abreast=abreast),
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
        one_by_one = compile_pipeline(walk(abreast=()), lanes=lanes)(records(count))
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


def test_what_cannot_run_abreast_is_refused():
    pipeline = walk()

    def with_each(each: Each) -> Pipeline:
        return replace(pipeline, stages=(each,), results=("pairs",))

    regions = [stage for stage in pipeline.stages if isinstance(stage, Each)]
    (totals,), (add,), (move,) = (each.stages for each in regions)
    with pytest.raises(KernelError, match="are indices of a record"):
        with_each(Each("steps", (totals,), abreast=(*ABREAST, "weight")))
    with pytest.raises(KernelError, match="write entries of"):
        with_each(Each("steps", (add,), abreast=("here",)))
    with pytest.raises(KernelError, match="cannot run abreast"):
        with_each(Each("steps", (totals,), together=True, abreast=ABREAST))
    halve = program(lambda next: next[0] / 2.0, "total_here", next=(2,))
    with pytest.raises(KernelError, match="'next', an entry that another record"):
        with_each(Each("steps", (move, halve), abreast=ABREAST))
    first = program(lambda pairs: pairs[0][1], "first", pairs=(MOST + 1, 2))
    with pytest.raises(KernelError, match="all of 'pairs'"):
        replace(pipeline, stages=(*pipeline.stages, first))
    tables = records(5)
    tables["steps"]["next"] = tables["steps"]["next"][::-1]
    with pytest.raises(KernelError, match="'next' of a record is not one more"):
        compile_pipeline(pipeline, lanes=1)(tables)
