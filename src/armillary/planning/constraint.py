"""Constraints of frames during a motion, and joint positions that satisfy them.

With the pose (R, p) of a frame relative to another, and the target (R_t, p_t), the
error has two parts in the target's axes: e = R_t' (p - p_t), of which the chosen
components count, less what a box allows; and the shortest turn to the target, of all
axes or of the one that the frame may spin about. Joint positions are projected onto
e = 0 by Newton's method, with the least weighted step J' (J J')^-1 e.

Between way points joints move straight. That constraints hold there is proven by bounds
of how fast frames move; see `constraint_proof`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.ik.problem import Goal, IKProblem
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.kinematics.kernels import chosen_axes, selection_of
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.questions import fk, jacobian
from armillary.kinematics.speed_bounds import speeds_are_known, speeds_within
from armillary.kinematics.state import State, bound_state
from armillary.model.check_pose import are_rigid
from armillary.model.fields import kept_few
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.constraint_proof import (
    ChainNumbers,
    ConstraintProof,
    ProofNumbers,
    constraint_proof_of,
)
from armillary.planning.edges import SurfaceTests
from armillary.planning.frame_chain import FrameChain
from armillary.planning.layout import MOST_GOALS
from armillary.planning.projector import (
    SNUG,
    Projector,
    ProjectorNumbers,
    projector_in_python,
    projector_of,
)
from armillary.spatial.pose import Pose

__all__ = [
    "FrameConstraint",
    "Manifold",
    "constraints_of",
    "content_of",
    "rotation_directions",
    "tilt",
]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

NEWTON_STEPS: Final = 12
"""Newton steps of a projection."""

LONGEST_NEWTON_STEP: Final = 0.5
"""The greatest weighted length of such a step."""

DAMPING: Final = 1e-9
"""Of J J', so that constraints may depend on each other."""

PART_OF_TOLERANCE: Final = 0.5
"""The part of a tolerance that positions and middles of motions may use up."""

LEAST_TOLERANCE: Final = 100.0 * SNUG
"""The least tolerance [m, rad]: of a smaller one what projections miss is a part."""

TWO_AXES: Final = 2

INFINITE_END: Final = 1e30
"""An end of a box that is infinite [m]."""


