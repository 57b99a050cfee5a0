"""A true upper bound of a distance over a range, by interval branch and bound."""

from __future__ import annotations

import heapq
import math
from typing import Any

from armillary.model.motion import Motion
from armillary.model.square_distance import square_distance
from armillary.spatial.pose import Pose
from armillary.trace import OPS, Program, evaluate, jvp, trace
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

FINE_GAP = 1e-9
GAPS = [FINE_GAP] * 150 + [1e-5] * 150 + [1e-3] * 900  # allowed after so many boxes
FARTHEST_SPLIT = 1e12
NARROW = 2.0**-30


def largest_distance(motion: Motion, precursor: Pose, low: float, high: float) -> float:
    """Return an upper bound of |p_FM(q)| for q in [low, high] [m].

    It is mostly within 1e-9 relative of the largest distance, and within 1e-5 or 1e-3
    where the distance hardly changes. Over infinite ranges it may be looser, or
    infinite.
    """
    hill = _Hill(motion, precursor)
    return math.sqrt(max(0.0, _maximum(hill, low, high)))


def _maximum(hill: _Hill, low: float, high: float) -> float:
    """Return an upper bound of the height over [low, high].

    The box with the highest ceiling is halved until that is hardly above a height that
    is reached. A ceiling over an edge, such as that of q % lap, never comes down to the
    heights on both sides of it: in a box of a billionth part those count, and slopes.
    """
    boxes = [(-hill.ceiling(low, high), low, high)]
    best = max(hill.at(low), hill.at(high))
    for gap in GAPS:
        top, a, b = boxes[0]
        middle = _middle(a, b)
        best = max(best, hill.at(middle))
        if -top <= best * (1.0 + gap) + 1e-300 or not a < middle < b:
            break
        heapq.heappop(boxes)
        if b - a <= NARROW * max(1.0, abs(a), abs(b)) and top > -math.inf:
            heapq.heappush(boxes, (max(top, -hill.beside(a, b)), b, b))
            continue
        for left, right in ((a, middle), (middle, b)):
            heapq.heappush(boxes, (-hill.ceiling(left, right), left, right))
    return -boxes[0][0]


def _middle(a: float, b: float) -> float:
    """Return a number between two ends, an end itself where there is none."""
    if math.isfinite(a) and math.isfinite(b):
        return 0.5 * a + 0.5 * b
    if a == -b:
        return 0.0
    near = a if math.isfinite(a) else b
    if abs(near) > FARTHEST_SPLIT:
        return near
    return max(1.0, 2.0 * near) if b == math.inf else min(-1.0, 2.0 * near)


class _Hill:
    """The squared distance h(q), its slope h' and its bend h''."""

    def __init__(self, motion: Motion, precursor: Pose) -> None:
        def square(q: Any) -> Any:
            return square_distance(precursor, motion.pose(q).position)

        def slope(q: Any) -> Any:
            return jvp([square(q)], [(q, 1.0)])[0]

        def bend(q: Any) -> Any:
            return jvp([slope(q)], [(q, 1.0)])[0]

        self._height = trace(square, name="squared distance", q=())
        self._slope = trace(slope, name="its slope", q=())
        self._bend = trace(bend, name="its bend", q=())

    def at(self, q: float) -> float:
        """Return the height at `q`, 0 where it has none."""
        return _number(self._height, q)

    def beside(self, a: float, b: float) -> float:
        """Return what the height can come to between neighbours, from both of them."""
        heights = max(self.at(q) for q in (a, 0.5 * (a + b), b))
        slopes = max(abs(_number(self._slope, q)) for q in (a, b))
        return heights * (1.0 + FINE_GAP) + slopes * (b - a)

    def ceiling(self, low: float, high: float) -> float:
        """Return an upper bound of the height over a box.

        It is the best of: the enclosure itself; where the height cannot jump, that of
        an end to which it rises, or of the middle m, h(m) + h'(box) (box - m); where
        the slope cannot jump either, h(m) + h'(m) (box - m) + h''(box) (box - m)^2 / 2.
        """
        box = Interval(low, high)
        whole, may_jump = _enclosed(self._height, box)
        if may_jump or not math.isfinite(low + high):
            return whole.high
        slope, slope_may_jump = _enclosed(self._slope, box)
        if slope.undefined:
            return whole.high
        if slope.low >= 0.0 or slope.high <= 0.0:
            return min(whole.high, self._ceiling_at(high if slope.low >= 0.0 else low))
        middle = exactly(0.5 * low + 0.5 * high)
        base, _ = _enclosed(self._height, middle)
        away = sub(box, middle)
        ceilings = [whole.high, add(base, mul(slope, away)).high]
        if not slope_may_jump:
            tilt, _ = _enclosed(self._slope, middle)
            bend, _ = _enclosed(self._bend, box)
            curved = mul(mul(bend, exactly(0.5)), square(away))
            ceilings.append(add(add(base, mul(tilt, away)), curved).high)
        return min(ceilings)

    def _ceiling_at(self, q: float) -> float:
        return _enclosed(self._height, exactly(q))[0].high


def _number(program: Program, q: float) -> float:
    """Return what a program gives, 0 where that is not a finite number."""
    if not math.isfinite(q):
        return 0.0
    (value,) = evaluate(program, [q])
    return value if math.isfinite(value) else 0.0


def _enclosed(program: Program, box: Interval) -> tuple[Interval, bool]:
    """Return an enclosure over a box, and whether a jump or a gap may lie inside.

    Of a select whose truth is known only the branch that it takes is computed.
    """
    steps = program.instructions
    values: dict[int, Interval] = {}
    may_jump = False
    waiting = [program.results[0]]
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
    result = values[program.results[0]]
    return result, may_jump or result.undefined


def _needed(step: Instruction, values: dict[int, Interval]) -> tuple[int, ...]:
    """Return the positions that an instruction needs, as far as that is known."""
    if step.name != "select":
        return step.args
    truth, x, y = step.args
    known = values.get(truth)
    if known == ALWAYS:
        return (x,)
    return (y,) if known == NEVER else step.args if known is not None else (truth,)


def _value(step: Instruction, values: dict[int, Interval], box: Interval) -> Interval:
    if step.name == "input":
        return box
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
        case "floor" | "sign":
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
