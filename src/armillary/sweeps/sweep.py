"""Sweeps: a question asked of very many rows, in chunks, wherever there are workers."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError, SweepError, quote
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kernel.buffers import empty
from armillary.replaced_file import replacing
from armillary.sweeps.chunk import Done, Failure, Job
from armillary.sweeps.description import description
from armillary.sweeps.fields import Results, whole_number
from armillary.sweeps.lock import only_sweep
from armillary.sweeps.memory import check_fits
from armillary.sweeps.merged import Merged
from armillary.sweeps.progress import Progress
from armillary.sweeps.questions import Question, fields_of, questions_of
from armillary.sweeps.reductions import Reduction
from armillary.sweeps.result import SweepResult, filled, in_memory
from armillary.sweeps.samples import Samples, Uniform, as_samples
from armillary.sweeps.workers import computed
from armillary.sweeps.zarr_group import (
    Group,
    attributes_of,
    check_checksums,
    check_same,
)

__all__ = ["sweep"]

Array = npt.NDArray[Any]

CHUNK: Final = 1_000_000  # rows
CHUNK_BYTES: Final = 1 << 26
PIECES: Final = 16  # chunks of a short sweep, so that workers share it
LEAST_CHUNK: Final = 1024  # rows
MOST_CHUNKS: Final = 10_000_000  # each is a file
SHOWN_FAILURES: Final = 3
# Who writes to one of these expects a file, which a sweep does not write.
OTHER_FILES: Final = {".csv", ".json", ".h5", ".hdf5", ".parquet"}


def sweep(
    question: Any,
    samples: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    reduce: Mapping[str, Reduction] | Reduction | None = None,
    executor: Executor | str | None = None,
    chunk: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> SweepResult:
    """Evaluate a question for every row of samples, in chunks, and store the results.

    Results are equal to the last bit for any number of workers, any executor and any
    interruptions. One call at a time can write to `out`; others are refused.

    Args:
        question: A kernel such as `cell.fk(frame)`, a solver `cell.ik(frame)`, a check
            `cell.collision()`, a function of an array of rows (n, ...) to arrays
            (n, ...), or a mapping of names to these, which are asked in one pass.
        samples: `cell.samples(n)`, `arm.grid(axes)`, an array (n, ...), or the path of
            an NPY file or a Zarr array.
        out: Where results go: the folder of a Zarr group, or a file `.npy` for a sweep
            with one result that fits in memory; with `reduce` a file `.npz`. By default
            memory.
        reduce: What is kept in place of rows: `arm.sweeps.Voxels`, `Count`, `Histogram`
            or `Best`; or a mapping of names to several of them.
        executor: `threads`, `processes`, or an executor of `concurrent.futures`, such
            as `client.get_executor()` of a Dask client. By default threads, but
            processes for functions of Python.
        chunk: Rows of a chunk, which one worker computes; by default those in `out`,
            or up to a million.
        resume: Whether to continue what is in a Zarr group or `.npz` file; else the
            path must not exist. Functions are compared by their module, name and
            source text, and by the arguments of `functools.partial`; what they call or
            read is not compared. A question with a lambda or a function that is defined
            in another one cannot be continued.
        progress: Whether to show on a terminal how far it is.

    Returns:
        The results by name.

    Raises:
        SweepError: It cannot begin, or some chunks failed: the message says which and
            why, `error.kept` is what the others gave. A second call continues.
            If the disk is full or `out` cannot be written, a second call continues,
            too. Another call writes to `out`.
        ShapeError: Samples do not fit the question.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SweepError(
            "A worker process has come to this sweep when it imported the program: "
            "guard what the program starts by if __name__ == '__main__'."
        )
    questions, rows = questions_of(question), as_samples(samples)
    _check_kind(questions, rows)
    fields = fields_of(questions, rows)
    reductions = _named(reduce)
    row_bytes = sum(field.row_bytes for field in fields.values())
    row_bytes += rows.rows(0, 1).nbytes
    if chunk is not None and (chunk := whole_number(chunk, "chunk")) < 1:
        raise SweepError(f"chunk is {chunk}; a chunk has at least one row.")
    chunk = chunk and min(chunk, rows.count)
    # Workers may be in other folders.
    path = None if out is None else Path(os.path.abspath(out))
    found = None if path is None else _existing(path, resume, bool(reductions))
    size = chunk or (found or {}).get("chunk") or _chunk(rows.count, row_bytes)
    check_fits(size, row_bytes, "rows in a chunk", "use a smaller chunk=")
    if path is not None or reductions:
        _check_chunks(rows.count, size)
    group = None
    if path is not None and path.suffix not in {".npy", ".npz"}:
        group = Group(path, rows.count, size, fields)
    job = Job(questions, rows, rows.count, size, fields, group, reductions)
    run = partial(_run, job, executor=executor, progress=progress)
    try:
        with nullcontext() if path is None else only_sweep(path):
            if path is not None:  # another sweep may have ended since the first look
                _existing(path, resume, bool(reductions))
            if reductions:
                return _reduced(job, path, run)
            if group is None:
                return _in_memory(job, path, run)
            return _grouped(job, group, run)
    except OSError as error:
        if path is None:
            raise
        then = "The same call continues with what is missing."
        if path.suffix == ".npy":
            then = "Nothing is kept; a sweep to a Zarr group would continue."
        raise SweepError(
            f"The sweep to {quote(str(path))} has ended: {error.strerror or error}. "
            f"{then}"
        ) from error


