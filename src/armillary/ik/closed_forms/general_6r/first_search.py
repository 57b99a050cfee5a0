"""The first search for all solutions of a target, as one kernel.

A target goes through all of it before the next one does: lanes are samples of its
determinant, arcs of the circle, roots, then solutions. So no lane waits for another
target, and a single one takes no longer than its share of many.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from armillary.ik.closed_forms.general_6r.nearby import (
    candidates_program,
    equations_program,
    nearby_program,
)
from armillary.ik.closed_forms.general_6r.real_roots import (
    LOOKS,
    REAL_ROOTS_SCRATCH,
    REAL_ROOTS_TABLE_ROWS,
    REAL_ROOTS_TABLES,
    real_root_stages,
)
from armillary.ik.closed_forms.general_6r.roots import loose
from armillary.ik.closed_forms.general_6r.stages import (
    KEYS,
    MOST_STEPS,
    ORDER,
    newton_program,
)
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Abreast, Each, Stage, While
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, floor, maximum, select

__all__ = ["KEY", "REGULAR", "SLOTS", "STATE", "first_search_kernel"]

SLOTS = 20
"""Solutions that Newton's method starts from, at most."""

STATE, REGULAR, KEY = 6, 7, 8
"""Behind the angles of a solution: 1 if it is one that no other is, else 0; whether it
is regular; its keys."""

NUMBERS = KEY + KEYS
_STARTS = 3 * LOOKS

_CHAIN = Table("chain", (reals("chain", (5, 3, 4)),), is_single=True)
_TABLES = (
    _CHAIN,
    Table(
        "ones_near",
        (
            index("angle", "looks_of"),
            index("start0", "starts_of"),
            index("good0", "goods_of"),
        ),
    ),
    Table(
        "twos_near",
        (
            index("wide_angle", "looks_of"),
            index("start1", "starts_of"),
            index("good1", "goods_of"),
            index("start2", "starts_of"),
            index("good2", "goods_of"),
        ),
    ),
    Table("starts", (index("start", "starts_of"), index("solution", "solutions"))),
    Table("solved", (reals("turn"), index("solved", "solutions"))),
)

_looks = np.arange(LOOKS)
_TABLE_ROWS: dict[str, dict[str, Any]] = {
    "ones_near": dict.fromkeys(("angle", "start0", "good0"), _looks),
    "twos_near": {
        "wide_angle": _looks,
        **dict.fromkeys(("start1", "good1"), LOOKS + _looks),
        **dict.fromkeys(("start2", "good2"), 2 * LOOKS + _looks),
    },
    "starts": {
        "start": np.arange(_STARTS),
        # more than there is room for is noticed
        "solution": np.minimum(np.arange(_STARTS), SLOTS - 1),
    },
    "solved": dict.fromkeys(("turn", "solved"), np.arange(SLOTS)),
}


def first_search_kernel(
    order: Mapping[str, Any],
    links: Any,
    *,
    missed: float,
    error: float,
    apart: float,
) -> Kernel:
    """Return the kernel `target` (4, 4) -> `solutions` (SLOTS, NUMBERS), `is_sure`.

    `is_sure` is 1 where those are all solutions of the target, each regular.

    Args:
        order: The constants of `SixAxes.order`.
        links: K in units of the scale, shape (5, 3, 4).
        missed: Square of what may miss before Newton's method.
        error: Largest error of a solution.
        apart: Keys of different solutions differ by more.
    """
    one = {name: np.asarray(value)[np.newaxis] for name, value in order.items()}
    chain = {"chain": np.asarray(links)[np.newaxis]}
    rows = {**REAL_ROOTS_TABLE_ROWS, **_TABLE_ROWS, "order": one, "chain": chain}
    return _first_search(missed, error, apart)(rows)


@cache
def _first_search(missed: float, error: float, apart: float) -> CompiledPipeline:
    stages: tuple[Stage, ...] = (
        equations_program(),
        *real_root_stages(),
        loose(_nothing, "goods_of solutions", most_real=()),
        Abreast("ones_near", _near(1, missed), chosen="ones"),
        Abreast("twos_near", _near(2, missed), chosen="twos"),
        Each(
            "chain",
            (Abreast("starts", _polish(error), chosen="goods_of", packed=True),),
        ),
        loose(_states, "states keys_of", solutions=(SLOTS, NUMBERS)),
        Abreast("solved", (_distinct(apart),), chosen="states"),
        loose(
            _sure,
            "is_sure",
            most_real=(),
            goods_of=(_STARTS,),
            solutions=(SLOTS, NUMBERS),
            states=(SLOTS,),
        ),
    )
    return compile_pipeline(
        Pipeline(
            "six_axes_first",
            (Port("target", (4, 4)),),
            (ORDER, *REAL_ROOTS_TABLES, *_TABLES),
            (Each("order", stages),),
            ("solutions", "is_sure"),
            scratch=(*REAL_ROOTS_SCRATCH, Port("starts_of", (_STARTS, 6))),
        )
    )


