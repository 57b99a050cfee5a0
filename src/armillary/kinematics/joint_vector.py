"""Vectors of joint positions or rates of a cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote
from armillary.kernel.arguments import FLOAT64
from armillary.model.workcell import Workcell

__all__ = [
    "NO_NUMBERS",
    "check_joints",
    "check_rates",
    "distinct",
    "finite_numbers",
    "numbers_of",
    "with_numbers",
]

T = TypeVar("T")
Array = npt.NDArray[np.float64]

NO_NUMBERS: Final = np.frombuffer(b"", np.float64)
"""The vector without numbers; states know it by its identity."""

_ARRAY: Final = np.ndarray
_of_bytes: Final = np.frombuffer
MINUS_ZERO: Final = np.float64(-0.0).tobytes()


def numbers_of(values: Any, name: str) -> Array:
    """Return joint positions or rates as states hold them, shape (n,), read-only.

    name: What messages call them.

    Raises:
        StateError: They are not one vector of finite numbers.
    """
    ordinary = _ordinary(values)
    if ordinary is not None:
        return ordinary
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiubO":
            raise TypeError(f"{given.dtype} is not a type of real numbers")
        array = given.astype(np.float64) + 0.0  # not -0.0: texts and bytes differ
    except (TypeError, ValueError, OverflowError) as error:
        text = f"{name} must be a vector of numbers, not {values!r}."
        raise StateError(text) from error
    if array.ndim != 1:
        raise StateError(f"{name} must be one vector; a state holds no batch.")
    if not np.isfinite(array).all():
        numbers = tuple(array.tolist())
        raise StateError(f"{name} holds a number that is not finite: {numbers}.")
    # An array over bytes cannot be made writeable again; one with its own memory can.
    return np.frombuffer(array.tobytes(), np.float64) if array.size else NO_NUMBERS


def check_rates(rates: Array, positions: Array) -> None:
    """Refuse rates of another number of joints than positions; none are right.

    Raises:
        StateError: Their number differs.
    """
    if rates.size and len(rates) != len(positions):
        raise StateError(f"{len(rates)} rates for {len(positions)} positions.")


def _ordinary(values: Any) -> Array | None:
    """Return a vector of ordinary float64 as states hold it; None for other things.

    For a few numbers, Python is quicker than NumPy. What is checked is a copy, which no
    other thread writes to.
    """
    if type(values) is not _ARRAY or values.dtype is not FLOAT64 or values.ndim != 1:
        return None
    text = values.tobytes()
    if not text:
        return NO_NUMBERS
    array: Array = _of_bytes(text)  # of float64
    numbers: list[float] = array.tolist()
    # A sum is finite only where all are: infinities and NaN stay what they are.
    if not math.isfinite(sum(numbers)):
        return None
    if 0.0 in numbers and MINUS_ZERO in text:
        return np.frombuffer((array + 0.0).tobytes(), np.float64)
    return array


def finite_numbers(values: Any, count: int) -> Array | None:
    """Return so many finite numbers as a vector; None where they are anything else."""
    try:
        array = np.asarray(values, dtype=np.float64) + 0.0  # not -0.0
    except (TypeError, ValueError):
        return None
    return array if array.shape == (count,) and np.isfinite(array).all() else None


def with_numbers(
    whole: Sequence[T], joints: Sequence[int], numbers: Iterable[T]
) -> list[T]:
    """Return a vector of the cell with other numbers for some joints.

    Args:
        whole: The vector, shape (N,).
        joints: Indices of the joints in it, shape (n,).
        numbers: Theirs, shape (n,).
    """
    result = list(whole)
    for k, number in zip(joints, numbers, strict=True):
        result[k] = number
    return result


def check_joints(count: int, own: Workcell | None, cell: Workcell) -> None:
    """Check that joint positions of a state are those of the joints of a cell.

    Args:
        count: How many there are.
        own: The cell that they were made for, if it is known.
        cell: The cell that is asked.

    Raises:
        StateError: There are other joints in the cell.
    """
    if count != len(cell.joint_names):
        raise StateError(
            f"The state has {count} joint positions; cell {quote(cell.name)} has "
            f"{len(cell.joint_names)} joints. Start from cell.home."
        )
    if own is None:
        return
    for k, (theirs, ours) in enumerate(zip(_joints(own), _joints(cell), strict=True)):
        if theirs != ours:
            raise StateError(
                f"The state is of another cell, {quote(own.name)}: q[{k}] is joint "
                f"{quote(theirs)} there and {quote(ours)} here. Start from cell.home."
            )


def _joints(cell: Workcell) -> list[str]:
    if len(cell.manipulators) != 1:
        return list(cell.joint_names)
    return [f"{cell.manipulators[0].name}/{name}" for name in cell.joint_names]


def distinct(
    q: npt.NDArray[np.float64],
    apart: npt.ArrayLike,
    *,
    turning: npt.ArrayLike = False,
) -> list[int]:
    """Return the indices of vectors that differ from all that are kept before.

    Args:
        q: Vectors, shape (k, n).
        apart: Vectors differ if a joint does by more than this [m or rad], shape () or
            (n,).
        turning: Which joints may differ by whole turns, shape () or (n,).
    """
    kept: list[int] = []
    for k, one in enumerate(q):
        off = q[kept] - one
        off -= np.where(turning, math.tau * np.rint(off / math.tau), 0.0)
        if (np.abs(off) > apart).any(axis=1).all():
            kept.append(k)
    return kept
