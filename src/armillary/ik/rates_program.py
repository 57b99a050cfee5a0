"""Rates of joints for wanted twists, as a program: differential inverse kinematics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from armillary.ik.objective import Purpose, gradient, manipulability
from armillary.ik.reason import RateReason
from armillary.ik.task_priority import Follower, Hierarchy, Progress
from armillary.kinematics.closing.rates import followed_rates
from armillary.kinematics.inputs import PASSIVE, Inputs, program_of
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.model.tree import Tree
from armillary.spatial.ldl import Rows, inner
from armillary.spatial.vector import Number
from armillary.trace import Program, Scalar, trace
from armillary.trace.functions import maximum, minimum, select, sqrt

CORNERS = 4
"""How many corners of its way a call follows; most ways have fewer."""

INSIDE = 1.0 - 1e-15
INSTANT = 1e-12
NUMBERS = ("damping squared", "step", "gain", "sharp", "linear", "angular")
"""What a call takes: damping, duration, gain, form of damping, two tolerances."""


class Task(NamedTuple):
    """A twist that is wanted, or some rows of it.

    Attributes:
        twist: Which twist.
        rows: Which of its six numbers count.
    """

    twist: Twist
    rows: tuple[bool, ...]

    @property
    def kept(self) -> list[int]:
        """Return the places of the numbers that count."""
        return [k for k, counts in enumerate(self.rows) if counts]


class Options(NamedTuple):
    """What a program of rates does beside meeting tasks.

    Attributes:
        limits: Least and greatest q, None for no limits at all.
        null: Whether rates are given for what the tasks leave free.
        purpose: What is made smaller there: a function of q, or `manipulability`,
            which grows; None for nothing.
    """

    limits: tuple[Sequence[float], Sequence[float]] | None = None
    null: bool = False
    purpose: Purpose | str | None = None


def rates_program(
    tree: Tree, tasks: Sequence[Task], selection: Inputs, options: Options
) -> Program:
    """Return the program of rates that meet tasks in their order of priority.

    Inputs are those of `selection.shapes`, q (n,), `twists` (k, 6), `weights` (n,),
    `numbers` as in NUMBERS; with limits `rates` (n,), the greatest, and `progress`,
    zeros or what a call before has put out; with `null` `null` (n,). The output begins
    with that progress; then come for each task what is missing, linear and angular,
    and why, and the six numbers of the twist that is achieved.
    """
    n = len(selection.inputs)
    sizes = tuple(len(task.kept) for task in tasks)
    bound = selection.shapes
    passive = {PASSIVE: (len(selection.passive),)} if selection.passive else {}
    shapes: dict[str, tuple[int, ...]] = {
        **bound,
        **passive,
        "q": (n,),
        "twists": (len(tasks), 6),
        "weights": (n,),
        "numbers": (len(NUMBERS),),
    }
    if options.limits is not None:
        shapes |= {"rates": (n,), "progress": (Progress.size(sizes, n),)}
    if options.null:
        shapes["null"] = (n,)

    def equations(*arrays: Any) -> Any:
        given = dict(zip(shapes, arrays, strict=True))
        solved = given.get(PASSIVE, ())
        now, whole = selection.applied(tree, given["q"], arrays[: len(bound)], solved)
        columns = _columns(now, whole, tasks, selection.inputs)
        hierarchy = _hierarchy(tasks, columns, options, given)
        follower = Follower(hierarchy)
        before = given.get("progress", [0.0] * Progress.size(sizes, n))
        at = Progress.read(sizes, n, list(before))
        for _ in range(CORNERS if options.limits else hierarchy.levels):
            at = follower.corner(at)
        achieved = [[inner(row, at.x) for row in rows] for rows in columns]
        missing = [
            _missing(task, wanted, got)
            for task, wanted, got in zip(tasks, given["twists"], achieved, strict=True)
        ]
        ends = [
            [*sizes, _reason(at, hierarchy, p, sizes, given["numbers"])]
            for p, sizes in enumerate(missing)
        ]
        return [*at.numbers, *chain.from_iterable(ends + achieved)]

    return trace(equations, name="differential_ik", outputs=("answer",), **shapes)


def passive_share_program(tree: Tree, selection: Inputs) -> Program:
    """Return the program of how much of given rates the limits of loops allow.

    Inputs are those of the selection, q (n,), `qd` (n,) and `step` [s]. The output is
    the greatest factor, from 0 to 1, with which no passive joint exceeds its greatest
    rate, or leaves its limits within a step if it keeps its rate.
    """
    cell = tree.cell
    lower, upper, greatest = (each.tolist() for each in cell.joints.ranges)

    def share(now: Tree, q: Any, qd: Sequence[Number], step: Number) -> Number:
        given = dict(zip(selection.inputs, qd, strict=True))
        found: Number = 1.0
        rates = followed_rates(now.cell, q, given, selection.passive)
        for k, rate in rates.items():
            limits = [lower[k]], [upper[k]]
            (low,), (high,) = _bounds([q[k]], limits, [greatest[k]], step)
            found = minimum(found, _share(rate, high))
            found = minimum(found, _share(0.0 - rate, 0.0 - low))
        return found

    return program_of(
        share,
        tree,
        selection,
        name="passive_share",
        output="share",
        qd=(len(selection.inputs),),
        step=(),
    )


def _share(rate: Number, most: Number) -> Number:
    """Return the part of a rate that is not above a bound."""
    if isinstance(most, float) and most == math.inf:
        return 1.0
    return select(rate > most, most / select(rate > most, rate, 1.0), 1.0)


def _columns(
    tree: Tree, q: Sequence[Number], tasks: Sequence[Task], inputs: Sequence[int]
) -> list[Rows]:
    """Return the six rows of each task's Jacobian."""
    found: list[Rows] = []
    for task in tasks:
        columns = jacobian(tree, q, task.twist)
        found.append([[columns[i][k] for i in inputs] for k in range(6)])
    return found


