"""Controllers: from joint positions, rates and targets to the rates of the next step.

A step is one kernel, after one of dynamics where torques are limited: poses and twists
of links, rows of tasks, bounds of rates, the distances of pairs, the optimal rates
within these, and how much of them is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.control import frame_tasks, joint_tasks, mass_task
from armillary.control.active_set import COUPLED, TORQUE
from armillary.control.approach import ApproachPairs
from armillary.control.columns import SETTINGS
from armillary.control.coupled_limits import CoupledLimits
from armillary.control.obstacles import CAPSULE_WIDTH, Obstacles
from armillary.control.options import ControllerNumbers, ControllerOptions, per_joint
from armillary.control.rate_bounds import JointLimits, rate_bounds
from armillary.control.step import Step, StepLayout
from armillary.control.task_stages import (
    STEP_MAKERS,
    Made,
    Maker,
    TaskStages,
    firm_weights,
    priority_levels,
)
from armillary.control.tasks import Posture, Task
from armillary.errors import ModelError, ShapeError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel
from armillary.kernel.arguments import check_arguments
from armillary.kernel.pipeline import Pipeline, stage_texts
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.kept_formulas import kept_formula, motion_digest
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State, bound_state, home
from armillary.model.fields import kept, kept_few
from armillary.model.workcell import Workcell
from armillary.trace import Port

if TYPE_CHECKING:  # few controllers need them
    from armillary.collision.check import CollisionCheck
    from armillary.control.simulation import ControlledMotion
    from armillary.control.torque_limits import TorqueLimits

__all__ = ["Controller", "controller_of"]

Array = npt.NDArray[np.float64]

MOST_KEPT: Final = 32
"""Steps of other tasks, solvers or room for pairs whose code a cell keeps."""

MOST_JOINTS: Final = 128
"""Joints that a controller can move; tested with 60, and compiled in seconds."""


def controller_of(
    cell: Workcell,
    tasks: Any,
    avoid: Any,
    options: ControllerOptions,
    joints: Joints,
    state: State | None,
) -> Controller:
    """Return the controller of a cell; see `Cell.controller`."""
    options = options.checked()
    # The state decides attachments, bases and the branch of loops.
    bound = home(cell) if state is None else bound_state(cell, state)
    if avoid is not None:
        _check_avoid(cell, bound, avoid)
    chosen = selection_of(cell, joints).inputs
    if not chosen:
        raise ModelError("There is no joint to move: joints= names none.")
    if len(chosen) > MOST_JOINTS:
        raise ModelError(
            f"A controller moves at most {MOST_JOINTS} joints; here are {len(chosen)}. "
            "Name fewer by joints=: the others move as qd says."
        )
    # One task that is not in a list has targets that are not, either.
    several = _as_list(tasks)
    listed = [tasks] if several is None else several
    if not listed:
        raise ModelError("A controller needs a task, such as tasks.Frame('tool0').")
    # Kept with the links of the cell: controllers of the same joints share stages.
    moving = straight_links(cell)
    twists = kept(
        moving, ("twists", chosen), lambda: MovingTwists(moving, tuple(chosen))
    )
    stages = tuple(_stages_of(task, k, twists) for k, task in enumerate(listed))
    # Limits and gains are numbers in tables; changing them compiles nothing.
    numbers = ControllerNumbers.of(cell, options)
    if options.conflict == "slow" and not any(each.weights for each in stages):
        raise ModelError(
            'With conflict="slow" there must be a task beside postures, such as '
            "tasks.Frame('tool0')."
        )
    return Controller(
        cell=cell,
        state=bound,
        tasks=tuple(listed),
        joints=tuple(cell.joint_names[k] for k in chosen),
        avoid=avoid,
        conflict=options.conflict,
        numbers=numbers,
        twists=twists,
        stages=stages,
        is_single=several is None,
        torques=_torque_limits(cell, options.torque, twists, bound),
        coupled=CoupledLimits.of(cell, twists) if options.limits else None,
        _again=partial(_made_again, tasks=tasks, options=options, joints=joints),
    )


_MAKERS: Final[Mapping[type, Maker]] = {
    **frame_tasks.MAKERS,
    **joint_tasks.MAKERS,
    **mass_task.MAKERS,
}
"""From the type of a task to what makes its stages."""


def _stages_of(task: Any, number: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task, the k-th with k = `number`.

    Raises:
        UnknownName: It names a frame or joint that does not exist.
        ModelError: It requests nothing, or is not a task.
        TraceError: Its function is not a formula.
    """
    for kind, make in _MAKERS.items():
        if isinstance(task, kind):
            return make(task, number, twists)
    raise ModelError(
        f"A task is one of those of armillary.tasks, such as tasks.Frame('tool0'), not "
        f"a {type(task).__name__}."
    )


