"""Reductions of all chunks so far, in memory and in a file to resume from."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from armillary.replaced_file import replacing
from armillary.sweeps.chunk import Done, Job
from armillary.sweeps.fields import full_name
from armillary.sweeps.reductions import States
from armillary.sweeps.zarr_group import checked_attributes, foreign

__all__ = ["Merged"]

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
                    found = file[name]
                    if (found.shape, found.dtype) != (array.shape, array.dtype):
                        raise foreign(path)
                    array[...] = found
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
