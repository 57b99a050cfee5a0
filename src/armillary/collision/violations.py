"""What of a state is not allowed: limits of joints that it breaks, links that touch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from armillary.collision.check import CollisionCheck, Contact, check_of
from armillary.collision.check_options import CheckOptions
from armillary.collision.lengths import margin_of, number_of
from armillary.collision.obstacles import GivenObstacles
from armillary.collision.pairs import applied_rules
from armillary.collision.untested import untested_text
from armillary.errors import ModelError, quote
from armillary.kinematics.state import State, bound_state
from armillary.kinematics.violations import Violation, violations_of
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["violations"]


def violations(
    cell: Workcell,
    state: State,
    *,
    tolerance: float = 0.0,
    collisions: bool = True,
    rules: Rules | None = None,
    margin: float = 0.0,
    meshes: MeshSource | None = None,
    obstacles: GivenObstacles | None = None,
) -> tuple[Violation, ...]:
    """Return what of a state breaks limits of joints, and which links touch.

    Joints come first, in the order of links, then pairs of links, the nearest first.
    Limits are inclusive. Where pairs of links cannot be tested, as meshes without
    files cannot, one entry of the kind `untested` says why. There is another one for
    each manipulator of which no pair of links is tested although no rule says so. Pairs
    that are left out because they touch at home have none, so that the answer is empty
    for a state that is allowed. A check names them, in a warning.

    Args:
        cell: What is in the state.
        state: Positions and rates, attachments and moved bases.
        tolerance: What limits are widened by, in the unit of each, and how deep links
            may overlap [m].
        collisions: Whether links are tested, too; else only joints are.
        rules: As for `collision`.
        margin: As for `collision` [m].
        meshes: As for `collision`.
        obstacles: What stands around the cell, as for `CollisionCheck.with_obstacles`.

    Raises:
        StateError: The state is not one of this cell.
        UnknownName: The rules name a link that does not exist.
        ModelError: The margin or the tolerance is invalid, or there are too many pairs.
    """
    bound = bound_state(cell, state)
    margin, tolerance = margin_of(margin), number_of("tolerance", tolerance)
    positions, rates = bound.positions.tolist(), bound.qd.tolist()
    broken = list(violations_of(cell, positions, rates, tolerance))
    if not collisions:
        return tuple(broken)
    decided = applied_rules(cell, rules, meshes)
    tested = decided.pairs(bound.tree)
    if len(tested) or obstacles:
        options = CheckOptions(rules, margin, meshes)
        try:
            check = check_of(cell, bound, options)
            if obstacles:
                check = check.with_obstacles(obstacles)
        except ModelError as error:
            text = f"Links are not tested for collision: {error}"
            broken.append(Violation("untested", cell.name, math.nan, margin, text))
        else:
            broken += _touching(check, bound, tolerance)
    # What is left out without a rule that says so is named, as by a check's warning.
    broken += [
        Violation("untested", name, math.nan, margin, untested_text(name))
        for name in decided.untested_manipulators(tested)
    ]
    return tuple(broken)


def _touching(
    check: CollisionCheck, state: State, tolerance: float
) -> Iterator[Violation]:
    """Yield the pairs that are nearer than the margin, but for the tolerance."""
    owners = check.cell.owners
    obstacles = check.obstacles.names if check.obstacles else ()
    # Contacts are nearer than the margin, but may be so by no more than the tolerance.
    for contact in check.contacts(state.q):
        if tolerance and contact.distance >= check.margin - tolerance:
            continue
        is_own = False
        if contact.links[1] not in obstacles:
            a, b = (owners[check.cell.frame(name).link] for name in contact.links)
            is_own = a == b
        yield Violation(
            "self-collision" if is_own else "collision",
            ", ".join(contact.links),
            contact.distance,
            check.margin,
            _sentence(contact, check.margin),
            contact.links,
        )


def _sentence(contact: Contact, margin: float) -> str:
    both = " and ".join(map(quote, contact.links))
    if math.isnan(contact.distance):
        return f"Links {both} may touch: the pose of one of them is not known."
    if contact.distance < 0.0:
        what = f"overlap by {-contact.distance:.6g} m"
    elif contact.distance == 0.0:
        what = "touch"
    else:
        apart = f"are {contact.distance:.6g} m apart"
        what = f"{apart}, nearer than the margin of {margin:.6g} m"
    # In the middle of both nearest points; the sum makes 0 of -0.
    x, y, z = contact.points.mean(axis=0) + 0.0
    return f"Links {both} {what} at ({x:.6g}, {y:.6g}, {z:.6g})."
