"""A program cut in segments: every value is there when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.kernel import partition
from armillary.kernel.partition import cut, is_constant
from armillary.trace import OPS, Program


def groups(program: Program, size: int) -> list[tuple[int, ...]]:
    count = len(program.results)
    starts = range(0, count, size)
    return [tuple(range(k, min(k + size, count))) for k in starts]


def run(program: Program, inputs: list[float], length: int, size: int) -> list[float]:
    """Compute by segments, each of which knows its loads and its own steps alone."""
    segments, slot_count = cut(program, groups(program, size), length)
    slots: list[Any] = [None] * slot_count
    outputs: dict[int, float] = {}
    covered: list[int] = []
    for segment in segments:
        known = {step: slots[slot] for step, slot in segment.loads.items()}
        assert len(segment.steps) <= length
        covered += segment.steps
        for k in segment.steps:
            step = program.instructions[k]
            if step.name == "input":
                known[k] = inputs[int(step.value)]
            elif step.name != "const":
                args = [value(program, known, arg) for arg in step.args]
                known[k] = OPS[step.name].on_floats(*args)
        assert len(set(segment.stores.values())) == len(segment.stores)
        for step, slot in segment.stores.items():
            slots[slot] = known[step]
        for square in segment.squares:
            for k in square:
                assert k not in outputs
                outputs[k] = value(program, known, program.results[k])
    assert covered == list(range(len(program.instructions)))
    return [outputs[k] for k in range(len(program.results))]


def value(program: Program, known: dict[int, Any], k: int) -> Any:
    step = program.instructions[k]
    return step.value if is_constant(step) else known[k]


@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
@pytest.mark.parametrize("length", [1, 2, 7, 50, 300, 100_000])
@pytest.mark.parametrize("size", [1, 4])
def test_segments_compute_the_program(
    formulas: dict[str, Program], name: str, length: int, size: int
):
    program = formulas[name]
    count = sum(port.size for port in program.inputs)
    inputs = np.random.default_rng(0).uniform(-3, 3, count).tolist()
    whole = run(program, inputs, 10**6, size)
    assert run(program, inputs, length, size) == whole


@pytest.mark.parametrize("most", [1, 3, 8])
def test_segments_write_no_more_than_they_may(
    formulas: dict[str, Program], most: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(partition, "MOST_OUTPUTS", most)
    for program in (formulas["arm"], formulas["many"]):
        count = sum(port.size for port in program.inputs)
        inputs = np.random.default_rng(0).uniform(-3, 3, count).tolist()
        found = run(program, inputs, 300, 2)
        monkeypatch.undo()
        assert found == run(program, inputs, 300, 2)
        monkeypatch.setattr(partition, "MOST_OUTPUTS", most)
        segments, _ = cut(program, groups(program, 2))
        assert max(len(segment.squares) for segment in segments) == max(1, most // 2)


def test_slots_are_used_again(long: Program):
    """As many as values wait between segments at the worst place, and no more."""
    segments, slots = cut(long, groups(long, 4), 50)
    first = {step: k for k, segment in enumerate(segments) for step in segment.stores}
    last = {step: k for k, segment in enumerate(segments) for step in segment.loads}
    waiting = [
        sum(first[step] < k <= last[step] for step in first)
        for k in range(len(segments))
    ]
    assert 400 < max(waiting) == slots


def test_a_short_program_needs_no_slots(arm: Program):
    segments, slots = cut(arm, groups(arm, 4))
    assert (len(segments), slots) == (1, 0)
