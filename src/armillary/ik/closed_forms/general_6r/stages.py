"""The kernels of arms of six joints: one code for all of them.

1. `roots`: a target to the angles u_3 at which solutions may be.
2. `near`: a target and such an angle to two solutions near there, not yet exact.
3. `polish`: joint angles to those that Newton's method leads to.
4. `apart`: which of a target's solutions are those of others again.

Between them lanes are regrouped: the second and the third take one root and one
solution in each, of whatever target.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from armillary.ik.closed_forms.general_6r.eliminant import reflect
from armillary.ik.closed_forms.general_6r.nearby import (
    candidates_program,
    equations_program,
    nearby_program,
)
from armillary.ik.closed_forms.general_6r.roots import (
    TABLE_ROWS,
    TABLES,
    loose,
    root_stages,
)
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Each, While, program
from armillary.kernel.tables import Table, index, reals
from armillary.spatial.vector import add, cross, dot, scale, subtract
from armillary.trace import Port, Program
from armillary.trace.functions import (
    absolute,
    cos,
    maximum,
    minimum,
    select,
    sin,
)

__all__ = [
    "KEYS",
    "MIXED_CHAIN",
    "MOST_MIXED_STEPS",
    "apart_kernel",
    "mixed_chain",
    "near_kernel",
    "newton_of_mixed",
    "polish_kernel",
    "roots_kernel",
]

KEYS = 3
"""Numbers of a solution that differ where it does, and not by whole turns."""

_RANDOM = np.random.default_rng(3).normal(size=(KEYS, 12))
_KEY_ROWS = _RANDOM / np.linalg.norm(_RANDOM, axis=1, keepdims=True)

MOST_STEPS, MOST_MIXED_STEPS = 6, 12
EXACT = 1e-14
"""Error of the inner pose below which no step is taken."""

BENDS = 20.0
"""Error that a step leaves, at most, in squares of the largest part of it: half the sum
of 36 second derivatives, lengths in units of the arm."""

SINGULAR, SINGULAR_BY_ERROR = 1e-8, 1e-6
"""The arm is singular where |det J|, lengths in units of the arm, is less than the one,
or than the error that is left divided by the other."""

LONGEST_STEP = 0.5
PIVOT = 1e-13

ORDER = Table(
    "order",
    (reals("links", (5, 3, 4)), reals("left", (3, 9, 14)), reals("flip")),
    is_single=True,
)
ARM = Table("arm", (reals("links", (5, 3, 4)),), is_single=True)
MIXED_ARM = Table(
    "arm",
    (
        reals("links", (5, 3, 4)),
        reals("slides", (6,)),
        reals("moves", (6,)),
        reals("weight"),
    ),
    is_single=True,
)
MIXED_CHAIN = Table(
    "chain", (reals("chain", (5, 3, 4)), *MIXED_ARM.fields[1:]), is_single=True
)
PASSES = Table("passes", (reals("number"),))


def roots_kernel(order: dict[str, Any]) -> Kernel:
    """Return the kernel of roots.

    It leads from `target` (4, 4) to `angles`, `marks` (16,), `root_error` and `most`.

    order: The constants of `SixAxes.order`.
    """
    return _roots()({**TABLE_ROWS, "order": _one(order)})


def near_kernel(order: dict[str, Any], *, passes: int, count: int) -> Kernel:
    """Return the kernel `target` (4, 4), `angle` -> `found`, `missed`.

    Args:
        order: As for the roots.
        passes: Looks, each from where the one before saw the nearest solution.
        count: How many solutions it finds, one or two: (count, 6) and (count,).
    """
    tables = {"order": _one(order), "passes": {"number": np.arange(passes)}}
    return _near(count)(tables)


def polish_kernel(
    links: Any, slides: Sequence[bool], moves: int, weight: float = 1.0
) -> Kernel:
    """Return the kernel `target` (4, 4), `q` (6,) -> `q`, `error`, `keys`, `regular`.

    `regular` is 1 where no other solution is as near as the error that is left, else 0.

    Args:
        links: K in units of the scale, shape (5, 3, 4).
        slides: Which of the six slide.
        moves: How many of them move; the others are put to zero, and the error is the
            least that the first ones leave.
        weight: Of an error in length, in units of the scale, beside one in angle.
    """
    if moves == len(slides) and not any(slides):
        return _polish(mixed=False)({"arm": {"links": np.asarray(links)[np.newaxis]}})
    arm = {"links": np.asarray(links)[np.newaxis], **_mixed_fields(slides, moves)}
    return _polish(mixed=True)({"arm": {**arm, "weight": np.array([weight])}})


def mixed_chain(links: Any, slides: Sequence[bool]) -> dict[str, Any]:
    """Return the rows of `MIXED_CHAIN`, of which all six move."""
    chain = {"chain": np.asarray(links)[np.newaxis]}
    return {**chain, **_mixed_fields(slides, len(slides)), "weight": np.ones(1)}


def _mixed_fields(slides: Sequence[bool], moves: int) -> dict[str, Any]:
    return {
        "slides": np.array(slides, np.float64)[np.newaxis],
        "moves": (np.arange(len(slides)) < moves).astype(np.float64)[np.newaxis],
    }


def apart_kernel(slots: int) -> Kernel:
    """Return the kernel `keys` (slots, 3), `count`, `within` -> `new` (slots,).

    It is 1 for each of the first `count` that is not within so much of one before it.
    """
    numbers = np.arange(slots)
    return _apart(slots)({"slots": {"key": numbers, "is_new": numbers}})


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
            ("angles", "marks", "root_error", "most"),
        )
    )


@cache
def _near(count: int) -> CompiledPipeline:
    stages = (
        Each(
            "order",
            (
                equations_program(),
                Each("passes", (nearby_program(count),)),
                candidates_program(count),
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
                Port("third", (count,)),
                Port("fourth", (count, 2)),
                Port("fifth", (count, 2)),
            ),
        )
    )


@cache
def _polish(*, mixed: bool) -> CompiledPipeline:
    begin = program(_unpolished, "active error keys regular", q=(6,))
    step = newton_of_mixed() if mixed else newton_program()
    stages = (
        begin,
        Each(
            "arm",
            (
                While(
                    "active", (step,), limit=MOST_MIXED_STEPS if mixed else MOST_STEPS
                ),
            ),
        ),
    )
    return compile_pipeline(
        Pipeline(
            "six_joints_polish" if mixed else "six_axes_polish",
            (Port("target", (4, 4)), Port("q", (6,))),
            (MIXED_ARM if mixed else ARM,),
            stages,
            ("q", "error", "keys", "regular"),
        )
    )


def _unpolished(q: Any) -> Any:
    del q
    return 1.0, 0.0, [0.0] * KEYS, 0.0


@cache
def _apart(slots: int) -> CompiledPipeline:
    def formula(
        keys: Any, count: Any, within: Any, key: Any, is_new: Any, turn: Any
    ) -> Any:
        """Compare a row with those before it."""
        del is_new
        copies: Any = 0.0
        for j in range(slots - 1):
            most: Any = 0.0
            for a, b in zip(key, keys[j], strict=True):
                most = maximum(most, absolute(a - b))
            same = (most <= within) & (turn > float(j))
            copies = copies + select(same, 1.0, 0.0)
        return select(copies > 0.0, 0.0, 1.0), turn + 1.0, count - turn - 1.0

    compare = loose(
        formula,
        "is_new turn left",
        keys=(slots, KEYS),
        count=(),
        within=(),
        key=(KEYS,),
        is_new=(),
        turn=(),
    )

    def none_yet(count: Any) -> Any:
        return [0.0] * slots, 0.0, count

    begin = program(none_yet, "new turn left", count=())
    table = Table("slots", (index("key", "keys"), index("is_new", "new")))
    return compile_pipeline(
        Pipeline(
            "six_axes_apart",
            (Port("keys", (slots, KEYS)), Port("count", ()), Port("within", ())),
            (table,),
            (begin, Each("slots", (compare,), active="left")),
            ("new",),
        )
    )


@cache
def newton_program() -> Program:
    """Return a step of Newton's method on the chain X = R(q_1) K_1 ... R(q_6)."""

    def formula(q: Any, target: Any, links: Any) -> Any:
        return _step(q, target, links)

    return loose(
        formula, "q error keys regular active", q=(6,), target=(4, 4), links=(5, 3, 4)
    )


