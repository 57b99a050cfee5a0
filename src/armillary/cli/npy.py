"""An NPY file that grows row by row, and appears only when it is whole."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt


class NpyWriter:
    """Write an array of float64 whose first dimension need not be known before.

    The file is written under a temporary name and renamed at the end. As a context, it
    is removed if an error leaves the block.
    """

    def __init__(self, path: str, shape: tuple[int, ...]) -> None:
        """Begin; of `shape`, the first number counts only where no numbers follow.

        Raises:
            OSError: The file cannot be written.
        """
        self._path = path
        self._shape = shape
        self._draft = f"{path}.{secrets.token_hex(4)}.part"
        self._size = 0
        self._row = math.prod(shape[1:])
        self._file = Path(self._draft).open("xb")  # noqa: SIM115
        self._write_header(shape)
        self._start = self._file.tell()

    def append(self, array: npt.NDArray[np.float64]) -> None:
        """Write the numbers that follow, in the order of rows, of any shape."""
        assert array.dtype == np.float64, array.dtype
        self._file.write(np.ascontiguousarray(array).data)
        self._size += array.size

    def close(self) -> None:
        """Finish the file and rename it."""
        shape = self._shape
        if self._size and shape:
            shape = (self._size // self._row, *shape[1:])
        self._file.seek(0)
        self._write_header(shape)
        assert self._file.tell() == self._start, "the header has grown"
        self._file.close()
        os.replace(self._draft, self._path)

    def _write_header(self, shape: tuple[int, ...]) -> None:
        header: dict[str, Any] = {
            "descr": np.lib.format.dtype_to_descr(np.dtype("<f8")),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self._file, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.close()
        finally:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._draft)