def _nothing(most_real: Any) -> Any:
    del most_real
    return [0.0] * _STARTS, [[0.0] * NUMBERS for _ in range(SLOTS)]


def _near(count: int, missed: float) -> tuple[Program, ...]:
    """Return the programs that seek one solution near a root, or two."""
    suffix = "_one" if count == 1 else "_two"
    names = {
        name: name + suffix for name in ("third", "fourth", "fifth", "found", "missed")
    }
    angle = "angle" if count == 1 else "wide_angle"
    nearby = nearby_program(count).renamed(
        names, inputs={"angle": angle}, outputs={"angle": "ahead"}
    )

    def starts(found: Any, misses: Any) -> Any:
        outputs: list[Any] = []
        for q, miss in zip(found, misses, strict=True):
            outputs += [q, select(miss < missed, 1.0, 0.0)]
        return outputs

    numbers = (0,) if count == 1 else (1, 2)
    written = " ".join(f"start{k} good{k}" for k in numbers)
    shapes = {"found": (count, 6), "misses": (count,)}
    last = loose(starts, written, **shapes)
    last = last.renamed({"found": "found" + suffix, "misses": "missed" + suffix})
    return nearby, candidates_program(count).renamed(names), last


def _polish(error: float) -> tuple[Stage, ...]:
    """Return the stages of Newton's method from one start."""

    def begin(start: Any) -> Any:
        return [x + 0.0 for x in start], 0.0, [0.0] * KEYS, 0.0, 1.0

    def finish(q: Any, error_of_q: Any, keys: Any, regular: Any) -> Any:
        return [*q, select(error_of_q < error, 1.0, 0.0), regular, *keys]

    return (
        loose(begin, "q error_of_q keys regular active", start=(6,)),
        While(
            "active",
            (
                newton_program().renamed(
                    {"error": "error_of_q"}, inputs={"links": "chain"}
                ),
            ),
            limit=MOST_STEPS,
        ),
        loose(finish, "solution", q=(6,), error_of_q=(), keys=(KEYS,), regular=()),
    )


def _states(solutions: Any) -> Any:
    return [row[STATE] for row in solutions], [row[KEY:] for row in solutions]


def _distinct(apart: float) -> Program:
    def formula(solved: Any, turn: Any, states: Any, keys_of: Any) -> Any:
        """Return a solution with the state 0 if one before it is the same."""
        copies: Any = 0.0
        for j in range(SLOTS - 1):
            most: Any = 0.0
            for a, b in zip(solved[KEY:], keys_of[j], strict=True):
                most = maximum(most, absolute(a - b))
            same = (most <= apart) & (turn > float(j)) & (states[j] > 0.0)
            copies = copies + select(same, 1.0, 0.0)
        state = select(copies > 0.0, 0.0, 1.0)
        return [*solved[:STATE], state, *solved[STATE + 1 :]]

    return loose(
        formula,
        "solved",
        solved=(NUMBERS,),
        turn=(),
        states=(SLOTS,),
        keys_of=(SLOTS, KEYS),
    )


def _sure(most_real: Any, goods_of: Any, solutions: Any, states: Any) -> Any:
    """Return whether there are as many solutions as roots that may be real.

    A solution where the arm is singular is a multiple root, or is on a curve.
    """
    count: Any = 0.0
    singular: Any = 0.0
    for row, state in zip(solutions, states, strict=True):
        count = count + row[STATE]
        singular = singular + state * (1.0 - row[REGULAR])
    started = sum(goods_of, 0.0)
    # Real roots are an even number: those that are not are pairs z, 1 / conj z.
    is_whole = absolute(2.0 * floor(0.5 * most_real) - count) < 0.5
    is_sure = is_whole & (singular < 0.5) & (started < SLOTS + 0.5)
    return select(is_sure, 1.0, 0.0)
