"""Differential inverse kinematics: wanted twists in, joint rates out."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ModelError, ShapeError, quote
from armillary.ik.objective import Purpose, check_purpose, limit_distance
from armillary.ik.problem import with_moved_loops
from armillary.ik.rates_pipeline import (
    RatesSetup,
    RatesTask,
    coupled_records,
    passive_share_program,
    rates_pipeline,
)
from armillary.ik.reason import RateReason
from armillary.ik.targets import as_joints, as_reals
from armillary.kernel.arguments import check_arguments, numbers_of
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kinematics.bound_kernel import AnyKernel, bind, for_plain_rows
from armillary.kinematics.closing.branch import Branch
from armillary.kinematics.closing.kernel import passive_records
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.kernels import (
    Joints,
    chosen_axes,
    named_twist,
    program_kernel,
    selection_of,
)
from armillary.kinematics.state import State, bound_state, branch_of
from armillary.model.fields import kept
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.trace import Port

Array = npt.NDArray[np.float64]

MOST_OPTIONS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The rates for a batch of wanted twists; its arrays are read-only.

    Where there are k > 1 tasks, the arrays other than `qd` have an axis k after those
    of the batch.

    Attributes:
        qd: Joint rates [m/s or rad/s], shape (..., n); NaN where anything given was.
        twist: What they achieve, all six numbers [m/s, rad/s], shape (..., 6).
        residual: Length of what is missing in the rows that count, linear [m/s] and
            angular [rad/s], shape (..., 2).
        scale: How far on the straight line from what higher tasks leave to what is
            wanted, less damping, shape (...); 1 where limits take nothing.
        reason: Why, as numbers of `RateReason`, shape (...).
    """

    qd: Array
    twist: Array
    residual: Array
    scale: Array
    reason: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        """Close the arrays for writing."""
        for name in self.__slots__:
            getattr(self, name).flags.writeable = False

    @classmethod
    def of_row(cls, row: Array, n: int) -> Self:
        """Return the rates for one twist, from an array of their own.

        Args:
            row: qd, `scale`, `residual`, `reason` and `twist`.
            n: How many joints there are.
        """
        rates, put = cls.__new__(cls), object.__setattr__
        row.setflags(write=False)  # and so all parts of it
        reason = row[n + 3 : n + 4].astype(np.int8).reshape(())
        reason.setflags(write=False)
        put(rates, "qd", row[:n])
        put(rates, "twist", row[n + 4 :])
        put(rates, "residual", row[n + 1 : n + 3])
        put(rates, "scale", row[n : n + 1].reshape(()))
        put(rates, "reason", reason)
        return rates

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return whether the residual is within the tolerances, shape (...)."""
        return self.reason == RateReason.MET

    def summary(self) -> dict[str, int]:
        """Return how many tasks ended how, most frequent first."""
        return RateReason.summary(self.reason)

    def __str__(self) -> str:
        return RateReason.text(self.reason, self.success)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DifferentialSolver:
    """Rates that meet wanted twists; call it with q and the twists.

    It is made by `cell.differential_ik`. The first call compiles one kernel: Jacobians,
    damping, priorities and limits; scalar code for one row, and for batches code for as
    many rows at once as a register has lanes.

    Attributes:
        joints: Names of the joints in q and qd.
        tasks: What is wanted, the most important first.
        cell: What moves.
        state: Where all else is, a state of the cell; by default as it was built.
        limited: Whether limits hold.
        purpose: What freedom is used for.
        gain: How fast that is followed.
    """

    joints: tuple[str, ...]
    tasks: tuple[RatesTask, ...]
    cell: Workcell
    state: State | None = None
    limited: bool = True
    purpose: Purpose | str | None = None
    gain: float = 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return _solver_of, (
            {one.name: getattr(self, one.name) for one in fields(self)},
        )

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
        names = frame, relative_to, point, axes
        task = task_of(self.cell, names, (position, rotation))
        return replace(self, tasks=(*self.tasks, task))

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
        return replace(self, purpose=purpose, gain=gain)

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
        if null is None and type(weights) is float and weights == 1.0:
            row = self._row(q, twists, (damping, step, sharp, tolerance))
            if row is not None:
                return Rates.of_row(row, n)
        given = {
            "q": as_joints(q, "q", n),
            "twists": self._twists(twists),
            "weights": _weights(weights, n),
            "numbers": self._numbers(damping, step, sharp, tolerance),
        }
        if self.limited:
            given["rates"] = self._rates
        if null is not None:
            given["null"] = as_joints(null, "null", n)
        return self._answer(self._run(given), given)

    # inside

    def _row(self, q: Any, twist: Any, options: tuple[Any, ...]) -> Array | None:
        """Return the row of the kernel for one vector and twist, both finite.

        None where they are not plain arrays, or more than the kernel is needed: then
        the general way answers, or says what is wrong.

        Args:
            q: As for a call.
            twist: As for a call.
            options: `damping`, `step`, `sharp` and `tolerance`.
        """
        single = self._single
        if single is None or type(twist) is not np.ndarray:
            return None
        kernel, shared, behind = single
        try:
            numbers = self._known_numbers[options]
        except KeyError:
            numbers = self._numbers(*options)
            if len(self._known_numbers) < MOST_OPTIONS:
                self._known_numbers[options] = numbers
        except TypeError:  # a list has no hash
            return None
        row = kernel(q, twist[np.newaxis], shared, numbers, *behind)
        if row is None or not all(map(math.isfinite, (*q.tolist(), *twist.tolist()))):
            return None
        return row

    @cached_property
    def _known_numbers(self) -> dict[tuple[Any, ...], Array]:
        return {}

    @cached_property
    def _single(self) -> tuple[Any, ...] | None:
        """Return what a call for one twist takes; None where a kernel is not enough.

        That is the kernel, the weights, and what stands behind them.
        """
        if len(self.tasks) > 1 or not self._counting.all():
            return None
        if self._passive_share is not None:
            return None
        n = len(self.joints)
        behind = (self._rates,) if self.limited else ()
        return for_plain_rows(self._kernel(False, 1)), np.ones(n), behind

    def of_one_twist(self, step: float) -> tuple[AnyKernel, dict[str, Array]]:
        """Return the kernel for one twist, and its inputs besides q and `twists`.

        Its row has the rates (n,), the share of the twist that limits leave, what is
        missing of its linear and its angular part, the reason, and the twist (6,).

        Args:
            step: As for a call; all other options are the usual ones.

        Raises:
            KernelError: There are several tasks, or a call needs more than a kernel.
        """
        if self._single is None:
            raise KernelError(
                "Only rates for one whole twist, in cells without closed loops that "
                "limits slow down, are computed by one kernel."
            )
        given = {"weights": np.ones(len(self.joints))}
        given["numbers"] = self._numbers(0.01, step, True, (1e-6, 1e-6))
        if self.limited:
            given["greatest"] = self._rates
        return self._kernel(False, None), given

    def _slow_down(self, rows: Array, ends: Array, given: dict[str, Array]) -> None:
        """Slow all rates down as far as passive joints need it."""
        assert self._passive_share is not None
        n, k = len(self.joints), len(self.tasks)
        numbers = given["numbers"]
        qd = np.ascontiguousarray(rows[..., :n])
        share = np.asarray(self._passive_share(given["q"], qd, numbers[1]))
        slowed = share < 1.0
        if not slowed.any():
            return
        rows[..., :n] *= share[..., None]
        rows[..., n : n + k] *= share[..., None]
        rows[..., -6 * k :] *= share[..., None]
        twist = rows[..., -6 * k :].reshape(*rows.shape[:-1], k, 6)
        missing = np.where(self._counting, given["twists"] - twist, 0.0)
        halves = np.linalg.norm(missing.reshape(*missing.shape[:-1], 2, 3), axis=-1)
        over = (halves > numbers[4:]).any(axis=-1) & slowed[..., None]
        ends[..., :2] = np.where(slowed[..., None, None], halves, ends[..., :2])
        ends[..., 2] = np.where(over, float(RateReason.LIMITS), ends[..., 2])

    @cached_property
    def _tree(self) -> Tree:
        return Tree.of(self.cell) if self.state is None else self.state.tree

    @cached_property
    def _selection(self) -> Inputs:
        frames = [frame for task in self.tasks for frame in task.twist]
        selection = selection_of(self.cell, self.joints, self.state, frames)
        return with_moved_loops(self._tree, selection, frames)

    @cached_property
    def _rates(self) -> Array:
        """Return the greatest rates, shape (n,)."""
        return self.cell.velocity_limits[list(self._selection.inputs)]

    @cached_property
    def _kernels(self) -> dict[tuple[bool, int | None], AnyKernel]:
        return {}

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

    def _numbers(self, damping: Any, step: Any, sharp: Any, tolerance: Any) -> Array:
        damping, step = _one_number("damping", damping), _one_number("step", step)
        sharp = _one_number("sharp", sharp)
        if not 0.0 < damping < math.inf:
            raise ShapeError(f"The damping is {damping}; it must be above 0.")
        if not 0.0 <= step < math.inf:
            raise ShapeError(f"The step is {step} s; it must be 0 or more.")
        try:
            linear, angular = tolerance
        except (TypeError, ValueError):
            raise ShapeError(
                "tolerance is two numbers, linear [m/s] and angular [rad/s], not "
                f"{quote(tolerance)}."
            ) from None
        sizes = [_one_number("tolerance", size) for size in (linear, angular)]
        if not all(size >= 0.0 for size in sizes):
            raise ShapeError(f"The tolerances are {tolerance}; they must be 0 or more.")
        return np.array([damping * damping, step, self.gain, sharp, *sizes])

    def _kernel(self, null: bool, lanes: int | None) -> AnyKernel:
        """Return the kernel with or without given rates for the freedom left.

        lanes: How many rows it computes at once; None for what registers hold.
        """
        if (null, lanes) not in self._kernels:
            cell, selection, pipeline = self.cell, self._selection, self._pipeline(null)
            code = kept(
                cell,
                ("differential_ik", pipeline.fingerprint, lanes),
                lambda: compile_pipeline(pipeline, lanes=lanes),
            )
            records = passive_records(cell, selection, self._branch)
            kernel = code({**records, **coupled_records(len(self._coupled))})
            self._kernels[null, lanes] = bind(kernel, selection.values(self._tree))
        return self._kernels[null, lanes]

    def _pipeline(self, null: bool) -> Pipeline:
        """Return what computes rates, with or without given ones for the freedom.

        It is traced once for all solvers that differ in numbers of their states alone.
        """
        if callable(self.purpose):
            return self._traced(null)  # a function may do something else next time
        tree, chosen = self._tree, self._selection
        parts = chosen.inputs, chosen.others, chosen.bases, chosen.passive
        holders = tuple(tree.bases[m].frame.link for m in chosen.bases)
        coupled = tuple((tuple(row), most) for row, most in self._coupled)
        options = self.limited, self.purpose, null
        key = "rates of twists", self.tasks, *parts, holders, coupled, *options
        return kept(self.cell, key, lambda: self._traced(null))

    def _traced(self, null: bool) -> Pipeline:
        selection, purpose = self._selection, self.purpose
        chosen = list(selection.inputs)
        lower, upper = (limit[chosen].tolist() for limit in self.cell.limits)
        return rates_pipeline(
            RatesSetup(
                self._tree,
                self.tasks,
                selection,
                limits=(lower, upper) if self.limited else None,
                has_null=null,
                purpose=limit_distance(lower, upper)
                if purpose == "limits"
                else purpose,
                coupled=self._coupled,
            )
        )

    @cached_property
    def _coupled(self) -> list[tuple[list[float], float]]:
        """Return the limits that couple the joints, if limits hold."""
        if not self.limited:
            return []
        selection = self._selection
        rows = self.cell.limit_rows.of_joints(selection.inputs, selection.rest)
        return rows.pairs

    @cached_property
    def _branch(self) -> Branch | None:
        return None if self.state is None else branch_of(self.state)

    @cached_property
    def _passive_share(self) -> AnyKernel | None:
        """Return the kernel of what passive joints allow, None where they allow all."""
        selection = self._selection
        passive = list(selection.passive)
        lower, upper, greatest = (x[passive] for x in self.cell.joints.ranges)
        if not (self.limited and np.isfinite([-lower, upper, greatest]).any()):
            return None
        program = passive_share_program(self._tree, selection)
        kernel = program_kernel(self.cell, selection, program, branch=self._branch)
        return bind(kernel, selection.values(self._tree))

    def _run(self, given: dict[str, Array]) -> Array:
        """Return the rows of the kernel: scalar code for one, vectors for a batch."""
        ranks = {name: 2 if name == "twists" else 1 for name in given}
        is_single = all(array.ndim == ranks[name] for name, array in given.items())
        kernel = self._kernel("null" in given, 1 if is_single else None)
        try:
            return kernel(*given.values())
        except ShapeError:
            vector = (len(self.joints),)
            shapes = {"q": vector, "twists": (len(self.tasks), 6), "weights": vector}
            shapes["null"] = vector
            check_arguments(
                "differential_ik",
                [(Port(k, shapes[k]), v) for k, v in given.items() if k in shapes],
            )
            raise

    def _answer(self, rows: Array, given: dict[str, Array]) -> Rates:
        """Return what the rows of the kernel say, in the caller's terms."""
        n, k, batch = len(self.joints), len(self.tasks), rows.shape[:-1]
        ends = rows[..., -9 * k : -6 * k].reshape(*batch, k, 3)
        if self._passive_share is not None:
            self._slow_down(rows, ends, given)
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
            scale=rows[..., n : n + k].reshape(shape),
            reason=ends[..., 2].astype(np.int8),
        )


