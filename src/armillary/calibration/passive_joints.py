"""Readings of joints that loops determine, as of encoders in passive joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import Compared, Measurement, as_sigma
from armillary.errors import ModelError, quote
from armillary.kinematics.kernels import listed_joints
from armillary.kinematics.passive_positions import (
    passive_parameter_rates,
    passive_positions,
)
from armillary.kinematics.state import State
from armillary.model.link import TWO_TURNS
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell

__all__ = ["PassiveJoints"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class PassiveJoints(Measurement):
    """Positions of joints that closed loops determine.

    What an encoder shows where the model has 0 is a parameter, such as `fore.offset`:
    it shows the position of the model less that. Whole turns do not count.

    Attributes:
        joints: Names of the joints.
        sigma: The standard deviation of each reading [m or rad].
    """

    def __init__(
        self,
        joints: Sequence[str],
        q: npt.ArrayLike,
        readings: npt.ArrayLike,
        *,
        sigma: float = 1e-4,
        state: State | None = None,
    ) -> None:
        """Take readings.

        Args:
            joints: Names of the k joints that were read, of `cell.passive_names`.
            q: Positions of the joints that loops do not determine [m or rad], shape
                (n, j).
            readings: Positions of those joints [m or rad], shape (n, k).
            sigma: The standard deviation of each [m or rad]; joints of other errors are
                a measurement of their own.
            state: Whose branch of the loops counts, that of home by default.

        Raises:
            ModelError: Arrays have other shapes, or numbers that are not finite; no
                joint is named, or one twice.
        """
        names = listed_joints(joints) or ()
        if not names or len(set(names)) < len(names):
            raise ModelError(
                f"joints= are names of passive joints, each once; not {quote(joints)}."
            )
        self.joints = names
        super().__init__(", ".join(map(str, names)), q, readings, (len(names),), "")
        self.sigma = as_sigma(sigma, "sigma")
        self.units = ("m or rad",) * len(names)
        self.state = state

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each reading [m or rad]."""
        return np.full(len(self.joints), self.sigma)

    def check(self, cell: Workcell) -> None:
        """Check that joints are passive ones of a cell, and nothing is in degrees.

        Raises:
            UnknownName: A joint is not a passive one of the cell.
            ModelError: Numbers do not fit.
        """
        super().check(cell)
        largest = np.abs(self.measured).max(axis=0)
        turns = self._turns(cell)
        for name, size, is_angle in zip(self.joints, largest, turns, strict=True):
            if is_angle and size > TWO_TURNS:
                raise ModelError(
                    f"{self.label} has {quote(name)} at {size:g} rad, more than two "
                    "turns. If these are degrees, use numpy.radians, or say --degrees."
                )

    def _numbers(self, cell: Workcell) -> list[int]:
        """Return their places among all joints, passive ones last."""
        return [cell.passive_joint(name) for name in self.joints]

    def _turns(self, cell: Workcell) -> npt.NDArray[np.bool_]:
        """Return of which joints positions are angles."""
        joints = (cell.links[cell.joints.links[k]].joint for k in self._numbers(cell))
        return np.array([each.input_units == (Unit.RADIAN,) for each in joints])

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the positions of the joints, shape (n, k)."""
        numbers = self._numbers(cell)
        kernel: Any = passive_positions(cell, numbers, tuple(names), self.state)
        return kernel(q, p)

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        numbers = self._numbers(cell)
        rates: Any = passive_parameter_rates(cell, numbers, tuple(names), self.state)
        off = self.expected(cell, names, p, q) - measured
        turns = np.where(self._turns(cell), np.round(off / (2.0 * np.pi)), 0.0)
        return Compared(off - 2.0 * np.pi * turns, cast(Array, rates(q, p)))

    def rows(self, places: Indices) -> PassiveJoints:
        """Return the measurement of some of its rows."""
        return PassiveJoints(
            self.joints,
            self.q[places],
            self.measured[places],
            sigma=self.sigma,
            state=self.state,
        )