def _made_again(
    cell: Workcell,
    avoid: CollisionCheck | None,
    state: State,
    *,
    tasks: Any,
    options: ControllerOptions,
    joints: Joints,
) -> Controller:
    """Return a controller that was pickled."""
    return controller_of(cell, tasks, avoid, options, joints, state)


def _torque_limits(
    cell: Workcell, given: Any, twists: MovingTwists, state: State
) -> TorqueLimits | None:
    # True stands for the limits of the model, numbers for others.
    if given is None or given is False:
        return None
    with IMPORT_LOCK:
        from armillary.control.torque_limits import TorqueLimits

    default = cell.effort_limits
    limits = per_joint(cell, "torque", None if given is True else given, default)
    return TorqueLimits.of(twists, state, limits)


def _check_avoid(cell: Workcell, state: State, avoid: Any) -> None:
    with IMPORT_LOCK:
        from armillary.collision.check import CollisionCheck
        from armillary.ik.avoidance import check_of_same

    check_of_same(avoid, cell, state)
    if not isinstance(avoid, CollisionCheck):
        raise ModelError(
            "A controller needs distances and their directions, which only a check "
            f"from cell.collision(...) has; not {quote(avoid)}."
        )
    if avoid.is_exact:
        raise ModelError(
            "A controller avoids meshes by their hulls; make the check without exact."
        )


