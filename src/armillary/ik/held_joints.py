"""Closed forms of arms with more joints than a pose needs, some of them given.

With joints h given and the others q, the pose is T(q, h). A given joint outside of the
others, as the last of an arm or the track under it, moves the whole pose:

    T(q, h) = L(h) T(q, h0)   or   T(q, h) = T(q, h0) R(h),

so a target X for h is the target L(h)^-1 X R(h)^-1 for h0, and one closed form serves
every value. L and R are T(q0, h) T(q0, h0)^-1 and T(q0, h0)^-1 T(q0, h) at any q0. A
given joint between the others changes the arm: it has a closed form for each value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.ik.avoidance import marked, nearest_free
from armillary.ik.closed_forms.branch import (
    Allowed,
    ArmProblem,
    chord_square,
    is_within,
)
from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.closed_forms.program import FORBIDDEN, OUTSIDE, best_row
from armillary.ik.form_of_arm import recognised
from armillary.ik.general_form import GeneralForm
from armillary.ik.method import Candidates, prove_far, residual_of
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery, Tolerance
from armillary.ik.reason import (
    COMPLETE,
    LIMITS,
    NOT_FOUND,
    OUT_OF_REACH,
    SINGULAR,
    SOLVED,
    TURNS,
    succeeded,
)
from armillary.ik.recognised_form import RecognisedForm, general_arm
from armillary.kernel import shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.model.link_poses import poses_of
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector, dot, subtract
from armillary.trace import Program, trace
from armillary.trace.functions import maximum, select

__all__ = ["HeldForm", "held_of"]

Array = npt.NDArray[np.float64]
Reasons = npt.NDArray[np.int8]
Truths = npt.NDArray[np.bool_]

SAMPLES: Final = 4
ROUNDING: Final = 1e-9  # of a pose that two ways lead to, lengths in parts of the arm
EXACT: Final = 1e-9  # what remains of an answer that need not be looked at again
SLACK: Final = 1e-9  # how far a given joint may be beyond its limits
EXCESS: Final = 1e6  # times what is beyond limits counts more than steps
MOST_KEPT: Final = 64  # closed forms of values of joints between the others
GEOMETRY: Final = 1e-12
"""How far axes may be from those of the model to stand for it, of the arm's size."""


class _HeldSides(NamedTuple):
    """Where given joints are: places among those given.

    Attributes:
        before: Those that move the pose from its left.
        behind: Those that move it from its right.
        between: The others.
    """

    before: list[int]
    behind: list[int]
    between: list[int]


