"""Collision checks of verbs, which say so where nothing is tested."""

from __future__ import annotations

import sys

from armillary.cell.cell import Cell
from armillary.cli.hints import with_options
from armillary.collision.check import CollisionCheck
from armillary.collision.untested import nothing_text
from armillary.kinematics.state import State

__all__ = ["check_of"]


def check_of(
    cell: Cell, state: State, margin: float, *, exact: bool = False
) -> CollisionCheck:
    """Return the check of a state; stderr says if it has no pair of links to test.

    exact: Whether meshes are treated by their triangles.

    Raises:
        ModelError: As for `Cell.collision`.
    """
    check = cell.collision(state, margin=margin, exact=exact)
    if not len(check.pairs):
        print(f"warning: {with_options(nothing_text(check.pairs))}", file=sys.stderr)
    return check
