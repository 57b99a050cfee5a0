"""Kernels that solve for all passive joints of a cell."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.references import vectorize
from armillary.kinematics.closing.branch import PARTS, Branch
from armillary.kinematics.closing.kernel import passive_program
from armillary.kinematics.closing.stages import (
    AssemblyGrid,
    Beginning,
    GridAxis,
    block_programs,
    closing_stages,
    table_of,
)
from armillary.kinematics.ending import Ending
from armillary.model.fields import kept
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace
from armillary.trace.functions import maximum

__all__ = ["LoopReason", "loop_reasons", "solved_near", "solved_on", "walked"]

Array = npt.NDArray[np.float64]


def solved_on(cell: Workcell, branch: Branch, q: Any) -> tuple[Array, Array]:
    """Return passive joints on a branch, and how far loops stay open.

    q: Positions of the independent joints, shape (..., n) [m or rad].

    Returns:
        Passive joints, shape (..., m), NaN where loops cannot be closed, and the
        largest row [m or rad], shape (...).
    """
    blocks = range(len(cell.loop_system.blocks))
    kernel = kept(
        branch, "solver", lambda: _compiled(cell, "stored")(branch.tables(blocks))
    )
    return _pair(kernel(q))


def walked(cell: Workcell, q: Array, start: Array) -> Array:
    """Return passive joints at the end of a straight way from closed positions.

    A block walks straight from its inputs to others. Where these are passive joints of
    earlier blocks, which move on curves, the way is walked in parts short enough for
    straight ones. `Branch` walks to the centres of its cells in the same parts.

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (n,) [m or rad].
        start: Positions of all joints, loops closed, shape (n + m,).

    Returns:
        Shape (m,); NaN where a singularity or the edge is on the way.
    """
    count = cell.loop_system.count
    axes, parts = kept(cell, "ways of loops", lambda: _ways(cell))
    ends = zip(axes, q.tolist(), start[:count].tolist(), strict=True)
    change = np.array([axis.change(a, b) for axis, a, b in ends])
    x = start.copy()
    follow = _untabled(cell, "known")
    for to in start[:count] + parts * change:
        x[count:], _ = follow(to, x)
        x[:count] = to
    return x[count:]


def _ways(cell: Workcell) -> tuple[tuple[GridAxis, ...], Array]:
    """Return the axes of the independent joints, and the ends of parts of a way.

    Returns:
        The ends are parts of the whole way, shape (k, 1); the last is 1.
    """
    system = cell.loop_system
    follows = any(k >= system.count for b in system.blocks for k in b.inputs)
    count = PARTS if follows else 1
    ends: Array = np.arange(1.0, count + 1.0)[:, None] / count
    return AssemblyGrid.axes_of(cell, range(system.count)), ends


def last_on_way(cell: Workcell, q: Any, start: Any) -> Array:
    """Return passive joints as far as straight ways from closed positions lead.

    q: Positions of the independent joints, shape (..., n) [m or rad].
    start: Positions of all joints, loops closed, shape (..., n + m).

    Returns:
        Shape (..., m): where a way is blocked, those of the last assembly before that.
    """
    return np.asarray(_untabled(cell, "last")(q, start))


def solved_near(cell: Workcell, q: Any, near: Any) -> tuple[Array, Array]:
    """Return passive joints to which Newton's method leads from given ones.

    q: Positions of the independent joints, shape (..., n) [m or rad].
    near: Of the passive joints, shape (..., m).

    Returns:
        As of `solved_on`, on whatever branch.
    """
    return _pair(_untabled(cell, "near")(q, near))


def _pair(found: Any) -> tuple[Array, Array]:
    passive, residual = found
    return np.asarray(passive), np.asarray(residual)


def _untabled(cell: Workcell, beginning: Beginning) -> Kernel:
    """Return the kernel of a solver that needs no table."""
    compiled = _compiled(cell, beginning)
    return kept(cell, ("loops without a table", beginning), compiled)


def _compiled(cell: Workcell, beginning: Beginning) -> CompiledPipeline:
    return kept(cell, ("loops", beginning), lambda: _pipeline(cell, beginning))


def _pipeline(cell: Workcell, beginning: Beginning) -> CompiledPipeline:
    system = cell.loop_system
    blocks = range(len(system.blocks))
    passive = system.passive
    starts: dict[Beginning, list[Port]] = {
        "stored": [],
        "known": [Port("x0", (len(system.order),))],
        "last": [Port("x0", (len(system.order),))],
        "near": [Port("near", (len(passive),))],
    }
    stages = [
        *closing_stages(cell, blocks, beginning),
        passive_program(cell, passive, blocks),
    ]
    results = ["passive"]
    if beginning != "last":
        stages.append(_residual_program(cell))
        results.append("residual")
    tables = [table_of(block_programs(cell, b)) for b in blocks]
    pipeline = Pipeline(
        "close_loops",
        (Port("independent", (system.count,)), *starts[beginning]),
        tuple(tables) if beginning == "stored" else (),
        tuple(stages),
        tuple(results),
    )
    return compile_pipeline(pipeline)


def _residual_program(cell: Workcell) -> Program:
    """Return the program of the largest row of all blocks."""
    names = [
        block_programs(cell, b).column("residual")
        for b in range(len(cell.loop_system.blocks))
    ]

    def largest(*rows: Number) -> Number:
        total = rows[0]
        for row in rows[1:]:
            total = maximum(total, row)
        return total

    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    return trace(largest, name="residual", outputs=("residual",), **shapes)


# why loops are closed or are not


TRIES: Final = 16
"""Places from which other assemblies are looked for, where a branch has none."""
TIGHT: Final = 1e-9
"""How far loops stay open at the edge by rounding alone, in parts of their size."""
FLAT: Final = 3e-3
"""Greatest determinant at the edge of a branch, in parts of that at its seed."""
STEEP: Final = 1e3
"""Least rate there, in parts of the fastest at the seed, if there is no determinant."""


class LoopReason(Ending):
    """How the loops of a row were closed, or why they were not."""

    CLOSED = 0, "closed"
    CANNOT_CLOSE = 1, "cannot close: no assembly was found at these positions"
    OTHER_BRANCH = 2, "closed on another branch only: a singularity is between"
    SINGULAR = 3, "singular: at the edge of where loops close"
    INVALID = 4, "a position is not a finite number"


def loop_reasons(cell: Workcell, q: Array, seed: Array) -> npt.NDArray[np.int8]:
    """Return why loops are not closed on a branch at rows of q, shape (rows,).

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (rows, n) [m or rad].
        seed: Positions of all joints where the branch begins, shape (n + m,).
    """
    reason = np.full(len(q), LoopReason.CANNOT_CLOSE, np.int8)
    reason[_at_edge(cell, q, seed)] = LoopReason.SINGULAR
    rng = np.random.default_rng(0)
    units = np.array(cell.loop_system.units[cell.loop_system.count :])
    passive = seed[cell.loop_system.count :]
    for _ in range(TRIES):
        left = np.flatnonzero(reason == LoopReason.CANNOT_CLOSE)
        noise = rng.uniform(-1.0, 1.0, (len(left), len(passive)))
        solved, _ = solved_near(cell, q[left], passive + np.pi * units * noise)
        is_closed = np.isfinite(solved).all(axis=-1)
        reason[left[is_closed]] = LoopReason.OTHER_BRANCH
    reason[~np.isfinite(q).all(axis=-1)] = LoopReason.INVALID
    return reason


def _at_edge(cell: Workcell, q: Array, seed: Array) -> npt.NDArray[np.bool_]:
    """Return where q is at the edge of what straight ways reach, shape (rows,).

    There two assemblies meet in one that is singular, whose rates are not finite. From
    the last assembly on the way, Newton's method finds one at q that is singular or
    nearly so; or it does not converge, but leaves loops open by rounding alone.
    """
    system = cell.loop_system
    solved, residual = solved_near(cell, q, last_on_way(cell, q, seed))
    is_closed = np.isfinite(solved).all(axis=-1)
    is_edge = ~is_closed & (residual < TIGHT * max(system.sizes))
    rows = np.hstack([q, solved])[is_closed]
    is_flat = np.zeros(len(rows), np.bool_)
    for number, block in enumerate(system.blocks):
        implicit = block_programs(cell, number).implicit
        joints = list(block.inputs), list(block.unknowns)
        with np.errstate(all="ignore"):
            rates, reciprocal = vectorize(implicit, *(rows[:, k] for k in joints))
            rates_0, reciprocal_0 = vectorize(implicit, *(seed[k] for k in joints))
        # Reciprocals of determinants are 0 where rows are more than unknowns, so that
        # rates decide there. What is NaN counts as flat.
        is_flat |= ~(np.abs(reciprocal_0) >= FLAT * np.abs(reciprocal))
        fastest = np.abs(rates).max(axis=(1, 2))
        is_flat |= ~(fastest <= STEEP * np.abs(rates_0).max())
    is_edge[is_closed] = is_flat
    return is_edge
