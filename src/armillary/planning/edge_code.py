"""The code of a planner that tests motions: by samples, and by proofs."""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import F64, I1, I32, I64, PTR, bits_of_lanes
from armillary.planning.code_parts import PartOfLoop, call, counted, function
from armillary.planning.layout import CALL, SETUP, STACK, WORK

__all__ = ["EdgeCode"]

FIRST_BLOCKS: Final = 64.0
"""Most blocks of pieces of a motion at first."""

BLOCKS_BETWEEN_LOOKS: Final = 256
"""Blocks of samples of one motion between two looks at the clock."""

MOST_BLOCKS: Final = 256
"""Blocks of pieces after which a quick proof gives up."""

TOUCHES: Final = -1
"""What a quick proof returns of motions that touch."""

SHORTEST: Final = 1e-4
"""Pieces that reach less far are not halved."""


class EdgeCode(PartOfLoop):
    """The functions that test motions between joint positions."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [
            self.passed(),
            self.late(),
            self.is_free(),
            self.sampled(),
            self.length(),
            self.length_of(),
            self.cut(),
            self.quick(),
            self.ends_are_proven(),
            self.proven_exactly(),
            self.straight_is_proven(),
            self.proven(),
            self.proves(),
            self.motion(),
            self.refuted(),
        ]

    def late(self) -> FunctionBuilder:
        """Return whether the deadline has passed."""
        f = function("late", I1)
        f.ret(call(f, "passed", I1, CALL.load(f["c"], "deadline")))
        return f

    def passed(self) -> FunctionBuilder:
        """Return whether a time has passed; where it is 0 no clock is read."""
        f = function("passed", I1, time=I64)
        with f.when(f["time"] <= 0):
            f.ret(f.constant(I1, 0))
        time = f.reserve(16)  # a timespec: seconds, then nanoseconds
        clock, kind = (SETUP.load(f["s"], name) for name in ("clock", "clock_id"))
        f.call(clock.text, I32, kind.to(I32, "trunc"), time)
        now = f.load(I64, time) * 1_000_000_000 + f.load(I64, time, 1)
        f.ret(now >= f["time"])
        return f

    def is_free(self) -> FunctionBuilder:
        """Return whether no lane of the columns touches, nearly or certainly."""
        f = function("is_free", I1)
        counted(f, "checks", self.lanes)
        bits = bits_of_lanes(self.lanes)
        columns, found = (WORK.load(f["w"], name) for name in ("columns", "found"))
        code = SETUP.load(f["s"], "check")
        tables = SETUP.load(f["s"], "check_tables", CALL.load(f["c"], "tight"))
        every = f.constant(bits, -1)
        flags = f.call(code.text, bits, columns, found, tables, every)
        values = f.load(self.real, found)
        touching = values.exceeds_or_nan(0.0).mask().differs(0)
        f.ret(~touching & flags.equals(0))
        return f

    def sampled(self) -> FunctionBuilder:
        """Return whether samples of the edge from `a` along `v` are free.

        The first block spans all of it, and its last lane is the end; in further ones
        all lanes step back. With constraints these are projected.
        """
        f = function("sampled", I1, length=F64)
        n = SETUP.load(f["s"], "n")
        columns, ramp, a, v = (
            WORK.load(f["w"], x) for x in ("columns", "ramp", "a", "v")
        )
        is_on = SETUP.load(f["s"], "project").differs(0)
        straight = is_on.select(WORK.load(f["w"], "rates"), columns)
        t = f.load(self.real, ramp)
        with f.loop(n) as j:
            start, way = (f.load(self.one, x, j).splat(self.lanes) for x in (a, v))
            f.store(start + way * t, straight, j)
        no = f.constant(I1, 0)
        with f.when(is_on):
            with f.when(~call(f, "project", I1)):
                f.ret(no)
            with f.when(~call(f, "steps_are_short", I1, f["length"])):
                f.ret(no)
        with f.when(~call(f, "is_free", I1)):
            f.ret(no)
        wanted = f["length"] * SETUP.load(f["s"], "resolution") * (1.0 / self.lanes)
        blocks = wanted.intrinsic("ceil")
        back = f.constant(F64, 1.0 / self.lanes) / blocks
        back = self.narrow(back)
        with f.loop(blocks.to(I64, "fptosi"), 1) as block:
            is_look = (block & (BLOCKS_BETWEEN_LOOKS - 1)).equals(0)
            with f.when(is_look), f.when(call(f, "late", I1)):
                f.ret(no)
            with f.loop(n) as j:
                less = f.load(self.one, v, j) * back
                now = f.load(self.real, straight, j)
                f.store(now - less.splat(self.lanes), straight, j)
            with f.when(is_on), f.when(~call(f, "project", I1)):
                f.ret(no)
            with f.when(~call(f, "is_free", I1)):
                f.ret(no)
        f.ret(f.constant(I1, 1))
        return f

    def length(self) -> FunctionBuilder:
        """Return the weighted length of the motion between two rows."""
        f = function("length", F64, p=PTR, q=PTR)
        weights = SETUP.load(f["s"], "weights")
        total = f.variable(F64, 0.0)
        with f.loop(SETUP.load(f["s"], "n")) as j:
            way = f.load(F64, f["q"], j) - f.load(F64, f["p"], j)
            way = way * f.load(F64, weights, j)
            total.set(total.get() + way * way)
        f.ret(total.get().sqrt())
        return f

    def length_of(self) -> FunctionBuilder:
        """Return the weighted length of a way."""
        f = function("length_of", F64, path=PTR, count=I64)
        n, total = SETUP.load(f["s"], "n"), f.variable(F64, 0.0)
        with f.loop(f["count"], 1) as k:
            p, q = (f.element(f["path"], F64, at * n) for at in (k - 1, k))
            total.set(total.get() + call(f, "length", F64, p, q))
        f.ret(total.get())
        return f

    def cut(self) -> FunctionBuilder:
        """Write the first pieces of a motion to the stack; return how many they are.

        Each block has every so-manieth of them, so that it spans the motion.
        """
        f = function("cut", I64, length=F64)
        lanes = self.lanes
        middles, halves = (WORK.load(f["w"], "stack", k) for k in range(2))
        wanted = f["length"] * SETUP.load(f["s"], "pieces") * (1.0 / lanes)
        blocks = wanted.intrinsic("ceil")
        blocks = (blocks < 1.0).select(1.0, blocks)
        blocks = (blocks > FIRST_BLOCKS).select(FIRST_BLOCKS, blocks)
        each = blocks.to(I64, "fptosi")
        half = self.narrow(f.constant(F64, 0.5 / lanes) / blocks)
        with f.loop(each) as block, f.loop(lanes) as lane:
            number = lane * each + (each - 1 - block)
            middle = self.narrow((number * 2 + 1).to(F64, "sitofp")) * half
            k = block * lanes + lane
            f.store(middle, middles, k)
            f.store(half, halves, k)
        f.ret(each * lanes)
        return f

    def quick(self) -> FunctionBuilder:
        """Return whether a motion is proven piece by piece, a piece in each lane.

        Pieces in which links may touch are halved; it gives up where links touch in the
        middle of one, or where pieces are many or short. It is 1 where the motion is
        free, `TOUCHES` where links touch, 0 where neither is known.
        """
        f = function("quick", I64, p=PTR, q=PTR)
        n, lanes, bits = SETUP.load(f["s"], "n"), self.lanes, bits_of_lanes(self.lanes)
        columns, rates, half, found, a, v = (
            WORK.load(f["w"], name)
            for name in ("columns", "rates", "half", "found", "a", "v")
        )
        stacks = middles, halves = [WORK.load(f["w"], "stack", k) for k in range(2)]
        self.edge(f, f["p"], f["q"])
        with f.loop(n) as j:
            f.store(f.load(self.one, v, j).splat(lanes), rates, j)
        length = call(f, "length", F64, f["p"], f["q"])
        count, rounds = f.variable(I64, call(f, "cut", I64, length)), f.variable(I64, 0)
        code, tables = (SETUP.load(f["s"], x) for x in ("quick", "quick_tables"))
        with f.forever() as loop:
            loop.leave(count.get().equals(0))
            some = (count.get() < lanes).select(count.get(), lanes)
            first = count.get() - some
            # Lanes that are left over repeat the first piece.
            with f.loop(lanes, some) as k:
                for stack in stacks:
                    f.store(f.load(self.one, stack, first), stack, first + k)
            t, h = (
                f.load(self.real, f.element(x, self.one, first), align=4)
                for x in stacks
            )
            with f.loop(n) as j:
                start = f.load(self.one, a, j).splat(lanes)
                f.store(start + f.load(self.real, rates, j) * t, columns, j)
            # What rounding of t and h loses is added.
            f.store(h * 1.00001 + 1e-6, half)
            every = f.constant(bits, -1)
            arguments = columns, rates, half, found, tables, every
            flags = f.call(code.text, bits, *arguments)
            values = f.load(self.real, found)
            is_hit = values.exceeds_or_nan(0.75).mask().differs(0)
            rounds.set(rounds.get() + 1)
            is_late = rounds.get() > MOST_BLOCKS
            is_full = first + 2 * lanes > STACK - lanes
            with f.when(is_late | is_full | flags.differs(0)):
                f.ret(f.constant(I64, 0))
            with f.when(is_hit):
                f.ret(f.constant(I64, TOUCHES))
            close = values.exceeds_or_nan(0.0).mask()
            close = close & ((f.constant(I64, 1) << some) - 1)
            is_short = f.load(self.one, halves, first) < SHORTEST
            with f.when(is_short & close.differs(0)):
                f.ret(f.constant(I64, 0))
            # The pieces are read here while the stack is written.
            f.store(t, found)
            f.store(h, half)
            count.set(self.halve(f, first, close, (found, half), (middles, halves)))
        f.ret(f.constant(I64, 1))
        return f

    def halve(
        self,
        f: FunctionBuilder,
        first: Value,
        bits: Value,
        pieces: tuple[Value, Value],
        stacks: tuple[Value, Value],
    ) -> Value:
        """Put halves of some pieces on the stack; return how many pieces it has.

        Args:
            f: The function.
            first: How many it has before.
            bits: Which pieces are halved.
            pieces: Where the middles of pieces are, and how far they reach.
            stacks: The same of the stack.
        """
        count, left = f.variable(I64, first), f.variable(I64, bits)
        with f.forever() as loop:
            loop.leave(left.get().equals(0))
            lane = f.count_trailing_zeros(left.get())
            left.set(left.get() & (left.get() - 1))
            at, part = (f.load(self.one, x, lane) for x in pieces)
            part = part * 0.5
            for middle in (at - part, at + part):
                f.store(middle, stacks[0], count.get())
                f.store(part, stacks[1], count.get())
                count.set(count.get() + 1)
        return count.get()

    def edge(self, f: FunctionBuilder, p: Value, q: Value) -> None:
        """Write where the motion between two rows begins, and how far it goes."""
        a, v = (WORK.load(f["w"], x) for x in ("a", "v"))
        with f.loop(SETUP.load(f["s"], "n")) as j:
            start = f.load(F64, p, j)
            f.store(self.narrow(start), a, j)
            f.store(self.narrow(f.load(F64, q, j) - start), v, j)

    def proven(self) -> FunctionBuilder:
        """Return whether the motion between two rows is proven to be free.

        Along constraints that they hold is proven, too.
        """
        f = function("proven", I1, p=PTR, q=PTR)
        with f.when(SETUP.load(f["s"], "project").differs(0)):
            f.ret(call(f, "curve_is_proven", I1, f["p"], f["q"]))
        f.ret(call(f, "straight_is_proven", I1, f["p"], f["q"]))
        return f

    def straight_is_proven(self) -> FunctionBuilder:
        """Return whether the straight motion between two rows is proven to be free.

        Exact proofs take longest where links touch. So of motions that touch but for
        roundings, or where pieces get short in edges of trees, they are not asked for.
        """
        f = function("straight_is_proven", I1, p=PTR, q=PTR)
        counted(f, "proofs")
        with f.when(SETUP.load(f["s"], "quick").differs(0)):
            found = call(f, "quick", I64, f["p"], f["q"])
            with f.when(found > 0):
                f.ret(f.constant(I1, 1))
            is_known = found.equals(TOUCHES) | CALL.load(f["c"], "sure").differs(0)
            with f.when(is_known & CALL.load(f["c"], "exact").equals(0)):
                f.ret(f.constant(I1, 0))
        f.ret(call(f, "proven_exactly", I1, f["p"], f["q"]))
        return f

    def proven_exactly(self) -> FunctionBuilder:
        """Return the same by the pipeline of `check.motion`."""
        f = function("proven_exactly", I1, p=PTR, q=PTR)
        lanes = self.prover_lanes
        ends = [WORK.load(f["w"], "ends", k) for k in range(2)]
        with f.loop(SETUP.load(f["s"], "n")) as j:
            for row, column in zip((f["p"], f["q"]), ends, strict=True):
                f.store(f.load(F64, row, j).splat(lanes), column, j)
        f.ret(call(f, "ends_are_proven", I1, f.constant(I64, 1)))
        return f

    def ends_are_proven(self) -> FunctionBuilder:
        """Return the same of the first so many lanes of `ends`."""
        f = function("ends_are_proven", I1, count=I64)
        lanes = self.prover_lanes
        wide, bits = F64.wide(lanes), bits_of_lanes(lanes)
        ends = [WORK.load(f["w"], "ends", k) for k in range(2)]
        how_far = WORK.load(f["w"], "how_far")
        code, tables = (SETUP.load(f["s"], x) for x in ("prove", "prove_tables"))
        some = (f.constant(I64, 1) << f["count"]) - 1
        active = some if bits == I64 else some.to(bits, "trunc")
        flags = f.call(code.text, bits, *ends, how_far, tables, active)
        fraction, touching = (f.load(wide, how_far, k) for k in range(2))
        bad = (~(fraction >= 1.0)).mask() | (~touching.equals(0.0)).mask()
        is_flagged = (flags & active).differs(0)
        f.ret((bad & some).equals(0) & ~is_flagged)
        return f

    def proves(self) -> FunctionBuilder:
        """Return whether motions are proven: along constraints, if these are, too."""
        f = function("proves", I1)
        has_proof, is_curved, holds = (
            SETUP.load(f["s"], name).differs(0)
            for name in ("prove", "project", "holds")
        )
        f.ret(has_proof & (~is_curved | holds))
        return f

    def motion(self) -> FunctionBuilder:
        """Return whether the motion between two rows is free: sampled, maybe proven."""
        f = function("motion", I1, p=PTR, q=PTR)
        counted(f, "edges")
        self.edge(f, f["p"], f["q"])
        length = call(f, "length", F64, f["p"], f["q"])
        with f.when(~call(f, "sampled", I1, length)):
            f.ret(f.constant(I1, 0))
        is_proven = call(f, "proves", I1) & CALL.load(f["c"], "sure").differs(0)
        with f.when(is_proven):
            f.ret(call(f, "proven", I1, f["p"], f["q"]))
        f.ret(f.constant(I1, 1))
        return f

    def refuted(self) -> FunctionBuilder:
        """Return where the first edge of a way ends that is not proven; 0 if all are.

        That is the number of a way point.
        """
        f = function("refuted", I64, path=PTR, count=I64)
        n = SETUP.load(f["s"], "n")
        with f.loop(f["count"], 1) as k:
            p, q = (f.element(f["path"], F64, at * n) for at in (k - 1, k))
            with f.when(~call(f, "proven", I1, p, q)):
                f.ret(k)
        f.ret(f.constant(I64, 0))
        return f
