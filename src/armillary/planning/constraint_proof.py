"""Machine code that tells whether constraints of frames hold along straight motions.

A motion is q = a + t (b - a). Of a constraint, x(t) are numbers that are linear in the
frame's pose, as the constraint sees it: its position in the target's axes; the
difference of an axis from that of the target, of length 2 sin(angle / 2); or that of
all axes, of length 2 sqrt(2) sin(angle / 2). With the bounds S of |x'| and M of |x''|
of `frame_chain`, around a point t of a piece that reaches h to both sides

    x(t + s) is within M h^2 / 2 of x + s x', and within S h of x.

Distances from a convex set, such as a box, are convex, so that x + s x' is nowhere
farther from it than at -h or h. A piece is proven where either bound is within the
tolerance; others are halved, until one ends at a point beyond the tolerance.

Joints that move the frame of the target move x by w_k more for each metre that the
frames are apart. With r the greater of their distances at both ends, S_0 the bound of
the speed at distance 0, and W = sum w_k v_k of those joints, they are never farther
apart than d where r + (S_0 + W d) / 2 <= d. Where W is above 1, that they are not is
shown along with the rest.

What targets, boxes, tolerances and bounds are is a record that the code reads, so that
other constraints of the same kinds compile nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.ik.problem import Goal, IKProblem
from armillary.ik.search_step import BOX_SIZE, shaped_inputs
from armillary.ik.targets import POSE_SIZE, pose_at
from armillary.kernel.column_function import (
    ColumnCode,
    ColumnFunction,
    RowFunction,
    native_lanes,
)
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import At, Stage, Subdivide, When
from armillary.kernel.tables import Field, Table, reals
from armillary.model.link_poses import poses_of
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector, apply, subtract, transpose
from armillary.trace import Port, Program, jvp, trace
from armillary.trace.functions import asin, maximum, minimum, select, sin, sqrt

__all__ = ["ChainNumbers", "ConstraintProof", "ProofNumbers", "constraint_proof_of"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

F64: Final = np.dtype(np.float64)

UNBOUNDED: Final = 1e100
"""What stands for bounds that are infinite, so that 0 times it is 0."""

SHORTEST_PIECE: Final = 2.0**-24
"""Pieces below this part of a motion are not divided any more."""

MOST_ROUNDS: Final = 8192
"""Most rounds of pieces of a motion; beyond, it is not proven."""

MOST_PIECES: Final = 65_536.0
"""Most pieces of a motion at first."""

ALL_AXES: Final = 3


class ChainNumbers(NamedTuple):
    """Bounds of how c coordinates move a frame, in the order of its chain.

    Attributes:
        rates: Rates of coordinates for unit rates of joints, shape (c, n).
        linear: How fast each moves it [m per unit], shape (c,), at a distance of 0.
        angular: How fast each turns it [rad per unit], shape (c,).
        bending: Accelerations by speeds [per unit], shape (c,).
        inverse: Which move the frame that sees it, shape (c,).
    """

    rates: Array
    linear: Array
    angular: Array
    bending: Array
    inverse: Truths


class ProofNumbers(NamedTuple):
    """What a proof reads.

    Attributes:
        targets: Poses of goals, shape (k, 4, 4).
        boxes: Least and greatest positions for goals that have a box, shape (b, 2, 3);
            not infinite.
        tolerances: Of positions [m] and rotations [rad], shape (k, 2).
        chains: Bounds of the chain of each goal; None where they are not known.
    """

    targets: Array
    boxes: Array
    tolerances: Array
    chains: Sequence[ChainNumbers] | None


@final
class ConstraintProof:
    """Errors of constraints, and proofs that they hold, by machine code.

    Attributes:
        violations: Of columns q the errors by tolerances, one of each goal.
        holds: Of columns of both ends of motions 1 where all hold, else 0; None where
            nothing bounds speeds.
    """

    def __init__(
        self, violations: ColumnFunction, holds: ColumnFunction | None, sizes: _Sizes
    ) -> None:
        """Take machine code."""
        self.violations, self.holds = violations, holds
        self._violations = RowFunction(violations, (sizes.n,), (sizes.goals,))
        ends = sizes.n, sizes.n
        self._holds = None if holds is None else RowFunction(holds, ends, (1,))

    def violations_of(self, Q: Array) -> Array:
        """Return errors by tolerances, shape (k, goals).

        Q: Joint positions [m or rad], shape (k, n).
        """
        (found,) = self._violations(Q)
        return found

    def holds_along(self, A: Array, B: Array) -> Truths:
        """Return along which straight motions all hold, as is proven, shape (k,).

        Args:
            A: Where motions begin [m or rad], shape (k, n).
            B: Where they end, shape (k, n).
        """
        assert self._holds is not None
        (found,) = self._holds(A, B)
        return found[:, 0] > 0.0


class _Sizes(NamedTuple):
    """The joints of the cell, goals, and coordinates of the chain of each."""

    n: int
    goals: int
    chains: tuple[int, ...]
    carried: tuple[bool, ...]


def constraint_proof_of(
    problem: IKProblem, numbers: ProofNumbers, n: int
) -> ConstraintProof:
    """Return what proves that goals are kept; the problem has no passive joints.

    Args:
        problem: The goals, and the joints that move them.
        numbers: Targets, boxes, tolerances and bounds of speeds.
        n: How many joints the cell has.
    """
    chains = numbers.chains or ()
    sizes = _Sizes(
        n,
        len(problem.goals),
        tuple(len(each.linear) for each in chains),
        tuple(bool(each.inverse.any()) for each in chains),
    )
    record = {
        "target": np.append(numbers.targets.ravel(), numbers.boxes.ravel()),
        "tolerances": numbers.tolerances,
    }
    others = list(map(np.ravel, problem.values))
    if others:
        record["others"] = np.concatenate(others)
    given = {"constraints": {name: x[np.newaxis] for name, x in record.items()}}

    def code(what: Hashable, make: Any) -> ColumnCode:
        return ColumnCode(problem.once(what, make), F64, native_lanes(F64))

    violations = code(("violations", sizes), partial(_violations_pipeline, sizes))
    holds = None
    if numbers.chains is not None:
        made = code(("constraint proofs", sizes), partial(_proof_pipeline, sizes))
        bounds = {
            f"{name}{k}": np.where(np.isfinite(x), x, UNBOUNDED)[np.newaxis]
            for k, chain in enumerate(chains)
            for name, x in zip(_CHAIN, map(np.float64, chain), strict=True)
        }
        holds = made({"constraints": given["constraints"] | bounds})
    return ConstraintProof(violations(given), holds, sizes)


_CHAIN: Final = tuple(f"chain_{name}" for name in ChainNumbers._fields)


def _fields(problem: IKProblem) -> list[Field]:
    """Return the fields that tell what the goals are."""
    goals = problem.goals
    boxes = sum(goal.in_box for goal in goals)
    others = sum(map(math.prod, problem.selection.shapes.values()))
    fields = [
        reals("target", (POSE_SIZE * len(goals) + BOX_SIZE * boxes,)),
        reals("tolerances", (len(goals), 2)),
    ]
    return [*fields, reals("others", (others,))] if others else fields


class _GoalError:
    """One goal: what of its frame counts, and how far that is from the target.

    Attributes:
        goal: The goal.
        number: Which one it is.
        has_distance: Whether positions count.
        has_angle: Whether rotations count.
    """

    def __init__(self, problem: IKProblem, number: int) -> None:
        self.problem, self.number = problem, number
        self.goal: Goal = problem.goals[number]
        self.has_distance = self.goal.has_position or self.goal.in_box
        self.has_angle = self.goal.has_rotation
        self._box = sum(goal.in_box for goal in problem.goals[:number])

    @property
    def is_whole_turn(self) -> bool:
        """Return whether all axes of the frame have directions that count."""
        return sum(self.goal.rotation) == ALL_AXES

    def numbers(
        self, q: Vector, others: Sequence[Any], target: Vector
    ) -> tuple[list[Number], list[Number], list[Number]]:
        """Return what is linear in the pose: position, axes, and the frames' distance.

        The position is in the axes of the target; of axes, it is the difference from
        those of the target.
        """
        selection = self.problem.selection
        chosen = [q[k] for k in selection.inputs]
        tree, whole = selection.applied(
            self.problem.tree, chosen, shaped_inputs(selection, others)
        )
        (X,) = poses_of(tree, whole, [self.goal.frame], self.goal.relative_to)
        X_T, _ = pose_at(target, self.number)
        way = apply(transpose(X_T.rotation), subtract(X.position, X_T.position))
        return list(way), self._axes(X, X_T), list(X.position)

    def _axes(self, X: Pose, X_T: Pose) -> list[Number]:
        ours, theirs = transpose(X.rotation), transpose(X_T.rotation)
        axes = range(ALL_AXES)
        if not self.is_whole_turn:
            axes = [k for k in axes if not self.goal.rotation[k]]
        return [a - b for k in axes for a, b in zip(ours[k], theirs[k], strict=True)]

    def distance(self, x: Vector, target: Vector) -> Number:
        """Return how far a position is from where it may be [m]."""
        total: Number = 0.0
        for k, (value, counts) in enumerate(zip(x, self.goal.position, strict=True)):
            error: Number = value
            if not counts:
                if not self.goal.in_box:
                    continue
                poses = POSE_SIZE * len(self.problem.goals)
                low, high = (
                    target[poses + BOX_SIZE * self._box + 3 * side + k]
                    for side in range(2)
                )
                error = value - minimum(maximum(value, low), high)
            total = total + error * error
        return sqrt(total)

    def chord(self, c: Vector) -> Number:
        """Return 2 sin(angle / 2) of the difference of axes."""
        square = sum((x * x for x in c), 0.0)
        return sqrt(0.5 * square if self.is_whole_turn else square)


# Errors


def _violations_pipeline(sizes: _Sizes, problem: IKProblem) -> Pipeline:
    """Return the pipeline from joint positions to errors by tolerances."""
    fields = _fields(problem)
    measures = [_GoalError(problem, k) for k in range(sizes.goals)]

    def violations(
        q: Vector, target: Vector, tolerances: Any, *others: Vector
    ) -> list[Number]:
        found: list[Number] = []
        for one, (most, angle) in zip(measures, tolerances, strict=True):
            x, c, _ = one.numbers(q, others[0] if others else (), target)
            error: Number = 0.0
            if one.has_distance:
                error = one.distance(x, target) / most
            if one.has_angle:
                half = minimum(0.5 * one.chord(c), 1.0)
                error = maximum(error, 2.0 * asin(half) / angle)
            found.append(error)
        return found

    program = trace(
        violations,
        name="violations",
        outputs=("violations",),
        q=(sizes.n,),
        **{field.name: field.shape for field in fields},
    )
    return _pipeline("constraint_violations", fields, (program,), ("q",), sizes.n)


# Proofs


def _proof_pipeline(sizes: _Sizes, problem: IKProblem) -> Pipeline:
    """Return the pipeline from both ends of motions to whether goals are kept."""
    fields, stages = _fields(problem), list[Stage]()
    for k, count in enumerate(sizes.chains):
        shapes = (count, sizes.n), (count,), (count,), (count,), (count,)
        fields += [
            reals(f"{name}{k}", shape)
            for name, shape in zip(_CHAIN, shapes, strict=True)
        ]
    known = {field.name: field.shape for field in fields}
    for k in range(sizes.goals):
        one = _GoalProof(_GoalError(problem, k), sizes, known)
        begin, pieces = one.start(), one.pieces()
        stages.append(begin if not k else When("holds", (begin,)))
        stages += [When("holds", (pieces,)), When("holds", (one.answer(),))]
    return _pipeline("constraint_proof", fields, stages, ("a", "b"), sizes.n)


class _GoalProof:
    """The stages that prove one goal along motions."""

    def __init__(
        self, measure: _GoalError, sizes: _Sizes, fields: dict[str, tuple[int, ...]]
    ) -> None:
        k = measure.number
        self.measure, self.k = measure, k
        self.is_carried = sizes.carried[k]
        self.ends = {"a": (sizes.n,), "b": (sizes.n,)}
        self.chain = {f"{name}{k}": fields[f"{name}{k}"] for name in _CHAIN}
        more = ("others",) if "others" in fields else ()
        self.target = {name: fields[name] for name in ("target", *more)}
        self.tolerances = {"tolerances": fields["tolerances"]}
        self.names = {
            name: f"{name}{k}"
            for name in ("speeds", "bends", "farthest", "longest", "covered", "ended")
        }

    def start(self) -> Program:
        """Return what bounds the motion, and how long its pieces are at first."""
        names = "speeds", "bends", "farthest", "longest", "covered", "ended"
        return trace(
            self._start,
            name="constraint_motion",
            outputs=(*(self.names[name] for name in names), "holds"),
            **self.ends,
            **self.tolerances,
            **self.chain,
            **self.target,
        )

    def _start(self, a: Vector, b: Vector, tolerances: Any, *given: Any) -> Any:
        rates, linear, angular, bending, inverse, target, *others = given
        way = [abs(y - x) for x, y in zip(a, b, strict=True)]
        v = [inner(row, way) for row in rates]
        W = [x * w for x, w in zip(v, angular, strict=True)]
        far: Number = 0.0
        farthest: Number = UNBOUNDED
        if self.is_carried:
            r: Number = 0.0
            for q in (a, b):
                _, _, place = self.measure.numbers(q, _first(others), target)
                r = maximum(r, sqrt(inner(place, place)))
            turn = inner(W, inverse)
            far = (r + 0.5 * inner(v, linear)) / (1.0 - 0.5 * minimum(turn, 1.0))
            farthest = select(turn <= 1.0, UNBOUNDED, far)
        L = [
            x * (speed + w * i * far)
            for x, speed, w, i in zip(v, linear, angular, inverse, strict=True)
        ]
        # |x''| <= sum_k (2 sum_{i < k} w_i v_i + b_k v_k) l_k v_k; see `frame_chain`.
        before: Number = 0.0
        bends: list[Number] = [0.0, 0.0]
        for k in range(len(v)):
            turned = 2.0 * before + bending[k] * v[k]
            bends = [bends[0] + turned * L[k], bends[1] + turned * W[k]]
            before = before + W[k]
        speeds = [sum(L, 0.0), before]
        if self.measure.is_whole_turn:
            # Each of three columns by that: sqrt(3) of them all, of 2 sqrt(2) sin.
            bends[1] = math.sqrt(1.5) * bends[1]
        most = self._most(tolerances)
        fast = bent = 0.0  # how many pieces either bound asks for
        for k in np.flatnonzero(self._used).tolist():
            fast = maximum(fast, speeds[k] / most[k])
            bent = maximum(bent, 0.5 * sqrt(bends[k] / most[k]))
        pieces = maximum(minimum(minimum(fast, bent), MOST_PIECES), 1.0)
        return speeds, bends, farthest, 1.0 / pieces, 0.0, 0.0, 1.0

    @property
    def _used(self) -> tuple[bool, bool]:
        return self.measure.has_distance, self.measure.has_angle

    def _most(self, tolerances: Any) -> tuple[Number, Number]:
        """Return the tolerances of positions, and of 2 sin(angle / 2)."""
        distance, angle = tolerances[self.k]
        return distance, 2.0 * sin(0.5 * minimum(angle, math.pi))

    def pieces(self) -> Subdivide:
        """Return the stages that cover a motion."""
        names = [self.names[name] for name in ("longest", "covered", "ended")]
        piece = "at", "back", "ahead", "beyond"
        where = trace(
            self._placed,
            name="constraint_point",
            outputs=("now", "rate"),
            at=(),
            **self.ends,
            **self.target,
        )
        (size,) = where.outputs[0].shape
        judge = trace(
            self._judged,
            name="constraint_piece",
            outputs=("back", "ahead", "beyond"),
            now=(size,),
            rate=(size,),
            back=(),
            ahead=(),
            **{self.names[x]: (2,) for x in ("speeds", "bends")},
            **{self.names["farthest"]: ()},
            **self.tolerances,
            target=self.target["target"],
        )
        longest, covered, ended = names
        return Subdivide(
            piece,
            (where, judge),
            longest=longest,
            covered=covered,
            ended=ended,
            shortest=SHORTEST_PIECE,
            limit=MOST_ROUNDS,
            anywhere=True,
        )

    def _placed(
        self, t: Number, a: Vector, b: Vector, target: Vector, *others: Vector
    ) -> Any:
        q = [x + t * (y - x) for x, y in zip(a, b, strict=True)]
        every = self.measure.numbers(q, _first(others), target)
        uses = (*self._used, self.is_carried)
        now = [x for part, used in zip(every, uses, strict=True) if used for x in part]
        return now, jvp(now, [(t, 1.0)])

    def _judged(
        self, x: Vector, rates: Vector, back: Number, ahead: Number, *given: Any
    ) -> Any:
        speeds, bends, farthest, tolerances, target = given
        now, rate = list(x), list(rates)
        h = maximum(back, ahead)
        is_covered: Any = True
        is_beyond: Any = False
        counts = (3, len(now) - 3 * sum((self.measure.has_distance, self.is_carried)))
        most = self._most(tolerances)
        for k, size in enumerate(counts):
            if not self._used[k]:
                continue
            x, v = now[:size], rate[:size]
            del now[:size], rate[:size]

            def far(x: Vector, k: int = k) -> Number:
                measure = self.measure
                return measure.chord(x) if k else measure.distance(x, target)

            ends = [
                far([p + s * u for p, u in zip(x, v, strict=True)])
                for s in (h, 0.0 - h)
            ]
            by_bend = maximum(*ends) + 0.5 * h * h * bends[k]
            at_most = minimum(by_bend, far(x) + h * speeds[k])
            is_covered = is_covered & (at_most <= most[k])
            is_beyond = is_beyond | (far(x) > most[k])
        if self.is_carried:
            reach = sqrt(inner(now, now))
            is_covered = is_covered & (reach + h * speeds[0] <= farthest)
        covered = select(is_covered, 1.0, 0.0)
        return covered * back, covered * ahead, select(is_beyond, 1.0, 0.0)

    def answer(self) -> Program:
        """Return what says whether the goal is kept from end to end."""

        def answered(covered: Number, ended: Number) -> Any:
            return select((covered >= 1.0) & (ended <= 0.0), 1.0, 0.0)

        names = self.names["covered"], self.names["ended"]
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
        return trace(answered, name="constraint_kept", outputs=("holds",), **shapes)


def _first(others: Sequence[Vector]) -> Vector:
    return others[0] if others else ()


def _pipeline(
    name: str,
    fields: list[Field],
    stages: Sequence[Stage],
    inputs: Sequence[str],
    n: int,
) -> Pipeline:
    """Return stages at the record of the constraints; the last one gives the result."""

    def zero(_: Vector) -> float:
        return 0.0

    first = trace(zero, name="first", outputs=("first",), **{inputs[0]: (n,)})
    table = Table("constraints", tuple(fields))
    at = At("constraints", tuple(stages), "first")
    last = stages[-1]
    while isinstance(last, When):
        last = last.stages[-1]
    assert isinstance(last, Program)
    ports = tuple(Port(each, (n,)) for each in inputs)
    return Pipeline(name, ports, (table,), (first, at), (last.outputs[-1].name,))
