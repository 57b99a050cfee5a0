"""Where passive joints of loops are, and how they move with numbers of a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.kernels import KernelOptions
from armillary.kinematics.parameters import parameter_rates
from armillary.kinematics.state import State
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.pose import IDENTITY
from armillary.spatial.vector import Number
from armillary.trace import Program, jvp

__all__ = ["passive_parameter_rates", "passive_positions"]


def passive_positions(
    cell: Workcell,
    joints: Sequence[int],
    parameters: Sequence[str],
    state: State | None = None,
) -> AnyKernel:
    """Return the kernel q, p -> positions of some passive joints, (..., m) [m or rad].

    Args:
        cell: What has loops.
        joints: Places of passive joints among all joints, passive ones last.
        parameters: Names of numbers of the cell, see `fk`.
        state: Whose branch of the loops counts; by default that of home.
    """

    def positions(_: Tree, q: list[Any], __: Inputs) -> Any:
        return [q[k] for k in joints]

    return _kernel("positions", positions, cell, joints, parameters, state)


def passive_parameter_rates(
    cell: Workcell,
    joints: Sequence[int],
    parameters: Sequence[str],
    state: State | None = None,
) -> AnyKernel:
    """Return the kernel q, p -> their derivatives by parameters, (..., m, k).

    The arguments are those of `passive_positions`.
    """

    def rates(now: Tree, q: list[Any], selection: Inputs) -> Any:
        moving = parameter_rates(now.cell, q, selection.passive)
        columns = [jvp([q[k] for k in joints], each) for each in moving]
        return [list(row) for row in zip(*columns, strict=True)]

    return _kernel("rates", rates, cell, joints, parameters, state)


def _kernel(
    output: str,
    formula: Callable[[Tree, list[Any], Inputs], Any],
    cell: Workcell,
    joints: Sequence[int],
    parameters: Sequence[str],
    state: State | None,
) -> AnyKernel:
    links = [cell.joints.links[k] for k in joints]

    def frames() -> list[FrameRef]:
        return [IN_WORLD, *(FrameRef(link, IDENTITY) for link in links)]

    def make(tree: Tree, selection: Inputs) -> Program:
        def equations(now: Tree, q: list[Number]) -> Any:
            return formula(now, q, selection)

        name = f"passive_{output}"
        return program_of(equations, tree, selection, name=name, output=output)

    options = KernelOptions(cell=cell, state=state, parameters=parameters)
    return options.kernel((f"passive {output}", tuple(joints)), frames, make)
