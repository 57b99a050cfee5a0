"""The code of a planner that makes ways shorter as long as there is time."""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder
from armillary.kernel.machine_type import F64, I1, I64, PTR
from armillary.kernel.random_code import mixed
from armillary.planning.code_parts import (
    PartOfLoop,
    call,
    copy_reals,
    function,
    move_points,
)
from armillary.planning.layout import CALL, SETUP, WORK

__all__ = ["ImproveCode"]

PULLS: Final = 64
"""Motions between random points of a way that are tried to make it shorter."""

RESTART: Final = 2_000
"""Samples of a further search."""

ANOTHER: Final = 0x9E3779B97F4A7C1
"""What the seed of the next search is larger by."""


class ImproveCode(PartOfLoop):
    """The functions that search for shorter ways."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [self.point(), self.pull(), self.improve()]

    def point(self) -> FunctionBuilder:
        """Write the point of a way at a length; return the way point before it."""
        f = function("point", I64, count=I64, at=F64, to=PTR)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        left, found = f.variable(F64, f["at"]), f.variable(I64, 0)
        last = f["count"] - 2
        length = f.variable(F64, 0.0)
        with f.forever() as loop:
            p, q = (f.element(path, F64, (found.get() + k) * n) for k in range(2))
            length.set(call(f, "length", F64, p, q))
            loop.leave((left.get() <= length.get()) | (found.get() >= last))
            left.set(left.get() - length.get())
            found.set(found.get() + 1)
        p, q = (f.element(path, F64, (found.get() + k) * n) for k in range(2))
        part = left.get() / (length.get() + 1e-30)
        part = (part < 1.0).select(part, 1.0)
        with f.loop(n) as j:
            a, b = f.load(F64, p, j), f.load(F64, q, j)
            f.store(a + (b - a) * part, f["to"], j)
        f.ret(found.get())
        return f

    def pull(self) -> FunctionBuilder:
        """Replace parts of a way by straight motions; return how many points it has."""
        f = function("pull", I64, count=I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        ends = [f.reserve(8) for _ in range(2)]
        rows = [WORK.load(f["w"], "rows", k) for k in range(2)]
        count, room = f.variable(I64, f["count"]), SETUP.load(f["s"], "path_room")
        seed = mixed(CALL.load(f["c"], "seed"))
        with f.loop(PULLS) as number:
            whole = call(f, "length_of", F64, path, count.get())
            bits = mixed(seed + number)
            parts = [
                (x & 0xFFFFFFFF).to(F64, "uitofp") * 2.0**-32 * whole
                for x in (bits, bits >> 32)
            ]
            is_first = parts[0] < parts[1]
            low = is_first.select(parts[0], parts[1])
            high = is_first.select(parts[1], parts[0])
            for at, row, end in zip((low, high), rows, ends, strict=True):
                f.store(call(f, "point", I64, count.get(), at, row), end)
            i, j = (f.load(I64, end) for end in ends)
            is_part = (i < j) & (count.get() + 1 < room)
            is_free = f.variable(I1, 0)
            with f.when(is_part):
                is_free.set(call(f, "motion", I1, *rows))
            with f.when(is_free.get()):
                # Points i + 1 to j make way for two.
                move_points(f, path, (j + 1, count.get()), i + 3)
                for k, row in enumerate(rows):
                    copy_reals(f, row, f.element(path, F64, (i + (k + 1)) * n), n)
                count.set(count.get() - (j - i) + 2)
        f.ret(count.get())
        return f

    def improve(self) -> FunctionBuilder:
        """Search for shorter ways until the time is up; return how many points one has.

        Each search has another seed, and samples through which ways may be shorter than
        the shortest one so far.
        """
        f = function("improve", I64, count=I64)
        c, n = f["c"], SETUP.load(f["s"], "n")
        path, best = CALL.load(c, "path"), WORK.load(f["w"], "best")
        has_proof = SETUP.load(f["s"], "prove").differs(0)
        CALL.store(CALL.load(c, "improve"), c, "deadline")
        CALL.store(0, c, "pause")
        CALL.store(RESTART, c, "most")
        tight = CALL.load(c, "tight")
        copy_reals(f, path, best, f["count"] * n)
        count = f.variable(I64, f["count"])
        goal = f.variable(I64, CALL.load(c, "goal"))
        CALL.store(call(f, "length_of", F64, path, count.get()), c, "bound")
        with f.forever() as loop:
            loop.leave(call(f, "late", I1))
            CALL.store(CALL.load(c, "seed") + ANOTHER, c, "seed")
            CALL.store(0, c, "sure")
            CALL.store(tight, c, "tight")
            found = call(f, "search", I64)
            with f.when(found > 2):
                some = call(f, "shorten", I64, found)
                pulled = call(f, "pull", I64, some)
                last = call(f, "shortcuts", I64, pulled)
                length = call(f, "length_of", F64, path, last)
                is_better = f.variable(I1, length < CALL.load(c, "bound"))
                with f.when(is_better.get() & has_proof):
                    is_better.set(call(f, "refuted", I64, path, last).equals(0))
                with f.when(is_better.get()):
                    copy_reals(f, path, best, last * n)
                    CALL.store(length, c, "bound")
                    count.set(last)
                    goal.set(CALL.load(c, "goal"))
            CALL.store(goal.get(), c, "goal")
        copy_reals(f, best, path, count.get() * n)
        CALL.store(goal.get(), c, "goal")
        f.ret(count.get())
        return f
