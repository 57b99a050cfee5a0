"""The code of a planner that searches: two trees that grow towards each other.

A search may pause, and go on where it was: its state is in `layout.CALL` and in trees.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import F64, I1, I64, PTR, VOID
from armillary.kernel.random_code import mixed
from armillary.planning.code_parts import (
    FAR,
    PartOfLoop,
    call,
    copy_reals,
    function,
)
from armillary.planning.layout import CALL, SETUP, TREE, WORK

__all__ = ["SearchCode", "end_of"]

BETWEEN_LOOKS: Final = 8
"""Samples between two looks at the clock."""

NOTHING: Final = -1
"""In place of the number of a node."""

REMOVED: Final = -1.0
"""In place of the radius of a node that was removed."""


def end_of(f: FunctionBuilder, k: Value, n: Value) -> Value:
    """Return where the start lies, or goal k - 1."""
    goals = f.element(CALL.load(f["c"], "goals"), F64, (k - 1) * n)
    return k.equals(0).select(CALL.load(f["c"], "start"), goals)


class SearchCode(PartOfLoop):
    """The functions that search for a way."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [
            self.direct(),
            self.plant(),
            self.surfaced(),
            self.grow(),
            self.connect(),
            self.way(),
            self.go_on(),
            self.search(),
            self.prune(),
        ]

    def direct(self) -> FunctionBuilder:
        """Write a straight motion to a goal if one is free; return whether it is."""
        f = function("direct", I1)
        c, n = f["c"], SETUP.load(f["s"], "n")
        verdicts, path = CALL.load(c, "verdicts"), CALL.load(c, "path")
        with f.loop(CALL.load(c, "goal_count")) as g:
            is_free = f.load(I64, verdicts, g + 1).equals(0)
            start, goal = CALL.load(c, "start"), end_of(f, g + 1, n)
            with f.when(is_free), f.when(call(f, "motion", I1, start, goal)):
                copy_reals(f, start, path, n)
                copy_reals(f, goal, f.element(path, F64, n), n)
                CALL.store(g, c, "goal")
                f.ret(f.constant(I1, 1))
        f.ret(f.constant(I1, 0))
        return f

    def plant(self) -> FunctionBuilder:
        """Begin both trees: one at the start, one at all goals that are free."""
        f = function("plant")
        s, w, c, n = f["s"], f["w"], f["c"], SETUP.load(f["s"], "n")
        weights, verdicts = SETUP.load(s, "weights"), CALL.load(c, "verdicts")
        x = WORK.load(w, "target")
        for number, field in enumerate(("start", "goals")):
            tree, roots = WORK.load(w, "tree", number), CALL.load(c, field)
            TREE.store(roots, tree, "roots")
            TREE.store(0, tree, "count")
            with f.loop(CALL.load(c, "goal_count") if number else 1) as k:
                is_free = f.load(I64, verdicts, k + number).equals(0)
                root = f.element(roots, F64, k * n)
                with f.loop(n) as j:
                    z = f.load(F64, root, j) * f.load(F64, weights, j)
                    f.store(self.narrow(z), x, j)
                with f.when(is_free):
                    call(f, "add", I64, tree, x, f.constant(I64, -1) - k)
        # Where the samples of a seed begin.
        seed = mixed(CALL.load(c, "seed") + 1)
        with f.loop(n) as j:
            f.store(mixed(seed + j), WORK.load(w, "counter"), j)
        f.ret()
        return f

    def surfaced(self) -> FunctionBuilder:
        """Project a weighted position; return whether it satisfies constraints then."""
        f = function("surfaced", I1, x=PTR)
        n, columns = (
            SETUP.load(f["s"], "n"),
            WORK.load(f["w"], "columns"),
        )
        rates = WORK.load(f["w"], "rates")
        inverse, weights = (SETUP.load(f["s"], k) for k in ("inverse", "weights"))
        with f.loop(n) as j:
            q = self.wide(f.load(self.one, f["x"], j)) * f.load(F64, inverse, j)
            f.store(self.narrow(q).splat(self.lanes), rates, j)
        with f.when(~call(f, "project", I1)):
            f.ret(f.constant(I1, 0))
        with f.loop(n) as j:
            q = self.wide(f.load(self.one, columns, j * self.lanes))
            f.store(self.narrow(q * f.load(F64, weights, j)), f["x"], j)
        f.ret(f.constant(I1, 1))
        return f

    def grow(self) -> FunctionBuilder:
        """Let a tree grow towards a sample; return its new node, or `NOTHING`.

        Then `target` and the second of `rows` are where that is.
        """
        f = function("grow", I64, tree=PTR)
        s, w, tree, n = f["s"], f["w"], f["tree"], SETUP.load(f["s"], "n")
        x, target, step = (WORK.load(w, k) for k in ("sample", "target", "step"))
        here, there = (WORK.load(w, "rows", k) for k in range(2))
        distance = f.reserve(8)
        call(f, "draw", VOID, x)
        is_on = SETUP.load(s, "project").differs(0)
        nothing = f.constant(I64, NOTHING)
        with f.when(is_on), f.when(~call(f, "surfaced", I1, x)):
            f.ret(nothing)
        near = call(f, "nearest", I64, tree, x, distance)
        d, radii = f.load(self.one, distance), TREE.load(tree, "radius")
        r = f.load(self.one, radii, near)
        with f.when(r < d):
            f.ret(f.constant(I64, NOTHING))
        # At most as far as an edge may reach.
        reach = self.narrow(SETUP.load(s, "reach"))
        part = (d < reach).select(1.0, reach / d)
        self.get(f, tree, near, target)
        with f.loop(n) as j:
            at = f.load(self.one, target, j)
            way = f.load(self.one, x, j) - at
            f.store(at + way * part, target, j)
        with f.when(is_on), f.when(~call(f, "surfaced", I1, target)):
            f.ret(nothing)
        self.node_row(f, tree, near, step, here)
        call(f, "position", VOID, target, there)
        with f.when(~call(f, "within", I1, there)):
            f.ret(f.constant(I64, NOTHING))
        radius, least_radius, growth = (
            self.narrow(SETUP.load(s, k)) for k in ("radius", "least_radius", "growth")
        )
        with f.when(~call(f, "motion", I1, here, there)):
            less = r * (1.0 - growth)
            less = (less < least_radius).select(least_radius, less)
            less = r.equals(float("inf")).select(radius, less)
            f.store(less, radii, near)
            f.ret(f.constant(I64, NOTHING))
        f.store(r * (growth + 1.0), radii, near)  # infinity stays
        f.ret(call(f, "add", I64, tree, target, near))
        return f

    def connect(self) -> FunctionBuilder:
        """Let a tree grow straight to the nearest node of the other tree.

        It returns that node, or `NOTHING` if the tree does not get there. `last` is the
        node that it grows from, and then to.
        """
        f = function("connect", I64, tree=PTR, other=PTR, last=PTR)
        s, w, n = f["s"], f["w"], SETUP.load(f["s"], "n")
        tree, other, last = (f[name] for name in ("tree", "other", "last"))
        target, step, x = (WORK.load(w, k) for k in ("target", "step", "sample"))
        here, there = (WORK.load(w, "rows", k) for k in range(2))
        distance = f.reserve(8)
        node = call(f, "nearest", I64, other, target, distance)
        d = self.wide(f.load(self.one, distance))
        parts = (d / SETUP.load(s, "reach")).intrinsic("ceil")
        parts = (parts < 1.0).select(1.0, parts)
        self.get(f, other, node, step)
        with f.loop(n) as j:
            way = f.load(self.one, step, j) - f.load(self.one, target, j)
            f.store(way / self.narrow(parts), step, j)
        nothing = f.constant(I64, NOTHING)
        is_on = SETUP.load(s, "project").differs(0)
        with f.loop(parts.to(I64, "fptosi"), 1) as k:
            with f.when(TREE.load(tree, "count") >= SETUP.load(s, "room")):
                f.ret(nothing)
            copy_reals(f, there, here, n)  # where the tree has come to
            with f.when(is_on):  # projections have led it elsewhere
                left = self.narrow(parts - (k - 1).to(F64, "sitofp"))
                self.get(f, other, node, x)
                with f.loop(n) as j:
                    way = f.load(self.one, x, j) - f.load(self.one, target, j)
                    f.store(way / left, step, j)
            with f.loop(n) as j:
                z = f.load(self.one, target, j) + f.load(self.one, step, j)
                f.store(z, target, j)
            with f.when(is_on), f.when(~call(f, "surfaced", I1, target)):
                f.ret(nothing)
            call(f, "position", VOID, target, there)
            # Between two positions within limits it is, but for rounding.
            with f.when(~call(f, "within", I1, there)):
                f.ret(nothing)
            with f.when(~call(f, "motion", I1, here, there)):
                f.ret(nothing)
            at = call(f, "add", I64, tree, target, f.load(I64, last))
            f.store(at, last)
        copy_reals(f, there, here, n)
        self.node_row(f, other, node, x, there)
        f.ret(call(f, "motion", I1, here, there).select(node, nothing))
        return f

    def way(self) -> FunctionBuilder:
        """Write the way between roots; return how many way points it has.

        It is 0 where there is no room for it. `first` and `second` are the nodes of
        both trees where they meet.
        """
        f = function("way", I64, first=I64, second=I64)
        s, w, n = f["s"], f["w"], SETUP.load(f["s"], "n")
        x, path = WORK.load(w, "sample"), CALL.load(f["c"], "path")
        trees = [WORK.load(w, "tree", k) for k in range(2)]
        parents = [TREE.load(tree, "parent") for tree in trees]
        ends, nodes = (f["first"], f["second"]), WORK.load(w, "nodes")
        counts: list[Value] = []
        root = f.variable(I64, 0)
        for parent, end in zip(parents, ends, strict=True):
            count = f.variable(I64, 0)
            root.set(end)
            with f.forever() as chain:
                chain.leave(root.get() < 0)
                count.set(count.get() + 1)
                root.set(f.load(I64, parent, root.get()))
            counts.append(count.get())
        # The way through the second tree ends at a goal.
        CALL.store(f.constant(I64, -1) - root.get(), f["c"], "goal")
        CALL.store(counts[0], f["c"], "met")
        total = counts[0] + counts[1]
        with f.when(total > SETUP.load(s, "path_room")):
            f.ret(f.constant(I64, 0))
        for number, (tree, end) in enumerate(zip(trees, ends, strict=True)):
            at = f.variable(I64, end)
            with f.loop(counts[number]) as k:
                place = counts[0] + k if number else counts[0] - 1 - k
                self.node_row(f, tree, at.get(), x, f.element(path, F64, place * n))
                f.store(at.get(), nodes, place)
                at.set(f.load(I64, parents[number], at.get()))
        f.ret(total)
        return f

    def search(self) -> FunctionBuilder:
        """Search for a way; return how many way points it has, 0 if none is found.

        A search that was paused goes on.
        """
        f = function("search", I64)
        c = f["c"]
        with f.when(CALL.load(c, "is_paused").equals(0)):
            CALL.store(0, c, "met")
            CALL.store(0, c, "rounds")
            CALL.store(1, c, "which")
            with f.when(call(f, "direct", I1)):
                f.ret(f.constant(I64, 2))
            call(f, "plant", VOID)
        CALL.store(0, c, "is_paused")
        f.ret(call(f, "go_on", I64))
        return f

    def go_on(self) -> FunctionBuilder:
        """Let trees grow until they meet; return how many points that way has.

        It is 0 where they have no room left, or the time is up, or it is time to pause.
        """
        f = function("go_on", I64)
        s, w, c = f["s"], f["w"], f["c"]
        trees = [WORK.load(w, "tree", k) for k in range(2)]
        which = f.variable(I64, CALL.load(c, "which"))  # the tree that grows
        is_first = which.get().equals(0)
        tree = f.variable(PTR, is_first.select(*trees))
        other = f.variable(PTR, is_first.select(*trees[::-1]))
        begun, last = CALL.load(c, "rounds"), f.reserve(8)
        rounds = f.variable(I64, begun)
        room, most = SETUP.load(s, "room"), CALL.load(c, "most")
        with f.forever() as loop:
            rounds.set(rounds.get() + 1)
            sizes = [TREE.load(each.get(), "count") for each in (tree, other)]
            is_full = (sizes[0] >= room) | (sizes[1] >= room)
            loop.leave(is_full | (rounds.get() > most))
            with f.when((rounds.get() & (BETWEEN_LOOKS - 1)).equals(1)):
                loop.leave(call(f, "late", I1))
                # Each call takes some samples, however short its time is.
                is_pause = call(f, "passed", I1, CALL.load(c, "pause"))
                with f.when(is_pause & (rounds.get() > begun + 1)):
                    CALL.store(rounds.get() - 1, c, "rounds")
                    CALL.store(which.get(), c, "which")
                    CALL.store(1, c, "is_paused")
                    loop.leave()
            with f.when(rounds.get() > SETUP.load(s, "wide_samples")):
                CALL.store(1, c, "tight")
                CALL.store(1, c, "exact")
            # The other tree grows unless this one is smaller by far.
            a, b = (size.to(F64, "sitofp") for size in sizes)
            with f.when(abs(a - b) < a):
                which.set(which.get() ^ 1)
                before = tree.get()
                tree.set(other.get())
                other.set(before)
            at = call(f, "grow", I64, tree.get())
            loop.repeat(at < 0)
            f.store(at, last)
            met = call(f, "connect", I64, tree.get(), other.get(), last)
            loop.repeat(met < 0)
            at, is_first = f.load(I64, last), which.get().equals(0)
            first, second = is_first.select(at, met), is_first.select(met, at)
            count = call(f, "way", I64, first, second)
            with f.when(count > 0):
                CALL.store(rounds.get(), c, "rounds")
                CALL.store(which.get(), c, "which")
                f.ret(count)
        f.ret(f.constant(I64, 0))
        return f

    def prune(self) -> FunctionBuilder:
        """Remove an edge of the way that was found from its tree, and what it bears.

        Nothing is removed where trees meet: the same two nodes do not meet again. After
        a straight motion trees are planted. `end` is the way point where the edge ends.
        """
        f = function("prune", end=I64)
        w, n = f["w"], SETUP.load(f["s"], "n")
        met, nodes = CALL.load(f["c"], "met"), WORK.load(w, "nodes")
        with f.when(met.equals(0)):
            call(f, "plant", VOID)
            f.ret()
        with f.when(met.equals(f["end"])):
            f.ret()
        # Way points of the first tree come from its root, those of the other one go
        # there.
        is_first = f["end"] < met
        tree = is_first.select(*(WORK.load(w, "tree", k) for k in range(2)))
        gone = f.load(I64, nodes, is_first.select(f["end"], f["end"] - 1))
        parents, radii = (TREE.load(tree, x) for x in ("parent", "radius"))
        removed = f.constant(self.one, REMOVED)
        f.store(removed, radii, gone)
        with f.loop(TREE.load(tree, "count"), gone) as k:
            # Nodes stand behind those that bear them.
            parent = f.load(I64, parents, k)
            is_borne = f.variable(I1, k.equals(gone))
            with f.when(parent >= gone):
                is_borne.set(f.load(self.one, radii, parent).equals(REMOVED))
            with f.when(is_borne.get()):
                f.store(removed, radii, k)
                block, lane = self.place(f, tree, k, n)
                far = f.constant(self.one, FAR)
                with f.loop(n) as j:
                    f.store(far, block, j * self.lanes + lane)
        f.ret()
        return f
