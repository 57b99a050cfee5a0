"""The collision check of a verb, which warns where it has nothing to test."""

from __future__ import annotations

import sys

from armillary.cell.cell import Cell
from armillary.cli.hints import with_options
from armillary.collision.check import CollisionCheck
from armillary.collision.untested import nothing_text
from armillary.kinematics.state import State

__all__ = ["collision_check"]


def collision_check(
    cell: Cell, state: State, margin: float, *, exact: bool = False
) -> CollisionCheck:
    """Return the collision check of a state; warn on stderr if no pair is tested.

    Args:
        cell: The cell.
        state: What is attached to what.
        margin: Links nearer than this count as touching [m].
        exact: Whether meshes are treated by their triangles, not by their hulls.

    Raises:
        ModelError: As for `Cell.collision`.
    """
    check = cell.collision(state, margin=margin, exact=exact)
    if not len(check.pairs):
        print(f"warning: {with_options(nothing_text(check.pairs))}", file=sys.stderr)
    return check
