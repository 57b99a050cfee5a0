"""A true upper bound of a distance over a range, by interval branch and bound."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

from armillary.model.motion import Motion
from armillary.spatial.pose import Pose
from armillary.trace import Op, Program, replay, tangent, trace
from armillary.trace.interval import Interval, add, mul, sub
from armillary.trace.program import evaluate

RELATIVE_GAP = 1e-7
MOST_BOXES = 4000


def largest_distance(motion: Motion, precursor: Pose, low: float, high: float) -> float:
    """Return an upper bound of |p_FM(q)| for q in [low, high] [m].

    It is within 1e-7 relative of the largest distance where the range is finite and the
    motion is smooth; infinite ranges may give a looser bound, or infinity.
    """

    def square(q: Any) -> Any:
        x, y, z = (precursor @ motion.pose(q)).position
        return x * x + y * y + z * z

    height = trace(square, name="squared distance", q=())
    slope = trace(lambda q: tangent([square(q)], [(q, 1.0)])[0], name="slope", q=())
    return math.sqrt(max(0.0, _maximum(height, slope, low, high)))


def _maximum(height: Program, slope: Program, low: float, high: float) -> float:
    """Return an upper bound of the height over [low, high]."""

    def ceiling(box: Interval) -> float:
        whole = _enclosed(height, box).high
        if not math.isfinite(box.low + box.high):
            return whole
        middle = 0.5 * (box.low + box.high)
        point = Interval(middle, middle)
        rise = mul(_enclosed(slope, box), sub(box, point))
        return min(whole, add(_enclosed(height, point), rise).high)

    boxes = [(-ceiling(box), box.low, box.high) for box in (Interval(low, high),)]
    heapq.heapify(boxes)
    best = max(_at(height, low), _at(height, high))
    for _ in range(MOST_BOXES):
        top, a, b = boxes[0]
        best = max(best, _at(height, 0.5 * (a + b)))
        done = -top <= best + RELATIVE_GAP * abs(best) + 1e-300
        if done or not math.isfinite(a + b) or not a < 0.5 * (a + b) < b:
            break
        heapq.heappop(boxes)
        middle = 0.5 * (a + b)
        for half in (Interval(a, middle), Interval(middle, b)):
            heapq.heappush(boxes, (-ceiling(half), half.low, half.high))
    return -boxes[0][0]



def _at(program: Program, q: float) -> float:
    if not math.isfinite(q):
        return 0.0
    (value,) = replay(program, [q])
    return value if math.isfinite(value) else 0.0


def _enclosed(program: Program, box: Interval) -> Interval:
    (result,) = evaluate(program, [box], _interval_meaning)
    return result


def _interval_meaning(thing: Op | float) -> Callable[..., Interval] | Interval:
    return thing.on_intervals if isinstance(thing, Op) else Interval(thing, thing)
