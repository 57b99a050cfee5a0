"""Points of curves that tools follow: poses, and how these change along the curve.

`tool_curve.py` says what the numbers of a piece are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel, shared_kernel
from armillary.spatial import rotation as so3
from armillary.spatial.polynomial import polynomial
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    multiply,
    three,
    transpose,
)
from armillary.trace import jvp, trace
from armillary.trace.functions import cos, sin

__all__ = ["DEGREE", "CurvePieces", "CurvePoints", "three_rows"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DEGREE: Final = 5
"""Of the polynomials of a piece."""


class CurvePoints(NamedTuple):
    """Points of a curve.

    Attributes:
        pose: Poses of the tool, shape (k, 4, 4).
        rate: Its twists by s, linear then angular [m/m, rad/m], shape (k, 6).
        bend: The rates of these by s [m/m^2, rad/m^2], shape (k, 6).
    """

    pose: Array
    rate: Array
    bend: Array


class CurvePieces(NamedTuple):
    """Pieces of one curve or more, m in all; see `ToolCurve`.

    Attributes:
        begin: The parameter s at which each begins [m], shape (m,).
        position: a_i, shape (m, 6, 3).
        circle: C, S and k, shape (m, 7).
        turning: b_i, shape (m, 6, 3).
        base: R_0, shape (m, 3, 3).
        sharp: Whether each ends at a corner, where the tool must stop, shape (m,).
    """

    begin: Array
    position: Array
    circle: Array
    turning: Array
    base: Array
    sharp: npt.NDArray[np.bool_]

    @classmethod
    def joined(cls, each: Sequence[CurvePieces]) -> CurvePieces:
        """Return the pieces of curves, those of each after those of the one before."""
        if len(each) == 1:
            return each[0]
        return cls(*(np.concatenate(arrays) for arrays in zip(*each, strict=True)))

    def points(self, s: Array, piece: Indices) -> CurvePoints:
        """Return points of the curves.

        Args:
            s: Parameters [m], shape (k,).
            piece: The piece that each is of, shape (k,).
        """
        numbers = self[1:5]
        # Of one piece the rows are shared, not copied.
        if len(self.begin) == 1:
            rows = [array[0] for array in numbers]
        else:
            rows = [np.take(array, piece, axis=0) for array in numbers]
        return CurvePoints(*_kernel()(s - self.begin[piece], *rows))


@lru_cache(maxsize=1)
def _kernel() -> Kernel:
    """Return the kernel of a point of a piece, its twist and the rate of that by u."""

    def equations(u: Any, a: Any, circle: Any, b: Any, base: Any) -> Any:
        c, s = cos(circle[6] * u), sin(circle[6] * u)
        p = [
            polynomial([a[i][k] for i in range(DEGREE + 1)], u)
            + c * circle[k]
            + s * circle[3 + k]
            for k in range(3)
        ]
        v = three(
            [polynomial([b[i][k] for i in range(DEGREE + 1)], u) for k in range(3)]
        )
        R = multiply(three_rows(base), so3.exp(v))
        entries: list[Any] = [*p, *(x for row in R for x in row)]
        first: list[Any] = jvp(entries, [(u, 1.0)])
        second: list[Any] = jvp(first, [(u, 1.0)])
        Rt = transpose(R)
        # R' = [w] R, and R'' R' transposed has the antisymmetric part [w'].
        w = _vee(multiply(_of_nine(first[3:]), Rt))
        w_rate = _vee(multiply(_of_nine(second[3:]), Rt))
        pose = [[*R[i], p[i]] for i in range(3)]
        return (
            [*pose, [0.0, 0.0, 0.0, 1.0]],
            [*first[:3], *w],
            [*second[:3], *w_rate],
        )

    size = (DEGREE + 1, 3)
    program = trace(
        equations,
        name="tool_curve",
        outputs=("pose", "rate", "bend"),
        u=(),
        position=size,
        circle=(7,),
        turning=size,
        base=(3, 3),
    )
    return shared_kernel(program)


def three_rows(matrix: Any) -> Rows:
    """Return the rotation of a matrix, (3, 3) or (4, 4), of traced scalars."""
    return three(matrix[0][:3]), three(matrix[1][:3]), three(matrix[2][:3])


def _of_nine(entries: Sequence[Number]) -> Rows:
    return three(entries[:3]), three(entries[3:6]), three(entries[6:9])


def _vee(m: Rows) -> Vector3:
    """Return the vector of the antisymmetric part of a matrix."""
    return (
        0.5 * (m[2][1] - m[1][2]),
        0.5 * (m[0][2] - m[2][0]),
        0.5 * (m[1][0] - m[0][1]),
    )
