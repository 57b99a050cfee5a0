"""The first search for all solutions of a target, as one kernel.

Lanes are samples of the determinant of a target, then arcs of the circle, roots and
solutions of a few targets. So hardly any lane is idle, and a single target takes no
longer than its share of a few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

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
    sample_program,
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


class RootSearch(NamedTuple):
    """How arms of one kind are searched.

    Attributes:
        name: Of the pipeline.
        order: The table of the constants of an order.
        chain: That of the chain, which Newton's method reads.
        equations: From the target to all that stages below read.
        sample: See `real_root_stages`.
        near: From roots to where Newton's method starts: `start0`, `good0`, ..., in the
            tables `ones_near` of the column `angle`, where one solution is sought, and
            `twos_near` of `wide_angle`, where two are.
        starts: How many starts are written in the one table, and in the other.
        newton: A step of it.
        steps: How many, at most.
    """

    name: str
    order: Table
    chain: Table
    equations: Program
    sample: Program
    near: tuple[Stage, ...]
    starts: tuple[int, int]
    newton: Program
    steps: int


class CompiledRootSearch(NamedTuple):
    """The code of a search, the rows of tables that all arms share, and the other."""

    pipeline: CompiledPipeline
    rows: dict[str, Any]
    chain: str


def _look_tables(starts: tuple[int, int]) -> tuple[list[Table], dict[str, Any]]:
    """Return the tables of what is written next to roots, and their rows.

    starts: See `RootSearch`.
    """
    tables: list[Table] = []
    rows: dict[str, Any] = {}
    looks, first = np.arange(LOOKS), 0
    for (name, angle), count in zip(_LOOKS, starts, strict=True):
        fields, columns = [index(angle, "looks_of")], {angle: looks}
        for k in range(first, first + count):
            fields += [index(f"start{k}", "starts_of"), index(f"good{k}", "goods_of")]
            columns |= dict.fromkeys((f"start{k}", f"good{k}"), k * LOOKS + looks)
        tables.append(Table(name, tuple(fields)))
        rows[name] = columns
        first += count
    return tables, rows


def written(first: int, count: int) -> str:
    """Return the names of outputs of starts, the first of which has a number."""
    return " ".join(f"start{k} good{k}" for k in range(first, first + count))


_CHAIN = Table("chain", (reals("chain", (5, 3, 4)),), is_single=True)
_SOLVED = Table("solved", (reals("turn"), index("solved", "solutions")))
_SOLVED_ROWS = dict.fromkeys(("turn", "solved"), np.arange(SLOTS))
_LOOKS = ("ones_near", "angle"), ("twos_near", "wide_angle")
STARTS = 1, 2
"""Starts next to a root where one solution is sought, and where two are."""


def first_search_kernel(
    order: Mapping[str, Any],
    links: Any,
    *,
    missed: float,
    error: float,
    apart: float,
) -> Kernel:
    """Return the kernel of arms whose joints turn, see `search_kernel`.

    Args:
        order: The constants of `SixAxes.order`.
        links: K in units of the scale, shape (5, 3, 4).
        missed: Square of what may miss before Newton's method.
        error: Largest error of a solution.
        apart: Keys of different solutions differ by more.
    """
    chain = {"chain": np.asarray(links)[np.newaxis]}
    compiled = _first_search(missed, error, apart)
    return search_kernel(compiled, order, chain)


def search_kernel(
    compiled: CompiledRootSearch, order: Mapping[str, Any], chain: Mapping[str, Any]
) -> Kernel:
    """Return the kernel of an order of an arm.

    It leads from `target` (4, 4) to `solutions` (SLOTS, NUMBERS), `is_sure`, which is 1
    where those are all solutions of the target, each regular, and `most_real`, how many
    there may be.

    Args:
        compiled: See `compiled_search`.
        order: The constants of the order.
        chain: The rows of the table of the chain.
    """
    one = {name: np.asarray(value)[np.newaxis] for name, value in order.items()}
    rows = {**compiled.rows, "order": one, compiled.chain: chain}
    return compiled.pipeline(rows)


@cache
def _first_search(missed: float, error: float, apart: float) -> CompiledRootSearch:
    search = RootSearch(
        name="six_axes_first",
        order=ORDER,
        chain=_CHAIN,
        equations=equations_program(),
        sample=sample_program(),
        near=near_stages(missed),
        starts=STARTS,
        newton=newton_program().renamed({}, inputs={"links": "chain"}),
        steps=MOST_STEPS,
    )
    return compiled_search(search, error, apart)


def compiled_search(
    search: RootSearch, error: float, apart: float
) -> CompiledRootSearch:
    """Return the code of a search, for all arms of its kind.

    Args:
        search: How it is done.
        error: Largest error of a solution.
        apart: Keys of different solutions differ by more.
    """
    count = LOOKS * sum(search.starts)
    starts = np.arange(count)
    looks, rows_of_looks = _look_tables(search.starts)
    rows: dict[str, Any] = {
        **REAL_ROOTS_TABLE_ROWS,
        **rows_of_looks,
        "starts": {
            "start": starts,
            # more than there is room for is noticed
            "solution": np.minimum(starts, SLOTS - 1),
        },
        "solved": _SOLVED_ROWS,
    }
    table = Table(
        "starts", (index("start", "starts_of"), index("solution", "solutions"))
    )
    stages: tuple[Stage, ...] = (
        search.equations,
        *real_root_stages(search.sample),
        loose(_nothing(count), "goods_of solutions", most_real=()),
        *search.near,
        Each(
            search.chain.name,
            (
                Abreast(
                    "starts", _polish(search, error), chosen="goods_of", packed=True
                ),
            ),
        ),
        loose(_states, "states keys_of", solutions=(SLOTS, NUMBERS)),
        Abreast("solved", (_distinct(apart),), chosen="states"),
        loose(
            _sure,
            "is_sure",
            most_real=(),
            goods_of=(count,),
            solutions=(SLOTS, NUMBERS),
            states=(SLOTS,),
        ),
    )
    pipeline = compile_pipeline(
        Pipeline(
            search.name,
            (Port("target", (4, 4)),),
            (
                search.order,
                *REAL_ROOTS_TABLES,
                search.chain,
                *looks,
                table,
                _SOLVED,
            ),
            (Each("order", stages),),
            ("solutions", "is_sure", "most_real"),
            scratch=(*REAL_ROOTS_SCRATCH, Port("starts_of", (count, 6))),
        )
    )
    return CompiledRootSearch(pipeline, rows, search.chain.name)


def _nothing(starts: int) -> Any:
    def formula(most_real: Any) -> Any:
        del most_real
        return [0.0] * starts, [[0.0] * NUMBERS for _ in range(SLOTS)]

    return formula


def without_extra() -> Stage:
    """Return the stage by which `extra` roots of an order do not count as answers."""

    def formula(most_real: Any, extra: Any) -> Any:
        return most_real - extra

    return loose(formula, "most_real", most_real=(), extra=())


def near_stages(
    missed: float, of_slide: Callable[..., Any] | None = None
) -> tuple[Stage, ...]:
    """Return the stages from roots to where Newton's method starts.

    Args:
        missed: Square of what may miss there.
        of_slide: See `candidates_program`.
    """
    return (
        Abreast("ones_near", _near(1, missed, of_slide), chosen="ones"),
        Abreast("twos_near", _near(2, missed, of_slide), chosen="twos"),
    )


def _near(
    count: int, missed: float, of_slide: Callable[..., Any] | None
) -> tuple[Program, ...]:
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

    names_of_starts = written(0 if count == 1 else STARTS[0], count)
    shapes = {"found": (count, 6), "misses": (count,)}
    last = loose(starts, names_of_starts, **shapes)
    last = last.renamed({"found": "found" + suffix, "misses": "missed" + suffix})
    return nearby, candidates_program(count, of_slide).renamed(names), last


def _polish(search: RootSearch, error: float) -> tuple[Stage, ...]:
    """Return the stages of Newton's method from one start."""

    def begin(start: Any) -> Any:
        return [x + 0.0 for x in start], 0.0, [0.0] * KEYS, 0.0, 1.0

    def finish(q: Any, error_of_q: Any, keys: Any, regular: Any) -> Any:
        return [*q, select(error_of_q < error, 1.0, 0.0), regular, *keys]

    return (
        loose(begin, "q error_of_q keys regular active", start=(6,)),
        While(
            "active",
            (search.newton.renamed({"error": "error_of_q"}),),
            limit=search.steps,
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
