"""Two joints that slide and four that turn: one equation in the third turn.

The rotations of the chain are R_X = C_0 R(t_1) C_1 R(t_2) C_2 R(t_3) C_3 R(t_4) C_4.
Seen from the link between the second and the third turn, the axis of the last turn is
A = C_2 R(t_3) C_3 z and that of the first is B = R(-t_2) C_1' z. The target stands
between these two, so they have a known angle,

    A B = cos(alpha),                                                            (1)

and, as long as they are not parallel there, any vector that the target carries is one
of A, B and A x B with known parts. All other vectors are turned by t_2 or t_3 alone. So
both slides d, and the way m that they have to make, follow from t_2 and t_3, and

    f = det [d_1 d_2 m] = 0.                                                     (2)

With A B = p + q cos t_2 + r sin t_2 there are two t_2 for each t_3, at angles of
cosine k = c / sqrt(h), h = q^2 + r^2, c = cos(alpha) - p, to either side of the
direction (q, r). There f = e +- sqrt(1 - k^2) o, as it is of degree two in t_2, and

    P(t_3) = h^2 (e^2 - (1 - k^2) o^2)

is a trigonometric polynomial of degree 6. Its real roots are the solutions. If the
first two axes are parallel, A B does not depend on t_2, and roots coincide: the other
order takes the chain from its other end. If both slides are between the same turns, f
is of degree one in t_2 and h divides P: where axes are at right angles h has double
roots, which solve nothing. Roots that all targets have do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.general_6r.eliminant import ROUNDING, TINY
from armillary.ik.closed_forms.general_6r.equations import (
    given_pose,
    turn_of,
)
from armillary.ik.closed_forms.general_6r.first_search import (
    CompiledRootSearch,
    RootSearch,
    compiled_search,
    without_extra,
    written,
)
from armillary.ik.closed_forms.general_6r.real_roots import PAIR
from armillary.ik.closed_forms.general_6r.roots import common_roots, loose
from armillary.ik.closed_forms.general_6r.stages import (
    MIXED_CHAIN,
    MOST_MIXED_STEPS,
    newton_of_mixed,
)
from armillary.kernel.stages import Abreast, program
from armillary.kernel.tables import Table, reals
from armillary.spatial.vector import (
    Vector3,
    add,
    apply,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)
from armillary.trace import Program
from armillary.trace.functions import absolute, atan2, cos, maximum, select, sin, sqrt

__all__ = ["compiled_two_slides", "order_of_slides"]

Array = npt.NDArray[np.float64]

DEGREE = 6
"""Of P."""

FIVE = 5
"""Values of t_2 that a polynomial of degree two follows from."""

_angles = 2.0 * np.pi * np.arange(FIVE) / FIVE
_waves = np.stack([np.cos(k * _angles) for k in (0, 1, 2)])
_sines = np.stack([np.sin(k * _angles) for k in (1, 2)])
# f -> parts of 1, cos t_2, sin t_2, cos 2 t_2, sin 2 t_2
FIT = np.stack([0.5 * _waves[0], _waves[1], _sines[0], _waves[2], _sines[1]]) * 0.4

LEAST_SQUARE = 1e-12
"""Of the sine between A and B, and of d_1 x d_2, at least."""

UNKNOWN = 1e30
"""The gain where A and B are parallel: nothing is known."""

MISSED_BY_PAIR = 0.0025
"""Square of what a start next to a pair misses, at most, lengths in units of the
arm."""

_ORDER = Table(
    "order",
    (
        reals("frames", (5, 3, 3)),
        reals("parts", (3, 15)),
        reals("places", (6, 6)),
        reals("flip"),
        reals("extra"),
    ),
    is_single=True,
)
_CONSTANTS = {"frames": (5, 3, 3), "parts": (3, 15)}
_OF_TARGET = {"closing": (3, 3), "across": (3, 3)}
STARTS = 1, 4
"""Starts next to a root where one solution is sought, and where two are."""


def order_of_slides(
    L: Array, slides: Sequence[bool], poses: Array, *, from_end: bool
) -> dict[str, Array]:
    """Return the constants of an order.

    Args:
        L: The links in this order, shape (5, 4, 4).
        slides: Which joints slide, in this order.
        poses: Some targets, shape (k, 4, 4).
        from_end: Whether the order is that of the chain from its end.

    Returns:
        `frames`, C_0 to C_4 as (5, 3, 3); `parts` (3, 15), of both slides, and of all
        links the other way, what is turned by none, one, ... four turns; `places`
        (6, 6), joints of t_1 to t_4 and of both slides; `flip`; `extra`, see
        `common_roots`.
    """
    frames: list[Array] = []
    parts = np.zeros((3, FIVE, 3))
    turn, slid = np.eye(3), 0
    places = np.zeros((6, 6))
    for k, slides_here in enumerate(slides):
        joint, sign = (5 - k, -1.0) if from_end else (k, 1.0)
        if slides_here:
            parts[slid, len(frames)] = turn[:, 2]
            places[joint, 4 + slid] = sign
            slid += 1
        else:
            places[joint, len(frames)] = sign
            frames.append(turn)
            turn = np.eye(3)
        if k < len(L):
            parts[2, len(frames)] -= turn @ L[k, :3, 3]
            turn = turn @ L[k, :3, :3]
    order = {
        "frames": np.array([*frames, turn]),
        "parts": parts.reshape(3, 15),
        "places": places,
        "flip": np.array(float(from_end)),
    }
    constants = (order[name] for name in ("frames", "parts", "flip"))
    extra = common_roots(_sampled(), poses, *constants, degree=DEGREE)
    return {**order, "extra": np.array(extra)}


@cache
def _sampled() -> Program:
    """Return the program from a target and the constants to P at an angle."""

    def formula(target: Any, frames: Any, parts: Any, flip: Any, basis: Any) -> Any:
        closing, across, gain = _of_target(target, frames, parts, flip)
        return _sample(frames, parts, closing, across, gain, basis)

    shapes = {"target": (4, 4), **_CONSTANTS, "flip": (), "basis": (3,)}
    return program(formula, "sample", **shapes)


class _Lines(NamedTuple):
    """What t_2 and t_3 make of the axes: A, B, and d_1, d_2, m."""

    A: Vector3
    B: Vector3
    vectors: list[Vector3]

    @property
    def determinant(self) -> Any:
        """Return f."""
        one, two, way = self.vectors
        return dot(cross(one, two), way)


def _three(row: Sequence[Any], level: int) -> Vector3:
    return tuple(row[3 * level : 3 * level + 3])  # type: ignore[return-value]


def _of_target(target: Any, frames: Any, parts: Any, flip: Any) -> tuple[Any, Any, Any]:
    """Return what the target decides.

    `closing` is T = C_4 R_X' C_0, between the last turn and the first, and `across` are
    the parts of d_1, d_2 and m, of what the target carries, along A, B and A x B.
    `gain` is what rounding is multiplied by on the way, about.
    """
    R, p = given_pose(target[:3], flip)
    back = _times(frames[4], transpose(R))
    closing = _times(back, frames[0])
    # Behind the last turn, A is z and B is u = T z.
    x, y, z = (row[2] for row in closing)
    square = x * x + y * y
    factor = 1.0 / maximum(square, LEAST_SQUARE)
    gain = select(square > LEAST_SQUARE, sqrt(factor), UNKNOWN)
    across: list[list[Any]] = []
    for k, row in enumerate(parts):
        first = _three(row, 0)
        carried = apply(back, add(first, p) if k == 2 else first)
        a, b, c = add(_three(row, 4), carried)
        along = factor * (a * x + b * y)
        across.append([c - along * z, along, factor * (b * x - a * y)])
    return closing, across, gain


def _behind(turn: Any, frames: Any, parts: Any, across: Any) -> list[Vector3]:
    """Return B of a t_2, and what t_3 does not move of d_1, d_2 and m."""
    s, c = turn

    def turned(v: Any) -> Vector3:
        """Return R(-t_2) C_1' v."""
        x, y, z = apply(transpose(frames[1]), v)
        return c * x + s * y, c * y - s * x, z

    B = turned((0.0, 0.0, 1.0))
    found = [B]
    for row, along in zip(parts, across, strict=True):
        moved = add(turned(_three(row, 1)), scale(along[1], B))
        found.append(add(_three(row, 2), moved))
    return found


