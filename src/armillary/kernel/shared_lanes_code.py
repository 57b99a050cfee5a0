"""The code of an `Abreast` where records of all rows of a block share lanes.

A row has few records that run, or loops that end after different times: its lanes would
be empty half of the time. So a lane takes any record, and what its row has is brought
to it by an instruction of `permuted_lanes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from armillary.kernel.abreast_code import AbreastCode, picked
from armillary.kernel.block_rows import aligned
from armillary.kernel.builder import Value, Variable
from armillary.kernel.machine_type import I1, I64, bits_of_lanes
from armillary.kernel.pipeline_columns import read_by, read_of_row, written_by
from armillary.kernel.region_code import (
    Mask,
    PipelineCode,
    active_rows,
    each_bit,
    repeat_row,
)
from armillary.kernel.stages import Abreast, Stage, While

__all__ = ["chosen_of_all_rows", "refilled_lanes"]

FREE = 2
"""Lanes that are free before others take their place."""


def chosen_of_all_rows(
    code: PipelineCode,
    stage: Abreast,
    active: Mask,
    own: Mapping[str, Value],
    records: AbreastCode,
) -> None:
    """Write stages for the chosen records of all rows, which share lanes."""
    f = code.f
    with _shared_lanes(code, stage, active, own, records) as (bits, flags, bring):
        records.some.set(0)
        with each_bit(f, bits) as lane:
            records.note(lane)
        with records.noted_groups() as (order, noted, some):
            bring(order)
            code.flags.set(0)
            code.stages(stage.stages, None)
            with f.when(code.flags.get().differs(0), unlikely=True), f.loop(some) as k:
                bit = (code.flags.get().to(I64, "zext") >> k) & 1
                bit = bit << f.load(I64, noted, k)
                flags.set(flags.get() | bit.to(code.bits, "trunc"))


def refilled_lanes(
    code: PipelineCode,
    stage: Abreast,
    active: Mask,
    own: Mapping[str, Value],
    records: AbreastCode,
) -> None:
    """Write stages for all records of all rows; where a loop ends, a lane is free."""
    f = code.f
    with _shared_lanes(code, stage, active, own, records) as (bits, flags, bring):
        lanes = _Lanes(code, stage, records, f.variable(I64, bits))
        with lanes.until_done() as refilled:
            bring(refilled)
            lanes.begin()
        with f.when(lanes.flagged.get().differs(0), unlikely=True):
            flags.set(flags.get() | lanes.flagged.get().to(code.bits, "trunc"))


@contextmanager
def _shared_lanes(
    code: PipelineCode,
    stage: Abreast,
    active: Mask,
    own: Mapping[str, Value],
    records: AbreastCode,
) -> Generator[tuple[Value, Variable, Callable[[Value], None]]]:
    """Let lanes have columns and flags of their own while stages are written.

    Yields:
        A bit for each row whose records run; the flags of rows; and what writes code
        that brings the columns of rows to lanes, by the row of each lane, a vector.
    """
    f, shapes = code.f, code.pipeline.columns
    rows, flags = code.columns, code.flags
    of_row = read_of_row(code.pipeline, stage)
    copies = code.memories({name: shapes[name] for name in of_row})
    code.columns = {**rows, **copies, **own}
    code.fields = {n: x for n, x in code.fields.items() if n not in own}
    code.flags = f.variable(code.bits, 0)
    bits, repeated = active_rows(code, active)

    def bring(order: Value) -> None:
        for name in of_row:
            size = math.prod(shapes[name])
            picked(f, code.real, rows[name], order, copies[name], size)

    yield bits & ~repeated, flags, bring
    code.columns, code.flags = rows, flags
    with each_bit(f, bits & repeated) as lane:
        repeat_row(code, records.results, lane)


class _Lanes:
    """Which record is in each lane, and which come next, under construction.

    Attributes:
        flagged: A bit for each row that a program flagged.
    """

    def __init__(
        self, code: PipelineCode, stage: Abreast, records: AbreastCode, left: Variable
    ) -> None:
        """Prepare.

        left: A bit for each row whose records are to come.
        """
        f, lanes = code.f, code.real.lanes
        self.code, self.records, self.left = code, records, left
        (at,) = (k for k, x in enumerate(stage.stages) if isinstance(x, While))
        loop = stage.stages[at]
        assert isinstance(loop, While)
        self.before, self.loop = stage.stages[:at], loop
        self.behind = stage.stages[at + 1 :]
        self.kept = written_by(self.behind) & read_by(stage.stages)
        self.number = f.variable(I64, 0)  # of the next record of the first row left
        self.rows, self.numbers = f.reserve(8 * lanes), f.reserve(8 * lanes)
        with f.loop(lanes) as k:
            f.store(f.constant(I64, 0), self.rows, k)
        # Bits of lanes: those with a record, those that go on, those that just began.
        self.taken, self.going, self.new = (f.variable(I64, 0) for _ in range(3))
        self.turns = f.variable(code.real, 0.0)
        self.flagged = f.variable(I64, 0)
        with f.when(records.count <= 0):
            left.set(0)

    @contextmanager
    def until_done(self) -> Generator[Value]:
        """Run all; what follows brings rows to lanes, a vector, that others left."""
        f, lanes = self.code.f, self.code.real.lanes
        with f.forever() as loop:
            idle = ~self.going.get() & ((1 << lanes) - 1)
            count = f.intrinsic("ctpop", I64, idle)
            is_left = self.left.get().differs(0)
            is_due = is_left & (count >= min(FREE, lanes))
            with f.when(is_due | self.going.get().equals(0)):
                with f.when(self.taken.get().differs(0)):
                    self._end()
                self._take(idle)
                loop.leave(self.taken.get().equals(0))
                with f.when(self.new.get().differs(0)):
                    yield f.load(I64.wide(lanes), self.rows, align=8)
            self._turn()

    def _take(self, idle: Value) -> None:
        """Put the next records in idle lanes."""
        f, records = self.code.f, self.records
        self.new.set(0)
        with each_bit(f, idle) as lane, f.when(self.left.get().differs(0)):
            row, number = f.count_trailing_zeros(self.left.get()), self.number.get()
            records.take(number, row, lane)
            f.store(row, self.rows, lane)
            f.store(number, self.numbers, lane)
            self.new.set(self.new.get() | (f.constant(I64, 1) << lane))
            is_last = number + 1 >= records.count
            self.number.set(is_last.select(f.constant(I64, 0), number + 1))
            others = self.left.get() & (self.left.get() - 1)
            self.left.set(is_last.select(others, self.left.get()))
        self.taken.set(self.taken.get() | self.new.get())

    def begin(self) -> None:
        """Write the stages before the loop, for lanes that have just begun."""
        new = self._mask(self.new.get())
        self._some(self.before, new, written_by(self.before))
        self.turns.set(new.select(0.0, self.turns.get()))
        self._look()

    def _some(self, stages: Sequence[Stage], mask: Value, names: set[str]) -> None:
        """Write stages after which other lanes have in some columns what they had.

        What programs flag of other lanes, which are in the middle of their loop or
        idle, does not count.
        """
        code = self.code
        written = [
            (code.columns[name], k)
            for name in sorted(names)
            for k in range(math.prod(code.pipeline.shape_of(name)))
        ]
        kept = [self._load(base, k) for base, k in written]
        code.stages(stages, mask)
        for (base, k), value in zip(written, kept, strict=True):
            mixed = mask.select(self._load(base, k), value)
            code.f.store(mixed, base, k, align=aligned(code.real))

    def _load(self, base: Value, k: int) -> Value:
        code = self.code
        return code.f.load(code.real, base, k, align=aligned(code.real))

    def _mask(self, bits: Value) -> Value:
        """Return bits of lanes as truths."""
        lanes = self.code.real.lanes
        some = bits.to(bits_of_lanes(lanes), "trunc")
        return some.to(I1.wide(lanes), "bitcast")

    def _look(self) -> None:
        """Note which lanes go on."""
        mask = self.code.positive(self.loop.condition, self._mask(self.taken.get()))
        mask = mask & (self.turns.get() < float(self.loop.limit))
        self.going.set(mask.mask())

    def _turn(self) -> None:
        """Write the loop's stages, for lanes that go on."""
        with self.code.f.when(self.going.get().differs(0)):
            self.code.region(self.loop.stages, self._mask(self.going.get()))
            self.turns.set(self.turns.get() + 1.0)
            self._look()

    def _end(self) -> None:
        """Write the stages behind the loop, and give rows what lanes are done with."""
        code, f = self.code, self.code.f
        done = self.taken.get() & ~self.going.get()
        # what they only write, nobody reads before they run again
        self._some(self.behind, self._mask(done), self.kept)
        flags = code.flags.get().to(I64, "zext")
        with each_bit(f, done) as lane:
            row = f.load(I64, self.rows, lane)
            self.records.leave(f.load(I64, self.numbers, lane), row, lane)
            bit = ((flags >> lane) & 1) << row
            self.flagged.set(self.flagged.get() | bit)
        code.flags.set((flags & ~done).to(code.bits, "trunc"))
        self.taken.set(self.taken.get() & ~done)
