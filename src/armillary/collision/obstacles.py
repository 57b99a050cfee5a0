"""Obstacles that stand in the world beside a cell, for one check of it.

What a check knows of the cell is taken over: its links, their shapes and pairs, and all
code. Obstacles are some more links of one table, so that a new set of them is made in
the time that their own pairs take; see `docs/design/cells.md`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, cast, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import (
    CheckTables,
    pairs_of_shapes,
    spans_of,
    spheres_around,
)
from armillary.collision.hulls import hull_of
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.shape_pairs import (
    LinkShape,
    ShapePairs,
    form_numbers,
    kinds_of,
)
from armillary.collision.tested_shapes import shapes_of_links, tables_of_shapes
from armillary.errors import ModelError, quote, unknown
from armillary.kinematics.moving_links import FixedLinks
from armillary.model.cloud import Cloud
from armillary.model.distinct_numbers import distinct_numbers
from armillary.model.fields import kept, kept_few
from armillary.model.link_pairs import Pairs
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import (
    SHAPES,
    ConvexPolyhedron,
    HalfSpace,
    Points,
    Sphere,
    Voxels,
)
from armillary.model.shapes.mesh import MeshSource
from armillary.spatial.pose import IDENTITY, matrices_of

__all__ = ["GivenObstacles", "StandingObstacles", "among"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

GivenObstacles = Mapping[str, Shape | Sequence[Shape]]
"""The shapes of obstacles in the world, one or several, by the name of each."""


BOUNDED: Final = frozenset(SHAPES) - {HalfSpace, Points, Voxels}
"""Kinds of shapes that know a sphere around them, without a look at many points."""


class StandingObstacles(NamedTuple):
    """Obstacles as a check holds them.

    Attributes:
        names: Their names.
        shapes: The shapes of each, in the world.
        allowed: Pairs of an obstacle and a link that may touch.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[Primitive | Cloud, ...], ...]
    allowed: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        given: GivenObstacles,
        allowed: Sequence[tuple[str, str]],
        meshes: MeshSource | None,
    ) -> Self:
        """Check obstacles.

        Args:
            given: Their shapes by their names.
            allowed: Pairs of an obstacle and a link that may touch.
            meshes: What reads meshes; hulls stand for them.

        Raises:
            ModelError: It is not a mapping from names to shapes, an obstacle has none,
                or a mesh cannot be read.
            UnknownName: `allowed` names an obstacle that is not there.
        """
        anything: Any = given
        if not isinstance(anything, Mapping):
            raise ModelError(
                "Obstacles are given by name, such as {'table': arm.shapes.Box(...)}, "
                f"not as {given!r}."
            )
        shapes = tuple(_solids(name, each, meshes) for name, each in given.items())
        pairs = _pairs(allowed)
        for obstacle, _ in pairs:
            if obstacle not in given:
                raise unknown("obstacle", obstacle, given)
        return cls(tuple(given), shapes, pairs)


