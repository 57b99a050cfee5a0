"""Poses that people write: so many numbers each, in a text or in a file."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cli.vectors import DEGREES_PER_RADIAN, vector_of_text
from armillary.errors import ShapeError, quote
from armillary.ik.targets import as_matrices, at_positions
from armillary.kernel import vectorize
from armillary.spatial.pose import Pose
from armillary.sweeps.row_files import RowFile, open_rows
from armillary.trace import Program, trace

Array = npt.NDArray[np.float64]

POSITION: Final = ("x", "y", "z")
RPY: Final = ("x", "y", "z", "roll", "pitch", "yaw")
QUATERNION: Final = ("qw", "qx", "qy", "qz", "x", "y", "z")
DUAL_QUATERNION: Final = 8
MATRIX: Final = 16
FORMS: Final = (
    f"A pose is {','.join(RPY)}, or {','.join(QUATERNION)}, or the 8 numbers of a dual "
    "quaternion, or the 16 of a 4x4 matrix row by row"
)
# A quaternion of another length is a mistake, unless its digits were few.
LENGTH_ERROR: Final = 0.01


def pose_of_text(text: str, *, degrees: bool, position_only: bool = False) -> Array:
    """Return the pose that a text of numbers describes, shape (4, 4).

    Args:
        text: The numbers.
        degrees: Whether its angles are in degrees.
        position_only: Whether three numbers, a position, are enough.

    Raises:
        ShapeError: A part of it is not a number, or it has not as many as a pose.
    """
    numbers = vector_of_text(text, "--pose")[None]
    (pose,) = _matrices(numbers, "--pose", degrees, position_only)
    return pose


@contextmanager
def open_targets(
    path: str,
    *,
    degrees: bool,
    position_only: bool = False,
    at_once: int | None = None,
) -> Generator[RowFile, None, None]:
    """Give the poses in a CSV or NPY file, in chunks of shape (k, 4, 4).

    A first line of names in a CSV file says in which order three, six or seven numbers
    come.

    Args:
        path: The path of the file.
        degrees: Whether its angles are in degrees.
        position_only: Whether three numbers, a position, are enough.
        at_once: The poses of a chunk.

    Raises:
        ShapeError: It holds something else.
        OSError: It cannot be read.
    """
    with open_rows(path, matrices=True, at_once=at_once) as file:
        order = None if file.names is None else _order(file.names, path)

        def poses() -> Iterator[tuple[Array, int]]:
            for rows, done in file.numbered:
                if order is not None and rows.shape[1] != len(order):
                    raise ShapeError(
                        f"{path}: {rows.shape[1]} numbers below {len(order)} names."
                    )
                ordered = rows if order is None else rows[:, order]
                yield _matrices(ordered, path, degrees, position_only), done

        yield replace(file, numbered=poses())


def named_poses(
    names: Sequence[str], rows: Array, source: str, *, degrees: bool
) -> Array:
    """Return the poses of columns that have names, in any order, shape (k, 4, 4).

    Positions alone have the rotation of `relative_to`, whatever that means there.

    Args:
        names: Those of a position, of one with angles or with a quaternion.
        rows: The numbers below them, shape (k, n).
        source: What messages call the file.
        degrees: Whether angles are in degrees.

    Raises:
        ShapeError: They are other names.
    """
    return _matrices(rows[:, _order(names, source)], source, degrees, True)


def _order(names: Sequence[str], path: str) -> list[int]:
    """Return the indices of the numbers in the order of a known form."""
    for form in (POSITION, RPY, QUATERNION):
        if sorted(names) == sorted(form):
            return [names.index(name) for name in form]
    raise ShapeError(
        f"{path}: the names {quote(','.join(names))} do not describe a pose. {FORMS}; "
        "the names of six or seven may come in any order."
    )


def _matrices(
    numbers: npt.NDArray[Any], source: str, degrees: bool, position_only: bool
) -> Array:
    """Return the poses of rows of numbers, shape (k, 4, 4)."""
    rows = np.array(numbers, np.float64)
    width = rows.shape[1]
    if width == len(POSITION):
        if not position_only:
            raise ShapeError(
                f"{source}: 3 numbers are a position; add --rotation none. {FORMS}."
            )
        return at_positions(rows)
    if width == len(RPY):
        rows[:, 3:] /= DEGREES_PER_RADIAN if degrees else 1.0
        return np.asarray(vectorize(_rpy_program(), rows))
    if width == MATRIX:
        return rows.reshape(-1, 4, 4)
    if width not in {len(QUATERNION), DUAL_QUATERNION}:
        raise ShapeError(f"{source}: {width} numbers do not make a pose. {FORMS}.")
    # A quaternion, or the real part of a dual quaternion, has length 1; others become
    # NaN, which the solver reports as an invalid target.
    length = np.linalg.norm(rows[:, :4], axis=1)
    rows[~(np.abs(length - 1.0) < LENGTH_ERROR)] = np.nan
    return as_matrices(rows)


@lru_cache
def _rpy_program() -> Program:
    def pose(numbers: Sequence[Any]) -> Any:
        roll, pitch, yaw = numbers[3:]
        return Pose.from_rpy(roll, pitch, yaw, numbers[:3]).matrix()

    return trace(pose, name="pose_of_rpy", numbers=(len(RPY),))
