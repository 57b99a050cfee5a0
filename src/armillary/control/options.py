"""Options of a controller: as a caller gives them, and as checked numbers."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.control.rate_bounds import UNLIMITED
from armillary.errors import ModelError, ShapeError, quote, unknown
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.model.workcell import Workcell

__all__ = ["CONFLICTS", "ControllerNumbers", "ControllerOptions", "per_joint"]

Array = npt.NDArray[np.float64]
CONFLICTS: Final = ("bend", "slow")


class ControllerOptions(NamedTuple):
    """Options of a controller, as a caller gives them; see `Cell.controller`."""

    limits: bool
    velocity: Any
    acceleration: Any
    torque: Any
    conflict: str
    rate: float
    approach: float
    damping: float

    def checked(self) -> ControllerOptions:
        """Return the same options, with numbers as floats.

        Raises:
            UnknownName: There is no such conflict mode.
            ModelError: A number is not above 0, or `limits` is not True or False.
        """
        conflict: Any = self.conflict
        if not (isinstance(conflict, str) and conflict in CONFLICTS):
            raise unknown("conflict mode", conflict, CONFLICTS)
        limits: Any = self.limits
        if not isinstance(limits, bool):
            raise ModelError(
                "limits= says whether joints keep the limits of the model, True or "
                f"False, not {quote(limits)}. Other limits are those of "
                "another cell."
            )
        numbers = {
            name: positive_number(f"{name}=", getattr(self, name))
            for name in ("rate", "approach", "damping")
        }
        return self._replace(**numbers)


class ControllerNumbers(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Limits of all joints, and gains, of a controller.

    Attributes:
        lower: Lower limits of positions [m or rad], shape (n,).
        upper: Upper limits of positions [m or rad], shape (n,).
        velocity: Greatest rates [m/s or rad/s], shape (n,).
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], shape (n,).
        dt: The length of a step [s].
        pace: The gain of the velocity damper [1/s], at most half of the rate.
        damping: The square of the option `damping`.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    dt: float
    pace: float
    damping: float

    @classmethod
    def of(cls, cell: Workcell, options: ControllerOptions) -> ControllerNumbers:
        """Return the limits of a cell, with the options that `checked` returned.

        Raises:
            ShapeError: A limit has a wrong shape.
            ModelError: A limit is not above 0.
        """
        n = len(cell.joint_names)
        # Without limits positions are unbounded; rates and accelerations keep theirs.
        lower, upper = cell.limits
        if not options.limits:
            lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        most = per_joint(cell, "velocity", options.velocity, cell.velocity_limits)
        change = per_joint(
            cell, "acceleration", options.acceleration, cell.joints.acceleration_limits
        )
        return cls(
            lower,
            upper,
            most,
            # Infinite ones become UNLIMITED: quotients by them stay numbers.
            np.clip(change, 1e-9, UNLIMITED),
            1.0 / options.rate,
            # A distance may lose at most half of its room in a step.
            min(options.approach, 0.5 * options.rate),
            options.damping * options.damping,
        )


def per_joint(cell: Workcell, name: str, given: Any, default: Array) -> Array:
    """Return numbers of all joints, shape (n,); None stands for the default.

    Raises:
        ShapeError: They do not fit.
        ModelError: One is not above 0.
    """
    n = len(cell.joint_names)
    if given is None:
        return default
    # One number holds for all joints, whatever their units.
    array = numbers_of(f"{name}=", given)
    if array.shape not in {(), (n,)}:
        raise ShapeError(
            f"{name}= is one number, or has the shape ({n},), one for each joint of "
            f"the cell; not {array.shape}."
        )
    # False of NaN, too.
    if not (array > 0.0).all():
        raise ModelError(
            f"{name}= must be above 0 for each joint; {quote(given)} was given."
        )
    return np.broadcast_to(array, (n,))