def _run(
    job: Job,
    chunks: Iterable[int],
    kept: Callable[[], SweepResult],
    *,
    executor: Executor | str | None,
    progress: bool,
    into: Results | None = None,
    take: Callable[[int, Done], None] | None = None,
) -> int:
    """Compute chunks and return how many rows that made.

    Args:
        job: What to compute.
        chunks: Their numbers.
        kept: Returns what has been computed, for the error of chunks that failed.
        executor: See `sweep`.
        progress: See `sweep`.
        into: Arrays of all rows that threads write to.
        take: Is given each chunk that is done, in any order.

    Raises:
        SweepError: Some failed, or workers are lost.
    """
    todo = list(chunks)
    rows = {
        number: stop - start
        for number, (start, stop) in zip(todo, map(job.bounds, todo), strict=True)
    }
    failures: list[Failure] = []
    count = tried = 0
    with (
        Progress(sum(rows.values())) as bar,
        closing(computed(job, todo, executor, into)) as chunks_done,
    ):
        for number, done in chunks_done:
            if done.failure is not None:
                failures.append(done.failure)
            else:
                count += rows[number]
                if take is not None:
                    take(number, done)
            tried += rows[number]
            if progress:
                bar.at(tried, f"{len(failures)} chunks failed" if failures else "")
    if failures:
        error = SweepError(_failed(job, sorted(failures)))
        error.kept = kept()
        raise error
    return count


def _failed(job: Job, failures: list[Failure]) -> str:
    """Return the message for chunks that failed."""
    lines = [f"{len(failures)} of {job.chunks} chunks failed; the others are kept."]
    for failure in failures[:SHOWN_FAILURES]:
        start, stop = job.bounds(failure.chunk)
        at = f"row {failure.row}" if failure.row is not None else "no row by itself"
        lines.append(
            f"Chunk {failure.chunk} (rows {start} to {stop - 1}), {at}: {failure.why}."
        )
    if len(failures) > SHOWN_FAILURES:
        lines.append(f"{len(failures) - SHOWN_FAILURES} more failed.")
    return "\n".join(lines)


# where results go


def _in_memory(job: Job, path: Path | None, run: Callable[..., int]) -> SweepResult:
    """Sweep into arrays, and write the only one to a file `.npy`."""
    if path is not None and len(job.fields) != 1:
        raise SweepError(
            f"{quote(str(path))} can hold one array; the results are "
            f"{', '.join(job.fields)}. Use a Zarr group: a path without '.npy'."
        )
    row_bytes = sum(field.row_bytes for field in job.fields.values())
    check_fits(job.count, row_bytes, "rows in memory", "use a Zarr group")
    arrays = {
        name: empty((job.count, *field.shape), field.dtype)
        for name, field in job.fields.items()
    }
    failed = set(range(job.chunks))

    def take(number: int, done: Done) -> None:
        failed.discard(number)
        start, stop = job.bounds(number)
        for name, part in (done.results or {}).items():
            arrays[name][start:stop] = part

    def kept() -> SweepResult:
        for number in failed:
            filled(arrays, *job.bounds(number))
        return in_memory(arrays, job.count, job.count)

    if path is None:
        count = run(sorted(failed), kept, into=arrays, take=take)
        return in_memory(arrays, job.count, count)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Before hours of work show that it cannot be.
    if (free := disk_usage(path.parent).free) < job.count * row_bytes:
        raise SweepError(
            f"{quote(str(path))} needs {job.count * row_bytes / 1e9:.3g} GB; the disk "
            f"has {free / 1e9:.3g} GB left."
        )
    with replacing(path) as file:
        count = run(sorted(failed), kept, into=arrays, take=take)
        np.save(file, *arrays.values(), allow_pickle=False)
    return in_memory(arrays, job.count, count, path)


