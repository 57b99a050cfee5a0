"""Intervals that are covered piece by piece: machine code, the reference, and laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.javascript import pipeline_function
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import Each, Stage, Subdivide, When
from armillary.kernel.subdivision import PIECES, covered
from armillary.kernel.tables import Table, reals
from armillary.trace import Port, Program, trace
from armillary.trace.functions import absolute, maximum, minimum, select

Array = np.ndarray
TERMS = Table("terms", (reals("centre"), reals("height")))
TABLES = {"terms": {"centre": [0.2, 0.7], "height": [0.3, 0.5]}}
NEAR = 1e-6


def program(formula: Any, outputs: str, **inputs: tuple[int, ...]) -> Program:
    names = tuple(outputs.split())
    return trace(formula, name=names[0], outputs=names, **inputs)


def cover(
    at: Any, back: Any, ahead: Any, ending: Any, wave: Any, centre: Any, height: Any
) -> Any:
    """Cover as far as w |t - c| + w0 - h stays above 0, by its slope w."""
    gap = wave[1] * absolute(at - centre) + wave[0] - height
    way = maximum(gap, 0.0) / maximum(absolute(wave[1]), 1e-9)
    ends = select(gap <= NEAR, 1.0, ending)
    return minimum(back, way), minimum(ahead, way), ends


def heights(limit: int = 300, *, anywhere: bool = False) -> Pipeline:
    """Return how far a row stays above all terms; rows of wave[2] <= 0 stay NaN."""
    piece = {"at": (), "back": (), "ahead": (), "ending": ()}
    stage = program(
        cover, "back ahead ending", **piece, wave=(3,), centre=(), height=()
    )
    names = ("at", "back", "ahead", "ending")
    inner = (Each("terms", (stage,)),)
    begin = program(
        lambda wave: (np.nan, 0.0, wave[2], 0.06), "t ends going first", wave=(3,)
    )
    region = Subdivide(names, inner, "first", "t", "ends", 1e-9, limit, anywhere)
    stages: tuple[Stage, ...] = (
        begin,
        When("going", (region,)),
        program(lambda t, ends: [t, ends], "found", t=(), ends=()),
    )
    return Pipeline("heights", (Port("wave", (3,)),), (TERMS,), stages, ("found",))


def rows() -> Array:
    rng = np.random.default_rng(0)
    wave = rng.uniform([-0.1, 0.2, -0.3], [0.6, 6.0, 1.0], (37, 3))
    wave[5] = wave[4]  # as padding is
    wave[9, 0] = np.nan
    wave[:9, 2] = 1.0
    return wave


def gap(wave: Array, t: Array) -> Array:
    x = np.abs(t - np.array(TABLES["terms"]["centre"]))
    return (wave[1] * x + wave[0] - np.array(TABLES["terms"]["height"])).min(axis=-1)


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_code_is_the_reference_whatever_the_lanes(lanes: int):
    kernel = compile_pipeline(heights(), lanes=lanes)(TABLES)
    wave = rows()
    (wanted,) = evaluate(heights(), kernel._native.tables, wave)
    np.testing.assert_allclose(kernel(wave), wanted, rtol=0, atol=1e-15)
    alone = np.stack([kernel(row) for row in wave])
    np.testing.assert_array_equal(alone, kernel(wave))


def test_intervals_end_at_their_first_end():
    kernel = compile_pipeline(heights())(TABLES)
    wave = rows()
    found = kernel(wave)
    counted = wave[:, 2] > 0.0
    assert np.isnan(found[~counted, 0]).all()
    ends = found[:, 1] > 0.0
    assert 5 < ends.sum() < counted.sum()
    for row, (t, ended) in zip(wave[counted], found[counted], strict=True):
        if np.isnan(row[0]):
            assert (t, ended) == (0.0, 0.0)
            continue
        before = gap(row, np.linspace(0.0, t, 2000)[:-1, None])
        assert before.min(initial=1.0) > -1e-12
        assert (gap(row, np.array([t])) <= NEAR) if ended else t == 1.0


@pytest.mark.parametrize("lanes", [1, 8])
def test_any_end_will_do_where_that_is_asked(lanes: int):
    pipeline = heights(anywhere=True)
    kernel = compile_pipeline(pipeline, lanes=lanes)(TABLES)
    wave = rows()
    found = kernel(wave)
    (wanted,) = evaluate(pipeline, kernel._native.tables, wave)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-15)
    first = compile_pipeline(heights())(TABLES)(wave)
    # The same intervals have an end, but it need not be the first, nor found.
    np.testing.assert_array_equal(found[:, 1], first[:, 1])
    is_ended = first[:, 1] > 0.0
    assert (found[is_ended, 0] <= first[is_ended, 0]).all()
    np.testing.assert_array_equal(found[~is_ended], first[~is_ended])


def test_what_is_not_covered_is_left():
    # A stage that covers nothing leaves the whole interval, after few rounds.
    calls: list[Array] = []

    def nothing(at: Array, back: Array, ahead: Array) -> tuple[Array, Array, Array]:
        calls.append(at)
        return 0.0 * back, np.nan * ahead, at < -1.0

    stage = Subdivide(("a", "b", "c", "d"), (), "l", "t", "e", 1e-6, 100)
    assert covered(stage, 1.0, nothing) == (0.0, 0.0)
    assert len(calls) < 25
    assert {len(at) for at in calls} == {PIECES}
    few = compile_pipeline(heights(2))(TABLES)
    whole = compile_pipeline(heights())(TABLES)
    a, b = few(rows())[:, 0], whole(rows())[:, 0]
    assert (a[~np.isnan(a)] <= b[~np.isnan(b)]).all()
    assert (a < b).any()


def test_columns_of_pieces_are_checked():
    names = ("at", "back", "ahead", "ending")
    wide = program(lambda wave: wave, "first", wave=(3,))
    region = Subdivide(names, (), "first", "t", "e", 1e-9, 10)
    with pytest.raises(KernelError, match="'first' is not one number"):
        Pipeline("p", (Port("wave", (3,)),), (), (wide, region), ("t",))
    with pytest.raises(KernelError, match="'at'"):
        Pipeline("p", (Port("at", (3,)), Port("first", ())), (), (region,), ("t",))
    with pytest.raises(KernelError, match="JavaScript"):
        pipeline_function(heights(), TABLES, "f")
