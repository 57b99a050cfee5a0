"""The code of a `Subdivide`: the interval of one row, covered piece by piece.

It does what `subdivision.py` does, with a piece in each lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I1, I64, Type
from armillary.kernel.stages import Subdivide
from armillary.kernel.subdivision import PIECES, ROOM, SHIFTS

__all__ = ["SubdivisionCode"]


class SubdivisionCode:
    """The loop over the pieces of one row, under construction."""

    def __init__(self, f: FunctionBuilder, real: Type, stage: Subdivide) -> None:
        """Reserve memory.

        Args:
            f: The function.
            real: The type of columns: a vector with a lane for each piece.
            stage: The region.
        """
        self.f, self.real, self.kind = f, real, real.scalar
        self.stage = stage
        self.lows, self.highs = (f.reserve(ROOM * self.kind.bytes) for _ in range(2))
        self.stack = self.lows, self.highs
        # Of the pieces of a round; vectors are loaded and stored there.
        room = max(PIECES, real.lanes) * self.kind.bytes
        names = ("start", "stop", "at", "back", "ahead", "left_back", "left_ahead")
        self.pieces = {name: f.reserve(room) for name in names}
        self.count = f.variable(I64, 0)
        self.end = f.variable(self.kind, 0.0)
        self.ended = f.variable(self.kind, 0.0)
        self.joined = f.variable(self.kind, 0.0)
        self.longest = f.variable(self.kind, 0.0)

    def load(self, name: str, k: Value) -> Value:
        """Return a number of a piece."""
        return self.f.load(self.kind, self.pieces[name], k)

    def store(self, value: Value, name: str, k: Value) -> None:
        """Write a number of a piece."""
        self.f.store(value, self.pieces[name], k)

    def push(self, low: Value, high: Value) -> None:
        """Put a part on the stack."""
        n = self.count.get()
        self.f.store(low, self.lows, n)
        self.f.store(high, self.highs, n)
        self.count.set(n + 1)

    def write(
        self, longest: Value, columns: Sequence[Value], run: Callable[[], None]
    ) -> tuple[Value, Value]:
        """Write the loop; return up to where the interval is covered, and if it ends.

        Args:
            longest: No piece is longer at first.
            columns: Where `at`, `back`, `ahead` and `ending` of the pieces are.
            run: Writes the stages.
        """
        f = self.f
        zero, one = (f.constant(self.kind, x) for x in (0.0, 1.0))
        self.count.set(0)
        self.push(zero, one)
        self.end.set(one)
        self.ended.set(zero)
        self.longest.set(longest)
        rounds = f.variable(I64, 0)
        with f.forever() as loop:
            # All is covered, up to the end.
            n = self.count.get()
            loop.leave(n.equals(0))
            low, high = (f.load(self.kind, x, n - 1) for x in self.stack)
            is_short = (high - low) <= self.stage.shortest
            is_late = rounds.get() >= self.stage.limit
            is_full = n > ROOM - 2 * PIECES
            # Where it does not go on, a last round tells whether it ends there.
            is_last = is_short | is_late | is_full
            with f.when(is_last):
                self.stay(low)
            with f.otherwise():
                self.divide(n)
            rounds.set(rounds.get() + 1)
            before = self.count.get()
            endings = self.run(columns, run)
            with f.when(is_last):
                self.end.set(low)
                self.ended.set(endings.differs(0).select(one, zero))
                loop.leave()
            if self.stage.anywhere:
                with f.when(endings.differs(0)):
                    self.end.set(zero)
                    self.ended.set(one)
                    loop.leave()
            self.keep(endings)
            with f.when(self.count.get().equals(before)):
                self.longest.set(self.longest.get() * 2.0)
        return self.end.get(), self.ended.get()

    def stay(self, at: Value) -> None:
        """Let all pieces be a point."""
        f = self.f
        zero = f.constant(self.kind, 0.0)
        with f.loop(max(PIECES, self.real.lanes)) as k:
            for name, value in (("at", at), ("back", zero), ("ahead", zero)):
                self.store(value, name, k)

    def divide(self, n: Value) -> None:
        """Divide the first parts of the stack, and take them off."""
        f = self.f
        # Four parts, two or one, of 2, 4 or 8 pieces: as many as there are, if all but
        # the last of them are short enough. The rest of that one waits.
        shift = f.variable(I64, SHIFTS)
        with f.forever() as fewer:
            smaller = shift.get() - 1
            parts = f.constant(I64, PIECES) >> smaller
            fewer.leave((smaller < 1) | (n < parts))
            most = (f.constant(I64, 1) << smaller).to(self.kind, "sitofp")
            most = most * self.longest.get()
            is_long = f.variable(I1, 0)
            with f.loop(parts - 1) as k:
                part = n - 1 - k
                begin, end = (f.load(self.kind, x, part) for x in self.stack)
                is_long.set(is_long.get() | ((end - begin) > most))
            fewer.leave(is_long.get())
            shift.set(smaller)
        shift = shift.get()
        each = f.constant(I64, 1) << shift
        parts = f.constant(I64, PIECES) >> shift
        left, last = f.variable(I64, n - parts), n - parts
        low, high = (f.load(self.kind, x, last) for x in self.stack)
        cut = each.to(self.kind, "sitofp") * self.longest.get() + low
        cut = (cut < high).select(cut, high)
        size = f.constant(self.kind, 1.0) / each.to(self.kind, "sitofp")
        is_closing = self.ended.get() > 0.0
        with f.loop(PIECES) as k:
            part, within = n - 1 - (k >> shift), k & (each - 1)
            begin, end = (f.load(self.kind, x, part) for x in self.stack)
            end = part.equals(last).select(cut, end)
            width = (end - begin) * size
            start = within.to(self.kind, "sitofp") * width + begin
            stop = (within + 1).to(self.kind, "sitofp") * width + begin
            stop = (within + 1).equals(each).select(end, stop)
            # In the middle of a piece; where an end is known, at its beginning, so that
            # the first point of the interval that ends it is found.
            at = is_closing.select(start, (start + stop) * 0.5)
            for name, value in (
                ("start", start),
                ("stop", stop),
                ("at", at),
                ("back", at - start),
                ("ahead", stop - at),
            ):
                self.store(value, name, k)
        if self.real.lanes > PIECES:  # lanes that are left over repeat the last piece
            with f.loop(self.real.lanes, PIECES) as k:
                for name in ("at", "back", "ahead"):
                    self.store(self.load(name, f.constant(I64, PIECES - 1)), name, k)
        with f.when(cut < high):
            f.store(cut, self.lows, last)
            left.set(last + 1)
        self.count.set(left.get())

    def run(self, columns: Sequence[Value], run: Callable[[], None]) -> Value:
        """Run the stages for all pieces; return a bit for each that has an end."""
        f, real, lanes = self.f, self.real, self.real.lanes
        at, back, ahead, ending = columns
        endings = f.variable(I64, 0)
        with f.loop(PIECES, step=lanes) as first:
            for name, column in (("at", at), ("back", back), ("ahead", ahead)):
                source = f.element(self.pieces[name], self.kind, first)
                f.store(f.load(real, source), column)
            f.store(f.constant(real, 0.0), ending)
            run()
            for name, column in (("left_back", back), ("left_ahead", ahead)):
                target = f.element(self.pieces[name], self.kind, first)
                f.store(f.load(real, column), target)
            found = (f.load(real, ending) > 0.0).mask() << first
            endings.set(endings.get() | found)
        return endings.get() & ((1 << PIECES) - 1)

    def keep(self, endings: Value) -> None:
        """Put back what is left of the pieces, the first on top of the stack."""
        f = self.f
        last = f.variable(I64, PIECES)
        self.joined.set(math.nan)
        with f.when(endings.differs(0)):
            # Nothing counts behind the first end.
            k = f.count_trailing_zeros(endings)
            last.set(k)
            start, at = self.load("start", k), self.load("at", k)
            self.count.set(0)
            self.end.set(at)
            self.ended.set(1.0)
            with f.when(start < at):
                self.push(start, at)
                self.joined.set(start)
        n = last.get()
        with f.loop(n) as from_last:
            k = n - 1 - from_last
            start, stop, at = (self.load(x, k) for x in ("start", "stop", "at"))
            covered = self.load("left_ahead", k)
            # NaN covers nothing.
            with f.when(~(covered >= self.load("ahead", k))):
                low = at + (covered > 0.0).select(covered, 0.0)
                # It is joined to what is left at the beginning of the next piece.
                is_joined = self.joined.get().equals(stop)
                with f.when(is_joined):
                    f.store(low, self.lows, self.count.get() - 1)
                with f.otherwise():
                    self.push(low, stop)
            self.joined.set(math.nan)
            covered = self.load("left_back", k)
            with f.when(~(covered >= self.load("back", k))):
                self.push(start, at - (covered > 0.0).select(covered, 0.0))
                self.joined.set(start)
