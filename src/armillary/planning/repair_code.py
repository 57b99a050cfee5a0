"""The code of a planner that repairs ways: detours in place of refuted motions.

Samples miss contacts that are short. Where the proof of a motion of a way fails, there
is a way around the contact nearby as a rule: a search between the ends of that motion
alone, whose motions are proven as they are found, takes much less than another search
for all of the way.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder
from armillary.kernel.machine_type import F64, I1, I64
from armillary.kernel.memory import copy_bytes
from armillary.planning.code_parts import (
    PartOfLoop,
    call,
    copy_reals,
    function,
    move_points,
)
from armillary.planning.layout import CALL, SETUP, WORK

__all__ = ["RepairCode"]

DETOURS: Final = 8
"""Motions of a way that are replaced at most."""

SAMPLES: Final = 1000
"""Samples of the search for a detour."""

COUNTED: Final = ("edges", "checks", "proofs", "samples")
"""What a detour adds to the counts of its problem."""


class RepairCode(PartOfLoop):
    """The functions that repair ways."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [self.repair()]

    def repair(self) -> FunctionBuilder:
        """Prove a way, with detours where that fails; return how many points it has.

        It is 0 where a detour is not found, or too many are needed.
        """
        f = function("repair", I64, count=I64)
        s, w, c, n = f["s"], f["w"], f["c"], SETUP.load(f["s"], "n")
        path, detour = CALL.load(c, "path"), WORK.load(w, "detour")
        count, k = f.variable(I64, f["count"]), f.variable(I64, 1)
        left = f.variable(I64, DETOURS)
        # The problem of a detour, beside that of the whole way.
        own, verdicts = f.reserve(CALL.bytes), f.reserve(16)
        nothing = f.constant(I64, 0)
        with f.forever() as loop:
            loop.leave(k.get() >= count.get())
            p, q = (f.element(path, F64, (k.get() - m) * n) for m in (1, 0))
            with f.when(call(f, "proven", I1, p, q)):
                k.set(k.get() + 1)
                loop.repeat()
            left.set(left.get() - 1)
            with f.when(left.get() < 0):
                f.ret(nothing)
            copy_bytes(own, c, CALL.bytes)
            for at in range(2):
                f.store(nothing, verdicts, at)
            for field, value in (
                ("start", p),
                ("goals", q),
                ("goal_count", 1),
                ("path", detour),
                ("verdicts", verdicts),
                ("sure", 1),
                ("tight", 1),
                ("most", SAMPLES),
                ("bound", 0.0),
                ("pause", 0),
            ):
                CALL.store(value, own, field)
            # The trees of the problem are kept.
            self.swap_trees(f)
            found = f.call("@search", I64, s, w, own)
            more = f.variable(I64, 0)
            with f.when(found > 0):
                more.set(f.call("@shorten", I64, s, w, own, found))
            self.swap_trees(f)
            for field in COUNTED:
                CALL.store(CALL.load(own, field), c, field)
            total = count.get() + more.get() - 2
            is_wrong = (more.get() < 2) | (total > SETUP.load(s, "path_room"))
            with f.when(is_wrong):
                f.ret(nothing)
            # All but the ends of the detour go between the ends of the motion.
            move_points(f, path, (k.get(), count.get()), k.get() + more.get() - 2)
            inner = f.element(detour, F64, n)
            copy_reals(f, inner, q, (more.get() - 2) * n)
            count.set(total)
        f.ret(count.get())
        return f

    def swap_trees(self, f: FunctionBuilder) -> None:
        """Put other trees in place of those that searches work with."""
        for k in range(2):
            now, spare = (WORK.load(f["w"], name, k) for name in ("tree", "spare"))
            WORK.store(spare, f["w"], "tree", k)
            WORK.store(now, f["w"], "spare", k)
