"""The tables of collision checks: spheres, pairs of links, and pairs of shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.shape_pairs import LinkShape, Placed, ShapePairs
from armillary.kinematics.moving_links import FixedLinks, MovingLinks
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.cloud import Cloud
from armillary.model.geometry.bounding import sphere_around
from armillary.model.link_pairs import Pairs
from armillary.model.shapes import Sphere
from armillary.model.tree import Tree

__all__ = ["CheckTables"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST_SPHERES: Final = 256
"""Room for so many spheres at least; more of them compile other code."""

AXES: Final = np.concatenate([np.eye(3), -np.eye(3)])


@final
@dataclass(frozen=True, eq=False)
class CheckTables:
    """The pairs of a check as arrays, the same for states that attach the same.

    Spheres are numbered: one around each link that is tested, then one for each shape.

    Attributes:
        tested: The pairs of links.
        fixed: What the links with shapes are fixed to, in the order of their shapes.
        pairs: All pairs of shapes, those of a pair of links together.
        starts: The first pair of shapes of each pair of links, shape (k,).
        first: The first shape of each link, shape (l,); their number comes last.
        centres: Centres of spheres in the frames of their links, shape (s, 3).
        radii: Their radii [m], shape (s,).
        codes: i l + j for the spheres of both links of each pair, shape (k,), sorted.
        links: Those of each pair that moves, shape (m, 2).
        spans: The first of its pairs of spheres, and how many; then those of shapes,
            shape (m, 4).
        of_spheres: The pairs of shapes that move and are both spheres, sorted alike.
        of_shapes: The other pairs of shapes that move.
        together: The pairs of shapes that move together.
    """

    tested: Pairs
    fixed: FixedLinks
    pairs: ShapePairs
    starts: Indices
    first: Indices
    centres: Array
    radii: Array
    codes: Indices
    links: Indices
    spans: Indices
    of_spheres: Indices
    of_shapes: Indices
    together: Indices

    @classmethod
    def of(cls, tested: Pairs, shapes: Sequence[LinkShape], fixed: FixedLinks) -> Self:
        """Sort pairs.

        Args:
            tested: The pairs of links.
            shapes: The shapes of those links, sorted as `tested.links` is.
            fixed: What the links with shapes are fixed to, sorted alike.

        Raises:
            ModelError: Both shapes of a pair are half spaces.
        """
        # The links of pairs are numbered; shapes come link by link, so that those of
        # link k are first[k] to first[k + 1].
        names = list(dict.fromkeys(each.link for each in shapes))
        number = {name: k for k, name in enumerate(names)}
        owner = np.array([number[each.link] for each in shapes], np.int64)
        first = np.searchsorted(owner, np.arange(len(names) + 1))
        links = np.array([number.get(name, 0) for name in tested.links], np.int64)
        links = links[tested.indices]
        table, starts = _products(links, first)
        pairs = ShapePairs.of(shapes, table)
        # One sphere around the spheres of the shapes of each link.
        spheres = [
            _sphere_around(pairs.centres[a:b], pairs.radii[a:b])
            for a, b in itertools.pairwise(first.tolist())
        ]
        # Shapes that move with the same link stay as they are: such pairs are computed
        # once. Of the others, two spheres need no more than their bounding spheres.
        rows = fixed.rows[owner]
        moves = rows[table[:, 0]] != rows[table[:, 1]]
        is_sphere = np.array([type(s.shape) is Sphere for s in shapes], np.bool_)
        are_spheres = is_sphere[table].all(axis=1)
        chosen = moves & are_spheres, moves & ~are_spheres
        # Each pair of links has a range of either list; those with two empty ranges are
        # left out.
        spanned = _spans(starts, *chosen)
        used = spanned[:, 1] + spanned[:, 3] > 0
        around = np.array([centre for centre, _ in spheres]).reshape(-1, 3)
        return cls(
            tested,
            fixed,
            pairs,
            starts,
            first,
            np.concatenate([around, pairs.centres]),
            np.concatenate([[radius for _, radius in spheres], pairs.radii]),
            links[:, 0] * len(names) + links[:, 1],
            links[used],
            spanned[used],
            *map(np.flatnonzero, (*chosen, ~moves)),
        )

    def placed(self, moving: MovingLinks, tree: Tree) -> Placed:
        """Return where the shapes are while bases are placed as in a tree."""
        # One frame for each link, repeated for each of its shapes.
        frames = moving.frames(tree, self.fixed)
        return self.pairs.placed(self._shape_rows, frames[self._owners])

    @cached_property
    def _owners(self) -> Indices:
        """Return the link of each shape, as positions in `fixed`."""
        return np.repeat(np.arange(len(self.fixed.rows)), np.diff(self.first))

    @cached_property
    def _shape_rows(self) -> Indices:
        return self.fixed.rows[self._owners]

    @cached_property
    def _sphere_rows(self) -> Indices:
        return np.concatenate([self.fixed.rows, self._shape_rows])

    def spheres(self, placed: Placed) -> tuple[Indices, Array]:
        """Return the rows of links that spheres move with, and their centres there."""
        # The frame of a link is that of its first shape.
        first = self.first[:-1]
        frames, count = placed.frames[first], len(first)
        turned = np.einsum("nij,nj->ni", frames[:, :3, :3], self.centres[:count])
        centres = np.concatenate([turned + frames[:, :3, 3], placed.centres])
        return self._sphere_rows, centres

    @property
    def split(self) -> tuple[Indices, Indices, Indices]:
        """Return pairs of spherical shapes, other pairs, and where those of links are.

        Returns:
            Positions in `pairs`, sorted, whether they move or not; and for each pair of
            links the first of its pairs of spheres, and how many; then those of shapes,
            shape (k, 4).
        """
        is_sphere = np.array(
            [type(each.shape) is Sphere for each in self.pairs.shapes], np.bool_
        )
        one, other = self.pairs.pairs.T
        are_spheres = is_sphere[one] & is_sphere[other]
        chosen = are_spheres, ~are_spheres
        of_spheres, of_shapes = map(np.flatnonzero, chosen)
        return of_spheres, of_shapes, _spans(self.starts, *chosen)

    @property
    def has_clouds(self) -> bool:
        """Return whether there are clouds among the shapes."""
        return any(isinstance(each.shape, Cloud) for each in self.pairs.shapes)

    @property
    def room(self) -> int:
        """Return for how many spheres code is made: some more than there are."""
        # Powers of 4 times the least, so that few sizes are ever compiled.
        room = FEWEST_SPHERES
        while room < len(self.centres):
            room *= 4
        return room

    def with_shapes(self, shapes: Indices) -> Indices:
        """Return the pairs of `of_shapes` that some shapes are in.

        shapes: Positions in `pairs.shapes`, shape (k,).

        Returns:
            Positions in `of_shapes`, sorted, shape (p,).
        """
        is_wanted = np.zeros(len(self.pairs.shapes), np.bool_)
        is_wanted[shapes] = True
        a, b = self._sides_of_shapes
        return np.flatnonzero(is_wanted[a] | is_wanted[b])

    def spheres_of(self, shapes: Indices) -> Indices:
        """Return the numbers of the spheres around shapes and around their links.

        shapes: Positions in `pairs.shapes`, sorted, shape (k,).
        """
        links = self._owners[shapes]
        is_next = np.append(True, links[1:] != links[:-1])[: len(links)]
        return np.concatenate([links[is_next], len(self.fixed.rows) + shapes])

    @cached_property
    def rows_of_shapes(self) -> Indices:
        """Return the moving links of the two shapes of the pairs of `of_shapes`.

        They are in the order in which the code of a pair takes their poses, shape
        (p, 2).
        """
        return self.ordered_rows[self.of_shapes]

    @cached_property
    def ordered_rows(self) -> Indices:
        """Return the same of all pairs of shapes, shape (k, 2)."""
        rows = np.zeros((len(self.pairs.pairs), 2), np.int64)
        for kind in self.pairs.kinds:
            rows[kind.pairs] = self._shape_rows[kind.sides].T
        return rows

    @cached_property
    def orders(self) -> Array:
        """Return -1 for pairs whose second shape their code takes first, else 1.

        Shape (k,).
        """
        orders = np.ones(len(self.pairs.pairs))
        for kind in self.pairs.kinds:
            is_turned = kind.sides[0] != self.pairs.pairs[kind.pairs, 0]
            orders[kind.pairs] -= 2.0 * is_turned
        return orders

    @cached_property
    def _sides_of_shapes(self) -> tuple[Indices, Indices]:
        a, b = np.ascontiguousarray(self.pairs.pairs[self.of_shapes].T)
        return a, b

    def sphere_numbers(self, pairs: Indices) -> Indices:
        """Return the numbers of the spheres around the shapes of pairs, shape (p, 2).

        pairs: Positions in `pairs`, shape (p,).
        """
        return self.pairs.pairs[pairs] + (len(self.centres) - len(self.pairs.centres))

    def extent(self, centres: Array, X: Array) -> float:
        """Return about how far from the world's origin shapes are [m].

        Args:
            centres: Those of spheres in the moving links, shape (s, 3).
            X: Poses of moving links, shape (f, 3, 4).
        """
        # The spheres around links are around those of their shapes.
        centres = self._centres_at(centres[: len(self.first) - 1], X)
        reach = np.abs(centres).max(axis=1) + self.radii[: len(centres)]
        return float(reach[np.isfinite(reach)].max(initial=0.0))

    def _centres_at(self, centres: Array, X: Array) -> Array:
        """Return the centres of the first spheres in the world: (s, 3) -> (s, 3)."""
        rows = self._sphere_rows[: len(centres)]
        turned = np.einsum("kij,kj->ki", X[rows, :, :3], centres)
        return np.asarray(turned + X[rows, :, 3])

    def levers(self, speeds: SpeedBounds, placed: Placed) -> tuple[Array, Array]:
        """Return how fast links move, and how fast those of pairs approach each other.

        Returns:
            For unit rates of coordinates [m per unit]: of links in the world, shape
            (l, c), and of the pairs that move, shape (m, c).
        """
        rows, centres = self.spheres(placed)
        # The lever of a link reaches from its moving link's origin to all its shapes.
        count = len(self.first) - 1
        levers = np.zeros(count)
        reach = np.linalg.norm(centres[count:], axis=1) + self.radii[count:]
        owner = np.repeat(np.arange(count), np.diff(self.first))
        np.maximum.at(levers, owner, reach)
        in_world = np.stack([rows[:count], np.zeros(count, np.int64)], axis=1)
        alone = np.stack([levers, np.zeros(count)], axis=1)
        return (
            speeds.levers(in_world, alone),
            speeds.levers(rows[self.links], levers[self.links]),
        )

    def shapes_of(self, links: Indices) -> tuple[Indices, Indices]:
        """Return the pairs of shapes of pairs of links, and where those of each begin.

        links: Positions in `tested`, shape (p,).
        """
        ends = np.append(self.starts[1:], len(self.pairs.pairs))
        counts = ends[links] - self.starts[links]
        starts = np.cumsum(counts) - counts
        first = np.repeat(self.starts[links] - starts, counts)
        return first + np.arange(len(first)), starts


def _spans(starts: Indices, *chosen: npt.NDArray[np.bool_]) -> Indices:
    """Return the ranges of the pairs of shapes of pairs of links in lists of them.

    Args:
        starts: The first pair of shapes of each pair of links, shape (k,).
        chosen: For each list, which of all pairs of shapes are in it.

    Returns:
        The first and the count in each list, shape (k, 2 lists).
    """
    found: list[Indices] = []
    for which in chosen:
        before = np.append(0, np.cumsum(which))
        first = before[starts]
        found += [first, np.append(first[1:], before[-1]) - first]
    return np.stack(found, axis=1).astype(np.int64)


def _products(links: Indices, first: Indices) -> tuple[Indices, Indices]:
    """Return all pairs of shapes of pairs of links, and the first pair of each.

    Args:
        links: The links of each pair, shape (k, 2).
        first: The first shape of each link, and how many there are, shape (l + 1,).

    Returns:
        Pairs of shapes, shape (p, 2), and positions, shape (k,).
    """
    # Pair p of a pair of links, whose second link has s shapes, is that of shape p // s
    # of the first and p % s of the second.
    counts = np.diff(first)[links]
    sizes = counts.prod(axis=1)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    second = np.repeat(counts[:, 1], sizes)
    one, other = np.repeat(first[links], sizes, axis=0).T
    return np.stack([one + within // second, other + within % second], axis=1), starts


def _sphere_around(centres: Array, radii: Array) -> tuple[Array, float]:
    """Return centre and radius of a sphere around spheres."""
    if len(radii) == 1:
        return centres[0], float(radii[0])
    if not np.isfinite(radii).all():
        return centres[0], math.inf
    # The centre of a sphere around the ends of all axes; the radius then reaches around
    # all spheres.
    points = centres[:, None] + radii[:, None, None] * AXES
    centre = np.array(sphere_around(points.reshape(-1, 3)).centre)
    farthest = np.linalg.norm(centres - centre, axis=1) + radii
    return centre, float(farthest.max())
