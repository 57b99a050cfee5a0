"""The code of a planner: RRT-Connect, shorter ways, and proofs, in one native loop.

`@plans` solves problems one after the other. It knows neither robots nor shapes: it
calls the columns of a check, which tells for some joint positions at once which of them
touch, and those of a prover, which tells how far a motion is free. The number of joints
is in the setup, so that the same code serves all cells.

Two trees grow from the start and from the goals, towards samples and then towards each
other (Kuffner and LaValle, "RRT-Connect", 2000), the smaller one first; nodes at which
edges failed are extended by near samples only (Yershova and others, "Dynamic-Domain
RRTs", 2005). Edges are sampled in blocks of lanes that are spread over them, as in
Thomason, Kingston and Kavraki, "Motions in microseconds via vectorized sampling-based
planning" (2024). Ways are then shortened, by shortcuts and at corners, and proven.
Where the proof of an edge fails, another way is searched for between its ends, whose
edges are proven as they are found; where there is none, the search for all of the way
goes on without that edge.

Nodes have weighted positions, so that lengths of motions are those of vectors. What is
tested and proven are joint positions of 64 bits, which are the answer to the last bit.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value, module_text
from armillary.kernel.machine_type import F64, I1, I64, PTR, VOID, Type
from armillary.planning.code_parts import PartOfLoop, call, copy_reals, function
from armillary.planning.edge_code import EdgeCode
from armillary.planning.improve_code import ImproveCode
from armillary.planning.layout import (
    CALL,
    FOUND,
    FULL,
    GOAL_TOUCHES,
    LATE,
    PAUSED,
    SETUP,
    START_TOUCHES,
    TREE,
    WORK,
)
from armillary.planning.repair_code import RepairCode
from armillary.planning.search_code import SearchCode, end_of
from armillary.planning.shorten_code import ShortenCode
from armillary.planning.surface_code import SurfaceCode
from armillary.planning.tree_code import TreeCode

__all__ = ["loop_code"]

COUNTS: Final = ("edges", "checks", "proofs", "samples", "nodes", "count")


def loop_code(real: Type, prover_lanes: int) -> str:
    """Return the LLVM IR of `@plans(setup, work, calls, count, path, room)`.

    Args:
        real: The vectors of the check, which are those of trees.
        prover_lanes: Lanes of the prover, which computes in 64 bits.
    """
    parts = (
        SurfaceCode,
        EdgeCode,
        TreeCode,
        SearchCode,
        ShortenCode,
        RepairCode,
        ImproveCode,
        LoopCode,
    )
    functions: list[FunctionBuilder] = []
    for part in parts:
        functions += part(real, prover_lanes).functions()
    return module_text(functions)


class LoopCode(PartOfLoop):
    """The functions that solve problems."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [self.judge(), self.solve(), self.plan(), self.plans()]

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
                self.put(f, end_of(f, k, n), lane, n)
            is_free = call(f, "is_free", I1)
            with f.loop(left) as lane:
                k = first + lane
                is_bad = f.variable(I1, 0)
                with f.when(~is_free):
                    row = end_of(f, k, n)
                    with f.loop(self.lanes) as each:
                        self.put(f, row, each, n)
                    CALL.store(0, f["c"], "tight")
                    is_bad.set(~call(f, "is_free", I1))
                    with f.when(is_bad.get() & has_proof):
                        is_bad.set(~call(f, "proven_exactly", I1, row, row))
                        CALL.store(1, f["c"], "tight")
                        is_near = ~call(f, "is_free", I1)
                        with f.when(is_near & ~is_bad.get()):
                            CALL.store(1, f["c"], "sure")
                        is_tight.set(1)
                bad = is_bad.get().to(I64, "zext")
                f.store(bad, verdicts, k)
                is_goal = (k > 0).to(I64, "zext")
                free.set(free.get() + (is_goal & (bad ^ 1)))
        for field in ("tight", "exact"):
            CALL.store(is_tight.get(), f["c"], field)
        f.ret(free.get())
        return f

    def put(self, f: FunctionBuilder, row: Value, lane: Value, n: Value) -> None:
        """Write a row to a lane of the columns of the check."""
        columns = WORK.load(f["w"], "columns")
        with f.loop(n) as j:
            x = self.narrow(f.load(F64, row, j))
            f.store(x, columns, j * self.lanes + lane)

    def solve(self) -> FunctionBuilder:
        """Return how many way points the way to a goal has; 0 if none is found.

        It is proven where that is possible. After an edge of a tree
        was refuted the search goes on without it, with proofs of all edges from then.
        """
        f = function("solve", I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        raw = WORK.load(f["w"], "raw")
        count = f.variable(I64, call(f, "search", I64))
        is_sampled = ~call(f, "proves", I1)
        with f.forever() as loop:
            found = count.get()
            loop.leave(found.equals(0))
            copy_reals(f, path, raw, found * n)
            with f.when(is_sampled | CALL.load(f["c"], "sure").equals(0)):
                count.set(call(f, "shorten", I64, found))
                with f.when(is_sampled):
                    f.ret(count.get())
                repaired = call(f, "repair", I64, count.get())
                with f.when(repaired > 0):
                    f.ret(call(f, "spread", I64, repaired))
                # Else the way before corners were cut, or another one.
                for field in ("sure", "tight"):
                    CALL.store(1, f["c"], field)
            bad = call(f, "refuted", I64, raw, found)
            with f.when(bad.equals(0)):
                copy_reals(f, raw, path, found * n)
                count.set(call(f, "shorten", I64, found))
                # Halves of an edge that is proven are proven, but for rounding.
                wrong = call(f, "refuted", I64, path, count.get())
                with f.when(wrong.equals(0)):
                    f.ret(call(f, "spread", I64, count.get()))
                copy_reals(f, raw, path, found * n)
                f.ret(call(f, "spread", I64, found))
            call(f, "prune", VOID, bad)
            count.set(call(f, "go_on", I64))
        f.ret(f.constant(I64, 0))
        return f

    def plan(self) -> FunctionBuilder:
        """Solve one problem."""
        f = function("plan")
        c = f["c"]
        with f.when(CALL.load(c, "is_paused").equals(0)):
            self.begin(f)
        found = call(f, "solve", I64)
        is_improved = (CALL.load(c, "improve") > 0) & (found > 2)
        shorter = f.variable(I64, found)
        with f.when(is_improved):
            shorter.set(call(f, "improve", I64, found))
        count = shorter.get()
        trees = [WORK.load(f["w"], "tree", k) for k in range(2)]
        sizes = [TREE.load(tree, "count") for tree in trees]
        CALL.store(sizes[0] + sizes[1], c, "nodes")
        CALL.store(count, c, "count")
        with f.when(count.equals(0)):
            late, full, paused = (f.constant(I64, x) for x in (LATE, FULL, PAUSED))
            status = call(f, "late", I1).select(late, full)
            is_paused = CALL.load(c, "is_paused").differs(0)
            CALL.store(is_paused.select(paused, status), c, "status")
            f.ret()
        CALL.store(FOUND, c, "status")
        path = CALL.load(c, "path")
        CALL.store(call(f, "length_of", F64, path, count), c, "length")
        f.ret()
        return f

    def begin(self, f: FunctionBuilder) -> None:
        """Begin with a problem; return from it where start or goals touch."""
        c = f["c"]
        for field in ("sure", "tight", "exact", *COUNTS):
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
        CALL.store(SETUP.load(f["s"], "most"), c, "most")
        CALL.store(0.0, c, "bound")

    def plans(self) -> FunctionBuilder:
        """Solve problems one after the other; return how many are solved.

        Their ways follow each other in memory with room for so many way points; it ends
        where another way might be too long for what is left, and behind a search that
        pauses, whose trees stay.
        """
        f = FunctionBuilder(
            "plans",
            I64,
            exported=True,
            s=PTR,
            w=PTR,
            calls=PTR,
            count=I64,
            path=PTR,
            room=I64,
        )
        n, used = SETUP.load(f["s"], "n"), f.variable(I64, 0)
        done = f.variable(I64, 0)
        with f.forever() as loop:
            loop.leave(done.get() >= f["count"])
            loop.leave(used.get() + SETUP.load(f["s"], "path_room") > f["room"])
            c = f.address(f["calls"], done.get() * CALL.bytes)
            CALL.store(f.element(f["path"], F64, used.get() * n), c, "path")
            f.call("@plan", VOID, f["s"], f["w"], c)
            used.set(used.get() + CALL.load(c, "count"))
            done.set(done.get() + 1)
            loop.leave(CALL.load(c, "status").equals(PAUSED))
        f.ret(done.get())
        return f
