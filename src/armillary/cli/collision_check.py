"""The collision check of a verb, which warns where it has nothing to test."""

from __future__ import annotations

import sys

from armillary.cell.cell import Cell
from armillary.cli.hints import with_options
from armillary.collision.check import CollisionCheck
from armillary.collision.untested import nothing_text
from armillary.kinematics.state import State

__all__ = ["collision_check"]


def collision_check(cell: Cell, state: State, margin: float) -> CollisionCheck:
    """Return the collision check of a state; warn on stderr if no pair is tested.

    margin: Links nearer than this count as touching [m].

    Raises:
        ModelError: As for `Cell.collision`.
    """
    check = cell.collision(state, margin=margin)
    if not len(check.pairs):
        print(f"warning: {with_options(nothing_text(check.pairs))}", file=sys.stderr)
    return check
