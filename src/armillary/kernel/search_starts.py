"""Where a lane of a search starts: as asked, from a table of answers, or at random."""

from __future__ import annotations

from dataclasses import dataclass

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import F64, I16, I32, I64, PTR, VOID
from armillary.kernel.search_layout import CALL, FAR, PACK, PLAN, SearchLayout

__all__ = ["SearchStarts"]


@dataclass(frozen=True)
class SearchStarts:
    """The functions of a search that choose starts.

    Attributes:
        at: Where numbers lie.
        pairs: Pairs of features in the table of starts.
        levels: The largest feature.
        avx2: Whether the machine has an instruction for sums of two products.
    """

    at: SearchLayout
    pairs: int
    levels: int
    avx2: bool

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them: `@start(plan, call, s, to, lane, slot)` is the last."""
        return [self._key(), self._scan(), self._nearest(), self._start()]

    def _key(self) -> FunctionBuilder:
        """Return a number made of the parameters of a problem."""
        f = FunctionBuilder("key", I64, problem=PTR)
        key = f.variable(I64, 0)
        with f.loop(self.at.m) as k:
            key.set(_mixed(key.get()) ^ f.load(I64, f["problem"], k))
        f.ret(key.get())
        return f

    def _grid_cell(self, f: FunctionBuilder, axis: int) -> Value:
        """Return the coordinate of a problem in the grid along an axis, within it."""
        grid = PLAN.load(f["plan"], "grid")
        column = f.load(I64, PLAN.load(f["plan"], "axes"), axis)
        value = f.load(F64, f["problem"], column)
        scaled = (value - f.load(F64, grid, axis)) * f.load(F64, grid, 3)
        return _clipped(scaled, 0.0, f.load(F64, grid, 4 + axis)).to(I64, "fptosi")

    def _feature(self, f: FunctionBuilder, k: int) -> Value:
        """Return a feature of a problem, a whole number within the table's bounds."""
        column = f.load(I64, PLAN.load(f["plan"], "columns"), k)
        factor = f.load(F64, PLAN.load(f["plan"], "factors"), k)
        scaled = f.load(F64, f["problem"], column) * factor
        return _clipped(scaled, -self.levels, self.levels).to(I32, "fptosi")

    def _squares(self, a: Value) -> Value:
        """Return squares of whole numbers, added two by two."""
        f, eight = a.function, I32.wide(PACK)
        if self.avx2:  # LLVM does not find the instruction by itself
            name = "@llvm.x86.avx2.pmadd.wd"
            kinds = f"{a.type.text}, {a.type.text}"
            f.declared[name] = f"declare {eight.text} {name}({kinds})"
            return f.call(name, eight, a, a)
        both = a.to(eight, "bitcast")
        even, odd = (both << 16).shifted_right(16), both.shifted_right(16)
        return even * even + odd * odd

    def _scan(self) -> FunctionBuilder:
        """Search the grid cell of a problem for entries farther than `taken`.

        For each place in a pack the nearest is kept. Entries lie in packs of eight,
        two features after two, so that eight of them are compared at once.
        """
        eight, shorts = I32.wide(PACK), I16.wide(2 * PACK)
        f = FunctionBuilder(
            "scan", plan=PTR, problem=PTR, taken=I32, distances=PTR, packs=PTR
        )
        x, y, z = (self._grid_cell(f, axis) for axis in range(3))
        grid, offsets = (PLAN.load(f["plan"], name) for name in ("grid", "offsets"))
        ny, nz = (f.load(F64, grid, at).to(I64, "fptosi") for at in (7, 8))
        cell = (x * ny + y) * nz + z
        first, end = f.load(I64, offsets, cell), f.load(I64, offsets, cell + 1)
        limit = f["taken"].splat(PACK)
        wanted = [
            self._pair(f, s).splat(PACK).to(shorts, "bitcast")
            for s in range(self.pairs)
        ]
        best, least = f.variable(eight, 0), f.variable(eight, FAR)
        features = PLAN.load(f["plan"], "features")
        with f.loop(end, first) as r:
            pack = f.element(features, shorts, r * self.pairs)
            distance = f.constant(eight, 0)
            for s, other in enumerate(wanted):
                distance += self._squares(f.load(shorts, pack, s, align=2) - other)
            better = (distance > limit) & (distance < least.get())
            best.set(better.select(r.to(I32, "trunc").splat(PACK), best.get()))
            least.set(better.select(distance, least.get()))
        f.store(least.get(), f["distances"])
        f.store(best.get(), f["packs"])
        f.ret()
        return f

    def _pair(self, f: FunctionBuilder, s: int) -> Value:
        """Return two features of a problem in one number."""
        even, odd = self._feature(f, 2 * s), self._feature(f, 2 * s + 1)
        return (even & 0xFFFF) | (odd << 16)

    def _nearest(self) -> FunctionBuilder:
        """Return the nearest entry of the table that was not taken yet; -1 for none."""
        eight = I32.wide(PACK)
        f = FunctionBuilder("nearest", I64, plan=PTR, s=PTR, problem=PTR, slot=I64)
        distances, packs, taken = (
            self.at.state.address(f["s"], name, f["slot"])
            for name in ("distances", "packs", "taken")
        )
        void = PLAN.load(f["plan"], "void").to(I32, "trunc")
        known = f.variable(eight, f.load(eight, distances))

        def least() -> Value:
            return f.intrinsic("vector.reduce.smin", I32, known.get(), of=eight)

        with f.when(least() >= void):
            taken_before = f.load(I32, taken)
            arguments = f["plan"], f["problem"], taken_before, distances, packs
            f.call("@scan", VOID, *arguments)
            known.set(f.load(eight, distances))
            with f.when(least() >= void):
                f.ret(f.constant(I64, -1))
        nearest = least()
        bits = known.get().equals(nearest.splat(PACK)).mask()
        place = f.count_trailing_zeros(bits)
        f.store(f.constant(I32, FAR), distances, place)
        f.store(nearest, taken)
        f.ret(f.load(I32, packs, place).to(I64, "sext") * PACK + place)
        return f

    def _start(self) -> FunctionBuilder:
        """Put a lane at its next start; `slot` is the lane that counts the starts."""
        state = self.at.state
        f = FunctionBuilder(
            "start", plan=PTR, call=PTR, s=PTR, to=PTR, lane=I64, slot=I64
        )
        plan, s, lane, slot = f["plan"], f["s"], f["lane"], f["slot"]
        f.store(f.constant(I64, 0), self.at.lane(s, "age", lane))
        f.store(f.constant(F64, float("inf")), self.at.lane(s, "last_error", lane))
        tries = state.load(s, "begun", slot)
        state.store(tries + 1, s, "begun", slot)
        f.store(tries + 1, self.at.lane(s, "tries", lane))
        index = state.load(s, "problem", slot)
        problem = self.at.problem(f, index)
        is_given = CALL.load(f["call"], "seeds").differs(0)
        with f.when(is_given & tries.equals(0)):
            self.at.put(
                f, f["to"], lane, self.at.row(f, "seeds", index, self.at.n), self.at.n
            )
            f.ret()
        with f.when(tries < PLAN.load(plan, "table_starts")):
            place = f.call("@nearest", I64, plan, s, problem, slot)
            with f.when(place >= 0):
                known = f.element(PLAN.load(plan, "starts"), F64, place * self.at.n)
                self.at.put(f, f["to"], lane, known, self.at.n)
                f.ret()
        key = f.call("@key", I64, problem)
        key ^= _mixed(PLAN.load(plan, "seed")) ^ _mixed(tries)
        lower, span = (PLAN.load(plan, name) for name in ("lower", "span"))
        with f.loop(self.at.n) as k:
            part = (_mixed(key + k) >> 11).to(F64, "uitofp") * 2.0**-53
            number = f.load(F64, lower, k) + part * f.load(F64, span, k)
            f.store(number, f["to"], k * self.at.lanes + lane)
        f.ret()
        return f


def _mixed(x: Value) -> Value:
    """Return a good 64-bit number made of any other (SplitMix64)."""
    x = x + -7046029254386353131
    x = (x ^ (x >> 30)) * -4658895280553007687
    x = (x ^ (x >> 27)) * -7723592293110705685
    return x ^ (x >> 31)


def _clipped(x: Value, low: float, high: Operand) -> Value:
    """Return a real within bounds; NaN becomes the lower one."""
    f = x.function
    above = (x > low).select(x, f.constant(x.type, low))
    top = high if isinstance(high, Value) else f.constant(x.type, high)
    return (above < top).select(above, top)
