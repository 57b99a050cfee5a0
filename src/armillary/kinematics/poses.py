"""Poses of frames as programs: relative to a frame, or for all attachments at once.

`poses_program` states the formula for one tree of links. `ReleasedFrames` has the same
program for all states of a cell, whatever their bases are attached to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.forks import IMPORT_LOCK
from armillary.kernel.python_kernel import PythonProgram
from armillary.kinematics.inputs import Inputs, program_of
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.model.user_warning import warn_user
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial import dual_quaternion
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Port, Program

if TYPE_CHECKING:
    from armillary.kinematics.frame_loop import FrameLoop

__all__ = [
    "FORMS",
    "READERS",
    "SHAPES",
    "FixedTo",
    "ReleasedFrames",
    "StandingBases",
    "pose_error_program",
    "poses_program",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FORMS: dict[str, Callable[[Pose], Any]] = {
    "matrix": lambda X: [*_rows(X), [0.0, 0.0, 0.0, 1.0]],
    "quaternion": lambda X: [*X.quaternion(), *X.position],
    "dual_quaternion": lambda X: list(dual_quaternion.from_pose(X)),
}
"""How a pose leaves a program: (4, 4), (7,) as wxyz xyz, (8,) real part first."""

READERS: dict[str, Callable[[Any], Pose]] = {
    "matrix": Pose.from_matrix,
    "quaternion": lambda numbers: Pose.from_quaternion(numbers[:4], numbers[4:]),
    "dual_quaternion": lambda numbers: dual_quaternion.to_pose(tuple(numbers)),
}
"""How a pose comes into a program; quaternions of any length and either sign."""

MOST_COMPILED: Final = 1_000
"""Frames of straight code; for more of them compiling takes longer than it saves."""

SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (4, 4),
    "quaternion": (7,),
    "dual_quaternion": (8,),
}


def _rows(X: Pose) -> list[list[Number]]:
    """Return the rows of the matrix of a pose, without the last, shape (3, 4)."""
    return [[*r, p] for r, p in zip(X.rotation, X.position, strict=True)]


def poses_program(
    tree: Tree,
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
    *,
    single: bool,
    form: str,
    selection: Inputs,
    name: str = "fk",
) -> Program:
    """Return the program q -> poses of `frames` in `relative_to`.

    Args:
        tree: What moves.
        frames: Whose poses.
        relative_to: In which frame.
        single: Whether the output is one pose, rather than a list of them.
        form: A key of `FORMS`; or `rows`, the matrices without their last row.
        selection: Which joints are q, and what else is an input.
        name: Of the program.
    """
    write = _rows if form == "rows" else FORMS[form]

    def equations(now: Tree, q: list[Number]) -> Any:
        written = [write(X) for X in poses_of(now, q, frames, relative_to)]
        return written[0] if single else written

    output = "pose" if single else "poses"
    return program_of(equations, tree, selection, name=name, output=output)


def pose_error_program(
    tree: Tree,
    frame: FrameRef,
    relative_to: FrameRef,
    selection: Inputs,
    *,
    form: str,
) -> Program:
    """Return the program q, target -> V with X_target = X(q) exp(V), shape (6,).

    V is the logarithm of the dual quaternion X(q)* X_target, so that a target's sign
    does not matter; it is written in the axes of `frame`.
    """

    def equations(now: Tree, q: list[Number], target: Any) -> Any:
        (X,) = poses_of(now, q, [frame], relative_to)
        wanted = READERS[form](target)
        return dual_quaternion.screw_between(
            dual_quaternion.from_pose(X), dual_quaternion.from_pose(wanted)
        )

    return program_of(
        equations,
        tree,
        selection,
        name="pose_error",
        output="twist",
        target=SHAPES[form],
    )


class FixedTo(NamedTuple):
    """What something is fixed to, by its row in an array of poses, and where.

    Attributes:
        row: The row of what carries it.
        pose: Of what is fixed to that, in its frame.
    """

    row: int
    pose: Pose


class AttachedBases(NamedTuple):
    """Bases to put where they are attached; all that carry them are right already.

    Attributes:
        holders: Rows of the frames that hold them, shape (h,).
        offsets: The bases in those frames, shape (h, 4, 4).
        rows: Rows of all frames that move with one of the bases, shape (r,).
        counts: How many rows each of the bases has there, shape (h,).
        base: The number of the base that each row moves with, shape (r,).
    """

    holders: Indices
    offsets: Array
    rows: Indices
    counts: Indices
    base: Indices


class StandingBases(NamedTuple):
    """Where the movable bases of a tree are.

    Attributes:
        matrices: Their poses in the world, the identity for those attached, (f, 4, 4).
        attached: What is attached, those first that carry others.
    """

    matrices: Array
    attached: tuple[AttachedBases, ...]


class ReleasedFrames:
    """Frames of a cell with its movable bases released: one program for all states.

    The poses of the bases that states may move are inputs. Where one is attached to
    another frame, that frame's pose must be known first. So what such a base carries is
    computed as if the base were at the origin of the world, X_BF in place of X_WF, and
    moved afterwards: X_WF = X_WH X_HB X_BF, with the frame H that holds the base.

    Attributes:
        cell: Whose frames.
        frames: The frames, by which rows of poses are numbered.
        tree: That of the cell, with movable bases at the origin of the world.
        rows_with: The rows of all frames that move with each movable base.
        bases: The movable bases that carry some of the frames.
        selection: What the program takes: all joints, and those bases.
    """

    def __init__(self, cell: Workcell, frames: Sequence[FrameRef]) -> None:
        """Find what carries the frames; the program is traced when it is needed."""
        self.cell, self.frames = cell, tuple(frames)
        built = Tree.of(cell)
        self.tree = built.released()
        owners = [cell.owners[at.link] if at.link >= 0 else -1 for at in frames]
        # The last number stands for what the world carries.
        carriers = np.array([*built.carriers, -1], dtype=np.int64)[owners]
        order = np.argsort(carriers, kind="stable")
        carried, starts = np.unique(carriers[order], return_index=True)
        rows = zip(carried.tolist(), np.split(order, starts)[1:], strict=True)
        self.rows_with: dict[int, Indices] = {k: own for k, own in rows if k >= 0}
        self.bases = tuple(sorted(self.rows_with))
        n, every = cell.loop_system.count, range(len(cell.joints.home))
        self.selection = Inputs(
            tuple(every[:n]), cell.joints.home, bases=self.bases, passive=(*every[n:],)
        )

    def program(self, *, form: str, name: str) -> Program | None:
        """Return the program of the poses; None where they are not compiled.

        That is where there are too many, or a script moves them.
        """
        if not 0 < len(self.frames) <= MOST_COMPILED:
            if self.frames and self.selection.passive:
                self._warn_of_python()
            return None
        try:
            program = poses_program(
                self.tree,
                self.frames,
                IN_WORLD,
                single=False,
                form=form,
                selection=self.selection,
                name=name,
            )
        except NotCompiled:
            return None
        return None if isinstance(program, PythonProgram) else program

    def _warn_of_python(self) -> None:
        """Warn, once for a cell, that Python computes its poses."""
        if kept(self.cell, "poses in Python", list[int]):
            return
        kept(self.cell, "poses in Python", list[int]).append(len(self.frames))
        warn_user(
            f"The poses of {len(self.frames)} frames are computed in Python, at some "
            f"12 us for each: more than {MOST_COMPILED} are compiled only where no "
            "closed loop moves any of them. Put the loops in a cell of their own."
        )

    def loop(self, column: Port, *, most: int) -> FrameLoop | None:
        """Return the loops that compute many poses; None where there are none.

        That is where a script or closed loop moves them, or nothing does.

        Args:
            column: The column of the poses, shape (frames, 3, 4) or (frames, 4, 4).
            most: So many frames are left to straight code.
        """
        is_moved = len(self.selection.inputs) > 0
        if self.selection.passive or not is_moved or len(self.frames) <= most:
            return None
        with IMPORT_LOCK:
            from armillary.kinematics.frame_loop import FrameLoop  # of large cells

        try:
            return FrameLoop(
                self.tree, self.frames, self.bases, self.selection, column=column
            )
        except NotCompiled:
            return None

    def interpreted(self, tree: Tree, positions: npt.NDArray[Any]) -> Array:
        """Return the poses by Python: of n rows of positions, shape (n, frames, 4, 4).

        Args:
            tree: Of a state; nothing is moved afterwards.
            positions: Of all joints, passive ones last, shape (n, joints).
        """
        poses = np.empty((len(positions), len(self.frames), 4, 4))
        for row, q in zip(poses, positions.tolist(), strict=True):
            found = poses_of(tree, q, self.frames, IN_WORLD)
            row[:] = np.reshape([X.matrix() for X in found], row.shape)
        return poses

    def standing(
        self, tree: Tree, holders: Mapping[int, FixedTo], *, world: int
    ) -> StandingBases:
        """Return where the movable bases of a tree are.

        Args:
            tree: Of a state.
            holders: What holds each of `bases`.
            world: The row of the world, whose bases are inputs as they are.
        """
        held = {k for k, at in holders.items() if at.row != world}
        matrices = np.array(
            [np.eye(4) if k in held else holders[k].pose.matrix() for k in self.bases],
            dtype=np.float64,
        ).reshape(-1, 4, 4)
        matrices.flags.writeable = False
        levels = [{k: holders[k] for k in level if k in held} for level in tree.levels]
        attached = (self._attached(level) for level in levels if level)
        return StandingBases(matrices, tuple(attached))

    def _attached(self, holders: Mapping[int, FixedTo]) -> AttachedBases:
        rows = [self.rows_with[k] for k in holders]
        counts = [len(own) for own in rows]
        return AttachedBases(
            holders=np.array([at.row for at in holders.values()]),
            offsets=np.array([at.pose.matrix() for at in holders.values()]),
            rows=np.concatenate(rows),
            counts=np.array(counts, np.int64),
            base=np.repeat(np.arange(len(counts)), counts),
        )
