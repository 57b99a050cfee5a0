"""How loops are closed at home, and whether they stay closed when joints move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.loops.elimination import Eliminated
from armillary.model.loops.scaled_rows import ScaledRows

__all__ = ["closed_near", "opening"]

Array = npt.NDArray[np.float64]

CLOSED: Final = 1e-9  # of the size of a loop
STEPS: Final = 80
SPREADS: Final = (0.0, 1e-3, 0.05, 0.2, 0.6, *(math.pi,) * 60)
"""How far starts are from the given one, in turn [rad, or of the size of a loop]."""
PARTS: Final = (1e-2, -1e-2, 1e-3, -1e-3)
"""How far joints are moved to see whether loops stay closed, in the same units."""


def closed_near(scaled: ScaledRows, start: Array, passive: Sequence[int]) -> Array:
    """Return positions of all joints with every loop closed.

    Args:
        scaled: The rows of the loops.
        start: Positions of all joints, shape (n,); only passive ones change.
        passive: The joints that may move.

    Raises:
        ModelError: No start led to closed loops.
    """
    columns = list(passive)
    rng = np.random.default_rng(0)
    least, best = math.inf, np.zeros(0)
    outside: Array | None = None
    for spread in SPREADS:
        q = start.copy()
        q[columns] += spread * (rng.uniform(-1, 1, len(q)) * scaled.units)[columns]
        q = _newton(scaled, q, columns, slice(None))
        r = np.abs(scaled.at(q)[0])
        worst = float(r.max(initial=0.0))
        if worst < CLOSED:
            if scaled.within(q, columns):
                return q
            outside = q if outside is None else outside
        elif worst < least:
            least, best = worst, r
    if outside is not None:
        return outside
    loop, _ = scaled.addresses[int(best.argmax())] if len(best) else (0, 0)
    raise ModelError(
        f"The loops cannot close at home: {scaled.equations[loop].loop.label} stays "
        f"open by {least * scaled.sizes[loop]:.4g} m or rad. Check lengths and frames, "
        "or let it start elsewhere: a posture that is `home`, with positions at which "
        "it closes; those of passive joints are where the search begins."
    )


def opening(
    scaled: ScaledRows, home: Array, free: Sequence[int], solved: Eliminated
) -> tuple[float, int]:
    """Return by how much loops open when independent joints move a little.

    Args:
        scaled: The rows of the loops.
        home: Positions of all joints, loops closed, shape (n,).
        free: The independent joints of the loops.
        solved: The passive joints, and the rows by which they are solved for.

    Returns:
        The largest of the rows that are not solved for, of the size of its loop, and
        the number of that loop; infinite if passive joints are not found at all.
    """
    left = [row for row in range(len(scaled.addresses)) if row not in solved.rows]
    if not left:
        return 0.0, 0
    direction = np.random.default_rng(1).uniform(0.5, 1.0, len(home)) * scaled.units
    for part in PARTS:
        q = home.copy()
        q[list(free)] += part * direction[list(free)]
        q = _newton(scaled, q, solved.columns, list(solved.rows))
        r = np.abs(scaled.at(q)[0])
        if r[list(solved.rows)].max(initial=0.0) < CLOSED:
            worst = left[int(r[left].argmax())]
            return float(r[worst]), scaled.addresses[worst][0]
    return math.inf, scaled.addresses[left[0]][0]


def _newton(
    scaled: ScaledRows,
    q: Array,
    columns: Sequence[int],
    rows: slice | Sequence[int],
) -> Array:
    """Return q moved in some columns until some rows vanish, or nearly.

    Damped least squares (Levenberg 1944), with less damping after each step that helps.
    """
    chosen = list(columns)
    values, rates = scaled.at(q)
    r, columns_of_r = values[rows], rates[rows][:, chosen]
    damping = 1e-3
    for _ in range(STEPS):
        size = float(r @ r)
        if not size > 0.0 or not math.isfinite(size):
            break
        normal = columns_of_r.T @ columns_of_r + damping * size * np.eye(len(chosen))
        try:
            step = np.linalg.lstsq(normal, columns_of_r.T @ r, rcond=1e-14)[0]
        except np.linalg.LinAlgError:
            break
        longest = float(np.abs(step).max(initial=0.0))
        step *= min(1.0, 0.7 / longest) if longest > 0.0 else 0.0
        trial = q.copy()
        trial[chosen] -= step * scaled.units[chosen]
        values, rates = scaled.at(trial)
        new = values[rows]
        if float(new @ new) < size:
            q, r, columns_of_r = trial, new, rates[rows][:, chosen]
            damping = max(damping * 0.1, 1e-9)
        else:
            damping *= 10.0
            if damping > 1e12 or longest < 1e-14:
                break
    return q
