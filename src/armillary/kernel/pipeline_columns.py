"""What the stages of a pipeline do with its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from armillary.kernel.pipeline import Pipeline, Stage, calls_in, programs_in

__all__ = ["with_addresses", "written_elsewhere"]


def with_addresses(pipeline: Pipeline, *, longest: int) -> set[str]:
    """Return the columns and fields that must have addresses.

    longest: Instructions of a program that is not a function of its own.
    """
    found = {field.of for table in pipeline.tables for field in table.fields}
    for call in calls_in(pipeline.stages):
        found.update(call.inputs, (port.name for port in call.outputs))
    for program in pipeline.programs:
        if len(program.instructions) > longest:
            found.update(port.name for port in (*program.inputs, *program.outputs))
    return found


def written_elsewhere(pipeline: Pipeline, stages: Sequence[Stage]) -> list[str]:
    """Return the columns that stages write and that others have written, too."""
    everywhere, here = _writers(pipeline.stages), _writers(stages)
    inputs = {port.name for port in pipeline.inputs}
    columns = [name for name in here if name in pipeline.columns]  # others are fields
    return [n for n in columns if n in inputs or everywhere[n] > here[n]]


def _writers(stages: Sequence[Stage]) -> Counter[str]:
    """Return how many programs and calls write each column."""
    writers = [*programs_in(stages), *calls_in(stages)]
    return Counter(port.name for writer in writers for port in writer.outputs)
