"""The code of a planner that makes ways shorter."""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import F64, I1, I64, PTR
from armillary.planning.code_parts import (
    PartOfLoop,
    call,
    copy_reals,
    downwards,
    function,
)
from armillary.planning.layout import CALL, SETUP, WORK

__all__ = ["ShortenCode"]

SHORTENINGS: Final = 5
"""How often shortcuts and corners are tried in turns."""


class ShortenCode(PartOfLoop):
    """The functions that make ways shorter."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [self.shortcuts(), self.corners(), self.shorten()]

    def shortcuts(self) -> FunctionBuilder:
        """Leave out way points between free motions; return how many remain."""
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
                    copy_reals(f, there, f.element(here, F64, n), rest * n)
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
        is_on = SETUP.load(f["s"], "project").differs(0)
        with f.when((count < 3) | (full > SETUP.load(f["s"], "path_room"))):
            f.ret(count)

        def point(k: Value) -> Value:
            return f.element(path, F64, k * n)

        # A way point in the middle of each edge.
        with downwards(f, count - 1, 1) as k:
            copy_reals(f, point(k), point(k * 2), n)
        with f.loop(count, 1) as k:
            before, now, behind = (point(k * 2 - m) for m in (2, 1, 0))
            with f.loop(n) as j:
                total = f.load(F64, before, j) + f.load(F64, behind, j)
                f.store(total * 0.5, now, j)
            with f.when(is_on):
                self.middle_along(f, before, now, behind)
        with f.loop(full - 1, 2, 2) as k:
            before, now, behind = (point(k + m) for m in (-1, 0, 1))
            with f.loop(n) as j:
                total = f.load(F64, before, j) + f.load(F64, behind, j)
                total = total * 0.25 + f.load(F64, now, j) * 0.5
                f.store(total, middle, j)
            with f.when(is_on), f.when(~call(f, "settled", I1, middle)):
                copy_reals(f, now, middle, n)
            moved = call(f, "length", F64, now, middle)
            is_wide = moved > SETUP.load(f["s"], "corner")
            is_better = f.variable(I1, 0)
            with f.when(is_wide), f.when(call(f, "motion", I1, before, middle)):
                is_better.set(call(f, "motion", I1, middle, behind))
            with f.when(is_better.get()):
                copy_reals(f, middle, now, n)
                f.store(f.constant(I64, 1), f["changed"])
        f.ret(full)
        return f

    def middle_along(
        self, f: FunctionBuilder, before: Value, now: Value, behind: Value
    ) -> None:
        """Project the middle of a motion onto constraints.

        It stays at the beginning of the motion where halves of that are not free.
        """
        is_free = f.variable(I1, call(f, "settled", I1, now))
        for a, b in ((before, now), (now, behind)):
            with f.when(is_free.get()):
                is_free.set(call(f, "motion", I1, a, b))
        with f.when(~is_free.get()):
            copy_reals(f, before, now, SETUP.load(f["s"], "n"))

    def shorten(self) -> FunctionBuilder:
        """Shorten a way; return how many way points it has."""
        f = function("shorten", I64, count=I64)
        count, changed = f.variable(I64, f["count"]), f.reserve(8)
        with f.loop(SHORTENINGS):
            is_late = call(f, "late", I1)
            with f.when((count.get() > 2) & ~is_late):
                before = count.get()
                count.set(call(f, "shortcuts", I64, before))
                is_less = count.get() < before
                count.set(call(f, "corners", I64, count.get(), changed))
                with f.when(~is_less & f.load(I64, changed).equals(0)):
                    f.ret(count.get())
        f.ret(count.get())
        return f