def _ahead(
    turn: Any, frames: Any, parts: Any, across: Any
) -> tuple[Any, list[Vector3]]:
    """Return C_2 R(t_3); then A, and what t_2 does not move of d_1, d_2 and m."""
    s, c = turn
    F = tuple((c * x + s * y, c * y - s * x, z) for x, y, z in frames[2])
    A = apply(F, tuple(row[2] for row in frames[3]))  # type: ignore[arg-type]
    found = [A]
    for row, along in zip(parts, across, strict=True):
        found.append(add(apply(F, _three(row, 3)), scale(along[0], A)))  # type: ignore[arg-type]
    return F, found


def _lines(ahead: Any, behind: Any, across: Any) -> _Lines:
    A, B = ahead[0], behind[0]
    both = cross(A, B)
    vectors = [
        add(add(ahead[k + 1], behind[k + 1]), scale(row[2], both))
        for k, row in enumerate(across)
    ]
    return _Lines(A, B, vectors)


def _circle(A: Vector3, frames: Any, closing: Any) -> tuple[Any, Any, Any, Any]:
    """Return q, r, c and h of the equation (1) in t_2."""
    x, y, z = frames[1][2]  # C_1' z
    q, r = A[0] * x + A[1] * y, A[0] * y - A[1] * x
    return q, r, closing[2][2] - A[2] * z, q * q + r * r


