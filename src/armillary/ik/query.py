"""What methods of inverse kinematics are asked: checked, one row a target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, printable
from armillary.ik.problem import Goal, IKProblem
from armillary.ik.targets import as_joints, as_matrices, as_reals, at_positions
from armillary.kernel.arguments import FLOAT64
from armillary.kernel.search import SearchOptions, deadline_of
from armillary.kinematics.state import State

Array = npt.NDArray[np.float64]
Batch = tuple[int, ...]
Tolerance = tuple[float, float]
Avoid = Callable[..., npt.NDArray[np.bool_]]

BASE_DIMENSIONS = 3
"""Dimensions of the poses of bases for all targets, shape (k, 4, 4)."""

TOLERANCE: Tolerance = (1e-6, 1e-6)
"""What may remain of a target that is met, if nothing is said [m, rad]."""


class IKQuery(NamedTuple):
    """Targets, and what an answer to each is to be like; see `InverseKinematics`.

    Attributes:
        targets: Poses, shape (count, k, 4, 4) for k goals.
        batch: The shape of the batch that they are.
        home: Joint positions [m or rad], shape (n,).
        near: Joint positions to stay near [m or rad], shape (n,) or (count, n).
        seed: Where a search starts first, of the same shape.
        arm_angle: Of arms that have one [rad], shape () or (count,), or (count, m) for
            candidates at m angles.
        tolerance: Largest distance [m] and angle [rad] that remain.
        search_options: When a search gives a start up, and when a target.
        random_seed: Another number gives other random starts.
        threads: How many may share a search.
        deadline: When to stop, see `deadline_of`.
        explain: Whether to find out if joint limits block what a search misses.
        starts: How many starts a search for all candidates has for each target.
        avoid: What tells where answers touch something: q (..., n) to truths (...);
            with `bases` it takes their poses, too.
        bases: Poses of the bases that are elsewhere, shape (k, 4, 4) or
            (count, k, 4, 4).
        held: Positions of joints that are given [m or rad], shape (count, m).
    """

    targets: Array
    batch: Batch
    home: Array
    near: Array | None
    seed: Array | None
    arm_angle: Array | None
    tolerance: Tolerance
    search_options: SearchOptions | None
    random_seed: int
    threads: int | None
    deadline: int
    explain: bool
    starts: int
    avoid: Avoid | None
    bases: Array | None = None
    held: Array | None = None

    def at(self, rows: Any, **changes: Any) -> IKQuery:
        """Return the query of some of the targets, as a batch of one dimension.

        Args:
            rows: Which: indices, truths or a slice.
            changes: Other attributes that change, of those targets.
        """
        targets = self.targets[rows]
        parts = {
            name: part if part is None or part.ndim <= shared else part[rows]
            for name, part, shared in (
                ("near", self.near, 1),
                ("seed", self.seed, 1),
                ("arm_angle", self.arm_angle, 0),
                ("bases", self.bases, BASE_DIMENSIONS),
                ("held", self.held, 1),
            )
        }
        return self._replace(
            **{**parts, "targets": targets, "batch": (len(targets),), **changes}
        )

    @property
    def wanted(self) -> Array:
        """Return what branches are compared with: `near`, else `seed`, else home."""
        if self.near is not None:
            return self.near
        return self.home if self.seed is None else self.seed

    @property
    def can_search(self) -> bool:
        """Return whether a search may answer: none keeps what is given of the arm."""
        return self.arm_angle is None and self.held is None

    @property
    def is_late(self) -> bool:
        """Return whether the deadline is over."""
        return 0 < self.deadline <= time.monotonic_ns()


def query_of(  # noqa: PLR0913
    problem: IKProblem,
    targets: Any,
    *,
    near: Any = None,
    seed: Any = None,
    arm_angle: Any = None,
    tolerance: Tolerance = TOLERANCE,
    search_options: SearchOptions | None = None,
    random_seed: int = 0,
    threads: int | None = None,
    timeout: float | None = None,
    explain: bool = True,
    starts: int = 64,
    avoid: Avoid | None = None,
    redundancy: Mapping[str, Any] | None = None,
) -> IKQuery:
    """Return a query of targets and options as callers give them.

    Args:
        problem: What the targets are for.
        targets: As for a call of `InverseKinematics`.
        near: A vector for all targets or for each, or a state.
        seed: As `near`.
        arm_angle: For all targets or for each.
        tolerance: As for a call.
        search_options: As for a call.
        random_seed: As for a call.
        threads: As for a call.
        timeout: Time for the whole query [s].
        explain: As for a call.
        starts: As for `InverseKinematics.all`.
        avoid: What tells where answers touch something.
        redundancy: As for a call.

    Raises:
        ShapeError: A shape does not fit, or a tolerance or timeout is not above 0.
    """
    if tolerance is not TOLERANCE:
        check_tolerance(tolerance)
    batch: Batch = ()
    if (
        len(problem.goals) == 1
        and is_plain_matrix(targets)
        and targets.flags.c_contiguous
    ):  # the quick way
        poses = targets.reshape(1, 1, 4, 4)
    else:
        poses, batch = as_poses(targets, problem.goals)
    held = None
    if redundancy is not None:
        poses, batch, held = _with_held(poses, batch, redundancy)
    return IKQuery(
        poses,
        batch,
        problem.home,
        None if near is None else joint_vectors(problem, near, "near", batch),
        None if seed is None else joint_vectors(problem, seed, "seed", batch),
        None if arm_angle is None else as_numbers(arm_angle, "arm_angle", batch),
        tolerance,
        search_options,
        random_seed,
        threads,
        deadline_of(_seconds_of(timeout)),
        explain,
        starts,
        avoid,
        held=held,
    )


def _with_held(
    poses: Array, batch: Batch, redundancy: Mapping[str, Any]
) -> tuple[Array, Batch, Array]:
    """Return targets and positions of joints, each repeated for the other, and a batch.

    Raises:
        ModelError: No joint is named.
        ShapeError: The shapes do not broadcast, or a position is not finite.
    """
    given: Any = redundancy
    if not isinstance(given, Mapping) or not redundancy:
        raise ModelError(
            "redundancy= takes positions by the names of joints, such as "
            f"{{'joint7': 0.3}}, not {printable(repr(redundancy))}."
        )
    values = [as_reals(x, f"redundancy of {name!r}") for name, x in redundancy.items()]
    try:
        shape = np.broadcast_shapes(batch, *(x.shape for x in values))
    except ValueError as error:
        shapes = ", ".join(str(x.shape) for x in values)
        raise ShapeError(
            f"redundancy= of shape {shapes} does not fit targets of batch {batch}: one "
            "must broadcast to the other, as targets of shape (k, 1, 4, 4) and m "
            "values do to a batch (k, m)."
        ) from error
    held = np.stack([np.broadcast_to(x, shape) for x in values], axis=-1)
    if not np.isfinite(held).all():
        raise ShapeError("redundancy= takes finite joint positions [m or rad].")
    if shape != batch:
        core = poses.shape[1:]
        whole = np.broadcast_to(poses.reshape(*batch, *core), (*shape, *core))
        poses = np.ascontiguousarray(whole).reshape(-1, *core)
    return poses, shape, held.reshape(-1, len(values))


def is_plain_matrix(targets: Any) -> bool:
    """Return whether targets are one matrix of float64, whatever its strides."""
    return (
        type(targets) is np.ndarray
        and targets.shape == (4, 4)
        and targets.dtype is FLOAT64
    )


def is_plain_vector(given: Any, like: Array) -> bool:
    """Return whether joint positions are a vector of float64 as long as another.

    None of them is NaN.
    """
    return (
        type(given) is np.ndarray
        and given.shape == like.shape
        and given.dtype is FLOAT64
        and not any(map(math.isnan, given.tolist()))  # for a few, quicker than NumPy
    )


def joint_vectors(problem: IKProblem, values: Any, name: str, batch: Batch) -> Array:
    """Return joint vectors, shape (n,) or (count, n); of a state those of its joints.

    Raises:
        ShapeError: They are not vectors of n, do not fit the batch, or hold NaN.
    """
    if isinstance(values, State):
        values = np.take(values.bound(problem.tree.cell).q, problem.selection.inputs)
    return as_vectors(values, name, len(problem.joints), batch)


def as_poses(targets: Any, aims: Sequence[Goal]) -> tuple[Array, Batch]:
    """Return targets, shape (count, goals, 4, 4), and the shape of their batch.

    They may be matrices, quaternions with origins, or dual quaternions; or positions,
    where no rotation counts.

    Raises:
        ShapeError: They are not poses, or not one for each goal.
    """
    goals = len(aims)
    array = as_matrices(targets)
    if array.shape[-1:] == (3,) and not any(goal.has_rotation for goal in aims):
        array = at_positions(array)
    core = (4, 4) if goals == 1 else (goals, 4, 4)
    if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
        shape = ", ".join(map(str, core))
        raise ShapeError(
            f"ik needs targets of shape (..., {shape}), or with 7 numbers (quaternion, "
            f"origin) or 8 (dual quaternion) in place of 4, 4, or with rotation='' 3 "
            f"(position); an array of shape {np.shape(targets)} was given."
        )
    batch = array.shape[: array.ndim - len(core)]
    return array.reshape(math.prod(batch), goals, 4, 4), batch


def as_vectors(values: Any, name: str, n: int, batch: Batch) -> Array:
    """Return joint vectors for all targets, shape (n,), or for each, (count, n).

    Raises:
        ShapeError: They are not vectors of n, do not fit the batch, or hold NaN.
    """
    array = as_joints(values, name, n)
    # a sum of squares is quicker than a test of each number
    if math.isnan(np.vdot(array, array)) and np.isnan(array).any():
        raise ShapeError(
            f"{name} must contain joint positions, but {int(np.isnan(array).sum())} of "
            f"its {array.size} numbers are NaN."
        )
    return _by_targets(array, name, batch, (n,))


def as_numbers(values: Any, name: str, batch: Batch) -> Array:
    """Return one number for all targets, shape (), or for each, (count,).

    Raises:
        ShapeError: They do not fit the batch.
    """
    return _by_targets(as_reals(values, name), name, batch, ())


def _by_targets(array: Array, name: str, batch: Batch, core: tuple[int, ...]) -> Array:
    """Return what holds for all targets as it is, else an entry for each target.

    Raises:
        ShapeError: It does not fit the batch.
    """
    if array.ndim == len(core):
        return array
    try:
        return np.broadcast_to(array, (*batch, *core)).reshape(-1, *core)
    except ValueError as error:
        raise ShapeError(
            f"{name} of shape {array.shape} does not fit targets of batch {batch}."
        ) from error


def _seconds_of(timeout: float | None) -> float | None:
    """Return a timeout [s].

    Raises:
        ShapeError: `timeout` is not a number above 0.
    """
    if timeout is None or (isinstance(timeout, Real) and timeout > 0.0):
        return timeout
    raise ShapeError(f"timeout= takes seconds above 0, not {timeout!r}.")


def check_tolerance(tolerance: Tolerance) -> None:
    """Refuse tolerances that nothing meets.

    Raises:
        ShapeError: They are not two numbers above 0.
    """
    try:
        distance, angle = tolerance
        met = distance > 0.0 and angle > 0.0
    except (TypeError, ValueError) as error:
        raise ShapeError(
            "tolerance= takes a distance [m] and an angle [rad], such as (1e-3, 1e-3), "
            f"not {tolerance!r}."
        ) from error
    if not met:
        raise ShapeError(
            f"The tolerances are {distance} m and {angle} rad; both must be above 0."
        )