class HeldForm:
    """The closed form of the joints that are left when others are given.

    Attributes:
        joints: Names of the given joints.
        family: What such arms are called.
        branches: The name of each branch, as of other closed forms; empty where a given
            joint is between the others, for each value makes another arm.
        choices: What the names mean, of the joints that are left, counted from 1.
        backwards: Whether these count from the tool to the base.
        is_general: Whether the others have no formula, but six axes anywhere.
        held: Places in q of the given joints.
        others: Places in q of the others.
    """

    arm_angle = None

    def __init__(self, problem: IKProblem, held: tuple[int, ...]) -> None:
        """Prepare for a problem and some of its joints, by their places in q.

        Raises:
            NotApplicable: The other joints have no closed form.
        """
        self._problem, self.held = problem, list(held)
        self.joints = tuple(problem.joints[k] for k in held)
        count = len(problem.joints)
        self.others = [k for k in range(count) if k not in held]
        self._forms: dict[tuple[float, ...], RecognisedForm | GeneralForm] = {}
        self._shares = False
        self._shared: dict[tuple[tuple[float, ...], ...], GeneralForm] = {}
        self._sides = self._found_sides()
        is_outside = not self._sides.between
        home = problem.home[self.held] if is_outside else self._samples[0, self.held]
        form = self._form(tuple(home.tolist()))
        self.family, self.backwards = form.family, form.backwards
        self.is_general = isinstance(form, GeneralForm)
        if isinstance(form, GeneralForm) and not is_outside:
            # Limits that couple joints are others for each value, and no inputs.
            is_free = not problem.selection.shapes and not len(problem.rows)
            self._shares = form.is_of_six and is_free
        self.branches = form.branches if is_outside else ()
        self.choices = form.choices if is_outside else ()

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return every branch for each target, or the nearest; see `IKMethod`."""
        held, count = query.held, len(query.targets)
        assert held is not None
        held = np.broadcast_to(held, (count, len(self.held)))
        if every or self.nearest is None:
            found = self._branches(query, held, every=every)
        else:
            found = self._nearest(query, held)
        if not self._sides.between and (found.reason == NOT_FOUND).any():
            home = self._problem.home[self.held]
            prove_far(found, self._left(home.tolist()), self._inner(query, held))
        if every:
            return marked(found, query)
        return nearest_free(found, self, query, self._problem)

    # inside

    def _branches(self, query: IKQuery, held: Array, *, every: bool) -> Candidates:
        """Return every branch for each target, or the nearest, by the form itself."""
        inner = self._inner(query, held)
        found = self._at_values(inner, held, every=every)
        self._verify(found, query, held)
        return found

    def _nearest(self, query: IKQuery, held: Array) -> Candidates:
        """Return the nearest branch for each target, which the kernel picks."""
        rows, n = self.rows(query, held), len(self._problem.joints)
        reason = rows[:, n + 2]
        outside = np.flatnonzero(reason % 1.0 >= OUTSIDE)
        found = Candidates(
            q=np.ascontiguousarray(rows[:, np.newaxis, :n]),
            reason=reason.astype(np.int8),
            residual=residual_of(rows[:, n : n + 2]),
            doubt=TURNS if self._problem.has_coupled_turns else COMPLETE,
            settled=bool(succeeded(reason).all()),
            jumps=np.zeros(len(rows), np.bool_),
        )
        if outside.size:  # they are put at limits
            at = query.at(outside)
            found.take(outside, self._branches(at, held[outside], every=False))
        return found

    def rows(self, query: IKQuery, held: Array) -> Array:
        """Return answers of the kernel `nearest`, shape (count, n + 4).

        Args:
            query: The targets.
            held: Where the given joints are, shape (count, r); or V values for each
                target, shape (count, V, r), then the answers are (count, V, n + 4).
        """
        assert self.nearest is not None
        near = np.clip(query.wanted, *self._problem.finite_limits)
        allowed, targets = self.allowed(query.tolerance), query.targets[:, 0]
        if held.ndim > targets.ndim - 1:
            targets = targets[:, np.newaxis]
            near = near if near.ndim == 1 else near[:, np.newaxis]
        return self.nearest(targets, allowed, near, held, threads=query.threads)

    def allowed(self, tolerance: Tolerance) -> Array:
        """Return the numbers of `Allowed` that belong to a tolerance."""
        form = self._form(tuple(self._problem.home[self.held].tolist()))
        assert isinstance(form, RecognisedForm)
        return form.allowed(tolerance)

    def _inner(self, query: IKQuery, held: Array) -> IKQuery:
        """Return the query of the joints that are left, given ones at `h0`."""
        near, seed = (
            None if q is None else np.ascontiguousarray(q[..., self.others])
            for q in (query.near, query.seed)
        )
        targets = query.targets
        if self._sides.before or self._sides.behind:
            moved = self._moved(held, np.ascontiguousarray(targets[:, 0]))
            targets = moved[:, np.newaxis]
        home = self._problem.home[self.others]
        return query._replace(
            targets=targets, home=home, near=near, seed=seed, held=None, avoid=None
        )

    def _at_values(self, query: IKQuery, held: Array, *, every: bool) -> Candidates:
        """Return candidates of all joints, for targets of given values."""
        between = held[:, self._sides.between]
        home = self._problem.home[self.held]
        if not self._sides.between:
            found = self._form(tuple(home.tolist())).candidates(query, every=every)
            return self._whole(found, held)
        values, which = np.unique(between, axis=0, return_inverse=True)
        which, parts = which.ravel(), list[Candidates]()
        order = np.argsort(which, kind="stable")
        for k, value in enumerate(values):
            home[self._sides.between] = value
            form = self._form(tuple(home.tolist()))
            rows = np.flatnonzero(which == k)
            parts.append(form.candidates(query.at(rows), every=every))
        found = _stacked(parts, len(self.others))
        return self._whole(found.at(np.argsort(order, kind="stable")), held)

    @cached_property
    def _runs(self) -> list[tuple[slice, int]]:
        """Return runs of places in q of the other joints, and of theirs the first."""
        ends = [-1, *sorted(self.held), len(self._problem.joints)]
        runs = [(slice(a + 1, b), a + 1 - k) for k, (a, b) in enumerate(pairwise(ends))]
        return [run for run in runs if run[0].start < run[0].stop]

    def _whole(self, found: Candidates, held: Array) -> Candidates:
        """Return candidates with the given joints put in."""
        q = np.empty((*found.q.shape[:-1], len(self._problem.joints)))
        for places, k in self._runs:  # slices are much quicker than lists of places
            q[..., places] = found.q[..., k : k + places.stop - places.start]
        none = 0.0 * found.q[..., 0]  # NaN where there is no answer
        for place, k in enumerate(self.held):
            q[..., k] = held[:, place, np.newaxis] + none
        return Candidates(
            q=q,
            reason=lambda: found.reason,
            residual=lambda: found.residual,
            doubt=lambda: found.doubt,
            settled=found.settled,
            jumps=np.zeros(len(q), np.bool_),
        )

    def _verify(self, found: Candidates, query: IKQuery, held: Array) -> None:
        """Look again at answers that are not exact, and at limits of given joints.

        Where a given joint behind the others moves the origin of the tool's frame, the
        distance that remains of the target for `h0` is not that of the target.
        """
        lower, upper = (ends[self.held] for ends in self._problem.limits)
        beyond = (held < lower - SLACK) | (held > upper + SLACK)
        rows = np.flatnonzero(beyond.any(axis=1))
        if rows.size:
            found.settled = False
            found.reason[rows] = np.where(
                found.success[rows], LIMITS, found.reason[rows]
            )
        if not self._has_lever:
            return
        at = np.nonzero(found.success & (found.residual > EXACT).any(axis=2))
        if at[0].size:
            squares = self._problem.squares(found.q[at], query.targets[at[0], 0])
            remains = np.sqrt(squares)
            found.residual[at] = remains
            missed = (remains > query.tolerance).any(axis=1)
            found.reason[at[0][missed], at[1][missed]] = LIMITS

    def _form(self, held: tuple[float, ...]) -> RecognisedForm | GeneralForm:
        """Return the closed form of the other joints, the given ones at some values."""
        form = self._forms.get(held)
        if form is None:
            form = self._made(self._left(held))
            if form.arm_angle is not None:
                raise NotApplicable("the joints that are left still leave a choice")
            if len(self._forms) >= MOST_KEPT:
                self._forms.pop(next(iter(self._forms)))
            self._forms[held] = form
        return form

    def _made(self, left: IKProblem) -> RecognisedForm | GeneralForm:
        """Return the closed form of the joints that are left.

        With another value of a joint between the others six axes differ in numbers
        alone: these are inputs of kernels that the forms of all values share.
        """
        if not self._shares or left.branch is not None:
            return recognised(left)
        try:
            arm = general_arm(left)
            axes = arm.closed.arm
            assert isinstance(axes, SixAxes)
            if arm.closed.accuracy <= GEOMETRY * max(1.0, axes.size):
                # Verified by the axes, which the kernels know, not by the model.
                closed = arm.closed._replace(accuracy=0.0)
                arm = arm._replace(closed=closed, has_given_axes=True)
                # How q moves them is not an input: an axis may point either way, and
                # a slide along the axis of its neighbour may change places with it.
                drives = axes.drives + axes.rails
                ways = tuple(
                    (drive.of, round(drive.multiplier, 12), round(drive.offset, 12))
                    for drive in drives
                )
                key = axes.slides, *ways
                form = GeneralForm(left, arm, like=self._shared.get(key))
                if not form.is_nearly_simpler:
                    self._shared.setdefault(key, form)
                    return form
        except NotApplicable:
            pass  # it may be of a family that has a formula
        return recognised(left)

    def _left(self, held: Sequence[float]) -> IKProblem:
        """Return the problem of the other joints, the given ones at some values."""
        problem, chosen = self._problem, self._problem.selection
        places = [chosen.inputs[k] for k in self.held]
        rest = list(chosen.rest)
        for k, x in zip(places, held, strict=True):
            rest[k] = x
        others = chosen.others
        if chosen.shapes and self._sides.between:
            others = tuple(sorted({*others, *places}))
        left = chosen._replace(
            inputs=tuple(chosen.inputs[k] for k in self.others),
            rest=tuple(rest),
            others=others,
        )
        return IKProblem(problem.tree, problem.goals, left, problem.branch)

    @cached_property
    def _samples(self) -> Array:
        problem = self._problem
        shape = SAMPLES, len(problem.joints)
        return np.random.default_rng(0).uniform(*problem.start_range, shape)

    def _found_sides(self) -> _HeldSides:
        """Return where the given joints are, by the poses that they lead to."""
        problem = self._problem
        if problem.selection.passive or len(problem.goals) != 1:
            raise NotApplicable("its joints move closed loops, or place several frames")
        sides, self._has_lever = _HeldSides([], [], []), False
        if len(problem.rows):  # limits of the others depend on where these are
            return sides._replace(between=list(range(len(self.held))))
        # Of a partial goal, what lies behind the others turns what is left free.
        (goal,) = problem.goals
        left = list(enumerate(self.held))
        samples, before = self._samples.copy(), 0
        while before != len(left):  # one outside may hide the next
            before, tried = len(left), left
            left = list[tuple[int, int]]()
            for place, k in tried:
                q, q0 = samples.copy(), samples.copy()
                q[:, k], q0[:, k] = self._samples[0, k], problem.home[k]
                T, T0 = problem.fk(q)[:, 0], problem.fk(q0)[:, 0]
                front, back = T0 @ np.linalg.inv(T), np.linalg.inv(T) @ T0
                if self._is_same(front):
                    sides.before.append(place)
                elif goal.is_whole and self._is_same(back):
                    sides.behind.append(place)
                    shift = np.abs(back[:, :3, 3]).max()
                    self._has_lever |= bool(shift > ROUNDING * problem.size)
                else:
                    left.append((place, k))
                    continue
                samples[:, k] = problem.home[k]
        sides.between.extend(place for place, _ in left)
        return sides

    def _is_same(self, poses: Array) -> bool:
        apart = np.abs(poses - poses[0])
        apart[:, :3, 3] /= self._problem.size
        return bool(apart.max() < ROUNDING)

    @cached_property
    def _moved(self) -> AnyKernel:
        problem = self._problem.standard
        program = self._moved_program(problem)
        return bind(shared_kernel(program), self._problem.values)

    def _moved_program(self, problem: IKProblem) -> Program:
        """Return the program of a target for h as the target for h0.

        Returns:
            Inputs those of `selection.shapes`, `held` (r,) and `target` (4, 4). Output
            `moved` (4, 4).
        """

        def moved(*inputs: Any) -> list[list[Number]]:
            *values, held, target = inputs
            return self._moved_target(problem, values, held, target)

        shapes = {
            **problem.selection.shapes,
            "held": (len(self.held),),
            "target": (4, 4),
        }
        return trace(moved, name="held", outputs=("moved",), **shapes)

    def _moved_target(
        self, problem: IKProblem, values: list[Any], held: Vector, target: Matrix
    ) -> list[list[Number]]:
        """Return the target for h as the target for h0, traced.

        Args:
            problem: Of which tree.
            values: Of the inputs of `selection.shapes`.
            held: Where the given joints are, h.
            target: The pose for these.
        """
        chosen, (goal,) = problem.selection, problem.goals

        def at(places: list[int]) -> Pose:
            q: list[Number] = [chosen.rest[k] for k in chosen.inputs]
            for place in places:
                q[self.held[place]] = held[place]
            tree, whole = chosen.applied(problem.tree, q, values)
            (X,) = poses_of(tree, whole, [goal.frame], goal.relative_to)
            return X

        pose, home = Pose.from_matrix(target), at([])
        if self._sides.before:
            pose = home @ at(self._sides.before).inverse() @ pose
        if self._sides.behind:
            pose = pose @ at(self._sides.behind).inverse() @ home
        return _rows_of(pose, target)

    @cached_property
    def nearest(self) -> AnyKernel | None:
        """Return the kernel of the nearest answer, of any batch of given positions.

        It is None where the others have no formula, or another for each position.

        Returns:
            Inputs `target` (4, 4), `allowed` (4,), `near` (n,), within limits, and
            `held` (r,). Output `answer` (n + 4,): that of `best_program` with the given
            joints put in, then how good it is, the less the better: the sum of squares
            of steps from `near`, and FORBIDDEN more for each rank of its reason.
        """
        if self._sides.between or self.is_general:
            return None
        form = self._form(tuple(self._problem.home[self.held].tolist()))
        assert isinstance(form, RecognisedForm)
        problem, make = self._problem, partial(self._nearest_program, form.arm)
        if form.is_shared:
            what = f"nearest given {self.held}"

            def once(problem: IKProblem) -> Program:
                return problem.kept_program(what, partial(make, problem))

            program = problem.once(what, once)
        else:
            program = make(problem.standard)
        return bind(shared_kernel(program), problem.values)

    def _nearest_program(self, arm: ArmProblem, problem: IKProblem) -> Program:
        """Return the program of `nearest`, its first inputs `selection.shapes`."""
        chosen, (goal,) = problem.selection, problem.goals
        shapes: dict[str, tuple[int, ...]] = {
            **chosen.shapes,
            "target": (4, 4),
            "allowed": (len(Allowed._fields),),
            "near": (len(chosen.inputs),),
            "held": (len(self.held),),
        }

        def answer(*inputs: Any) -> list[Number]:
            *values, target, allowed, near, held = inputs
            moved = self._moved_target(problem, values, held, target)
            there = [near[k] for k in self.others]
            placed = arm.placed(values) if arm.selection.shapes else arm
            *part, distance, chord, reason = best_row(placed, moved, allowed, there)
            q: list[Number] = [0.0] * len(near)
            for k, x in zip((*self.others, *self.held), (*part, *held), strict=True):
                q[k] = x
            is_met: Any = (reason == SOLVED) | (reason == SINGULAR)
            ok: Any = True
            for place, x in zip(self.held, held, strict=True):
                low, high = (float(ends[place]) for ends in self._problem.limits)
                ok = ok & is_within(x, low, high, SLACK)
            if self._has_lever:  # what remains is not that of the moved target
                tree, whole = chosen.applied(problem.tree, q, values)
                (X,) = poses_of(tree, whole, [goal.frame], goal.relative_to)
                wanted = Pose.from_matrix(target)
                apart = subtract(X.position, wanted.position)
                distance, chord = dot(apart, apart), chord_square(X, wanted)
                ok = ok & (distance <= allowed[0]) & (chord <= allowed[1])
            reason = select(ok, reason, select(is_met, LIMITS, reason))
            steps = sum(((x - y) * (x - y) for x, y in zip(q, near, strict=True)), 0.0)
            # Beyond limits the nearest to them is best: where few values of h have an
            # answer within, those beside lead there.
            excess: Number = 0.0
            for x, low, high in zip(q, *self._problem.limits, strict=True):
                excess = excess + maximum(maximum(float(low) - x, x - float(high)), 0.0)
            steps = steps + select(reason == LIMITS, EXCESS * excess, 0.0)
            rank = select(reason == LIMITS, 1.0, 0.0)
            rank = select(reason == NOT_FOUND, 2.0, rank)
            rank = select(reason == OUT_OF_REACH, 3.0, rank)
            return [*q, distance, chord, reason, steps + FORBIDDEN * rank]

        return trace(answer, name="ik_given", outputs=("answer",), **shapes)

    def __repr__(self) -> str:
        names = ", ".join(self.joints)
        return f"<closed form for given {names}, {self.family}>"


def _rows_of(X: Pose, target: Matrix) -> list[list[Number]]:
    """Return a pose as rows, the last of them that of the target, which may be bad."""
    rows: list[list[Number]] = [
        [*row, x] for row, x in zip(X.rotation, X.position, strict=True)
    ]
    return [*rows, list(target[3])]


def _stacked(parts: list[Candidates], n: int) -> Candidates:
    """Return candidates for targets one behind the other, missing ones out of reach."""
    count = sum(len(part.q) for part in parts)
    width = max((part.q.shape[1] for part in parts), default=1)
    q = np.full((count, width, n), math.nan)
    reason = np.full((count, width), OUT_OF_REACH, np.int8)
    residual = np.full((count, width, 2), math.nan)
    first = 0
    for part in parts:
        rows, b = slice(first, first + len(part.q)), part.q.shape[1]
        q[rows, :b], reason[rows, :b] = part.q, part.reason
        residual[rows, :b] = part.residual
        first += len(part.q)

    def doubt() -> Reasons:
        none = np.zeros(0, np.int8)
        return np.concatenate([none, *(part.doubt for part in parts)])

    return Candidates(q=q, reason=reason, residual=residual, doubt=doubt)


def held_of(problem: IKProblem, names: Any) -> tuple[int, ...]:
    """Return the places in q of joints that are to be given.

    Raises:
        ModelError: A joint is not among those that are found, or too few are left or
            given.
    """
    cell = problem.tree.cell
    found = [cell.joint(name) for name in names]
    inputs = problem.selection.inputs
    for k in found:
        if k not in inputs:
            listed = ", ".join(problem.joints)
            raise ModelError(
                f"redundancy= gives {cell.joint_names[k]!r}, which is not among the "
                f"joints that are found: {listed}."
            )
        if found.count(k) > 1:
            raise ModelError(f"redundancy= gives {cell.joint_names[k]!r} twice.")
    if len(found) == len(inputs):
        raise ModelError("redundancy= gives every joint: leave one that is found.")
    return tuple(inputs.index(k) for k in found)
