"""The programs that solve for the passive joints of a block.

Newton's method starts at a stored assembly near the inputs u: positions p0 at u0, and
their rates there. Where its steps do not shrink, or the determinant of the closure
equations nearly vanishes, the way from u0 to u is walked in parts, so that the
solution stays on the branch of the assembly (numerical continuation: Allgower and
Georg, Introduction to Numerical Continuation Methods, chapter 2). Each part begins on
the tangent, which leads across a singularity, where the way has a corner.

A part is accepted only if Newton's method contracts from the first step: if each step
is below a quarter of the one before, the solution is the only one near the tangent, and
a shorter part would lead to the same (Deuflhard, Newton Methods for Nonlinear Problems,
chapter 5). The lengths of parts and of first steps are bounded as well, so that no part
leads to another assembly by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from armillary.kernel.stages import Stage, When, While
from armillary.model.loops.system import Block, LoopSystem
from armillary.spatial.lu import LU
from armillary.spatial.vector import Number
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, by_precision, maximum, minimum, select
from armillary.trace.ops import DIV
from armillary.trace.staging import staged

__all__ = ["BlockPrograms"]

MOST_QUICK: Final = 8
MOST_TRIED: Final = 2  # assemblies of a cell, from each of which a row is walked to
MOST_CUT: Final = 60
LONGEST_CUT: Final = 0.5  # step of a search [rad, or of the size of a loop]
MOST_STEPS: Final = 800
SHRINKING: Final = 0.25  # of a step, compared with the one before
LARGEST: Final = 0.1  # first step from a tangent [rad, or of the size of a loop]
LONGEST: Final = 0.5  # part of a way, of inputs and along a tangent, in the same units
QUICK: Final = 3.0  # how much longer both may be where all of a way is tried at once
NARROWER: Final = 0.3  # a part that is tried again, of the one before
LEAST_PART: Final = 1e-7
# Columns of a walk: positions; the last solution (u_good, p_good); the change of p on
# the tangent there, for all that is left; the part of it that is tried; the size of the
# last step; and whether the walk goes on: 1, 0 at its end, -1 where it is blocked.
WALKED: Final = ("p", "u_good", "p_good", "way", "part", "last", "going")
WALK_READS: Final = ("u", "p", "u_good", "p_good", "way", "reciprocal", "part", "last")
STARTED: Final = ("p", "u_good", "p_good", "way", "reciprocal", "part", "last", "going")

SINGULAR: Final = {"double": 1e-3, "single": 3e-2}
"""Determinants, of that of the assembly at which a way begins."""
CONVERGED: Final = {"double": 1e-7, "single": 5e-4}
"""Steps after which the next would be below rounding: convergence is quadratic."""
CLOSED: Final = {"double": 1e-9, "single": 1e-4}
"""Rows at a solution, of the size of a loop."""
CONSISTENT: Final = {"double": 1e-5, "single": 1e-3}
"""Rows that are not solved for, of the size of a loop: files round directions."""


class _NewtonStep(NamedTuple):
    """What a step of Newton's method leads to.

    Attributes:
        after: The unknowns after it.
        size: The largest change of an unknown [rad, or of the size of a loop].
        is_shrinking: Whether it contracts enough, on the branch of the start: the
            determinant keeps its sign and does not vanish, and at a solution all rows
            are zero.
        way: The change of p along the tangent, for all that is left of the way.
        ratio: The determinant in parts of the one at the start; 1 where rows are more
            than unknowns.
    """

    after: list[Number]
    size: Number
    is_shrinking: Any
    way: list[Number]
    ratio: Number


class BlockPrograms(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The programs of a block.

    Attributes:
        system: All loops.
        block: The block.
        suffix: What names of its columns in a pipeline end with.
    """

    system: LoopSystem
    block: Block
    suffix: str = ""

    def column(self, name: str) -> str:
        """Return the name that a column of this block has in a pipeline."""
        return name + self.suffix

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the numbers of inputs and of unknowns."""
        return len(self.block.inputs), len(self.block.unknowns)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of columns, by their names without the suffix."""
        d, k = self.sizes
        return {
            # Inputs, and more joints that rows are checked at
            "u": (d,),
            "more": (len(self.block.more),),
            # The assembly that a way begins at: inputs, unknowns, dp/du, 1 / det
            "u0": (d,),
            "p0": (k,),
            "j0": (k, d),
            "reciprocal0": (),
            # A walk, see `WALKED`
            "p": (k,),
            "u_good": (d,),
            "p_good": (k,),
            "way": (k,),
            "reciprocal": (),
            "part": (),
            "last": (),
            "going": (),
            # Determinants at its end and the least, in parts of that at the start
            "there": (),
            "least": (),
            # The record of the assembly, and whether another one is to be tried
            "at": (),
            "trying": (),
        }

    def traced(
        self, function: Any, name: str, outputs: Sequence[str], reads: Sequence[str]
    ) -> Program:
        """Return a formula as a program on columns of this block.

        Args:
            function: The formula; it gets what it reads in that order.
            name: Of the program, without the suffix.
            outputs: The columns that it writes.
            reads: Those that it reads.
        """
        ports = {self.column(read): self.shapes[read] for read in reads}
        named = [self.column(output) for output in outputs]
        return trace(function, name=self.column(name), outputs=named, **ports)

    def _vector(self, u: Sequence[Number], p: Sequence[Number]) -> dict[int, Number]:
        """Return the positions of the joints of the block by their places."""
        joints = (*self.block.inputs, *self.block.unknowns)
        return dict(zip(joints, (*u, *p), strict=True))

    def rows(
        self, u: Sequence[Number], p: Sequence[Number]
    ) -> tuple[list[Number], list[dict[int, Number]]]:
        """Return the rows that are solved for, and the rates of each by place."""
        q: Any = self._vector(u, p)
        equations = self.system.equations
        rows_of = {
            k: equations[k].rows(q) for k in {loop for loop, _ in self.block.rows}
        }
        values = [rows_of[loop].values[row] for loop, row in self.block.rows]
        rates = [
            dict(zip(equations[loop].joints, rows_of[loop].rates[row], strict=True))
            for loop, row in self.block.rows
        ]
        return values, rates

    def factored(self, rates: Sequence[Mapping[int, Number]]) -> LU:
        """Return the elimination of the rates of rows by the unknowns."""
        return LU.of([[row.get(k, 0.0) for k in self.block.unknowns] for row in rates])

    def rates(self, u: Sequence[Number], p: Sequence[Number]) -> list[list[Number]]:
        """Return dp/du at a solution, shape (k, d), by the implicit function."""
        return self._implicit_of(u, p)[0]

    def _implicit_of(
        self, u: Sequence[Number], p: Sequence[Number]
    ) -> tuple[list[list[Number]], Number]:
        """Return dp/du, and one over the determinant of the rates by p, or 0."""
        _, rates = self.rows(u, p)
        factored = self.factored(rates)
        columns = [
            factored.solve([0.0 - row.get(k, 0.0) for row in rates])
            for k in self.block.inputs
        ]
        rows = [list(row) for row in zip(*columns, strict=True)]
        if len(self.block.rows) > len(self.block.unknowns):
            return rows, 0.0
        return rows, DIV(1.0, factored.determinant)

    @cached_property
    def start(self) -> Program:
        """Return the program that tries all of a way at once, along the tangent."""
        return self._started("start", QUICK * LONGEST)

    @cached_property
    def walk_start(self) -> Program:
        """Return the program that begins a walk in parts at an assembly."""
        return self._started("walk_start", None)

    def _started(self, name: str, longest: float | None) -> Program:
        """Return the program that begins at an assembly, with its `implicit`.

        Args:
            name: Of the program.
            longest: The longest way that is tried at once; None to begin with a part.
        """

        def start(u: Any, u0: Any, p0: Any, j0: Any, reciprocal0: Any) -> Any:
            change = [a - b for a, b in zip(u, u0, strict=True)]
            # The change of p along the tangent: dp = (dp/du) du, with the rates at the
            # start.
            way = [
                sum(rate * du for rate, du in zip(row, change, strict=True))
                for row in j0
            ]
            # A way that is longer than `longest`, or NaN, is not tried at once: rows of
            # it go on to the walk in parts.
            length = self._length(change, way)
            part: Number = 1.0
            if longest is None:
                part = self._part(length)
                going = select(length < math.inf, 1.0, -1.0)  # -1 for NaN
            else:
                going = select(length < longest, 1.0, -1.0)
            p = [x + part * dx for x, dx in zip(p0, way, strict=True)]
            return p, u0 * 1.0, p0 * 1.0, way, reciprocal0 * 1.0, part, math.inf, going

        reads = "u", "u0", "p0", "j0", "reciprocal0"
        return self.traced(start, name, STARTED, reads)

    def _length(self, change: Sequence[Number], way: Sequence[Number]) -> Number:
        """Return the largest change of a joint [rad, or of the size of a loop].

        change: Of inputs [m or rad].
        way: Of passive joints [m or rad].
        """
        joints = (*self.block.inputs, *self.block.unknowns)
        longest: Number = 0.0
        for k, x in zip(joints, (*change, *way), strict=True):
            longest = maximum(longest, absolute(x) * (1.0 / self.system.units[k]))
        return longest

    @staticmethod
    def _part(length: Number) -> Number:
        """Return the part of a way, at most 1, that is no longer than `LONGEST`."""
        return LONGEST / maximum(length, LONGEST)

    @cached_property
    def search(self) -> tuple[Stage, ...]:
        """Return the stages that lead from any p to a solution, on whatever branch.

        They are Newton's steps, the long ones cut, as many as it takes.
        """
        *before, cut = staged(self._cut, [self.column("u")], self.column("known"))
        return (*before, While(self.column("going"), (cut,), MOST_CUT))

    @cached_property
    def _cut(self) -> Program:
        def cut(u: Any, p: Any) -> Any:
            values, rates = self.rows(u, p)
            change = self.factored(rates).solve(values)
            size = self._size(change)
            # Full steps near the solution, where they are short; far from it, cut ones
            # cannot throw p around.
            part = minimum(LONGEST_CUT / maximum(size, LONGEST_CUT), 1.0)
            arrived = size < by_precision(size, **CONVERGED)
            going = select(size >= 0.0, select(arrived, 0.0, 1.0), -1.0)  # -1 for NaN
            return [x - part * dx for x, dx in zip(p, change, strict=True)], going

        return self.traced(cut, "cut", ("p", "going"), ("u", "p"))

    def _size(self, change: Sequence[Number]) -> Number:
        """Return the largest change of passive joints, of the size of loops."""
        size: Number = 0.0
        for k, x in zip(self.block.unknowns, change, strict=True):
            size = maximum(size, absolute(x) * (1.0 / self.system.units[k]))
        return size

    def solve(
        self, load: Callable[[Program], Sequence[Stage]], again: Program | None = None
    ) -> tuple[Stage, ...]:
        """Return the stages that lead to a solution from an assembly.

        The first loop takes Newton's steps at u itself, for which much is computed once
        before it; rows in which that failed walk there in parts.

        Args:
            load: Returns the stages that run a program with the assembly to begin at.
            again: Runs after a walk. It chooses another assembly for rows whose walk is
                blocked, and sets their column `trying`.
        """
        *before, quick = staged(self._quick, [self.column("u")], self.column("known"))
        walk, trying = (*load(self.walk_start), *self.walk), self.column("trying")
        return (
            *load(self.start),
            *before,
            While(self.column("going"), (quick,), MOST_QUICK),
            self._failed,
            While(trying, (*walk, again), MOST_TRIED) if again else When(trying, walk),
        )

    @property
    def walk(self) -> tuple[Stage, ...]:
        """Return the stages of a walk in parts, after `walk_start`."""
        return (While(self.column("going"), (self._step,), MOST_STEPS),)

    @cached_property
    def _failed(self) -> Program:
        """Return the program that sets `trying` where no solution has been found."""

        def failed(going: Any) -> Any:
            return select(absolute(going) > 0.5, 1.0, 0.0)

        return self.traced(failed, "failed", ("trying",), ("going",))

    def next_try(self, cells: int) -> Program:
        """Return the program that chooses the second assembly of a cell.

        cells: Of a grid; each has two assemblies.
        """

        def second(going: Any, at: Any) -> Any:
            is_left = (absolute(going) > 0.5) & (at < float(cells))
            return at + float(cells), select(is_left, 1.0, 0.0)

        return self.traced(second, "second", ("at", "trying"), ("going", "at"))

    @cached_property
    def _quick(self) -> Program:
        """Return the program of a step of Newton's method at u itself."""

        def quick(u: Any, p: Any, reciprocal: Any, last: Any) -> Any:
            step = self._newton(u, p, reciprocal, last)
            arrived = step.size < by_precision(step.size, **CONVERGED)
            going = select(arrived, 0.0, 1.0)
            return step.after, step.size, select(step.is_shrinking, going, -1.0)

        reads = "u", "p", "reciprocal", "last"
        return self.traced(quick, "quick", ("p", "last", "going"), reads)

    def _newton(
        self,
        u: Sequence[Number],
        p: Sequence[Number],
        reciprocal: Number,
        last: Number,
        ahead: Sequence[Number] = (),
    ) -> _NewtonStep:
        """Return a step of Newton's method.

        Args:
            u: Positions of the inputs, at which loops are to be closed.
            p: Those of the unknowns.
            reciprocal: One over the determinant at the start; 0 where rows are more
                than unknowns.
            last: The size of the step before.
            ahead: The change of u that is left; the result then has the `way`.
        """
        values, rates = self.rows(u, p)
        factored = self.factored(rates)
        change = factored.solve(values)
        way: list[Number] = []
        if ahead:  # dp = -(dF/dp)^-1 dF/du du, with the factors that are there
            changes = list(zip(self.block.inputs, ahead, strict=True))
            moved = [sum(row.get(k, 0.0) * du for k, du in changes) for row in rates]
            way = [0.0 - x for x in factored.solve(moved)]
        size = self._size(change)
        # A step that is below a quarter of the last one, and not large, proves that the
        # solution belongs to the start (see the head of this module).
        largest = LARGEST if ahead else QUICK * LARGEST
        shrinks = select(size < minimum(SHRINKING * last, largest), 1.0, 0.0)
        # Without a determinant, rows being more than unknowns, only the sizes of steps
        # and the open rows at the end decide.
        least = select(absolute(reciprocal) > 0.0, by_precision(size, **SINGULAR), 0.0)
        # Where the determinant changes its sign, a singularity has been passed.
        ratio = reciprocal * factored.determinant
        stays = select(ratio < least, 0.0, 1.0)
        if len(values) > len(change):
            # Elimination has taken as many rows as there are unknowns: at its end the
            # others must be zero too.
            ratio = 1.0
            near = by_precision(size, **CONVERGED), by_precision(size, **CONSISTENT)
            is_false = select(size < near[0], self._open(values), 0.0) > near[1]
            stays = select(is_false, 0.0, stays)
        after = [x - dx for x, dx in zip(p, change, strict=True)]
        return _NewtonStep(after, size, shrinks * stays > 0.5, way, ratio)

    def _open(self, values: Sequence[Number]) -> Number:
        """Return the largest of the rows that are solved for, of the size of loops."""
        largest: Number = 0.0
        for (loop, row), value in zip(self.block.rows, values, strict=True):
            largest = maximum(largest, self.system.scale(loop, row) * absolute(value))
        return largest

    @cached_property
    def _step(self) -> Program:
        def step(*columns: Any) -> Any:
            return self._step_of(*columns)[: len(WALKED)]

        return self.traced(step, "step", WALKED, WALK_READS)

    @cached_property
    def noting_walk(self) -> tuple[Stage, ...]:
        """Return the stages of a walk, after `walk_start`, that keeps determinants.

        They are in the columns `there`, at the end, and `least`, the least on the way,
        both in parts of the one at the start.
        """

        def ones(going: Any) -> Any:
            return 0.0 * going + 1.0, 0.0 * going + 1.0

        noted = "there", "least"
        reads = (*WALK_READS, *noted)
        step = self.traced(self._step_of, "step", (*WALKED, *noted), reads)
        first = self.traced(ones, "noting", noted, ("going",))
        return first, While(self.column("going"), (step,), MOST_STEPS)

    def _step_of(self, *columns: Any) -> Any:
        """Return the columns after one step of Newton's method on a walk.

        The step corrects p at `goal`, the end of the part that is tried. Then

        - the part is arrived at: it becomes the last solution, and a wider part of what
          is left begins on its tangent, unless that was the end of the way;
        - or Newton's method goes on at `goal`;
        - or it does not contract: a narrower part begins at the last solution, and the
          way is blocked where that gets too small.

        Args:
            columns: Those of `WALK_READS`, then `there` and `least` of `noting_walk`
                if determinants are kept.

        Returns:
            Those of `WALKED`, then `there` and `least`.
        """
        u, p, u_good, p_good, way, reciprocal, part, last, *noted = columns
        there, least = noted or (1.0, 1.0)
        # The part that is tried leads from the last solution u_good to `goal`; what is
        # left then is `ahead`.
        goal = [a + part * (b - a) for a, b in zip(u_good, u, strict=True)]
        ahead = [b - a for a, b in zip(goal, u, strict=True)]
        after, size, is_shrinking, next_way, ratio = self._newton(
            goal, p, reciprocal, last, ahead
        )
        arrived = size < by_precision(size, **CONVERGED)
        is_end = part >= 1.0
        # Written so that NaN, for which no comparison is true, counts as lost.
        lost = select(is_shrinking, 0.0, 1.0) > 0.5  # also where it is NaN

        def chosen(on_arrival: Any, while_walking: Any, when_lost: Any) -> Any:
            return select(lost, when_lost, select(arrived, on_arrival, while_walking))

        # Twice as far as before: 2 part of all that was left, 1 - part of it is left.
        wider = minimum(2.0 * part / maximum(1.0 - part, 1e-9), 1.0)
        wider = minimum(wider, self._part(self._length(ahead, next_way)))
        narrower = NARROWER * part
        on_tangent = [x + wider * dx for x, dx in zip(after, next_way, strict=True)]
        arriving = [
            select(is_end, a, b) for a, b in zip(after, on_tangent, strict=True)
        ]
        back = [x + narrower * dx for x, dx in zip(p_good, way, strict=True)]
        return (
            [chosen(*each) for each in zip(arriving, after, back, strict=True)],
            [chosen(a, b, b) for a, b in zip(goal, u_good, strict=True)],
            [chosen(a, b, b) for a, b in zip(after, p_good, strict=True)],
            [chosen(a, b, b) for a, b in zip(next_way, way, strict=True)],
            chosen(wider, part, narrower),
            chosen(math.inf, size, math.inf),
            chosen(
                select(is_end, 0.0, 1.0), 1.0, select(narrower < LEAST_PART, -1.0, 1.0)
            ),
            chosen(ratio, there, there),
            chosen(minimum(ratio, least), least, least),
        )

    @cached_property
    def check(self) -> Program:
        """Return the program that makes positions NaN where loops are not closed."""
        reads = ("u", "p", "going", *(["more"] if self.block.more else []))
        return self.traced(self._check_of, "check", ("p", "residual"), reads)

    def _check_of(self, u: Any, p: Any, going: Any, more: Any = ()) -> Any:
        q: Any = self._vector(u, p) | dict(zip(self.block.more, more, strict=True))
        is_square = len(self.block.rows) == len(self.block.unknowns)
        solved = set(self.block.rows) if is_square else set[tuple[int, int]]()
        residual: Number = 0.0
        is_closed: Number = select(absolute(going) < 0.5, 1.0, 0.0)
        for loop in self.block.loops:
            values = self.system.equations[loop].rows(q).values
            for row, value in enumerate(values):
                error = absolute(value) * self.system.scale(loop, row)
                bounds = CLOSED if (loop, row) in solved else CONSISTENT
                # Rows that were solved for must be zero by rounding; the others follow
                # from them, and files give their numbers with fewer digits.
                is_closed = select(
                    error < by_precision(error, **bounds), is_closed, 0.0
                )
                residual = maximum(residual, absolute(value))
        lost = is_closed < 0.5
        return [select(lost, math.nan, x) for x in p], residual

    @cached_property
    def arrived(self) -> Program:
        """Return the program that makes positions NaN where the way was blocked."""

        def arrived(p: Any, going: Any) -> Any:
            return [select(absolute(going) < 0.5, x, math.nan) for x in p]

        return self.traced(arrived, "arrived", ("p",), ("p", "going"))

    @cached_property
    def back(self) -> Program:
        """Return the program that puts p at the last solution of a walk."""

        def back(p_good: Any, going: Any) -> Any:
            return [1.0 * x for x in p_good], 0.0 * going

        return self.traced(back, "back", ("p", "going"), ("p_good", "going"))

    @cached_property
    def implicit(self) -> Program:
        """Return the program of dp/du at a solution, and one over the determinant."""
        outputs = "j0", "reciprocal0"
        return self.traced(self._implicit_of, "implicit", outputs, ("u0", "p0"))
