"""What asks a cell for a test of collision."""

from __future__ import annotations

from functools import partial

from armillary.collision.check import CollisionCheck, check_of
from armillary.collision.check_options import CheckOptions
from armillary.collision.untested import warn_of_untested
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["collision"]


def collision(
    cell: Workcell,
    state: State | None = None,
    *,
    rules: Rules | None = None,
    margin: float = 0.0,
    meshes: MeshSource | None = None,
    exact: bool = False,
) -> CollisionCheck:
    """Return the test for collision of the links of a cell.

    Call it with joint positions; it compiles one kernel for the cell, whatever is
    attached to what, and one for every two kinds of shapes. A warning names, once for
    a cell, manipulators of which no pair of links is tested though no rule says so, and
    pairs that are left out because they touch at home.

    Args:
        cell: The cell that has the links.
        state: The state whose attachments, moved bases and branch of closed loops are
            used; by default as the cell was built.
        rules: Which pairs are tested, in place of the cell's own.
        margin: Links nearer than this count as touching [m], at least 0.
        meshes: What reads meshes, such as `armillary.formats.mesh.MeshFiles(folder)`;
            by default what `arm.load` has left with the cell. Meshes are treated by
            their hulls, and a warning says so once.
        exact: Treat meshes by their triangles, where hulls do not decide; this needs
            coal, `pip install armillary[exact]`.

    Raises:
        StateError: The state is not one of this cell.
        UnknownName: The rules name a link that does not exist.
        ModelError: A mesh of a link that is tested cannot be read, two half spaces are
            to be tested, there are too many pairs, or the margin is invalid; or coal is
            not installed and `exact` needs it.
    """
    options = CheckOptions(rules, margin, meshes, exact)
    check = check_of(cell, state, options)
    warn = partial(warn_of_untested, cell, rules, meshes, check.pairs)
    kept(check.tables, "warned of untested", warn)
    return check
