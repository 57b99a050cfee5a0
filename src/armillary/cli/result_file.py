"""A file of results, NPY or CSV, that grows row by row and appears when it is whole."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.cli.npy import Append, npy_file
from armillary.replaced_file import replacing

ENDINGS: Final = (".npy", ".csv")
# No comma or quote, and nothing that reads as a number.
PLAIN_NAME: Final = re.compile(r"(?!(?i:nan|inf(inity)?)$)[A-Za-z_][\w/. -]*")


@contextmanager
def result_file(
    path: str,
    batch: tuple[int, ...],
    row: tuple[int, ...] = (),
    *,
    names: Sequence[str] = (),
) -> Generator[Append, None, None]:
    """Give a function that appends float64 numbers to a new file.

    A file that ends with `.csv` has a line for each result, with full precision, below
    a line of the names; another one is an NPY array. Both can be read back.

    Args:
        path: Of the file.
        batch: Shape of the batch of results; its first length may be 0 if unknown.
        row: Shape of a result.
        names: Of the numbers of a result. A CSV file has none where one is not plain.

    Raises:
        OSError: The file cannot be written.
    """
    if not path.endswith(".csv"):
        with npy_file(path, (*batch, *row)) as append:
            yield append
        return
    width = int(np.prod(row))
    with _csv_file(path, width, names) as append:
        yield append


@contextmanager
def _csv_file(
    path: str, width: int, names: Sequence[str]
) -> Generator[Append, None, None]:
    with replacing(os.path.realpath(path)) as file:
        if names and all(map(PLAIN_NAME.fullmatch, names)):
            file.write((",".join(names) + "\n").encode())

        def append(array: npt.NDArray[np.float64]) -> None:
            text = io.StringIO()
            np.savetxt(text, array.reshape(-1, width), fmt="%.17g", delimiter=",")
            file.write(text.getvalue().encode())

        yield append
