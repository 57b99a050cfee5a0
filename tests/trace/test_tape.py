from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import functions as f
from armillary.trace import trace
from armillary.trace.ops import ADD, AND, SELECT
from armillary.trace.tape import Tape
from work import counted, growth


@pytest.fixture
def tape() -> Tape:
    return Tape()


def test_equal_operations_are_one_node(tape: Tape):
    x, y = tape.input(0), tape.input(1)
    assert tape.input(0) is x
    assert x * y is y * x
    assert x + y is y + x
    assert f.sin(x * y) is f.sin(y * x)
    assert x - y is not y - x
    assert x / y is not y / x
    assert f.atan2(x, y) is not f.atan2(y, x)
    assert (x < y) is (y > x)
    assert len({node.index for node in tape.nodes}) == len(tape.nodes)


def test_arguments_come_first(tape: Tape):
    x = tape.input(0)
    f.sin(x + 1.0) * f.cos(x) - f.select(x < 0, x, 2.0)
    for place, node in enumerate(tape.nodes):
        assert node.index == place
        assert all(arg.index < place for arg in node.args)


def test_constants_are_shared(tape: Tape):
    assert tape.constant(1.0) is tape.constant(1) is tape.constant(np.float32(1.0))
    assert tape.constant(-0.0) is tape.constant(0.0)
    assert math.copysign(1.0, tape.constant(-0.0).value) == 1.0
    assert tape.constant(math.nan) is tape.constant(-math.nan) is tape.constant(np.nan)
    assert tape.constant(math.inf) is not tape.constant(-math.inf)
    assert tape.truth(True) is tape.truth(True)
    assert tape.truth(True) is not tape.truth(False)
    assert tape.constant(1.0) is not tape.truth(True)


def test_a_zero_made_negative_first_is_still_positive():
    assert math.copysign(1.0, Tape().constant(-0.0).value) == 1.0


def test_operations_of_constants_are_computed(tape: Tape):
    x = tape.input(0)
    count = len(tape.nodes)
    assert f.sin(x * 0.0 + 2.0).value == math.sin(2.0)
    assert (x * 0.0 < 1.0) is tape.truth(True)
    assert all(not node.args for node in tape.nodes[count:])


def test_truths_and_numbers_convert(tape: Tape):
    x = tape.input(0)
    assert (x > 0) + x is f.select(x > 0, 1.0, 0.0) + x
    assert f.select(x, 1.0, 2.0) is f.select(x == 0, 2.0, 1.0)
    assert AND(x > 0, 1.0) is (x > 0)
    assert SELECT(np.True_, x, 1.0) is x


@pytest.mark.parametrize(
    "wrong", ["1", None, 1j, [1.0], np.ones(2), Decimal(1), object()]
)
def test_what_is_not_a_number_is_refused(tape: Tape, wrong):
    x = tape.input(0)
    for record in (lambda: ADD(x, wrong), lambda: AND(x > 0, wrong)):
        with pytest.raises(
            TraceError,
            match=r"was combined with .*, which is not a number|the complex number",
        ):
            record()


def test_an_array_of_one_number_is_one(tape: Tape):
    x = tape.input(0)
    assert ADD(x, np.array(2.0)) is x + 2.0


def test_scalars_of_two_traces_do_not_mix(tape: Tape):
    x, other = tape.input(0), Tape().input(0)
    with pytest.raises(TraceError, match=r"test_tape\.py:\d+: .* of another trace"):
        x + other
    kept = []

    def keeps(q):
        kept.append(q)
        return kept[0] * 2

    assert trace(keeps, q=()).operation_count == 1
    with pytest.raises(TraceError, match="do not keep traced scalars between calls"):
        trace(lambda p: keeps(p) + p, p=())


def test_a_trace_that_never_ends_is_stopped():
    tape = Tape(limit=1000)
    x = y = tape.input(0)
    with pytest.raises(
        TraceError, match=r"more than 1000 operations.*bound by plain numbers"
    ):
        while True:
            x = x * y + 1.0
    assert len(tape.nodes) == 1000


def test_recording_takes_as_many_lines_for_each_operation():
    def record(count: int) -> Tape:
        tape = Tape()
        x, y = tape.input(0), tape.input(1)
        for _ in range(count):
            x, y = x * y + 1.5, y - x
        return tape

    with counted() as work:
        tape = record(2000)
    assert work.lines < 80 * len(tape.nodes)
    assert growth(record, 1000) < 2.1
