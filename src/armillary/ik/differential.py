"""Differential inverse kinematics: wanted twists in, joint rates out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.ik.objective import Purpose, check_purpose, limit_distance
from armillary.ik.problem import chosen_axes
from armillary.ik.rates import RateReason, Rates
from armillary.ik.rates_program import Options, Task, rates_program
from armillary.ik.targets import as_reals
from armillary.ik.task_priority import Progress
from armillary.kernel import shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.jacobian import Twist
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import State
from armillary.kinematics.state_twist import named_twist
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD, Workcell

Array = npt.NDArray[np.float64]

MOST_CALLS = 16
PROGRESS = 5  # its place among the inputs of a kernel


class Question(NamedTuple):
    """What a solver of a cell is about, besides its tasks.

    Attributes:
        tree: What moves.
        inputs: The joints, as indices into the cell's q.
        joints: Their names.
        select: Gives what else is an input, of the frames that tasks are about.
        twist: Makes a twist of the cell from names of frames.
        limited: Whether limits hold.
        purpose: What freedom is used for.
        gain: How fast that is followed.
    """

    tree: Tree
    inputs: tuple[int, ...]
    joints: tuple[str, ...]
    select: Callable[[Sequence[FrameRef]], Inputs]
    twist: Callable[[str, str, str | None, str | None], Twist]
    limited: bool
    purpose: Purpose | str | None = None
    gain: float = 1.0


class DifferentialSolver:
    """Rates that meet wanted twists; call it with q and the twists.

    It is made by `cell.differential_ik`. The first call compiles one kernel: Jacobians,
    damping, priorities and limits, for as many rows at once as a register has lanes.

    Attributes:
        joints: Names of the joints in q and qd.
        tasks: What is wanted, the most important first.
    """

    def __init__(self, question: Question, tasks: tuple[Task, ...]) -> None:
        """Prepare the solver of `tasks`; see `Cell.differential_ik`."""
        self.joints = question.joints
        self.tasks = tasks
        self._question = question
        limits = question.tree.cell.limits
        places = list(question.inputs)
        self._lower, self._upper = limits[0][places], limits[1][places]
        self._rates = question.tree.cell.velocity_limits[places]
        self._sizes = tuple(len(task.kept) for task in tasks)
        self._selection = question.select([at for task in tasks for at in task.twist])
        self._kernels: dict[bool, AnyKernel] = {}

    def then(
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
    ) -> DifferentialSolver:
        """Return the solver with one more task, which never disturbs those before.

        The arguments are those of `Cell.differential_ik`.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: A bare name is not unique, or nothing is asked for.
        """
        twist = self._question.twist(frame, relative_to, point, axes)
        task = task_of(twist, position, rotation)
        return DifferentialSolver(self._question, (*self.tasks, task))

    def for_purpose(
        self, purpose: Purpose | str, *, gain: float = 1.0
    ) -> DifferentialSolver:
        """Return the solver that uses the freedom left by its tasks for a purpose.

        Args:
            purpose: `limits` to stay away from them, `manipulability` to stay away from
                singularities of the first task, or a function of q, shape (n,), to the
                number that is made smaller; it is traced as a joint is.
            gain: How fast: the rates come near to -gain times the gradient over the
                weights.

        Raises:
            UnknownName: There is no such purpose.
            ModelError: The gain is not finite.
        """
        check_purpose(purpose)
        if not math.isfinite(gain):
            raise ModelError(f"The gain of a purpose is {gain}; it must be finite.")
        question = self._question._replace(purpose=purpose, gain=gain)
        return DifferentialSolver(question, self.tasks)

    def __call__(
        self,
        q: Any,
        twists: Any,
        *,
        null: Any = None,
        weights: Any = 1.0,
        step: float = 0.0,
        damping: float = 0.01,
        sharp: bool = True,
        tolerance: tuple[float, float] = (1e-6, 1e-6),
    ) -> Rates:
        """Find the rates of least size that meet the twists.

        Args:
            q: Joint positions [m or rad], shape (..., n).
            twists: What is wanted [m/s, rad/s], shape (..., 6); with k > 1 tasks
                (..., k, 6). Numbers that do not count are not read.
            null: Rates to come near to where the tasks leave freedom, shape (..., n).
            weights: How much each joint is spared, above 0: sum w_i qd_i^2 is least;
                shape () or (..., n).
            step: How long the rates will hold [s]: no joint leaves its limits within
                it. 0 for an instant, in which only those at a limit are stopped.
            damping: Singular values of J W^-1/2 below which a direction is given up.
            sharp: Whether damping vanishes away from singularities; otherwise it is
                that of plain damped least squares.
            tolerance: What may be missing of a twist that is met [m/s, rad/s].

        Raises:
            ShapeError: A shape does not fit, or an option is out of its range.
        """
        n = len(self.joints)
        given = {
            "q": _joints(q, "q", n),
            "twists": self._twists(twists),
            "weights": _weights(weights, n),
            "numbers": self._numbers(damping, step, sharp, tolerance),
        }
        if self._question.limited:
            given["rates"] = self._rates
        if null is not None:
            given["null"] = _joints(null, "null", n)
        return self._answer(self._run(given), given)

    # inside

    def _twists(self, twists: Any) -> Array:
        """Return twists (..., k, 6), zero where they do not count."""
        array, k = as_reals(twists, "twists"), len(self.tasks)
        core = (6,) if k == 1 else (k, 6)
        if array.shape[-len(core) :] != core:
            shape = ", ".join(map(str, core))
            raise ShapeError(
                f"{k} task{'s need' if k > 1 else ' needs'} twists of shape "
                f"(..., {shape}); an array of shape {array.shape} was given."
            )
        wide = array[..., None, :] if k == 1 else array
        return np.where(self._counting, wide, 0.0)

    @cached_property
    def _counting(self) -> npt.NDArray[np.bool_]:
        return np.array([task.rows for task in self.tasks])

    def _numbers(
        self, damping: float, step: float, sharp: bool, tolerance: tuple[float, float]
    ) -> Array:
        if not 0.0 < damping < math.inf:
            raise ShapeError(f"The damping is {damping}; it must be above 0.")
        if not 0.0 <= step < math.inf:
            raise ShapeError(f"The step is {step} s; it must be 0 or more.")
        if not all(size >= 0.0 for size in tolerance):
            raise ShapeError(f"The tolerances are {tolerance}; they must be 0 or more.")
        gain = self._question.gain
        return np.array([damping * damping, step, gain, float(sharp), *tolerance])

    def _kernel(self, null: bool) -> AnyKernel:
        """Return the kernel with or without given rates for the freedom left."""
        if null not in self._kernels:
            question = self._question
            limits = (self._lower.tolist(), self._upper.tolist())
            purpose = question.purpose
            options = Options(
                limits=limits if question.limited else None,
                null=null,
                purpose=limit_distance(*limits) if purpose == "limits" else purpose,
            )
            tree, selection = question.tree, self._selection
            program = rates_program(tree, self.tasks, selection, options)
            kernel = bind(shared_kernel(program), selection.values(tree))
            self._kernels[null] = kernel
        return self._kernels[null]

    def _run(self, given: dict[str, Array]) -> Array:
        """Call the kernel until every row has come to its end."""
        kernel = self._kernel("null" in given)
        arrays = list(given.values())
        if not self._question.limited:
            return kernel(*arrays)
        size = Progress.size(self._sizes, len(self.joints))
        arrays.insert(PROGRESS, np.zeros(size))
        rows: Array = kernel(*arrays)
        batch = rows.shape[:-1]
        for _ in range(MOST_CALLS):
            left = ~self._ended(rows, given)
            if not left.any():
                break
            arrays[PROGRESS] = rows[..., :size]
            if not batch:
                rows = kernel(*arrays)
                continue
            ports = kernel.program.inputs[-len(arrays) :]
            rows[left] = kernel(
                *(
                    np.broadcast_to(array, (*batch, *port.shape))[left]
                    for array, port in zip(arrays, ports, strict=True)
                )
            )
        return rows

    def _ended(self, rows: Array, given: dict[str, Array]) -> npt.NDArray[np.bool_]:
        """Tell which rows have gone through all levels."""
        n = len(self.joints)
        last = "null" in given or self._question.purpose is not None
        return ~(rows[..., n] > 0.0) & (rows[..., n + 1] >= len(self.tasks) + last)

    def _answer(self, rows: Array, given: dict[str, Array]) -> Rates:
        """Return what the rows of the kernel say, in the caller's terms."""
        n, k, batch = len(self.joints), len(self.tasks), rows.shape[:-1]
        ends = rows[..., -9 * k : -6 * k].reshape(*batch, k, 3)
        finite = _finite(given)
        if not finite.all():
            bad = ~np.broadcast_to(finite, batch)
            rows[bad] = np.nan
            ends[bad] = np.nan, np.nan, RateReason.INVALID
        shape = batch if k == 1 else (*batch, k)
        ends = ends.reshape(*shape, 3)
        return Rates(
            qd=rows[..., :n],
            twist=rows[..., -6 * k :].reshape(*shape, 6),
            residual=ends[..., :2],
            scale=rows[..., n + 2 : n + 2 + k].reshape(shape),
            reason=ends[..., 2].astype(np.int8),
        )


