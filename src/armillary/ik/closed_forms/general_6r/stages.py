"""The kernels of arms of six revolute joints: one code for all of them.

1. `roots`: a target to the angles u_3 at which solutions may be.
2. `near`: a target and such an angle to two solutions near there, not yet exact.
3. `polish`: joint angles to those that Newton's method leads to.
4. `apart`: which of a target's solutions are those of others again.

Between them lanes are regrouped: the second and the third take one root and one
solution in each, of whatever target.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from armillary.ik.closed_forms.general_6r.eliminant import reflect
from armillary.ik.closed_forms.general_6r.nearby import (
    FOUND,
    candidates_program,
    equations_program,
    nearby_program,
)
from armillary.ik.closed_forms.general_6r.roots import (
    ROOTS,
    TABLE_ROWS,
    TABLES,
    root_stages,
)
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Each, Pipeline, While, program
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.tables import Table, index, reals
from armillary.spatial.vector import add, cross, dot, scale, subtract
from armillary.trace import Port, Program
from armillary.trace.functions import (
    absolute,
    cos,
    floor,
    maximum,
    minimum,
    select,
    sin,
)

__all__ = ["SLOTS", "apart_kernel", "near_kernel", "polish_kernel", "roots_kernel"]

SLOTS = 64
"""Solutions of a target that are compared, copies among them."""

MOST_STEPS = 6
EXACT = 1e-14
"""Error of the inner pose below which no step is taken."""

LONGEST_STEP = 0.5
PIVOT = 1e-13

ORDER = Table(
    "order",
    (reals("links", (5, 3, 4)), reals("left", (3, 9, 14)), reals("flip")),
    is_single=True,
)
ARM = Table("arm", (reals("links", (5, 3, 4)),), is_single=True)
PASSES = Table("passes", (reals("number"),))


def roots_kernel(order: dict[str, Any]) -> Kernel:
    """Return the kernel `target` (4, 4) -> `angles` (16,), `crowded`, `largest`.

    order: The constants of `SixAxes.order`.
    """
    return _roots()({**TABLE_ROWS, "order": _one(order)})


def near_kernel(order: dict[str, Any], passes: int) -> Kernel:
    """Return the kernel `target` (4, 4), `angle` -> `found` (2, 6), `missed` (2,).

    passes: How often the angle is corrected.
    """
    tables = {"order": _one(order), "passes": {"number": np.arange(passes)}}
    return _near()(tables)


def polish_kernel(links: Any) -> Kernel:
    """Return the kernel `target` (4, 4), `q` (6,) -> `q`, `error`, `pivot`.

    links: K in units of the scale, shape (5, 3, 4).
    """
    return _polish()({"arm": {"links": np.asarray(links)[np.newaxis]}})


def apart_kernel() -> Kernel:
    """Return the kernel `q` (SLOTS, 6), `count`, `within` -> `new` (SLOTS,)."""
    return _apart()({"slots": {"row": np.arange(SLOTS), "is_new": np.arange(SLOTS)}})


def _one(order: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value)[np.newaxis] for name, value in order.items()}


@cache
def _roots() -> CompiledPipeline:
    stages = (Each("order", (equations_program(),)), *root_stages())
    return compile_pipeline(
        Pipeline(
            "six_axes_roots",
            (Port("target", (4, 4)),),
            (ORDER, *TABLES),
            stages,
            ("angles", "crowded", "largest"),
        )
    )


@cache
def _near() -> CompiledPipeline:
    stages = (
        Each(
            "order",
            (
                equations_program(),
                Each("passes", (nearby_program(),)),
                candidates_program(),
            ),
        ),
    )
    return compile_pipeline(
        Pipeline(
            "six_axes_near",
            (Port("target", (4, 4)), Port("angle", ())),
            (ORDER, PASSES),
            stages,
            ("found", "missed"),
            scratch=(
                Port("third", (FOUND,)),
                Port("fourth", (FOUND, 2)),
                Port("fifth", (FOUND, 2)),
            ),
        )
    )


@cache
def _polish() -> CompiledPipeline:
    begin = program(lambda q: (1.0, 0.0, 0.0), "active error pivot", q=(6,))
    stages = (
        begin,
        Each("arm", (While("active", (_newton(),), limit=MOST_STEPS),)),
    )
    return compile_pipeline(
        Pipeline(
            "six_axes_polish",
            (Port("target", (4, 4)), Port("q", (6,))),
            (ARM,),
            stages,
            ("q", "error", "pivot"),
        )
    )


@cache
def _apart() -> CompiledPipeline:
    def formula(q: Any, count: Any, within: Any, row: Any, is_new: Any, turn: Any) -> Any:
        """Compare a row with those before it."""
        del is_new
        copies: Any = 0.0
        for j in range(SLOTS):
            most: Any = 0.0
            for k in range(6):
                gap = row[k] - q[j][k]
                gap = gap - TURN * floor(gap / TURN + 0.5)
                most = maximum(most, absolute(gap))
            same = (most <= within) & (turn > j)
            copies = copies + select(same, 1.0, 0.0)
        return select((copies > 0.0) | (turn >= count), 0.0, 1.0), turn + 1.0

    compare = replace(
        program(
            formula,
            "is_new turn",
            q=(SLOTS, 6),
            count=(),
            within=(),
            row=(6,),
            is_new=(),
            turn=(),
        ),
        is_loose=True,
    )
    begin = program(lambda count: ([0.0] * SLOTS, 0.0), "new turn", count=())
    table = Table("slots", (index("row", "q"), index("is_new", "new")))
    return compile_pipeline(
        Pipeline(
            "six_axes_apart",
            (Port("q", (SLOTS, 6)), Port("count", ()), Port("within", ())),
            (table,),
            (begin, Each("slots", (compare,))),
            ("new",),
        )
    )


TURN = float(2.0 * np.pi)


def _newton() -> Program:
    """Return a step of Newton's method on the chain X = R(q_1) K_1 ... R(q_6)."""

    def formula(q: Any, target: Any, links: Any) -> Any:
        axes: list[Any] = []
        x, y, z, p = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
        for k in range(6):
            axes.append((z, p))
            s, c = sin(q[k]), cos(q[k])
            x, y = add(scale(c, x), scale(s, y)), subtract(scale(c, y), scale(s, x))
            if k == 5:
                break
            K = links[k]
            columns = [
                add(add(scale(K[0][j], x), scale(K[1][j], y)), scale(K[2][j], z))
                for j in range(4)
            ]
            x, y, z, p = (*columns[:3], add(p, columns[3]))
        wanted = [tuple(target[i][j] for i in range(3)) for j in range(4)]
        e = subtract(wanted[3], p)  # type: ignore[arg-type]
        turn: Any = (0.0, 0.0, 0.0)
        for a, b in zip((x, y, z), wanted, strict=False):
            turn = add(turn, cross(a, b))  # type: ignore[arg-type]
        # where the rotation is off by more than a right angle the cross products lie
        trace = sum((dot(a, b) for a, b in zip((x, y, z), wanted, strict=False)), 0.0)  # type: ignore[arg-type]
        error: Any = select(trace > 1.0, 0.0, 1.0)
        right = [*e, *scale(0.5, turn)]
        for each in right:
            error = maximum(error, absolute(each))
        rows: list[list[Any]] = [[] for _ in range(6)]
        for axis, origin in axes:
            column = [*cross(axis, subtract(p, origin)), *axis]
            for row, number in zip(rows, column, strict=True):
                row.append(number)
        for row, number in zip(rows, right, strict=True):
            row.append(number)
        reflect(rows, 6)
        step: list[Any] = [0.0] * 6
        least: Any = 1e300
        for k in reversed(range(6)):
            total = rows[k][6]
            for j in range(k + 1, 6):
                total = total - rows[k][j] * step[j]
            pivot = rows[k][k]
            least = minimum(least, absolute(pivot))
            pivot = select(absolute(pivot) < PIVOT, PIVOT, pivot)
            step[k] = total / pivot
        moves = error > EXACT
        ahead = [
            select(moves, a + minimum(maximum(b, -LONGEST_STEP), LONGEST_STEP), a)
            for a, b in zip(q, step, strict=True)
        ]
        return ahead, error, least, select(moves, 1.0, 0.0)

    return replace(
        program(
            formula, "q error pivot active", q=(6,), target=(4, 4), links=(5, 3, 4)
        ),
        is_loose=True,
    )
