"""Derivatives of programs that read passive joints, which follow from their loops.

A program y(x, z) is evaluated where r(x, z) = 0, so that dy/dx is that of y plus dy/dz
times dz/dx, by the implicit function of the loops. Derivatives are programs of x and z
again, and have derivatives in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.kernel.derivatives import Mode, followed_program
from armillary.kinematics.closing.rates import passive_rates
from armillary.kinematics.inputs import PASSIVE, Inputs
from armillary.kinematics.parameters import PARAMETERS, parameter_rates, varied_tree
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.trace import Program

__all__ = ["loop_derivative"]


def loop_derivative(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    mode: Mode,
    inputs: Sequence[str],
) -> Program:
    """Return the program of a derivative, which reads passive joints, too.

    Args:
        cell: Whose loops.
        selection: What the inputs of the program are.
        program: What to differentiate; it reads passive joints.
        mode: Forward or reverse.
        inputs: Names of inputs to differentiate by.
    """
    ports = {port.name: port for port in program.inputs}

    def followers(x: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
        """Return passive joints and their slopes by each number of `inputs`."""
        given = dict(zip(ports, x, strict=True))
        varied = cell
        if PARAMETERS in given:
            tree = Tree.of(cell)
            p = list(given[PARAMETERS])
            varied = varied_tree(tree, selection.parameters, p).cell
        others, passive = given.get("others", ()), given[PASSIVE]
        whole = selection.vector(given["q"], others, passive)
        slopes: dict[int, list[Any]] = {k: [] for k in selection.passive}
        for name in inputs:
            if name in {"q", "others"}:
                rates = passive_rates(varied, whole, selection.passive)
                joints = selection.inputs if name == "q" else selection.others
                for k, own in slopes.items():
                    own.extend(rates[k].get(joint, 0.0) for joint in joints)
            elif name == PARAMETERS:
                for _, *moved in parameter_rates(varied, whole, selection.passive):
                    by_joint = {node.index: rate for node, rate in moved}
                    for k, own in slopes.items():
                        own.append(by_joint.get(whole[k].index, 0.0))
            else:
                for own in slopes.values():
                    own.extend([0.0] * ports[name].size)
        return [(whole[k], own) for k, own in slopes.items()]

    return followed_program(program, mode, inputs, followers)
