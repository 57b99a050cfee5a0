"""Kernels whose passive joints are solved for before their program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.pipeline import Pipeline, Stage
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.tables import Table
from armillary.kinematics.closing.branch import Branch, home_branch
from armillary.kinematics.closing.stages import (
    block_programs,
    closing_stages,
    table_of,
)
from armillary.kinematics.inputs import PASSIVE, Inputs
from armillary.model.fields import kept
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace
from armillary.trace.functions import absolute, select

__all__ = ["closed_kernel", "passive_stages", "passive_tables"]


def closed_kernel(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    *,
    branch: Branch | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> Kernel:
    """Return the kernel of a program, its input `passive` solved for.

    A row whose loops cannot be closed is NaN.

    Args:
        cell: Whose loops.
        selection: What its inputs are.
        program: What to compute; without passive joints it is compiled as it is.
        branch: On which loops are closed; that of the assembly at home by default.
        dtype: The type that it computes in.

    Raises:
        NotCompiled: A script that cannot be compiled moves a loop.
    """
    if not selection.passive:
        return shared_kernel(program, dtype=dtype)
    if isinstance(program, PythonProgram):
        raise NotCompiled(
            "A script that cannot be compiled moves a joint of a closed loop; loops "
            "are solved for in compiled code only."
        )
    blocks = cell.loop_system.needed(selection.passive)
    independent = independent_program(cell, selection).fingerprint
    parts = independent, selection.passive, program.fingerprint
    key = "closed pipeline", *parts, np.dtype(dtype).char

    def compiled() -> CompiledPipeline:
        return compile_pipeline(_pipeline(cell, selection, program), dtype=dtype)

    pipeline = kept(cell, key, compiled)
    return pipeline((branch or home_branch(cell)).tables(blocks))


def passive_stages(cell: Workcell, selection: Inputs) -> list[Stage]:
    """Return stages that make the column `PASSIVE`; none where no joint is passive.

    It is NaN where a loop cannot be closed. The stages read what `selection` says.
    """
    if not selection.passive:
        return []
    blocks = cell.loop_system.needed(selection.passive)
    return [
        independent_program(cell, selection),
        *closing_stages(cell, blocks, "stored"),
        passive_program(cell, selection.passive, blocks),
    ]


def passive_tables(cell: Workcell, selection: Inputs) -> tuple[Table, ...]:
    """Return the tables that `passive_stages` read; `Branch.tables` fills them."""
    if not selection.passive:
        return ()
    blocks = cell.loop_system.needed(selection.passive)
    return tuple(table_of(block_programs(cell, b)) for b in blocks)


def _pipeline(cell: Workcell, selection: Inputs, program: Program) -> Pipeline:
    stages = [
        *passive_stages(cell, selection),
        program,
        *(_blank_program(port, selection) for port in program.outputs),
    ]
    return Pipeline(
        program.name,
        tuple(port for port in program.inputs if port.name != PASSIVE),
        passive_tables(cell, selection),
        tuple(stages),
        tuple(port.name for port in program.outputs),
    )


def _blank_program(port: Port, selection: Inputs) -> Program:
    """Return the program that makes all of an output NaN where loops are not closed."""

    def blank(values: Any, passive: Any) -> Any:
        total: Number = passive[0]
        for x in passive[1:]:
            total = total + x
        is_closed = absolute(total) < np.inf  # false of NaN
        numbers = np.ravel(np.asarray(values, dtype=object))
        shown = [select(is_closed, x, np.nan) for x in numbers]
        return (
            np.array(shown, dtype=object).reshape(port.shape)
            if port.shape
            else shown[0]
        )

    shapes = {port.name: port.shape, PASSIVE: (len(selection.passive),)}
    return trace(blank, name="blank", outputs=(port.name,), **shapes)


def independent_program(cell: Workcell, selection: Inputs) -> Program:
    """Return the program from q, and other joints, to all independent joints."""
    count = cell.loop_system.count
    shapes = {name: s for name, s in selection.shapes.items() if name == "others"}
    shapes["q"] = (len(selection.inputs),)

    def independent(*given: Any) -> Any:
        *others, q = given
        return selection.vector(q, *others)[:count]

    return trace(independent, outputs=("independent",), name="independent", **shapes)


def passive_program(
    cell: Workcell, passive: Sequence[int], blocks: Sequence[int]
) -> Program:
    """Return the program from the columns of blocks to some passive joints."""
    solved = [block_programs(cell, b) for b in blocks]

    def concatenated(*parts: Any) -> Any:
        found = {
            k: x
            for programs, part in zip(solved, parts, strict=True)
            for k, x in zip(programs.block.unknowns, part, strict=True)
        }
        return [found[k] for k in passive]

    shapes = {programs.column("p"): (programs.sizes[1],) for programs in solved}
    return trace(concatenated, name="passive", outputs=(PASSIVE,), **shapes)
