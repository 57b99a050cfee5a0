"""Limits of torques as rows of rates.

In a step of dt rates go from v to x, which takes the torques M (x - v) / dt + h, where
M is the mass matrix, and h what holds the cell and keeps its rates. They are linear in
x. M and h come from one kernel of dynamics, called before each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.control.columns import TINY, InequalityRow, StepColumns
from armillary.dynamics.inverse import inverse_dynamics
from armillary.dynamics.mass_matrix import mass_matrix
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.options import options_of
from armillary.errors import KernelError
from armillary.kernel import Kernel
from armillary.kernel.columns import each
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.bound_kernel import AnyKernel, BoundKernel, bind
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State, home
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Program
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = [
    "TorqueLimits",
    "torque_guard",
    "torque_stages",
    "torque_table",
    "torque_verdict",
]

LIMITED: Final = "torque_limits"
"""The table with two records for each joint that is moved: its least, its greatest."""

BROKEN: Final = 1e-9
"""Part of a rate by which a torque may be beyond its limit."""

Array = npt.NDArray[np.float64]


class TorqueLimits(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Limits of torques of the joints that a controller moves.

    Attributes:
        dynamics: The kernel (q, qd) -> M and h, shape (..., c, n + 1).
        limits: The greatest torques, shape (c,) [N m or N].
    """

    dynamics: AnyKernel
    limits: Array

    @classmethod
    def of(cls, twists: MovingTwists, state: State, limits: Array) -> TorqueLimits:
        """Return the limits of the joints of `twists`, from those of all joints.

        Raises:
            ModelError: No link that joints move has an inertia.
        """
        cell, chosen = twists.moving.cell, list(twists.joints)
        n = twists.moving.joints

        def equations(bodies: Multibody, qd: Vector) -> Matrix:
            # Rows of M of the joints that are moved, with h = C qd + g behind each.
            M = mass_matrix(bodies)
            # Torques at the present rates without accelerations: C qd + g.
            h = inverse_dynamics(bodies, list(qd), [0.0] * n)
            return [[*M[k], h[k]] for k in chosen]

        checked = options_of(cell, {"state": None if state is home(cell) else state})
        name = StepColumns.mass_rows.name
        kernel = checked.kernel((name, *chosen), equations, ("qd",), output=name)
        return cls(kernel, limits[chosen])

    def joined(self, step: Kernel) -> AnyKernel:
        """Return the kernel of a step that computes M and h itself.

        Calls here ask two kernels in turn, since many controllers share that of
        dynamics; code for elsewhere is one function.

        Args:
            step: The kernel of a step with their column as an input.

        Raises:
            KernelError: A script that runs as Python moves a joint.
        """
        bound: tuple[Any, ...] = ()
        kernel = self.dynamics
        if isinstance(kernel, BoundKernel):
            kernel, bound = kernel.kernel, kernel.bound
        before, whole = kernel.computation, step.computation
        if isinstance(before, PythonProgram):
            raise KernelError(
                "A script that runs as Python moves a joint whose torques are limited."
            )
        assert isinstance(before, Program | Pipeline)
        assert isinstance(whole, Pipeline)
        stages, tables = (before,), ()
        if isinstance(before, Pipeline):  # closed loops are solved for
            stages, tables = before.stages, before.tables
        (mass_rows,) = before.outputs
        given = dict.fromkeys([*before.inputs, *whole.inputs])
        joined = replace(
            whole,
            inputs=tuple(port for port in given if port != mass_rows),
            tables=tuple(dict.fromkeys([*whole.tables, *tables])),
            stages=(*stages, *whole.stages),
        )
        records = {**kernel.tables, **step.tables}
        packed = {table.name: records[table.name] for table in joined.tables}
        # What the step calls is compiled for as many lanes as the step.
        made = compile_pipeline(joined, dtype=step.dtype, lanes=step.lanes)
        return bind(made.bound(packed, step.callees), list(bound))

    def records(self, first: int) -> dict[str, Mapping[str, Any]]:
        """Return the records of the table; rows of rates begin at `first`."""
        c = len(self.limits)
        # Two rows for each joint, behind those of all pairs.
        rows = first + np.arange(2 * c)
        return {
            LIMITED: {
                "mass_row": np.repeat(np.arange(c), 2),
                "torque_side": np.tile([1.0, -1.0], c),
                "torque": np.repeat(self.limits, 2),
                "torque_row": rows,
                "torque_near": rows,
            }
        }


def torque_table(columns: StepColumns) -> Table:
    """Return the table of limits, whose rows are behind those of pairs."""
    limit = columns.mass_row, columns.torque_side, columns.torque
    return columns.table(LIMITED, *limit, columns.torque_row, columns.torque_near)


