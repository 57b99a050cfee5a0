"""The code of a planner along constraints: positions, curves, and proofs of them.

A motion along constraints is the curve of the projections of a straight motion. It is
replaced by straight motions between points of it, as short as tolerances ask for: the
middle and the quarters of each are within a part of them. That constraints hold along
these, and that they touch nothing, is proven.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import F64, I1, I64, PTR, bits_of_lanes
from armillary.planning.code_parts import (
    PartOfLoop,
    call,
    copy_reals,
    counted,
    downwards,
    function,
)
from armillary.planning.layout import CALL, PATH_ROOM, SETUP, WORK

__all__ = ["SurfaceCode"]

FARTHEST: Final = 2.0
"""By how much steps along constraints may be longer than straight ones."""

SPARE: Final = 1e-3
"""What roundings and projections add to that, as a weighted length."""

MOST_HALVINGS: Final = 12
"""How often a motion is halved."""

ASTRAY_PART: Final = 0.8
"""Halves that are longer than this part of the whole lead elsewhere."""

QUARTERS: Final = (0.25, 0.5, 0.75)

OPEN, CLOSED = 1, 0


class SurfaceCode(PartOfLoop):
    """The functions that keep to constraints."""

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them; each stands behind those that it calls."""
        return [
            self.project(),
            self.steps_are_short(),
            self.projected(),
            self.settled(),
            self.are_far(),
            self.halved(),
            self.curve(),
            self.held(),
            self.curve_is_proven(),
            self.spread(),
        ]

    def project(self) -> FunctionBuilder:
        """Project the positions in `rates`, into the columns of the check.

        It returns whether all of them satisfy the constraints then.
        """
        f = function("project", I1)
        n, lanes, some = SETUP.load(f["s"], "n"), self.lanes, self.prover_lanes
        part, wide = self.one.wide(some), F64.wide(some)
        rates, columns = (WORK.load(f["w"], name) for name in ("rates", "columns"))
        given, reached = (WORK.load(f["w"], "surface", k) for k in range(2))
        size = self.one.bytes
        with f.loop(lanes, 0, some) as first:
            with f.loop(n) as j:
                x = f.load(
                    part, f.element(rates, self.one, j * lanes + first), align=size
                )
                f.store(x if part == wide else x.to(wide, "fpext"), given, j)
            with f.when(call(f, "projected", I64).differs(0)):
                f.ret(f.constant(I1, 0))
            with f.loop(n) as j:
                x = f.load(wide, reached, j)
                x = x if part == wide else x.to(part, "fptrunc")
                at = f.element(columns, self.one, j * lanes + first)
                f.store(x, at, align=size)
        f.ret(f.constant(I1, 1))
        return f

    def projected(self) -> FunctionBuilder:
        """Project the first columns of `surface` into the others.

        It returns a bit for each lane that does not satisfy the constraints then.
        """
        f = function("projected", I64)
        some = self.prover_lanes
        bits, missed = bits_of_lanes(some), WORK.load(f["w"], "missed")
        given, reached = (WORK.load(f["w"], "surface", k) for k in range(2))
        code, tables = (SETUP.load(f["s"], x) for x in ("project", "project_tables"))
        arguments = given, reached, missed, tables, f.constant(bits, -1)
        flags = f.call(code.text, bits, *arguments)
        off = f.load(F64.wide(some), missed).exceeds_or_nan(0.0).mask()
        f.ret(off | self.as_integer(flags))
        return f

    def as_integer(self, bits: Value) -> Value:
        """Return the bits of lanes as an integer of 64 bits."""
        return bits if bits.type == I64 else bits.to(I64, "zext")

    def steps_are_short(self) -> FunctionBuilder:
        """Return whether no lane is far from the one before, the first one from `a`.

        Else the projection has led them to different parts of a surface.
        """
        f = function("steps_are_short", I1, length=F64)
        n, lanes = SETUP.load(f["s"], "n"), self.lanes
        columns, a = (WORK.load(f["w"], x) for x in ("columns", "a"))
        weights = SETUP.load(f["s"], "weights")
        row, total = f.reserve(2 * self.real.bytes), f.variable(self.real, 0.0)
        with f.loop(n) as j:
            now = f.load(self.real, columns, j)
            f.store(f.load(self.one, a, j), row)
            behind = f.element(row, self.one, 1)
            f.store(now, behind, align=self.one.bytes)
            w = self.narrow(f.load(F64, weights, j)).splat(lanes)
            way = (now - f.load(self.real, row)) * w
            total.set(total.get() + way * way)
        most = f["length"] * (FARTHEST / lanes) + SPARE
        far = total.get().exceeds_or_nan(self.narrow(most * most).splat(lanes))
        f.ret(far.mask().equals(0))
        return f

    def settled(self) -> FunctionBuilder:
        """Project joint positions; return whether they satisfy constraints then."""
        f = function("settled", I1, q=PTR)
        n, some = SETUP.load(f["s"], "n"), self.prover_lanes
        given, reached = (WORK.load(f["w"], "surface", k) for k in range(2))
        with f.loop(n) as j:
            f.store(f.load(F64, f["q"], j).splat(some), given, j)
        with f.when(call(f, "projected", I64).differs(0)):
            f.ret(f.constant(I1, 0))
        with f.loop(n) as j:
            f.store(f.load(F64, reached, j * some), f["q"], j)
        f.ret(f.constant(I1, 1))
        return f

    # Curves

    def point(self, f: FunctionBuilder, k: Value) -> Value:
        """Return where a point of the curve is."""
        points, n = WORK.load(f["w"], "points"), SETUP.load(f["s"], "n")
        return f.element(points, F64, k * n)

    def are_far(self) -> FunctionBuilder:
        """Return a bit for each of some motions that leaves its part of tolerances.

        Quarters of them are tested. `first` is where their numbers begin in `open`, of
        which there are so many; what stands behind these counts for nothing.
        """
        f = function("are_far", I64, first=I64, count=I64)
        s, w, n, some = f["s"], f["w"], SETUP.load(f["s"], "n"), self.prover_lanes
        numbers, given = WORK.load(w, "open"), WORK.load(w, "surface", 0)
        errors, bits = WORK.load(w, "errors"), bits_of_lanes(some)
        code, tables = (SETUP.load(s, x) for x in ("near", "near_tables"))
        far = f.variable(I64, 0)
        for part in QUARTERS:
            with f.loop(some) as lane:
                is_there = lane < f["count"]
                k = f.load(I64, numbers, f["first"] + is_there.select(lane, 0))
                a, b = self.point(f, k), self.point(f, k + 1)
                with f.loop(n) as j:
                    x = f.load(F64, a, j)
                    x = x + (f.load(F64, b, j) - x) * part
                    f.store(x, given, j * some + lane)
            flags = f.call(code.text, bits, given, errors, tables, f.constant(bits, -1))
            far.set(far.get() | self.as_integer(flags))
            most = SETUP.load(s, "part").splat(some)
            with f.loop(SETUP.load(s, "goals")) as g:
                beyond = f.load(F64.wide(some), errors, g).exceeds_or_nan(most)
                far.set(far.get() | beyond.mask())
        f.ret(far.get() & ((f.constant(I64, 1) << f["count"]) - 1))
        return f

    def halved(self) -> FunctionBuilder:
        """Halve some motions of the curve, by points of the whole one between p and q.

        Middles are written to `middles`, by the number of the motion. It returns
        whether all of them could be projected, and lead nowhere else.

        Its arguments are as for `are_far`, and the part of the whole that a half is.
        """
        f = function("halved", I1, p=PTR, q=PTR, first=I64, count=I64, half=F64)
        w, n, some = f["w"], SETUP.load(f["s"], "n"), self.prover_lanes
        numbers, times = WORK.load(w, "open"), WORK.load(w, "times")
        given, reached = (WORK.load(w, "surface", k) for k in range(2))
        with f.loop(some) as lane:
            is_there = lane < f["count"]
            k = f.load(I64, numbers, f["first"] + is_there.select(lane, 0))
            t = f.load(F64, times, k) + f["half"]
            with f.loop(n) as j:
                x = f.load(F64, f["p"], j)
                f.store(x + (f.load(F64, f["q"], j) - x) * t, given, j * some + lane)
        no = f.constant(I1, 0)
        with f.when(call(f, "projected", I64).differs(0)):
            f.ret(no)
        with f.loop(f["count"]) as lane:
            k = f.load(I64, numbers, f["first"] + lane)
            middle = f.element(WORK.load(w, "middles"), F64, k * n)
            with f.loop(n) as j:
                f.store(f.load(F64, reached, j * some + lane), middle, j)
            a, b = self.point(f, k), self.point(f, k + 1)
            most = call(f, "length", F64, a, b) * ASTRAY_PART
            for x, y in ((a, middle), (middle, b)):
                with f.when(call(f, "length", F64, x, y) > most):
                    f.ret(no)
        f.ret(f.constant(I1, 1))
        return f

    def curve(self) -> FunctionBuilder:
        """Write the points of the curve between two positions to `points`.

        It returns how many there are, 0 where they are too many or lead elsewhere.
        """
        f = function("curve", I64, p=PTR, q=PTR)
        w, n, some = f["w"], SETUP.load(f["s"], "n"), self.prover_lanes
        times, gaps, numbers = (WORK.load(w, x) for x in ("times", "gaps", "open"))
        count, half = f.variable(I64, 2), f.variable(F64, 0.5)
        nothing = f.constant(I64, 0)
        for k, row in enumerate((f["p"], f["q"])):
            copy_reals(f, row, self.point(f, f.constant(I64, k)), n)
            f.store(f.constant(F64, k), times, k)
            f.store(f.constant(I64, OPEN), gaps, k)
        with f.loop(MOST_HALVINGS + 1) as level:
            # Those motions that are too long, and their middles.
            left = f.variable(I64, 0)
            with f.loop(count.get() - 1) as k:
                f.store(k, numbers, left.get())
                left.set(left.get() + f.load(I64, gaps, k))
            halves = f.variable(I64, 0)
            with f.loop(left.get(), 0, some) as first:
                rest = left.get() - first
                rest = (rest < some).select(rest, some)
                far = f.variable(I64, call(f, "are_far", I64, first, rest))
                with f.loop(rest) as lane:
                    k = f.load(I64, numbers, first + lane)
                    is_far = (far.get() >> lane) & 1
                    f.store(is_far, gaps, k)
                    # Numbers of those that are halved stand at the beginning.
                    f.store(k, numbers, halves.get())
                    halves.set(halves.get() + is_far)
            more = halves.get()
            with f.when(more.equals(0)):
                f.ret(count.get())
            is_full = count.get() + more > PATH_ROOM
            with f.when(is_full | level.equals(MOST_HALVINGS)):
                f.ret(nothing)
            with f.loop(more, 0, some) as first:
                rest = more - first
                rest = (rest < some).select(rest, some)
                ends = f["p"], f["q"], first, rest, half.get()
                with f.when(~call(f, "halved", I1, *ends)):
                    f.ret(nothing)
            self.insert(f, count.get(), more, half.get())
            count.set(count.get() + more)
            half.set(half.get() * 0.5)
        f.ret(nothing)
        return f

    def insert(
        self, f: FunctionBuilder, count: Value, more: Value, half: Value
    ) -> None:
        """Put middles between points of the curve, of which there are so many."""
        w, n = f["w"], SETUP.load(f["s"], "n")
        times, gaps, middles = (WORK.load(w, x) for x in ("times", "gaps", "middles"))
        shift = f.variable(I64, more)
        with downwards(f, count - 1, 0) as k:
            # Point k moves by the middles before it; behind it begins gap k.
            to = k + shift.get()
            is_halved = f.load(I64, gaps, k)
            copy_reals(f, self.point(f, k), self.point(f, to), n)
            t = f.load(F64, times, k)
            f.store(t, times, to)
            f.store(is_halved, gaps, to)
            with f.when(k > 0):
                before = f.load(I64, gaps, k - 1)
                with f.when(before.equals(OPEN)):
                    middle = f.element(middles, F64, (k - 1) * n)
                    copy_reals(f, middle, self.point(f, to - 1), n)
                    f.store(f.load(F64, times, k - 1) + half, times, to - 1)
                    f.store(before, gaps, to - 1)
                    shift.set(shift.get() - 1)

    # Proofs

    def held(self) -> FunctionBuilder:
        """Return whether constraints hold along some motions of the curve.

        Their ends are in `ends` then: `count` motions from point `first` on, and the
        first of them again in lanes that are left over.
        """
        f = function("held", I1, first=I64, count=I64)
        s, w, n, some = f["s"], f["w"], SETUP.load(f["s"], "n"), self.prover_lanes
        bits, ends = bits_of_lanes(some), [WORK.load(w, "ends", k) for k in range(2)]
        with f.loop(some) as lane:
            k = f["first"] + (lane < f["count"]).select(lane, 0)
            for more, column in enumerate(ends):
                row = self.point(f, k + more)
                with f.loop(n) as j:
                    f.store(f.load(F64, row, j), column, j * some + lane)
        holds = WORK.load(w, "how_far")
        code, tables = (SETUP.load(s, x) for x in ("holds", "holds_tables"))
        flags = f.call(code.text, bits, *ends, holds, tables, f.constant(bits, -1))
        good = f.load(F64.wide(some), holds) > 0.0
        f.ret((~good).mask().equals(0) & flags.equals(0))
        return f

    def curve_is_proven(self) -> FunctionBuilder:
        """Return whether the curve between two positions is proven.

        Exact proofs are asked for as many motions as there are lanes.
        """
        f = function("curve_is_proven", I1, p=PTR, q=PTR)
        some, no = self.prover_lanes, f.constant(I1, 0)
        pieces = call(f, "curve", I64, f["p"], f["q"]) - 1
        with f.when(pieces < 0):
            f.ret(no)
        is_quick = SETUP.load(f["s"], "quick").differs(0)
        with f.loop(pieces, 0, some) as first:
            rest = pieces - first
            rest = (rest < some).select(rest, some)
            with f.when(~call(f, "held", I1, first, rest)):
                f.ret(no)
            with f.when(~is_quick):
                counted(f, "proofs", rest)
                with f.when(~call(f, "ends_are_proven", I1, rest)):
                    f.ret(no)
        with f.when(is_quick), f.loop(pieces) as k:
            ends = self.point(f, k), self.point(f, k + 1)
            with f.when(~call(f, "straight_is_proven", I1, *ends)):
                f.ret(no)
        f.ret(f.constant(I1, 1))
        return f

    def spread(self) -> FunctionBuilder:
        """Put points of curves between way points; return how many there are then.

        It is 0 where there is no room for them. Without constraints all stays.
        """
        f = function("spread", I64, count=I64)
        n, path = SETUP.load(f["s"], "n"), CALL.load(f["c"], "path")
        with f.when(SETUP.load(f["s"], "project").equals(0)):
            f.ret(f["count"])
        way, used = WORK.load(f["w"], "detour"), f.variable(I64, 1)
        copy_reals(f, path, way, f["count"] * n)
        with f.loop(f["count"], 1) as k:
            p, q = (f.element(way, F64, at * n) for at in (k - 1, k))
            # Way points that are there twice are left out.
            is_motion = (call(f, "length", F64, p, q) > 0.0) | f["count"].equals(2)
            with f.when(is_motion):
                points = call(f, "curve", I64, p, q)
                is_wrong = points.equals(0) | (used.get() + points > PATH_ROOM)
                with f.when(is_wrong):
                    f.ret(f.constant(I64, 0))
                to = f.element(path, F64, used.get() * n)
                one = f.constant(I64, 1)
                copy_reals(f, self.point(f, one), to, (points - 1) * n)
                used.set(used.get() + points - 1)
        f.ret(used.get())
        return f