def _hierarchy(
    tasks: Sequence[Task], jacobians: list[Rows], options: Options, given: Any
) -> Hierarchy:
    rows = [J[k] for J, task in zip(jacobians, tasks, strict=True) for k in task.kept]
    wanted = [
        twist[k]
        for twist, task in zip(given["twists"], tasks, strict=True)
        for k in task.kept
    ]
    squared, step, gain, sharp, _, _ = given["numbers"]
    bounds = None
    if options.limits is not None:
        bounds = _bounds(given["q"], options.limits, given["rates"], step)
    first = [jacobians[0][k] for k in tasks[0].kept]
    return Hierarchy(
        rows=rows,
        sizes=tuple(len(task.kept) for task in tasks),
        wanted=wanted,
        weights=list(given["weights"]),
        null=_null(options, given, first, gain),
        bounds=bounds,
        damping=squared,
        sharp=sharp,
    )


def _missing(
    task: Task, wanted: Sequence[Number], achieved: Sequence[Number]
) -> list[Number]:
    """Return how much of the linear and the angular part is missing."""
    squares = [
        (a - b) * (a - b) if counts else 0.0
        for a, b, counts in zip(wanted, achieved, task.rows, strict=True)
    ]
    return [sqrt(sum(half, 0.0)) for half in (squares[:3], squares[3:])]


def _reason(
    at: Progress,
    hierarchy: Hierarchy,
    p: int,
    missing: Sequence[Number],
    numbers: Sequence[Number],
) -> Number:
    """Return which of the reasons a task ends with."""
    limits, singular = float(RateReason.LIMITS), float(RateReason.SINGULAR)
    unfinished: Number = float(RateReason.UNFINISHED)
    short = select(at.scales[p] < 1.0, limits, singular)
    stopped = select(at.remaining > 0.0, unfinished, short)
    reason = select(at.level < float(hierarchy.levels), unfinished, stopped)
    ending: Number = float(RateReason.MET)
    for size, tolerance in zip(missing, numbers[4:], strict=True):
        ending = select(size > tolerance, reason, ending)
    return ending


def _null(
    options: Options, given: Any, rows: Rows, gain: Number
) -> list[Number] | None:
    """Return r = r_given - gain W^-1 grad, with which W r is Actin's -alpha F."""
    if options.purpose is None:
        return list(given["null"]) if options.null else None
    q: list[Scalar] = list(given["q"])
    if isinstance(options.purpose, str):
        value: Any = 0.0 - manipulability(rows)
    else:
        value = options.purpose(given["q"])
    start = given["null"] if options.null else [0.0] * len(q)
    return [
        r - gain * slope / w
        for r, slope, w in zip(start, gradient(value, q), given["weights"], strict=True)
    ]


def _bounds(
    q: Sequence[Number],
    limits: tuple[Sequence[float], Sequence[float]],
    rates: Sequence[Number],
    step: Number,
) -> tuple[list[Number], list[Number]]:
    """Return the rates with which no joint leaves its limits within a step.

    A joint beyond a limit may stay or come back.
    """
    per_second = INSIDE / maximum(step, INSTANT)
    low: list[Number] = []
    high: list[Number] = []
    for x, lower, upper, rate in zip(q, *limits, rates, strict=True):
        down, up = 0.0 - rate, rate
        if lower > -math.inf:
            down = maximum(down, minimum((lower - x) * per_second, 0.0))
        if upper < math.inf:
            up = minimum(up, maximum((upper - x) * per_second, 0.0))
        low.append(down)
        high.append(up)
    return low, high