@cache
def newton_of_mixed() -> Program:
    """Return a step where some joints slide and the last may stay at zero."""
    return loose(
        _step,
        "q error keys regular active",
        q=(6,),
        target=(4, 4),
        links=(5, 3, 4),
        slides=(6,),
        moves=(6,),
        weight=(),
    )


def _step(
    q: Any,
    target: Any,
    links: Any,
    slides: Any = None,
    moves: Any = None,
    weight: Any = 1.0,
) -> Any:
    """Return q after a step; error, keys, `regular` before it; whether others follow.

    Of a last step the error is that after it.
    """
    axes, parts, frame = _chain(q, links, slides, moves)
    right, error = _errors(frame, target)
    rows = _equations(axes, frame[3], right, slides, moves)
    if moves is not None:
        rows[:3] = [[weight * x for x in row] for row in rows[:3]]
    # of fewer joints, which come first, the last rows are what least squares leave
    reflect(rows, 6)
    det: Any = 1.0
    for k in range(6):
        det = det * rows[k][k]
    det = absolute(det)
    step = _solved(rows)
    is_off: Any = error > EXACT
    ahead: list[Any] = []
    for k, (a, b) in enumerate(zip(q, step, strict=True)):
        moved = a + minimum(maximum(b, -LONGEST_STEP), LONGEST_STEP)
        if moves is not None:
            moved = moves[k] * moved
        ahead.append(select(is_off, moved, a))
    keys = [
        sum((w * x for w, x in zip(row, parts, strict=True)), 0.0)
        for row in _KEY_ROWS.tolist()
    ]
    if slides is None:
        # Most starts are so near that one step is enough. What it leaves is at most
        # BENDS max |step_k|^2: where that is below EXACT it need not be seen.
        longest: Any = 0.0
        for b in step:
            longest = maximum(longest, absolute(b))
        is_last = is_off & (det > SINGULAR) & (BENDS * longest * longest < EXACT)
        error = select(is_last, EXACT, error)
        is_off = is_off & ~is_last
    is_regular = (det > SINGULAR) & (error < SINGULAR_BY_ERROR * det)
    regular = select(is_regular, 1.0, 0.0)
    return ahead, error, keys, regular, select(is_off, 1.0, 0.0)


