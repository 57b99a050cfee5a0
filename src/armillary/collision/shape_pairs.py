"""Pairs of shapes of a cell as arrays, and their distances at many poses at once.

Pairs of the same kinds of shapes share a kernel, whose rows are pairs at poses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.collision.distance.pair_kernel import rows_kernel
from armillary.collision.distance.sizes import form_of, numbers_of
from armillary.collision.distance.table import is_listed
from armillary.errors import ModelError
from armillary.kernel import Kernel, shared_kernel
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron, HalfSpace
from armillary.spatial.pose import Pose
from armillary.spatial.vector import norm, subtract, three
from armillary.trace import trace

__all__ = ["PlacedShape", "ShapePairs"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Asked: TypeAlias = Literal["value", "free"]

ROUNDING: Final = 1e-12
"""By which part of its numbers a bound is lowered, so that rounding cannot raise it."""


class PlacedShape(NamedTuple):
    """A shape that moves with a frame.

    Attributes:
        shape: The shape.
        frame: The position of that frame's pose in arrays of poses.
        pose: The frame of `shape.pose` in it.
        link: The qualified name of the link, for messages.
    """

    shape: Primitive
    frame: int
    pose: Pose
    link: str


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """Pairs of the same kinds of shapes.

    Attributes:
        pairs: Which of all pairs they are, shape (m,).
        shapes: The kinds: one shape of each, in an order that is listed.
        frames: Positions of their poses, shape (2, m).
        given: Poses of the shapes and their numbers, arrays of m rows.
    """

    pairs: Indices
    shapes: tuple[Primitive, Primitive]
    frames: Indices
    given: tuple[Array, ...]

    def values(self, X: Array, rows: Any, at: Any, asked: Asked) -> Array:
        """Return the distance of pair `at[k]` of this kind at poses `rows[k]`."""
        first, second = self.frames[:, at]
        kernel = rows_kernel(*self.shapes, asked)
        given = (each[at] for each in self.given)
        found: Array = kernel(X[rows, first, :3], X[rows, second, :3], *given)
        return found


@final
@dataclass(frozen=True, slots=True)
class ShapePairs:
    """Pairs of shapes, numbered; arrays are read-only.

    Attributes:
        shapes: All shapes.
        pairs: The two shapes of each pair, shape (k, 2).
        kinds: The same pairs, by kinds of shapes.
        centres: Centres of bounding spheres in the frames of the shapes, shape (n, 3).
        radii: Their radii [m], infinite for half spaces, shape (n,).
        frames: `PlacedShape.frame` of each, shape (n,).
    """

    shapes: tuple[PlacedShape, ...]
    pairs: Indices
    kinds: tuple[Kind, ...]
    centres: Array
    radii: Array
    frames: Indices

    @classmethod
    def of(cls, shapes: Sequence[PlacedShape], pairs: Indices) -> Self:
        """Sort pairs by kinds of their shapes.

        pairs: The two shapes of each, as positions in `shapes`; shape (k, 2).

        Raises:
            ModelError: Both shapes of a pair are half spaces.
        """
        spheres = [_sphere(each) for each in shapes]
        centres = np.array([s.centre for s in spheres], np.float64).reshape(-1, 3)
        radii = np.array([s.radius for s in spheres], np.float64)
        frames = np.array([each.frame for each in shapes], np.int64)
        kinds = tuple(_kinds(shapes, pairs, frames))
        for array in (pairs, centres, radii, frames):
            array.flags.writeable = False
        return cls(tuple(shapes), pairs, kinds, centres, radii, frames)

    def bounds(self, X: Array) -> Array:
        """Return what distances of pairs are not below, NaN where a pose has NaN.

        X: Poses of all frames, shape (n, f, 4, 4).

        Returns:
            Distances of bounding spheres [m], shape (n, k).
        """
        P = _centre_kernel()(X[:, self.frames], self.centres)
        a, b = self.pairs.T
        found: Array = _bound_kernel()(P[:, a], P[:, b], self.radii[a] + self.radii[b])
        return found

    def distances(self, X: Array, wanted: Any, asked: Asked, out: Array) -> None:
        """Write the distances [m] of some pairs at some poses into an array.

        Args:
            X: Poses of all frames, shape (n, f, 4, 4).
            wanted: Which pairs, shape (n, k).
            asked: `free` leaves the depth of overlaps out.
            out: Where to write, shape (n, k).
        """
        for kind in self.kinds:
            rows, at = np.nonzero(wanted[:, kind.pairs])
            if len(rows):
                out[rows, kind.pairs[at]] = kind.values(X, rows, at, asked)


def _kinds(
    shapes: Sequence[PlacedShape], pairs: Indices, frames: Indices
) -> Iterator[Kind]:
    numbers: dict[Primitive, int] = {}
    alike = [_alike(each.shape) for each in shapes]
    form = np.array([numbers.setdefault(each, len(numbers)) for each in alike])
    if not len(pairs):
        return
    is_ordered = form[pairs[:, :1]] <= form[pairs[:, 1:]]
    ordered = np.where(is_ordered, pairs, pairs[:, ::-1])
    code = form[ordered[:, 0]] * len(numbers) + form[ordered[:, 1]]
    matrices = np.array([(s.pose @ s.shape.pose).matrix()[:3] for s in shapes])
    for each in np.unique(code):
        which = np.flatnonzero(code == each)
        sides: list[list[int]] = ordered[which].T.tolist()
        kinds = alike[sides[0][0]], alike[sides[1][0]]
        if isinstance(kinds[0], HalfSpace) and isinstance(kinds[1], HalfSpace):
            one, other = (shapes[side[0]].link for side in sides)
            raise ModelError(
                f"Two half spaces have no distance: those of '{one}' and '{other}'. "
                "Leave this pair out: rules.exclude(...)."
            )
        if not is_listed(*kinds):
            sides, kinds = sides[::-1], (kinds[1], kinds[0])
        given: list[Array] = [matrices[side] for side in sides]
        for side in sides:
            rows = np.array([numbers_of(shapes[k].shape) for k in side], np.float64)
            given += [rows] if rows.shape[1] else []
        yield Kind(which, kinds, frames[np.array(sides)], tuple(given))


def _alike(shape: Primitive) -> Primitive:
    """Return the same for all shapes that share a kernel."""
    if isinstance(shape, ConvexPolyhedron):
        return ConvexPolyhedron(vertices=shape.vertices)
    return form_of(shape)


def _sphere(placed: PlacedShape) -> BoundingSphere:
    """Return a sphere around a shape, in the frame that it moves with."""
    shape = placed.shape
    if isinstance(shape, HalfSpace):
        return BoundingSphere((0.0, 0.0, 0.0), math.inf)
    try:
        centre, radius = shape.bounding_sphere
    except NotImplementedError:  # a user's own shape may define `farthest` only
        lower, upper = np.array(shape.bounding_box())
        middle = 0.5 * (lower + upper)
        centre, radius = three(middle.tolist()), float(np.linalg.norm(upper - middle))
    return BoundingSphere(placed.pose @ (shape.pose @ centre), radius)


@lru_cache(maxsize=1)
def _centre_kernel() -> Kernel:
    def centre(X: Any, centre: Any) -> Any:
        return Pose.from_matrix(X) @ three(centre)

    return shared_kernel(
        trace(centre, name="centre", outputs=("p",), X=(4, 4), centre=(3,))
    )


@lru_cache(maxsize=1)
def _bound_kernel() -> Kernel:
    def bound(p: Any, q: Any, radii: Any) -> Any:
        p, q = three(p), three(q)
        size = norm(p) + norm(q) + radii
        return norm(subtract(p, q)) - radii - ROUNDING * size

    return shared_kernel(
        trace(bound, name="bound", outputs=("value",), p=(3,), q=(3,), radii=())
    )
