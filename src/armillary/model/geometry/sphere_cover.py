"""Spheres around bodies: few, with no point left out, and not far beyond them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.body_pieces import BodyPieces
from armillary.model.geometry.hull import convex_hull
from armillary.model.geometry.triangles import Triangles

__all__ = ["SphereCover", "sphere_cover"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

CUBES: Final = 4000
CUBES_PER_SPHERE: Final = 200
STARTS: Final = 6
MOST_ASSIGNMENTS: Final = 20
POLISHES: Final = 6
ROUNDING: Final = 1e-12

STEPS: Final = (
    np.array([step for step in np.ndindex(3, 3, 3) if step != (1, 1, 1)], np.float64)
    - 1.0
)
"""Directions in which a centre is moved."""


class SphereCover(NamedTuple):
    """Spheres that contain bodies.

    Attributes:
        centres: [m], shape (n, 3).
        radii: [m], shape (n,).
        excess: How far the spheres reach beyond the bodies at most [m].
    """

    centres: Array
    radii: Array
    excess: float


def sphere_cover(
    bodies: Sequence[Triangles], count: int, *, beyond: float = 0.0
) -> SphereCover:
    """Return spheres around bodies: their triangles and all that these enclose.

    A sphere about c with radius r reaches beyond the bodies by at most r + d(c), with d
    the distance of c from them, below 0 inside. Every piece of the bodies belongs to
    the sphere for which this is least; then each centre moves to where it is least for
    its pieces, and again (Lloyd's method, for the greatest of all).

    bodies: Open or closed, facing any side.
    count: The most spheres.
    beyond: By how much the true bodies may reach beyond their triangles [m].

    Raises:
        ModelError: There are no triangles, or SciPy is not installed.
    """
    pieces = BodyPieces(bodies, CUBES + CUBES_PER_SPHERE * count)
    centres = _CoverSearch(pieces).best(count)
    away = pieces.distances(centres)
    owner, reach = _assigned(pieces.points, pieces.starts, centres, away)
    used = np.unique(owner)
    radii = np.array([reach[owner == k].max() for k in used])
    # Radii are sums of rounded numbers, and must hold all the same.
    size = np.abs(pieces.points).max() + radii.max()
    radii += beyond + ROUNDING * size
    return SphereCover(centres[used], radii, float((radii + away[used]).max()))


def _assigned(
    points: Array, starts: Indices, centres: Array, away: Array
) -> tuple[Indices, Array]:
    """Return the best centre of each piece, and how far the piece reaches from it."""
    reaches = np.empty((len(centres), len(starts)))
    for k, centre in enumerate(centres):
        squares = np.einsum("ij,ij->i", points - centre, points - centre)
        reaches[k] = np.sqrt(np.maximum.reduceat(squares, starts))
    owner = np.argmin(reaches + away[:, None], axis=0)
    return owner, reaches[owner, np.arange(len(starts))]


@final
class _CoverSearch:
    """Looks for centres, with estimated distances.

    At first a piece is the ball around its points, then 14 of the points.
    """

    def __init__(self, pieces: BodyPieces) -> None:
        from scipy import spatial  # pyright: ignore[reportMissingTypeStubs]

        library: Any = spatial
        self._nearest = library.cKDTree(pieces.surface)
        self._pieces = pieces
        self._roughly_away = pieces.estimates()
        self._points, self._starts = _outermost(pieces.points, pieces.starts)
        counts = np.diff(np.append(self._starts, len(self._points)))
        self._owners = np.repeat(np.arange(len(counts)), counts)
        lower, upper = (
            each.reduceat(self._points, self._starts)
            for each in (np.minimum, np.maximum)
        )
        self._middles: Array = 0.5 * (lower + upper)
        away = np.linalg.norm(self._points - self._middles[self._owners], axis=1)
        self._sizes: Array = np.maximum.reduceat(away, self._starts)

    def _away(self, points: Array) -> Array:
        """Return how far points are from the bodies, to a part of a cube."""
        distances = np.asarray(self._nearest.query(points, eps=0.02)[0], np.float64)
        return np.where(self._pieces.is_inside(points), -distances, distances)

    def best(self, count: int) -> Array:
        """Return centres, shape (n, 3)."""
        random = np.random.default_rng(0)
        covers = [self._with_balls(count, random, k % 2 == 0) for k in range(STARTS)]
        _, centres = min(covers, key=operator.itemgetter(0))
        step = 0.25 * float(np.median(self._sizes))
        best, kept = np.inf, centres
        # Lloyd's method with estimated distances: assign pieces to centres, move each
        # centre to where the excess over its own is least. Excess is not monotonous, so
        # the best centres so far are returned.
        for _ in range(POLISHES):
            away = self._away(centres)
            owner, reach = _assigned(self._points, self._starts, centres, away)
            excess = float((reach + away[owner]).max())
            if excess < best:
                best, kept = excess, centres
            moved = list[Array]()
            for k, centre in enumerate(centres):
                points = _extreme(self._points[owner[self._owners] == k])
                sizes = np.zeros(len(points))
                moved.append(_moved(self._away, centre, points, sizes, step))
            centres = np.array(moved)
        return kept

    def _with_balls(
        self, count: int, random: np.random.Generator, even: bool
    ) -> tuple[float, Array]:
        """Return the greatest excess of some centres, and the centres."""
        centres = self._spread(count, random, even)
        step = 0.1 * float(np.ptp(self._middles, axis=0).max()) / np.cbrt(count)
        away_of = self._roughly_away
        best, kept, since = np.inf, centres, 0
        for _ in range(MOST_ASSIGNMENTS):
            away = self._roughly_away(centres)
            reaches = self._sizes + np.linalg.norm(
                self._middles - centres[:, None], axis=2
            )
            owner = np.argmin(reaches + away[:, None], axis=0)
            excess = float((reaches + away[:, None]).min(axis=0).max())
            # Three rounds without progress of a thousandth end it.
            since = 0 if excess < best * (1.0 - 1e-3) else since + 1
            if excess < best:
                best, kept = excess, centres
            if since == 3:
                break
            groups = (owner == k for k in range(len(centres)))
            centres = np.array(
                [
                    _moved(away_of, centre, self._middles[own], self._sizes[own], step)
                    for centre, own in zip(centres, groups, strict=True)
                ]
            )
        return best, kept

    def _spread(self, count: int, random: np.random.Generator, even: bool) -> Array:
        """Return middles of pieces far from each other, moved by k-means.

        even: Whether each is the farthest from those before, else it is drawn
            (k-means++).
        """
        middles = self._middles
        chosen = [middles[random.integers(len(middles))]]
        squares = np.full(len(middles), np.inf)
        for _ in range(min(count, len(middles)) - 1):
            step = middles - chosen[-1]
            squares = np.minimum(squares, np.einsum("ij,ij->i", step, step))
            if even:
                at = int(np.argmax(squares))
            else:
                at = int(random.choice(len(middles), p=squares / squares.sum()))
            chosen.append(middles[at])
        centres = np.array(chosen)
        for _ in range(5):
            away = np.linalg.norm(middles - centres[:, None], axis=2)
            owner = np.argmin(away, axis=0)
            used = np.unique(owner)
            centres = np.array([middles[owner == k].mean(axis=0) for k in used])
        return centres


def _moved(
    away_of: Callable[[Array], Array],
    centre: Array,
    points: Array,
    sizes: Array,
    step: float,
) -> Array:
    """Return a centre from which the excess over balls is less."""
    if not len(points):
        return centre
    least, smallest = np.inf, step / 64.0
    # A pattern search: the greatest excess over a few hundred points has no useful
    # gradient. Steps in all directions are tried at once, and halved where none helps.
    tried = centre[None]
    x, y, z = np.ascontiguousarray(points.T)
    while step > smallest:
        u, v, w = tried.T[:, :, None]
        # Radius that the ball about each tried centre needs, and how far that centre is
        # from the bodies, below 0 inside: their sum is the excess.
        reach = np.sqrt((x - u) ** 2 + (y - v) ** 2 + (z - w) ** 2)
        excess = (reach + sizes).max(axis=1) + away_of(tried)
        at = int(np.argmin(excess))
        if excess[at] < least:
            centre, least = tried[at], excess[at]
        else:
            step *= 0.5
        tried = centre + step * STEPS
    return centre


def _outermost(points: Array, starts: Indices) -> tuple[Array, Indices]:
    """Return at most 14 points of each piece, the farthest in as many directions."""
    counts = np.diff(np.append(starts, len(points)))
    owners = np.repeat(np.arange(len(starts)), counts)
    ends = np.append(starts[1:], len(points)) - 1
    axes = np.vstack([np.eye(3), [(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)]])
    is_kept = np.zeros(len(points), np.bool_)
    for axis in axes:
        # Sorted by piece, then along the axis: the first and the last of each piece are
        # its extremes.
        order = np.lexsort((points @ axis, owners))
        is_kept[order[starts]] = is_kept[order[ends]] = True
    owners = owners[is_kept]
    return points[is_kept], np.flatnonzero(np.diff(owners, prepend=-1))


def _extreme(points: Array) -> Array:
    """Return the corners of the convex hull of points, or all if they are flat."""
    try:
        return points[np.unique(convex_hull(points))]
    except ModelError:
        return points
