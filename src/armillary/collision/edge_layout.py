"""Which records the pipelines of edges have: what numbers of links and shapes decide.

It is the same wherever shapes stand, and whatever their sizes, so that tables keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.volumes import rounded_box
from armillary.kernel.stages import BOXES
from armillary.model.fields import kept
from armillary.model.shapes import Sphere

__all__ = ["EdgeLayout", "MovingLayout", "StillRecords"]

Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

FEW: Final = 8
"""So many obstacles of a link are compared one by one."""


@final
@dataclass(frozen=True, eq=False)
class MovingLayout:
    """Links that move, and pairs of those: the same whatever stands around them.

    Attributes:
        tables: The pairs of a check.
    """

    tables: CheckTables

    @classmethod
    def of(cls, tables: CheckTables) -> Self:
        """Return that of tables, which these keep."""
        return kept(tables, "moving layout", lambda: cls(tables))

    @cached_property
    def rows(self) -> Indices:
        """Return the rows of the moving links that shapes move with, shape (n,)."""
        return self.tables.shape_rows

    @property
    def moving_rows(self) -> Indices:
        """Return the row of the moving link of each link, shape (l,)."""
        return self.tables.fixed.rows

    @cached_property
    def owner(self) -> Indices:
        """Return the link of each shape, shape (n,)."""
        first = self.tables.first
        return np.repeat(np.arange(len(first) - 1), np.diff(first))

    @cached_property
    def links(self) -> Indices:
        """Return the links that move, those that most joints move first, shape (m,)."""
        rows = self.tables.fixed.rows
        moving = np.flatnonzero(rows > 0)
        return moving[np.argsort(-rows[moving], kind="stable")]

    @cached_property
    def places(self) -> Indices:
        """Return where links are among those; their number for others, shape (l,)."""
        places = np.full(len(self.tables.fixed.rows), len(self.links))
        places[self.links] = np.arange(len(self.links))
        return places

    @cached_property
    def balls(self) -> Indices:
        """Return the spherical shapes that move, those of a link together."""
        return np.flatnonzero(self.tables.are_spheres & (self.rows > 0))

    @cached_property
    def ball_spans(self) -> Indices:
        """Return which of those each link has, shape (l, 2)."""
        of_balls = self.owner[self.balls]
        numbers = np.arange(len(self.tables.fixed.rows))
        first = np.searchsorted(of_balls, numbers)
        last = np.searchsorted(of_balls, numbers, side="right")
        return np.stack([first, last - first], axis=1)

    @cached_property
    def pairs(self) -> MovingPairs:
        """Return the pairs of links that both move."""
        which, sides = sides_of(self.tables)
        both = (self.rows[sides] > 0).all(axis=1)
        which, sides = which[both], sides[both]
        links = self.owner[sides]
        order = np.lexsort((links[:, 1], links[:, 0]))
        starts, group = _groups(links[order])
        a, b = links[order][starts].T
        # Those between links that most joints move come first.
        rows = self.tables.fixed.rows
        ranks = np.argsort(-(rows[a] + rows[b]), kind="stable")
        place = np.empty_like(ranks)
        place[ranks] = np.arange(len(ranks))
        # The code of others than two spheres is called.
        is_called = ~self.tables.are_spheres[sides[order]].all(axis=1)
        called, group = order[is_called], place[group[is_called]]
        counts = np.bincount(group, minlength=len(ranks))
        a, b = a[ranks], b[ranks]
        # Spheres of the first are compared with the sphere around the second.
        is_turned = self.ball_spans[a, 1] > self.ball_spans[b, 1]
        return MovingPairs(
            np.where(is_turned, b, a),
            np.where(is_turned, a, b),
            _spans(counts),
            which[called[np.argsort(group, kind="stable")]],
        )


class MovingPairs(NamedTuple):
    """Pairs of links that both move.

    Attributes:
        a: One link of each, shape (p,).
        b: The other.
        spans: Their pairs of shapes whose code is called, shape (p, 2).
        called: These, as positions among all pairs of shapes.
    """

    a: Indices
    b: Indices
    spans: Indices
    called: Indices


class StillRecords(NamedTuple):
    """The records of what stands still near a link, for each link apart.

    Attributes:
        shapes: The shapes that they are of, each once, shape (s,).
        at: The place of the shape of each record among those, shape (k,).
        links: The link that it is near, shape (k,).
        balls: The spheres of the link that it is compared with, shape (k, 2).
        called: Its pairs of shapes whose code is called, shape (k, 2).
        of_links: The records of each link that moves, shape (m, 2).
        blocks: Their blocks of `BOXES`, of links with more than `FEW`, shape (m, 2).
        in_blocks: The place in blocks of each record that has one, shape (j,).
        of_blocks: The place of its shape among `shapes`, shape (j,).
    """

    shapes: Indices
    at: Indices
    links: Indices
    balls: Indices
    called: Indices
    of_links: Indices
    blocks: Indices
    in_blocks: Indices
    of_blocks: Indices


@final
@dataclass(frozen=True, eq=False)
class EdgeLayout:
    """The records of a check, whatever the sizes and places of what stands still.

    Attributes:
        moving: Those of the links that move.
        spheres: What stands still and lies in a sphere.
        boxes: What lies in a box with rounded edges.
        called: The pairs of shapes whose code is called, as positions among all: those
            of links that both move, then others, in the order of their records.
        sides: Both shapes of those, what stands still second, shape (c, 2).
        still: The second ones of those others.
    """

    moving: MovingLayout
    spheres: StillRecords
    boxes: StillRecords
    called: Indices
    sides: Indices
    still: Indices

    @classmethod
    def of(cls, tables: CheckTables) -> Self:
        """Return that of tables, which is kept for all of their layout."""
        owner = tables.layout or tables
        return kept(owner, "edge layout", lambda: cls._made(owner))

    @classmethod
    def _made(cls, tables: CheckTables) -> Self:
        # Links that move, and their pairs, are those of the tables without obstacles,
        # which begin with the same numbers.
        moving = MovingLayout.of(tables.extends or tables)
        fixed, shapes = tables.fixed.rows, tables.pairs.shapes
        owner = np.repeat(np.arange(len(fixed)), np.diff(tables.first))
        which, sides = sides_of(tables)
        is_still = fixed[owner[sides[:, 1]]] == 0
        which, sides = which[is_still], sides[is_still]
        # Pairs of a link, those with the same shape that stands still together.
        place = moving.places[owner[sides[:, 0]]]
        order = np.lexsort((sides[:, 0], sides[:, 1], place))
        which, sides, place = which[order], sides[order], place[order]
        starts, group = _groups(np.stack([place, sides[:, 1]], axis=1))
        of_link, of_shape = place[starts], sides[starts, 1]
        # What each shape that stands still is described by.
        used = np.unique(of_shape)
        is_boxed, is_exact = np.zeros((2, len(shapes)), np.bool_)
        for k in map(int, used):
            shape = shapes[k].shape
            box = rounded_box(shape)
            is_boxed[k] = box is not None
            is_exact[k] = isinstance(shape, Sphere) if box is None else box.is_shape
        # Spheres of a link need no code where it is exact.
        own_ball = tables.are_spheres[sides[:, 0]]
        is_called = ~(own_ball & is_exact[sides[:, 1]])
        known = len(moving.pairs.called)
        spans = _spans(np.bincount(group[is_called], minlength=len(starts)), known)
        links = moving.links[of_link]
        balls = np.where(
            is_exact[of_shape, np.newaxis], moving.ball_spans[links], np.int64(0)
        )

        def records(chosen: Truths) -> StillRecords:
            mine, at = np.unique(of_shape[chosen], return_inverse=True)
            counts = np.bincount(of_link[chosen], minlength=len(moving.links))
            some = links[chosen], balls[chosen], spans[chosen]
            of_links = _spans(counts)
            blocks = _spans(np.where(counts <= FEW, 0, -(-counts // BOXES)))
            place = np.arange(len(at)) - of_links[:, 0].repeat(counts)
            place += BOXES * blocks[:, 0].repeat(counts)
            has_block = (counts > FEW).repeat(counts)
            in_blocks = blocks, place[has_block], at[has_block]
            return StillRecords(mine, at, *some, of_links, *in_blocks)

        boxed, called = is_boxed[of_shape], which[is_called]
        both = moving.pairs.called
        return cls(
            moving,
            records(~boxed),
            records(boxed),
            np.concatenate([both, called]),
            np.concatenate([tables.pairs.pairs[both], sides[is_called]]),
            sides[is_called, 1],
        )


def sides_of(tables: CheckTables) -> tuple[Indices, Indices]:
    """Return the pairs of shapes that move, and their shapes, what stands still second.

    Returns:
        Positions among all pairs, sorted, shape (k,), and numbers of shapes, (k, 2).
    """
    which = np.sort(np.concatenate([tables.of_spheres, tables.of_shapes]))
    sides = tables.pairs.pairs[which]
    turned = tables.shape_rows[sides[:, 0]] == 0
    sides[turned] = sides[turned, ::-1]
    return which, sides


def _groups(keys: Indices) -> tuple[Indices, Indices]:
    """Return where groups of equal keys start, and the group of each: (n, 2) -> (n,).

    keys: Sorted, shape (n, 2).
    """
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _spans(counts: Indices, first: int = 0) -> Indices:
    """Return ranges that follow each other, shape (n, 2)."""
    return np.stack([first + np.cumsum(counts) - counts, counts], axis=1)