def _pairs(allowed: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of names.

    Raises:
        ModelError: They are something else.
    """
    pairs = cast("Sequence[Any]", allowed)
    if not isinstance(allowed, Sequence) or not all(
        isinstance(pair, tuple | list) and len(cast("Sequence[Any]", pair)) == 2
        for pair in pairs
    ):
        raise ModelError(
            "allowed= takes pairs of an obstacle and a link, such as "
            f"[('table', 'arm/hand')], not {allowed!r}."
        )
    return tuple((obstacle, link) for obstacle, link in pairs)


def _solids(
    name: Any, given: Any, meshes: MeshSource | None
) -> tuple[Primitive | Cloud, ...]:
    """Return the shapes of an obstacle, hulls in place of meshes."""
    if type(name) is not str or not name:
        raise ModelError(f"The name of an obstacle must be a text, not {name!r}.")
    if isinstance(given, Primitive | Cloud):  # the usual case
        return (given,)
    shapes: tuple[Any, ...] = (given,)
    if isinstance(given, Sequence):
        shapes = tuple(cast("Sequence[Any]", given))
    if not shapes or not all(isinstance(each, Shape) for each in shapes):
        raise ModelError(
            f"The obstacle {quote(name)} needs a shape or a list of shapes, not "
            f"{given!r}."
        )
    return tuple(
        each if isinstance(each, Primitive | Cloud) else hull_of(each, name, meshes)
        for each in shapes
    )


@final
class Carriers(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The links of a cell that move, with all that obstacles need of them.

    Attributes:
        tables: The pairs of a check, with spheres for these links, too.
    """

    tables: CheckTables

    @classmethod
    def of(cls, pairs: PlacedPairs, meshes: MeshSource | None) -> Self:
        """Return the moving links of the pairs of a check, which these keep."""
        return kept(pairs.tables, "carriers", lambda: cls._made(pairs, meshes))

    @classmethod
    def _made(cls, pairs: PlacedPairs, meshes: MeshSource | None) -> Self:
        # Links that are in no pair of the check are tested against obstacles, too.
        tested, tree = pairs.tables.tested, pairs.state.tree
        cell, moving = tree.cell, pairs.moving
        every = [cell.frame(name).link for name in tested.links]
        moves = np.flatnonzero(moving.fixed_links(tree, every).rows > 0)
        used = distinct_numbers(tested.indices)
        wanted = np.union1d(used, moves)
        if len(wanted) == len(used):
            return cls(pairs.tables)
        positions: list[int] = wanted.tolist()
        shapes = shapes_of_links(cell, tested, meshes, positions=positions)
        tables = tables_of_shapes(tested, shapes, moving, tree, positions=positions)
        return cls(tables)

    def placed(self, pairs: PlacedPairs) -> PlacedPairs:
        """Return their pairs where those of a check are, which these keep."""
        if self.tables is pairs.tables:
            return pairs

        def made() -> PlacedPairs:
            placed = self.tables.placed(pairs.moving, pairs.state.tree)
            return PlacedPairs(self.tables, placed, pairs.moving, pairs.state)

        return kept(pairs, "carriers", made)

    @cached_property
    def links(self) -> Indices:
        """Return the numbers of the links that move, in the tables, shape (l,)."""
        return np.flatnonzero(self.tables.fixed.rows > 0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of all links of the tables."""
        shapes = self.tables.pairs.shapes
        first: list[int] = self.tables.first[:-1].tolist()
        return tuple(shapes[k].link for k in first)

    @cached_property
    def places(self) -> Indices:
        """Return where all links of the tables are in `tested.links`."""
        places = {name: k for k, name in enumerate(self.tables.tested.links)}
        return np.array([places[name] for name in self.names], np.int64)

    @cached_property
    def taken(self) -> frozenset[str]:
        """Return the names that obstacles cannot have."""
        return frozenset(self.tables.tested.links)

    @cached_property
    def forms(self) -> Indices:
        """Return the `form_numbers` of all shapes."""
        return form_numbers(self.tables.pairs.shapes)

    @cached_property
    def form_of(self) -> dict[Primitive | Cloud, int]:
        """Return the number of each form."""
        forms = (each.form for each in self.tables.pairs.shapes)
        return dict(zip(forms, self.forms.tolist(), strict=True))


def among(
    pairs: PlacedPairs, obstacles: StandingObstacles, meshes: MeshSource | None
) -> PlacedPairs:
    """Return the pairs of a check, and those of its moving links with obstacles.

    Args:
        pairs: The pairs of the check.
        obstacles: The obstacles.
        meshes: What reads meshes.

    Raises:
        ModelError: A mesh cannot be read, or both shapes of a pair are half spaces; or
            an obstacle has the name of a link.
        UnknownName: `allowed` names a link that does not exist.
    """
    carriers = Carriers.of(pairs, meshes)
    base = carriers.placed(pairs)
    names, solids, _ = obstacles
    taken = carriers.taken
    for name in names:
        if name in taken:
            raise ModelError(
                f"The obstacle {quote(name)} has the name of a link of the cell; give "
                "it another one."
            )
    shapes = [
        LinkShape(each, name, IDENTITY)
        for name, some in zip(names, solids, strict=True)
        for each in some
    ]
    allowed = _allowed(obstacles, carriers, pairs)
    tree = pairs.state.tree

    def qualified(name: str) -> str:
        return tree.name(tree.cell.frame(name).link)

    if any(isinstance(each.shape, ConvexPolyhedron | Cloud) for each in shapes):
        # Their corners, or elements, are part of the code of pairs.
        layout = _layout(carriers, obstacles, shapes, allowed)
    else:
        key = (
            tuple(map(_kind, shapes)),
            tuple(map(len, solids)),
            None if allowed is None else allowed.tobytes(),
        )
        layout = kept_few(
            carriers,
            "layouts",
            key,
            lambda: _layout(carriers, obstacles, shapes, allowed),
        )
    tested = layout.tested.with_obstacles(names, carriers.tables.tested, qualified)
    return base.extended(_of_sizes(layout, tested, shapes))


def _kind(of: LinkShape) -> Hashable:
    """Return what is equal for shapes of the same form."""
    kind = type(of.shape)
    return kind if kind in SHAPES else of.form


def _of_sizes(
    layout: CheckTables, tested: Pairs, shapes: list[LinkShape]
) -> CheckTables:
    """Return tables for obstacles of other sizes and names.

    Args:
        layout: The tables of obstacles with shapes of the same kinds.
        tested: The pairs of links.
        shapes: The shapes of the obstacles.
    """
    base = layout.extends
    assert base is not None
    count, total = len(base.fixed.rows), len(layout.fixed.rows)
    n = len(base.pairs.shapes)
    matrices = matrices_of([each.shape.pose for each in shapes])
    centres, radii = _spheres(shapes, matrices)
    before = layout.pairs
    pairs = before.of_sizes(
        (*before.shapes[:n], *shapes),
        np.concatenate([base.pairs.matrices, matrices]),
        np.concatenate([base.pairs.centres, centres]),
        np.concatenate([base.pairs.radii, radii]),
        len(base.pairs.kinds),
    )
    around = centres, radii
    if not layout.has_single_shapes:
        around = spheres_around(pairs.centres, pairs.radii, layout.first[count:])
    all_centres, all_radii = layout.centres.copy(), layout.radii.copy()
    for whole, links, own in (
        (all_centres, around[0], centres),
        (all_radii, around[1], radii),
    ):
        whole[count:total], whole[total + n :] = links, own
    return layout.of_sizes(tested, pairs, all_centres, all_radii)


def _spheres(shapes: list[LinkShape], matrices: Array) -> tuple[Array, Array]:
    """Return spheres around shapes in the world: centres, and radii [m]."""
    if not all(type(each.shape) in BOUNDED for each in shapes):
        spheres = [each.sphere for each in shapes]
        centres = np.array([sphere.centre for sphere in spheres], np.float64)
        return centres.reshape(-1, 3), np.array([each.radius for each in spheres])
    # As `LinkShape.sphere`, all together.
    bounding = [each.shape.bounding_sphere for each in shapes]
    centres = np.array([sphere.centre for sphere in bounding]).reshape(-1, 3)
    if centres.any():
        centres = np.einsum("nij,nj->ni", matrices[:, :3, :3], centres)
    return centres + matrices[:, :3, 3], np.array([each.radius for each in bounding])


def _allowed(
    obstacles: StandingObstacles, carriers: Carriers, pairs: PlacedPairs
) -> Truths | None:
    """Return which moving links may touch which obstacle, (obstacles, links)."""
    if not obstacles.allowed:
        return None
    cell = pairs.state.cell
    links: list[int] = carriers.links.tolist()
    number = {carriers.names[link]: k for k, link in enumerate(links)}
    place = {name: k for k, name in enumerate(obstacles.names)}
    allowed = np.zeros((len(place), len(links)), np.bool_)
    for obstacle, given in obstacles.allowed:
        cell.frame(given)  # there is one
        owner = pairs.state.tree.name(cell.frame(given).link)
        if owner in number:
            allowed[place[obstacle], number[owner]] = True
    return allowed


def _layout(
    carriers: Carriers,
    obstacles: StandingObstacles,
    shapes: list[LinkShape],
    allowed: Truths | None,
) -> CheckTables:
    """Return the tables of a check with those of obstacles behind them.

    All but their sizes, names and places holds for others of the same kinds, too.

    Args:
        carriers: What moves.
        obstacles: The obstacles.
        shapes: The shapes of all of them.
        allowed: Which of the moving links may touch each.
    """
    m = len(obstacles.names)
    counts, base = [*map(len, obstacles.shapes)], carriers.tables
    count, n = len(base.fixed.rows), len(base.pairs.shapes)
    # Obstacles are links behind all others, fixed to the world.
    first = np.concatenate([base.first, n + np.cumsum(counts, dtype=np.int64)])
    fixed = FixedLinks(
        np.concatenate([base.fixed.rows, np.zeros(m, np.int64)]),
        np.concatenate([base.fixed.bases, np.full(m, -1)]),
        np.concatenate([base.fixed.matrices, np.tile(np.eye(4), (m, 1, 1))]),
    )
    # Every obstacle with all links that move.
    links = np.empty((m, len(carriers.links), 2), np.int64)
    links[..., 0] = carriers.links
    links[..., 1] = count + np.arange(m)[:, None]
    links = links[~allowed] if allowed is not None else links.reshape(-1, 2)
    both, starts = pairs_of_shapes(links, first)
    known = len(base.pairs.pairs)
    pairs = _shape_pairs(carriers, shapes, both)
    # Spheres around obstacles with one shape are those of this.
    centres, radii = pairs.centres[n:], pairs.radii[n:]
    around = spheres_around(pairs.centres, pairs.radii, first[count:])
    are_spheres = _pairs_are_spheres(carriers, shapes, both)
    spans = spans_of(starts, are_spheres, ~are_spheres)
    spans[:, 0] += len(base.of_spheres)
    spans[:, 2] += len(base.of_shapes)
    of_spheres, of_shapes = map(np.flatnonzero, (are_spheres, ~are_spheres))
    # Both links of each as positions among all that have shapes, and obstacles.
    behind = len(base.tested.links)
    places = np.stack([carriers.places[links[:, 0]], links[:, 1] - count + behind], 1)
    total = count + m
    base_links = np.stack(np.divmod(base.codes, max(1, count)))
    codes = np.concatenate([base_links, links.T], axis=1)
    return CheckTables(
        carriers.tables.tested.extended(obstacles.names, places),
        fixed,
        pairs,
        np.concatenate([base.starts, known + starts]),
        first,
        np.concatenate(
            [base.centres[:count], around[0], base.centres[count:], centres]
        ),
        np.concatenate([base.radii[:count], around[1], base.radii[count:], radii]),
        codes[0] * total + codes[1],
        np.concatenate([base.links, links]),
        np.concatenate([base.spans, spans]),
        np.concatenate([base.of_spheres, known + of_spheres]),
        np.concatenate([base.of_shapes, known + of_shapes]),
        base.together,
        base,
    )


def _pairs_are_spheres(
    carriers: Carriers, shapes: list[LinkShape], both: Indices
) -> Truths:
    """Return which pairs of a link's and an obstacle's shape are both spheres."""
    known = carriers.tables.are_spheres
    own = np.array([type(each.shape) is Sphere for each in shapes], np.bool_)
    return known[both[:, 0]] & own[both[:, 1] - len(known)]


def _shape_pairs(
    carriers: Carriers, shapes: list[LinkShape], both: Indices
) -> ShapePairs:
    """Return the pairs of shapes of a check with those of obstacles behind them."""
    base = carriers.tables.pairs
    every = (*base.shapes, *shapes)
    numbers = dict(carriers.form_of)
    own = [numbers.setdefault(each.form, len(numbers)) for each in shapes]
    form = np.concatenate([carriers.forms, np.array(own, np.int64)])
    kinds = [*base.kinds]
    known = len(base.pairs)
    kind_of, index_of = np.zeros((2, len(both)), np.int64)
    for kind in kinds_of(every, both, form):
        kind_of[kind.pairs] = len(kinds)
        index_of[kind.pairs] = np.arange(len(kind.pairs))
        kinds.append(kind.shifted(known))
    spheres = [each.sphere for each in shapes]
    return ShapePairs(
        every,
        np.concatenate([base.pairs, both]),
        tuple(kinds),
        np.concatenate([base.kind_of, kind_of]),
        np.concatenate([base.index_of, index_of]),
        np.concatenate([base.matrices, matrices_of([s.shape.pose for s in shapes])]),
        np.concatenate(
            [base.centres, np.array([s.centre for s in spheres]).reshape(-1, 3)]
        ),
        np.concatenate([base.radii, np.array([s.radius for s in spheres])]),
    )
