"""The kernel of motions, and laws r(t); symbols are those of `motion.py`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.spatial.polynomial import with_derivatives
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import trace
from armillary.trajectories.motion_parts import POWERS

__all__ = ["evaluation", "even_law", "turned_law"]

Array = npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def evaluation(joints: int) -> Kernel:
    """Return the kernel from the polynomials of a piece and a time to q, qd, qdd, qddd.

    joints: How many there are.
    """

    def evaluate(law: Vector, curve: Matrix, since: Number) -> Any:
        # q(r(t)): the chain rule, with derivatives of r by t and of q by r.
        r = with_derivatives(law, since, 4)
        rows = [with_derivatives(row, r[0], 4) for row in zip(*curve, strict=True)]
        square = r[1] * r[1]
        cube, mixed = square * r[1], 3.0 * r[1] * r[2]
        q: list[Number] = []
        qd: list[Number] = []
        qdd: list[Number] = []
        qddd: list[Number] = []
        for position, slope, curvature, third in rows:
            q.append(position)
            qd.append(slope * r[1])
            qdd.append(curvature * square + slope * r[2])
            qddd.append(third * cube + curvature * mixed + slope * r[3])
        return q, qd, qdd, qddd

    program = trace(
        evaluate,
        name="motion",
        outputs=("q", "qd", "qdd", "qddd"),
        law=(POWERS,),
        curve=(POWERS, joints),
        since=(),
    )
    return shared_kernel(program)


def even_law(lengths: Array) -> Array:
    """Return the laws by which each piece of a path is passed evenly."""
    law = np.zeros((len(lengths), POWERS))
    law[:, 1] = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    return law


def turned_law(law: Array, lengths: Array) -> Array:
    """Return polynomials of the time from the end of their pieces backwards."""
    # p(h - t) = sum_j t^j (-1)^j sum_k C(k, j) law[k] h^(k - j)
    turned = np.zeros_like(law)
    for j in range(POWERS):
        for k in range(j, POWERS):
            turned[:, j] += math.comb(k, j) * law[:, k] * lengths ** (k - j)
        turned[:, j] *= (-1.0) ** j
    return turned
