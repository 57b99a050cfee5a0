"""The workers that compute chunks: threads, processes, or an executor of the user."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, cast

from armillary.errors import SweepError, quote, unknown
from armillary.kernel.threads import default_threads
from armillary.sweeps.chunk import Done, Job, run, run_pickled
from armillary.sweeps.fields import Results
from armillary.sweeps.questions import Question

__all__ = ["computed"]

Submit = Callable[[int], "Future[Done]"]

KINDS: Final = "threads", "processes"
AHEAD: Final = 2  # chunks that wait for each worker
AHEAD_UNKNOWN: Final = 128  # where the number of workers is not known


def computed(
    job: Job,
    chunks: Iterable[int],
    executor: Executor | str | None,
    into: Results | None,
) -> Generator[tuple[int, Done]]:
    """Yield chunks as they are done, in any order.

    Args:
        job: What to compute.
        chunks: The numbers of the chunks.
        executor: Which workers; by default threads, or processes if a question is a
            function of Python.
        into: Arrays of all rows, which threads write to.

    Raises:
        SweepError: The questions cannot be sent, or workers are lost.
        OSError: Results cannot be written.
        UnknownName: `executor` is a text with another meaning.
    """
    if executor is None:
        native = all(question.is_native for question in job.questions)
        executor = KINDS[0] if native else KINDS[1]
    if isinstance(executor, str):
        if executor not in KINDS:
            raise unknown("executor", executor, KINDS)
        if executor == KINDS[1]:
            _check_program(job)
        kind = _threads if executor == KINDS[0] else _processes
        with kind() as own:
            yield from _through(own, default_threads(), job, chunks, into)
    elif isinstance(cast("Any", executor), Executor):
        number = getattr(executor, "_max_workers", AHEAD_UNKNOWN // AHEAD)
        yield from _through(executor, number, job, chunks, into)
    elif _is_of_dask(executor):
        raise SweepError(
            f"executor= was given a {type(executor).__name__} of Dask; pass its "
            "executor: client.get_executor()."
        )
    else:
        raise SweepError(
            f"executor= takes an executor of concurrent.futures, 'threads' or "
            f"'processes', not {type(executor).__name__}. Of a Dask client pass "
            "client.get_executor()."
        )


def _through(
    executor: Executor,
    workers: int,
    job: Job,
    chunks: Iterable[int],
    into: Results | None,
) -> Generator[tuple[int, Done]]:
    """Yield chunks that an executor computes, with a few waiting for each worker."""
    stop = threading.Event()
    submit = _submitter(executor, job, into, stop)
    pending: dict[Future[Done], int] = {}
    left = iter(chunks)
    try:
        while True:
            while len(pending) < AHEAD * workers:
                if (number := next(left, None)) is None:
                    break
                pending[_submitted(submit, number)] = number
            if not pending:
                return
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                yield pending.pop(future), _result(future)
    except BrokenExecutor as error:
        raise SweepError(
            "A worker process ended by itself: it was killed, its memory ran out (with "
            "a smaller chunk= it takes less), or it could not import the program, as "
            "it said itself."
        ) from error
    finally:
        stop.set()
        for future in pending:
            future.cancel()


def _submitted(submit: Submit, number: int) -> Future[Done]:
    """Return the future of a chunk.

    Raises:
        SweepError: The executor takes no more work.
    """
    try:
        return submit(number)
    except BrokenExecutor:
        raise
    except RuntimeError as error:
        raise SweepError(f"The executor takes no chunk: {error}.") from error


def _result(future: Future[Done]) -> Done:
    """Return what a future has.

    Raises:
        SweepError: Its executor has lost it.
    """
    try:
        return future.result()
    except FileNotFoundError as error:
        raise SweepError(
            f"A worker does not find {quote(str(error.filename))}: out= must be the "
            "same folder for all workers, and one sweep at a time may write to it."
        ) from error
    except (OSError, BrokenExecutor, MemoryError):
        raise
    except CancelledError as error:
        raise SweepError(
            "The executor has cancelled a chunk: it was shut down, or it lost its "
            "scheduler or workers. The chunks that are whole are kept; the same call "
            "continues."
        ) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | SweepError):
            raise
        raise SweepError(
            f"The executor has lost a chunk: {type(error).__name__}: {error}"
        ) from error


def _submitter(
    executor: Executor, job: Job, into: Results | None, stop: threading.Event
) -> Submit:
    """Return what submits the chunk of a number."""
    if isinstance(executor, ThreadPoolExecutor):
        return lambda number: executor.submit(run, job, number, into, stop.is_set)
    empty = job.samples.part(0, 0)
    pickled = _pickled(replace(job, samples=empty), executor)

    def submit(number: int) -> Future[Done]:
        part = job.samples.part(*job.bounds(number))
        return executor.submit(run_pickled, pickled, part, number)

    return submit


def _pickled(job: Job, executor: Executor) -> bytes:
    """Return a job as bytes; for Dask also one with functions that are not in a module.

    Raises:
        SweepError: A question has no pickle; it says which and why.
    """
    module: Any = import_module("cloudpickle") if _is_of_dask(executor) else pickle
    for question in job.questions:
        _pickle_of(question, module)
    return module.dumps(job)


def _pickle_of(question: Question, module: Any) -> bytes:
    try:
        return module.dumps(question)
    except Exception as error:
        raise SweepError(
            f"The question {quote(question.name)} cannot be sent to other processes: "
            f"{error}. Define functions at the top of a module, without lambda; or use "
            "executor='threads'."
        ) from error


def _check_program(job: Job) -> None:
    """Check that new processes can import what questions are made of.

    Raises:
        SweepError: It is in a program without a file.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if main.__spec__ is not None or (file is not None and os.path.exists(file)):
        return
    for question in job.questions:
        if file is not None or b"__main__" in _pickle_of(question, pickle):
            raise SweepError(
                f"The question {quote(question.name)} cannot be asked in other "
                "processes: this program has no file that they could import, as in a "
                "notebook. Put functions in a module, or use executor='threads'."
            )


def _is_of_dask(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] == "distributed"


@contextmanager
def _threads() -> Generator[Executor]:
    pool = ThreadPoolExecutor(default_threads(), thread_name_prefix="sweep")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _processes() -> Generator[Executor]:
    """Give new processes, which are killed if the block ends with an error."""
    pool = ProcessPoolExecutor(
        default_threads(),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_ignore_interrupts,
    )
    try:
        yield pool
    except BaseException:
        # Of this pool alone: other threads may have processes of their own.
        children: dict[int, Any] = dict(getattr(pool, "_processes", None) or {})
        pool.shutdown(wait=False, cancel_futures=True)
        for child in children.values():
            child.kill()
        raise
    pool.shutdown()


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
