"""The tables of collision checks: spheres, pairs of links, and pairs of shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.columns import Room
from armillary.collision.distance.sizes import numbers_of
from armillary.collision.shape_pairs import (
    ROUNDING,
    LinkShape,
    Placed,
    ShapePairs,
)
from armillary.kinematics.moving_links import FixedLinks, MovingLinks
from armillary.model.cloud import Cloud
from armillary.model.fields import kept, kept_few
from armillary.model.geometry.bounding import sphere_around
from armillary.model.link_pairs import Pairs
from armillary.model.shapes import Sphere
from armillary.model.tree import Tree

__all__ = ["CheckTables", "pairs_of_shapes", "spans_of", "spheres_around"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST_SPHERES: Final = 256
"""Room for so many spheres at least; more of them compile other code."""

SPHERE_NUMBERS: Final = 4
"""Numbers of the sphere around a shape: its centre and radius [m]."""

MOST_BASES: Final = 256
"""Bases of which the pairs of shapes on them are kept."""

AXES: Final = np.concatenate([np.eye(3), -np.eye(3)])


class RecordsBehind(NamedTuple):
    """Where records begin that are of interest; by default all are.

    Attributes:
        links: The first link.
        shapes: The first shape.
        pairs: The first of the pairs of links that move, `links` of tables.
        spheres: The first of their pairs of spheres, `of_spheres`.
        others: The first of their other pairs of shapes, `of_shapes`.
    """

    links: int = 0
    shapes: int = 0
    pairs: int = 0
    spheres: int = 0
    others: int = 0


WHOLE: Final = RecordsBehind()


class BlocksOnBases(NamedTuple):
    """What of `Placed.whole` is on some movable bases: blocks of links, then of shapes.

    Attributes:
        which: Their positions, sorted, shape (k,).
        bases: The base of each of them, shape (k,), or that of all.
        blocks: Where they are on these bases, shape (k, 4, 9).
        rows: The rows of the moving links that they move with, shape (k,).
        stand: Whether all of these rows are that of the world.
        links: How many of the blocks are of links.
        shapes: The numbers of the shapes, shape (k - links,).
    """

    which: Indices
    bases: int | Indices
    blocks: Array
    rows: Indices
    stand: bool
    links: int
    shapes: Indices


@final
class CheckTables(msgspec.Struct, frozen=True, eq=False, dict=True):
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
        extends: Tables that these begin with, if more links follow: their pairs come
            first, in the same order, and so do their shapes. Spheres around their links
            come first, then those of other links, then those around their shapes.
        layout: Tables of the same pairs of shapes of the same kinds, but of other sizes
            and at other places, if there are such.
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
    extends: CheckTables | None = None
    layout: CheckTables | None = None

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
        table, starts = pairs_of_shapes(links, first)
        pairs = ShapePairs.of(shapes, table)
        around, around_radii = spheres_around(pairs.centres, pairs.radii, first)
        # Shapes that move with the same link stay as they are: such pairs are computed
        # once. Of the others, two spheres need no more than their bounding spheres.
        rows = fixed.rows[owner]
        moves = rows[table[:, 0]] != rows[table[:, 1]]
        are_spheres = _are_spheres(shapes)[table].all(axis=1)
        chosen = moves & are_spheres, moves & ~are_spheres
        # Each pair of links has a range of either list; those with two empty ranges are
        # left out.
        spanned = spans_of(starts, *chosen)
        used = spanned[:, 1] + spanned[:, 3] > 0
        return cls(
            tested,
            fixed,
            pairs,
            starts,
            first,
            np.concatenate([around, pairs.centres]),
            np.concatenate([around_radii, pairs.radii]),
            links[:, 0] * len(names) + links[:, 1],
            links[used],
            spanned[used],
            np.flatnonzero(chosen[0]),
            np.flatnonzero(chosen[1]),
            np.flatnonzero(~moves),
        )

    @property
    def moving(self) -> Indices:
        """Return which of the pairs of links move, in the order of `links`."""
        codes = self.links @ np.array([len(self.first) - 1, 1])
        order = np.argsort(self.codes)
        return order[np.searchsorted(self.codes, codes, sorter=order)]

    def placed(self, moving: MovingLinks, tree: Tree) -> Placed:
        """Return where the shapes are while bases are placed as in a tree."""
        whole, every = self._blocks.copy(), self._blocks_where(self._block_bases >= 0)
        whole[every.which] = moving.base_frames(tree)[every.bases] @ every.blocks
        return Placed(self.shape_rows, whole)

    def replaced(self, placed: Placed, bases: Array, moved: BlocksOnBases) -> Placed:
        """Return where shapes are after some bases moved.

        Args:
            placed: Where they were.
            bases: The poses of all bases in their moving links, shape (m, 4, 4).
            moved: What is on the bases that moved.
        """
        if not len(moved.which):
            return placed
        return placed.moved(moved.which, bases[moved.bases] @ moved.blocks)

    @cached_property
    def _blocks(self) -> Array:
        """Return frames, matrices and centres of links, then of shapes, in their bases.

        It is `Placed.whole` where all bases are at the origins of moving links.
        """
        count, owners = len(self.first) - 1, self._owners
        blocks = np.zeros((len(self.centres), 4, 9))
        blocks[:, 3, 8] = 1.0
        blocks[:count, :, :4] = self.fixed.matrices
        blocks[count:, :, :4] = frames = self.fixed.matrices[owners]
        blocks[count:, :, 4:8] = frames @ self.pairs.matrices
        frames = blocks[:, :3, :4]
        turned = np.einsum("nij,nj->ni", frames[..., :3], self.centres)
        blocks[:, :3, 8] = turned + frames[..., 3]
        return blocks

    @cached_property
    def _block_bases(self) -> Indices:
        """Return the movable base that each block is on, or -1."""
        return np.concatenate([self.fixed.bases, self.fixed.bases[self._owners]])

    def blocks_on(self, bases: Sequence[int]) -> BlocksOnBases:
        """Return what is on some movable bases; of one base, and the last ones, kept.

        bases: The numbers of these.
        """
        if len(bases) == 1:  # as often, one base moves
            (k,) = bases
            name = "blocks on", k

            def made() -> BlocksOnBases:
                return self._blocks_where(self._block_bases == k)._replace(bases=k)

            return kept(self, name, made)
        which = tuple(bases)
        return kept_few(self, "blocks on", which, lambda: self._blocks_on(which))

    def _blocks_on(self, bases: Sequence[int]) -> BlocksOnBases:
        are_moved = np.zeros(self._block_bases.max(initial=-1) + 2, np.bool_)
        are_moved[[k for k in bases if k < len(are_moved) - 1]] = True
        # The last entry is that of blocks without a movable base, whose number is -1.
        return self._blocks_where(are_moved[self._block_bases])

    def _blocks_where(self, are_moved: npt.NDArray[np.bool_]) -> BlocksOnBases:
        which = are_moved.nonzero()[0]
        rows, count = self.sphere_rows.take(which), len(self.fixed.rows)
        links = int(which.searchsorted(count))
        return BlocksOnBases(
            which,
            self._block_bases.take(which),
            self._blocks.take(which, axis=0),
            rows,
            not rows.any(),
            links,
            which[links:] - count,
        )

    @cached_property
    def _owners(self) -> Indices:
        """Return the link of each shape, as positions in `fixed`."""
        return np.repeat(np.arange(len(self.fixed.rows)), np.diff(self.first))

    @cached_property
    def shape_rows(self) -> Indices:
        """Return the rows of the moving links that shapes move with, shape (n,)."""
        return self.fixed.rows[self._owners]

    @cached_property
    def sphere_rows(self) -> Indices:
        """Return the rows of links that spheres move with, shape (l + n,)."""
        return np.concatenate([self.fixed.rows, self.shape_rows])

    def spheres(self, placed: Placed) -> tuple[Indices, Array]:
        """Return the rows of links that spheres move with, and their centres there."""
        return self.sphere_rows, placed.spheres

    def gaps_together(self, placed: Placed) -> Array:
        """Return what the distances of shapes that move together are not below [m].

        It is by the spheres around them, where no joint moves them; shape (k,).
        """
        return self._gaps(self._shapes_together, placed.centres)

    def gaps_on(self, bases: Sequence[int], centres: Array) -> Array:
        """Return the same of the shapes that are on some movable bases.

        Args:
            bases: The numbers of these.
            centres: Centres of the spheres around all shapes, shape (n, 3).
        """

        def made() -> Indices:
            on = self.blocks_on(bases).shapes
            both = self._shapes_together
            return both[:, np.isin(both, on).any(axis=0)]

        both = kept_few(self, "together on", tuple(bases), made, most=MOST_BASES)
        return self._gaps(both, centres)

    def _gaps(self, both: Indices, centres: Array) -> Array:
        """Return what distances are not below, of pairs of shapes, shape (2, k)."""
        a, b = both
        p, q, radii = centres[a], centres[b], self.pairs.radii
        sums = radii[a] + radii[b]
        apart = p - q
        gaps: Array = np.sqrt(np.einsum("ij,ij->i", apart, apart)) - sums
        # A bound must not exceed the distance: it is lowered by its rounding.
        size = np.abs(p).sum(axis=1) + np.abs(q).sum(axis=1) + sums
        return gaps - ROUNDING * size

    @cached_property
    def _shapes_together(self) -> Indices:
        """Return both shapes of pairs that move together, shape (2, k)."""
        return np.ascontiguousarray(self.pairs.pairs[self.together].T)

    @property
    def split(self) -> tuple[Indices, Indices, Indices]:
        """Return pairs of spherical shapes, other pairs, and where those of links are.

        Returns:
            Positions in `pairs`, sorted, whether they move or not; and for each pair of
            links the first of its pairs of spheres, and how many; then those of shapes,
            shape (k, 4).
        """
        one, other = self.pairs.pairs.T
        are_spheres = self.are_spheres[one] & self.are_spheres[other]
        chosen = are_spheres, ~are_spheres
        of_spheres, of_shapes = map(np.flatnonzero, chosen)
        return of_spheres, of_shapes, spans_of(self.starts, *chosen)

    def of_sizes(
        self, tested: Pairs, pairs: ShapePairs, centres: Array, radii: Array
    ) -> Self:
        """Return tables of the same pairs of shapes of other sizes, elsewhere.

        Args:
            tested: The same pairs of links, by other names.
            pairs: The pairs of shapes.
            centres: Centres of spheres in the frames of their links, shape (s, 3).
            radii: Their radii [m], shape (s,).
        """
        # What numbers of links and shapes decide is the same.
        made = msgspec.structs.replace(
            self, tested=tested, pairs=pairs, centres=centres, radii=radii, layout=self
        )
        vars(made).update((name, getattr(self, name)) for name in _BY_NUMBERS)
        return made

    @cached_property
    def latest(self) -> dict[float, Any]:
        """Return the `LatestState` of checks by their margins."""
        return {}

    @cached_property
    def part(self) -> RecordsBehind:
        """Return where what is behind the tables that these extend begins."""
        base = self.extends
        if base is None:
            return WHOLE
        return RecordsBehind(
            len(base.fixed.rows),
            len(base.pairs.shapes),
            len(base.links),
            len(base.of_spheres),
            len(base.of_shapes),
        )

    @cached_property
    def largest(self) -> float:
        """Return the greatest sum of radii of two spheres that are compared [m]."""
        least = 0.0 if self.extends is None else self.extends.largest
        return float(self.radii[self.both_spheres].sum(axis=1).max(initial=least))

    # Of the pairs behind those of the tables that these extend, or of all:

    @cached_property
    def both_spheres(self) -> Indices:
        """Return the numbers of both spheres of `of_spheres`, shape (p, 2)."""
        return self.sphere_numbers(self.of_spheres[self.part.spheres :])

    @cached_property
    def both_shapes(self) -> Indices:
        """Return the numbers of the spheres around both shapes of `of_shapes`."""
        return self.sphere_numbers(self.of_shapes[self.part.others :])

    @cached_property
    def rows_of_shapes(self) -> Indices:
        """Return the `ordered_rows` of `of_shapes`."""
        return self.ordered_rows(self.of_shapes[self.part.others :])

    @cached_property
    def shapes_in_order(self) -> Indices:
        """Return the `ordered_shapes` of `of_shapes`."""
        return self.ordered_shapes[self.of_shapes[self.part.others :]]

    @cached_property
    def shapes_of_spheres(self) -> Indices:
        """Return both shapes of `of_spheres`, shape (p, 2)."""
        return self.pairs.pairs[self.of_spheres[self.part.spheres :]]

    @cached_property
    def shapes_of_others(self) -> Indices:
        """Return both shapes of `of_shapes`, shape (p, 2)."""
        return self.pairs.pairs[self.of_shapes[self.part.others :]]

    @cached_property
    def are_spheres(self) -> npt.NDArray[np.bool_]:
        """Return which shapes are spheres, shape (n,)."""
        return _are_spheres(self.pairs.shapes)

    @cached_property
    def room(self) -> Room:
        """Return what code is made for: somewhat more than there is."""
        numbers = self.most_numbers + (SPHERE_NUMBERS if self.has_clouds else 0)
        spheres = _room(FEWEST_SPHERES, len(self.centres))
        return Room(spheres, _room(4, numbers), self.has_clouds)

    @cached_property
    def are_formulas(self) -> bool:
        """Return whether the distances of all pairs are formulas, not searched for."""
        known = self.extends
        own = self.pairs.kinds[len(known.pairs.kinds) if known else 0 :]
        return (known is None or known.are_formulas) and all(
            kind.is_closed_form for kind in own
        )

    @cached_property
    def has_single_shapes(self) -> bool:
        """Return whether the links behind have one shape each."""
        return bool((np.diff(self.first[self.part.links :]) == 1).all())

    @cached_property
    def most_numbers(self) -> int:
        """Return the greatest count of numbers of a shape."""
        known = 0 if self.extends is None else self.extends.most_numbers
        shapes = self.pairs.shapes[self.part.shapes :]
        return max([known, *(len(each.numbers) for each in shapes)])

    @cached_property
    def has_clouds(self) -> bool:
        """Return whether there are clouds among the shapes."""
        if self.extends is not None and self.extends.has_clouds:
            return True
        shapes = self.pairs.shapes[self.part.shapes :]
        return any(isinstance(each.shape, Cloud) for each in shapes)

    def padded(self, room: Room) -> Array:
        """Return the numbers of shapes, then 0: as many as there is room for, (n, m).

        Among clouds the numbers of each are followed by those of a sphere around it.
        """
        key = "numbers", room.numbers, room.has_clouds
        return kept(self, key, lambda: self._padded(room))

    def _padded(self, room: Room) -> Array:
        shapes, known = self.pairs.shapes, self.part.shapes
        own = [numbers_of(each.shape) for each in shapes[known:]]
        if room.has_clouds:
            around = (each.around for each in shapes[known:])
            own = [[*a, *b] for a, b in zip(own, around, strict=True)]
        numbers = np.zeros((len(shapes), room.numbers))
        if self.extends is not None:
            numbers[:known] = self.extends.padded(room)
        widths = {*map(len, own)}
        if len(widths) == 1:
            numbers[known:, : min(widths)] = own
        else:
            for row, values in zip(numbers[known:], own, strict=True):
                row[: len(values)] = values
        return numbers

    def ordered_rows(self, which: Indices) -> Indices:
        """Return the moving links of the two shapes of some pairs, shape (p, 2).

        They are in the order in which the code of a pair takes their poses.

        which: Positions in `pairs`, shape (p,).
        """
        return self.shape_rows[self.ordered_shapes[which]]

    @cached_property
    def ordered_shapes(self) -> Indices:
        """Return both shapes of all pairs, in the order of their code, shape (k, 2)."""
        shapes = np.zeros((len(self.pairs.pairs), 2), np.int64)
        kinds = self.pairs.kinds
        if self.extends is not None:
            known = self.extends.ordered_shapes
            shapes[: len(known)] = known
            kinds = kinds[len(self.extends.pairs.kinds) :]
        for kind in kinds:
            shapes[kind.pairs] = kind.sides.T
        return shapes

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
    def ball_numbers(self) -> Indices:
        """Return the numbers of the spheres around shapes, shape (n,).

        Those around links come first. Where a link has one shape, that is its sphere,
        too.
        """
        count, shapes, owners = len(self.first) - 1, np.diff(self.first), self._owners
        own = count + np.arange(len(owners))
        return np.where(shapes[owners] == 1, owners, own)

    def sphere_numbers(self, pairs: Indices) -> Indices:
        """Return the numbers of the spheres around the shapes of pairs, shape (p, 2).

        pairs: Positions in `pairs`, shape (p,).
        """
        return self.pairs.pairs[pairs] + (len(self.centres) - len(self.pairs.centres))

    def reaches(self, centres: Array, links: Any) -> Array:
        """Return about how far from the world's origin links are [m], shape (k,).

        Args:
            centres: Those of the spheres around them in the world, shape (k, 3).
            links: Their numbers.

        Returns:
            The greatest coordinates; 0 where shapes have no end, or a pose is NaN.
        """
        # The spheres around links are around those of their shapes.
        farthest = np.maximum.reduce(np.abs(centres), axis=1, initial=0.0)
        reach: Array = farthest + self.radii[links]
        is_usual = np.add.reduce(reach) < np.inf
        return reach if is_usual else np.where(np.isfinite(reach), reach, 0.0)

    def shapes_of(self, links: Indices) -> tuple[Indices, Indices]:
        """Return the pairs of shapes of pairs of links, and where those of each begin.

        links: Positions in `tested`, shape (p,).
        """
        ends = np.append(self.starts[1:], len(self.pairs.pairs))
        counts = ends[links] - self.starts[links]
        starts = np.cumsum(counts) - counts
        first = np.repeat(self.starts[links] - starts, counts)
        return first + np.arange(len(first)), starts


_BY_NUMBERS: Final = (
    "_owners",
    "shape_rows",
    "sphere_rows",
    "are_formulas",
    "are_spheres",
    "ball_numbers",
    "both_shapes",
    "both_spheres",
    "has_clouds",
    "has_single_shapes",
    "most_numbers",
    "ordered_shapes",
    "part",
    "room",
    "rows_of_shapes",
    "shapes_in_order",
    "shapes_of_others",
    "shapes_of_spheres",
)


def _room(least: int, count: int) -> int:
    """Return a number that is not below a count, so that few are ever compiled for."""
    # Powers of 4 times the least.
    room = least
    while room < count:
        room *= 4
    return room


def spans_of(starts: Indices, *chosen: npt.NDArray[np.bool_]) -> Indices:
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


def pairs_of_shapes(links: Indices, first: Indices) -> tuple[Indices, Indices]:
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


def _are_spheres(shapes: Sequence[LinkShape]) -> npt.NDArray[np.bool_]:
    """Return which shapes are spheres, shape (n,)."""
    return np.array([type(each.shape) is Sphere for each in shapes], np.bool_)


def spheres_around(centres: Array, radii: Array, first: Indices) -> tuple[Array, Array]:
    """Return one sphere around the spheres of the shapes of each link.

    Args:
        centres: Those of spheres around shapes, shape (n, 3).
        radii: Their radii [m], shape (n,).
        first: The first shape of each link, and where the last one ends, (l + 1,).

    Returns:
        Centres, shape (l, 3), and radii [m], shape (l,).
    """
    start, end = int(first[0]), int(first[-1])
    if end - start == len(first) - 1 and (np.diff(first) == 1).all():
        return centres[start:end], radii[start:end]
    spheres = [
        _sphere_around(centres[a:b], radii[a:b])
        for a, b in itertools.pairwise(first.tolist())
    ]
    around = np.array([centre for centre, _ in spheres]).reshape(-1, 3)
    return around, np.array([radius for _, radius in spheres], np.float64)


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
