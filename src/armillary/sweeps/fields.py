"""Arrays of results: their names, shapes and types, for each row of samples."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import SweepError
from armillary.model.workcell import Workcell

__all__ = [
    "Axis",
    "Field",
    "NamedJoints",
    "Results",
    "full_name",
    "rows",
    "whole_number",
]

Array = npt.NDArray[Any]
Results = dict[str, Array]


class Axis(NamedTuple):
    """A dimension of a result.

    Attributes:
        name: Such as `joint` or `twist`.
        names: Of the places along it, such as those of joints; empty if they have none.
    """

    name: str
    names: tuple[str, ...] = ()


class NamedJoints(NamedTuple):
    """Joints whose positions are stored; empty where they are not known.

    Attributes:
        names: Of the joints.
        units: Of their positions: `m`, `rad` or nothing.
    """

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @classmethod
    def of(cls, cell: Workcell, names: Sequence[str]) -> NamedJoints:
        """Return joints of a cell by their names."""
        links = [cell.links[cell.joints.links[cell.joint(name)]] for name in names]
        return cls(tuple(names), tuple(link.joint.unit.value for link in links))


class Field(NamedTuple):
    """The shape and type of one result in each row.

    Attributes:
        shape: Of the result in one row; () for a number.
        dtype: The type of its numbers.
        units: A text for the attributes of a file.
        axes: One for each dimension of `shape`; empty if nothing is known of them.
        attributes: Further attributes for a file; None for none.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    units: str
    axes: tuple[Axis, ...] = ()
    attributes: dict[str, Any] | None = None

    @property
    def row_bytes(self) -> int:
        """Return the size of a row [bytes]."""
        return math.prod(self.shape) * self.dtype.itemsize


def full_name(prefix: str, name: str) -> str:
    """Return the name of a result of a question or reduction that has a name."""
    return "_".join(filter(None, (prefix, name)))


def rows(samples: Array) -> Array:
    """Return the samples themselves: the question whose results are the inputs."""
    return samples


def whole_number(value: Any, name: str) -> int:
    """Return an argument as an integer of Python.

    Raises:
        SweepError: It is not an integer.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        raise SweepError(f"{name} is {value!r}; it must be an integer.") from error
