"""What inverse kinematics solves: which frames are placed, and by which joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.ik.stand_in import stand_in
from armillary.ik.targets import POSE_SIZE
from armillary.ik.whole_turns import finite_limits, turning_joints
from armillary.kernel import Kernel
from armillary.kernel.python_kernel import PythonProgram
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.joint_vector import distinct
from armillary.kinematics.kept_formulas import MOTION, kept_formula, motion_digest
from armillary.kinematics.kernels import program_kernel
from armillary.kinematics.poses import poses_program
from armillary.model.fields import kept, kept_few
from armillary.model.frame import FrameRef
from armillary.model.limit_rows import LimitRows
from armillary.model.tree import Tree
from armillary.trace import Program

if TYPE_CHECKING:
    from armillary.kinematics.closing.branch import Branch

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Limits = tuple[Array, Array]
T = TypeVar("T")
Programs = TypeVar("Programs", bound="Program | tuple[Program | str, ...]")

MAKERS = (
    *MOTION,
    "armillary.ik",
    "armillary.ik.closed_forms",
    "armillary.ik.closed_forms.general_6r",
)
"""Packages on which programs of problems and of closed forms depend."""

ROUNDING = 1e-9  # of a reach
MOST_SHARED = 256  # programs, searches and forms of states that a cell keeps
ROTATION_SCALE = 0.3  # metres that a unit of an axis counts for


class Goal(NamedTuple):
    """What one frame is to reach.

    Attributes:
        frame: Which frame.
        relative_to: In which frame the target is given.
        position: Which of x, y, z count.
        rotation: Which rotations about x, y, z count.
        in_target: Whether these axes are the target's, else those of `relative_to`.
        in_box: Whether the frame is to be in a box, too, along the target's axes that
            do not count; only steps know boxes.
    """

    frame: FrameRef
    relative_to: FrameRef
    position: tuple[bool, bool, bool] = (True, True, True)
    rotation: tuple[bool, bool, bool] = (True, True, True)
    in_target: bool = True
    in_box: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether all six count."""
        return all(self.position) and all(self.rotation)

    @property
    def free_axis(self) -> int | None:
        """Return the axis of the frame about which alone it may turn, if there is one.

        All of the position counts, and both other axes of the target.
        """
        one_free = self.in_target and sum(self.rotation) == len(self.rotation) - 1
        return self.rotation.index(False) if one_free and all(self.position) else None

    @property
    def has_position(self) -> bool:
        """Return whether any direction counts."""
        return any(self.position)

    @property
    def has_rotation(self) -> bool:
        """Return whether any rotation counts."""
        return any(self.rotation)

    @property
    def scales(self) -> list[float]:
        """Return how much each number of a target counts where starts are compared."""
        scales = np.zeros((4, 4))
        if self.in_target:
            scales[:3, 3] = 1.0 if self.has_position else 0.0
            bound = [k for k in range(3) if self.rotation[k]]
            if len(bound) == 3:
                scales[:3, :2] = ROTATION_SCALE  # two axes tell the third
            elif len(bound) == 2:
                free = 3 - sum(bound)
                scales[:3, free] = ROTATION_SCALE
        else:
            scales[:3, 3] = self.position
            scales[:3, :2] = ROTATION_SCALE if all(self.rotation) else 0.0
        return scales.ravel().tolist()


def with_moved_loops(
    tree: Tree, selection: Inputs, frames: Sequence[FrameRef]
) -> Inputs:
    """Return a selection with the passive joints of all loops that it moves.

    Loops that do not decide where frames are must be closed as well, and their passive
    joints keep their limits.

    Args:
        tree: What moves.
        selection: The joints that are q.
        frames: Those of the question: joints that do not move them stay.
    """
    system = tree.cell.loop_system
    if not system.blocks:
        return selection
    moved = set(tree.moving_joints(tree.between(frames))) & set(selection.inputs)
    followers: list[int] = []
    for block in system.blocks:
        if not moved.isdisjoint((*block.inputs, *block.more)):
            moved.update(block.unknowns)
            followers += block.unknowns
    return selection._replace(
        passive=system.solved_with((*selection.passive, *followers))
    )


def _restored(
    tree: Tree, goals: tuple[Goal, ...], selection: Inputs, seed: Array | None
) -> IKProblem:
    """Return a problem that was pickled, the branch of its loops known by `seed`."""
    if seed is None:
        return IKProblem(tree, goals, selection)
    with IMPORT_LOCK:
        from armillary.kinematics.closing.branch import Branch

    return IKProblem(tree, goals, selection, Branch(tree.cell, seed.tolist()))


