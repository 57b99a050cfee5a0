"""The duration of the fastest motion within limits of jerk, by linear programs.

A direct transcription, apart from the package: the path parameter is replaced by p with
s = L (10 p^3 - 15 p^4 + 6 p^5), so that p' at ends at rest is free, x = p'^2 is sampled
at evenly spaced p, and its derivatives are central differences. Limits of rates and
accelerations are linear in x, x' and x''; that of jerk,

    |Q''' x + 3/2 Q'' x' + Q' x'' / 2| <= J / sqrt(x),

is replaced by the tangent of its convex right side at the last solution. Each program
takes the derivatives of the duration as costs, within a region of trust.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import diags, vstack

__all__ = ["reference_duration"]

Array = npt.NDArray[np.float64]


def reference_duration(
    derivatives: Callable[[Array], tuple[Array, Array, Array]],
    length: float,
    *,
    velocity: Array,
    acceleration: Array,
    jerk: Array,
    points: int = 400,
    programs: int = 40,
) -> float:
    """Return how long the fastest motion from rest to rest takes [s].

    Args:
        derivatives: From s, shape (m,), to q', q'' and q''' there, (m, n) each.
        length: The greatest s.
        velocity: The greatest rates, shape (n,).
        acceleration: The greatest accelerations, shape (n,).
        jerk: The greatest jerks, shape (n,).
        points: How many p there are.
        programs: How many linear programs are solved at most.
    """
    p = (np.arange(points) + 0.5) / points
    h = 1.0 / points
    s = length * (10.0 * p**3 - 15.0 * p**4 + 6.0 * p**5)
    s1 = length * 30.0 * p**2 * (1.0 - p) ** 2
    s2 = length * 60.0 * p * (1.0 - p) * (1.0 - 2.0 * p)
    s3 = length * 60.0 * (1.0 - 6.0 * p + 6.0 * p**2)
    q1, q2, q3 = derivatives(s)
    one, two, three = (each[:, None] for each in (s1, s2, s3))
    Q1, Q2 = q1 * one, q2 * one**2 + q1 * two
    Q3 = q3 * one**3 + 3.0 * q2 * one * two + q1 * three
    first = diags([-0.5 / h, 0.5 / h], [-1, 1], (points, points)).tolil()
    first[0, :2] = first[-1, -2:] = [-1.0 / h, 1.0 / h]
    second = diags([1.0, -2.0, 1.0], [-1, 0, 1], (points, points)).tolil() / h**2
    second = second.tolil()
    second[0, :3] = second[-1, -3:] = np.array([1.0, -2.0, 1.0]) / h**2
    eye = diags([1.0], [0], (points, points))
    n = q1.shape[1]
    straight = vstack(
        [
            diags(Q2[:, k] / acceleration[k]) @ eye
            + diags(0.5 * Q1[:, k] / acceleration[k]) @ first
            for k in range(n)
        ]
    ).tocsr()
    bent = vstack(
        [
            diags(Q3[:, k] / jerk[k]) @ eye
            + diags(1.5 * Q2[:, k] / jerk[k]) @ first
            + diags(0.5 * Q1[:, k] / jerk[k]) @ second
            for k in range(n)
        ]
    ).tocsr()
    with np.errstate(divide="ignore"):
        most = ((velocity / np.abs(Q1)) ** 2).min(axis=1)
    x = np.full(points, 1e-3 * most.min())
    while (
        np.abs(straight @ x).max() > 0.5
        or (np.abs(bent @ x) * np.tile(np.sqrt(x), n)).max() > 0.5
    ):
        x *= 0.5
    duration = h * (x**-0.5).sum()
    trust = 8.0
    for _ in range(programs):
        # x^(-1/2) from below by its tangent
        bound, slope = 1.5 * x**-0.5, 0.5 * x**-1.5
        matrix = vstack([diags(np.tile(slope, n)) @ vstack([eye] * n)]).tocsr()
        A = vstack([straight, -straight, bent + matrix, -bent + matrix])
        b = np.concatenate([np.ones(2 * len(Q1) * n), np.tile(bound, 2 * n)])
        found = linprog(
            -0.5 * h * x**-1.5 * x,
            A_ub=A @ diags(x),
            b_ub=b,
            bounds=np.stack(
                [np.full(points, 1.0 / trust), np.minimum(most / x, trust)], 1
            ),
            method="highs",
        )
        new = x * found.x
        lasts = h * (new**-0.5).sum()
        if lasts > duration:
            trust = 1.0 + 0.5 * (trust - 1.0)
            if trust < 1.001:
                break
            continue
        is_near = lasts > duration * (1.0 - 2e-5)
        x, duration = new, lasts
        if is_near:
            break
    return float(duration)
