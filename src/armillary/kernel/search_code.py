"""The code of a search: a multi-start iteration with one problem in each lane.

`@step` and `@guard` are compiled programs on columns: a vector for each number, a lane
for each problem. `@step` reads unknowns, parameters and, if it has a third input, what
all problems share; it writes the next unknowns and the errors of the present ones.
`@guard` writes a number above 0 for parameters that are valid.

A lane that has solved its problem takes the next one at once; a lane that does not come
nearer starts again elsewhere. Starts come from the caller, then from a table of known
answers (nearest first, sought in the grid cell of the problem), then at random from a
key that depends on the problem alone. The answer is what the first of these starts
finds that leads to one, also where all lanes share the starts of a single problem: so
it depends on the problem alone. What a step means is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

from armillary.kernel.builder import FunctionBuilder, Operand, Value, module_text
from armillary.kernel.emit import emit_columns
from armillary.kernel.fastcall_entry import (
    checked_array,
    field,
    new_array,
    slow_call,
)
from armillary.kernel.machine_type import F64, I1, I16, I32, I64, PTR, VOID
from armillary.kernel.memory import clear_bytes, copy_bytes
from armillary.kernel.object_layout import CALL_WORDS, DATA
from armillary.kernel.random_code import mixed
from armillary.kernel.search_layout import (
    CALL,
    CLOSE,
    ENDING,
    FAR,
    INVALID,
    NEVER,
    PACK,
    PLAN,
    SOLVED,
    STARTS,
    STATUS,
    STEPS,
    STOPPED,
    UNSOLVED,
    SearchLayout,
)
from armillary.trace import Port, Program

__all__ = ["search_code"]


def search_code(
    step: Program,
    guard: Program,
    lanes: int,
    *,
    pairs: int,
    levels: int,
    avx2: bool,
    single: tuple[int, ...] | None = None,
) -> str:
    """Return the LLVM IR of `@search(ptr plan, ptr call)`, which counts failures.

    Args:
        step: See above; inputs (n,), (m,) and maybe (c,), outputs (n,) and (k,).
        guard: See above.
        lanes: The number of problems that it works on at once.
        pairs: Pairs of features in the table of starts.
        levels: The largest feature.
        avx2: Whether the machine has an instruction for sums of two products.
        single: The shape of an array of parameters of one problem, for `@single`; None
            where that is not needed.
    """
    n, m, c = (*(port.size for port in step.inputs), 0)[:3]
    at = SearchLayout(n, m, c, step.outputs[1].size, lanes)
    functions: list[FunctionBuilder] = []
    for name, program in (("step", step), ("guard", guard)):
        functions += emit_columns(name, program, F64.wide(lanes), is_alone=True)[0]
    functions += _SearchStarts(at, pairs, levels, avx2).functions()
    functions += _SearchLoop(at).functions()
    if single is not None:
        functions.append(_single_function(at, Port("parameters", single)))
    return module_text(functions)


def _single_function(at: SearchLayout, port: Port) -> FunctionBuilder:
    """Return @single, the body of a Python function that solves one problem.

    It takes its parameters; where these are fewer than the problem has, also the first
    start, which is the rest of them. It returns an array of the unknowns, the errors,
    the whole numbers of the ending, and 1 where the problem is solved, and no unknown
    is farther than CLOSE from a start that was given, else 0. Anything but
    plain arrays goes to the slow callable.

    Args:
        at: The layout of the search.
        port: The array of parameters that it takes.
    """
    f = FunctionBuilder(
        "single", PTR, exported=True, owner=PTR, arguments=PTR, count=I64, keywords=PTR
    )
    is_seeded = port.size < at.m
    assert port.size + at.n * is_seeded == at.m
    words = field(f["owner"], DATA, PTR)
    slow, failed = f.label(), f.label()
    f.guard(f["count"].equals(1 + is_seeded), slow)
    f.guard(f["keywords"].equals(0), slow)
    given = f.load(PTR, f["arguments"])
    problem = checked_array(f, given, words, port, F64, slow)
    seed = f.constant(PTR, 0)
    if is_seeded:
        given = f.load(PTR, f["arguments"], 1)
        seed = checked_array(f, given, words, Port("seed", (at.n,)), F64, slow)
        whole = f.reserve(8 * at.m, 8)
        copy_bytes(whole, problem, 8 * port.size)
        copy_bytes(f.element(whole, F64, port.size), seed, 8 * at.n)
        problem = whole
    made = new_array(f, words, Port("row", (at.n + at.k + ENDING + 1,)))
    f.guard(made.differs(0), failed)
    answer = field(made, DATA, PTR)
    errors = f.element(answer, F64, at.n)
    ending = f.element(errors, F64, at.k)
    # As `search.Search` packs it. The plan is where @call has its tables.
    plan, call = CALL_WORDS.load(words, "tables"), f.reserve(CALL.bytes, CALL.align)
    has_starts = (PLAN.load(plan, "max_starts") > 1).to(I64, "zext")
    clear_bytes(call, CALL.bytes)
    for name, value in (
        ("count", 1),
        ("problems", problem),
        ("stride", at.m),
        ("seeds", seed),
        ("answers", answer),
        ("residuals", errors),
        ("endings", ending),
        ("together", has_starts),
        ("lanes", at.lanes),
    ):
        CALL.store(value, call, name)
    failures = f.call("@search", I64, plan, call)
    good = failures.equals(0)
    for k in range(at.n if is_seeded else 0):
        step = abs(f.load(F64, answer, k) - f.load(F64, seed, k))
        good &= step <= CLOSE
    f.store(good.select(1.0, f.constant(F64, 0.0)), ending, ENDING)
    f.ret(made)
    f.start(slow)
    f.ret(slow_call(f, CALL_WORDS, words))
    f.start(failed)  # with Python's MemoryError
    f.ret(f.constant(PTR, 0))
    return f


@dataclass(frozen=True)
class _SearchLoop:
    """The functions of a search that hand problems to lanes, and end them."""

    at: SearchLayout

    def functions(self) -> list[FunctionBuilder]:
        """Return all of them, `search` last."""
        return [self._finish(), self._take(), self._late(), self._search()]

    def _finish(self) -> FunctionBuilder:
        """Write how a problem ended; nearest answers are written before."""
        f = FunctionBuilder("finish", call=PTR, s=PTR, index=I64, status=I64)
        call, s, index = f["call"], f["s"], f["index"]
        failed = f["status"].differs(SOLVED)
        # `left` counts down to 0, which ends the loop.
        self.at.state.store(self.at.state.load(s, "left") - 1, s, "left")
        failures = self.at.state.load(s, "failures") + failed.to(I64, "zext")
        self.at.state.store(failures, s, "failures")
        f.store(f["status"], self.at.row(f, "endings", index, ENDING), STATUS)
        with f.when(CALL.load(call, "chained").differs(0)):
            seed, answer = (
                self.at.row(f, name, index, self.at.n) for name in ("seeds", "answers")
            )
            last = failed.select(seed, answer)
            copy_bytes(f.element(seed, F64, self.at.n), last, 8 * self.at.n)
        f.ret()
        return f

    def _take(self) -> FunctionBuilder:
        """Give a lane the next valid problem; let it rest when there is none.

        Where the deadline has passed, all problems that are left end at once.
        """
        f = FunctionBuilder(
            "take", plan=PTR, call=PTR, s=PTR, to=PTR, lane=I64, late=I1
        )
        call, s, lane, state = f["call"], f["s"], f["lane"], self.at.state
        with f.forever() as problems:
            index = state.load(s, "next")
            problems.leave(index >= CALL.load(call, "count"))
            state.store(index + 1, s, "next")
            for field, size in (("answers", self.at.n), ("residuals", self.at.k)):
                row = self.at.row(f, field, index, size)
                with f.loop(size) as k:
                    f.store(f.constant(F64, float("nan")), row, k)
            ending = self.at.row(f, "endings", index, ENDING)
            for k in (STEPS, STARTS):
                f.store(f.constant(I64, 0), ending, k)
            with f.when(f["late"]):
                f.call("@finish", VOID, call, s, index, f.constant(I64, STOPPED))
                problems.repeat()
            row = self.at.problem(f, index)
            parameters = state.address(s, "parameters")
            self.at.put(f, parameters, lane, row, self.at.m)
            # x * 0 is 0 for finite x, else NaN: one sum finds whatever is not finite.
            zero = f.variable(F64, 0.0)
            with f.loop(self.at.m) as k:
                zero.set(zero.get() + f.load(F64, row, k) * 0.0)
            f.call("@guard", VOID, parameters, state.address(s, "verdict"))
            verdict = self.at.in_lane(s, "verdict", lane)
            with f.when((verdict > 0.0) & zero.get().equals(0.0)):
                # Here the lane is the slot that counts the starts of its problem.
                state.store(index, s, "problem", lane)
                state.store(0, s, "begun", lane)
                state.store(NEVER, s, "first_good", lane)
                state.store(-1, s, "taken", lane)
                state.store(FAR, s, "distances", lane)
                state.store(float("inf"), s, "least_error", lane)
                self.at.set_lane(1, s, "works", lane)
                f.call("@start", VOID, f["plan"], call, s, f["to"], lane, lane)
                f.ret()
            f.call("@finish", VOID, call, s, index, f.constant(I64, INVALID))
        self.at.set_lane(0, s, "works", lane)
        f.ret()
        return f

    def _late(self) -> FunctionBuilder:
        """Return whether the deadline has passed; without one no clock is read."""
        f = FunctionBuilder("late", I1, call=PTR)
        deadline = CALL.load(f["call"], "deadline")
        with f.when(deadline <= 0):
            f.ret(f.constant(I1, 0))
        # A timespec: seconds, then nanoseconds.
        time = f.reserve(16)
        clock = CALL.load(f["call"], "clock")
        f.call(clock.text, I32, CALL.load(f["call"], "clock_id").to(I32, "trunc"), time)
        now = f.load(I64, time) * 1_000_000_000 + f.load(I64, time, 1)
        f.ret(now >= deadline)
        return f

    # the loop

    def _search(self) -> FunctionBuilder:
        """Solve the problems of a call; return how many of them are not solved."""
        state = self.at.state
        f = FunctionBuilder("search", I64, exported=True, plan=PTR, call=PTR)
        plan, call = f["plan"], f["call"]
        s = f.reserve(state.bytes, state.align)
        clear_bytes(s, state.bytes)
        state.store(CALL.load(call, "count"), s, "left")
        together = CALL.load(call, "together").differs(0)
        here, there = state.address(s, "here"), state.address(s, "there")
        self._begin(f, s, here, together)
        # @step reads unknowns and writes the next ones to the other of two arrays; the
        # errors are those of the unknowns that it read.
        now, then = f.variable(PTR, here), f.variable(PTR, there)
        parameters, errors = (
            state.address(s, name) for name in ("parameters", "errors")
        )
        shared = [state.address(s, "shared")] if self.at.c else []
        with f.forever() as rounds:
            rounds.leave(state.load(s, "left") <= 0)
            inputs = [now.get(), parameters, *shared]
            f.call("@step", VOID, *inputs, then.get(), errors)
            late = f.call("@late", I1, call)
            good, ended = self._judge(f, s, late)
            # Only lanes whose start ends are looked at, one by one; the others are at
            # their next unknowns already.
            bits, good_bits = f.variable(I64, ended), good.mask()
            with f.forever() as lanes:
                lanes.leave(bits.get().equals(0))
                lane = f.count_trailing_zeros(bits.get())
                bits.set(bits.get() & (bits.get() - 1))
                # it rests since an earlier start of its problem is good
                lanes.repeat(self.at.in_lane(s, "works", lane).equals(0))
                is_good = ((good_bits >> lane) & 1).differs(0)
                # Lanes that share a problem count its starts in slot 0.
                slot = together.select(0, lane)
                arguments = s, lane, slot, now.get(), then.get()
                done = self._end_start(f, arguments, is_good, late, together)
                lanes.repeat(~done)
                with f.when(together):
                    f.ret(state.load(s, "failures"))
                f.call("@take", VOID, plan, call, s, then.get(), lane, late)
            before = now.get()
            now.set(then.get())
            then.set(before)
        f.ret(state.load(s, "failures"))
        return f

    def _begin(self, f: FunctionBuilder, s: Value, to: Value, together: Value) -> None:
        """Give each lane a problem, or each the same one."""
        plan, call, zero = f["plan"], f["call"], f.constant(I64, 0)
        parameters = self.at.state.address(s, "parameters")
        in_time = f.constant(I1, 0)
        with f.loop(CALL.load(call, "lanes")) as lane:
            if self.at.c:
                constants = PLAN.load(plan, "constants")
                shared = self.at.state.address(s, "shared")
                self.at.put(f, shared, lane, constants, self.at.c)
            # The first lane takes the only problem; the others join it, unless it is
            # invalid or has fewer starts than there are lanes.
            with f.when(together & lane.differs(0)):
                works = self.at.in_lane(s, "works", 0)
                begun = self.at.state.load(s, "begun")
                more = begun < PLAN.load(plan, "max_starts")
                with f.when(works.differs(0) & more):
                    self.at.set_lane(works, s, "works", lane)
                    row = self.at.problem(f, self.at.state.load(s, "problem"))
                    self.at.put(f, parameters, lane, row, self.at.m)
                    f.call("@start", VOID, plan, call, s, to, lane, zero)
            with f.otherwise():
                f.call("@take", VOID, plan, call, s, to, lane, in_time)

    def _judge(self, f: FunctionBuilder, s: Value, late: Value) -> tuple[Value, Value]:
        """Return which lanes have solved their problem, and which have to stop."""
        state, plan, w = self.at.state, f["plan"], self.at.lanes

        def wide(field: str) -> Value:
            return PLAN.load(plan, field).splat(w)

        good, error = f.variable(I1.wide(w), 1), f.variable(F64.wide(w), 0.0)
        tolerances = PLAN.load(plan, "tolerances")
        with f.loop(self.at.k) as k:
            part = state.load(s, "errors", k)
            # A lane is good where each error is within its tolerance; NaN never is.
            good.set(good.get() & (part <= f.load(F64, tolerances, k).splat(w)))
            error.set(error.get() + part)
        works = state.load(s, "works")
        # `works` is 1 or 0, so that lanes at rest do not age.
        age = state.load(s, "age") + works
        state.store(age, s, "age")
        last = state.load(s, "last_error")
        state.store(error.get(), s, "last_error")
        staleness = PLAN.load(plan, "staleness")
        numbers = (f.load(F64, staleness, k).splat(w) for k in range(3))
        factor, floor, still = numbers
        patient = state.load(s, "tries") > wide("patient_after")
        is_old = age >= patient.select(wide("patient_steps"), wide("max_steps"))
        # Slow: the error fell by less than the factor asks. A start near an answer, or
        # after many starts, may be slow.
        is_slow = error.get().exceeds_or_nan(factor * last)
        is_far = error.get().exceeds_or_nan(floor)
        is_stale = (age >= wide("stale_from")) & is_slow & is_far & ~patient
        # Next to a least error that is not 0 nothing is to be waited for.
        is_still = abs(last - error.get()) <= still * last
        is_stale |= (age >= wide("max_steps")) & is_still & is_far & patient
        stops = is_stale | is_old | error.get().is_nan() | good.get() | late.splat(w)
        return good.get(), (stops & works.differs(0)).mask()

    def _end_start(
        self,
        f: FunctionBuilder,
        at: tuple[Value, Value, Value, Value, Value],
        is_good: Value,
        late: Value,
        together: Value,
    ) -> Value:
        """End a lane's start; return whether its problem is finished.

        The answer is that of the first good start, in the order of starts; until there
        is one, the nearest to which a start leads. Where lanes share a problem, those
        on later starts than a good one rest, and those on earlier ones go on.
        """
        s, lane, slot, now, then = at
        state, call, w = self.at.state, f["call"], self.at.lanes
        index = state.load(s, "problem", slot)
        start = self.at.in_lane(s, "tries", lane)
        error = self.at.in_lane(s, "last_error", lane)
        least = state.load(s, "least_error", slot)
        first_good = state.load(s, "first_good", slot)
        none_is_good = first_good.equals(NEVER)
        ending = self.at.row(f, "endings", index, ENDING)
        before = start < f.load(I64, ending, STARTS)
        # Of equal errors that of the earlier start counts, whichever lane ends first.
        is_nearer = (error < least) | (error.equals(least) & before)
        # Before a good start is known the nearest counts, then the earliest good one.
        with f.when((is_good & (start < first_good)) | (none_is_good & is_nearer)):
            self._write(f, s, lane, index, now)
            state.store(error, s, "least_error", slot)
            f.store(start, ending, STARTS)
            f.store(self.at.in_lane(s, "age", lane), ending, STEPS)
        with f.when(is_good & (start < first_good)):
            state.store(start, s, "first_good", slot)
        none_is_good = state.load(s, "first_good", slot).equals(NEVER)
        begun = state.load(s, "begun", slot)
        goes_on = none_is_good & ~late & (begun < PLAN.load(f["plan"], "max_starts"))
        with f.when(goes_on):
            f.call("@start", VOID, f["plan"], call, s, then, lane, slot)
        with f.otherwise():
            self.at.set_lane(0, s, "works", lane)
            with f.when(together):  # lanes on later starts than a good one rest
                first_good = state.load(s, "first_good", slot)
                earlier = state.load(s, "tries") < first_good.splat(w)
                # A comparison as integers is -1 or 0 in each lane: it masks what is 1
                # or 0.
                works = state.load(s, "works") & earlier.to(I64.wide(w), "sext")
                state.store(works, s, "works")
        # The problem is finished when no lane works on it any more.
        others = together & state.load(s, "works").differs(0).mask().differs(0)
        done = ~goes_on & ~others
        with f.when(done):
            with f.when(none_is_good):
                f.store(begun, ending, STARTS)
            missed = late.select(STOPPED, f.constant(I64, UNSOLVED))
            status = none_is_good.select(missed, SOLVED)
            f.call("@finish", VOID, call, s, index, status)
        return done

    def _write(
        self, f: FunctionBuilder, s: Value, lane: Value, index: Value, now: Value
    ) -> None:
        """Write the unknowns and errors of a lane as those of a problem."""
        errors = self.at.state.address(s, "errors")
        for name, column, size in (
            ("answers", now, self.at.n),
            ("residuals", errors, self.at.k),
        ):
            row = self.at.row(f, name, index, size)
            self.at.get(f, row, column, lane, size)


@dataclass(frozen=True)
class _SearchStarts:
    """The functions of a search that choose starts.

    Attributes:
        at: The layout of what it reads and writes.
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
            # The bits of each parameter; the order of parameters counts, since the key
            # is mixed in between.
            key.set(mixed(key.get()) ^ f.load(I64, f["problem"], k))
        f.ret(key.get())
        return f

    def _grid_cell(self, f: FunctionBuilder, axis: int) -> Value:
        """Return the coordinate of a problem in the grid along an axis, within it."""
        grid = PLAN.load(f["plan"], "grid")
        column = f.load(I64, PLAN.load(f["plan"], "axes"), axis)
        value = f.load(F64, f["problem"], column)
        # Origin, then the inverse side, then the greatest cell number by axis: see
        # `SeedTable`.
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
        # A pair of features is one integer of 32 bits, the even one in its low half:
        # shifts take it apart, with the sign.
        both = a.to(eight, "bitcast")
        even, odd = (both << 16).shifted_right(16), both.shifted_right(16)
        return even * even + odd * odd

    def _scan(self) -> FunctionBuilder:
        """Search the grid cell of a problem for entries farther than `taken`.

        Of the entries with the same place in their packs it writes the nearest: its
        squared distance and its pack. Entries lie in packs of eight, two features after
        two, so that eight of them are compared at once.
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
        # Entries up to that distance were starts already; another one at the very same
        # distance is left out.
        limit = f["taken"].splat(PACK)
        wanted = [
            self._pair(f, s).splat(PACK).to(shorts, "bitcast")
            for s in range(self.pairs)
        ]
        best, least = f.variable(eight, 0), f.variable(eight, FAR)
        features = PLAN.load(f["plan"], "features")
        with f.loop(end, first) as r:
            pack = f.element(features, shorts, r * self.pairs)
            # The sum of squared differences of all features; it has no overflow, as
            # `levels_of` bounds them.
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
        # What is as far off as this is padding of a pack, or was taken.
        void = PLAN.load(f["plan"], "void").to(I32, "trunc")
        candidates = f.variable(eight, f.load(eight, distances))

        def least() -> Value:
            return f.intrinsic("vector.reduce.smin", I32, candidates.get(), of=eight)

        with f.when(least() >= void):
            # The eight candidates of the last scan are used up: scan again, farther
            # off.
            taken_before = f.load(I32, taken)
            arguments = f["plan"], f["problem"], taken_before, distances, packs
            f.call("@scan", VOID, *arguments)
            candidates.set(f.load(eight, distances))
            with f.when(least() >= void):
                f.ret(f.constant(I64, -1))
        nearest = least()
        # Which of the eight it is; then it stops being a candidate.
        bits = candidates.get().equals(nearest.splat(PACK)).mask()
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
        self.at.set_lane(0, s, "age", lane)
        self.at.set_lane(float("inf"), s, "last_error", lane)
        tries = state.load(s, "begun", slot)
        state.store(tries + 1, s, "begun", slot)
        self.at.set_lane(tries + 1, s, "tries", lane)
        index = state.load(s, "problem", slot)
        problem = self.at.problem(f, index)
        has_seed = CALL.load(f["call"], "seeds").differs(0)
        with f.when(has_seed & tries.equals(0)):
            seed = self.at.row(f, "seeds", index, self.at.n)
            self.at.put(f, f["to"], lane, seed, self.at.n)
            f.ret()
        with f.when(tries < PLAN.load(plan, "table_starts")):
            place = f.call("@nearest", I64, plan, s, problem, slot)
            with f.when(place >= 0):
                answer = f.element(PLAN.load(plan, "starts"), F64, place * self.at.n)
                self.at.put(f, f["to"], lane, answer, self.at.n)
                f.ret()
        # At random, but the same for the same parameters, seed and number of the start.
        key = f.call("@key", I64, problem)
        key ^= mixed(PLAN.load(plan, "seed")) ^ mixed(tries)
        lower, span = (PLAN.load(plan, name) for name in ("lower", "span"))
        with f.loop(self.at.n) as k:
            # 53 bits as a real in 0 <= part < 1.
            part = (mixed(key + k) >> 11).to(F64, "uitofp") * 2.0**-53
            number = f.load(F64, lower, k) + part * f.load(F64, span, k)
            f.store(number, f["to"], k * self.at.lanes + lane)
        f.ret()
        return f


def _clipped(x: Value, low: float, high: Operand) -> Value:
    """Return a real within bounds; NaN becomes the lower one."""
    above = (x > low).select(x, low)
    return (above < high).select(above, high)
