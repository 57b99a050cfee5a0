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

from armillary.kernel.builder import FunctionBuilder, Value, module_text
from armillary.kernel.emit import emit_columns
from armillary.kernel.machine_type import F64, I1, I32, I64, PTR, VOID
from armillary.kernel.memory import clear_bytes, copy_bytes
from armillary.kernel.search_layout import (
    CALL,
    ENDING,
    FAR,
    INVALID,
    NEVER,
    PLAN,
    SOLVED,
    STARTS,
    STATUS,
    STEPS,
    STOPPED,
    UNSOLVED,
    SearchLayout,
)
from armillary.kernel.search_starts import SearchStarts
from armillary.trace import Program

__all__ = ["search_code"]


def search_code(
    step: Program,
    guard: Program,
    lanes: int,
    *,
    pairs: int,
    levels: int,
    avx2: bool,
) -> str:
    """Return the LLVM IR of `@search(ptr plan, ptr call)`, which counts failures.

    Args:
        step: See above; inputs (n,), (m,) and maybe (c,), outputs (n,) and (k,).
        guard: See above.
        lanes: How many problems it works on at once.
        pairs: Pairs of features in the table of starts.
        levels: The largest feature.
        avx2: Whether the machine has an instruction for sums of two products.
    """
    n, m, c = (*(port.size for port in step.inputs), 0)[:3]
    at = SearchLayout(n, m, c, step.outputs[1].size, lanes)
    functions: list[FunctionBuilder] = []
    for name, program in (("step", step), ("guard", guard)):
        functions += emit_columns(name, program, F64.wide(lanes), is_alone=True)[0]
    functions += SearchStarts(at, pairs, levels, avx2).functions()
    functions += _SearchLoop(at).functions()
    return module_text(functions)


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
            zero = f.variable(F64, 0.0)
            with f.loop(self.at.m) as k:  # not 0 where a number is not finite
                zero.set(zero.get() + f.load(F64, row, k) * 0.0)
            f.call("@guard", VOID, parameters, state.address(s, "verdict"))
            verdict = f.load(F64, self.at.lane(s, "verdict", lane))
            with f.when((verdict > 0.0) & zero.get().equals(0.0)):
                state.store(index, s, "problem", lane)
                state.store(0, s, "begun", lane)
                state.store(NEVER, s, "first_good", lane)
                state.store(-1, s, "taken", lane)
                state.store(FAR, s, "distances", lane)
                state.store(float("inf"), s, "least_error", lane)
                f.store(f.constant(I64, 1), self.at.lane(s, "works", lane))
                f.call("@start", VOID, f["plan"], call, s, f["to"], lane, lane)
                f.ret()
            f.call("@finish", VOID, call, s, index, f.constant(I64, INVALID))
        f.store(f.constant(I64, 0), self.at.lane(s, "works", lane))
        f.ret()
        return f

    def _late(self) -> FunctionBuilder:
        """Return whether the deadline has passed; without one no clock is read."""
        f = FunctionBuilder("late", I1, call=PTR)
        deadline = CALL.load(f["call"], "deadline")
        with f.when(deadline <= 0):
            f.ret(f.constant(I1, 0))
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
            bits, good_bits = f.variable(I64, ended), good.mask()
            with f.forever() as lanes:
                lanes.leave(bits.get().equals(0))
                lane = f.count_trailing_zeros(bits.get())
                bits.set(bits.get() & (bits.get() - 1))
                # it rests since an earlier start of its problem is good
                lanes.repeat(f.load(I64, self.at.lane(s, "works", lane)).equals(0))
                is_good = ((good_bits >> lane) & 1).differs(0)
                slot = together.select(f.constant(I64, 0), lane)
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
            with f.when(together & lane.differs(0)):
                works = f.load(I64, self.at.lane(s, "works", 0))
                begun = self.at.state.load(s, "begun")
                more = begun < PLAN.load(plan, "max_starts")
                with f.when(works.differs(0) & more):
                    f.store(works, self.at.lane(s, "works", lane))
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
            each = state.load(s, "errors", k)
            good.set(good.get() & (each <= f.load(F64, tolerances, k).splat(w)))
            error.set(error.get() + each)
        works = state.load(s, "works")
        age = state.load(s, "age") + works
        state.store(age, s, "age")
        last = state.load(s, "last_error")
        state.store(error.get(), s, "last_error")
        staleness = PLAN.load(plan, "staleness")
        factor, floor = (f.load(F64, staleness, k).splat(w) for k in range(2))
        patient = state.load(s, "tries") > wide("patient_after")
        is_old = age >= patient.select(wide("patient_steps"), wide("max_steps"))
        is_slow = error.get().exceeds_or_nan(factor * last)
        is_far = error.get().exceeds_or_nan(floor)
        is_stale = (age >= wide("stale_from")) & is_slow & is_far & ~patient
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
        start = f.load(I64, self.at.lane(s, "tries", lane))
        error = f.load(F64, self.at.lane(s, "last_error", lane))
        least = state.load(s, "least_error", slot)
        first_good = state.load(s, "first_good", slot)
        none_is_good = first_good.equals(NEVER)
        ending = self.at.row(f, "endings", index, ENDING)
        before = start < f.load(I64, ending, STARTS)
        # Of equal errors that of the earlier start counts, whichever lane ends first.
        is_nearer = (error < least) | (error.equals(least) & before)
        with f.when((is_good & (start < first_good)) | (none_is_good & is_nearer)):
            self._write(f, s, lane, index, now)
            state.store(error, s, "least_error", slot)
            f.store(start, ending, STARTS)
            f.store(f.load(I64, self.at.lane(s, "age", lane)), ending, STEPS)
        with f.when(is_good & (start < first_good)):
            state.store(start, s, "first_good", slot)
        none_is_good = state.load(s, "first_good", slot).equals(NEVER)
        begun = state.load(s, "begun", slot)
        goes_on = none_is_good & ~late & (begun < PLAN.load(f["plan"], "max_starts"))
        with f.when(goes_on):
            f.call("@start", VOID, f["plan"], call, s, then, lane, slot)
        with f.otherwise():
            f.store(f.constant(I64, 0), self.at.lane(s, "works", lane))
            with f.when(together):  # lanes on later starts than a good one rest
                first_good = state.load(s, "first_good", slot)
                earlier = state.load(s, "tries") < first_good.splat(w)
                works = state.load(s, "works") & earlier.to(I64.wide(w), "sext")
                state.store(works, s, "works")
        others = together & state.load(s, "works").differs(0).mask().differs(0)
        done = ~goes_on & ~others
        with f.when(done):
            with f.when(none_is_good):
                f.store(begun, ending, STARTS)
            solved, unsolved, stopped = (
                f.constant(I64, number) for number in (SOLVED, UNSOLVED, STOPPED)
            )
            missed = late.select(stopped, unsolved)
            status = none_is_good.select(missed, solved)
            f.call("@finish", VOID, call, s, index, status)
        return done

    def _write(
        self, f: FunctionBuilder, s: Value, lane: Value, index: Value, now: Value
    ) -> None:
        """Write the unknowns and errors of a lane as those of a problem."""
        errors = self.at.state.address(s, "errors")
        for field, column, size in (
            ("answers", now, self.at.n),
            ("residuals", errors, self.at.k),
        ):
            row = self.at.row(f, field, index, size)
            self.at.get(f, row, column, lane, size)