def _reduced(job: Job, path: Path | None, run: Callable[..., int]) -> SweepResult:
    """Sweep into reductions."""
    wanted, found = {}, None
    if path is not None:
        wanted, found = description(job), Merged.attributes_of(path)
        if found is not None:
            check_same(path, found, wanted)
    merged = Merged.begun(job, path, wanted, resumed=found is not None)
    merged.save()

    def kept() -> SweepResult:
        merged.save()
        return in_memory(merged.arrays, job.count, 0, path)

    try:
        count = run(merged.left, kept, take=merged.take)
    finally:
        merged.save()
    return in_memory(merged.arrays, job.count, count, path)


def _grouped(job: Job, group: Group, run: Callable[..., int]) -> SweepResult:
    """Sweep into a Zarr group, those chunks that are not in it yet."""
    wanted = description(job)
    if (found := attributes_of(group.path)) is not None:
        check_same(group.path, found, wanted)
        check_checksums(group.path, found)
    group.create(wanted)
    left = sorted(set(range(group.chunks)) - group.whole())
    try:
        count = run(left, lambda: _of_group(group, 0, is_whole=False))
    finally:
        group.remove_drafts()
    return _of_group(group, count, is_whole=True)


def _of_group(group: Group, count: int, *, is_whole: bool) -> SweepResult:
    readers = {
        name: partial(group.read, name, is_whole=is_whole) for name in group.fields
    }
    return SweepResult(
        path=group.path, rows=group.count, computed=count, _readers=readers
    )


def _existing(path: Path, resume: bool, is_reduced: bool) -> dict[str, Any] | None:
    """Return what is at a path of results; None if nothing is.

    Raises:
        SweepError: Something else is, or the path does not fit.
    """
    if is_reduced != (path.suffix == ".npz"):
        raise SweepError(
            f"Results cannot go to {quote(str(path))}: with reduce= they go to a file "
            "'.npz', without to a Zarr group or a file '.npy'."
        )
    if path.suffix in OTHER_FILES:
        raise SweepError(
            f"{quote(str(path))} is not the folder of a Zarr group, such as "
            "'out.zarr', or a file '.npy'."
        )
    if path.suffix == ".npy":
        if path.exists():
            raise SweepError(
                f"{quote(str(path))} exists. Choose another path, or remove it."
            )
        return None
    found = Merged.attributes_of(path) if is_reduced else attributes_of(path)
    if found is not None and not resume:
        raise SweepError(
            f"{quote(str(path))} exists and resume is False. Choose another path, or "
            "remove it."
        )
    return found


def _check_kind(questions: Iterable[Question], samples: Samples) -> None:
    """Check that no solver is given joint positions, which may look like poses.

    Raises:
        ShapeError: One is.
    """
    if isinstance(samples, Uniform) and any(
        isinstance(each.core, InverseKinematics) for each in questions
    ):
        raise ShapeError(
            "Inverse kinematics takes poses, and these samples are joint positions. "
            "Use arm.grid(axes, rotations=), or the poses of cell.fk(frame)."
        )


def _named(reduce: Any) -> dict[str, Reduction]:
    if reduce is None:
        return {}
    if isinstance(reduce, Reduction):
        return {"": reduce}
    if not isinstance(reduce, Mapping):
        raise SweepError(
            f"reduce= is a {type(reduce).__name__}; it takes a reduction, or a mapping "
            "of names to several."
        )
    found = dict(cast("Mapping[Any, Any]", reduce))
    for name, each in found.items():
        if not isinstance(name, str):
            raise SweepError(f"reduce= has the name {name!r}; names are texts.")
        if not isinstance(each, Reduction):
            raise SweepError(
                f"reduce= has a {type(each).__name__} as {quote(name)}; it takes "
                "arm.sweeps.Voxels, Count, Histogram or Best."
            )
    return found


# sizes


def _check_chunks(count: int, chunk: int) -> None:
    """Check that there are not too many chunks to keep account of.

    Raises:
        SweepError: There are.
    """
    if (chunks := -(-count // chunk)) > MOST_CHUNKS:
        raise SweepError(
            f"{count:,} rows in chunks of {chunk:,} are {chunks:,} chunks; at most "
            f"{MOST_CHUNKS:,} are possible. Use a larger chunk=, or fewer rows."
        )


def _chunk(count: int, row_bytes: int) -> int:
    """Return the rows of a chunk where nobody says; it never depends on workers."""
    most = min(CHUNK, max(1, CHUNK_BYTES // row_bytes))
    return min(most, max(LEAST_CHUNK, -(-count // PIECES)), count)
