"""One joint that slides and five that turn: the equations of six that turn, changed.

The chain is cut as in `geometry.py`, in an order in which the slide is u_1, u_4, u_5 or
u_6. Then the equations of `equations.py` keep their form:

- Where u_1 slides, B = G T(-u_1) L_5^-1, and m, w, p p and p z are of degree two in its
  length: the columns of sin u_1 and cos u_1 become those of u_1^2 and u_1.
- Where u_4 or u_5 slides, all rows are of degree two in its length s, and (S^2, S C,
  C^2) become (s^2, s, 1): of the half angle the tangent is s.
- Where u_6 slides, it leaves all of the rotation and p x z, p x and p y as they are,
  for the axes x, y, z of the frame: rows are those of x, y, z, p x z, then p x, p y.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.general_6r.eliminant import determinant
from armillary.ik.closed_forms.general_6r.equations import (
    Equations,
    Rigid,
    Turn,
    equations_of,
    given_pose,
    inverse_of,
    on_z,
    product_of,
    right_side,
    rigid_of,
    turn_of,
)
from armillary.ik.closed_forms.general_6r.first_search import (
    STARTS,
    CompiledRootSearch,
    RootSearch,
    compiled_search,
    near_stages,
    without_extra,
)
from armillary.ik.closed_forms.general_6r.geometry import (
    FIT,
    HALF,
    THIRDS,
    WEIGHTS,
    moved,
)
from armillary.ik.closed_forms.general_6r.nearby import right_rows
from armillary.ik.closed_forms.general_6r.real_roots import sample_program
from armillary.ik.closed_forms.general_6r.roots import at_angle, common_roots, loose
from armillary.ik.closed_forms.general_6r.stages import (
    MIXED_CHAIN,
    MOST_MIXED_STEPS,
    newton_of_mixed,
)
from armillary.kernel.stages import program
from armillary.kernel.tables import Table, reals
from armillary.spatial.vector import (
    add,
    apply,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)
from armillary.trace import Program
from armillary.trace.functions import atan2, maximum, select

__all__ = ["PLACES", "compiled_one_slide", "order_of_slide", "place_of_slide"]

Array = npt.NDArray[np.float64]

PLACES = (1, 4, 5, 6)
"""Which u may slide."""

LENGTHS = np.array([-1.0, 0.0, 1.0])
SQUARES = np.linalg.inv(np.stack([LENGTHS**2, LENGTHS, np.ones(3)], axis=-1))
"""Values of a function at `LENGTHS` -> its parts of s^2, s, 1."""

LEAST_DIVISOR = 1e-12
"""Divisors are at least this: 1 + cos u of the angle u whose half has the tangent s,
and the determinant of the equations of two unknowns."""

_EQUATION_SHAPES: dict[str, tuple[int, ...]] = {
    "links": (5, 3, 4),
    "left": (3, 9, 14),
    "unit": (9,),
    "slide": (len(PLACES),),
    "flip": (),
}
_ORDER = Table(
    "order",
    (*(reals(name, shape) for name, shape in _EQUATION_SHAPES.items()), reals("extra")),
    is_single=True,
)


def place_of_slide(joint: int, *, from_end: bool) -> int:
    """Return which u is a joint in an order, from 1 on; 2 and 3 must not slide.

    Args:
        joint: From 0 on.
        from_end: Whether the order takes the chain from its end, and hides joint 5.
    """
    # u = t_6, t_1, ..., t_5 or t_1, t_6, ..., t_2
    return (6 - joint) % 6 + 1 if from_end else (joint + 1) % 6 + 1


def order_of_slide(
    L: Array, place: int, poses: Array, *, from_end: bool
) -> dict[str, Array]:
    """Return the constants of an order: the fields of its record.

    Args:
        L: The links in this order, shape (5, 4, 4).
        place: Which u slides, see `PLACES`.
        poses: Some targets, shape (k, 4, 4).
        from_end: Whether the order is that of the chain from its end.
    """
    left, unit = _left_rows(L, place)
    order = {
        "links": L[:, :3],
        "left": left,
        "unit": unit,
        "slide": np.array([float(place == k) for k in PLACES]),
        "flip": np.array(float(from_end)),
    }
    return {**order, "extra": np.array(_roots_of_all(order, poses))}


def _roots_of_all(order: dict[str, Array], poses: Array) -> float:
    """Return what `common_roots` does."""
    constants = (order[name] for name in _EQUATION_SHAPES)
    return common_roots(_sampled(), poses, *constants)


def _left_rows(L: Array, place: int) -> tuple[Array, Array]:
    """Return what `geometry.left_rows` does, and 1 in the same monomials (9,)."""
    steps = [LENGTHS if place == k else THIRDS for k in (3, 4, 5)]
    at = [moved(x, slides=place == k) for k, x in zip((3, 4, 5), steps, strict=True)]
    third, fourth, fifth = at[0][:, None, None], at[1][None, :, None], at[2][None, None]
    X = L[0] @ third @ L[1] @ fourth @ L[2] @ fifth @ L[3]
    p = X[..., :3, 3]
    x, y, z = (X[..., :3, k] for k in range(3))
    if place == 6:
        four = np.stack([x, y, z, np.cross(p, z)], axis=-1)
        two = np.stack([(p * x).sum(-1), (p * y).sum(-1)], axis=-1)
    else:
        pp, pz = (p * p).sum(-1, keepdims=True), (p * z).sum(-1, keepdims=True)
        four = np.stack([p, z, np.cross(p, z), pp * z - 2.0 * pz * p], axis=-1)
        two = np.concatenate([pp, pz], axis=-1)
    rows = np.concatenate([four[..., 2, :], two, four[..., 0, :], four[..., 1, :]], -1)
    # values -> (S^2, S C, C^2), or (s^2, s, 1)
    quadratic = [SQUARES if place == k else HALF.T @ FIT for k in (4, 5)]
    halves = np.einsum("ab,dc,fe,bcek->adfk", FIT, *quadratic, rows)
    one = [np.array([0.0, 0.0, 1.0]) if place == k else HALF[2] for k in (4, 5)]
    weights = np.array(WEIGHTS)
    unit = np.multiply.outer(one[0], one[1] * weights).ravel()
    halves = halves * weights[:, None]
    return np.ascontiguousarray(halves.reshape(3, 9, rows.shape[-1])), unit


def _rows_of_first(G: Rigid, last: Any) -> tuple[Any, Any, Any]:
    """Return the rows of B where u_1 slides, in its square, its length, and 1."""
    R, g = G
    H = inverse_of(rigid_of(last))
    z = apply(R, tuple(row[2] for row in H[0]))  # type: ignore[arg-type]
    p = add(g, apply(R, H[1]))  # type: ignore[arg-type]
    a = tuple(row[2] for row in R)
    # p - u a
    pp, pz, pa, az = dot(p, p), dot(p, z), dot(p, a), dot(a, z)  # type: ignore[arg-type]
    none = (0.0, 0.0, 0.0)
    squares = none, none, none, subtract(z, scale(2.0 * az, a))  # type: ignore[arg-type]
    w = add(scale(2.0 * az, p), scale(2.0 * pz, a))  # type: ignore[arg-type]
    w = subtract(w, scale(2.0 * pa, z))
    lengths = scale(-1.0, a), none, cross(z, a), w  # type: ignore[arg-type]
    ones = p, z, cross(p, z), subtract(scale(pp, z), scale(2.0 * pz, p))
    two = (1.0, 0.0), (-2.0 * pa, 0.0 - az), (pp, pz)
    return _split((squares, lengths, ones), two)


def _rows_of_last(G: Rigid, last: Any) -> tuple[Any, Any, Any]:
    """Return the rows of B where u_6 slides, in sin, cos, 1 of u_1."""
    R, g = G
    H = inverse_of(rigid_of(last))
    a, b, c = transpose(R)  # type: ignore[arg-type]

    def parts(h: Any) -> list[Any]:
        """Return R Rz(-u) h in sin, cos, 1."""
        x, y, z = h
        sine = subtract(scale(y, a), scale(x, b))
        return [sine, add(scale(x, a), scale(y, b)), scale(z, c)]

    axes = transpose(H[0])  # type: ignore[arg-type]
    along = [dot(H[1], axis) for axis in axes[:2]]  # type: ignore[arg-type]
    turned = [parts(axis) for axis in axes]
    moments = parts(cross(H[1], axes[2]))  # type: ignore[arg-type]
    fours: list[Any] = []
    twos: list[Any] = []
    for k in range(3):
        x, y, z = (each[k] for each in turned)
        fours.append((x, y, z, add(moments[k], cross(g, z))))  # type: ignore[arg-type]
        gx, gy = dot(g, x), dot(g, y)  # type: ignore[arg-type]
        twos.append((gx + along[0], gy + along[1]) if k == 2 else (gx, gy))
    return _split(fours, twos)


def _split(fours: Any, twos: Any) -> tuple[Any, Any, Any]:
    """Return the rows of z and the two numbers, those of x, and those of y."""
    of_z = [
        [*(v[2] for v in four), *two] for four, two in zip(fours, twos, strict=True)
    ]
    xs, ys = ([[v[k] for v in four] for four in fours] for k in range(2))
    return of_z, xs, ys


def _chosen(slide: Any, plain: Any, first: Any, last: Any) -> Any:
    """Return numbers of one of three kinds of rows."""
    if isinstance(plain, list | tuple):
        rows: Any = plain, first, last
        return [_chosen(slide, *row) for row in zip(*rows, strict=True)]
    return select(slide[0] > 0.5, first, select(slide[3] > 0.5, last, plain))


def _of_target(
    target: Any, links: Any, left: Any, unit: Any, slide: Any, flip: Any
) -> Any:
    """Return the six equations of a target, the right side, and `gain`."""
    G = given_pose(target[:3], flip)
    kinds = (f(G, links[4]) for f in (right_side, _rows_of_first, _rows_of_last))
    sides = [_chosen(slide, *part) for part in zip(*kinds, strict=True)]
    of_z, xs, ys = sides
    known = equations_of(of_z, xs, ys, left, unit)
    return known.E, right_rows(known), known.gain


@cache
def _sampled() -> Program:
    """Return the program from a target and the constants to P at an angle."""

    def formula(target: Any, *rest: Any) -> Any:
        E, _, gain = _of_target(target, *rest[:-1])
        return [*determinant(at_angle(E, rest[-1]), gain)]

    return program(formula, "sample", target=(4, 4), **_EQUATION_SHAPES, basis=(3,))


def _moved(turn: Turn, shift: Any, pose: Rigid) -> Rigid:
    """Return R(u) T(shift) X."""
    R, p = on_z(turn, pose)
    return R, (p[0], p[1], p[2] + shift)


def _back(
    turns: Sequence[Turn], G: Rigid, links: Any, known: Equations, slide: Any
) -> tuple[list[Any], Any]:
    """Return u_1 to u_6 from u_3, u_4, u_5, and what the chain then misses.

    Arguments as of `equations.back`; of a slide the half of the turn has its tangent.
    """
    side, lengths = _left_side(turns, links, slide)
    is_first, is_last = slide[0] > 0.5, slide[3] > 0.5
    four, two = _rows_of_side(side, is_last)
    first, length = _first_joint(four, two, known, is_first)
    s, c = select(is_first, 0.0, first[0]), select(is_first, 1.0, first[1])
    a, b = select(is_first, length * length, s), select(is_first, length, c)
    there = [
        [a * i + b * j + one for i, j, one in zip(*rows, strict=True)]
        for rows in (known.xs, known.ys)
    ]
    xs, ys = [v[0] for v in four], [v[1] for v in four]
    cosine = _dot(there[0], xs) + _dot(there[1], ys)
    second = turn_of(_dot(there[1], xs) - _dot(there[0], ys), cosine)
    A = on_z(second, side)
    before = _moved((0.0 - s, c), 0.0 - length, inverse_of(rigid_of(links[4])))
    last, along, missed = _last_joint(A, product_of(G, before), is_last)
    u = [atan2(*each) for each in ((s, c), second, *turns, last)]
    u[0] = select(is_first, length, u[0])
    u[3] = select(slide[1] > 0.5, lengths[1], u[3])
    u[4] = select(slide[2] > 0.5, lengths[2], u[4])
    u[5] = select(is_last, along, u[5])
    return u, missed


def _left_side(turns: Sequence[Turn], links: Any, slide: Any) -> tuple[Rigid, Any]:
    """Return L_1 R(u_3) ... L_4, and the lengths of u_3, u_4, u_5 if they slide."""
    L = [rigid_of(link) for link in links]
    slides = [None, slide[1] > 0.5, slide[2] > 0.5]
    lengths: list[Any] = []
    side = L[3]
    for k in (2, 1, 0):
        s, c = turns[k]
        shift: Any = 0.0
        if slides[k] is not None:
            shift = select(slides[k], s / maximum(1.0 + c, LEAST_DIVISOR), 0.0)
            s, c = select(slides[k], 0.0, s), select(slides[k], 1.0, c)
        lengths.insert(0, shift)
        side = product_of(L[k], _moved((s, c), shift, side))
    return side, lengths


def _rows_of_side(side: Rigid, is_last: Any) -> tuple[list[Any], list[Any]]:
    """Return the four vectors of the left side, and the two numbers."""
    R, p = side
    x, y, z = transpose(R)  # type: ignore[arg-type]
    m = cross(p, z)
    pp, pz = dot(p, p), dot(p, z)
    w = subtract(scale(pp, z), scale(2.0 * pz, p))
    kinds = zip((x, y, z, m), (p, z, m, w), strict=True)
    four = [
        [select(is_last, a, b) for a, b in zip(*pair, strict=True)] for pair in kinds
    ]
    return four, [select(is_last, dot(p, x), pp), select(is_last, dot(p, y), pz)]


def _first_joint(
    four: list[Any], two: list[Any], known: Equations, is_first: Any
) -> tuple[Turn, Any]:
    """Return sine and cosine of u_1, and its length, by least squares."""
    real = [*(v[2] for v in four), *two]
    real = [a - b for a, b in zip(real, known.reals[2], strict=True)]
    first, second = known.reals[:2]
    aa, ab, bb = _dot(first, first), _dot(first, second), _dot(second, second)
    ar, br = _dot(first, real), _dot(second, real)
    det = aa * bb - ab * ab
    upper, lower = bb * ar - ab * br, aa * br - ab * ar
    length = select(is_first, lower / maximum(det, LEAST_DIVISOR), 0.0)
    return turn_of(upper * det, lower * det), length


def _last_joint(A: Rigid, B: Rigid, is_last: Any) -> tuple[Turn, Any, Any]:
    """Return u_6 of B R(-u_6) = A or B T(-u_6) = A: its turn, its length, the miss."""
    a, b = transpose(A[0]), transpose(B[0])  # type: ignore[arg-type]
    along = select(is_last, dot(subtract(B[1], A[1]), b[2]), 0.0)
    turn = turn_of(dot(b[0], a[1]) - dot(b[1], a[0]), dot(b[0], a[0]) + dot(b[1], a[1]))
    s, c = select(is_last, 0.0, turn[0]), select(is_last, 1.0, turn[1])
    pairs = (
        (subtract(scale(c, b[0]), scale(s, b[1])), a[0]),
        (add(scale(s, b[0]), scale(c, b[1])), a[1]),
        (b[2], a[2]),
        (subtract(B[1], scale(along, b[2])), A[1]),
    )
    missed: Any = 0.0
    for there, here in pairs:
        gap = subtract(there, here)
        missed = missed + dot(gap, gap)
    return (s, c), along, missed


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


@cache
def compiled_one_slide(missed: float, error: float, apart: float) -> CompiledRootSearch:
    """Return the first search of arms with one slide.

    Args:
        missed: Square of what a solution misses before Newton's method, at most.
        error: Largest error of a solution.
        apart: Keys of different solutions differ by more.
    """
    search = RootSearch(
        name="one_slide_first",
        order=_ORDER,
        chain=MIXED_CHAIN,
        equations=loose(_of_target, "E right gain", target=(4, 4), **_EQUATION_SHAPES),
        sample=sample_program(),
        near=(without_extra(), *near_stages(missed, _back)),
        starts=STARTS,
        newton=newton_of_mixed().renamed({}, inputs={"links": "chain"}),
        steps=MOST_MIXED_STEPS,
    )
    return compiled_search(search, error, apart)