def torque_stages(
    columns: StepColumns, table: Table, chosen: tuple[int, ...]
) -> tuple[Stage, ...]:
    """Return the stages that write the rows of torques, and `braking` within them.

    That is the hardest braking within the limits, between `full_braking` and continuing
    at the same rates; all is linear.

    Args:
        columns: The columns.
        table: The table of limits.
        chosen: Indices of the joints that are moved.
    """
    return (
        each(
            table,
            columns.stage(
                partial(_torque_row, chosen=chosen),
                writes=(columns.torque_row, columns.torque_near),
            ),
        ),
        columns.stage(_whole_braking, writes=columns.braking_part),
        each(
            table,
            columns.stage(partial(_part, chosen=chosen), writes=columns.braking_part),
        ),
        columns.stage(partial(_softened, chosen=chosen), writes=columns.braking),
    )


def _torque_row(
    mass_row: Vector,
    torque_side: Number,
    torque: Number,
    qd: Vector,
    dt: Number,
    *,
    chosen: tuple[int, ...],
) -> tuple[InequalityRow, Vector]:
    """Return side (M (x - v) / dt + h) >= -torque as a row, divided by |M| / dt."""
    # Only joints that are moved count: others keep their rates, M (x - v) is 0.
    M = [mass_row[k] for k in chosen]
    length = sqrt(maximum(inner(M, M), TINY))
    a: list[Number] = [torque_side * x / length for x in M]
    # side (M (x - v) / dt + h) >= -torque, solved for side M x.
    room = torque + torque_side * mass_row[len(qd)]
    b = inner(a, [qd[k] for k in chosen]) - room * dt / length
    # Joints without mass or without a limit have no row.
    counts = select(length > 1e-100, select(torque < np.inf, 1.0, 0.0), 0.0)
    return InequalityRow.of(slopes=a, bound=b, still=0.0, room=0.0), [counts]


def _whole_braking(dt: Number) -> Number:
    return 1.0 + 0.0 * dt


def _part(
    torque_row: InequalityRow,
    torque_near: Vector,
    qd: Vector,
    full_braking: Vector,
    braking_part: Number,
    *,
    chosen: tuple[int, ...],
) -> Number:
    """Return the part of full braking that this row and those before it allow."""
    a, b = torque_row.slopes, torque_row.bound
    # What is left of the row with the present rates, and with full braking.
    coasting = inner(a, [qd[k] for k in chosen]) - b
    braking = inner(a, list(full_braking)) - b
    # Coasting meets the row and braking misses it: the row is met up to that part.
    is_short = select(braking < 0.0, torque_near[0], 0.0) * maximum(coasting, 0.0)
    # All rows together: the least part that any of them allows.
    part = minimum(braking_part, coasting / maximum(coasting - braking, TINY))
    return select(is_short > 0.0, part, braking_part)


def _softened(
    qd: Vector,
    full_braking: Vector,
    low: Vector,
    high: Vector,
    braking_part: Number,
    *,
    chosen: tuple[int, ...],
) -> Vector:
    """Return that part of the way from the present rates to full braking."""
    # Clipping keeps rounding from leading beyond bounds of rates.
    softened: list[Number] = []
    for k, r, a, b in zip(chosen, full_braking, low, high, strict=True):
        v = qd[k]
        rate = minimum(maximum(v + braking_part * (r - v), a), b)
        softened.append(select(braking_part < 1.0, rate, r))
    return softened


def torque_guard(columns: StepColumns, table: Table) -> tuple[Stage, ...]:
    """Return the stages that brake where the best rates take more than the limits.

    That is where nothing between the bounds of rates keeps them.
    """
    return *_excess(columns, table), columns.stage(_guarded, writes=columns.x)


def _guarded(x: Vector, full_braking: Vector, torque_excess: Number) -> Vector:
    # No rates between the bounds keep the limits: full braking is the least evil.
    is_met = torque_excess <= 0.0
    return [select(is_met, a, b) for a, b in zip(x, full_braking, strict=True)]


def torque_verdict(columns: StepColumns, table: Table) -> tuple[Stage, ...]:
    """Return the stages that make `passed` 1 where the rates take too much."""
    judge = columns.stage(_judged, writes=columns.passed)
    return *_excess(columns, table), judge


def _judged(passed: Number, torque_excess: Number) -> Number:
    return select(torque_excess <= 0.0, passed, 1.0)


def _excess(columns: StepColumns, table: Table) -> tuple[Stage, ...]:
    """Return the stages that find by how much rows are missed most, 0 if none is."""
    excess = columns.torque_excess
    return (
        columns.stage(_no_excess, writes=excess),
        each(table, columns.stage(_missed, writes=excess)),
    )


def _no_excess(dt: Number) -> Number:
    return 0.0 * dt


def _missed(
    torque_row: InequalityRow, torque_near: Vector, x: Vector, torque_excess: Number
) -> Number:
    a, b = torque_row.slopes, torque_row.bound
    # Rounding counts in parts of the row, whose a has unit length.
    least = b - BROKEN * (1.0 + absolute(b))
    short = select(torque_near[0] > 0.0, least - inner(a, list(x)), 0.0)
    # The greatest miss decides: one row is enough to brake.
    return maximum(torque_excess, short)