def _sample(
    frames: Any, parts: Any, closing: Any, across: Any, gain: Any, basis: Any
) -> Any:
    """Return P at the sine and cosine of a t_3, and what rounding may do to it."""
    _, ahead = _ahead((basis[0], basis[1]), frames, parts, across)
    values: list[Any] = []
    most: Any = TINY
    for turn in zip(_sines[0].tolist(), _waves[1].tolist(), strict=True):
        lines = _lines(ahead, _behind(turn, frames, parts, across), across)
        values.append(lines.determinant)
        size: Any = 1.0
        for v in lines.vectors:
            size = size * dot(v, v)
        most = maximum(most, size)
    g = [
        sum((x * v for x, v in zip(row, values, strict=True)), 0.0)
        for row in FIT.tolist()
    ]
    q, r, c, h = _circle(ahead[0], frames, closing)
    s, k = turn_of(r, q)
    double_k, double_s = k * k - s * s, 2.0 * k * s
    outer = g[3] * double_k + g[4] * double_s
    inner = g[4] * double_k - g[3] * double_s
    even = h * g[0] + c * (g[1] * q + g[2] * r) + (2.0 * c * c - h) * outer
    odd = g[2] * q - g[1] * r + 2.0 * c * inner
    # Errors of f, then of both parts, to first order.
    length = sqrt(h)
    f = ROUNDING * gain * sqrt(most)
    error_even = f * (2.0 * h + 2.0 * absolute(c) * length + 2.0 * c * c)
    error_odd = f * (2.0 * length + 2.0 * absolute(c))
    error = 2.0 * absolute(even) * error_even + error_even * error_even
    under = h - c * c
    error = error + absolute(under) * (
        2.0 * absolute(odd) * error_odd + error_odd * error_odd
    )
    error = error + ROUNDING * (h + c * c) * odd * odd
    return [even * even - under * odd * odd, error]


