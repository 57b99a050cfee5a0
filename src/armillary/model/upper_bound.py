"""The greatest height of a formula over a box, by interval branch and bound."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.trace import OPS, Op, Program, evaluate, jvp, trace
from armillary.trace.interval import (
    ALWAYS,
    NEVER,
    Interval,
    add,
    exactly,
    hull,
    mul,
    square,
    sub,
)
from armillary.trace.program import Instruction

Array = npt.NDArray[np.float64]
Box = tuple[tuple[float, float], ...]  # the range of each coordinate

FARTHEST: Final = 1e12
NARROW: Final = 2.0**-46  # as narrow as numbers are rounded
SHORT: Final = 2.0**-30  # where jumps are decided
ROUNDING: Final = 1e-9
GRID: Final = 513
MOST_EDGES: Final = 256
JUMP: Final = 1e-8  # of numbers of the size of 1
STEPS: Final = frozenset({"select", "floor", "round", "sign", "fmod", "atan2"})

# where a traced function is smooth: between the places at which its choices change

HALVINGS: Final = 60


def choices(program: Program, q: Array) -> Array:
    """Return all that a program of one number decides on its way.

    Two neighbouring coordinates with the same choices lie on one smooth piece.

    Args:
        program: Of one scalar input.
        q: Coordinates, shape (n,).

    Returns:
        Shape (n, decisions).
    """
    decided: list[Array] = []

    def meaning(thing: Op | float) -> Any:
        if not isinstance(thing, Op):
            return thing
        return _watched(thing, decided)

    with np.errstate(all="ignore"):
        evaluate(program, [q], meaning)
    columns = [np.broadcast_to(np.nan_to_num(column), q.shape) for column in decided]
    return np.stack(columns, axis=-1) if columns else np.zeros((len(q), 0))


def _watched(op: Op, found: list[Array]) -> Any:
    def apply(*args: Any) -> Any:
        result = op.on_arrays(*args)
        decision = _decision(op.name, args, result)
        if decision is not None:
            found.append(np.asarray(decision, dtype=np.float64))
        return result

    return apply


def _decision(name: str, args: tuple[Any, ...], result: Any) -> Any:
    match name:
        case "lt" | "le" | "eq" | "floor" | "sign":
            return result
        case "abs":
            return np.sign(args[0])
        case "min" | "max":
            return np.less_equal(*args)
        case "fmod":
            return np.trunc(np.divide(*args))
        case _:
            return None


def edges(program: Program, q: Array) -> Array:
    """Return places at which choices change, each between two neighbouring numbers.

    Args:
        program: Of one scalar input.
        q: Coordinates between which they are looked for, rising, shape (n,).

    Returns:
        The numbers before and after each, shape (changes, 2).
    """
    decided = choices(program, q)
    changes = np.flatnonzero((decided[1:] != decided[:-1]).any(axis=1))
    low, high, first = q[changes], q[changes + 1], decided[changes]
    for _ in range(HALVINGS if len(changes) else 0):
        middle = 0.5 * (low + high)
        is_alike = (choices(program, middle) == first).all(axis=1)
        low, high = np.where(is_alike, middle, low), np.where(is_alike, high, middle)
    return np.stack([low, high], axis=1)


# the greatest height of a formula over a box, by interval branch and bound


def upper_bound(height: Height, box: Box, gaps: Sequence[float]) -> float:
    """Return an upper bound of the height over a box.

    The part with the highest ceiling is halved until that is hardly above a height that
    is reached.

    Args:
        height: The height.
        box: The range of each coordinate, which may be infinite.
        gaps: How far above it may be after one halving, after two and so on, relative;
            there are as many halvings at most.
    """
    if height.constant is not None:
        return height.constant
    # Branch and bound: a heap of parts by their ceilings, the highest first. `best` is
    # a height that is reached, hence a lower bound of the maximum.
    parts = [(-height.ceiling(part), part) for part in height.parts(box)]
    heapq.heapify(parts)
    best = max(height.at([low for low, _ in box]), height.at([high for _, high in box]))
    for gap in gaps:
        top, part = parts[0]
        best = max(best, height.at([_middle(low, high) for low, high in part]))
        # Good enough for as many halvings: the bound is hardly above what is reached.
        if -top <= best * (1.0 + gap) + 1e-300:
            break
        if top == -math.inf and _is_narrow(part, NARROW):
            break
        # Halve the widest side; where no number lies between its ends, the part cannot
        # get narrower and its ceiling stands.
        k = max(range(len(part)), key=lambda k: part[k][1] - part[k][0])
        low, high = part[k]
        middle = _middle(low, high)
        if not low < middle < high:
            break
        heapq.heappop(parts)
        for half in ((low, middle), (middle, high)):
            smaller = (*part[:k], half, *part[k + 1 :])
            heapq.heappush(parts, (-height.ceiling(smaller), smaller))
    return -parts[0][0]


def _middle(a: float, b: float) -> float:
    """Return a number between two ends, an end itself where there is none."""
    if math.isfinite(a) and math.isfinite(b):
        return 0.5 * a + 0.5 * b
    if a == -b:
        return 0.0
    near = a if math.isfinite(a) else b
    if abs(near) > FARTHEST:
        return near
    return max(1.0, 2.0 * near) if b == math.inf else min(-1.0, 2.0 * near)


class Height:
    """A height h of one coordinate or several; of one also its slope h' and bend h''.

    Attributes:
        constant: The height where it is the same everywhere.
    """

    def __init__(
        self,
        height: Callable[[Any], Any],
        shape: tuple[int, ...] = (),
        *,
        smooth: Program | None = None,
    ) -> None:
        """Trace the height.

        Args:
            height: What is not negative, of a traced scalar or an array of them.
            shape: Of what it takes.
            smooth: Of whose rate the height is the square: where it may jump, a
                ceiling is infinite.
        """

        def slope(q: Any) -> Any:
            return jvp([height(q)], [(q, 1.0)])[0]

        def bend(q: Any) -> Any:
            return jvp([slope(q)], [(q, 1.0)])[0]

        self._height = trace(height, name="height", q=shape)
        self._has_slope = not shape
        if self._has_slope:
            self._slope = trace(slope, name="slope", q=())
            self._bend = trace(bend, name="bend", q=())
        steps = smooth.instructions if smooth is not None else ()
        has_steps = any(step.name in STEPS for step in steps)
        self._smooth = smooth if has_steps else None
        self.constant: float | None = None
        last = self._height.instructions[self._height.results[0]]
        if last.name == "const" and self._smooth is None:
            self.constant = last.value

    def at(self, q: Sequence[float]) -> float:
        """Return the height at `q`, 0 where it has none."""
        return _number(self._height, q)

    def parts(self, box: Box) -> list[Box]:
        """Return a box, cut on both sides of the edges that are found in it.

        An edge that is overlooked costs halvings and no more.
        """
        ((low, high), *more) = box
        if self._smooth is None or more:
            return [box]
        if not enclosed(self._smooth, [Interval(low, high)])[1]:
            return [box]
        around = edges(self._smooth, _grid(low, high))
        if len(around) > MOST_EDGES:
            return [box]
        margin = 0.25 * SHORT * np.maximum(1.0, np.abs(around))
        beside = np.clip(around + margin * np.array([-1.0, 1.0]), low, high)
        ends = np.unique([low, *beside.ravel(), high]).tolist()
        return [((a, b),) for a, b in pairwise(ends)] or [box]

    def ceiling(self, box: Box) -> float:
        """Return an upper bound of the height over a box.

        It is the best of: the enclosure itself; where the height cannot jump, that of
        an end to which it rises, or of the middle m, h(m) + h'(box) (box - m); where
        the slope cannot jump either, h(m) + h'(m) (box - m) + h''(box) (box - m)^2 / 2.

        A ceiling over an edge, such as that of q % lap, never comes down to the heights
        on both sides of it: in a box as narrow as numbers are rounded those count.
        """
        inside = [Interval(low, high) for low, high in box]
        if self._smooth is not None and self._tears(box, inside):
            return math.inf
        (whole,), may_jump = enclosed(self._height, inside)
        if not self._has_slope:
            return whole.high
        ((low, high),) = box
        if may_jump and _is_narrow(box, NARROW) and whole.high < math.inf:
            return min(whole.high, self._beside(low, high))
        if may_jump or not math.isfinite(low + high):
            return whole.high
        return min(whole.high, self._ceiling_of_slope(low, high))

    def _ceiling_of_slope(self, low: float, high: float) -> float:
        """Return a bound from slope and bend where the height does not jump."""
        box = Interval(low, high)
        (slope,), slope_may_jump = enclosed(self._slope, [box])
        if slope.undefined:
            return math.inf
        # Monotonous: the height is greatest at the end to which it rises.
        if slope.low >= 0.0 or slope.high <= 0.0:
            return self._ceiling_at(high if slope.low >= 0.0 else low)
        # Mean value form: h(x) is in h(m) + h'(box) (x - m), first order; then Taylor's
        # form with h'', whose error falls with the square of the width.
        middle = exactly(0.5 * low + 0.5 * high)
        (base,), _ = enclosed(self._height, [middle])
        away = sub(box, middle)
        ceiling = add(base, mul(slope, away)).high
        if slope_may_jump:
            return ceiling
        (tilt,), _ = enclosed(self._slope, [middle])
        (bend,), _ = enclosed(self._bend, [box])
        curved = mul(mul(bend, exactly(0.5)), square(away))
        return min(ceiling, add(add(base, mul(tilt, away)), curved).high)

    def _ceiling_at(self, q: float) -> float:
        return enclosed(self._height, [exactly(q)])[0][0].high

    def _beside(self, a: float, b: float) -> float:
        """Return what the height can come to between neighbours, from both of them."""
        heights = max(self.at([q]) for q in (a, 0.5 * (a + b), b))
        slopes = max(abs(_number(self._slope, [q])) for q in (a, b))
        return heights * (1.0 + ROUNDING) + slopes * (b - a)

    def _tears(self, box: Box, inside: list[Interval]) -> bool:
        """Tell whether what must be smooth may jump: over a short way, whether it does.

        It does if it changes by more than the rates at both ends explain.
        """
        assert self._smooth is not None
        if not enclosed(self._smooth, inside)[1]:
            return False
        if not _is_narrow(box, SHORT):
            return True
        ends = [[limits[k] for limits in box] for k in (0, 1)]
        rate = math.sqrt(max(0.0, *map(self.at, ends)))
        before, after = (np.array(evaluate(self._smooth, end)) for end in ends)
        way = max(high - low for low, high in box)
        change = np.abs(after - before)
        return bool((change > JUMP * (1.0 + np.abs(before)) + 2.0 * rate * way).any())


def _grid(low: float, high: float) -> Array:
    """Return numbers from one limit to another, dense about 0 if one is infinite."""
    if math.isfinite(low + high):
        return np.linspace(low, high, GRID)
    start, end = (max(min(limit, FARTHEST), -FARTHEST) for limit in (low, high))
    return np.sinh(np.linspace(math.asinh(start), math.asinh(end), 4 * GRID))


def _is_narrow(box: Box, width: float) -> bool:
    """Tell whether a box is narrow, relative to its numbers if they are above 1."""
    return all(
        math.isfinite(a + b) and b - a <= width * max(1.0, abs(a), abs(b))
        for a, b in box
    )


def _number(program: Program, q: Sequence[float]) -> float:
    """Return what a program gives, 0 where that is not a finite number."""
    if not all(map(math.isfinite, q)):
        return 0.0
    (value,) = evaluate(program, q)
    return value if math.isfinite(value) else 0.0


def enclosed(program: Program, box: Sequence[Interval]) -> tuple[list[Interval], bool]:
    """Return enclosures over a box, and whether a jump or a gap may lie inside.

    Of a select whose truth is known only the branch that it takes is computed.
    """
    steps = program.instructions
    values: dict[int, Interval] = {}
    may_jump = False
    # Depth first from the results, so that branches that no truth selects are never
    # enclosed: these may be undefined.
    waiting = list(program.results)
    while waiting:
        k = waiting[-1]
        if k not in values:
            missing = [arg for arg in _needed(steps[k], values) if arg not in values]
            if missing:
                waiting += missing
                continue
            values[k] = _value(steps[k], values, box)
            may_jump = may_jump or _is_step(steps[k], values, values[k])
        waiting.pop()
    results = [values[k] for k in program.results]
    return results, may_jump or any(result.undefined for result in results)


def _needed(step: Instruction, values: dict[int, Interval]) -> tuple[int, ...]:
    """Return the positions that an instruction needs, as far as that is known."""
    if step.name != "select":
        return step.args
    truth, x, y = step.args
    known = values.get(truth)
    if known == ALWAYS:
        return (x,)
    return (y,) if known == NEVER else step.args if known is not None else (truth,)


def _value(
    step: Instruction, values: dict[int, Interval], box: Sequence[Interval]
) -> Interval:
    if step.name == "input":
        return box[int(step.value)]
    if step.name == "const":
        return exactly(step.value)
    if step.name == "select":
        branches = [
            values[arg] for arg in step.args[1:] if arg in _needed(step, values)
        ]
        return branches[0] if len(branches) == 1 else hull(*branches)
    return OPS[step.name].on_intervals(*(values[arg] for arg in step.args))


def _is_step(step: Instruction, values: dict[int, Interval], result: Interval) -> bool:
    """Tell whether an instruction may jump where its arguments do not."""
    match step.name:
        case "select":
            return values[step.args[0]] not in {ALWAYS, NEVER}
        case "floor" | "round" | "sign":
            return result.low != result.high
        case "fmod":
            x, y = (values[arg] for arg in step.args)
            return not _is_one_tooth(x, y, result)
        case "atan2":
            y, x = (values[arg] for arg in step.args)
            return x.low <= 0.0 and y.contains(0.0)
        case _:
            return False


def _is_one_tooth(x: Interval, y: Interval, remainder: Interval) -> bool:
    """Tell whether y goes into all of x the same number of times."""
    if max(abs(x.low), abs(x.high)) < min(abs(y.low), abs(y.high)):
        return not y.contains(0.0)
    if y.low != y.high or not x.width < abs(y.low):
        return False
    ends = (math.fmod(x.low, y.low), math.fmod(x.high, y.low))
    return (remainder.low, remainder.high) == ends
