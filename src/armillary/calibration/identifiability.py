"""Which parameters measurements decide, and which stand for one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Combination", "Dependence", "Identified", "covariance_of", "identified"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

NOTHING: Final = 1e-9
"""Singular values of columns of length 1 that count as 0."""
SHOWN: Final = 1e-6
"""The least factor by which a parameter stands for another."""


class Dependence(NamedTuple):
    """A parameter whose effect on all measurements others have together, too.

    Attributes:
        parameter: Its name.
        others: The change of others that has the effect of one unit of it, by name;
            empty where it has no effect at all.
    """

    parameter: str
    others: dict[str, float]

    def __str__(self) -> str:
        if not self.others:
            return f"{self.parameter} changes no measurement"
        terms = (f"{factor:+.4g} {name}" for name, factor in self.others.items())
        return f"{self.parameter} has the effect of {' '.join(terms)}"


class Combination(NamedTuple):
    """A sum of parameters that measurements decide, of those that they do not decide.

    Attributes:
        parameter: The one that it is named after, with factor 1.
        factors: Of all its parameters, by name.
        value: The sum of factors times values.
        std: The standard deviation of that.
    """

    parameter: str
    factors: dict[str, float]
    value: float
    std: float


class Identified(NamedTuple):
    """What derivatives say about parameters.

    Attributes:
        rank: How many combinations of parameters are decided.
        identifiable: Whether each parameter is by itself, shape (k,).
        is_fixed: Whether each is one too many, of which nothing can be said beside the
            others, shape (k,): one of each of `dependences`.
        dependences: One for each parameter too many.
    """

    rank: int
    identifiable: Truths
    is_fixed: Truths
    dependences: tuple[Dependence, ...]


def identified(
    rates: Array, names: Sequence[str], order: Sequence[int] | None = None
) -> Identified:
    """Return which parameters are decided.

    With the columns of the derivatives J scaled to length 1, J D = U S V'. Parameters
    are not identifiable that have a part in a null vector, a column of V where S is 0.
    Gauss-Jordan elimination of the null vectors, with the last parameters as pivots,
    says which stand for one another.

    Args:
        rates: Derivatives of all residuals in parts of their errors, shape (m, k).
        names: Of the parameters.
        order: Their places; of those that stand for one another the last ones in it
            are fixed. As they are by default.
    """
    count = len(names)
    lengths = np.linalg.norm(rates, axis=0)
    greatest = float(lengths.max(initial=0.0))
    has_effect = lengths > 1e-14 * greatest if greatest else np.zeros(count, bool)
    scale = np.where(has_effect, lengths, 1.0)
    # QR first: only the triangle of many rows is needed.
    R = np.linalg.qr(np.where(has_effect, rates, 0.0) / scale, mode="r")
    _, values, rows = np.linalg.svd(R, full_matrices=True)
    values = np.append(values, np.zeros(count - len(values)))
    is_zero = values < NOTHING * np.sqrt(count)
    rank = int(np.count_nonzero(~is_zero))
    null = rows[is_zero]
    identifiable = np.abs(null).max(axis=0, initial=0.0) < SHOWN
    dependences = _dependences(null / scale, names, order or range(count))
    too_many = {each.parameter for each in dependences}
    is_fixed = np.array([name in too_many for name in names], bool)
    return Identified(rank, identifiable, is_fixed, dependences)


def covariance_of(rates: Array, is_fixed: Truths) -> Array:
    """Return the covariance of parameters, some of them fixed where they are.

    It is (J'J)^-1 of the others; that of those fixed is infinite on the diagonal, and 0
    beside it.

    Args:
        rates: As for `identified`.
        is_fixed: Shape (k,).
    """
    covariance = np.diag(np.where(is_fixed, np.inf, 0.0))
    free = np.flatnonzero(~is_fixed)
    if len(free):
        lengths = np.linalg.norm(rates[:, free], axis=0)
        scale = np.where(lengths > 0.0, lengths, 1.0)
        R = np.linalg.qr(rates[:, free] / scale, mode="r")
        inverse = np.linalg.pinv(R, rcond=1e-14)
        own = inverse @ inverse.T / np.outer(scale, scale)
        covariance[np.ix_(free, free)] = own
    return covariance


def _dependences(
    null: Array, names: Sequence[str], order: Sequence[int]
) -> tuple[Dependence, ...]:
    """Return the null vectors as parameters that others stand for."""
    reduced = null.copy()
    pivots: list[int] = []
    for k in reversed(order):
        place = len(pivots)
        if place == len(reduced):
            break
        sizes = np.linalg.norm(reduced[place:], axis=1)
        column = np.abs(reduced[place:, k])
        best = int(np.argmax(column))
        if column[best] <= SHOWN * sizes.max():
            continue
        reduced[[place, place + best]] = reduced[[place + best, place]]
        reduced[place] /= reduced[place, k]
        others = np.arange(len(reduced)) != place
        reduced[others] -= np.outer(reduced[others, k], reduced[place])
        pivots.append(k)
    found: list[Dependence] = []
    for row, k in zip(reduced, pivots, strict=False):
        largest = np.abs(row).max()
        effects = {
            name: -factor
            for j, (name, factor) in enumerate(zip(names, row.tolist(), strict=True))
            if j != k and abs(factor) > SHOWN * largest
        }
        found.append(Dependence(names[k], effects))
    return tuple(found)
