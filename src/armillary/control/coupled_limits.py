"""Limits that couple joints, as rows of rates and a guard that they can be kept.

A limit a'q <= b is kept if joints can stop before it. Maximum braking keeps all rates
in proportion, so joints come to rest on a straight line: with rates x, the slowest to
stop needing T(x) = max |x_k| / acceleration_k, the sum rises in this step and until all
is at rest by no more than a'x (dt + T / 2). Rates are taken only if

    a'x (dt + T(x) / 2) <= b - a'q                                              (1)

Then maximum braking meets (1) in the next step: with x' = (1 - dt / T) x, T' = T - dt,
a'x' (dt + T' / 2) = a'x (T^2 - dt^2) / (2 T) <= a'x T / 2, and T / 2 is what (1) has
left. So a limit that a step keeps is kept for ever. That needs braking in proportion,
which a joint must not leave at a limit of its own: (1) holds for the limits of the
joints that are coupled, too.

`coupled_stages` gives the program of a step rows and bounds by the T of the present
rates, one step more of acceleration added, but never more than braking meets.
`coupled_guard` comes last: it takes the greatest part of the way from braking to x with
which (1) holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.control.columns import InequalityRow, PositionLimits, StepColumns
from armillary.ik.scaled_rates import RateLimits
from armillary.kernel.columns import each
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.moving_twists import MovingTwists
from armillary.model.limit_rows import LimitRows
from armillary.model.workcell import Workcell
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = [
    "CoupledLimits",
    "coupled_guard",
    "coupled_settings",
    "coupled_stages",
    "coupled_table",
]

Array = npt.NDArray[np.float64]

LIMITED: Final = "coupled_limits"
"""The table with a record for each row."""

TRIES: Final = 3
"""Parts of the way that are tried: the estimate, a half and a quarter of it; then 0."""

INSIDE: Final = 4e-10
"""How far before a limit, of unit length, rates are to end [m or rad]."""

SLACK: Final = 2e-10
"""By how much the guard lets them miss that. The solver leaves rows by up to 1e-10, and
motion along a limit must not stop for it; the limit itself is kept."""

RETURN: Final = 1e-7
"""How much faster than braking rates may have to lead back there [m/s or rad/s]."""

LATE: Final = 1e-9
"""Part of 1 that braking may lead beyond a limit before that is reported."""


class CoupledLimits(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The limits that couple the joints that a controller moves.

    Attributes:
        slopes: Rows of all joints, brought to unit length, shape (m, n).
        ends: Their greatest sums, shape (m,).
        joints: 1 for the joints that are moved and coupled, else 0, shape (c,).
        labels: What the rows are called.
    """

    slopes: Array
    ends: Array
    joints: Array
    labels: tuple[str, ...]

    @classmethod
    def of(cls, cell: Workcell, twists: MovingTwists) -> CoupledLimits | None:
        """Return the limits of the joints of `twists`, None where there are none."""
        rows: LimitRows = cell.limit_rows
        chosen = list(twists.joints)
        counts = (rows.A[:, chosen] != 0.0).any(axis=1)
        if not counts.any():
            return None
        A, b = rows.A[counts], rows.b[counts]
        lengths = np.linalg.norm(A, axis=1)
        labels = [label for label, k in zip(rows.labels, counts, strict=True) if k]
        coupled = (A[:, chosen] != 0.0).any(axis=0)
        return cls(
            A / lengths[:, None], b / lengths, coupled.astype(np.float64), tuple(labels)
        )

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def settings(self) -> dict[str, Any]:
        """Return its part of the record of settings."""
        return {
            "coupled_slopes": [self.slopes],
            "coupled_ends": [self.ends],
            "coupled_joints": [self.joints],
        }

    def records(self, first: int) -> dict[str, Mapping[str, Any]]:
        """Return the records of the table; rows of rates begin at `first`."""
        own = np.arange(len(self))
        return {
            LIMITED: {
                "made_row": own,
                "coupled_row": first + own,
                "coupled_near": first + own,
            }
        }


