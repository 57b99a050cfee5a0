"""Torques of joints along a motion, from which masses and friction follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import (
    Compared,
    Measurement,
    as_sigma,
    numbers_in_rows,
)
from armillary.dynamics.options import Options
from armillary.dynamics.questions import inverse_dynamics, torque_rates
from armillary.errors import ModelError, quote
from armillary.kernel.arguments import fitting, numbers_of
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell

__all__ = ["Torques"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MANY_LIMITS: Final = 10.0
"""Rates above so many times the limit of a joint are in degrees, or no rates."""


class Torques(Measurement):
    """Torques of all joints along a motion, as of motor currents times their constants.

    They decide parameters such as `forearm.inertia` and `elbow.dynamics.friction`.

    Attributes:
        qd: Rates of the joints [rad/s or m/s], shape (n, j).
        qdd: Their accelerations [rad/s^2 or m/s^2], shape (n, j).
    """

    def __init__(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        torques: npt.ArrayLike,
        *,
        sigma: float | Sequence[float] = 1.0,
        state: State | None = None,
        gravity: Sequence[float] | None = None,
    ) -> None:
        """Take measured torques.

        Args:
            q: Positions of all joints [m or rad], shape (n, j).
            qd: Their rates [m/s or rad/s], shape (n, j), of smoothed positions.
            qdd: Their accelerations [m/s^2 or rad/s^2], shape (n, j).
            torques: Torques or forces of their motors [N m or N], shape (n, j).
            sigma: The standard deviation of each [N m or N]; or of each joint, shape
                (j,).
            state: Whose attachments count, such as of a part that is gripped.
            gravity: The acceleration of falling bodies in the world [m/s^2], by default
                (0, 0, -9.81).

        Raises:
            ModelError: Arrays have other shapes, or numbers that are not finite.
        """
        super().__init__("", q, torques, (-1,), "")
        joints = self.q.shape[1]
        if self.measured.shape[1] != joints:
            raise ModelError(
                f"{self.label} have {self.measured.shape[1]} torques in a row, but "
                f"{joints} joint positions; each joint needs its own."
            )
        rates = numbers_in_rows(qd, (joints,), "rates", self.label)
        accelerations = numbers_in_rows(qdd, (joints,), "accelerations", self.label)
        if not len(rates) == len(accelerations) == len(self.q):
            raise ModelError(
                f"{self.label} have {len(self.q)} rows of positions, {len(rates)} of "
                f"rates and {len(accelerations)} of accelerations; each needs its own."
            )
        self.qd, self.qdd = rates, accelerations
        values = numbers_of("sigma of Torques", sigma)
        if values.shape not in {(), (joints,)}:
            raise ModelError(
                f"sigma= of {self.label} is one number, or one for each of {joints} "
                f"joints; {values.size} were given."
            )
        listed = np.broadcast_to(values, joints).tolist()
        self._sigmas = np.array([as_sigma(each, "sigma") for each in listed])
        self.units = ("N m or N",) * joints
        self.state = state
        self.gravity: Sequence[float] | None = None
        if gravity is not None:
            self.gravity = tuple(fitting("gravity", gravity, (3,)).tolist())

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return "Torques"

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each torque [N m or N]."""
        return self._sigmas

    def check(self, cell: Workcell) -> None:
        """Check that positions and rates are those of a cell, and not in degrees.

        Raises:
            ModelError: They are not.
        """
        super().check(cell)
        limits = cell.velocity_limits
        fastest = np.abs(self.qd).max(axis=0)
        for name, rate, limit in zip(cell.joint_names, fastest, limits, strict=True):
            if rate > MANY_LIMITS * limit:
                raise ModelError(
                    f"{self.label} have joint {quote(name)} at a rate of {rate:.3g}, "
                    f"but its limit is {limit:.3g} [rad/s or m/s]. If rates are in "
                    "degrees, use numpy.radians; are rates and accelerations swapped?"
                )

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the torques at the rates and accelerations measured, shape (n, j)."""
        kernel: Any = inverse_dynamics(cell, **self._options(names))
        return kernel(q, p, self.qd, self.qdd)

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        rates: Any = torque_rates(cell, **self._options(names))
        J: Array = rates(q, p, self.qd, self.qdd)
        return Compared(self.expected(cell, names, p, q) - measured, J)

    def _options(self, names: Sequence[str]) -> Options:
        return Options(parameters=tuple(names), state=self.state, gravity=self.gravity)

    def rates_at(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Refuse to say what other positions would tell.

        Raises:
            ModelError: Torques depend on how joints move, too.
        """
        raise ModelError(
            "Torques depend on rates and accelerations, not on joint positions alone: "
            "use arm.measurements.exciting_motion(cell, parameters) for what to "
            "measure next."
        )

    def rows(self, places: Indices) -> Torques:
        """Return the measurement of some of its rows."""
        return Torques(
            self.q[places],
            self.qd[places],
            self.qdd[places],
            self.measured[places],
            sigma=self._sigmas.tolist(),
            state=self.state,
            gravity=self.gravity,
        )
