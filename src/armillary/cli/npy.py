"""An NPY file that grows row by row, and appears only when it is whole."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from armillary.replaced_file import replacing

Append = Callable[[npt.NDArray[np.float64]], None]


@contextmanager
def npy_file(path: str, shape: tuple[int, ...]) -> Generator[Append, None, None]:
    """Give a function that appends float64 numbers to an array in a new file.

    It takes the numbers in the order of rows, in an array of any shape. The file
    appears when the block ends without an error.

    shape: Of the array; if numbers follow, the first length is computed from them.

    Raises:
        OSError: The file cannot be written.
    """
    size = 0
    with replacing(os.path.realpath(path)) as file:
        _write_header(file, shape)
        start = file.tell()

        def append(array: npt.NDArray[np.float64]) -> None:
            nonlocal size
            assert array.dtype == np.float64, array.dtype
            file.write(np.ascontiguousarray(array).data)
            size += array.size

        yield append
        if size and shape:
            shape = (size // math.prod(shape[1:]), *shape[1:])
        file.seek(0)
        _write_header(file, shape)
        assert file.tell() == start, "the header has grown"


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
