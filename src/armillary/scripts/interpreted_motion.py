"""The motion of a script that cannot be compiled: each pose runs the script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.model.motion import TracedMotion
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number
from armillary.trace import Traced

__all__ = ["InterpretedMotion"]

Array = npt.NDArray[np.float64]

STEP: Final = 1e-5
"""Of central differences [m or rad]; their error is about 1e-10."""


class InterpretedMotion(TracedMotion):
    """A motion that calls a function on floats; derivatives are central differences.

    Attributes:
        reason: Why it is not compiled.
    """

    def __init__(self, function: Callable[..., Pose], count: int) -> None:
        """Take over a function of `count` coordinates."""
        self.shape = (count,)
        self._name = "script"
        self.reason = ""
        self._function = function

    def pose(self, *q: Number) -> Pose:
        """Return the pose at the coordinates `q`.

        Raises:
            NotCompiled: One of them is traced.
        """
        if any(isinstance(x, Traced) for x in q):
            raise NotCompiled(f"The script runs as Python: {self.reason}")
        return self._function(q)

    def columns(self, *q: Number) -> list[Vector6]:
        """Return for each coordinate the twist of M in F at unit rate, written in M.

        Raises:
            NotCompiled: A coordinate is traced.
        """
        X = self.pose(*q)
        R = np.array(X.rotation, dtype=np.float64)
        found: list[Vector6] = []
        for k in range(len(q)):
            ends = [
                self.pose(*(x + sign * STEP * (i == k) for i, x in enumerate(q)))
                for sign in (1.0, -1.0)
            ]
            turned, moved = (
                (np.array(a, dtype=np.float64) - np.array(b, dtype=np.float64))
                / (2.0 * STEP)
                for a, b in (
                    (ends[0].rotation, ends[1].rotation),
                    (ends[0].position, ends[1].position),
                )
            )
            v, W = R.T @ moved, R.T @ turned
            w = 0.5 * np.array(
                [W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]
            )
            a, b, c, d, e, f = (*v.tolist(), *w.tolist())
            found.append((a, b, c, d, e, f))
        return found

    def poses(self, q: Array) -> Array:
        """Return the poses at many coordinates, shape (n, count) -> (n, 3, 4)."""
        found: list[Any] = []
        for row in q.tolist():
            X = self.pose(*row)
            found.append(np.column_stack([np.array(X.rotation), np.array(X.position)]))
        return np.array(found, dtype=np.float64)
