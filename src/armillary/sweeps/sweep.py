"""Sweeps: a question asked of very many rows, in chunks, wherever there are workers."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import re
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import disk_usage
from types import FunctionType
from typing import Any, Final, cast
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ShapeError, SweepError, quote
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kernel.buffers import empty
from armillary.kinematics.identity import cell_digest, digest
from armillary.replaced_file import replacing
from armillary.sweeps.chunk import Done, Failure, Job
from armillary.sweeps.fields import Results, check_fits, full_name, whole_number
from armillary.sweeps.lock import only_sweep
from armillary.sweeps.progress import ProgressBar
from armillary.sweeps.questions import Question, fields_of, questions_of
from armillary.sweeps.reductions import Reduction, States
from armillary.sweeps.result import SweepResult, filled, in_memory
from armillary.sweeps.samples import Samples, as_samples, box_of
from armillary.sweeps.workers import computed
from armillary.sweeps.zarr_group import (
    ZarrGroup,
    attributes_of,
    check_checksums,
    check_same,
    checked_attributes,
    foreign,
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
    # Workers may be in other folders.
    path = None if out is None else Path(os.path.abspath(out))
    job = _job(question, as_samples(samples), path, _named(reduce), chunk, resume)
    run = partial(_run, job, executor=executor, progress=progress)
    try:
        with nullcontext() if path is None else only_sweep(path):
            if path is not None:  # another sweep may have ended since the first look
                _existing(path, resume, bool(job.reductions))
            if job.reductions:
                return _reduced(job, path, run)
            if job.group is None:
                return _in_memory(job, path, run)
            return _grouped(job, job.group, run)
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


def _job(
    question: Any,
    rows: Samples,
    path: Path | None,
    reductions: Mapping[str, Reduction],
    chunk: int | None,
    resume: bool,
) -> Job:
    """Return what chunks share: the first row shows what the results are like.

    Raises:
        SweepError: The arguments do not fit each other, this machine or the path.
        ShapeError: Samples do not fit the question.
    """
    questions = questions_of(question)
    _check_kind(questions, rows)
    fields = fields_of(questions, rows)
    row_bytes = sum(field.row_bytes for field in fields.values())
    row_bytes += rows.rows(0, 1).nbytes
    if chunk is not None and (chunk := whole_number(chunk, "chunk")) < 1:
        raise SweepError(f"chunk is {chunk}; a chunk has at least one row.")
    before = None if path is None else _existing(path, resume, bool(reductions))
    size = min(chunk, rows.count) if chunk else (before or {}).get("chunk")
    size = size or _chunk(rows.count, row_bytes)
    check_fits(size, row_bytes, "rows in a chunk", "use a smaller chunk=")
    if path is not None or reductions:
        _check_chunks(rows.count, size)
    group = None
    if path is not None and path.suffix not in {".npy", ".npz"}:
        group = ZarrGroup(path, rows.count, size, fields)
    return Job(questions, rows, rows.count, size, fields, group, reductions)


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
        chunks: The numbers of the chunks.
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
        ProgressBar(sum(rows.values())) as bar,
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
    # Chunks that have not come back: if others fail, their rows become NaN.
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
    wanted, stored = {}, None
    if path is not None:
        wanted, stored = description(job), Merged.attributes_of(path)
        if stored is not None:
            check_same(path, stored, wanted)
    merged = Merged.begun(job, path, wanted, resumed=stored is not None)
    merged.save()

    def kept() -> SweepResult:
        merged.save()
        return in_memory(merged.arrays, job.count, 0, path)

    try:
        count = run(merged.left, kept, take=merged.take)
    finally:
        merged.save()
    return in_memory(merged.arrays, job.count, count, path)


def _grouped(job: Job, group: ZarrGroup, run: Callable[..., int]) -> SweepResult:
    """Sweep into a Zarr group, those chunks that are not in it yet."""
    wanted = description(job)
    if (stored := attributes_of(group.path)) is not None:
        # First: earlier versions also computed digests of questions in another way.
        check_checksums(group.path, stored)
        check_same(group.path, stored, wanted)
    group.create(wanted)
    left = sorted(set(range(group.chunks)) - group.whole())
    try:
        count = run(left, lambda: _of_group(group, 0, is_whole=False))
    finally:
        group.remove_drafts()
    return _of_group(group, count, is_whole=True)


def _of_group(group: ZarrGroup, count: int, *, is_whole: bool) -> SweepResult:
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
    attributes = Merged.attributes_of(path) if is_reduced else attributes_of(path)
    if attributes is not None and not resume:
        raise SweepError(
            f"{quote(str(path))} exists and resume is False. Choose another path, or "
            "remove it."
        )
    return attributes


def _check_kind(questions: Iterable[Question], samples: Samples) -> None:
    """Check that no solver is given joint positions, which may look like poses.

    Raises:
        ShapeError: One is.
    """
    if box_of(samples) is not None and any(
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
    reductions = dict(cast("Mapping[Any, Any]", reduce))
    for name, each in reductions.items():
        if not isinstance(name, str):
            raise SweepError(f"reduce= has the name {name!r}; names are texts.")
        if not isinstance(each, Reduction):
            raise SweepError(
                f"reduce= has a {type(each).__name__} as {quote(name)}; it takes "
                "arm.sweeps.Voxels, Count, Histogram or Best."
            )
    return reductions


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
    # At most a million rows or 64 MB; of a short sweep a sixteenth, for all workers to
    # have some; but not so few that files cost more than rows.
    most = min(CHUNK, max(1, CHUNK_BYTES // row_bytes))
    return min(most, max(LEAST_CHUNK, -(-count // PIECES)), count)


# reductions in a file


INTERVAL: Final = 5.0  # [s] between two files
CHUNKS: Final = "chunks"
ABOUT: Final = "about"
DAMAGES: Final = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, RecursionError),
    *(NotImplementedError, BadZipFile, zlib.error),
)


class Merged:
    """The merged reductions of the chunks of a sweep; exact in any order."""

    def __init__(
        self, job: Job, path: Path | None, attributes: Mapping[str, Any]
    ) -> None:
        """Begin without any chunk; nothing is written yet."""
        self._job, self._path, self._attributes = job, path, attributes
        self._saved = time.monotonic()
        self._is_new = True
        self._chunks = np.zeros(job.chunks, np.bool_)
        self._states: dict[str, States] = {
            name: reduction.start(job.fields, job.count)
            for name, reduction in job.reductions.items()
        }

    @classmethod
    def begun(
        cls,
        job: Job,
        path: Path | None,
        attributes: Mapping[str, Any],
        *,
        resumed: bool,
    ) -> Merged:
        """Return what was merged before; nothing where that is not `resumed`."""
        merged = cls(job, path, attributes)
        if path is not None and resumed:
            merged._is_new = False
            with _opened(path) as file:
                for name, array in {CHUNKS: merged._chunks, **merged.arrays}.items():
                    stored = file[name]
                    if (stored.shape, stored.dtype) != (array.shape, array.dtype):
                        raise foreign(path)
                    array[...] = stored
        return merged

    @staticmethod
    def attributes_of(path: Path) -> dict[str, Any] | None:
        """Return what a file says of its sweep; None where there is no file.

        Raises:
            SweepError: It is another file.
        """
        if not path.exists():
            return None
        with _opened(path) as file:
            return checked_attributes(json.loads(str(file[ABOUT])))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of all reductions by their full names."""
        return {
            full_name(name, field): array
            for name, states in self._states.items()
            for field, array in states.items()
        }

    @property
    def left(self) -> list[int]:
        """Return the numbers of the chunks that are missing."""
        return np.flatnonzero(~self._chunks).tolist()

    def take(self, number: int, done: Done) -> None:
        """Merge a chunk, and write the file if the last one is some time ago."""
        for name, states in (done.states or {}).items():
            self._job.reductions[name].merge(self._states[name], states)
        self._chunks[number] = True
        self._is_new = True
        if time.monotonic() - self._saved > INTERVAL:
            self.save()

    def save(self) -> None:
        """Write the file at once, if there is one and anything is new."""
        if self._path is None or not self._is_new:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._path) as file:
            about = np.array(json.dumps(self._attributes))
            arrays: dict[str, Any] = {CHUNKS: self._chunks, ABOUT: about}
            np.savez(file, allow_pickle=False, **(arrays | self.arrays))
        self._saved, self._is_new = time.monotonic(), False


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    """Open a file of arrays.

    Raises:
        SweepError: It is another file, or the block shows that it is damaged.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            yield file
    except DAMAGES as error:
        raise foreign(path) from error


# what is stored of a sweep


ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+")


def description(job: Job) -> dict[str, Any]:
    """Return the description of a sweep, as JSON has it.

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


