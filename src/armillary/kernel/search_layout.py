"""What a search reads and keeps: its plan, its calls, and the state of its lanes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

import msgspec

from armillary.kernel.machine_type import F64, I32, I64, PTR
from armillary.kernel.memory import Struct

if TYPE_CHECKING:
    from armillary.kernel.builder import FunctionBuilder, Operand, Value

__all__ = [
    "CALL",
    "CLOSE",
    "ENDING",
    "FAR",
    "INVALID",
    "NEVER",
    "PACK",
    "PLAN",
    "SOLVED",
    "STARTS",
    "STATUS",
    "STEPS",
    "STOPPED",
    "UNSOLVED",
    "SearchLayout",
]

SOLVED, UNSOLVED, INVALID, STOPPED = 0, 1, 2, 6
"""How a problem ends."""

STATUS, STEPS, STARTS = range(3)
"""Places in an ending: how the problem ends; steps from the start that leads to what is
written; the number of that start from 1 on, or of all starts where none is good.
"""

ENDING: Final = 3  # numbers of an ending

CLOSE: Final = 0.5
"""An answer of which no unknown is farther from a start is taken at once."""

NEVER: Final = 2**63 - 1
"""The number of a start that comes after all others."""

PACK: Final = 8
"""Entries of the table of starts that are compared at once."""

FAR: Final = 2**31 - 1

PLAN: Final = Struct.of(
    features=(PTR, 1),
    starts=(PTR, 1),
    offsets=(PTR, 1),
    grid=(PTR, 1),
    columns=(PTR, 1),
    factors=(PTR, 1),
    axes=(PTR, 1),
    void=(I64, 1),
    tolerances=(PTR, 1),
    lower=(PTR, 1),
    span=(PTR, 1),
    seed=(I64, 1),
    constants=(PTR, 1),  # what all problems share
    max_steps=(I64, 1),
    stale_from=(I64, 1),
    patient_after=(I64, 1),
    patient_steps=(I64, 1),
    max_starts=(I64, 1),
    table_starts=(I64, 1),
    staleness=(PTR, 1),
)
"""How to search, for any number of problems: see `search.make_plan`."""

CALL: Final = Struct.of(
    count=(I64, 1),
    problems=(PTR, 1),
    stride=(I64, 1),
    seeds=(PTR, 1),
    answers=(PTR, 1),
    residuals=(PTR, 1),
    endings=(PTR, 1),
    together=(I64, 1),  # whether all lanes work on one problem
    lanes=(I64, 1),  # how many lanes work
    chained=(I64, 1),  # whether each problem starts where the one before was solved
    deadline=(I64, 1),  # when to stop [ns], 0 for never
    clock=(PTR, 1),  # clock_gettime
    clock_id=(I64, 1),
)
"""What a call of a search is about."""


class SearchLayout(msgspec.Struct, frozen=True, dict=True):
    """Where a search keeps the numbers of its problems, and how they are moved.

    Attributes:
        n: Unknowns.
        m: Parameters of a problem.
        c: Parameters that all problems share.
        k: Errors.
        lanes: Problems at once.
    """

    n: int
    m: int
    c: int
    k: int
    lanes: int

    @cached_property
    def state(self) -> Struct:
        """What a search keeps while it runs; arrays have an element for each lane."""
        w = self.lanes
        reals, whole = F64.wide(w), I64.wide(w)
        eight = I32.wide(PACK)
        return Struct.of(
            here=(reals, self.n),  # unknowns, in turns here
            there=(reals, self.n),  # and there
            parameters=(reals, self.m),
            shared=(reals, self.c),
            errors=(reals, self.k),
            age=(whole, 1),  # steps since the start
            works=(whole, 1),  # whether the lane works, 1 or 0
            last_error=(reals, 1),  # at the step before
            verdict=(reals, 1),  # what the guard says
            problem=(I64, w),  # which one
            tries=(whole, 1),  # the number of the lane's start, from 1 on
            begun=(I64, w),  # starts made for the problem
            first_good=(I64, w),  # the number of the first that led to an answer
            least_error=(F64, w),  # at the end of a start
            taken=(I32, w),  # distance of the last start taken from the table
            distances=(eight, w),  # of those that were found with it
            packs=(eight, w),  # in which they lie
            next=(I64, 1),  # the next problem
            left=(I64, 1),  # problems to finish
            failures=(I64, 1),  # problems not solved
        )

    def in_lane(self, s: Value, field: str, lane: Operand) -> Value:
        """Return the number in one lane of a vector of the state."""
        kind = self.state.kinds[field].scalar
        return s.function.load(kind, self.state.address(s, field), lane)

    def set_lane(self, value: Operand, s: Value, field: str, lane: Operand) -> None:
        """Write the number in one lane of a vector of the state."""
        if not isinstance(value, type(s)):
            kind = self.state.kinds[field].scalar
            value = s.function.constant(kind, cast("float", value))
        s.function.store(value, self.state.address(s, field), lane)

    def problem(self, f: FunctionBuilder, index: Value) -> Value:
        """Return where the parameters of a problem lie."""
        stride = CALL.load(f["call"], "stride")
        return f.element(CALL.load(f["call"], "problems"), F64, index * stride)

    def row(self, f: FunctionBuilder, field: str, index: Value, size: int) -> Value:
        """Return where the row of a problem lies in an array of the call."""
        # Endings are whole numbers of the same size as reals.
        return f.element(CALL.load(f["call"], field), F64, index * size)

    def put(
        self, f: FunctionBuilder, column: Value, lane: Value, row: Value, n: int
    ) -> None:
        """Copy a row into a lane of columns."""
        with f.loop(n) as k:
            f.store(f.load(F64, row, k), column, k * self.lanes + lane)

    def get(
        self, f: FunctionBuilder, row: Value, column: Value, lane: Value, n: int
    ) -> None:
        """Copy a lane of columns into a row."""
        with f.loop(n) as k:
            f.store(f.load(F64, column, k * self.lanes + lane), row, k)