@final
@dataclass(frozen=True, eq=False)
class FrameConstraint:
    """What holds for a frame while a planned motion lasts.

        FrameConstraint("tool0", position="", rotation="xy")  # upright: it may spin
        FrameConstraint("tool0", position="yz", rotation="")  # on the x axis of target
        FrameConstraint("left/tool0", relative_to="right/tool0")  # a part in two arms

    Attributes:
        frame: The frame.
        relative_to: In which frame the target is given.
        target: Where the frame is to be: a pose, or its matrix, shape (4, 4). By
            default where it is at the start of the plan.
        position: Which of x, y and z of the target's axes count: all for a point, two
            for a line, one for a plane.
        rotation: Rotations about which of its axes count: all, two, so that the frame
            may spin about the third, or none.
        box: Least and greatest positions in the target's axes [m], shape (2, 3); they
            count for the axes that are not in `position`, and may be infinite.
        distance: Tolerance of positions [m].
        angle: Tolerance of rotations [rad].
    """

    frame: str
    relative_to: str = WORLD
    target: Any = None
    position: str = "xyz"
    rotation: str = "xyz"
    box: Any = None
    distance: float = 1e-3
    angle: float = 1e-2

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ModelError: Axes are not letters of xyz, a rotation is named alone, nothing
                is constrained, the box is empty, the target is not rigid, or a
                tolerance is not above 0 or below `LEAST_TOLERANCE`.
            ShapeError: The target or the box have another shape, or no numbers.
        """
        chosen_axes(self.position, "position")
        rotation_directions(self.rotation)
        for name in ("distance", "angle"):
            value = positive_number(f"The tolerance {name}=", getattr(self, name))
            if value < LEAST_TOLERANCE:
                raise ModelError(
                    f"The tolerance {name}= is {value:g}; it must be "
                    f"{LEAST_TOLERANCE:g} or more, since way points satisfy "
                    f"constraints to {SNUG:g}."
                )
        if self.target is not None and not are_rigid(matrix_of(self.target)):
            raise ModelError(
                "The target of a constraint must be a rigid pose: finite, and neither "
                "scaled, sheared nor reflected."
            )
        if self.box is not None:
            box = numbers_of("box", self.box)
            if box.shape != (2, 3):
                raise ShapeError(f"The box is of shape {box.shape}, not (2, 3).")
            if not (box[0] <= box[1]).all():
                raise ModelError(
                    "The box is empty: its least must not exceed its most."
                )
        elif not self.position and not self.rotation:
            raise ModelError(
                "The constraint constrains nothing: name axes of position or rotation, "
                "or a box."
            )

    def __str__(self) -> str:
        """Return which frame it is about."""
        axes = ", ".join(
            f"{name} {getattr(self, name)}"
            for name in ("position", "rotation")
            if getattr(self, name)
        )
        box = " in a box" if self.box is not None else ""
        return f"'{self.frame}' to '{self.relative_to}'{box}: {axes}".rstrip(": ")


def constraints_of(given: Any) -> tuple[FrameConstraint, ...]:
    """Return the constraints that are given, in any iterable.

    Raises:
        ModelError: They are not in a list, or a value is not a constraint.
    """
    if isinstance(given, FrameConstraint) or not np.iterable(given):
        raise ModelError(
            f"constraints= is a list: constraints=[arm.FrameConstraint(...)], not "
            f"{given!r}."
        )
    every = tuple(given)
    for each in every:
        if not isinstance(each, FrameConstraint):
            raise ModelError(
                f"Constraints are arm.FrameConstraint values, not {each!r}."
            )
    return every


def content_of(constraint: FrameConstraint) -> Hashable:
    """Return what is equal for constraints that ask for the same."""
    target, box = constraint.target, constraint.box
    return (
        (constraint.frame, constraint.relative_to),
        (constraint.position, constraint.rotation),
        (constraint.distance, constraint.angle),
        None if target is None else matrix_of(target).tobytes(),
        None if box is None else numbers_of("box", box).tobytes(),
    )


def rotation_directions(rotation: str) -> tuple[int, ...]:
    """Return which of a frame's axes have directions that count: all, one or none.

    Args:
        rotation: The axes about which rotations count.

    Raises:
        ModelError: It names one axis alone, or is something else.
    """
    counts = chosen_axes(rotation, "rotation")
    if sum(counts) == 1:
        raise ModelError(
            f"rotation='{rotation}' leaves two rotations free, which is not supported; "
            "name two axes to let it spin about the third."
        )
    if sum(counts) == TWO_AXES:
        return (counts.index(False),)
    return (0, 1, 2) if all(counts) else ()


def matrix_of(target: Any) -> Array:
    """Return a pose as a matrix, shape (4, 4).

    Raises:
        ShapeError: It is of another shape, or not of numbers.
    """
    X = numbers_of("target", target.matrix() if isinstance(target, Pose) else target)
    if X.shape != (4, 4):
        raise ShapeError(f"The target is of shape {X.shape}, not (4, 4).")
    return X


class Errors(NamedTuple):
    """Errors of a constraint, k rows.

    Attributes:
        e: In the target's axes [m], then [rad], shape (k, 6).
        distance: Of positions [m], shape (k,).
        angle: Of rotations [rad], shape (k,).
    """

    e: Array
    distance: Array
    angle: Array


@final
class _Bound:
    """A constraint of a cell in a state, with its target."""

    def __init__(
        self, cell: Workcell, state: State, asked: FrameConstraint, start: Array | None
    ) -> None:
        to = asked.relative_to
        self.asked = asked
        self.pose = fk(cell, asked.frame, relative_to=to, state=state)
        self.jacobian = jacobian(cell, asked.frame, relative_to=to, state=state)
        if asked.target is not None:
            self.target = matrix_of(asked.target).copy()
        elif start is not None:
            self.target = np.asarray(self.pose(start), float)
        else:
            raise ModelError(
                f"The constraint of '{asked.frame}' has no target: a roadmap has no "
                "start, where the frame could be kept."
            )
        self.counts = np.array(chosen_axes(asked.position, "position"))
        turns = np.array(chosen_axes(asked.rotation, "rotation"))
        self.turns = turns
        directions = rotation_directions(asked.rotation)
        self.spin = directions[0] if len(directions) == 1 else -1
        box = (-np.inf, np.inf) if asked.box is None else np.array(asked.box, float)
        self.lower, self.upper = (np.broadcast_to(each, 3) for each in box)

    def errors(self, Q: Array) -> Errors:
        """Return the errors of joint positions, shape (k, n)."""
        X = np.asarray(self.pose(Q), float)
        R, p = X[:, :3, :3], X[:, :3, 3]
        turn, place = self.target[:3, :3], self.target[:3, 3]
        # Sums whose order does not depend on how many rows there are.
        at: Array = np.einsum("ki,ij->kj", p - place, turn)
        beyond = at - np.clip(at, self.lower, self.upper)
        linear = np.where(self.counts, at, beyond)
        relative = np.einsum("ji,kjl->kil", turn, R)
        angular = np.zeros_like(linear)
        if self.spin >= 0:
            angular = tilt(relative, self.spin)
        elif self.turns.any():
            angular = _turn(relative)
        distance, angle = (
            np.sqrt(np.einsum("ki,ki->k", v, v)) for v in (linear, angular)
        )
        return Errors(np.concatenate([linear, angular], axis=1), distance, angle)

    def slopes(self, Q: Array, e: Array) -> Array:
        """Return the derivatives of errors, shape (k, 6, n); 0 where nothing counts."""
        J = np.asarray(self.jacobian(Q), float)
        turn = self.target[:3, :3].T
        rows = np.concatenate([turn @ J[:, :3], turn @ J[:, 3:]], axis=1)
        linear = self.counts | (e[:, :3] != 0.0)
        angular = np.broadcast_to(self.turns, (len(Q), 3))
        return np.where(
            np.concatenate([linear, angular], axis=1)[:, :, None], rows, 0.0
        )

    def violation(self, errors: Errors) -> Array:
        """Return errors as parts of the tolerances, shape (k,)."""
        return np.maximum(
            errors.distance / self.asked.distance, errors.angle / self.asked.angle
        )


def _turn(R: Array) -> Array:
    """Return rotation vectors, shape (k, 3): half turns have any of their two."""
    w = np.stack(
        [R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], 1
    )
    s = np.sqrt(np.einsum("ki,ki->k", w, w))
    angle = np.arctan2(s, np.trace(R, axis1=1, axis2=2) - 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.where(s[:, None] > 0.0, w / s[:, None], 0.0)
    flat = (s < 1e-9) & (angle > 1.0)  # a half turn, whose axis w does not tell
    along[flat] = np.eye(3)[0]
    return along * angle[:, None]


def tilt(R: Array, spin: int) -> Array:
    """Return the turns of an axis from a target to where it is, shape (k, 3)."""
    now, following, last = R[:, :, spin], (spin + 1) % 3, (spin + 2) % 3
    w = np.zeros_like(now)  # the axis times `now`
    w[:, following], w[:, last] = -now[:, last], now[:, following]
    s = np.sqrt(np.einsum("ki,ki->k", w, w))
    angle = np.arctan2(s, now[:, spin])
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.where(s[:, None] > 0.0, w / s[:, None], 0.0)
    flat = (s < 1e-9) & (angle > 1.0)
    along[flat] = np.eye(3)[following]
    return along * angle[:, None]


@final
class Manifold:
    """The joint positions of a cell that satisfy constraints, within limits.

    Attributes:
        lower: Least joint positions [m or rad], shape (n,); those of fixed joints are
            their greatest.
        upper: Greatest, shape (n,).
        weights: Of joints in lengths of motions, shape (n,).
        parts: The constraints.
    """

    def __init__(
        self,
        cell: Workcell,
        state: State,
        constraints: Sequence[FrameConstraint],
        *,
        start: Array | None,
        lower: Array,
        upper: Array,
        weights: Array,
    ) -> None:
        """Bind constraints to a cell in a state.

        Raises:
            ModelError: A value is not a constraint, or has no target and there is no
                start.
            UnknownName: A frame does not exist.
        """
        every = constraints_of(constraints)
        self.cell, self.state = cell, state
        self.lower, self.upper, self.weights = lower, upper, weights
        self.parts = [_Bound(cell, state, each, start) for each in every]

    @property
    def code_key(self) -> Hashable:
        """Return what its code depends on; targets and limits are numbers."""
        stays = (self.upper <= self.lower).tobytes()
        asked = [one.asked for one in self.parts]
        return stays, *(
            (x.frame, x.relative_to, x.position, x.rotation, x.box is not None)
            for x in asked
        )

    def violations(self, Q: Array) -> Array:
        """Return errors by tolerances, one column for each constraint, (k, parts)."""
        found = np.zeros((len(Q), len(self.parts)))
        if self._proof is not None:
            found[:, self._moved_places] = self._proof.violations_of(Q)
        for k, one in enumerate(self.parts):
            if self._proof is None or k not in self._moved_places:
                found[:, k] = one.violation(one.errors(Q))
        return found

    def is_near(self, Q: Array) -> Truths:
        """Return which rows are within half of the tolerances, shape (k,)."""
        return np.asarray((self.violations(Q) <= PART_OF_TOLERANCE).all(axis=1))

    def project(self, Q: Array) -> tuple[Array, Truths]:
        """Return positions near given ones that satisfy all, and which ones do.

        Args:
            Q: Joint positions [m or rad], shape (k, n).
        """
        found = np.clip(Q, self.lower, self.upper)
        if self._projector is None or not len(Q):
            return self._by_newton(found)
        return self._projector(found)

    @cached_property
    def surface(self) -> SurfaceTests:
        """Return what the native loop reads of the constraints."""
        if self._projector is None:
            return SurfaceTests(projector_in_python(self._by_newton, len(self.lower)))
        project, proof, count = self._projector.columns, self._proof, len(self._moved)
        if proof is None or proof.holds is None or count > MOST_GOALS:
            return SurfaceTests(project)
        tests = proof.violations, proof.holds
        return SurfaceTests(project, *tests, count, PART_OF_TOLERANCE)

    @cached_property
    def _moved_places(self) -> list[int]:
        """Return which constraints joints can change."""
        return [self.parts.index(one) for one, _ in self._moved]

    @cached_property
    def _moved(self) -> list[tuple[_Bound, Goal]]:
        """Return the constraints that joints can change, as goals."""
        tree = bound_state(self.cell, self.state).tree
        moving = {int(k) for k in np.flatnonzero(self.upper > self.lower)}
        found: list[tuple[_Bound, Goal]] = []
        for one in self.parts:
            asked = one.asked
            ends = self.cell.frame(asked.frame), self.cell.frame(asked.relative_to)
            if moving.isdisjoint(tree.moving_joints(tree.between(list(ends)))):
                continue
            position = chosen_axes(asked.position, "position")
            rotation = chosen_axes(asked.rotation, "rotation")
            goal = Goal(*ends, position, rotation, in_box=asked.box is not None)
            found.append((one, goal))
        return found

    @cached_property
    def _problem(self) -> IKProblem | None:
        """Return the constraints that joints can change, as goals for machine code.

        None where that knows too little: of closed loops, of joints that run in Python,
        and where no joint moves the frames.
        """
        if not self._moved or self.cell.loop_system.blocks:
            return None
        goals = tuple(goal for _, goal in self._moved)
        bound = bound_state(self.cell, self.state)
        names = self.cell.joint_names
        joints = [names[k] for k in np.flatnonzero(self.upper > self.lower)]
        ends = [end for goal in goals for end in (goal.relative_to, goal.frame)]
        selection = selection_of(self.cell, joints, bound, ends)
        # Joints that stay are where limits leave them.
        stays = self.upper <= self.lower
        rest = tuple(np.where(stays, self.lower, selection.rest).tolist())
        selection = selection._replace(rest=rest)
        where = tuple(base.frame for base in bound.tree.bases)
        key = goals, selection.inputs, rest, where

        def made() -> IKProblem:
            return IKProblem(bound.tree, goals, selection)

        problem = kept_few(self.cell, "projections", key, made)
        if problem.selection.passive or not problem.can_search:
            return None
        return problem

    @cached_property
    def _targets(self) -> tuple[Array, Array]:
        """Return the targets of those goals, (k, 4, 4), and their boxes, (b, 2, 3)."""
        parts = [one for one, _ in self._moved]
        boxes = [(one.lower, one.upper) for one in parts if one.asked.box is not None]
        finite = np.clip(np.array(boxes).reshape(-1, 2, 3), -INFINITE_END, INFINITE_END)
        return np.stack([one.target for one in parts]), finite

    @cached_property
    def _projector(self) -> Projector | None:
        """Return machine code that projects; None where Python has to."""
        problem = self._problem
        if problem is None:
            return None
        chosen = list(problem.selection.inputs)
        numbers = ProjectorNumbers(
            *self._targets, self.lower[chosen], self.upper[chosen]
        )
        return projector_of(problem, numbers, len(self.lower))

    @cached_property
    def _proof(self) -> ConstraintProof | None:
        """Return machine code for errors and proofs; None where Python has to."""
        problem, speeds = self._problem, self.speeds
        if problem is None:
            return None
        tolerances = np.array(
            [(one.asked.distance, one.asked.angle) for one, _ in self._moved]
        )
        chains = None if speeds is None else [speeds[k] for k in self._moved_places]
        numbers = ProofNumbers(*self._targets, tolerances, chains)
        return constraint_proof_of(problem, numbers, len(self.lower))

    def _by_newton(self, found: Array) -> tuple[Array, Truths]:
        """Return the same by Newton's method in NumPy, from positions in limits."""
        found = found.copy()
        done = np.zeros(len(found), np.bool_)
        if not self.parts:
            return found, ~done
        inverse = np.where(self.upper > self.lower, self.weights**-2.0, 0.0)
        rows = np.arange(len(found))
        for step in range(NEWTON_STEPS + 1):
            now = found[rows]
            errors = [one.errors(now) for one in self.parts]
            e = np.concatenate([each.e for each in errors], axis=1)
            is_done = np.abs(e).max(axis=1) < SNUG
            done[rows[is_done]] = True
            rows, e = rows[~is_done], e[~is_done]
            if step == NEWTON_STEPS or not len(rows):
                break
            now = now[~is_done]
            # Weighted damped least squares: W J' (J W J' + d 1)^-1 e, W = weights^-2.
            J = np.concatenate(
                [
                    one.slopes(now, each.e[~is_done])
                    for one, each in zip(self.parts, errors, strict=True)
                ],
                axis=1,
            )
            # A joint at its limit that is to go beyond it stays; so does one alone.
            JW = J * inverse
            square = JW @ J.transpose(0, 2, 1)
            square += DAMPING * np.eye(square.shape[1])
            y = np.linalg.solve(square, e[:, :, None])
            way = np.einsum("kij,kil->kj", JW, y)
            length = np.sqrt((way * way) @ self.weights**2.0)
            way *= np.minimum(
                1.0, LONGEST_NEWTON_STEP / np.maximum(length, LONGEST_NEWTON_STEP)
            )[:, None]
            found[rows] = np.clip(now - way, self.lower, self.upper)
        return found, done

    def in_state(self, state: State) -> Manifold:
        """Return the same constraints in another state, their targets unchanged."""
        return Manifold(
            self.cell,
            state,
            [replace(one.asked, target=one.target) for one in self.parts],
            start=None,
            lower=self.lower,
            upper=self.upper,
            weights=self.weights,
        )

    # proofs

    @cached_property
    def speeds(self) -> list[ChainNumbers] | None:
        """Return bounds of speeds for each constraint; None where some have none."""
        bound = bound_state(self.cell, self.state)
        moving, tree = straight_links(self.cell), bound.tree
        if not speeds_are_known(moving, bound):
            return None
        bounds = speeds_within(
            moving, bound, self.lower, self.upper, accelerations=True
        )
        found: list[ChainNumbers] = []
        for one in self.parts:
            ends = [
                self.cell.frame(x) for x in (one.asked.frame, one.asked.relative_to)
            ]
            chain = FrameChain.between(moving, tree, bounds, (ends[0], ends[1]))
            if not np.isfinite([chain.linear, chain.angular]).all():
                return None
            more = np.where(chain.inverse, 2.0 * chain.angular, 0.0)
            bending = bounds.bending[chain.coordinates] + more
            numbers = chain.rates, chain.linear, chain.angular, bending, chain.inverse
            found.append(ChainNumbers(*numbers))
        return found

    def holds(self, A: Array, B: Array, step: float) -> Truths:
        """Return for which straight motions all constraints hold within tolerances.

        It is proven where `speeds` are known; else samples are tested.

        Args:
            A: Where motions begin [m or rad], shape (k, n).
            B: Where they end, shape (k, n).
            step: The distance of samples where nothing is proven.
        """
        holds = np.ones(len(A), np.bool_)
        if not (self.parts and len(A)):
            return holds
        if self.speeds is None:
            length = np.sqrt((B - A) ** 2.0 @ self.weights**2.0)
            pieces = max(1, int(np.ceil(length.max() / step)))
            for t in np.linspace(0.0, 1.0, pieces + 1):
                holds &= (self.violations(A + t * (B - A)) <= 1.0).all(axis=1)
            return holds
        if self._proof is not None:
            holds = self._proof.holds_along(A, B)
        for k, one in enumerate(self.parts):
            if k not in self._moved_places:  # nothing changes it
                holds &= one.violation(one.errors(A)) <= 1.0
        return holds
