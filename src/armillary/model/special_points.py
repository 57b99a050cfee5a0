"""Points at which a branch of a function holds for that point alone, and rates there.

`1.0 if q == 0 else sin(q) / q` has the right value at 0, but there its derivatives are
those of the constant. Those of the other branch cannot take their place: they are
0 / 0. So such points are looked for, and the rates at them are compared with those
beside them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.trace import Program, evaluate
from armillary.trace.ops import SIGN

Array = npt.NDArray[np.float64]
Rates = Callable[[Sequence[float]], Sequence[float]]

USUAL: Final = (0.0, 1.0, -1.0, 0.5, -0.5)
"""Where comparisons with `==` often hold: these are tried as they are."""
STARTS: Final = ((-1.0, 0.3), (0.7, 1.9), (3.0, 2.0), (-4.0, -6.0))
"""Pairs of numbers from which the secant method begins."""
SECANTS: Final = 40  # most steps of that
DISTANCES: Final = (0.05, 8e-4, 1.2e-5)
"""How far from a point rates are compared; and again so many times closer:"""
CLOSER: Final = 64.0
NOISE: Final = 1e-5  # of a quotient of small numbers, relative


class EqualityPoint(NamedTuple):
    """A point at which a comparison with `==` holds, and where it is written."""

    q: tuple[float, ...]
    place: str


def equality_points(program: Program) -> list[EqualityPoint]:
    """Return where the user's comparisons with `==` hold; not all may be found.

    program: Its inputs are one coordinate, or one array of several.
    """
    count = sum(port.size for port in program.inputs)
    points: dict[EqualityPoint, None] = {}
    for position, place in program.equalities:
        gap = _gap(program, program.instructions[position].args)
        points |= {EqualityPoint(q, place): None for q in _roots(gap, count)}
    return list(points)


def takes_signs(program: Program) -> bool:
    """Return whether a program takes the sign of a number."""
    return any(step.name == SIGN.name for step in program.instructions)


def sign_points(program: Program) -> list[tuple[float, ...]]:
    """Return where numbers are zero whose sign is taken; not all may be found.

    There the sign is 0, of that point alone: sign(q) q^2 has the second derivative 2
    on one side, -2 on the other, and 0 at the point.

    program: Its inputs are one coordinate, or one array of several.
    """
    count = sum(port.size for port in program.inputs)
    signs = [step.args for step in program.instructions if step.name == SIGN.name]
    roots = (_roots(_gap(program, args), count) for args in signs)
    return list(dict.fromkeys(q for each in roots for q in each))


def rates_beside(
    rates: Rates, q: Sequence[float], noise: float = NOISE
) -> Array | None:
    """Return the rates beside a point if those at the point fit neither side.

    They fit a side if they are the limit of its rates: if the difference of those at a
    distance h falls with h.

    Args:
        rates: Of the coordinates.
        q: The point.
        noise: What roundings may make of rates near it, relative to 1 and their size.

    Returns:
        The rates on one side; None if those at the point fit a side, or if there are no
        finite rates beside it.
    """
    here = _numbers(rates, q)
    if not np.isfinite(here).all():
        return None
    away = np.cos(np.arange(len(q)))  # a direction along no axis or diagonal
    beside: list[Array] = []
    for side in (1.0, -1.0):
        pairs = [
            [
                _numbers(rates, q + h * side * away)
                for h in (distance, distance / CLOSER)
            ]
            for distance in DISTANCES
        ]
        if np.isfinite([near for _, near in pairs]).all():
            if any(_is_limit(here, far, near, noise) for far, near in pairs):
                return None
            beside.append(pairs[0][1])
    return beside[0] if beside else None


def _is_limit(here: Array, far: Array, near: Array, noise: float) -> bool:
    """Tell whether rates come nearer to those at the point, or differ by noise."""
    error, least = np.abs(near - here).max(), noise * (1.0 + np.abs(near).max())
    before = np.abs(far - here).max()  # NaN where the side ends before
    return bool(error <= least or error <= 0.5 * before)


def _numbers(rates: Rates, q: Sequence[float] | Array) -> Array:
    return np.array(rates([float(x) for x in q]), dtype=np.float64)


def _gap(program: Program, args: Sequence[int]) -> Callable[[Sequence[float]], float]:
    """Return the difference of two numbers of a program, or one, as a function of q."""
    last = max(args)
    both = Program(
        program.name,
        program.inputs,
        (),
        program.instructions[: last + 1],
        tuple(args),
    )

    def gap(q: Sequence[float]) -> float:
        x, y = (*evaluate(both, q), 0.0)[:2]
        return 0.0 if x == y else x - y

    return gap


def _roots(
    gap: Callable[[Sequence[float]], float], count: int
) -> Iterator[tuple[float, ...]]:
    """Yield points at which a difference is exactly zero, found along each axis."""
    for base, k in itertools.product(_bases(count), range(count)):

        def along(t: float, base: list[float] = base, k: int = k) -> float:
            return gap([*base[:k], t, *base[k + 1 :]])

        tried = [*USUAL, *(_secant(along, *start) for start in STARTS)]
        for t in tried:
            near = t, math.nextafter(t, math.inf), math.nextafter(t, -math.inf)
            root = next((x for x in near if along(x) == 0.0), None)
            # Where it is zero beside the point too, that is not alone in its branch.
            if root is not None and along(root + 1e-3 * (1.0 + abs(root))) != 0.0:
                yield (*base[:k], root, *base[k + 1 :])


def _bases(count: int) -> list[list[float]]:
    """Return points through which lines along the axes are searched."""
    if count == 1:
        return [[0.0]]
    return [[0.0] * count, [math.cos(3.0 * k + 1.0) for k in range(count)]]


def _secant(along: Callable[[float], float], a: float, b: float) -> float:
    """Return where a function of one number is zero, or where the search ends."""
    x, y = along(a), along(b)
    for _ in range(SECANTS):
        if y in {0.0, x} or not math.isfinite(x - y):
            break
        a, b, x = b, b - y * (b - a) / (y - x), y
        y = along(b)
    return b
