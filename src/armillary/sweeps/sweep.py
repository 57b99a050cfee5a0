"""Sweeps: a question asked of very many rows, in chunks, wherever there are workers."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import asdict, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ShapeError, SweepError, quote
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kernel.buffers import empty
from armillary.replaced_file import replacing
from armillary.sweeps.chunk import Done, Failure, Job
from armillary.sweeps.fields import Results
from armillary.sweeps.identity import digest
from armillary.sweeps.memory import check_rows
from armillary.sweeps.merged import Merged
from armillary.sweeps.progress import showing
from armillary.sweeps.questions import Question, fields_of, questions_of
from armillary.sweeps.reductions import Reduction
from armillary.sweeps.result import SweepResult, filled, in_memory
from armillary.sweeps.samples import Samples, Uniform, as_samples, whole_number
from armillary.sweeps.workers import computed
from armillary.sweeps.zarr_group import Group, attributes_of, check_same

__all__ = ["sweep"]

Array = npt.NDArray[Any]

CHUNK: Final = 1_000_000  # rows
CHUNK_BYTES: Final = 1 << 26
PIECES: Final = 16  # chunks of a short sweep, so that workers share it
LEAST_CHUNK: Final = 1024  # rows
SHOWN_FAILURES: Final = 3
ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+")


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
    interruptions. One call at a time may write to `out`.

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
            path must not exist. Functions are compared by their source, name and
            module, but not by global variables and functions that they use; arguments
            of `functools.partial` are compared.
        progress: Whether to show on a terminal how far it is; needs tqdm.

    Returns:
        The results by name.

    Raises:
        SweepError: It cannot begin, or some chunks failed: the message says which and
            why, `error.kept` is what the others gave. A second call continues.
            If the disk is full or `out` cannot be written, a second call continues,
            too.
        ShapeError: Samples do not fit the question.
    """
    questions, rows = questions_of(question), as_samples(samples)
    _check_kind(questions, rows)
    fields = fields_of(questions, rows.rows(0, 1))
    reductions = _named(reduce)
    row_bytes = _row_bytes(rows) + sum(field.row_bytes for field in fields.values())
    if chunk is not None and (chunk := whole_number(chunk, "chunk")) < 1:
        raise SweepError(f"chunk is {chunk}; a chunk has at least one row.")
    # Workers may be in other folders.
    path = None if out is None else Path(os.path.abspath(out))
    found = None if path is None else _existing(path, resume, bool(reductions))
    size = chunk or (found or {}).get("chunk") or _chunk(rows.count, row_bytes)
    check_rows(size, row_bytes, "chunk")
    group = None
    if path is not None and path.suffix not in {".npy", ".npz"}:
        group = Group(path, rows.count, size, fields)
    job = Job(questions, rows, rows.count, size, fields, group, reductions)
    run = partial(_run, job, executor=executor, progress=progress)
    try:
        if reductions:
            return _reduced(job, path, found, chunk, run)
        if group is None:
            return _in_memory(job, path, run)
        return _grouped(job, group, found, chunk, run)
    except OSError as error:
        if path is None:
            raise
        raise SweepError(
            f"The sweep to {quote(str(path))} has ended: {error.strerror or error}. "
            "The same call continues with what is missing."
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
    count = 0
    with (
        showing(sum(rows.values()), progress) as show,
        closing(computed(job, todo, executor, into)) as found,
    ):
        for number, done in found:
            if done.failure is not None:
                failures.append(done.failure)
            else:
                count += rows[number]
                if take is not None:
                    take(number, done)
            show(rows[number], len(failures))
    if failures:
        error = SweepError(_failed(job, sorted(failures)))
        error.kept = kept()
        raise error
    return count


def _failed(job: Job, failures: list[Failure]) -> str:
    """Return the message for chunks that failed."""
    chunks = -(-job.count // job.chunk)
    lines = [f"{len(failures)} of {chunks} chunks failed; the others are kept."]
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
    check_rows(job.count, row_bytes, "sweep in memory")
    arrays = {
        name: empty((job.count, *field.shape), field.dtype)
        for name, field in job.fields.items()
    }
    failed = set(range(-(-job.count // job.chunk)))

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
    with replacing(path) as file:  # before hours of work show that it cannot be
        count = run(sorted(failed), kept, into=arrays, take=take)
        np.save(file, *arrays.values(), allow_pickle=False)
    return in_memory(arrays, job.count, count, path)


def _reduced(
    job: Job,
    path: Path | None,
    found: Mapping[str, Any] | None,
    chunk: int | None,
    run: Callable[..., int],
) -> SweepResult:
    """Sweep into reductions."""
    wanted = _attributes(job) if path is not None else {}
    if path is not None and found is not None:
        check_same(path, found, wanted, chunk)
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


def _grouped(
    job: Job,
    group: Group,
    found: Mapping[str, Any] | None,
    chunk: int | None,
    run: Callable[..., int],
) -> SweepResult:
    """Sweep into a Zarr group, those chunks that are not in it yet."""
    wanted = _attributes(job)
    if found is not None:
        check_same(group.path, found, wanted, chunk)
    group.create(wanted)
    left = sorted(set(range(group.chunks)) - group.whole())
    count = run(left, lambda: _of_group(group, 0))
    group.remove_drafts()
    return _of_group(group, count)


def _of_group(group: Group, count: int) -> SweepResult:
    readers = {name: partial(group.read, name) for name in group.fields}
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


# what describes a sweep


def _attributes(job: Job) -> dict[str, Any]:
    """Return what a file says of its sweep, so that it explains itself.

    Raises:
        SweepError: A question cannot be identified, since it has no pickle.
    """
    try:
        version_of_ours = version("armillary")
    except PackageNotFoundError:
        version_of_ours = "not installed"
    questions = {each.name: repr(each.ask) for each in job.questions}
    return {
        "question": _addressless(questions),
        "reductions": {name: _described(each) for name, each in job.reductions.items()},
        "question_digest": _digest_of(job),
        "cells": sorted({*_cells(job)}),
        "samples": job.samples.described(),
        "samples_digest": job.samples.digest,
        "rows": job.count,
        "chunk": job.chunk,
        "units": "SI: m, rad, s, kg, N; poses map coordinates in the frame to those in "
        "the frame it is relative to; quaternions are w x y z",
        "versions": {
            "armillary": version_of_ours,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def _digest_of(job: Job) -> str:
    asked = [(each.name, each.ask) for each in job.questions]
    try:
        return digest((asked, sorted(job.reductions.items())))
    except Exception as error:
        raise SweepError(
            "A sweep to a file identifies its question by its "
            f"pickle, and there is none: {error}. Define functions at the top of "
            "a module, or sweep into memory."
        ) from error


def _described(reduction: Any) -> Any:
    """Return the kind and the fields of a reduction as JSON has them."""
    if not is_dataclass(reduction) or isinstance(reduction, type):
        return repr(reduction)
    fields = {"kind": type(reduction).__name__, **asdict(reduction)}
    return json.loads(json.dumps(fields, default=lambda each: np.array(each).tolist()))


def _cells(job: Job) -> Iterator[str]:
    """Yield the names and digests of the cells of samples, checks and solvers."""
    if isinstance(job.samples, Uniform):
        yield f"{job.samples.cell} {job.samples.cell_digest}"
    for question in job.questions:
        core = question.core
        if isinstance(core, CollisionCheck | InverseKinematics):
            yield f"{core.cell.name} {digest(core.cell)}"


def _addressless(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts without the addresses of objects, which differ in every process."""
    return {name: ADDRESS.sub("", text) for name, text in texts.items()}


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
    found = dict(cast("Mapping[str, Any]", reduce))
    for name, each in found.items():
        if not isinstance(each, Reduction):
            raise SweepError(
                f"reduce= has a {type(each).__name__} as {quote(name)}; it takes "
                "arm.sweeps.Voxels, Count, Histogram or Best."
            )
    return found


# sizes


def _row_bytes(samples: Samples) -> int:
    row = samples.rows(0, 1)
    return int(row.nbytes)


def _chunk(count: int, row_bytes: int) -> int:
    """Return the rows of a chunk where nobody says; it never depends on workers."""
    most = min(CHUNK, max(1, CHUNK_BYTES // row_bytes))
    return min(most, max(LEAST_CHUNK, -(-count // PIECES)), count)
