"""Arrays of results: their names, shapes and types, for each row of samples."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import SweepError
from armillary.model.workcell import Workcell

__all__ = [
    "NamedJoints",
    "ResultAxis",
    "ResultField",
    "Results",
    "check_fits",
    "full_name",
    "rows",
    "whole_number",
]

Array = npt.NDArray[Any]
Results = dict[str, Array]


class ResultAxis(NamedTuple):
    """A dimension of a result.

    Attributes:
        name: Such as `joint` or `twist`.
        names: The names of places along it, such as joints; empty if they have none.
    """

    name: str
    names: tuple[str, ...] = ()


class NamedJoints(NamedTuple):
    """Joints whose positions are stored; empty where they are not known.

    Attributes:
        names: The names of the joints.
        units: The units of their positions: `m`, `rad` or nothing.
    """

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @classmethod
    def of(cls, cell: Workcell, names: Sequence[str]) -> NamedJoints:
        """Return joints of a cell by their names."""
        links = [cell.links[cell.joints.links[cell.joint(name)]] for name in names]
        return cls(tuple(names), tuple(link.joint.unit.value for link in links))


class ResultField(NamedTuple):
    """The shape and type of one result in each row.

    Attributes:
        shape: The shape of the result in one row; () for a number.
        dtype: The type of its numbers.
        units: A text for the attributes of a file.
        axes: One for each dimension of `shape`; empty if nothing is known of them.
        attributes: Further attributes for a file; None for none.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    units: str
    axes: tuple[ResultAxis, ...] = ()
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


# memory


def memory_size() -> float:
    """Return the memory of this machine [bytes], infinite where it is not known."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return math.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_fits(count: int, size: int, what: str, instead: str) -> None:
    """Check that things of a size [bytes] fit into the memory of this machine.

    Raises:
        SweepError: They do not; it says what to do `instead`.
    """
    memory = memory_size()
    if count * size > memory:
        raise SweepError(
            f"{count:,} {what} of {size} bytes need {count * size / 1e9:.3g} GB; this "
            f"machine has {memory / 1e9:.3g} GB. At most {memory // size:,.0f} fit: "
            f"{instead}."
        )