class StepKernels(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The code of a step with room for some obstacles.

    One row takes half the time in scalar code that it takes in vectors of which only
    one lane counts; either is compiled when it is first called.

    Attributes:
        twists: Of the moving links.
        stages: Those of the tasks.
        approach: The pairs that are kept apart.
        settings: The records of the table of settings.
        state: Whose attachments and moved bases count.
        conflict: What happens where constraints do not allow the rates that tasks
            request.
        torques: The limits of torques, if they count.
        coupled: The limits that couple joints, if there are any.
    """

    twists: MovingTwists
    stages: Sequence[TaskStages]
    approach: ApproachPairs
    settings: Mapping[str, Any]
    state: State
    conflict: str
    torques: TorqueLimits | None = None
    coupled: CoupledLimits | None = None

    @property
    def layout(self) -> StepLayout:
        """Return what the numbers of an answer are of."""
        labels = () if self.coupled is None else self.coupled.labels
        return StepLayout(
            self.twists.moving.cell, self.approach, self.twists.joints, labels
        )

    def with_obstacles(self, count: int) -> Kernel:
        """Return the kernel for so many obstacles, at most `approach.slots`."""
        # A call with a batch comes to `compute`, which decides by the shapes of inputs.
        single = self._kernel(count, 1)
        # Most controllers never see a batch: its code waits for the first one.
        batches: list[Kernel] = []

        def compute(
            *inputs: Any, out: Any = None, threads: Any = None
        ) -> npt.NDArray[Any]:
            # None where an input has a batch dimension.
            row = single.compact_row(inputs)
            if row is not None:
                return single(*row) if out is None else single(*row, out=out)
            if not batches:
                batches.append(self._kernel(count, None))
            return batches[0](*inputs, out=out, threads=threads)

        return single.with_batches(compute)

    def _kernel(self, count: int, lanes: int | None) -> Kernel:
        code = self._code(lanes)
        native = code.native
        # Tables in the order of what they say: pairs, links, settings, torques, tasks.
        tables, callees = self.approach.records(native.dtype, native.lanes, count)
        tables |= self.twists.records(self.state)
        tables[SETTINGS] = self.settings
        if self.torques is not None:
            tables |= self.torques.records(self.approach.pair_room)
        if self.coupled is not None:
            room = self.approach.pair_room + len(self.approach.others)
            tables |= self.coupled.records(room - len(self.coupled))
        # Payloads and moved bases of the state are in tables of the tasks, too.
        for task in self.stages:
            tables |= task.records(self.state)
        return code(tables, callees)

    def _code(self, lanes: int | None) -> CompiledPipeline:
        make = partial(compile_pipeline, lanes=lanes)
        return self._shared(("step code", lanes), lambda: make(self._pipeline))

    @property
    def _pipeline(self) -> Pipeline:
        return self._shared("step pipelines", self._kept_pipeline)

    def _shared(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """Return what controllers share that differ in numbers: grips, bases, weights.

        It is kept with the links, and made of no more than `_decisive` says.
        """
        return kept_few(self.twists, what, self._decisive, make, MOST_KEPT)

    @cached_property
    def _decisive(self) -> tuple[Hashable, ...]:
        """Return all that `step_pipeline` reads, besides the twists of links."""
        return (
            tuple(priority_levels(self.stages)),
            tuple(
                (
                    *(each.columns.number, *sorted(each.columns.sizes.items())),
                    *(len(each.weights), each.ports, each.reads, each.tables),
                    *(each.stages, each.curvature),
                )
                for each in self.stages
            ),
            *(self.conflict, *self.approach.sizes.items(), self.approach.room),
            *(self.approach.slots, self.approach.check is not None),
            *(self.torques is not None, self._coupled),
        )

    def _kept_pipeline(self) -> Pipeline:
        """Return the pipeline, which an earlier process may have traced.

        Its key has all that `step_pipeline` reads.
        """
        motion = motion_digest(self.twists.moving.cell)
        if motion is None:
            return self._traced()
        sizes = self.approach.sizes, self.approach.room, self.approach.slots
        parts = (
            *(motion, self.twists.joints, self._task_parts, self.conflict),
            *(sizes, self.approach.check is not None),
            *(self.torques is not None, self._coupled),
        )
        return kept_formula("control step", parts, self._traced, made_by=STEP_MAKERS)

    @property
    def _coupled(self) -> int:
        return 0 if self.coupled is None else len(self.coupled)

    @property
    def _task_parts(self) -> list[Any]:
        """Return what the pipeline has of tasks: their stages, not their numbers."""
        return [
            priority_levels(self.stages),
            *(
                (
                    *(each.columns.number, each.columns.sizes, len(each.weights)),
                    *(each.ports, each.reads, each.tables),
                    [*stage_texts(each.stages), "", *stage_texts(each.curvature)],
                )
                for each in self.stages
            ),
        ]

    def _traced(self) -> Pipeline:
        with IMPORT_LOCK:
            from armillary.control.step_pipeline import step_pipeline

        return step_pipeline(
            self.twists,
            self.stages,
            self.approach,
            self.conflict,
            has_torques=self.torques is not None,
            coupled=self._coupled,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Controller:
    """Rates for the next step; call it with q, qd and targets.

    Threads may share it.

    Attributes:
        cell: The cell that moves.
        state: The state with the attachments, moved bases and branch of closed loops.
        tasks: The goals of the motion.
        joints: Names of the joints that it moves.
        avoid: The check whose pairs it keeps apart, or None.
        conflict: What happens where constraints do not allow the rates that tasks
            request, `bend` or `slow`.
        numbers: Limits of all joints, and gains.
        twists: Twists of the moving links.
        stages: The stages of each task.
        is_single: Whether it was made with one task that is not in a list.
        torques: Limits of torques, or None.
        coupled: Limits that couple joints, or None.
    """

    cell: Workcell
    state: State
    tasks: tuple[Task, ...]
    joints: tuple[str, ...]
    avoid: CollisionCheck | None
    conflict: str
    numbers: ControllerNumbers
    twists: MovingTwists
    stages: tuple[TaskStages, ...]
    is_single: bool
    torques: TorqueLimits | None
    coupled: CoupledLimits | None
    _again: partial[Controller]

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (self.cell, self.avoid, self.state)

    def __copy__(self) -> Controller:
        return self

    def __deepcopy__(self, memo: object) -> Controller:
        return self

    def __repr__(self) -> str:
        names = ", ".join(type(task).__name__ for task in self.tasks)
        return f"<controller of {len(self.joints)} joints: {names}>"

    def __call__(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        targets: Any,
        *,
        target_rates: Any = None,
        obstacles: Obstacles | None = None,
    ) -> Step:
        """Compute the rates of the next step.

        Batches broadcast; the rows of a batch are independent cells.

        Args:
            q: Positions of all joints [m or rad], shape (..., n).
            qd: Their rates [m/s or rad/s] of the previous step, shape (..., n).
            targets: A list with a target for each task, with batch dimensions before
                the shape that `armillary.tasks` states. None for a posture stands for
                the positions in `state`. If the controller was made with one task
                that is not in a list, its target without a list.
            target_rates: A list with the time derivative of each target, or None for
                targets at rest: see `armillary.tasks` for the shapes. They are
                feedforward, which removes the lag behind moving targets.
            obstacles: Obstacles to avoid.

        Raises:
            ShapeError: A shape does not fit, or there are too few targets.
            ModelError: There are obstacles, and `avoid` is None.
        """
        inputs = [*self._targets(targets), *self._target_rates(target_rates)]
        return self._stepped(q, qd, inputs, obstacles=obstacles)

    def _stepped(
        self, q: Any, qd: Any, inputs: Any, *, obstacles: Obstacles | None
    ) -> Step:
        """Find the rates of the next step, from targets and then their rates."""
        # In the order of the inputs of `step_pipeline`: masses and obstacles last.
        given = [q, qd, *inputs]
        # Without obstacles there is a kernel of its own, which has no columns for them.
        count = slots = 0
        width = CAPSULE_WIDTH
        around: list[Array] = []
        if obstacles is not None:
            count, numbers = self._obstacles(obstacles)
            if count:
                slots, width = numbers.shape[-2:]
                around = [numbers]
        kernel, layout = self._ready(slots, count, width)
        try:
            masses = [] if self.torques is None else [self.torques.dynamics(q, qd)]
            return Step(kernel(*given, *masses, *around), layout)
        except ShapeError:
            arguments = list(zip(self._arguments, given, strict=True))
            arguments += [(Port("obstacles", (slots, width)), one) for one in around]
            check_arguments("controller", arguments)
            raise

    @property
    def kernel(self) -> AnyKernel:
        """Return the kernel of a step without obstacles.

        Its inputs are q, qd, the targets, and their rates; its row is `Step.numbers`.
        """
        return self.kernel_with(None)

    def kernel_with(self, obstacles: Obstacles | None) -> AnyKernel:
        """Return the kernel of a step that avoids as many obstacles of the same kind.

        Its last input has their numbers, shape (k, 10) of capsules, (k, 19) of boxes:
        `Obstacles.numbers`. The others are those of `kernel`.

        Args:
            obstacles: As many as steps are given, all of capsules, or with a box.

        Raises:
            ModelError: There are obstacles, and `avoid` is None.
        """
        count, width = 0, CAPSULE_WIDTH
        if obstacles is not None:
            count, numbers = self._obstacles(obstacles)
            width = numbers.shape[-1] if count else CAPSULE_WIDTH
        # Room for these alone: nothing is left empty.
        kernel = self._ready(count, count, width)[0]
        return kernel if self.torques is None else self.torques.joined(kernel)

    @property
    def _arguments(self) -> list[Port]:
        """Return q, qd, targets and their rates, by the names of arguments."""
        shape = (len(self.cell.joint_names),)
        ports = [Port("q", shape), Port("qd", shape)]
        for side, name in enumerate(("targets", "target_rates")):
            for k, stages in enumerate(self.stages):
                own = name if self.is_single else f"{name}[{k}]"
                ports.append(Port(own, stages.ports[side].shape))
        return ports

    def simulate(
        self,
        q: npt.ArrayLike,
        targets: Any,
        steps: int,
        *,
        qd: npt.ArrayLike | None = None,
        target_rates: Any = None,
        obstacles: Any = None,
    ) -> ControlledMotion:
        """Run steps in a loop, each from the result of the previous one.

        A step whose targets, rates of targets or obstacles are not finite is `INVALID`;
        the joints of that row brake in it, and the motion goes on.

        Args:
            q: Initial positions of all joints [m or rad], shape (..., n).
            targets: A list with a target for each task, as for a call. Each is
                constant; or an array with a row for each step, (..., steps, *shape),
                with 1 in place of `steps` for all steps; or a function of time [s] that
                returns an array (..., *shape).
            steps: The number of steps.
            qd: Initial rates [m/s or rad/s], shape (..., n); by default 0.
            target_rates: A list with the time derivative of each target, in the same
                forms, or None for targets at rest.
            obstacles: Obstacles to avoid: `Obstacles` that move at their constant
                velocities; with ends (..., steps, k, 2, 3) for each step; or a
                function of time [s] that returns `Obstacles`.

        Raises:
            ShapeError: A shape does not fit, or the number of obstacles changes.
            ModelError: `steps` is not above 0; or as for a call.
        """
        with IMPORT_LOCK:
            from armillary.control.simulation import simulated

        inputs = [*self._targets(targets), *self._target_rates(target_rates)]
        start = q, self._still if qd is None else qd
        return simulated(
            self._stepped,
            self._brake,
            self._arguments,
            self.numbers.dt,
            start,
            inputs,
            steps,
            obstacles,
        )

    def _brake(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """Return joint positions and rates after a step of maximum braking, (n,)."""
        own, chosen = self.numbers, list(self.twists.joints)
        # The formula of the kernel, on floats.
        bounds = rate_bounds(
            q[chosen].tolist(),
            qd[chosen].tolist(),
            JointLimits(
                own.lower[chosen].tolist(),
                own.upper[chosen].tolist(),
                own.velocity[chosen].tolist(),
                own.acceleration[chosen].tolist(),
            ),
            own.dt,
        )
        # Joints that the controller does not move keep their rates.
        rates = qd.copy()
        rates[chosen] = bounds.full_braking
        return q + own.dt * rates, rates

    def _targets(self, targets: Any) -> list[Any]:
        # None stands for the posture of the state.
        listed = self._for_tasks("targets", targets)
        for k, target in enumerate(listed):
            if target is None:
                listed[k] = self._default(self.tasks[k])
        return listed

    def _target_rates(self, rates: Any) -> list[Any]:
        if rates is None:
            return self._at_rest
        listed = self._for_tasks("target_rates", rates)
        for k, rate in enumerate(listed):
            if rate is None:
                listed[k] = self._at_rest[k]
        return listed

    def _for_tasks(self, name: str, given: Any) -> list[Any]:
        listed = [given] if self.is_single else _as_list(given)
        if listed is None or len(listed) != len(self.tasks):
            names = ", ".join(type(task).__name__ for task in self.tasks)
            raise ShapeError(
                f"{name}= is a list of {len(self.tasks)}, one for each task: {names}."
            )
        return listed

    @cached_property
    def _at_rest(self) -> list[Any]:
        """Return the rates of targets at rest."""
        return [np.zeros(rate.shape) for _, rate in (s.ports for s in self.stages)]

    @cached_property
    def _still(self) -> Array:
        """Return the rates of joints at rest."""
        return np.zeros(len(self.cell.joint_names))

    def _default(self, task: Task) -> Array:
        if not isinstance(task, Posture):
            raise ShapeError(f"A task {type(task).__name__} needs a target, not None.")
        return self.state.q

    def _obstacles(self, obstacles: Any) -> tuple[int, Array]:
        """Return how many obstacles there are, and their numbers in slots."""
        if self.avoid is None:
            raise ModelError(
                "Obstacles are avoided by the links of a collision check: give "
                "avoid=cell.collision(margin=0.01)."
            )
        if not isinstance(obstacles, Obstacles):
            raise ModelError(
                "obstacles= takes Obstacles, such as Obstacles.spheres(centres, radii),"
                f" not {quote(obstacles)}."
            )
        # Made once for an `Obstacles`, however often it is used.
        return obstacles.in_slots

    def _ready(self, slots: int, count: int, width: int) -> tuple[Kernel, StepLayout]:
        """Return the kernel of a step with so many obstacles, and what it answers."""
        # One look-up in a dictionary: a step takes a few microseconds.
        ready = self._kernels.get((slots, count, width))
        if ready is None:
            step = self._step(slots, width)
            made = step.with_obstacles(count), step.layout
            ready = self._kernels.setdefault((slots, count, width), made)
        return ready

    @cached_property
    def _kernels(self) -> dict[tuple[int, int, int], tuple[Kernel, StepLayout]]:
        return {}

    def _step(self, slots: int, width: int) -> StepKernels:
        return kept(
            self,
            ("step", slots, width),
            lambda: StepKernels(
                self.twists,
                self.stages,
                ApproachPairs(self.twists, self.avoid, slots, width, self._others),
                self._settings,
                self.state,
                self.conflict,
                self.torques,
                self.coupled,
            ),
        )

    @property
    def _others(self) -> tuple[float, ...]:
        """Return the numbers of rows that are not of pairs: of torques, of limits."""
        torques = 0 if self.torques is None else 2 * len(self.joints)
        coupled = 0 if self.coupled is None else len(self.coupled)
        return (
            *(TORQUE + k for k in range(torques)),
            *(COUPLED + k for k in range(coupled)),
        )

    @cached_property
    def _settings(self) -> Mapping[str, Any]:
        # One record: each value is a list of length 1.
        own, chosen = self.numbers, list(self.twists.joints)
        record: dict[str, Any] = {
            "lower": [own.lower[chosen]],
            "upper": [own.upper[chosen]],
            "velocity": [own.velocity[chosen]],
            "acceleration": [own.acceleration[chosen]],
            "dt": [own.dt],
            "most_pace": [own.pace],
            "damping": [own.damping],
            "margin": [0.0 if self.avoid is None else self.avoid.margin],
        }
        if self.coupled is not None:
            record |= self.coupled.settings
        # Rows with less than 1 % of the greatest weight do not decide the reason.
        weights = [weight for each in self.stages for weight in each.weights]
        if weights:
            most, levels = max(weights), priority_levels(self.stages)
            record["weights"] = [weights]
            record["judged"] = [[weight >= 0.01 * most for weight in weights]]
            record["priority_level"] = [levels]
            record["firm_weights"] = [firm_weights(weights, levels)]
        # A gain above the rate of steps would overshoot: an error decreases by its own
        # length at most in a step.
        rate = 1.0 / own.dt
        for each in self.stages:
            gain = min(each.task.gain, rate)
            given = {each.columns.gain().name: gain, **each.settings(self.state)}
            record |= {name: [value] for name, value in given.items()}
        return record


def _as_list(given: Any) -> list[Any] | None:
    """Return a list or a tuple as a list; None for anything else."""
    return list(cast(Any, given)) if isinstance(given, (list, tuple)) else None
