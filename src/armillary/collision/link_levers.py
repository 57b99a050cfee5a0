"""How fast links with shapes move at most, and how fast those of pairs approach."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.shape_pairs import Placed
from armillary.kinematics.speed_bounds import SpeedBounds

__all__ = ["LinkReach", "link_levers"]

Array = npt.NDArray[np.float64]


class LinkReach(NamedTuple):
    """How far points of links are from the origins of their moving links.

    Attributes:
        far: At most [m], shape (l,).
        own: How fast they move by the coordinates of the moving link's own joint, at
            most, infinite for others and where nothing is known, shape (l, c).
    """

    far: Array
    own: Array


def link_levers(
    tables: CheckTables,
    speeds: SpeedBounds,
    placed: Placed,
    nearer: LinkReach | None = None,
) -> tuple[Array, Array]:
    """Return how fast links move, and how fast those of pairs approach each other.

    Args:
        tables: The pairs.
        speeds: How fast moving links may move.
        placed: Where shapes are.
        nearer: What is known of links besides the spheres around their shapes.

    Returns:
        For unit rates of coordinates [m per unit]: of links in the world, shape (l, c),
        and of the pairs that move, shape (m, c).
    """
    rows, centres = tables.spheres(placed)
    # The lever of a link reaches from its moving link's origin to all its shapes.
    count = len(tables.first) - 1
    levers = np.zeros(count)
    reach = np.linalg.norm(centres[count:], axis=1) + tables.radii[count:]
    owner = np.repeat(np.arange(count), np.diff(tables.first))
    np.maximum.at(levers, owner, reach)
    own: Array | float = np.inf
    if nearer is not None:
        levers, own = np.minimum(levers, nearer.far), nearer.own[tables.links]
    in_world = np.stack([rows[:count], np.zeros(count, np.int64)], axis=1)
    alone = np.stack([levers, np.zeros(count)], axis=1)
    return (
        speeds.levers(in_world, alone),
        speeds.levers(rows[tables.links], levers[tables.links], own),
    )