class IKProblem(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Goals that joints are to reach all at once: what every method is made of.

    Attributes:
        tree: What moves.
        goals: What is reached.
        selection: Which joints may move, n of them, and what else is an input; its
            passive joints, m of them, are those of all loops that they move.
        branch: On which loops are closed; by default that of the assembly at home.
    """

    tree: Tree
    goals: tuple[Goal, ...]
    selection: Inputs
    branch: Branch | None = None

    def __post_init__(self) -> None:
        """Check that joints can do something for each goal.

        Raises:
            ModelError: None of the joints moves a frame, or a goal is empty.
        """
        for goal in self.goals:
            if not (goal.has_position or goal.has_rotation or goal.in_box):
                raise ModelError("A goal of ik must ask for something.")
            path = self.tree.between([goal.frame, goal.relative_to])
            moved = set(self.tree.moving_joints(path))
            if not moved & set(self.selection.inputs):
                link = self.tree.name(goal.frame.link)
                raise ModelError(
                    f"None of these joints moves link {quote(link)}, which ik is to "
                    f"place: {', '.join(self.joints) or 'there are none'}. If "
                    "it is gripped in a state, pass that: cell.ik(..., state=state)."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        seed = None if self.branch is None else self.branch.seed
        return _restored, (self.tree, self.goals, self.selection, seed)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Return the names of the joints that may move."""
        names = self.tree.cell.joint_names
        return tuple(names[k] for k in self.selection.inputs)

    @cached_property
    def limits(self) -> Limits:
        """Return least and greatest q, each of shape (n,)."""
        chosen = list(self.selection.inputs)
        lower, upper = self.tree.cell.limits
        return lower[chosen], upper[chosen]

    @cached_property
    def rows(self) -> LimitRows:
        """Return the limits that couple the joints, rows of q of shape (n,)."""
        chosen = self.selection
        return self.tree.cell.limit_rows.of_joints(chosen.inputs, chosen.rest)

    @cached_property
    def passive_limits(self) -> Limits:
        """Return the limits of the passive joints of moved loops, each of (m,)."""
        chosen = list(self.selection.passive)
        lower, upper, _ = self.tree.cell.joints.ranges
        return lower[chosen], upper[chosen]

    @cached_property
    def finite_limits(self) -> Limits:
        """Return limits that no given vector goes beyond, all finite."""
        return finite_limits(*self.limits)

    @cached_property
    def start_range(self) -> Limits:
        """Return where random starts lie: within limits, or one turn without any."""
        lower, upper = self.limits
        if len(self.rows):
            lower, upper = self.rows.reach(lower, upper)
        lower = np.where(np.isfinite(lower), lower, -math.pi)
        upper = np.where(np.isfinite(upper), upper, math.pi)
        return np.minimum(lower, upper), np.maximum(lower, upper)

    @cached_property
    def home(self) -> Array:
        """Return q at home, shape (n,)."""
        return np.array([self.selection.rest[k] for k in self.selection.inputs])

    @cached_property
    def is_redundant(self) -> bool:
        """Return whether there are more joints than the goals have rows."""
        rows = sum(sum(goal.position + goal.rotation) for goal in self.goals)
        return len(self.joints) > rows

    @cached_property
    def standard(self) -> IKProblem:
        """Return the problem that programs are made of: itself, or a stand-in's.

        All parts that the same link holds have one that differs in numbers alone.
        """
        if self._is_own or len(self.goals) != 1:
            return self
        (goal,) = self.goals
        found = stand_in(self.tree, goal.frame, goal.relative_to, self.selection)
        if found is None:
            return self
        return IKProblem(
            found.tree, (goal._replace(frame=found.frame),), found.selection
        )

    def once(self, what: Hashable, make: Callable[[IKProblem], T]) -> T:
        """Return what is made of the standard problem, whatever numbers it has.

        Args:
            what: Equal for equal things.
            make: Makes it; all that a state decides must be an input of it.
        """
        if self._is_own:
            return kept(self, what, lambda: make(self))
        problem = self.standard
        tree, chosen = problem.tree, problem.selection
        parts = chosen.inputs, chosen.others, chosen.bases
        holders = tuple(tree.bases[m].frame.link for m in chosen.bases)
        key = problem.goals, *parts, holders, what
        return kept_few(
            tree.cell, "ik of states", key, lambda: make(problem), MOST_SHARED
        )

    @property
    def _is_own(self) -> bool:
        """Return whether its programs are its own: a state decides nothing of them."""
        chosen = self.selection
        if len(self.rows) and self.tree.cell.limit_rows.others(chosen.inputs):
            return True  # where other joints are decides the limits of these
        return bool(chosen.passive or not chosen.shapes or self.branch is not None)

    @cached_property
    def values(self) -> list[Any]:
        """Return the values of what programs have as inputs besides q."""
        return self.standard.selection.values(self.standard.tree)

    def kept_program(self, what: str, make: Callable[[], Programs]) -> Programs:
        """Return a program, or several, that an earlier process may have traced.

        what: What it is; the problem of a cell as it was built decides all else.
        """
        cell = self.tree.cell
        motion = motion_digest(cell) if self.tree is Tree.of(cell) else None
        if motion is None or self.branch is not None:
            return make()
        parts = motion, self.goals, self.selection, what
        return kept_formula("ik", parts, make, made_by=MAKERS)

    @cached_property
    def fk(self) -> AnyKernel:
        """Return the kernel q (..., n) -> the poses of the goals (..., k, 4, 4)."""
        return bind(self.once("fk", IKProblem._poses), self.values)

    def _poses(self) -> Kernel:
        def traced() -> Program:
            return poses_program(
                self.tree,
                [goal.frame for goal in self.goals],
                self.goals[0].relative_to,
                single=False,
                form="matrix",
                selection=self.selection,
            )

        return self._closed(self.kept_program("fk", traced))

    def closed(self, program: Program) -> AnyKernel:
        """Return the kernel of a program of the selection, its loops closed."""
        return bind(self._closed(program), self.selection.values(self.tree))

    def _closed(self, program: Program) -> Kernel:
        return program_kernel(
            self.tree.cell, self.selection, program, branch=self.branch
        )

    @cached_property
    def can_search(self) -> bool:
        """Return whether a search can be compiled: no script runs as Python."""
        if self.selection.passive:  # loops are closed in compiled code only
            return True
        return not isinstance(self.fk.program, PythonProgram)

    @cached_property
    def turning(self) -> Truths:
        """Return which joints may turn once without changing a pose, shape (n,).

        Those of limits that couple joints may not: a turn could lead beyond these.
        """
        return turning_joints(self.fk, len(self.joints)) & ~self.rows.joints

    @cached_property
    def has_coupled_turns(self) -> bool:
        """Return whether limits may hold in other turns of a joint that they couple.

        Then a closed form, which knows one turn of each joint, is not complete.
        """
        lower, upper = self.limits
        wide = self.rows.joints & (upper - lower > math.tau)
        return bool(wide.any())

    def within(self, q: Array) -> Array:
        """Return q, each joint at its limit where it is beyond it.

        Where limits couple joints, it is the nearest q within all of them.
        """
        if len(self.rows):
            return self.rows.nearest(q, *self.limits)
        return np.clip(q, *self.limits)

    def squares(self, q: Array, targets: Array) -> Array:
        """Return the squares of what remains of a single goal at q, shape (..., 2).

        Args:
            q: Joint positions [m or rad], shape (..., n).
            targets: Poses, shape (..., 4, 4).

        Returns:
            Squares of the distance [m^2] and of the chord of the angle, 2 sin(angle/2).
        """
        apart = self.fk(q)[..., 0, :3, :] - targets[..., :3, :]
        # |R - R'|^2 = 2 (3 - trace R'R) = 2 (2 sin(angle/2))^2, over all nine numbers.
        with np.errstate(over="ignore"):  # farther away than 1e154 m
            squares: Array = (apart**2).sum(axis=-2)
        chord = 0.5 * squares[..., :3].sum(axis=-1) * self.goals[0].has_rotation
        free = self.goals[0].free_axis
        if free is not None:
            chord = squares[..., free]
        return np.stack([squares[..., 3], chord], axis=-1)

    def out_of_reach(self, rows: Array, distance: float) -> Truths:
        """Return which targets are proven to be too far away, shape (count,).

        Args:
            rows: The sixteen numbers of the pose of each goal, or more, (count, m).
            distance: As far from a target counts as reached [m].
        """
        far = np.zeros(len(rows), np.bool_)
        for k, (goal, (centre, reach)) in enumerate(
            zip(self.goals, self._reaches, strict=True)
        ):
            if all(goal.position):
                p = rows[:, POSE_SIZE * k + 3 : POSE_SIZE * k + 12 : 4]  # last column
                x, y, z = (p - centre).T
                most = reach * (1.0 + ROUNDING) + distance
                far |= np.hypot(np.hypot(x, y), z) > most  # squares may overflow
        return far

    def distinct(self, q: Array, apart: float) -> list[int]:
        """Return the indices of answers that differ from those kept before.

        Answers that differ by whole turns of joints are the same.

        Args:
            q: Joint positions [m or rad], shape (k, n).
            apart: Answers differ if a joint does by more than this: an angle [rad], or
                a length in parts of `size`.
        """
        return distinct(q, apart * self.scales, turning=self.turning)

    @cached_property
    def scales(self) -> Array:
        """Return what positions of joints are compared with, shape (n,)."""
        cell = self.tree.cell
        joints = [cell.links[cell.joints.links[k]].joint for k in self.selection.inputs]
        return np.array(
            [self.size if each.unit.scales_with_length else 1.0 for each in joints]
        )

    @property
    def size(self) -> float:
        """Return how far the first frame can be from its joints [m].

        It is 1 where that may be any distance, or none, as of a frame that only turns.
        """
        _, reach = self._reaches[0]
        return reach if 0.0 < reach < math.inf else 1.0

    @cached_property
    def _reaches(self) -> Sequence[tuple[Array, float]]:
        with IMPORT_LOCK:
            from armillary.ik.reach_bound import reach_of

        return [
            reach_of(
                self.tree, goal.frame, goal.relative_to, self.selection, self.limits
            )
            for goal in self.goals
        ]
