"""The shapes of the links that a check tests, and where they are in a state."""

from __future__ import annotations

from operator import is_not
from typing import Any, Final

import numpy as np

from armillary.collision.check_tables import CheckTables
from armillary.collision.hulls import hull_of, warn_of_hulls
from armillary.collision.shape_pairs import LinkShape, Placed
from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.link import Link
from armillary.model.link_pairs import Pairs
from armillary.model.primitive import Primitive
from armillary.model.shapes.mesh import MeshSource
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["placed_shapes", "solids_of", "tables_of"]

MOST_KEPT: Final = 8
"""Tables that a cell keeps."""


def tables_of(
    cell: Workcell,
    state: State,
    tested: Pairs,
    moving: MovingLinks,
    meshes: MeshSource | None,
    *,
    exact: bool,
) -> CheckTables:
    """Return the tables of tested pairs; the cell keeps the last few."""
    known = kept(cell, "collision tables", dict[Any, CheckTables])
    found = known.get((id(tested), meshes, exact))  # it keeps these pairs alive
    if found is None:
        shapes, numbers = _shapes(cell, tested, meshes, exact=exact)
        rows = np.array([moving.fixed_to(state.tree, k).row for k in numbers], np.int64)
        found = CheckTables.of(tested, shapes, rows)
        if len(known) >= MOST_KEPT:
            known.clear()
        known[id(tested), meshes, exact] = found
    return found


def solids_of(link: Link, name: str, meshes: MeshSource | None) -> list[Primitive]:
    """Return the collision shapes of a link, hulls in place of its meshes.

    Args:
        link: The link.
        name: Its qualified name, for messages.
        meshes: What reads meshes.

    Raises:
        ModelError: A mesh cannot be read, or has no hull.
    """
    return [
        shape if isinstance(shape, Primitive) else hull_of(shape, name, meshes)
        for shape in link.collision_shapes
    ]


def placed_shapes(tables: CheckTables, moving: MovingLinks, tree: Tree) -> Placed:
    """Return where the shapes are while bases are attached as in a tree."""
    first, shapes = tables.first, tables.pairs.shapes
    links = [shapes[int(k)].link for k in first[:-1]]
    fixed = [moving.fixed_to(tree, tree.cell.frame(name).link) for name in links]
    rows = np.array([each.row for each in fixed], np.int64)
    frames = np.array([each.pose.matrix() for each in fixed]).reshape(-1, 4, 4)
    counts = np.diff(first)
    return tables.pairs.placed(np.repeat(rows, counts), np.repeat(frames, counts, 0))


def _shapes(
    cell: Workcell, tested: Pairs, meshes: MeshSource | None, *, exact: bool
) -> tuple[list[LinkShape], list[int]]:
    """Return the shapes of all links that are tested, and the number of each's link."""
    shapes: list[LinkShape] = []
    numbers: list[int] = []
    with_hulls: list[str] = []
    positions: list[int] = np.unique(tested.indices).tolist()
    for k in positions:
        name = tested.links[k]
        number = cell.frame(name).link
        link = cell.links[number]
        solids = solids_of(link, name, meshes)
        if any(map(is_not, solids, link.collision_shapes)):
            with_hulls.append(name)
        shapes += [LinkShape(solid, name, link.primary) for solid in solids]
        numbers += [number] * len(solids)
    if not exact:
        warn_of_hulls(cell, with_hulls)
    return shapes, numbers
