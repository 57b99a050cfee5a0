"""The result of a step: rates, next positions, the reason, active constraints."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.control.active_set import BOUND, COUPLED, TORQUE
from armillary.control.approach import ApproachPairs
from armillary.control.columns import NO_PAIRS, STUCK
from armillary.control.rate_bounds import SOURCES
from armillary.ik.reason import RateReason
from armillary.model.workcell import Workcell

__all__ = ["Step", "StepLayout"]

Array = npt.NDArray[np.float64]


class StepLayout(NamedTuple):
    """What the numbers of a `Step` refer to.

    Attributes:
        cell: The cell that moves.
        approach: The pairs that are kept apart.
        joints: Indices of the joints that the controller moves.
        coupled: What the rows of limits that couple joints are called.
    """

    cell: Workcell
    approach: ApproachPairs
    joints: tuple[int, ...]
    coupled: tuple[str, ...] = ()


@final
class Step(msgspec.Struct, frozen=True, eq=False):
    """A step of a controller, of one row or of a batch.

    Attributes:
        numbers: All numbers of the result, shape (..., m); the properties name them.
        layout: What they refer to.
    """

    numbers: Array
    layout: StepLayout

    @property
    def q_next(self) -> Array:
        """Return the joint positions after the step [m or rad], shape (..., n)."""
        return self.numbers[..., : self._n]

    @property
    def qd(self) -> Array:
        """Return the rates of the step [m/s or rad/s], shape (..., n)."""
        return self.numbers[..., self._n : 2 * self._n]

    @property
    def reason(self) -> npt.NDArray[np.int8]:
        """Return the reason, as numbers of `RateReason`, shape (...)."""
        return np.asarray(self.numbers[..., 2 * self._n], np.int8)

    @property
    def scale(self) -> Array:
        """Return where the rates lie between braking (0) and the optimum (1), (...).

        With `conflict="bend"` it is below 1 if the optimum was not found or not safe.
        With `conflict="slow"`, 1 are the rates that the first task requests. It is not
        the fraction of the requested speed, since braking starts at the present rates.
        """
        return self.numbers[..., 2 * self._n + 1]

    @property
    def distance(self) -> Array:
        """Return the least distance of all pairs before the step [m], shape (...).

        Infinite where no pair is kept apart.
        """
        # NO_PAIRS stands for no pair in the kernel, infinity in results.
        least = self.numbers[..., 2 * self._n + 2]
        return np.where(least >= NO_PAIRS, np.inf, least)

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return whether the rates that tasks request are achieved, shape (...)."""
        return self.reason == RateReason.MET

    @property
    def active(self) -> Any:
        """Return the active constraints, largest multiplier first.

        Texts such as `'panda/link5, obstacle 2'` or `'upper velocity limit of joint4'`,
        where the bound of a rate comes from a limit of position, velocity or
        acceleration: a tuple, or for a batch an array of tuples, shape (...).
        """
        if self.numbers.ndim == 1:
            return self._texts(self.numbers)
        batch = self.numbers.shape[:-1]
        texts = np.empty(batch, object)
        for at in np.ndindex(*batch):
            texts[at] = self._texts(self.numbers[at])
        return texts

    @property
    def nearest(self) -> Any:
        """Return the pair with the least distance: two names, or None without pairs.

        For a batch an array of them, shape (...).
        """
        numbers = self.numbers[..., 2 * self._n + 3]
        if self.numbers.ndim == 1:
            return self._pair(float(numbers))
        names = np.empty(numbers.shape, object)
        for at in np.ndindex(*numbers.shape):
            names[at] = self._pair(float(numbers[at]))
        return names

    @property
    def inseparable(self) -> Any:
        """Return the pairs inside the margin that this step does not separate.

        Pairs of names, at most 4: no joint of the controller moves them apart, or they
        conflict with other constraints. The margin is too great for them here. For a
        batch an array of tuples, shape (...).
        """
        # Behind q, qd, reason, scale, distance and pair.
        begin = 2 * self._n + 4
        numbers = self.numbers[..., begin : begin + STUCK]
        names = np.empty(numbers.shape[:-1], object)
        for at in np.ndindex(*names.shape):
            pairs = map(self._pair, numbers[at].tolist())
            names[at] = tuple(pair for pair in pairs if pair is not None)
        return names[()] if self.numbers.ndim == 1 else names

    def summary(self) -> dict[str, int]:
        """Return the number of rows of each reason, most frequent first."""
        return RateReason.summary(self.reason)

    def __str__(self) -> str:
        return RateReason.text(self.reason, self.success)

    def __repr__(self) -> str:
        return f"<step: {self}>"

    @property
    def _n(self) -> int:
        return len(self.layout.cell.joint_names)

    def _pair(self, number: float) -> tuple[str, str] | None:
        return self.layout.approach.names(int(number)) if number >= 0.0 else None

    def _texts(self, numbers: Array) -> tuple[str, ...]:
        """Return the active constraints of one row."""
        names = [self.layout.cell.joint_names[k] for k in self.layout.joints]
        begin = 2 * self._n + 4 + STUCK
        sources = numbers[begin : begin + len(names)]
        # Behind the sources come numbers of constraints, then their multipliers.
        slots, forces = np.split(numbers[begin + len(names) :], 2)
        texts: list[str] = []
        # Largest multiplier first; equal ones in the order of slots.
        for k in np.argsort(-forces, kind="stable").tolist():
            number = float(slots[k])
            # FREE and NaN: nothing is active there.
            if not number >= 0.0:
                continue
            # Ranges of numbers: pairs, bounds of rates, torques, coupled limits.
            if number >= COUPLED:
                label = self.layout.coupled[int(number - COUPLED)]
                texts.append(f"coupled limit {label}")
            elif number >= TORQUE:
                texts.append(f"torque limit of {names[int(number - TORQUE) // 2]}")
            elif number >= BOUND:
                joint, side = divmod(int(number - BOUND), 2)
                # `sources` holds both limits of a joint: 3 upper + lower.
                source = SOURCES[divmod(int(sources[joint]), 3)[1 - side]]
                end = "upper" if side else "lower"
                texts.append(f"{end} {source} limit of {names[joint]}")
            else:
                texts.append(", ".join(self.layout.approach.names(int(number))))
        return tuple(texts)
