"""Kernels whose passive joints are solved for before their program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel import Kernel
from armillary.kernel.derivatives import Mode
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.stages import Stage, While
from armillary.kernel.tables import Table
from armillary.kinematics.closing.branch import Branch, Fields, home_branch
from armillary.kinematics.closing.derivatives import loop_derivative
from armillary.kinematics.closing.stages import (
    block_programs,
    closing_stages,
    table_of,
)
from armillary.kinematics.inputs import PASSIVE, Inputs
from armillary.kinematics.parameters import corrected_program
from armillary.model.fields import kept
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace
from armillary.trace.functions import absolute, select

__all__ = [
    "Repeated",
    "Repetition",
    "closed_kernel",
    "passive_records",
    "passive_stages",
    "passive_tables",
]

MOST_ITERATIONS: Final = 1 << 62
"""Iterations of a repetition, which says itself when it ends."""


@final
class Repetition(msgspec.Struct, frozen=True, dict=True):
    """A program that runs again and again, such as one step of a simulation.

    Attributes:
        inputs: Further inputs of the kernel, behind those of the program.
        before: What runs once, before the first iteration.
        after: What runs behind the program in each iteration, and may write its inputs.
        going: The column that is above 0 as long as another iteration follows.
        results: The columns that the kernel returns.
    """

    inputs: tuple[Port, ...]
    before: tuple[Program, ...]
    after: Program
    going: str
    results: tuple[str, ...]


Repeated: TypeAlias = Callable[[Program], Repetition]
"""How a program is repeated."""


def closed_kernel(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    *,
    branch: Branch | None = None,
    dtype: npt.DTypeLike = np.float64,
    repeated: Repeated | None = None,
) -> Kernel:
    """Return the kernel of a program, its input `passive` solved for.

    A row whose loops cannot be closed is NaN.

    Args:
        cell: Whose loops.
        selection: What its inputs are.
        program: What to compute.
        branch: On which loops are closed; that of the assembly at home by default.
        dtype: The type that it computes in.
        repeated: How the program runs again and again. Inputs without numbers are left
            out then.

    Raises:
        NotCompiled: A script that cannot be compiled moves a loop, or a repeated
            program.
    """
    if isinstance(program, PythonProgram):
        raise NotCompiled(
            "A script that cannot be compiled moves a joint of a closed loop, or of a "
            "simulation; these run in compiled code only."
        )
    made = _compiled(cell, selection, program, dtype, repeated)
    return made(passive_records(cell, selection, branch))


def _compiled(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    dtype: npt.DTypeLike,
    repeated: Repeated | None = None,
) -> CompiledPipeline:
    """Return the pipeline of a program, cached by the cell."""
    independent = independent_program(cell, selection).fingerprint
    varied = tuple(each.name for each in selection.parameters)
    parts = independent, selection.passive, varied, program.fingerprint
    repetition = repeated(program) if repeated else None
    key = "closed pipeline", *parts, repetition, np.dtype(dtype).char

    def compiled() -> CompiledPipeline:
        pipeline = _pipeline(cell, selection, program, repetition)
        return compile_pipeline(
            pipeline, dtype=dtype, derived=None if repeated else derived
        )

    def derived(mode: Mode, inputs: tuple[str, ...]) -> CompiledPipeline:
        # It reads passive joints as the program does, so it is solved for alike.
        slope = kept(
            cell,
            ("closed derivative", *parts, mode, inputs),
            lambda: loop_derivative(cell, selection, program, mode, inputs),
        )
        return _compiled(cell, selection, slope, dtype)

    return kept(cell, key, compiled)


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


def passive_records(
    cell: Workcell, selection: Inputs, branch: Branch | None
) -> dict[str, Fields]:
    """Return the records of `passive_tables`.

    branch: On which loops are closed; None for that of the assembly at home.
    """
    if not selection.passive:
        return {}
    blocks = cell.loop_system.needed(selection.passive)
    return (branch or home_branch(cell)).tables(blocks)


def _pipeline(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    repetition: Repetition | None,
) -> Pipeline:
    inputs = tuple(port for port in program.inputs if port.name != PASSIVE)
    results = tuple(port.name for port in program.outputs)
    if repetition:  # a column cannot be empty
        program = replace(program, inputs=tuple(p for p in program.inputs if p.size))
        inputs = *(port for port in inputs if port.size), *repetition.inputs
        results = repetition.results
    stages: list[Stage] = passive_stages(cell, selection)
    if selection.passive and selection.parameters:
        stages.append(corrected_program(cell, selection))
    stages.append(program)
    if selection.passive:
        stages += (_masked_program(port, selection) for port in program.outputs)
    if repetition:
        iteration = (*stages, repetition.after)
        stages = [
            *repetition.before,
            While(repetition.going, iteration, MOST_ITERATIONS),
        ]
    return Pipeline(
        program.name, inputs, passive_tables(cell, selection), tuple(stages), results
    )


def _masked_program(port: Port, selection: Inputs) -> Program:
    """Return the program that makes all of an output NaN where loops are not closed."""

    def masked(values: Any, passive: Any) -> Any:
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
    return trace(masked, name="masked", outputs=(port.name,), **shapes)


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
        positions = {
            k: x
            for programs, part in zip(solved, parts, strict=True)
            for k, x in zip(programs.block.unknowns, part, strict=True)
        }
        return [positions[k] for k in passive]

    shapes = {programs.column("p"): programs.shapes["p"] for programs in solved}
    return trace(concatenated, name="passive", outputs=(PASSIVE,), **shapes)
