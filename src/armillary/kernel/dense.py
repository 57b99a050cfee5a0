"""Linear algebra of one row in loops: what a `Dense` stage computes.

A `Program` is straight code, which grows with the third power of n where it factors a
matrix. These operations are loops over memory: their code does not grow, and takes as
many operations. Symmetric matrices are packed: their lower half, row by row. An output
that is an input, too, begins with what it holds.

`dense_code.py`, `active_set_code.py` and `least_motion_code.py` have the machine code.
"""

from __future__ import annotations

from typing import TypeAlias, final

import msgspec

__all__ = [
    "ActiveSet",
    "AddDiagonal",
    "AddSquares",
    "Clear",
    "Operation",
    "Shrink",
    "SolveMotion",
]


@final
class Clear(msgspec.Struct, frozen=True):
    """Set all outputs to 0."""


@final
class AddSquares(msgspec.Struct, frozen=True):
    """Add sum_k w_k (a_k x - v_k)^2 / 2 to x'H x / 2 + g'x.

    Inputs H, g, w, v, then the rows a of one or several matrices; outputs H, g.
    """


@final
class AddDiagonal(msgspec.Struct, frozen=True):
    """Add numbers d to the diagonal of H. Inputs H, d; output H."""


@final
class Shrink(msgspec.Struct, frozen=True):
    """Return x = e (H + e)^-1 p: p in directions that H leaves free, 0 in others.

    Inputs H, p; output x.

    Attributes:
        ease: The number e, which is also the least pivot.
    """

    ease: float


@final
class ActiveSet(msgspec.Struct, frozen=True):
    """Find the x with the least x'H x / 2 + g'x within bounds and inequalities.

    The method of Goldfarb and Idnani, as `control/active_set.py` states it. Inputs H,
    g, low, high, then the columns of inequalities: rows that begin with a and b of
    a x >= b, and numbers that are above 0 where a row counts. Fields of its table are
    positions in both columns, and the number of a row. Outputs: x, the numbers of
    active constraints and their multipliers in so many slots, and whether it finished.

    Attributes:
        limit: Most constraints that are added or dropped.
        broken: A constraint is broken that is missed by more.
        dependent: Part of the square of a normal that is outside the others' span, at
            least.
        least: The least pivot.
        far: A step that is never taken.
        bound: The number of the lower bound of x_0; then come upper and lower ones in
            turn.
        free: The number in a slot that is empty.
    """

    limit: int
    broken: float
    dependent: float
    least: float
    far: float
    bound: float
    free: float


@final
class SolveMotion(msgspec.Struct, frozen=True):
    """Find the rates x with C x = c nearest to r, x - r = W^-1 C' y.

    `held_motion` of `ik/task_priority.py` states it. Inputs: two matrices with the rows
    of C; 1 for rows that count; c; 1 for rates that are not 0; r; multipliers p; a
    small number; the diagonal of W. Outputs: 1, or 0 where equations contradict each
    other; y, or what no rates meet there, in parts; x; C' y; C' p; sums of |C|.

    Attributes:
        refinements: How often rates are corrected.
        singular: Part of the square of what is asked for that no rates meet, at most.
    """

    refinements: int
    singular: float


Operation: TypeAlias = (
    Clear | AddSquares | AddDiagonal | Shrink | ActiveSet | SolveMotion
)
