"""The square of a distance, written so that what turns about the origin stays still.

|R' t + p|^2 is the square of |t + R p|. Each component is a constant and a sum of
multiples of other scalars, b_i + sum_k a_ik n_k, so that it is

    |b|^2 + 2 sum_k (b . a_k) n_k + sum_kl (a_k . a_l) n_k n_l.

On a circle, however it lies, n are a sine and a cosine, the products of unlike ones
cancel, and sin^2 + cos^2 is 1: nothing is left that intervals could blow up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector3, add, apply, transpose
from armillary.trace import Scalar

Array = npt.NDArray[np.float64]

ROUNDING: Final = 1e-14
MOST_TERMS: Final = 16


def square_distance(X: Pose, p: Vector3) -> Number:
    """Return |X p|^2, or by rounding a little more, of a constant X and a traced p."""
    return sum_of_squares(add(apply(transpose(X.rotation), X.position), p))


def sum_of_squares(u: Sequence[Number]) -> Number:
    """Return u . u, or by rounding a little more, of traced numbers."""
    terms: dict[int, Scalar] = {}
    sums = [_multiples(component, terms) for component in u]
    if len(terms) > MOST_TERMS:
        return sum((x * x for x in u), 0.0)
    base = np.array([constant for constant, _ in sums])
    A = np.array([[row.get(k, 0.0) for k in terms] for _, row in sums])
    nodes = list(terms.values())
    total: Number = float(base @ base)
    for node, weight in zip(nodes, 2.0 * base @ A, strict=True):
        total = total + float(weight) * node
    return total + _quadratic(A.T @ A, nodes)


def _multiples(x: Number, terms: dict[int, Scalar]) -> tuple[float, dict[int, float]]:
    """Return the constant and the factors of a sum, by the index of what they scale.

    terms: Gets what is scaled, by its index.
    """
    constant, factors = 0.0, dict[int, float]()
    waiting: list[tuple[Any, float]] = [(x, 1.0)]
    while waiting:
        node, factor = waiting.pop()
        match node:
            case Scalar(name="const"):
                constant += factor * node.value
            case Scalar(name="neg"):
                waiting.append((node.args[0], -factor))
            case Scalar(name="add"):
                waiting += [(arg, factor) for arg in node.args]
            case Scalar(name="sub"):
                waiting += [(node.args[0], factor), (node.args[1], -factor)]
            case Scalar(name="mul") if node.args[0].name == "const":
                waiting.append((node.args[1], factor * node.args[0].value))
            case Scalar():
                terms[node.index] = node
                factors[node.index] = factors.get(node.index, 0.0) + factor
            case _:
                constant += factor * float(node)
    return constant, factors


def _quadratic(G: Array, nodes: list[Scalar]) -> Number:
    """Return sum_kl G_kl n_k n_l, with what rounding left behind moved to squares.

    2 |n_k n_l| <= n_k^2 + n_l^2, and a square's factor may be raised to another's.
    """
    size = np.sqrt(np.diag(G))
    is_small = np.abs(G) <= ROUNDING * np.outer(size, size)
    squares = np.diag(G) + np.where(is_small, np.abs(G), 0.0).sum(axis=1)
    products: list[Number] = [
        2.0 * float(G[row, column]) * (nodes[row] * nodes[column])
        for row, column in np.argwhere(np.triu(~is_small, 1)).tolist()
    ]
    by_factor: dict[float, Number] = {}
    last = 0.0
    for k in np.argsort(-squares).tolist():
        if not last * (1.0 - ROUNDING) <= squares[k] <= last:
            last = float(squares[k])
        by_factor[last] = by_factor.get(last, 0.0) + nodes[k] * nodes[k]
    products += [factor * square for factor, square in by_factor.items()]
    return sum(products, 0.0)