def coupled_settings(columns: StepColumns) -> list[Port]:
    """Return what the table of settings holds of such limits."""
    return [columns.coupled_slopes, columns.coupled_ends, columns.coupled_joints]


def coupled_table(columns: StepColumns) -> Table:
    """Return the table of limits, whose rows are behind those of pairs and torques."""
    return columns.table(
        LIMITED, columns.made_row, columns.coupled_row, columns.coupled_near
    )


class _Limits(NamedTuple):
    """Rows a'q <= b, with a of all joints, and which joints are coupled."""

    coupled_slopes: Matrix
    coupled_ends: Vector
    coupled_joints: Vector


class _Now(NamedTuple):
    """Positions and rates of all joints before the step, and its length."""

    q: Vector
    qd: Vector
    dt: Number


def coupled_stages(
    columns: StepColumns, table: Table, braking: Port, chosen: tuple[int, ...]
) -> tuple[Stage, ...]:
    """Return the stages that write rows of limits, and narrow `low` and `high`.

    Args:
        columns: The columns.
        table: The table of limits.
        braking: The rates that rows never forbid.
        chosen: Indices of the joints that are moved.
    """
    return (
        columns.stage(
            partial(_rows, chosen=chosen),
            slowing=braking,
            writes=(columns.made_rows, *columns.group(RateLimits)),
        ),
        each(
            table,
            columns.stage(_copied, writes=(columns.coupled_row, columns.coupled_near)),
        ),
    )


def _rows(
    now: _Now,
    slowing: Vector,
    limits: _Limits,
    bounds: RateLimits,
    places: PositionLimits,
    braking_time: Number,
    *,
    chosen: tuple[int, ...],
) -> tuple[Matrix, RateLimits]:
    """Return rows of rates with which joints can stop, and bounds of rates.

    They are a'x >= b with -a, the slope of the room. Bounds are those of the joints
    that are coupled, whose own limits must be kept by braking in proportion.
    """
    q, qd, dt = now
    reach = 0.5 * braking_time + 1.5 * dt
    rows: list[list[Number]] = []
    for a, end in zip(limits.coupled_slopes, limits.coupled_ends, strict=True):
        # Where rounding has led beyond what is to be kept, rates lead back by as much.
        room = maximum(end - INSIDE - inner(list(a), list(q)), 0.0 - SLACK)
        own = [0.0 - a[k] for k in chosen]
        still = 0.0 - _of_others(a, qd, chosen)
        bound = 0.0 - room / reach - still
        back = select(room < 0.0, RETURN, 0.0)
        bound = minimum(bound, inner(own, list(slowing)) + back)
        rows.append(
            list(
                InequalityRow.of(
                    slopes=own, bound=bound, still=still, room=room
                ).numbers
            )
        )
    low: list[Number] = []
    high: list[Number] = []
    for k, counts, r, a, b, down, up in zip(
        chosen,
        limits.coupled_joints,
        slowing,
        *bounds,
        places.lower,
        places.upper,
        strict=True,
    ):
        most = maximum(minimum(b, maximum(up - q[k], 0.0) / reach), r)
        least = minimum(maximum(a, minimum(down - q[k], 0.0) / reach), r)
        high.append(select(counts > 0.0, most, b))
        low.append(select(counts > 0.0, least, a))
    return rows, RateLimits(low, high)


def _of_others(a: Vector, qd: Vector, chosen: tuple[int, ...]) -> Number:
    """Return the rate of a sum that joints make which are not moved."""
    others = [k for k in range(len(qd)) if k not in chosen]
    return sum((a[k] * qd[k] for k in others), 0.0)


def _copied(made_row: InequalityRow) -> tuple[InequalityRow, Vector]:
    return made_row, [1.0]


