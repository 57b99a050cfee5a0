"""All poses of a state in one call: the kernel, and the bases that states move."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.arguments import as_inputs
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.kernels import program_kernel
from armillary.kinematics.poses import FixedTo, ReleasedFrames, StandingBases
from armillary.kinematics.questions import fk
from armillary.kinematics.state import State, bound_state, branch_of, poses_in
from armillary.model.fields import kept
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import Pose
from armillary.trace import Port, Program, trace

if TYPE_CHECKING:
    from armillary.kernel.pipeline_records import PipelineRecords
    from armillary.kinematics.closing.branch import Branch
    from armillary.kinematics.frame_loop import FrameLoop

__all__ = ["Poses", "pose", "poses"]

Array = npt.NDArray[np.float64]
_NOTHING: Final[Mapping[Any, Any]] = {}

MOST_STRAIGHT: Final = 128
"""Frames in straight code; loops take half the time for 400 of them, one at a time."""

FRAMES: Final = -3  # the axis of frames in an array of poses

REPEATED: Final = 200
"""Calls without a kernel that take about as long as to compile one."""

MOST_JOINTS: Final = 64
"""More would take seconds to compile in the middle of a program."""


def pose(
    cell: Workcell, frame: str, state: State, *, relative_to: str = WORLD
) -> Array:
    """Return the pose of a frame in a state, in `relative_to`, shape (4, 4).

    It is computed without a kernel, so that no state asks for compilation, until it is
    worth that: after REPEATED calls for the same frames, with the same attachments. The
    last digits may differ then.

    Raises:
        UnknownName: A frame does not exist.
        StateError: The state is not one of this cell.
    """
    # Most states are of this cell: nothing needs to be bound, and nothing else is
    # looked at where a kernel answers already, which belongs to their attachments.
    are_texts = type(frame) is type(relative_to) is str
    names = frame, relative_to
    known = state.__dict__ if type(state) is State else _NOTHING
    bound = state if known.get("cell") is cell else bound_state(cell, state)
    tree: Tree = bound.__dict__.get("tree") or bound.tree
    kernels = tree.__dict__.get("pose kernels", _NOTHING)
    if are_texts and names in kernels:
        return kernels[names](bound.q)
    (X,) = poses_in(bound, [cell.frame(frame)], cell.frame(relative_to))
    # Passive joints are those of the state, which a kernel would solve for.
    if are_texts and not bound.passive.size and bound.q.size <= MOST_JOINTS:
        asked = kept(tree, "asked poses", dict[tuple[str, str], int])
        asked[names] = count = asked.get(names, 0) + 1
        if count >= REPEATED:
            made: dict[Any, AnyKernel] = vars(tree).setdefault("pose kernels", {})
            made[names] = fk(cell, frame, relative_to=relative_to, state=bound)
    return X.matrix()


def poses(cell: Workcell, state: State, *, q: npt.ArrayLike | None = None) -> Poses:
    """Return the poses of all frames in a state, each computed once.

    q: Joint positions in place of the state's, shape (..., n) [m or rad]; each
        frame's poses then have the shape (..., 4, 4).

    Raises:
        StateError: The state is not one of this cell.
        ShapeError: `q` has another number of joints.
    """
    bound = bound_state(cell, state)
    frames = kept(cell, "all frames", lambda: AllFrames(cell))
    matrices = frames.one(bound) if q is None else frames.many(q, bound)
    matrices.flags.writeable = False
    return Poses(cell, frames.rows, matrices)


class Poses(Mapping[str, Array]):
    """The pose of every frame in the world, each computed once; arrays are read-only.

    Keys are `manipulator/frame`, or bare names while they are unique. Poses at many
    joint positions have their leading shape in front.
    """

    def __init__(
        self, cell: Workcell, rows: Mapping[str, int], matrices: Array
    ) -> None:
        """Hold the poses `matrices`, (..., k, 4, 4), of the frames named in `rows`."""
        self._cell = cell
        self._rows = rows
        self._matrices = matrices

    def __getitem__(self, name: str) -> Array:
        """Return the pose of a frame in the world, shape (..., 4, 4).

        Raises:
            UnknownName: There is no such frame.
            ModelError: The bare name is not unique.
        """
        row = self._rows.get(name)
        if row is None:
            if name == WORLD:
                return np.broadcast_to(np.eye(4), (*self._matrices.shape[:-3], 4, 4))
            row = self._rows[self._cell.qualified(name)]
        return self._matrices[..., row, :, :]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<poses of {len(self)} frames: {self._matrices.shape}>"

    def relative(self, frame: str, to: str) -> Array:
        """Return the pose of `frame` in the frame `to`, shape (..., 4, 4)."""
        pose: Array = np.linalg.solve(self[to], self[frame]).astype(np.float64)
        return pose


class AllFrames:
    """The poses of all frames of a cell, by one kernel for all attachments.

    What is attached is moved to its holder after the kernel; see `ReleasedFrames`.

    Attributes:
        rows: The row of each frame in arrays of poses, by its qualified name.
        released: The frames.
    """

    def __init__(self, cell: Workcell) -> None:
        """Prepare the questions about `cell`; kernels are made when they are needed."""
        names = cell.frame_names[1:]
        self.rows = {name: k for k, name in enumerate(names)}
        self.released = ReleasedFrames(cell, [cell.frame(name) for name in names])

    def one(self, state: State) -> Array:
        """Return the poses of all frames in the world, shape (k, 4, 4)."""
        tree, positions = state.tree, state.positions
        looped = self._looped(tree, lanes=1)
        if looped is not None:
            return self._with_attached(looped(state.q), np.matmul, tree)
        kernel = self._of_one
        if kernel is None:
            return self.released.interpreted(tree, positions[None])[0]
        n = len(state.q)
        solved = [positions[n:]] if state.passive.size else []
        poses = kernel(*self._moved(tree), *solved, state.q)
        return self._with_attached(poses, np.matmul, tree)

    def many(self, q: Any, state: State) -> Array:
        """Return the poses at many q, (..., n) -> (..., k, 4, 4).

        state: The attachments, and the branch on which loops are closed.
        """
        branch, tree = branch_of(state), state.tree
        looped = self._looped(tree, lanes=None)
        if looped is not None:
            return self._with_attached(looped(q), self._product, tree)
        kernel = self._of_many(branch)
        if kernel is not None:
            poses = kernel(*self._moved(tree), q)
            return self._with_attached(poses, self._product, tree)
        port = Port("q", (len(state.q),))
        (Q,) = as_inputs(Program("fk", (port,), (), (), ()), [q])
        batch = Q.shape[:-1]
        rows = Q.reshape(math.prod(batch), len(state.q))
        passive = np.empty((len(rows), 0))
        if branch:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.solver import solved_on

            passive, _ = solved_on(self.released.cell, branch, rows)
        poses = self.released.interpreted(state.tree, np.hstack([rows, passive]))
        poses[np.isnan(passive).any(axis=1)] = np.nan  # loops are not closed there
        return poses.reshape(*batch, *poses.shape[1:])

    def _with_attached(
        self, poses: Array, multiply: Callable[[Array, Array], Array], tree: Tree
    ) -> Array:
        """Return the poses of released frames with what is attached where it is.

        multiply: The product of two arrays of poses.
        """
        for holders, offsets, rows, _, base in self._standing_of(tree).attached:
            held = multiply(poses.take(holders, FRAMES), offsets)
            moved_frames = multiply(held.take(base, FRAMES), poses.take(rows, FRAMES))
            poses.swapaxes(0, FRAMES)[rows] = moved_frames.swapaxes(0, FRAMES)
        return poses

    def _moved(self, tree: Tree) -> list[Array]:
        """Return the inputs of kernels besides q."""
        return [self._standing_of(tree).matrices] if self.released.bases else []

    def _standing_of(self, tree: Tree) -> StandingBases:
        return kept(tree, "standing bases", lambda: self._standing(tree))

    def _looped(
        self, tree: Tree, *, lanes: int | None
    ) -> Callable[[Any], Array] | None:
        """Return the loops from q to the poses in a tree; None without loops."""
        loop = self._loop
        if loop is None:
            return None
        bases = self._standing_of(tree).matrices

        def made() -> PipelineRecords:
            with IMPORT_LOCK:
                from armillary.kernel.pipeline_kernel import compile_pipeline
                from armillary.kernel.pipeline_records import PipelineRecords

            code = compile_pipeline(loop.pipeline("fk"), lanes=lanes)
            return PipelineRecords.of(code, loop.records(bases))

        first = kept(self, ("loop", lanes), made)
        kernel = kept(
            tree, ("loop", lanes), lambda: first.changed(loop.moved(bases)).kernel()
        )
        return lambda q: kernel(q)[..., : len(self.rows), :, :]

    @cached_property
    def _loop(self) -> FrameLoop | None:
        column = Port("poses", (len(self.rows), 4, 4))
        return self.released.loop(column, most=MOST_STRAIGHT)

    def _standing(self, tree: Tree) -> StandingBases:
        frames = ((k, tree.bases[k].frame) for k in self.released.bases)
        holders = {
            k: FixedTo(self.rows.get(tree.name(at.link), WORLD_LINK), at.pose)
            for k, at in frames
        }
        return self.released.standing(tree, holders, world=WORLD_LINK)

    @cached_property
    def _program(self) -> Program | None:
        return self.released.program(form="matrix", name="fk")

    @cached_property
    def _of_one(self) -> Kernel | None:
        # A block of several lanes would compute the same row in each of them.
        program = self._program
        return None if program is None else shared_kernel(program, lanes=1)

    def _of_many(self, branch: Branch | None) -> Kernel | None:
        program = self._program
        if program is None:
            return None
        cell, selection = self.released.cell, self.released.selection

        def made() -> Kernel:
            return program_kernel(cell, selection, program, branch=branch)

        return kept(branch or self, ("all frames", id(self)), made)

    @cached_property
    def _product(self) -> Callable[[Array, Array], Array]:
        return shared_kernel(product_program())  # NumPy's takes ten times as long


def product_program() -> Program:
    """Return the program X_AB, X_BC -> X_AC = X_AB X_BC of matrices."""

    def product(left: Any, right: Any) -> Any:
        return (Pose.from_matrix(left) @ Pose.from_matrix(right)).matrix()

    return trace(product, outputs=("X_AC",), X_AB=(4, 4), X_BC=(4, 4))
