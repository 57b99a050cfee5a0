"""How many targets of inverse kinematics ended how, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.reason import SUCCESSES, Reason, succeeded
from armillary.model.display import plural

ADVICE: Final = {
    Reason.NOT_FOUND: "This proves nothing. Search longer with --starts, begin "
    "elsewhere with --near, or ask for less with --tolerance or --rotation.",
    Reason.INVALID_TARGET: "A matrix needs rows that are orthonormal to 1e-6 and end "
    "with 0,0,0,1; a quaternion has length 1 and comes first; no number may be NaN.",
    Reason.OUT_OF_REACH: "Bring the target nearer, or the arm with --state or --q. "
    "Targets are in metres, in the world unless --relative-to says otherwise.",
    Reason.LIMITS: "Ask for less with --position or --rotation, or let more joints "
    "move; 'armillary info' shows the limits.",
    Reason.TIMEOUT: "This proves nothing. Give the call more time.",
    Reason.IN_COLLISION: "Ask for less with --position or --rotation, or move what is "
    "in the way.",
    Reason.SINGULAR: "This is one of infinitely many; --near chooses among them.",
}


class Tally:
    """How many targets ended with each reason, added up piece by piece."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._counts: dict[Reason, int] = {}
        self._first: dict[Reason, int] = {}
        self._worst = np.zeros(2)

    @property
    def all_solved(self) -> bool:
        """Return whether every target was met."""
        return set(self._counts) <= set(SUCCESSES)

    def add(
        self, reasons: npt.NDArray[Any], residuals: npt.NDArray[np.float64]
    ) -> None:
        """Add targets: numbers of `Reason`, shape (k,), and residuals, (k, 2)."""
        for value, index, count in zip(
            *np.unique(reasons, return_index=True, return_counts=True), strict=True
        ):
            reason = Reason(int(value))
            self._first.setdefault(reason, self.count + int(index))
            self._counts[reason] = self._counts.get(reason, 0) + int(count)
        met = succeeded(reasons)
        worst = residuals[met].max(axis=0, initial=0.0)
        self._worst = np.maximum(self._worst, worst)
        self.count += len(reasons)

    def lines(self) -> Iterator[str]:
        """Yield the summary: what is solved, then each reason and what to do."""
        solved = sum(self._counts.get(reason, 0) for reason in SUCCESSES)
        yield f"{solved} of {plural(self.count, 'target')} solved"
        if solved:
            yield f"  at most {off(self._worst)}"
        for reason, count in sorted(self._counts.items(), key=lambda item: -item[1]):
            if reason is not Reason.SOLVED:
                yield f"{count} {reason.sentence}; the first is {self._first[reason]}"
                yield f"  {ADVICE[reason]}"


def off(residual: npt.NDArray[np.float64]) -> str:
    """Return a residual as text: distance [m] and angle [rad]."""
    return f"{residual[0]:.2g} m and {residual[1]:.2g} rad off"
