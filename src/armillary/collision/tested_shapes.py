"""The shapes of the links that a check tests, and where they are in a state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from armillary.collision.check_tables import CheckTables
from armillary.collision.hulls import hull_of, warn_of_hulls
from armillary.collision.shape_pairs import LinkShape
from armillary.errors import ArmillaryError
from armillary.kinematics.moving_links import MovingLinks, moving_links
from armillary.kinematics.state import State
from armillary.model.cloud import Cloud
from armillary.model.distinct_numbers import distinct_numbers
from armillary.model.fields import kept
from armillary.model.link import Link
from armillary.model.link_pairs import Pairs
from armillary.model.primitive import Primitive
from armillary.model.shapes.mesh import MeshSource
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = [
    "shapes_of_links",
    "solids_of",
    "tables_of",
    "tables_of_shapes",
]

MOST_CACHED: Final = 8
"""Tables that a cell caches."""


def tables_of(
    cell: Workcell,
    state: State,
    tested: Pairs,
    meshes: MeshSource | None,
    *,
    exact: bool,
) -> CheckTables:
    """Return the tables of tested pairs; the cell caches the last few."""
    # States that attach the same things share their pairs, and so tables and kernels.
    cached = kept(cell, "collision tables", dict[Any, CheckTables])
    tables = cached.get((id(tested), meshes, exact))  # it keeps these pairs alive
    if tables is None:
        shapes = shapes_of_links(cell, tested, meshes)
        if not exact:
            warn_of_hulls(cell, _with_hulls(cell, tested, shapes))
        tables = tables_of_shapes(tested, shapes, moving_links(cell), state.tree)
        if len(cached) >= MOST_CACHED:
            cached.clear()
        cached[id(tested), meshes, exact] = tables
    return tables


def solids_of(
    link: Link, name: str, meshes: MeshSource | None
) -> list[Primitive | Cloud]:
    """Return the collision shapes of a link, hulls in place of its meshes.

    Args:
        link: The link.
        name: Its qualified name, for messages.
        meshes: What reads meshes.

    Raises:
        ModelError: A mesh cannot be read, or has no hull.
    """
    return [
        shape if isinstance(shape, Primitive | Cloud) else hull_of(shape, name, meshes)
        for shape in link.collision_shapes
    ]


def shapes_of_links(
    cell: Workcell,
    tested: Pairs,
    meshes: MeshSource | None,
    *,
    positions: Sequence[int] | None = None,
    skip_unread: bool = False,
) -> dict[int, list[LinkShape]]:
    """Return the shapes of links of pairs, by their positions in `tested.links`.

    Args:
        cell: The cell that has the links.
        tested: The pairs.
        meshes: What reads meshes.
        positions: Those of the links; by default of all that are in a pair.
        skip_unread: Whether links whose shapes cannot be read are left out.

    Raises:
        ModelError: A mesh cannot be read, or has no hull.
    """
    by_position: dict[int, list[LinkShape]] = {}
    wanted: Sequence[int] = distinct_numbers(tested.indices).tolist()
    if positions is not None:
        wanted = positions
    for k in wanted:
        name = tested.links[k]
        link = cell.links[cell.frame(name).link]
        try:
            solids = solids_of(link, name, meshes)
        except ArmillaryError:
            if not skip_unread:
                raise
            continue
        by_position[k] = _link_shapes(cell, name, link, solids)
    return by_position


def _link_shapes(
    cell: Workcell, name: str, link: Link, solids: list[Primitive | Cloud]
) -> list[LinkShape]:
    """Return the shapes of a link, those of the last tables where they are the same."""
    known = kept(cell, "link shapes", dict[str, list[LinkShape]])
    shapes = known.get(name, [])
    # A mesh that was read again may have another hull.
    is_same = len(shapes) == len(solids) and all(
        each.shape is solid for each, solid in zip(shapes, solids, strict=True)
    )
    if not is_same:
        shapes = known[name] = [LinkShape(each, name, link.primary) for each in solids]
    return shapes


def tables_of_shapes(
    tested: Pairs,
    shapes: dict[int, list[LinkShape]],
    moving: MovingLinks,
    tree: Tree,
    *,
    positions: Sequence[int] | None = None,
) -> CheckTables:
    """Return the tables of pairs of links with these shapes, attached as in a tree.

    Args:
        tested: The pairs.
        shapes: Of `shapes_of_links`.
        moving: The moving links of the cell.
        tree: What is attached to what.
        positions: The links that have spheres, sorted; by default all that are in a
            pair.

    Raises:
        ModelError: Both shapes of a pair are half spaces.
    """
    used = positions
    if used is None:
        used = distinct_numbers(tested.indices).tolist()
    links = [tree.cell.frame(tested.links[k]).link for k in used if shapes[k]]
    every = [each for k in used for each in shapes[k]]
    return CheckTables.of(tested, every, moving.fixed_links(tree, links))


def _with_hulls(cell: Workcell, tested: Pairs, positions: Iterable[int]) -> list[str]:
    """Return the names of those links that have hulls in place of meshes."""
    # Links of which some shape has no distance of its own.
    names = [tested.links[k] for k in positions]
    links = [cell.links[cell.frame(name).link] for name in names]
    return [
        name
        for name, link in zip(names, links, strict=True)
        if not all(
            isinstance(shape, Primitive | Cloud) for shape in link.collision_shapes
        )
    ]