def differential_of(
    cell: Workcell,
    names: tuple[str, str, str | None, str | None],
    rows: tuple[str, str],
    joints: Joints,
    state: State | None,
    limited: bool,
) -> DifferentialSolver:
    """Return the solver of a first task; see `Cell.differential_ik`.

    Args:
        cell: Whose joints move.
        names: Frame, `relative_to`, `point` and `axes` of its twist.
        rows: The directions and the rotations that count.
        joints: Names of the joints that may move.
        state: Where all else is; by default as the cell was built.
        limited: Whether limits hold.
    """
    bound = None if state is None else bound_state(cell, state)
    inputs = selection_of(cell, joints).inputs
    question = Question(
        tree=Tree.of(cell) if bound is None else bound.tree,
        inputs=inputs,
        joints=tuple(cell.joint_names[k] for k in inputs),
        select=partial(selection_of, cell, joints, bound),
        twist=partial(named_twist, cell),
        limited=limited,
    )
    task = task_of(named_twist(cell, *names), *rows)
    return DifferentialSolver(question, (task,))


def task_of(twist: Twist, position: str, rotation: str) -> Task:
    """Return the task of a twist in the directions and rotations that count.

    Raises:
        ModelError: None counts, or a letter is not of `xyz`.
    """
    rows = chosen_axes(position, "position") + chosen_axes(rotation, "rotation")
    if not any(rows):
        raise ModelError("A task must ask for a direction or a rotation.")
    return Task(twist, rows)


def _joints(values: Any, name: str, n: int) -> Array:
    array = as_reals(values, name)
    if array.shape[-1:] != (n,):
        raise ShapeError(
            f"{name} needs shape (..., {n}); an array of shape {array.shape} was given."
        )
    return array


def _weights(values: Any, n: int) -> Array:
    array = as_reals(values, "weights")
    if not ((array > 0.0) & (array < math.inf)).all():
        raise ShapeError("Weights are above 0 and finite.")
    return _joints(array if array.ndim else np.full(n, array), "weights", n)


def _finite(given: dict[str, Array]) -> npt.NDArray[np.bool_]:
    """Tell which rows were given numbers only."""
    good = np.isfinite(given["q"]).all(axis=-1)
    good = good & np.isfinite(given["twists"]).all(axis=(-2, -1))
    if "null" in given:
        good = good & np.isfinite(given["null"]).all(axis=-1)
    return np.asarray(good)
