"""Rates that meet tasks in their order, scaled down by inequalities, as stages.

It is the hierarchy of `task_priority.py` with rows a_k'x >= b_k of a table. Each turn
finds how everything moves, goes through the rows for the first that x comes to, and
moves there. So the code does not grow with the rows, and rows that do not count in a
step cost nothing.

The way begins with rates `rest`, where bounds and rows hold; a row that does not hold
there may not get worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from armillary.ik.task_priority import Direction, Follower, Hierarchy, Progress
from armillary.ik.wall_slots import FAR, FREE, Hit, Slots
from armillary.kernel.pipeline import Each, Stage, When, While
from armillary.kernel.tables import Table
from armillary.spatial.ldl import Rows, inner
from armillary.spatial.vector import Number
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["ScaledRates"]

TURNS: Final = 100
"""Most corners of a way; most ways have fewer than 20."""

BROKEN: Final = 1e-9
"""Of a row, times the greatest rate or 1: how much it may be missed by."""

ROUNDING: Final = 1e-6
"""Part of the way from rest to x that may be given up for such rows."""

FEW: Final = 3
"""Rows for which there is code of its own; more of them hold x at once seldom."""

_PROBLEM = "task_rows wanted metric rest low high damping sharp"
_PROGRESS = "z remaining level scales task_pressures held change"
_SLOTS = "slots slot_rows pressures"
_DIRECTION = "moves pulls free rates least forces bound_pressures"
_HIT = "hit_time hit_number hit_row"


class ScaledRates:
    """The stages that follow a hierarchy within bounds and inequalities.

    They read the columns `task_rows` (m, n), `wanted` (m,), `metric` (n,), the diagonal
    of W, `rest`, `low` and `high` (n,), `damping` and `sharp`, and with `null` the
    column `null` (n,); see `Hierarchy`. They write

    - `x` (n,), and `scales`, one for each level;
    - `slots` and `pressures` (n,): the numbers of the rows that hold x, -1 for none,
      and how much each presses;
    - `held` (n,): 1 where x is at its greatest, -1 at its least;
    - `finished`: 0 where there were too many turns. Then x is within the limits, but
      not the best.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        n: int,
        rows: Table,
        width: int,
        *,
        null: bool,
        turns: int = TURNS,
    ) -> None:
        """Prepare the stages of one form of problem.

        Args:
            sizes: How many rows each level of tasks has, m in all.
            n: How many rates.
            rows: The table of inequalities. Its field `row` begins with a_k and b_k,
                `row_number` is k; if there is a field `is_near`, shape (1,), rows count
                where it is above 0.
            width: How many numbers `row` has, n + 1 or more.
            null: Whether rates are wanted for the freedom that is left.
            turns: Most corners of a way.
        """
        self._turns = turns
        m, vector = sum(sizes), (n,)
        self._sizes, self._n, self._rows = tuple(sizes), n, rows
        self._filters = [f"filter_{p}" for p in range(len(sizes))]
        self._problem = _PROBLEM + (" null" if null else "")
        self._shapes: dict[str, tuple[int, ...]] = {
            "task_rows": (m, n),
            "wanted": (m,),
            "scales": (len(sizes),),
            "task_pressures": (m,),
            "change": (m,),
            "slot_rows": (n, n),
            "pulls": (m + n,),
            "row": (width,),
            "is_near": (1,),
            **{f"filter_{p}": (size, size) for p, size in enumerate(sizes)},
        }
        vectors = "metric rest low high null z held slots pressures free rates forces"
        for name in f"{vectors} bound_pressures hit_row x".split():
            self._shapes[name] = vector

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return them all."""
        filters = " ".join(self._filters)
        problem, state = f"{self._problem} {filters}", f"{_PROGRESS} {_SLOTS}"
        look = f"row row_number rest z rates least slots {_HIT}"
        move = f"{problem} {state} {_DIRECTION} {_HIT}"
        turn = (
            self._stage(
                self._start, f"{_PROGRESS} {_HIT} few many", f"{problem} {state}"
            ),
            When("few", (self._aim(FEW, f"{problem} {state}"),)),
            When("many", (self._aim(self._n, f"{problem} {state}"),)),
            self._each(self._look, _HIT, look),
            self._stage(self._move, f"{state} going", move),
        )
        return (
            self._stage(
                self._begin, f"{filters} {state} {_DIRECTION} going", self._problem
            ),
            While("going", turn, self._turns),
            self._stage(_ended, "finished part", "going"),
            self._each(self._keep, "part", "row rest z part"),
            self._stage(_kept, "x finished", "rest z low high part finished"),
        )

    def _stage(
        self, formula: Callable[[Any], dict[str, Any]], outputs: str, inputs: str
    ) -> Program:
        """Return a formula, from a namespace to columns, as a program."""
        names, made = inputs.split(), outputs.split()

        def equations(*values: Any) -> Any:
            found = formula(SimpleNamespace(**dict(zip(names, values, strict=True))))
            assert list(found) == made
            return tuple(found.values()) if len(made) > 1 else found[made[0]]

        shapes = {name: self._shapes.get(name, ()) for name in names}
        return trace(equations, name=made[0], outputs=made, **shapes)

    def _each(
        self, formula: Callable[[Any], dict[str, Any]], outputs: str, inputs: str
    ) -> Stage:
        """Return the stage that runs a formula for each row that counts."""
        stage: Stage = self._stage(formula, outputs, inputs)
        if any(field.name == "is_near" for field in self._rows.fields):
            near = self._stage(
                lambda given: {"counts": given.is_near[0]}, "counts", "is_near"
            )
            return Each(self._rows.name, (near, When("counts", (stage,))))
        return Each(self._rows.name, (stage,))

    def _follower(self, given: Any, filters: Sequence[Rows] | None = None) -> Follower:
        """Return the follower of a problem, as motion beside `rest`."""
        rest = list(given.rest)
        rows = [list(row) for row in given.task_rows]
        null: list[Number] | None = None
        if hasattr(given, "null"):
            null = [a - b for a, b in zip(given.null, rest, strict=True)]
        hierarchy = Hierarchy(
            rows=rows,
            sizes=self._sizes,
            wanted=[
                a - inner(row, rest) for a, row in zip(given.wanted, rows, strict=True)
            ],
            weights=list(given.metric),
            null=null,
            bounds=(
                [minimum(a - b, 0.0) for a, b in zip(given.low, rest, strict=True)],
                [maximum(a - b, 0.0) for a, b in zip(given.high, rest, strict=True)],
            ),
            damping=given.damping,
            sharp=given.sharp,
        )
        return Follower(hierarchy, filters)

    def _kept_follower(self, given: Any) -> Follower:
        return self._follower(given, [_rows(getattr(given, f)) for f in self._filters])

    def _begin(self, given: Any) -> dict[str, Any]:
        n, filters = self._n, self._follower(given).filters
        start = [0.0] * Progress.size(self._sizes, n)
        return {
            **dict(zip(self._filters, filters, strict=True)),
            **_progress_columns(Progress.read(self._sizes, n, start)),
            **_slot_columns(Slots.empty(n)),
            **{name: _zeros(self._shapes.get(name, ())) for name in _DIRECTION.split()},
            "going": 1.0,
        }

    def _start(self, given: Any) -> dict[str, Any]:
        """Return where a level begins, and no row that x comes to yet."""
        at = self._kept_follower(given).begun(_progress(given))
        many: Number = 0.0
        for number in given.slots[FEW:]:
            many = select(number > FREE, 1.0, many)
        return {
            **_progress_columns(at),
            "hit_time": FAR,
            "hit_number": FREE,
            "hit_row": [0.0] * self._n,
            "few": 1.0 - many,
            "many": many,
        }

    def _aim(self, count: int, inputs: str) -> Program:
        """Return how everything moves where the first slots alone hold rows."""

        def aim(given: Any) -> dict[str, Any]:
            at, slots = _progress(given), _slots(given).first(count)
            d = self._kept_follower(given).direction(at, slots)
            empty = [0.0] * (self._n - len(slots.rows))
            d = d._replace(multipliers=[*d.multipliers, *empty])
            return dict(zip(_DIRECTION.split(), d, strict=True))

        return self._stage(aim, _DIRECTION, inputs)

    def _look(self, given: Any) -> dict[str, Any]:
        """Return the first of the rows before and of this one that x comes to."""
        a, b = list(given.row[: self._n]), given.row[self._n]
        speed = 0.0 - inner(a, list(given.rates))
        room = _room_at_rest(given, a, b) + inner(a, list(given.z))
        nears = speed > given.least * sum(map(absolute, a), 0.0)
        time = select(nears, maximum(room, 0.0) / select(speed > 0.0, speed, 1.0), FAR)
        for slot in given.slots:
            time = select(slot == given.row_number, FAR, time)
        first = time < given.hit_time
        return {
            "hit_time": select(first, time, given.hit_time),
            "hit_number": select(first, given.row_number, given.hit_number),
            "hit_row": [
                select(first, u, v) for u, v in zip(a, given.hit_row, strict=True)
            ],
        }

    def _move(self, given: Any) -> dict[str, Any]:
        follower = self._kept_follower(given)
        d = Direction(*(_listed(getattr(given, name)) for name in _DIRECTION.split()))
        hit = Hit(given.hit_time, given.hit_number, list(given.hit_row))
        at, slots = follower.moved(_progress(given), d, _slots(given), hit)
        levels = len(self._sizes) + hasattr(given, "null")
        more = select(at.level < float(levels), 1.0, 0.0)
        return {
            **_progress_columns(at),
            **_slot_columns(slots),
            "going": select(at.remaining > 0.0, 1.0, more),
        }

    def _keep(self, given: Any) -> dict[str, Any]:
        """Return the part of the way from rest to x on which rows hold."""
        a, b = list(given.row[: self._n]), given.row[self._n]
        terms = [u * v for u, v in zip(a, given.z, strict=True)]
        start = _room_at_rest(given, a, b)
        greatest: Number = 1.0
        for number in given.z:
            greatest = maximum(greatest, absolute(number))
        size = sum(map(absolute, a), 0.0) * greatest + start
        broken = start + sum(terms, 0.0) < 0.0 - BROKEN * size
        part = start / select(broken, 0.0 - sum(terms, 0.0), 1.0)
        return {"part": select(broken, minimum(part, given.part), given.part)}


def _room_at_rest(given: Any, a: list[Number], b: Number) -> Number:
    """Return how far rest is from a row, 0 or more."""
    return maximum(inner(a, list(given.rest)) - b, 0.0)


def _ended(given: Any) -> dict[str, Any]:
    return {"finished": 1.0 - given.going, "part": 1.0}


def _kept(given: Any) -> dict[str, Any]:
    """Return x, on the way from rest where rounding has led beyond a row."""
    x = [
        minimum(maximum(r + given.part * z, a), b)
        for r, z, a, b in zip(given.rest, given.z, given.low, given.high, strict=True)
    ]
    is_cut = given.part < 1.0 - ROUNDING
    return {"x": x, "finished": select(is_cut, 0.0, given.finished)}


def _progress(given: Any) -> Progress:
    return Progress(*(_listed(getattr(given, name)) for name in _PROGRESS.split()))


def _progress_columns(at: Progress) -> dict[str, Any]:
    return dict(zip(_PROGRESS.split(), at, strict=True))


def _slots(given: Any) -> Slots:
    return Slots(list(given.slots), _rows(given.slot_rows), list(given.pressures))


def _slot_columns(slots: Slots) -> dict[str, Any]:
    return dict(zip(_SLOTS.split(), slots, strict=True))


def _listed(value: Any) -> Any:
    return list(value) if np.ndim(value) else value


def _zeros(shape: tuple[int, ...]) -> Any:
    return [_zeros(shape[1:]) for _ in range(shape[0])] if shape else 0.0


def _rows(matrix: Iterable[Iterable[Number]]) -> Rows:
    return [list(row) for row in matrix]
