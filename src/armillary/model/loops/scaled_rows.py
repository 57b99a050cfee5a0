"""The rows of loops as arrays of numbers of like size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armillary.model.loops.equations import LoopEquations
from armillary.model.loops.loop import Rod
from armillary.model.loops.loop_joint import LoopJoint
from armillary.model.unit import Unit

__all__ = ["ScaledRows"]

Array = npt.NDArray[np.float64]

SAMPLES = 4
NEARBY = 0.05  # of a radian, or of the size of a loop


class ScaledRows:
    """The rows of loops, lengths divided by the size of the loop that they are in.

    Attributes:
        equations: Of each loop.
        joints: All joints.
        sizes: Of each loop: its longest lever, else the length of its rod [m].
        units: For each joint 1, or for lengths the size of its first loop.
        addresses: For each row the number of its loop, and which row of that it is.
    """

    def __init__(
        self, equations: Sequence[LoopEquations], joints: Sequence[LoopJoint]
    ) -> None:
        """Measure the loops."""
        self.equations = equations
        self.joints = joints
        self.addresses = [
            (k, row) for k, each in enumerate(equations) for row in range(each.size)
        ]
        start = np.array([joint.start for joint in joints])
        is_length = np.array([joint.unit is Unit.METRE for joint in joints], np.bool_)
        # Lengths are not moved before it is known what they are compared with.
        self.units = np.where(is_length, 0.0, 1.0)
        self._measure(start, is_length)
        self._measure(start, is_length)
        self._divisors = np.array(
            [
                size if row < each.lengths else 1.0
                for each, size in zip(equations, self.sizes, strict=True)
                for row in range(each.size)
            ]
        )

    def _measure(self, start: Array, is_length: npt.NDArray[np.bool_]) -> None:
        """Set sizes and units, from levers near a start."""
        samples = [self.nearby(start, seed) for seed in range(SAMPLES)]
        self.sizes = [self._size(each, samples) for each in self.equations]
        self.units[is_length] = 1.0
        loops = zip(self.equations[::-1], self.sizes[::-1], strict=True)
        for each, size in loops:
            for k in each.joints:
                if is_length[k]:
                    self.units[k] = size

    def _size(self, equations: LoopEquations, samples: Sequence[Array]) -> float:
        turning = [
            i
            for i, k in enumerate(equations.joints)
            if self.joints[k].unit is not Unit.METRE
        ]
        levers = [
            abs(row[i])
            for q in samples
            for row in equations.rows(q.tolist()).rates[: equations.lengths]
            for i in turning
        ]
        loop = equations.loop
        longest = max(map(float, levers), default=0.0)
        longest = max(longest, loop.length if isinstance(loop, Rod) else 0.0)
        if longest > 0.0:
            return longest
        # Nothing turns, or only on the spot: what is left are gaps and slides.
        rows = equations.rows(samples[0].tolist()).values[: equations.lengths]
        slides = [
            samples[0][k] for k in equations.joints if self.joints[k].unit is Unit.METRE
        ]
        return max((abs(float(x)) for x in (*rows, *slides)), default=0.0) or 1.0

    def nearby(self, q: Array, seed: int = 0) -> Array:
        """Return positions a little away from q, the same ones for the same seed."""
        noise = np.random.default_rng(seed).uniform(-NEARBY, NEARBY, len(q))
        return q + self.units * noise

    def at(self, q: Array) -> tuple[Array, Array]:
        """Return the rows at q, shape (m,), and their derivatives, shape (m, n)."""
        values = np.empty(len(self.addresses))
        rates = np.zeros((len(self.addresses), len(q)))
        numbers = q.tolist()
        row = 0
        for each in self.equations:
            found = each.rows(numbers)
            rows = slice(row, row + each.size)
            values[rows] = found.values
            rates[rows, list(each.joints)] = found.rates
            row += each.size
        rates *= self.units / self._divisors[:, None]
        return values / self._divisors, rates

    def rates(self, q: Array) -> Array:
        """Return the derivatives of the rows at q, shape (m, n)."""
        return self.at(q)[1]

    def within(self, q: Array, columns: Sequence[int]) -> bool:
        """Return whether some joints are within their limits at q."""
        return all(
            self.joints[k].lower <= q[k] <= self.joints[k].upper for k in columns
        )
