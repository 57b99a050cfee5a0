"""Solvers of inverse kinematics, each made once for a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from armillary.errors import unknown
from armillary.forks import IMPORT_LOCK
from armillary.ik.avoidance import Avoidance, Check
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.mechanism_form import mechanism_form
from armillary.ik.problem import Goal, IKProblem, with_moved_loops
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.kernels import (
    Joints,
    chosen_axes,
    frame_list,
    listed_joints,
    selection_of,
)
from armillary.kinematics.state import State, bound_state, branch_of
from armillary.model.closed_form import ClosedForm
from armillary.model.fields import kept
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.kinematics.closing.branch import Branch

__all__ = ["solver_of"]

MOST_KEPT: Final = 8
"""Solvers of states that a cell keeps; each has a table of sampled poses."""


def solver_of(  # noqa: PLR0913
    cell: Workcell,
    frames: str | Sequence[str],
    *,
    relative_to: str = WORLD,
    joints: Joints = None,
    state: State | None = None,
    position: str = "xyz",
    rotation: str = "xyz",
    axes: str = "target",
    closed: ClosedForm | None = None,
    avoid: Check | None = None,
) -> InverseKinematics:
    """Return the solver for frames of a cell, which keeps it; see `Cell.ik`."""
    names = frame_list(frames, "ik")
    if axes not in {"target", "relative_to"}:
        raise unknown("choice of axes", axes, ("target", "relative_to"))
    to = cell.frame(relative_to)
    goals = [
        Goal(
            frame=cell.frame(name),
            relative_to=to,
            position=chosen_axes(position, "position"),
            rotation=chosen_axes(rotation, "rotation"),
            in_target=axes == "target",
        )
        for name in names
    ]
    ends = [to, *(goal.frame for goal in goals)]
    selection = selection_of(cell, joints, None, ends)
    tree = Tree.of(cell)
    # A form need not be hashable; its solver holds it, so its id is not used again.
    key: tuple[Any, ...] = tuple(goals), listed_joints(joints), id(closed)
    known = kept(cell, "solvers", dict[Any, InverseKinematics])
    branch = None
    if state is not None:
        bound = bound_state(cell, state)
        moved = selection_of(cell, joints, bound, ends)
        branch, where = _other_branch(bound), tuple(bound.positions.tolist())
        coupled = cell.limit_rows.others(selection.inputs)
        if (
            branch is not None
            or moved.bases
            or any(where[k] != selection.rest[k] for k in (*moved.others, *coupled))
        ):
            tree = bound.tree
            selection = moved._replace(rest=_at_home(selection, where))
            key = *key, *_decisive(tree, selection, coupled), id(branch)
            known = kept(cell, "solvers of states", dict[Any, InverseKinematics])
            if key not in known and len(known) >= MOST_KEPT:
                known.pop(next(iter(list(known))), None)  # threads share it
    solver = known.get(key)
    if solver is None:
        selection = with_moved_loops(tree, selection, ends)
        problem = IKProblem(tree, tuple(goals), selection, branch)
        solver = InverseKinematics(problem, closed or mechanism_form(problem))
        solver = known.setdefault(key, solver)
    if avoid is None:
        return solver
    return solver.avoiding(Avoidance.of(avoid, cell, state, selection.inputs))


def _other_branch(state: State) -> Branch | None:
    """Return the branch of a state's loops, None for that of home."""
    branch = branch_of(state)
    if branch is None:
        return None
    with IMPORT_LOCK:
        from armillary.kinematics.closing.branch import home_branch

    return None if branch is home_branch(state.cell) else branch


def _at_home(selection: Inputs, q: tuple[float, ...]) -> tuple[float, ...]:
    """Return q with the selected joints at home, where searches begin."""
    chosen = {*selection.inputs}
    pairs = enumerate(zip(selection.rest, q, strict=True))
    return tuple(home if k in chosen else now for k, (home, now) in pairs)


def _decisive(
    tree: Tree, selection: Inputs, coupled: tuple[int, ...]
) -> tuple[Any, ...]:
    """Return the numbers of a state that decide the answers.

    coupled: Joints that share limits with those that move.
    """
    return (
        tuple(selection.rest[k] for k in (*selection.others, *coupled)),
        tuple((m, tree.bases[m].frame) for m in selection.bases),
    )
