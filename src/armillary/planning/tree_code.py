"""The code of the trees of a planner, and of its samples."""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder
from armillary.kernel.machine_type import F64, I1, I64, PTR, VOID
from armillary.kernel.random_code import mixed
from armillary.planning.code_parts import FAR, PartOfLoop, call, counted, function
from armillary.planning.layout import CALL, GROUP, SETUP, TREE, WORK

__all__ = ["TreeCode"]

PART: Final = 2**21 - 1
"""The greatest of the numbers of 21 bits of which an integer of 64 bits has three."""

DRAWS: Final = 8
"""Samples that are drawn until one is within limits that couple joints."""

PROJECTIONS: Final = 4
"""Projections on each of these limits."""


class TreeCode(PartOfLoop):
    """The functions of trees."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [
            self.add(),
            self.nearest(),
            self.row(),
            self.position(),
            self.excess(),
            self.within(),
            self.settle(),
            self.sample(),
            self.informed(),
            self.draw(),
        ]

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

    def position(self) -> FunctionBuilder:
        """Write the same of a node, on constraints but for what roundings miss."""
        f = function("position", VOID, x=PTR, to=PTR)
        call(f, "row", VOID, f["x"], f["to"])
        with f.when(SETUP.load(f["s"], "project").differs(0)):
            call(f, "settled", I1, f["to"])
        f.ret()
        return f

    def excess(self) -> FunctionBuilder:
        """Return by how much joint positions are beyond a limit that couples joints."""
        f = function("excess", F64, q=PTR, number=I64)
        n, total = SETUP.load(f["s"], "n"), f.variable(F64, 0.0)
        row = f.element(SETUP.load(f["s"], "slopes"), F64, f["number"] * n)
        with f.loop(n) as j:
            total.set(total.get() + f.load(F64, row, j) * f.load(F64, f["q"], j))
        f.ret(total.get() - f.load(F64, SETUP.load(f["s"], "ends"), f["number"]))
        return f

    def within(self) -> FunctionBuilder:
        """Return whether joint positions are within all limits that couple joints.

        These limits are convex, so that straight motions between such positions are.
        """
        f = function("within", I1, q=PTR)
        with f.loop(SETUP.load(f["s"], "rows")) as k:
            is_beyond = call(f, "excess", F64, f["q"], k) > 0.0
            with f.when(is_beyond):
                f.ret(f.constant(I1, 0))
        f.ret(f.constant(I1, 1))
        return f

    def settle(self) -> FunctionBuilder:
        """Project joint positions on the limits that couple joints, in turns."""
        f = function("settle", q=PTR)
        n, depth = (SETUP.load(f["s"], x) for x in ("n", "depth"))
        with f.loop(PROJECTIONS), f.loop(SETUP.load(f["s"], "rows")) as k:
            row = f.element(SETUP.load(f["s"], "slopes"), F64, k * n)
            over = call(f, "excess", F64, f["q"], k) + depth
            over = (over > 0.0).select(over, 0.0)
            with f.loop(n) as j:
                less = over * f.load(F64, row, j)
                f.store(f.load(F64, f["q"], j) - less, f["q"], j)
        f.ret()
        return f

    def draw(self) -> FunctionBuilder:
        """Write a sample within the limits that couple joints.

        Where those are narrow one is projected on them; it may miss some still.
        """
        f = function("draw", to=PTR)
        x, q, tries = f["to"], WORK.load(f["w"], "rows", 1), f.variable(I64, 0)
        n, weights = (SETUP.load(f["s"], name) for name in ("n", "weights"))
        with f.forever() as loop:
            with f.when(CALL.load(f["c"], "bound") > 0.0):
                call(f, "informed", VOID, x)
            with f.otherwise():
                call(f, "sample", VOID, x)
            loop.leave(SETUP.load(f["s"], "rows").equals(0))
            call(f, "row", VOID, x, q)
            loop.leave(call(f, "within", I1, q))
            tries.set(tries.get() + 1)
            with f.when(tries.get() >= DRAWS):
                call(f, "settle", VOID, q)
                with f.loop(n) as j:
                    z = f.load(F64, q, j) * f.load(F64, weights, j)
                    f.store(self.narrow(z), x, j)
                f.ret()
        f.ret()
        return f

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

    def informed(self) -> FunctionBuilder:
        """Write a sample through which a way to the goal may be shorter than the bound.

        It is in an ellipsoid whose foci are start and goal (Gammell and others,
        "Informed RRT*", 2014): of a point u of a ball, where |u| is the greatest of n
        random numbers and its direction a sum of three for each joint.
        """
        f = function("informed", VOID, to=PTR)
        counted(f, "samples")
        s, w, c, n = f["s"], f["w"], f["c"], SETUP.load(f["s"], "n")
        start = CALL.load(c, "start")
        goal = f.element(CALL.load(c, "goals"), F64, CALL.load(c, "goal") * n)
        weights, counter = SETUP.load(s, "weights"), WORK.load(w, "counter")
        seed = f.load(I64, counter) + 1
        f.store(seed, counter)
        # The direction, its size, and how it lies to the line between the foci.
        between = call(f, "length", F64, start, goal)
        size, along = f.variable(F64, 1e-30), f.variable(F64, 0.0)
        radius = f.variable(F64, 0.0)
        direction = WORK.load(w, "rows", 0)
        with f.loop(n) as j:
            bits = mixed(mixed(seed) + j)
            total = (bits >> 43) + ((bits >> 22) & PART) + (bits & PART)
            u = total.to(F64, "uitofp") * (1.0 / (PART + 1)) - 1.5
            f.store(u, direction, j)
            size.set(size.get() + u * u)
            way = f.load(F64, goal, j) - f.load(F64, start, j)
            along.set(along.get() + u * way * f.load(F64, weights, j))
            part = (mixed(bits) >> 11).to(F64, "uitofp") * 2.0**-53
            radius.set((part > radius.get()).select(part, radius.get()))
        scale = radius.get() / size.get().sqrt()
        bound = CALL.load(c, "bound")
        wide = bound * bound - between * between
        side = (wide > 0.0).select(wide, 0.0).sqrt() * 0.5
        # x = middle + b u + (a - b) (u . e) e, where e is the line's direction.
        squared = between * between + 1e-30
        more = (bound * 0.5 - side) * along.get() * scale / squared
        side = side * scale
        least, span = (SETUP.load(s, x) for x in ("least", "span"))
        with f.loop(n) as j:
            p, q = (f.load(F64, x, j) * f.load(F64, weights, j) for x in (start, goal))
            x = (p + q) * 0.5 + f.load(F64, direction, j) * side + (q - p) * more
            low = self.wide(f.load(self.one, least, j))
            high = low + self.wide(f.load(self.one, span, j))
            x = (x < low).select(low, x)
            f.store(self.narrow((x > high).select(high, x)), f["to"], j)
        f.ret()
        return f
