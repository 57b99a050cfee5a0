"""Which joint positions to measure next: those that make the estimate best."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["best_rows"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MOST_ROUNDS: Final = 20
BETTER: Final = 1e-9
"""The least change of the logarithm for which a row is exchanged."""
NOTHING_KNOWN: Final = 1e-9
"""Added to information in units of columns of length 1, so that it has an inverse."""


def best_rows(known: Array, candidates: Array, count: int) -> Indices:
    """Return the rows of candidates that make the estimate best, in order of choice.

    They are D-optimal: det(J'J + sum of J_i'J_i) becomes greatest, the volume of the
    ellipsoid of errors least. Rows are added one by one, then exchanged as long as that
    helps (Fedorov, Theory of Optimal Experiments, 1972). With A the information
    without row i, det(A + J_i'J_i) = det A det(1 + J_i A^-1 J_i').

    Args:
        known: Derivatives of what has been measured, in parts of errors, shape (m, k).
        candidates: Those of each row that can be measured, shape (n, d, k).
        count: How many are chosen; no row is chosen twice.
    """
    stacked = np.concatenate([known, candidates.reshape(-1, known.shape[1])])
    lengths = np.linalg.norm(stacked, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    J = candidates / scale
    information = (known / scale).T @ (known / scale)
    information += NOTHING_KNOWN * np.eye(len(scale))
    chosen: list[int] = []
    for _ in range(count):
        k, _ = _best(information, J, chosen)
        chosen.append(k)
        information += J[k].T @ J[k]
    for _ in range(MOST_ROUNDS):
        is_changed = False
        for place, k in enumerate(list(chosen)):
            without = information - J[k].T @ J[k]
            others = [each for each in chosen if each != k]
            best, gain = _best(without, J, others)
            if best != k and gain > _gains(without, J[k : k + 1])[0] + BETTER:
                chosen[place] = best
                information = without + J[best].T @ J[best]
                is_changed = True
        if not is_changed:
            break
    return np.array(chosen, np.intp)


def _best(information: Array, J: Array, taken: list[int]) -> tuple[int, float]:
    """Return the row that helps most, and the logarithm by which."""
    gains = _gains(information, J)
    gains[taken] = -np.inf
    k = int(np.argmax(gains))
    return k, float(gains[k])


def _gains(information: Array, J: Array) -> Array:
    """Return log det(1 + J_i A^-1 J_i') of each row, shape (n,)."""
    inverse = np.linalg.inv(information)
    product = np.einsum("nik,kl,njl->nij", J, inverse, J, optimize=True)
    signs, logarithms = np.linalg.slogdet(np.eye(J.shape[1]) + product)
    return np.where(signs > 0.0, logarithms, -np.inf)