def _digest_of(job: Job) -> str | None:
    asked = [(each.name, each.ask, _call_of(each)) for each in job.questions]
    try:
        return digest((asked, sorted(job.reductions.items())))
    except Exception as error:
        raise SweepError(
            "A sweep to a file identifies its question by its "
            f"pickle, which cannot be made: {error}. Define functions at the top of "
            "a module, or sweep into memory."
        ) from error


def _call_of(question: Question) -> FunctionType | None:
    """Return the code of an object of the user's that is called, as functions are."""
    call: Any = type(question.core).__call__
    return call if type(call) is FunctionType and not question.is_native else None


def _described(reduction: Any) -> Any:
    """Return the kind and the fields of a reduction as JSON has them."""
    if not is_dataclass(reduction) or isinstance(reduction, type):
        return repr(reduction)
    fields = {"kind": type(reduction).__name__, **asdict(reduction)}
    return json.loads(json.dumps(fields, default=lambda each: np.array(each).tolist()))


def _cells(job: Job) -> Iterator[str]:
    """Yield the names and digests of the cells of samples, checks and solvers."""
    box = box_of(job.samples)
    if box is not None:
        yield _cell_text(box.cell, box.cell_digest)
    for question in job.questions:
        core = question.core
        if isinstance(core, CollisionCheck | InverseKinematics):
            yield _cell_text(core.cell.name, cell_digest(core.cell))


def _cell_text(name: str, key: str | None) -> str:
    return name if key is None else f"{name} {key}"


def _addressless(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts without the addresses of objects, which differ in every process."""
    return {name: ADDRESS.sub("", text) for name, text in texts.items()}
