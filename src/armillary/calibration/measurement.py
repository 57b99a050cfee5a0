"""A measurement of a cell: joint positions, and what was measured at each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.kinematics.kernels import check_frame_name
from armillary.kinematics.questions import fk, parameter_jacobian
from armillary.model.link import TWO_TURNS
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell

__all__ = ["Compared", "Measurement", "as_sigma", "numbers_in_rows"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MANY_TURNS: Final = 100.0
"""Positions of joints without limits above it [rad] are taken for degrees."""


class Compared(NamedTuple):
    """Rows of a measurement at values of parameters, in units of their errors.

    Attributes:
        residuals: What the model says less what was measured, over the standard
            deviation; shape (n, d).
        rates: Their derivatives by parameters, shape (n, d, k).
    """

    residuals: Array
    rates: Array


class Measurement(ABC):
    """Rows of joint positions, and what was measured at each.

    Attributes:
        frame: The frame that was measured.
        q: Positions of all joints of the cell at each row [m or rad], shape (n, j).
        relative_to: The frame in which numbers are given.
        units: The unit of each residual times its standard deviation: `m` or `rad`.
        unknowns: How many numbers beside the parameters are found from its rows.
    """

    units: tuple[str, ...] = ("m", "m", "m")
    unknowns: int = 0

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        measured: npt.ArrayLike,
        shape: tuple[int, ...],
        relative_to: str,
    ) -> None:
        """Take the numbers of a measurement.

        Args:
            frame: The frame that was measured.
            q: Joint positions, shape (n, j).
            measured: Shape (n, *shape).
            shape: Of what was measured in a row.
            relative_to: In which frame.

        Raises:
            ModelError: Arrays have other shapes, or numbers that are not finite; or a
                frame is not given by its name, or measured from itself.
        """
        for each in (frame, relative_to):
            check_frame_name(each)
        self.frame, self.relative_to = frame, relative_to
        if frame and frame == relative_to:
            raise ModelError(f"{self.label} is relative to the same frame.")
        self.q = numbers_in_rows(q, (-1,), "joint positions", self.label)
        self.measured = numbers_in_rows(measured, shape, "measured values", self.label)
        if len(self.q) != len(self.measured):
            raise ModelError(
                f"{self.label} has {len(self.q)} rows of joint positions, but "
                f"{len(self.measured)} measured values; each needs its own."
            )

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"{type(self).__name__} of {quote(self.frame)}"

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        return f"<{self.label}, {len(self)} rows>"

    @property
    @abstractmethod
    def sigmas(self) -> Array:
        """Return the standard deviation of each number of a row [m or rad]."""

    def poses(self, cell: Workcell, names: Sequence[str], p: Array, q: Array) -> Array:
        """Return the poses of the frame in `relative_to`, shape (n, 4, 4)."""
        kernel: Any = fk(
            cell,
            self.frame,
            relative_to=self.relative_to,
            parameters=tuple(names),
        )
        return kernel(q, p)

    def twists(self, cell: Workcell, names: Sequence[str], p: Array, q: Array) -> Array:
        """Return its twist per unit of each parameter, shape (n, 6, k)."""
        kernel: Any = parameter_jacobian(
            cell, self.frame, tuple(names), relative_to=self.relative_to
        )
        return kernel(q, p)

    @abstractmethod
    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        """Return residuals, not divided by `sigmas`, and their derivatives."""

    def check(self, cell: Workcell) -> None:
        """Check that joint positions are those of a cell, and not in degrees.

        Raises:
            ModelError: They are not.
        """
        joints = len(cell.joint_names)
        if self.q.shape[1] != joints:
            raise ModelError(
                f"{self.label} has {self.q.shape[1]} joint positions in a row; the "
                f"cell has {joints} joints: {', '.join(cell.joint_names)}."
            )
        for k, name in enumerate(cell.joint_names):
            joint = cell.links[cell.joints.links[cell.joint(name)]]
            largest = float(np.abs(self.q[:, k]).max())
            ends = max(abs(joint.limits.lower), abs(joint.limits.upper))
            reach = max(TWO_TURNS, ends if ends < np.inf else MANY_TURNS)
            is_angle = joint.joint.input_units == (Unit.RADIAN,)
            if is_angle and largest > reach + 1e-6:
                raise ModelError(
                    f"{self.label} has joint {quote(name)} at "
                    f"{largest:g} rad, more than two turns and far from its limits. "
                    "If these are degrees, use numpy.radians, or say --degrees."
                )

    def compared(self, cell: Workcell, names: Sequence[str], p: Array) -> Compared:
        """Return the residuals at values of parameters, in parts of their errors.

        Args:
            cell: What was measured.
            names: Of the parameters.
            p: Their values, shape (k,).
        """
        found = self._compared(cell, names, p, self.q, self.measured)
        weights = 1.0 / self.sigmas
        return Compared(found.residuals * weights, found.rates * weights[:, np.newaxis])

    def rates_at(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the derivatives that such a measurement would have at other rows.

        Returns:
            Shape (n, d, k), in parts of its errors.
        """
        measured = self.expected(cell, names, p, q)
        found = self._compared(cell, names, p, q, measured)
        return found.rates / self.sigmas[:, np.newaxis]

    @abstractmethod
    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return what would be measured at rows of joint positions."""

    @abstractmethod
    def rows(self, places: Indices) -> Measurement:
        """Return the measurement of some of its rows."""


def numbers_in_rows(
    given: npt.ArrayLike, shape: tuple[int, ...], what: str, label: str
) -> Array:
    """Return rows as an array of finite numbers.

    shape: Of a row; (-1,) for any count of numbers.

    Raises:
        ModelError: It has another shape, or a number is not finite.
    """
    try:
        if np.iscomplexobj(given):
            raise TypeError("they are complex")
        array = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"The {what} of {label} are not numbers: {error}") from error
    sizes = array.shape[1:]
    is_right = len(sizes) == len(shape) and array.ndim > 0
    if not (is_right and all(a in {-1, b} for a, b in zip(shape, sizes, strict=True))):
        wanted = ("n", *("joints" if k < 0 else str(k) for k in shape))
        raise ModelError(
            f"The {what} of {label} have shape {array.shape}; it must be "
            f"({', '.join(wanted)})."
        )
    if not len(array):
        raise ModelError(f"{label} has no rows.")
    bad = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if bad.any():
        places = ", ".join(map(str, np.flatnonzero(bad)[:5]))
        raise ModelError(
            f"The {what} of {label} are not finite in row {places}; leave such rows "
            "out."
        )
    array.flags.writeable = False
    return array


def as_sigma(value: Any, what: str) -> float:
    """Return a standard deviation as a float.

    Raises:
        ModelError: It is not one number, finite and above 0.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(
            f"{what} is one number, the standard deviation of each row; not "
            f"{quote(value)}. Rows of other errors are a measurement of their own."
        ) from None
    if not 0.0 < number < np.inf:
        raise ModelError(
            f"{what} is a standard deviation, finite and above 0; not {number}."
        )
    return number
