"""Vectors that people write, in options and in files, and the units of joints."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.errors import ShapeError, quote
from armillary.kinematics.state import State
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.sweeps.row_files import RowFile, as_number, open_rows

__all__ = [
    "DEGREES_PER_RADIAN",
    "JointFile",
    "chosen_factors",
    "chosen_vector",
    "join_numbers",
    "joint_factors",
    "open_joint_file",
    "vector_of_text",
]

Array = npt.NDArray[np.float64]

DEGREES_PER_RADIAN: Final = 180.0 / math.pi


def join_numbers(arguments: Sequence[str], numbered: Set[str]) -> list[str]:
    """Return the arguments with the numbers after an option as one, `--q=1,-2e-3`.

    The parser would take numbers such as -2e-3 for options.

    Args:
        arguments: What follows the name of the program.
        numbered: The options that take lists of numbers.
    """
    waiting = list(reversed(arguments))
    joined: list[str] = []
    while waiting:
        argument = waiting.pop()
        numbers: list[str] = []
        while argument in numbered and waiting and _are_numbers(waiting[-1]):
            numbers.append(waiting.pop().strip(","))
        joined.append(f"{argument}={','.join(numbers)}" if numbers else argument)
    return joined


def _are_numbers(text: str) -> bool:
    parts = [part for part in re.split("[,:]", text) if part]
    return bool(parts) and all(as_number(part) is not None for part in parts)


def vector_of_text(text: str, option: str) -> Array:
    """Return the numbers of a text, separated by commas or blanks, shape (n,).

    Raises:
        ShapeError: A part of it is not a number.
    """
    parts = [part for part in re.split(r"[,\s]+", text) if part]
    numbers = [as_number(part) for part in parts]
    for part, number in zip(parts, numbers, strict=True):
        if number is None:
            raise ShapeError(
                f"{option}: {quote(part)} is not a number. Separate numbers by commas."
            )
    return np.array(numbers, np.float64)


def joint_factors(cell: Workcell, joints: Sequence[str]) -> Array:
    """Return what makes degrees radians, 1 for joints of other units, shape (n,).

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A bare name is not unique.
    """
    links = [cell.links[cell.joints.links[cell.joint(name)]] for name in joints]
    units = [link.joint.unit for link in links]
    return np.array(
        [1.0 / DEGREES_PER_RADIAN if unit is Unit.RADIAN else 1.0 for unit in units]
    )


def chosen_factors(
    cell: Workcell, joints: Sequence[str], options: argparse.Namespace
) -> Array:
    """Return what makes the numbers of joints SI, as `--degrees` says, shape (n,)."""
    return joint_factors(cell, joints) if options.degrees else np.ones(len(joints))


def chosen_vector(
    cell: Cell, text: str, options: argparse.Namespace, name: str = "--q"
) -> Array:
    """Return the numbers of an option, one for each joint, in SI units, shape (n,).

    Raises:
        ShapeError: There are more or fewer of them.
    """
    numbers = vector_of_text(text, name)
    names = cell.joint_names
    if len(numbers) != len(names):
        raise ShapeError(
            f"{name} has {len(numbers)} numbers; cell {quote(cell.name)} has "
            f"{len(names)} joints: {', '.join(names)}."
        )
    return numbers * chosen_factors(cell.workcell, names, options)


@dataclass(frozen=True)
class JointFile:
    """The vectors of all joints of a cell that a file gives, read in chunks.

    Attributes:
        file: Its rows as they are written.
        chunks: Joint positions [m or rad], shape (k, n), one after another.
    """

    file: RowFile
    chunks: Iterator[Array]


@contextmanager
def open_joint_file(
    path: str, cell: Cell, state: State, options: argparse.Namespace
) -> Generator[JointFile, None, None]:
    """Give the joint vectors in a CSV or NPY file.

    Args:
        path: The path of the file. A first line of a CSV file may name joints.
        cell: The cell that has the joints.
        state: The positions of the joints that the file does not name.
        options: `--degrees` says whether angles in the file are in degrees.

    Raises:
        ArmillaryError: The file has no vectors of joints of this cell.
    """
    with open_rows(path) as file:
        joints = file.names or cell.joint_names
        factors = chosen_factors(cell.workcell, joints, options)
        whole = cell.device(joints=joints, state=state).whole

        def chunks() -> Iterator[Array]:
            for rows in file.chunks:
                if rows.shape[1] != len(joints):
                    raise ShapeError(
                        f"{path}: the vectors have {rows.shape[1]} numbers; "
                        f"{len(joints)} are expected, for the joints "
                        f"{', '.join(joints)}."
                    )
                yield whole(rows * factors)

        yield JointFile(file, chunks())
