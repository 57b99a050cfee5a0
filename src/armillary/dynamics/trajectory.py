"""Trajectories: how a cell moved in a simulation."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote
from armillary.kinematics.state import State

__all__ = ["Trajectory"]

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectory:
    """How a cell moved, at K + 1 instants; arrays are read-only.

    Rates and torques are vectors as kernels of dynamics take them: six numbers for each
    of the k free bases, in the axes of the world, then one for each joint.

    Attributes:
        time: Instants [s], shape (K + 1,).
        q: Joint positions [m or rad], shape (..., K + 1, n).
        qd: Rates [m/s or rad/s], shape (..., K + 1, 6k + n).
        torque: Torques that acted from each instant on for a step [N m or N], shape
            (..., K, 6k + n).
        base_poses: Poses of the free bases in the world, shape (..., K + 1, k, 4, 4).
        start: The state that it began with, if all rows began there.
        joints: The joints that q holds, as indices into the cell's q.
        free_bases: Names of the manipulators whose bases are free.
    """

    time: Array
    q: Array
    qd: Array
    torque: Array
    base_poses: Array
    start: State
    joints: tuple[int, ...]
    free_bases: tuple[str, ...]

    @property
    def base_velocities(self) -> Array:
        """Return the twists of the free bases, shape (..., K + 1, k, 6).

        Linear velocities of their origins [m/s], then angular ones [rad/s], in the axes
        of the world.
        """
        count = len(self.free_bases)
        return self.qd[..., : 6 * count].reshape(*self.qd.shape[:-1], count, 6)

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the shape of the batch."""
        return self.q.shape[:-2]

    @property
    def is_finite(self) -> npt.NDArray[np.bool_]:
        """Return which rows are finite to the end, shape (...).

        The others are NaN from where a torque was, a mass matrix was singular, a loop
        could not be closed, or numbers became too large: a step was too long.
        """
        return np.asarray(
            np.isfinite(self.qd[..., -1, :]).all(-1)
            & np.isfinite(self.q[..., -1, :]).all(-1)
        )

    def state(self, k: int, *, row: Any = ()) -> State:
        """Return the state of the cell at an instant.

        Args:
            k: Which instant, from the end if it is negative.
            row: Which row of the batch: a number, or one for each of its dimensions.

        Raises:
            StateError: There is no such instant or row, its numbers are not finite, or
                loops cannot be closed.
        """
        place = self._place(k, row)
        q, qd = np.array(self.start.q), np.zeros(len(self.start.q))
        first = 6 * len(self.free_bases)
        q[list(self.joints)] = self.q[place]
        qd[list(self.joints)] = self.qd[place][first:]
        when = self.start.time + float(self.time[place[-1]])
        state = self.start.replace(q=q, qd=qd, time=when)
        velocities = self.base_velocities[place]
        for name, X, V in zip(
            self.free_bases, self.base_poses[place], velocities, strict=True
        ):
            state = state.place(name, X)
            state = state.with_velocity(name, linear=V[:3], angular=V[3:])
        return state

    def _place(self, k: int, row: Any) -> tuple[int, ...]:
        try:
            place = *map(operator.index, np.ravel(row).tolist()), operator.index(k)
        except TypeError as error:
            raise StateError(
                f"Instants and rows are whole numbers, not {quote(k)} and {quote(row)}."
            ) from error
        sizes = *self.batch, len(self.time)
        if len(place) != len(sizes):
            raise StateError(
                f"This trajectory has a batch of shape {self.batch}: row= must choose "
                f"one of it, and is {quote(row)}."
            )
        for index, size, what in zip(
            reversed(place),
            reversed(sizes),
            ["instants", *["rows"] * len(self.batch)],
            strict=True,
        ):
            if not -size <= index < size:
                raise StateError(f"There are {size} {what} here, and none is {index}.")
        if not (np.isfinite(self.q[place]).all() and np.isfinite(self.qd[place]).all()):
            raise StateError(
                f"At {self.time[k]:g} s the motion is not finite; see `is_finite`."
            )
        return place

    def __repr__(self) -> str:
        is_finite = self.is_finite
        rows = f"{is_finite.size} rows, " if self.batch else ""
        text = f"{rows}{self.time[-1]:g} s in {len(self.time)} instants"
        if count := int(is_finite.size - is_finite.sum()):
            text += f", {count} not finite at the end" if self.batch else ", not finite"
        return f"<Trajectory: {text}>"