def _solution(third: Any, second: Any, known: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """Return t_1 to t_4 and both slides, and the square of what they miss.

    Args:
        third: Sine and cosine of t_3.
        second: Of t_2.
        known: `frames`, `parts`, `closing`, `across`.
    """
    frames, parts, closing, across = known
    F, ahead = _ahead(third, frames, parts, across)
    lines = _lines(ahead, _behind(second, frames, parts, across), across)
    # R(t_4) T R(t_1) = C_3' F' R(-t_2) C_1'
    back = _turned_back(second, transpose(frames[1]))
    V = _times(transpose(frames[3]), _times(transpose(F), back))
    x, y = closing[0][2], closing[1][2]
    fourth = turn_of(x * V[1][2] - y * V[0][2], x * V[0][2] + y * V[1][2])
    U = _times(transpose(closing), _turned_back(fourth, V))
    first = turn_of(U[1][0] - U[0][1], U[0][0] + U[1][1])
    missed = dot(lines.A, lines.B) - closing[2][2]
    missed = missed * missed
    # Both slides by least squares.
    one, two, way = lines.vectors
    aa, ab, bb = dot(one, one), dot(one, two), dot(two, two)
    am, bm = dot(one, way), dot(two, way)
    factor = 1.0 / maximum(aa * bb - ab * ab, LEAST_SQUARE)
    along = (bb * am - ab * bm) * factor, (aa * bm - ab * am) * factor
    left = subtract(way, add(scale(along[0], one), scale(along[1], two)))
    missed = missed + dot(left, left)
    angles = [atan2(*turn) for turn in (first, second, third, fourth)]
    return [*angles, *along], missed


def _turned_back(turn: Any, m: Any) -> Any:
    """Return R(-t) m."""
    s, c = turn
    x, y, z = m
    first = tuple(c * a + s * b for a, b in zip(x, y, strict=True))
    return first, tuple(c * b - s * a for a, b in zip(x, y, strict=True)), z


def _times(m: Any, n: Any) -> Any:
    columns = transpose(n)
    return tuple(tuple(dot(row, column) for column in columns) for row in m)


def _both(angle: Any, known: tuple[Any, ...]) -> list[tuple[list[Any], Any]]:
    """Return the solutions of both t_2 of a t_3, and what each misses."""
    frames, parts, closing, across = known
    third = sin(angle), cos(angle)
    _, ahead = _ahead(third, frames, parts, across)
    q, r, c, h = _circle(ahead[0], frames, closing)
    middle = turn_of(r, q)
    s, k = turn_of(sqrt(maximum(h - c * c, 0.0)), c)
    found: list[tuple[list[Any], Any]] = []
    for side in (s, 0.0 - s):
        second = middle[0] * k + middle[1] * side, middle[1] * k - middle[0] * side
        found.append(_solution(third, second, known))
    return found


def _placed(unknowns: list[Any], places: Any) -> list[Any]:
    """Return the joints of t_1 to t_4 and both slides."""
    return [
        sum((a * x for a, x in zip(row, unknowns, strict=True)), 0.0) for row in places
    ]


def _near_one(missed: float) -> Any:
    def formula(
        angle: Any,
        frames: Any,
        parts: Any,
        closing: Any,
        across: Any,
        places: Any,
    ) -> Any:
        """Return the better of both solutions, and whether it is one to start from."""
        known = frames, parts, closing, across
        (one, first), (two, second) = _both(angle, known)
        is_first = first <= second
        better = [select(is_first, a, b) for a, b in zip(one, two, strict=True)]
        miss = select(is_first, first, second)
        return _placed(better, places), select(miss < missed, 1.0, 0.0)

    return _near(formula, written(0, STARTS[0]), "angle")


def _near_two() -> Any:
    def formula(
        wide_angle: Any,
        frames: Any,
        parts: Any,
        closing: Any,
        across: Any,
        places: Any,
    ) -> Any:
        """Return both solutions of angles to either side, from where roots part."""
        known = frames, parts, closing, across
        outputs: list[Any] = []
        for side in (-0.5 * PAIR, 0.5 * PAIR):
            for unknowns, miss in _both(wide_angle + side, known):
                good = select(miss < MISSED_BY_PAIR, 1.0, 0.0)
                outputs += [_placed(unknowns, places), good]
        return outputs

    return _near(formula, written(*STARTS), "wide_angle")


def _near(formula: Any, outputs: str, angle: str) -> Any:
    return loose(
        formula, outputs, **{angle: ()}, **_CONSTANTS, **_OF_TARGET, places=(6, 6)
    )


@cache
def compiled_two_slides(
    missed: float, error: float, apart: float
) -> CompiledRootSearch:
    """Return the first search of arms with two slides.

    Args:
        missed: Square of what a solution misses before Newton's method, at most.
        error: Largest error of a solution.
        apart: Keys of different solutions differ by more.
    """
    equations = loose(
        _of_target, "closing across gain", target=(4, 4), **_CONSTANTS, flip=()
    )
    sample = loose(_sample, "sample", **_CONSTANTS, **_OF_TARGET, gain=(), basis=(3,))
    search = RootSearch(
        name="two_slides_first",
        order=_ORDER,
        chain=MIXED_CHAIN,
        equations=equations,
        sample=sample,
        near=(
            without_extra(),
            Abreast("ones_near", (_near_one(missed),), chosen="ones"),
            Abreast("twos_near", (_near_two(),), chosen="twos"),
        ),
        starts=STARTS,
        newton=newton_of_mixed().renamed({}, inputs={"links": "chain"}),
        steps=MOST_MIXED_STEPS,
    )
    return compiled_search(search, error, apart)
