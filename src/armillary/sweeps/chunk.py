"""One chunk of a sweep: computed where a worker is, and written by it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from armillary.sweeps.fields import ResultField, Results
from armillary.sweeps.questions import Question, RowError, answers
from armillary.sweeps.reductions import Reduction, States
from armillary.sweeps.samples import Samples
from armillary.sweeps.zarr_group import ZarrGroup

__all__ = ["Done", "Failure", "Job", "run", "run_pickled"]


class Failure(NamedTuple):
    """A chunk that could not be computed.

    Attributes:
        chunk: Its number.
        row: The first row that fails, or None where none fails by itself.
        why: A text.
    """

    chunk: int
    row: int | None
    why: str


class SweepStopped(Exception):
    """The sweep was interrupted."""


class Done(NamedTuple):
    """What a worker returns for a chunk.

    Attributes:
        results: Its arrays, where nothing else takes them.
        states: For each reduction what these rows come to.
        failure: Why there is nothing else, or None.
    """

    results: Results | None = None
    states: dict[str, States] | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Job:
    """What all chunks of a sweep share.

    Attributes:
        questions: What is asked.
        samples: The rows that it is asked about.
        count: Rows in all.
        chunk: Rows of a chunk.
        fields: The arrays of results.
        group: The group to which results are written, or None.
        reductions: What replaces them, or empty.
    """

    questions: list[Question]
    samples: Samples
    count: int
    chunk: int
    fields: Mapping[str, ResultField]
    group: ZarrGroup | None
    reductions: Mapping[str, Reduction]

    @property
    def chunks(self) -> int:
        """Return the number of chunks."""
        return -(-self.count // self.chunk)

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk, and that after its last."""
        start = number * self.chunk
        return start, min(self.count, start + self.chunk)


def never() -> bool:
    """Return False: nobody stops the work of another process."""
    return False


def run(
    job: Job,
    number: int,
    into: Results | None = None,
    is_stopped: Callable[[], bool] = never,
) -> Done:
    """Compute a chunk.

    Args:
        job: What to compute.
        number: The number of the chunk.
        into: Arrays of all rows that this process writes to, if there are any.
        is_stopped: Asked now and then; what is computed by then is thrown away.

    Raises:
        OSError: The results cannot be written.
        SweepStopped: The work was stopped.
    """
    try:
        return _computed(job, number, into, is_stopped)
    except RowError as error:
        return Done(failure=Failure(number, *error.args))


def _computed(
    job: Job, number: int, into: Results | None, is_stopped: Callable[[], bool]
) -> Done:
    start, stop = job.bounds(number)
    states = {
        name: reduction.start(job.fields, job.count)
        for name, reduction in job.reductions.items()
    }
    returned: Results | None = None
    if into is not None:
        returned = {name: array[start:stop] for name, array in into.items()}
    elif job.group is None and not states:
        returned = {
            name: np.empty((stop - start, *field.shape), field.dtype)
            for name, field in job.fields.items()
        }
    blocks = answers(
        job.questions,
        job.samples.read(start, stop).rows,
        start,
        stop,
        check=job.samples.is_given,
        is_stopped=is_stopped,
    )
    with ExitStack() as stack:
        writer = None
        if job.group is not None and not states:
            writer = stack.enter_context(job.group.writing(number))
        for first, rows, results in blocks:
            _check_same(job.fields, results, first)
            for name, reduction in job.reductions.items():
                reduction.add(states[name], rows, results, first)
            if writer is not None:
                writer.add(results)
            if returned is not None:
                for name, array in returned.items():
                    array[first - start : first - start + len(rows)] = results[name]
        if is_stopped():
            raise SweepStopped
    return Done(None if into is not None else returned, states or None)


def _check_same(
    fields: Mapping[str, ResultField], results: Results, first: int
) -> None:
    """Check that results are as those of row 0 were."""
    returned = {name: (each.shape[1:], each.dtype) for name, each in results.items()}
    wanted = {name: (field.shape, field.dtype) for name, field in fields.items()}
    if returned != wanted:
        raise RowError(
            None, f"from row {first} on it returned {returned}, before {wanted}"
        )


def run_pickled(job: bytes, samples: Samples, number: int) -> Done:
    """Compute a chunk in another process, for which a job is pickled once."""
    return run(replace(_job(job), samples=samples), number)


@lru_cache(maxsize=8)
def _job(pickled: bytes) -> Job:
    return pickle.loads(pickled)