def _solver_of(values: dict[str, Any]) -> DifferentialSolver:
    """Return a solver of its fields; a pickled state does not know its cell."""
    if values["state"] is not None:
        values["state"] = bound_state(values["cell"], values["state"])
    return DifferentialSolver(**values)


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
    inputs = selection_of(cell, joints).inputs
    return DifferentialSolver(
        joints=tuple(cell.joint_names[k] for k in inputs),
        tasks=(task_of(cell, names, rows),),
        cell=cell,
        state=None if state is None else bound_state(cell, state),
        limited=limited,
    )


def task_of(
    cell: Workcell,
    names: tuple[str, str, str | None, str | None],
    rows: tuple[str, str],
) -> RatesTask:
    """Return the task of a twist in the directions and rotations that count.

    Args:
        cell: What has the frames.
        names: Frame, `relative_to`, `point` and `axes` of its twist.
        rows: The directions and the rotations that count.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: None counts, or a letter is not of `xyz`.
    """
    position, rotation = rows
    kept = chosen_axes(position, "position") + chosen_axes(rotation, "rotation")
    if not any(kept):
        raise ModelError("A task must ask for a direction or a rotation.")
    return RatesTask(named_twist(cell, *names), kept)


def _one_number(name: str, value: Any) -> float:
    """Return a number; an array of one dimension or more is refused."""
    if type(value) is float:
        return value
    array = numbers_of(name, value)
    if array.ndim:
        raise ShapeError(f"{name} is one number; an array of {array.shape} was given.")
    return float(array)


def _weights(values: Any, n: int) -> Array:
    array = as_reals(values, "weights")
    if not ((array > 0.0) & (array < math.inf)).all():
        raise ShapeError(
            f"weights must be above 0 and finite; {quote(values)} was given."
        )
    return as_joints(array if array.ndim else np.full(n, array), "weights", n)


def _finite(given: dict[str, Array]) -> npt.NDArray[np.bool_]:
    """Tell which rows were given numbers only."""
    good = np.isfinite(given["q"]).all(axis=-1)
    good = good & np.isfinite(given["twists"]).all(axis=(-2, -1))
    if "null" in given:
        good = good & np.isfinite(given["null"]).all(axis=-1)
    return np.asarray(good)