def _chain(
    q: Any, links: Any, slides: Any, moves: Any
) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
    """Return axes and their origins, numbers for keys, and the last frame: x, y, z, p.

    All in the frame of the first axis; arguments as for `_step`.
    """
    axes: list[Any] = []
    parts: list[Any] = []
    x, y, z, p = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    for k in range(6):
        angle, shift = q[k], 0.0
        if slides is not None:
            angle = (1.0 - slides[k]) * moves[k] * q[k]
            shift = slides[k] * q[k]
            p = add(p, scale(shift, z))
        axes.append((z, p))
        s, c = sin(angle), cos(angle)
        parts += [s if slides is None else s + shift, c]
        x, y = add(scale(c, x), scale(s, y)), subtract(scale(c, y), scale(s, x))
        if k == 5:
            break
        K = links[k]
        columns = [
            add(add(scale(K[0][j], x), scale(K[1][j], y)), scale(K[2][j], z))
            for j in range(4)
        ]
        x, y, z, p = (*columns[:3], add(p, columns[3]))
    return axes, parts, (x, y, z, p)


def _errors(frame: tuple[Any, ...], target: Any) -> tuple[list[Any], Any]:
    """Return the errors of a frame, (6,), and the largest, 1 where they say nothing.

    Of the origin, and half the sum of cross products of axes, which is sin(angle) times
    the axis of the turn that is left.
    """
    *own, p = frame
    wanted = [tuple(target[i][j] for i in range(3)) for j in range(4)]
    e = subtract(wanted[3], p)  # type: ignore[arg-type]
    turn: Any = (0.0, 0.0, 0.0)
    for a, b in zip(own, wanted, strict=False):
        turn = add(turn, cross(a, b))  # type: ignore[arg-type]
    # where the rotation is off by more than a right angle the cross products lie
    trace = sum((dot(a, b) for a, b in zip(own, wanted, strict=False)), 0.0)  # type: ignore[arg-type]
    error: Any = select(trace > 1.0, 0.0, 1.0)
    right = [*e, *scale(0.5, turn)]
    for each in right:
        error = maximum(error, absolute(each))
    return right, error


def _equations(
    axes: Sequence[Any], p: Any, right: Sequence[Any], slides: Any, moves: Any
) -> list[list[Any]]:
    """Return rows (6, 7) of J step = errors; columns of J are twists of joints at p."""
    rows: list[list[Any]] = [[] for _ in range(6)]
    for k, (axis, origin) in enumerate(axes):
        column = [*cross(axis, subtract(p, origin)), *axis]
        if slides is not None:
            column = _mixed(column, axis, slides[k], moves[k])
        for row, number in zip(rows, column, strict=True):
            row.append(number)
    for row, number in zip(rows, right, strict=True):
        row.append(number)
    return rows


def _solved(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return x (6,) of a triangle and its right side (6, 7), small pivots raised."""
    pivots = [rows[k][k] for k in range(6)]
    inverses = [1.0 / select(absolute(x) < PIVOT, PIVOT, x) for x in pivots]
    x: list[Any] = [0.0] * 6
    for k in reversed(range(6)):
        total = rows[k][6]
        for j in reversed(range(k + 1, 6)):
            total = total - rows[k][j] * x[j]
        x[k] = total * inverses[k]
    return x


def _mixed(column: list[Any], axis: Any, slides: Any, moves: Any) -> list[Any]:
    """Return the column of the Jacobian of a joint that slides, turns, or does not."""
    slid = [*axis, 0.0, 0.0, 0.0]
    return [moves * (a + slides * (b - a)) for a, b in zip(column, slid, strict=True)]
