"""The solver of a question of inverse kinematics, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from armillary.equations.chain import Layout
from armillary.equations.inverse import Goal
from armillary.equations.poses import poses_program
from armillary.errors import ModelError, unknown
from armillary.kernel import Kernel, shared_kernel
from armillary.model.closed_form import ClosedForm
from armillary.solve.ik.inverse import InverseKinematics
from armillary.solve.ik.rows import chosen_axes
from armillary.solve.kernels import Joints, joints_key, selection_of
from armillary.solve.scene import Scene

__all__ = ["solver_of"]


def solver_of(
    cell: Scene,
    frames: str | Sequence[str],
    *,
    relative_to: str,
    joints: Joints,
    position: str,
    rotation: str,
    axes: str,
    closed: ClosedForm | None = None,
) -> InverseKinematics:
    """Return the solver of a question to a cell, which keeps it; see `Cell.ik`."""
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    if not names:
        raise ModelError("ik needs at least one frame.")
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
    known: dict[Any, InverseKinematics] = vars(cell).setdefault("solvers", {})
    key = (tuple(goals), joints_key(joints), id(closed))
    solver = known.get(key)
    if solver is None:
        selection = selection_of(cell, joints)
        layout = Layout.of(cell)

        @cache
        def fk() -> Kernel:
            at = [goal.frame for goal in goals]
            program = poses_program(
                layout, at, to, single=False, form="matrix", selection=selection
            )
            return shared_kernel(program)

        chosen = tuple(cell.joint_names[k] for k in selection.inputs)
        solver = InverseKinematics(layout, goals, selection, chosen, fk, closed)
        solver = known.setdefault(key, solver)
    return solver
