"""What tells which edges are free: a check in columns, and a prover of motions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.column_function import (
    ColumnFunction,
    PostponedColumns,
    columns_in_python,
    numbers_at,
)

__all__ = ["EdgeTests", "SurfaceTests", "check_in_python"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

PYTHON_LANES: Final = 16
"""Joint positions that a check in Python is asked for at once."""


@final
class SurfaceTests(NamedTuple):
    """What keeps positions on constraints.

    Attributes:
        project: Of columns q those of positions that satisfy constraints, and one that
            is above 0 where these are missed.
        near: Of columns q those of errors of constraints, by tolerances.
        holds: Of columns of both ends of motions one that is above 0 where constraints
            are proven to hold; None, as for `near`, where machine code cannot do that.
        goals: How many constraints these are.
        part: The part of tolerances that middles of motions may use up.
    """

    project: ColumnFunction
    near: ColumnFunction | None = None
    holds: ColumnFunction | None = None
    goals: int = 0
    part: float = 0.0


@final
class EdgeTests(NamedTuple):
    """What tells which edges are free.

    Attributes:
        check: Of columns q the column of what touches: above 0 in one lane at least if
            any does. What is nearly touching counts.
        tight: The same code with other tables, where that does not count.
        prover: Of columns of both ends the two columns of `check.motion`'s pipeline;
            None where motions cannot be proven.
        quick: What proves pieces of most motions sooner, in the lanes of the check, if
            there is such a thing; see `edge_proof_stages`.
        surface: The constraints; None where there are none.
        later: What makes the records of the prover when they are needed; None where
            they are there.
    """

    check: ColumnFunction
    tight: ColumnFunction
    prover: ColumnFunction | None
    quick: ColumnFunction | None = None
    surface: SurfaceTests | None = None
    later: PostponedColumns | None = None

    @property
    def proves(self) -> bool:
        """Return whether ways are proven, constraints included."""
        return bool(self.prover and (self.surface is None or self.surface.holds))

    @property
    def ready(self) -> EdgeTests | None:
        """Return the same with the prover's machine code, where that is new."""
        made = self.later and self.later.made
        return self._replace(prover=made, later=None) if made else None


def check_in_python(check: Callable[[Array], Truths], n: int) -> ColumnFunction:
    """Return a check in Python as the native loop calls it.

    It serves what machine code cannot do: scripts that are not compiled, triangles.

    Args:
        check: Which of some rows touch, (k, n) -> (k,).
        n: Joints.
    """
    lanes = PYTHON_LANES

    def run(q: int, found: int, tables: int, active: int) -> int:
        into = numbers_at(found, (lanes,))
        into[:] = 1.0  # where the check raises
        into[:] = check(np.ascontiguousarray(numbers_at(q, (n, lanes)).T))
        return 0

    return columns_in_python(run, 3, (np.dtype(np.float64), lanes))
