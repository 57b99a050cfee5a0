"""The code of a planner: RRT-Connect, shorter ways, and proofs, in one native loop.

`@plans` solves problems one after the other. It knows neither robots nor shapes: it
calls the columns of a check, which tells for some joint positions at once which of them
touch, and those of a prover, which tells how far a motion is free. The number of joints
is in the setup, so that the same code serves all cells.

Two trees grow from the start and from the goals, towards samples and then towards each
other (Kuffner and LaValle, "RRT-Connect", 2000), the smaller one first; nodes at which
edges failed are extended by near samples only (Yershova and others, "Dynamic-domain
RRTs", 2005). Edges are sampled in blocks of lanes that are spread over them, as in
Thomason, Kingston and Kavraki, "Motions in microseconds via vectorized sampling-based
planning" (2024). Ways are then shortened, by shortcuts and at corners, and proven. Where
the proof of an edge fails, edges are proven in all further steps.

Nodes have weighted positions, so that lengths of motions are those of vectors. What is
tested and proven are joint positions of 64 bits, which are the answer to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from armillary.kernel.builder import (
    FunctionBuilder,
    Operand,
    Value,
    Variable,
    module_text,
)
from armillary.kernel.machine_type import (
    F64,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Type,
    bits_of_lanes,
)
from armillary.kernel.memory import Struct
from armillary.planning.layout import (
    CALL,
    FOUND,
    FULL,
    GOAL_TOUCHES,
    GROUP,
    LATE,
    SETUP,
    STACK,
    START_TOUCHES,
    TREE,
    WORK,
)

__all__ = ["loop_code"]

FAR: Final = 1e18
"""Positions of nodes that are not there; their squares are numbers of 32 bits."""

BETWEEN_LOOKS: Final = 8
"""Samples between two looks at the clock."""

FIRST_BLOCKS: Final = 64.0
"""Most blocks of pieces of a motion at first."""

MOST_BLOCKS: Final = 256
"""Blocks of pieces after which a quick proof gives up."""

SHORTEST: Final = 1e-4
"""Pieces that reach less far are not halved."""

SHORTENINGS: Final = 5
"""How often shortcuts and corners are tried in turns."""


def loop_code(real: Type, prover_lanes: int) -> str:
    """Return the LLVM IR of `@plans(setup, work, calls, count)`.

    Args:
        real: The vectors of the check, which are those of trees.
        prover_lanes: Lanes of the prover, which computes in 64 bits.
    """
    return module_text(_LoopCode(real, prover_lanes).functions())


def function(name: str, result: Type = VOID, **more: Type) -> FunctionBuilder:
    """Begin a function that gets setup, memory and problem, and more parameters."""
    return FunctionBuilder(name, result, more={"s": PTR, "w": PTR, "c": PTR, **more})


def counted(f: FunctionBuilder, field: str, more: Operand = 1) -> None:
    """Add to a count of the problem."""
    CALL.store(CALL.load(f["c"], field) + more, f["c"], field)


def call(f: FunctionBuilder, name: str, result: Type, *more: Value) -> Value:
    """Call another of these functions."""
    return f.call(f"@{name}", result, f["s"], f["w"], f["c"], *more)


@contextmanager
def downwards(f: FunctionBuilder, first: Value, last: Operand) -> Iterator[Value]:
    """Run what follows for each integer from `first` down to `last`."""
    count = first - last + 1
    with f.loop(count) as k:
        yield first - k


@dataclass(frozen=True)
class _LoopCode:
    """The functions of the loop.

    Attributes:
        real: The vectors of the check.
        prover_lanes: Lanes of the prover.
    """

    real: Type
    prover_lanes: int

    @property
    def one(self) -> Type:
        """Return the type of a number of a tree."""
        return self.real.scalar

    @property
    def lanes(self) -> int:
        """Return how many joint positions the check takes at once."""
        return self.real.lanes

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [
            self.late(),
            self.is_free(),
            self.sampled(),
            self.length(),
            self.quick(),
            self.proven(),
            self.motion(),
            self.proof(),
            self.add(),
            self.nearest(),
            self.row(),
            self.sample(),
            self.judge(),
            self.search(),
            self.shortcuts(),
            self.corners(),
            self.shorten(),
            self.solve(),
            self.plan(),
            self.plans(),
        ]

    def narrow(self, x: Value) -> Value:
        """Return a real of 64 bits as a number of a tree."""
        return x if self.one == F64 else x.to(self.one, "fptrunc")

    def wide(self, x: Value) -> Value:
        """Return a number of a tree as a real of 64 bits."""
        return x if self.one == F64 else x.to(F64, "fpext")

    # time

    def late(self) -> FunctionBuilder:
        """Return whether the deadline has passed; without one no clock is read."""
        f = function("late", I1)
        deadline = CALL.load(f["c"], "deadline")
        with f.when(deadline <= 0):
            f.ret(f.constant(I1, 0))
        time = f.reserve(16)  # a timespec: seconds, then nanoseconds
        clock, kind = (SETUP.load(f["s"], name) for name in ("clock", "clock_id"))
        f.call(clock.text, I32, kind.to(I32, "trunc"), time)
        now = f.load(I64, time) * 1_000_000_000 + f.load(I64, time, 1)
        f.ret(now >= deadline)
        return f

    # edges

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
        all lanes step back.
        """
        f = function("sampled", I1, length=F64)
        n = SETUP.load(f["s"], "n")
        columns, ramp, a, v = (
            WORK.load(f["w"], x) for x in ("columns", "ramp", "a", "v")
        )
        t = f.load(self.real, ramp)
        with f.loop(n) as j:
            start, way = (f.load(self.one, x, j).splat(self.lanes) for x in (a, v))
            f.store(start + way * t, columns, j)
        with f.when(~call(f, "is_free", I1)):
            f.ret(f.constant(I1, 0))
        wanted = f["length"] * SETUP.load(f["s"], "resolution") * (1.0 / self.lanes)
        blocks = wanted.intrinsic("ceil")
        back = f.constant(F64, 1.0 / self.lanes) / blocks
        back = self.narrow(back)
        with f.loop(blocks.to(I64, "fptosi"), 1):
            with f.loop(n) as j:
                less = f.load(self.one, v, j) * back
                now = f.load(self.real, columns, j)
                f.store(now - less.splat(self.lanes), columns, j)
            with f.when(~call(f, "is_free", I1)):
                f.ret(f.constant(I1, 0))
        f.ret(f.constant(I1, 1))
        return f

    def quick(self) -> FunctionBuilder:
        """Return whether a motion is proven piece by piece, a piece in each lane.

        Pieces in which links may touch are halved; it gives up where links touch in the
        middle of one, or where pieces are many or short.
        """
        f = function("quick", I1, p=PTR, q=PTR)
        n, lanes = SETUP.load(f["s"], "n"), self.lanes
        columns, rates, half, found, a, v = (
            WORK.load(f["w"], name)
            for name in ("columns", "rates", "half", "found", "a", "v")
        )
        middles, halves = (WORK.load(f["w"], "stack", k) for k in range(2))
        self.edge(f, f["p"], f["q"])
        with f.loop(n) as j:
            f.store(f.load(self.one, v, j).splat(lanes), rates, j)
        # At first a lane has every so-manieth piece, so that a block spans the motion.
        length = call(f, "length", F64, f["p"], f["q"])
        wanted = length * SETUP.load(f["s"], "pieces") * (1.0 / lanes)
        blocks = wanted.intrinsic("ceil")
        blocks = (blocks < 1.0).select(1.0, blocks)
        blocks = (blocks > FIRST_BLOCKS).select(FIRST_BLOCKS, blocks)
        each = blocks.to(I64, "fptosi")
        whole = self.narrow(f.constant(F64, 0.5 / lanes) / blocks)
        count = f.variable(I64, 0)
        with f.loop(each) as block, f.loop(lanes) as lane:
            number = lane * each + (each - 1 - block)
            middle = self.narrow((number * 2 + 1).to(F64, "sitofp")) * whole
            f.store(middle, middles, count.get())
            f.store(whole, halves, count.get())
            count.set(count.get() + 1)
        rounds = f.variable(I64, 0)
        bits = bits_of_lanes(lanes)
        code, tables = (SETUP.load(f["s"], x) for x in ("quick", "quick_tables"))
        with f.forever() as loop:
            loop.leave(count.get().equals(0))
            some = count.get()
            some = (some < lanes).select(some, lanes)
            first = f.variable(I64, count.get() - some)
            count.set(first.get())
            # Lanes that are left over repeat the first piece.
            with f.loop(lanes, some) as k:
                for stack in (middles, halves):
                    value = f.load(self.one, stack, first.get())
                    f.store(value, stack, first.get() + k)
            t, h = (
                f.load(self.real, f.element(x, self.one, first.get()), align=4)
                for x in (middles, halves)
            )
            with f.loop(n) as j:
                start = f.load(self.one, a, j).splat(lanes)
                way = f.load(self.real, rates, j)
                f.store(start + way * t, columns, j)
            # What rounding of t and h loses is added.
            f.store(h * 1.00001 + 1e-6, half)
            flags = f.call(
                code.text, bits, columns, rates, half, found, tables, f.constant(bits, -1)
            )
            values = f.load(self.real, found)
            close = f.variable(I64, values.exceeds_or_nan(0.0).mask())
            is_hit = values.exceeds_or_nan(0.75).mask().differs(0)
            rounds.set(rounds.get() + 1)
            is_late = rounds.get() > MOST_BLOCKS
            is_full = first.get() + 2 * lanes > STACK - lanes
            with f.when(is_hit | is_late | is_full | flags.differs(0)):
                f.ret(f.constant(I1, 0))
            close.set(close.get() & ((f.constant(I64, 1) << some) - 1))
            with f.when(close.get().differs(0)):
                with f.when(f.load(self.one, halves, first.get()) < SHORTEST):
                    f.ret(f.constant(I1, 0))
                f.store(t, found)  # which are put back while the stack is written
                f.store(h, half)
                with f.forever() as lanes_:
                    lanes_.leave(close.get().equals(0))
                    lane = f.count_trailing_zeros(close.get())
                    close.set(close.get() & (close.get() - 1))
                    part = f.load(self.one, half, lane) * 0.5
                    at = f.load(self.one, found, lane)
                    for where in (at - part, at + part):
                        f.store(where, middles, count.get())
                        f.store(part, halves, count.get())
                        count.set(count.get() + 1)
        f.ret(f.constant(I1, 1))
        return f

    def edge(self, f: FunctionBuilder, p: Value, q: Value) -> None:
        """Write where the motion between two rows begins, and how far it goes."""
        a, v = (WORK.load(f["w"], x) for x in ("a", "v"))
        with f.loop(SETUP.load(f["s"], "n")) as j:
            start = f.load(F64, p, j)
            f.store(self.narrow(start), a, j)
            f.store(self.narrow(f.load(F64, q, j) - start), v, j)

    def proven(self) -> FunctionBuilder:
        """Return whether the motion between two rows is proven to be free."""
        f = function("proven", I1, p=PTR, q=PTR)
        counted(f, "proofs")
        has_quick = SETUP.load(f["s"], "quick").differs(0)
        with f.when(has_quick), f.when(call(f, "quick", I1, f["p"], f["q"])):
            f.ret(f.constant(I1, 1))
        lanes = self.prover_lanes
        wide, bits = F64.wide(lanes), bits_of_lanes(lanes)
        ends = [WORK.load(f["w"], "ends", k) for k in range(2)]
        with f.loop(SETUP.load(f["s"], "n")) as j:
            for row, column in zip((f["p"], f["q"]), ends, strict=True):
                f.store(f.load(F64, row, j).splat(lanes), column, j)
        how_far = WORK.load(f["w"], "how_far")
        code, tables = (SETUP.load(f["s"], x) for x in ("prove", "prove_tables"))
        flags = f.call(code.text, bits, *ends, how_far, tables, f.constant(bits, 1))
        fraction, touching = (f.load(wide, how_far, k).lane(0) for k in range(2))
        f.ret((fraction >= 1.0) & touching.equals(0.0) & (flags & 1).equals(0))
        return f

    def motion(self) -> FunctionBuilder:
        """Return whether the motion between two rows is free: sampled, maybe proven."""
        f = function("motion", I1, p=PTR, q=PTR)
        counted(f, "edges")
        self.edge(f, f["p"], f["q"])
        length = call(f, "length", F64, f["p"], f["q"])
        with f.when(~call(f, "sampled", I1, length)):
            f.ret(f.constant(I1, 0))
        has_proof = SETUP.load(f["s"], "prove").differs(0)
        with f.when(has_proof & CALL.load(f["c"], "sure").differs(0)):
            f.ret(call(f, "proven", I1, f["p"], f["q"]))
        f.ret(f.constant(I1, 1))
        return f

    def proof(self) -> FunctionBuilder:
        """Return whether all edges of some way points are proven."""
        f = function("proof", I1, path=PTR, count=I64)
        n = SETUP.load(f["s"], "n")
        with f.loop(f["count"], 1) as k:
            p, q = (f.element(f["path"], F64, at * n) for at in (k - 1, k))
            with f.when(~call(f, "proven", I1, p, q)):
                f.ret(f.constant(I1, 0))
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

    # trees

    def add(self) -> FunctionBuilder:
        """Add a node to a tree that has room; return its number."""
        f = function("add", I64, tree=PTR, x=PTR, parent=I64)
        tree, n = f["tree"], SETUP.load(f["s"], "n")
        k = TREE.load(tree, "count")
        block, lane = self.place(f, tree, k, n)
        # A new group of blocks has no nodes yet.
        with f.when((k & (self.lanes * GROUP - 1)).equals(0)), f.loop(n * GROUP) as j:
            f.store(f.constant(self.real, FAR), block, j)
        with f.loop(n) as j:
            f.store(f.load(self.one, f["x"], j), block, j * self.lanes + lane)
        f.store(f["parent"], TREE.load(tree, "parent"), k)
        endless = f.constant(self.one, float("inf"))
        f.store(endless, TREE.load(tree, "radius"), k)
        TREE.store(k + 1, tree, "count")
        f.ret(k)
        return f

    def place(
        self, f: FunctionBuilder, tree: Value, k: Value, n: Value
    ) -> tuple[Value, Value]:
        """Return where the block of a node lies, and its lane there."""
        shift = self.lanes.bit_length() - 1
        block = f.element(TREE.load(tree, "x"), self.real, (k >> shift) * n)
        return block, k & (self.lanes - 1)

    def nearest(self) -> FunctionBuilder:
        """Return the node of a tree that is nearest to a position; write how far.

        Several blocks of nodes are compared at once, since each sum waits for its
        last addition.
        """
        f = function("nearest", I64, tree=PTR, x=PTR, distance=PTR)
        n, whole = SETUP.load(f["s"], "n"), self.real.integer
        best = [f.variable(self.real, 3e38) for _ in range(GROUP)]
        at = [f.variable(whole, 0) for _ in range(GROUP)]
        total = [f.variable(self.real, 0.0) for _ in range(GROUP)]
        now, first = f.variable(whole, 0), TREE.load(f["tree"], "x")
        group = self.lanes * GROUP
        count = TREE.load(f["tree"], "count") + (group - 1)
        with f.loop(count >> (group.bit_length() - 1)) as number:
            blocks = [
                f.element(first, self.real, (number * GROUP + k) * n)
                for k in range(GROUP)
            ]
            for each in total:
                each.set(0.0)
            with f.loop(n) as j:
                x = f.load(self.one, f["x"], j).splat(self.lanes)
                for block, each in zip(blocks, total, strict=True):
                    way = f.load(self.real, block, j) - x
                    square = way.contracted("fmul", way)
                    each.set(square.contracted("fadd", each.get()))
            for k in range(GROUP):
                is_nearer = total[k].get() < best[k].get()
                best[k].set(is_nearer.select(total[k].get(), best[k].get()))
                at[k].set(is_nearer.select(now.get() + k, at[k].get()))
            now.set(now.get() + GROUP)
        least, block = best[0].get(), at[0].get()
        for other, where in zip(best[1:], at[1:], strict=True):
            is_nearer = other.get() < least
            least = is_nearer.select(other.get(), least)
            block = is_nearer.select(where.get(), block)
        if self.lanes > 1:
            far = f.intrinsic("vector.reduce.fmin", self.one, least, of=self.real)
            is_least = least.equals(far.splat(self.lanes))
            lane = f.count_trailing_zeros(is_least.mask())
            blocks_of = f.reserve(whole.bytes)
            f.store(block, blocks_of)
            least, block = far, f.load(whole.scalar, blocks_of, lane)
        else:
            lane = f.constant(I64, 0)
        f.store(least.sqrt(), f["distance"])
        if whole.scalar != I64:
            block = block.to(I64, "zext")
        f.ret(block * self.lanes + lane)
        return f

    def row(self) -> FunctionBuilder:
        """Write the joint positions of weighted ones, within limits."""
        f = function("row", VOID, x=PTR, to=PTR)
        inverse, lower, upper = (
            SETUP.load(f["s"], x) for x in ("inverse", "lower", "upper")
        )
        with f.loop(SETUP.load(f["s"], "n")) as j:
            q = self.wide(f.load(self.one, f["x"], j)) * f.load(F64, inverse, j)
            low, high = f.load(F64, lower, j), f.load(F64, upper, j)
            q = (q < low).select(low, q)
            f.store((q > high).select(high, q), f["to"], j)
        f.ret()
        return f

    def get(self, f: FunctionBuilder, tree: Value, k: Value, to: Value) -> None:
        """Write the weighted position of a node."""
        n = SETUP.load(f["s"], "n")
        block, lane = self.place(f, tree, k, n)
        with f.loop(n) as j:
            f.store(f.load(self.one, block, j * self.lanes + lane), to, j)

    def node_row(
        self, f: FunctionBuilder, tree: Value, k: Value, x: Value, to: Value
    ) -> None:
        """Write the joint positions of a node: of a root, to the last bit.

        x: Room for its weighted position.
        """
        n = SETUP.load(f["s"], "n")
        parent = f.load(I64, TREE.load(tree, "parent"), k)
        with f.when(parent < 0):
            root = f.constant(I64, -1) - parent
            self.copy(f, f.element(TREE.load(tree, "roots"), F64, root * n), to, n)
        with f.otherwise():
            self.get(f, tree, k, x)
            call(f, "row", VOID, x, to)

    def copy(self, f: FunctionBuilder, source: Value, to: Value, count: Value) -> None:
        """Copy reals of 64 bits, the first one first."""
        with f.loop(count) as j:
            f.store(f.load(F64, source, j), to, j)

    def sample(self) -> FunctionBuilder:
        """Write the next sample: an additive recurrence for each joint, from the seed.

        (Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018.)
        """
        f = function("sample", VOID, to=PTR)
        counted(f, "samples")
        counter = WORK.load(f["w"], "counter")
        steps, least, span = (SETUP.load(f["s"], x) for x in ("steps", "least", "span"))
        with f.loop(SETUP.load(f["s"], "n")) as j:
            now = f.load(I64, counter, j) + f.load(I64, steps, j)
            f.store(now, counter, j)
            part = self.narrow((now >> 11).to(F64, "uitofp") * 2.0**-53)
            x = f.load(self.one, least, j) + part * f.load(self.one, span, j)
            f.store(x, f["to"], j)
        f.ret()
        return f

    # start and goals

    def judge(self) -> FunctionBuilder:
        """Write the verdicts of start and goals; return how many goals are free.

        Where one nearly touches, it is free if that is proven, and what is nearly
        touching does not count. Where the check finds nevertheless that it touches,
        edges are proven from the beginning.
        """
        f = function("judge", I64)
        n, verdicts = SETUP.load(f["s"], "n"), CALL.load(f["c"], "verdicts")
        count = CALL.load(f["c"], "goal_count") + 1
        has_proof = SETUP.load(f["s"], "prove").differs(0)
        free, is_tight = f.variable(I64, 0), f.variable(I64, 0)
        # All of them in as few blocks as there are; one by one where a block touches.
        with f.loop(count, 0, self.lanes) as first:
            left = count - first
            left = (left < self.lanes).select(left, self.lanes)
            with f.loop(self.lanes) as lane:
                k = first + (lane < left).select(lane, 0)
                self.put(f, self.end(f, k, n), lane, n)
            is_free = call(f, "is_free", I1)
            with f.loop(left) as lane:
                k = first + lane
                is_bad = f.variable(I1, 0)
                with f.when(~is_free):
                    row = self.end(f, k, n)
                    with f.loop(self.lanes) as each:
                        self.put(f, row, each, n)
                    CALL.store(0, f["c"], "tight")
                    is_bad.set(~call(f, "is_free", I1))
                    with f.when(is_bad.get() & has_proof):
                        is_bad.set(~call(f, "proven", I1, row, row))
                        CALL.store(1, f["c"], "tight")
                        is_near = ~call(f, "is_free", I1)
                        with f.when(is_near & ~is_bad.get()):
                            CALL.store(1, f["c"], "sure")
                        is_tight.set(1)
                bad = is_bad.get().to(I64, "zext")
                f.store(bad, verdicts, k)
                is_goal = (k > 0).to(I64, "zext")
                free.set(free.get() + (is_goal & (bad ^ 1)))
        CALL.store(is_tight.get(), f["c"], "tight")
        f.ret(free.get())
        return f

    def put(self, f: FunctionBuilder, row: Value, lane: Value, n: Value) -> None:
        """Write a row to a lane of the columns of the check."""
        columns = WORK.load(f["w"], "columns")
        with f.loop(n) as j:
            x = self.narrow(f.load(F64, row, j))
            f.store(x, columns, j * self.lanes + lane)

    def end(self, f: FunctionBuilder, k: Value, n: Value) -> Value:
        """Return where the start lies, or goal k - 1."""
        goals = f.element(CALL.load(f["c"], "goals"), F64, (k - 1) * n)
        return k.equals(0).select(CALL.load(f["c"], "start"), goals)

    # the search

    def search(self) -> FunctionBuilder:
        """Search for a way; return how many way points it has, 0 if none is found."""
        f = function("search", I64)
        s, w, c, n = f["s"], f["w"], f["c"], SETUP.load(f["s"], "n")
        trees = [WORK.load(w, "tree", k) for k in range(2)]
        x, target, step = (WORK.load(w, k) for k in ("sample", "target", "step"))
        here, there = (WORK.load(w, "rows", k) for k in range(2))
        goals, verdicts = CALL.load(c, "goal_count"), CALL.load(c, "verdicts")
        path = CALL.load(c, "path")
        # A straight motion may do.
        with f.loop(goals) as g:
            with f.when(f.load(I64, verdicts, g + 1).equals(0)):
                goal = self.end(f, g + 1, n)
                start = CALL.load(c, "start")
                with f.when(call(f, "motion", I1, start, goal)):
                    self.copy(f, start, path, n)
                    self.copy(f, goal, f.element(path, F64, n), n)
                    CALL.store(g, c, "goal")
                    f.ret(f.constant(I64, 2))
        self.plant(f, trees, target)
        reach = self.narrow(SETUP.load(s, "reach"))
        room, most = (SETUP.load(s, k) for k in ("room", "most"))
        radius, least_radius, growth = (
            self.narrow(SETUP.load(s, k)) for k in ("radius", "least_radius", "growth")
        )
        distance = f.reserve(8)
        which = f.variable(I64, 1)  # the tree that grows
        tree, other = f.variable(PTR, trees[1]), f.variable(PTR, trees[0])
        rounds = f.variable(I64, 0)
        with f.forever() as loop:
            rounds.set(rounds.get() + 1)
            sizes = [TREE.load(t.get(), "count") for t in (tree, other)]
            is_full = (sizes[0] >= room - 1) | (sizes[1] >= room - 1)
            loop.leave(is_full | (rounds.get() > most))
            with f.when((rounds.get() & (BETWEEN_LOOKS - 1)).equals(1)):
                loop.leave(call(f, "late", I1))
            with f.when(rounds.get() > SETUP.load(s, "wide_samples")):
                CALL.store(1, c, "tight")
            # The other tree grows unless this one is smaller by far.
            a, b = (size.to(F64, "sitofp") for size in sizes)
            with f.when(abs(a - b) < a):
                which.set(which.get() ^ 1)
                before = tree.get()
                tree.set(other.get())
                other.set(before)
            call(f, "sample", VOID, x)
            near = call(f, "nearest", I64, tree.get(), x, distance)
            d = f.load(self.one, distance)
            radii = TREE.load(tree.get(), "radius")
            r = f.load(self.one, radii, near)
            loop.repeat(r < d)
            # At most as far as an edge may reach.
            part = (d < reach).select(1.0, reach / d)
            self.get(f, tree.get(), near, target)
            with f.loop(n) as j:
                at = f.load(self.one, target, j)
                way = f.load(self.one, x, j) - at
                f.store(at + way * part, target, j)
            self.node_row(f, tree.get(), near, step, here)
            call(f, "row", VOID, target, there)
            is_endless = r.equals(float("inf"))
            with f.when(~call(f, "motion", I1, here, there)):
                less = r * (1.0 - growth)
                less = (less < least_radius).select(least_radius, less)
                f.store(is_endless.select(radius, less), radii, near)
                loop.repeat()
            f.store(r * (growth + 1.0), radii, near)  # infinity stays
            last = f.variable(I64, call(f, "add", I64, tree.get(), target, near))
            goal = call(f, "nearest", I64, other.get(), target, distance)
            is_met = self.connect(f, tree.get(), other.get(), last, goal, distance)
            loop.repeat(~is_met)
            is_first = which.get().equals(0)
            ends = [
                is_first.select(last.get(), goal),
                is_first.select(goal, last.get()),
            ]
            self.way(f, trees, ends, path)
        f.ret(f.constant(I64, 0))
        return f

    def plant(self, f: FunctionBuilder, trees: Sequence[Value], x: Value) -> None:
        """Begin both trees: one at the start, one at all goals that are free."""
        s, c, n = f["s"], f["c"], SETUP.load(f["s"], "n")
        weights, verdicts = SETUP.load(s, "weights"), CALL.load(c, "verdicts")
        for tree, field in zip(trees, ("start", "goals"), strict=True):
            roots = CALL.load(c, field)
            TREE.store(roots, tree, "roots")
            TREE.store(0, tree, "count")
            is_start = field == "start"
            count = 1 if is_start else CALL.load(c, "goal_count")
            with f.loop(count) as k:
                place = k if is_start else k + 1
                with f.when(f.load(I64, verdicts, place).equals(0)):
                    root = f.element(roots, F64, k * n)
                    with f.loop(n) as j:
                        z = f.load(F64, root, j) * f.load(F64, weights, j)
                        f.store(self.narrow(z), x, j)
                    parent = f.constant(I64, -1) - k
                    call(f, "add", I64, tree, x, parent)
        # Where the samples of a seed begin.
        seed = _mixed(CALL.load(c, "seed") + 1)
        with f.loop(n) as j:
            f.store(_mixed(seed + j), WORK.load(f["w"], "counter"), j)

    def connect(  # noqa: PLR0913
        self,
        f: FunctionBuilder,
        tree: Value,
        other: Value,
        last: Variable,
        goal: Value,
        distance: Value,
    ) -> Value:
        """Let a tree grow straight to a node of the other; return whether it gets there.

        last: The node that it grows from, which is changed; the target has its position.
        """
        s, w, n = f["s"], f["w"], SETUP.load(f["s"], "n")
        target, step, x = (WORK.load(w, k) for k in ("target", "step", "sample"))
        here, there = (WORK.load(w, "rows", k) for k in range(2))
        d, reach = self.wide(f.load(self.one, distance)), SETUP.load(s, "reach")
        parts = (d / reach).intrinsic("ceil")
        parts = (parts < 1.0).select(1.0, parts)
        count = parts.to(I64, "fptosi")
        self.get(f, other, goal, step)
        with f.loop(n) as j:
            way = f.load(self.one, step, j) - f.load(self.one, target, j)
            f.store(way / self.narrow(parts), step, j)
        room = SETUP.load(s, "room")
        is_met = f.variable(I1, 0)
        at = f.variable(I64, 0)
        with f.forever() as loop:
            at.set(at.get() + 1)
            # `there` is where the tree has come to.
            self.copy(f, there, here, n)
            is_last = at.get() >= count
            with f.when(is_last):
                self.node_row(f, other, goal, x, there)
                is_met.set(call(f, "motion", I1, here, there))
                loop.leave()
            loop.leave(TREE.load(tree, "count") >= room)
            with f.loop(n) as j:
                z = f.load(self.one, target, j) + f.load(self.one, step, j)
                f.store(z, target, j)
            call(f, "row", VOID, target, there)
            loop.leave(~call(f, "motion", I1, here, there))
            last.set(call(f, "add", I64, tree, target, last.get()))
        return is_met.get()

    def way(
        self,
        f: FunctionBuilder,
        trees: Sequence[Value],
        ends: Sequence[Value],
        path: Value,
    ) -> None:
        """Write the way from the start to a goal, and return; if it has room.

        ends: The node of each tree where they meet.
        """
        s, n = f["s"], SETUP.load(f["s"], "n")
        x = WORK.load(f["w"], "sample")
        counts: list[Value] = []
        for tree, end in zip(trees, ends, strict=True):
            count, at = f.variable(I64, 0), f.variable(I64, end)
            with f.forever() as chain:
                chain.leave(at.get() < 0)
                count.set(count.get() + 1)
                at.set(f.load(I64, TREE.load(tree, "parent"), at.get()))
            counts.append(count.get())
        # The way of the goal ends at a root.
        CALL.store(f.constant(I64, -1) - at.get(), f["c"], "goal")
        total = counts[0] + counts[1]
        with f.when(total <= SETUP.load(s, "path_room")):
            for number, (tree, end) in enumerate(zip(trees, ends, strict=True)):
                at = f.variable(I64, end)
                with f.loop(counts[number]) as k:
                    place = counts[0] + k if number else counts[0] - 1 - k
                    to = f.element(path, F64, place * n)
                    self.node_row(f, tree, at.get(), x, to)
                    at.set(f.load(I64, TREE.load(tree, "parent"), at.get()))
            f.ret(total)

    # shorter ways

    def shortcuts(self) -> FunctionBuilder:
        """Leave out way points between which there is a free motion; return how many
        are left.
        """
        f = function("shortcuts", I64, count=I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        count, i = f.variable(I64, f["count"]), f.variable(I64, 0)
        with f.forever() as loop:
            loop.leave(i.get() + 2 >= count.get())
            loop.leave(call(f, "late", I1))
            here = f.element(path, F64, i.get() * n)
            j = f.variable(I64, count.get() - 1)
            with f.forever() as ends:
                ends.leave(j.get() <= i.get() + 1)
                there = f.element(path, F64, j.get() * n)
                with f.when(call(f, "motion", I1, here, there)):
                    rest = count.get() - j.get()
                    self.copy(f, there, f.element(here, F64, n), rest * n)
                    count.set(i.get() + 1 + rest)
                    ends.leave()
                j.set(j.get() - 1)
            i.set(i.get() + 1)
        f.ret(count.get())
        return f

    def corners(self) -> FunctionBuilder:
        """Cut corners as a B-spline does; return how many way points there are."""
        f = function("corners", I64, count=I64, changed=PTR)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        middle = WORK.load(f["w"], "rows", 0)
        count = f["count"]
        f.store(f.constant(I64, 0), f["changed"])
        full = count * 2 - 1
        with f.when((count < 3) | (full > SETUP.load(f["s"], "path_room"))):
            f.ret(count)

        def point(k: Value) -> Value:
            return f.element(path, F64, k * n)

        # A way point in the middle of each edge.
        with downwards(f, count - 1, 1) as k:
            self.copy(f, point(k), point(k * 2), n)
        with f.loop(count, 1) as k:
            before, now, behind = (point(k * 2 - m) for m in (2, 1, 0))
            with f.loop(n) as j:
                total = f.load(F64, before, j) + f.load(F64, behind, j)
                f.store(total * 0.5, now, j)
        with f.loop(full - 1, 2, 2) as k:
            before, now, behind = (point(k + m) for m in (-1, 0, 1))
            with f.loop(n) as j:
                total = f.load(F64, before, j) + f.load(F64, behind, j)
                total = total * 0.25 + f.load(F64, now, j) * 0.5
                f.store(total, middle, j)
            moved = call(f, "length", F64, now, middle)
            with f.when(moved > SETUP.load(f["s"], "corner")):
                with f.when(call(f, "motion", I1, before, middle)):
                    with f.when(call(f, "motion", I1, middle, behind)):
                        self.copy(f, middle, now, n)
                        f.store(f.constant(I64, 1), f["changed"])
        f.ret(full)
        return f

    def shorten(self) -> FunctionBuilder:
        """Shorten a way; return how many way points it has."""
        f = function("shorten", I64, count=I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        count, changed = f.variable(I64, f["count"]), f.reserve(8)
        with f.loop(SHORTENINGS):
            with f.when((count.get() > 2) & ~call(f, "late", I1)):
                before = count.get()
                count.set(call(f, "shortcuts", I64, before))
                is_less = count.get() < before
                count.set(call(f, "corners", I64, count.get(), changed))
                with f.when(~is_less & f.load(I64, changed).equals(0)):
                    f.ret(count.get())
        f.ret(count.get())
        return f

    # the whole

    def solve(self) -> FunctionBuilder:
        """Return how many way points the way to a goal has; 0 if none is found.

        It is proven where there is a prover.
        """
        f = function("solve", I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        raw = WORK.load(f["w"], "raw")
        count = f.variable(I64, call(f, "search", I64))
        with f.when(count.get().equals(0)):
            f.ret(count.get())
        raw_count = count.get()
        self.copy(f, path, raw, raw_count * n)
        count.set(call(f, "shorten", I64, raw_count))
        with f.when(SETUP.load(f["s"], "prove").equals(0)):
            f.ret(count.get())
        with f.when(call(f, "proof", I1, path, count.get())):
            f.ret(count.get())
        # Else the way before corners were cut, or one whose edges are proven as they
        # are found.
        was_sure = CALL.load(f["c"], "sure").differs(0)
        for field in ("sure", "tight"):
            CALL.store(1, f["c"], field)
        is_proven = f.variable(I1, was_sure)
        with f.when(~was_sure):
            is_proven.set(call(f, "proof", I1, raw, raw_count))
        first = f.variable(I64, raw_count)
        with f.when(is_proven.get()):
            self.copy(f, raw, path, raw_count * n)
        with f.otherwise():
            first.set(call(f, "search", I64))
            self.copy(f, path, raw, first.get() * n)
        count.set(call(f, "shorten", I64, first.get()))
        # Halves of an edge that is proven are proven, but for rounding.
        with f.when(call(f, "proof", I1, path, count.get())):
            f.ret(count.get())
        self.copy(f, raw, path, first.get() * n)
        f.ret(first.get())
        return f

    def plan(self) -> FunctionBuilder:
        """Solve one problem."""
        f = function("plan")
        s, c, n = f["s"], f["c"], SETUP.load(f["s"], "n")
        for field in (
            "sure",
            "tight",
            "edges",
            "checks",
            "proofs",
            "samples",
            "nodes",
            "count",
        ):
            CALL.store(0, c, field)
        CALL.store(0.0, c, "length")
        with f.when(call(f, "late", I1)):
            CALL.store(LATE, c, "status")
            f.ret()
        free = call(f, "judge", I64)
        with f.when(f.load(I64, CALL.load(c, "verdicts")).differs(0)):
            CALL.store(START_TOUCHES, c, "status")
            f.ret()
        with f.when(free.equals(0)):
            CALL.store(GOAL_TOUCHES, c, "status")
            f.ret()
        for k in range(2):
            TREE.store(0, WORK.load(f["w"], "tree", k), "count")
        count = call(f, "solve", I64)
        trees = [WORK.load(f["w"], "tree", k) for k in range(2)]
        sizes = [TREE.load(tree, "count") for tree in trees]
        CALL.store(sizes[0] + sizes[1], c, "nodes")
        CALL.store(count, c, "count")
        with f.when(count.equals(0)):
            late, full = (f.constant(I64, x) for x in (LATE, FULL))
            CALL.store(call(f, "late", I1).select(late, full), c, "status")
            f.ret()
        CALL.store(FOUND, c, "status")
        path, total = CALL.load(c, "path"), f.variable(F64, 0.0)
        with f.loop(count, 1) as k:
            p, q = (f.element(path, F64, at * n) for at in (k - 1, k))
            total.set(total.get() + call(f, "length", F64, p, q))
        CALL.store(total.get(), c, "length")
        f.ret()
        return f

    def plans(self) -> FunctionBuilder:
        """Solve problems one after the other."""
        f = FunctionBuilder("plans", exported=True, s=PTR, w=PTR, calls=PTR, count=I64)
        with f.loop(f["count"]) as k:
            c = f.address(f["calls"], k * CALL.bytes)
            f.call("@plan", VOID, f["s"], f["w"], c)
        f.ret()
        return f


def _mixed(x: Value) -> Value:
    """Return a number whose 64 bits all depend on those of another: SplitMix64.

    Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
    """
    x = x + -7046029254386353131
    x = (x ^ (x >> 30)) * -4658895280553007687
    x = (x ^ (x >> 27)) * -7723592293110705685
    return x ^ (x >> 31)
