"""What inverse kinematics answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.reason import Reason, succeeded
from armillary.model.display import table

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
# An array, or how it is made when somebody asks.
Lazy = npt.NDArray[Any] | Callable[[], npt.NDArray[Any]]
NO_SEARCH: Whole = np.zeros((), np.int64)


class Solution:
    """The answers to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., n): an answer where `success`, else
            the nearest that was found; NaN for targets that are no pose.
    """

    def __init__(
        self,
        *,
        q: Array,
        reason: Lazy,
        residual: Lazy,
        steps: Lazy = NO_SEARCH,
        starts: Lazy = NO_SEARCH,
    ) -> None:
        """Keep the answers; see the properties for what they are.

        All but q may have one row for each target in place of the shape of the batch.
        """
        self.q = q
        self.q.setflags(write=False)
        self._parts = {
            "reason": reason,
            "residual": residual,
            "steps": steps,
            "starts": starts,
        }

    @cached_property
    def success(self) -> npt.NDArray[np.bool_]:
        """Whether each target is met within the tolerances, shape (...)."""
        return _closed(succeeded(self.reason))

    @cached_property
    def residual(self) -> Array:
        """Distance [m] and angle [rad] that remain, the largest, shape (..., 2)."""
        return self._made("residual", 2)

    @cached_property
    def reason(self) -> npt.NDArray[np.int8]:
        """Why, as numbers of `Reason`, shape (...)."""
        return self._made("reason")

    @cached_property
    def steps(self) -> Whole:
        """Steps of the search, shape (...); 0 where a closed form answered."""
        return self._made("steps")

    @cached_property
    def starts(self) -> Whole:
        """Places that the search started from, shape (...)."""
        return self._made("starts")

    def _made(self, name: str, *core: int) -> Any:
        part, batch = self._parts[name], self.q.shape[:-1]
        if part is NO_SEARCH:
            return _closed(np.zeros(batch, np.int64))
        array = part() if callable(part) else part
        return _closed(array.reshape((*batch, *core)))

    def summary(self) -> dict[str, int]:
        """Return how many targets ended how, most frequent first."""
        return Reason.summary(self.reason)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {name: getattr(self, name) for name in self._parts}
        return partial(type(self), q=self.q, **parts), ()

    def __repr__(self) -> str:
        return f"<Solution: {self}>"

    def _repr_html_(self) -> str:
        rows = (
            (name, number, Reason[name].sentence)
            for name, number in self.summary().items()
        )
        return table("Solution", ("reason", "targets", "meaning"), rows)

    def __str__(self) -> str:
        return Reason.text(self.reason, self.success)


def _closed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