def coupled_guard(columns: StepColumns, chosen: tuple[int, ...]) -> tuple[Stage, ...]:
    """Return the stage that scales rates towards braking until limits are kept.

    It writes `x`, `coupled_scale`, and `passed` where braking itself does not.
    """
    written = columns.x, columns.coupled_scale, columns.passed
    return (columns.stage(partial(_guarded, chosen=chosen), writes=written),)


class _Room(NamedTuple):
    """A limit, of a sum or of one joint: what is left, and how fast it is used up."""

    room: Number
    before: Number
    behind: Number


def _guarded(
    now: _Now,
    x: Vector,
    full_braking: Vector,
    limits: _Limits,
    places: PositionLimits,
    passed: Number,
    *,
    chosen: tuple[int, ...],
) -> tuple[Vector, Number, Number]:
    """Return the rates, the part of the way to x, and `passed`."""
    dt = now.dt
    rooms = _rooms(now, x, full_braking, limits, places, chosen)

    def reach_of(rates: Sequence[Number]) -> Number:
        time: Number = 0.0
        for rate, most in zip(rates, places.acceleration, strict=True):
            time = maximum(time, absolute(rate) / most)
        return dt + 0.5 * time

    def between(part: Number) -> list[Number]:
        return [r + part * (v - r) for v, r in zip(x, full_braking, strict=True)]

    def kept(part: Number) -> Number:
        """Return 1 where (1) holds on a part of the way."""
        reach = reach_of(between(part))
        good: Number = 1.0
        for room, v0, v1 in rooms:
            rise = (v0 + part * (v1 - v0)) * reach
            good = select(rise > room, 0.0, good)
        return good

    # An estimate from each limit alone; then what is tried must hold for all.
    first, last = reach_of(full_braking), reach_of(x)
    part: Number = 1.0
    late: Number = 0.0
    for room, v0, v1 in rooms:
        is_broken = v1 * last > room
        rises = v1 * last - v0 * first
        chord = (room - v0 * first) / select(rises > 0.0, rises, 1.0)
        shorter = (room / first - v0) / select(v1 > v0, v1 - v0, 1.0)
        own = select(last < first, shorter, chord)
        own = minimum(maximum(own, 0.0), 1.0)
        part = select(is_broken, minimum(part, own), part)
        beyond = v0 * first - room
        late = select(beyond > LATE * (1.0 + absolute(room)), 1.0, late)
    best: Number = 0.0
    tried = part
    for _ in range(TRIES):
        good = kept(tried)
        best = select(best > 0.0, best, good * tried)
        tried = 0.5 * tried
    rates = [select(best < 1.0, r, v) for v, r in zip(x, between(best), strict=True)]
    return rates, best, maximum(passed, late)


def _rooms(
    now: _Now,
    x: Vector,
    full_braking: Vector,
    limits: _Limits,
    places: PositionLimits,
    chosen: tuple[int, ...],
) -> list[_Room]:
    """Return all limits that are to be kept."""
    q, qd, _ = now
    rooms: list[_Room] = []
    for a, end in zip(limits.coupled_slopes, limits.coupled_ends, strict=True):
        own = [a[k] for k in chosen]
        others = _of_others(a, qd, chosen)
        rooms.append(
            _Room(
                maximum(end - INSIDE + SLACK - inner(list(a), list(q)), 0.0),
                inner(own, list(full_braking)) + others,
                inner(own, list(x)) + others,
            )
        )
    for k, counts, v0, v1, down, up in zip(
        chosen,
        limits.coupled_joints,
        full_braking,
        x,
        places.lower,
        places.upper,
        strict=True,
    ):
        for room, side in ((up - q[k], 1.0), (q[k] - down, -1.0)):
            left = select(counts > 0.0, maximum(room, 0.0) + SLACK, 1e300)
            rooms.append(_Room(left, side * v0, side * v1))
    return rooms
