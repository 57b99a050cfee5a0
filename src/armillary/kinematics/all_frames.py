"""All poses of a state in one call: the kernel, and the bases that states move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel import shared_kernel
from armillary.kernel.arguments import as_inputs
from armillary.kinematics.bound_state import bound_state, branch_of
from armillary.kinematics.closing.branch import Branch, home_branch
from armillary.kinematics.closing.kernel import closed_kernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.poses import MOST_COMPILED, poses_program
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.link_poses import poses_of
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.pose import Pose
from armillary.trace import Port, Program, trace

__all__ = ["Poses", "pose", "poses"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FRAMES: Final = -3  # the axis of frames in an array of poses


def pose(
    cell: Workcell, frame: str, state: State, *, relative_to: str = WORLD
) -> Array:
    """Return the pose of a frame in a state, in `relative_to`, shape (4, 4).

    It is computed without a kernel, so that no state asks for compilation.

    Raises:
        UnknownName: A frame does not exist.
        StateError: The state is not one of this cell.
    """
    bound, to = bound_state(cell, state), cell.frame(relative_to)
    (X,) = poses_of(bound.tree, bound.positions.tolist(), [cell.frame(frame)], to)
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
    bases = base_poses(bound.tree)
    frames = bases.frames
    if q is None:
        matrices = frames.one(bound.positions.tolist(), bases)
    else:
        matrices = frames.many(q, bases, branch_of(bound))
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

    Bases that states may move are inputs of the kernel. If one is attached to a frame,
    that frame's pose must be known first: what such bases carry is computed as if they
    were at the origin of the world, and moved afterwards.

    Attributes:
        rows: The row of each frame in arrays of poses, by its qualified name.
    """

    def __init__(self, cell: Workcell) -> None:
        """Prepare the questions about `cell`; kernels are made when they are needed."""
        names = cell.frame_names[1:]
        self.rows = {name: k for k, name in enumerate(names)}
        self._cell = cell
        self._frames = [cell.frame(name) for name in names]
        tree = Tree.of(cell)
        self._tree = tree.released()
        n, every = cell.loop_system.count, range(len(cell.joints.home))
        self._selection = Inputs(
            tuple(every[:n]), cell.joints.home, (), tree.movable, tuple(every[n:])
        )

    def one(self, positions: tuple[float, ...], bases: BasePoses) -> Array:
        """Return the poses of all frames in the world, shape (k, 4, 4).

        positions: Of all joints, passive ones last.
        """
        n = len(self._selection.inputs)
        solved = [np.array(positions[n:])] if self._selection.passive else []
        q = np.array(positions[:n])
        return self._settled(self._of_one, np.matmul, [*solved, q], bases)

    def many(self, q: Any, bases: BasePoses, branch: Branch | None) -> Array:
        """Return the poses at many q, (..., n) -> (..., k, 4, 4).

        branch: On which loops are closed; that of home by default.
        """
        return self._settled(self._of_many(branch), self._product, [q], bases)

    def _settled(
        self,
        compute: Callable[..., Array],
        multiply: Callable[[Array, Array], Array],
        given: list[Any],
        bases: BasePoses,
    ) -> Array:
        moved = [bases.matrices] if self._tree.movable else []
        poses = compute(*moved, *given)
        bases.settle(poses, multiply)
        poses.flags.writeable = False
        return poses

    @cached_property
    def _of_one(self) -> Callable[..., Array]:
        # A block of several lanes would compute the same row in each of them.
        return self._kernel(lanes=1)

    def _of_many(self, branch: Branch | None) -> Callable[..., Array]:
        if not self._selection.passive:
            return kept(self, "many", lambda: self._kernel(lanes=None))

        def made() -> Callable[..., Array]:
            return closed_kernel(
                self._cell, self._selection, self._program, branch=branch
            )

        return kept(branch or home_branch(self._cell), ("many", id(self)), made)

    @cached_property
    def _product(self) -> Callable[[Array, Array], Array]:
        return shared_kernel(product_program())  # NumPy's takes ten times as long

    def _kernel(self, lanes: int | None) -> Callable[..., Array]:
        if 0 < len(self._frames) <= MOST_COMPILED:
            with suppress(NotCompiled):
                return shared_kernel(self._program, lanes=lanes)
        return self._interpreted

    @cached_property
    def _program(self) -> Program:
        return poses_program(
            self._tree,
            self._frames,
            IN_WORLD,
            single=False,
            form="matrix",
            selection=self._selection,
        )

    def _interpreted(self, *given: Any) -> Array:
        """Return what a kernel would, row by row."""
        *bases, q = given
        solved = bases[len(self._selection.shapes) :]
        port, count = Port("q", (len(self._cell.joint_names),)), len(self._frames)
        (Q,) = as_inputs(Program("fk", (port,), (), (), ()), [q])
        poses = np.empty((*Q.shape[:-1], count, 4, 4))
        for row in np.ndindex(Q.shape[:-1]):
            tree, whole = self._selection.applied(
                self._tree,
                Q[row].tolist(),
                bases[: len(self._selection.shapes)],
                *solved,
            )
            found = poses_of(tree, whole, self._frames, IN_WORLD)
            poses[row] = np.reshape([X.matrix() for X in found], (count, 4, 4))
        return poses

    @cached_property
    def rows_with(self) -> dict[int, Indices]:
        """Return the rows of all frames that move with each movable base."""
        owners = [self._cell.owners[at.link] for at in self._frames]
        carriers = np.array(Tree.of(self._cell).carriers, dtype=np.int64)[owners]
        rows = np.argsort(carriers, kind="stable")
        found, starts = np.unique(carriers[rows], return_index=True)
        return dict(zip(found.tolist(), np.split(rows, starts[1:]), strict=True))


class _Lift(NamedTuple):
    """Bases to put where they are attached, all that carry them being right already.

    Attributes:
        holders: Rows of the links that hold them, shape (h,).
        offsets: The bases in those links, shape (h, 4, 4).
        rows: Rows of all frames that move with one of the bases, shape (r,).
        base: Which of the h bases that is, shape (r,).
    """

    holders: Indices
    offsets: Array
    rows: Indices
    base: Indices


class BasePoses:
    """Where the movable bases of a tree are.

    Attributes:
        frames: The frames of its cell.
        matrices: Their poses in the world, the identity for those attached, (f, 4, 4).
    """

    def __init__(self, frames: AllFrames, tree: Tree) -> None:
        """Sort the bases by how many of them hold each other."""
        self.frames = frames
        standing = [tree.bases[k].frame for k in tree.movable]
        self.matrices = np.array(
            [np.eye(4) if at.link >= 0 else at.pose.matrix() for at in standing],
            dtype=np.float64,
        ).reshape(-1, 4, 4)
        self.matrices.flags.writeable = False
        self._lifts = [_lift(frames, tree, level) for level in tree.levels]

    def settle(self, poses: Array, multiply: Callable[[Array, Array], Array]) -> None:
        """Move what is attached to where it is, the lowest first.

        Args:
            poses: Of all frames, shape (..., k, 4, 4), as if what is attached were at
                the origin of the world.
            multiply: The product of two arrays of poses.
        """
        for holders, offsets, rows, base in self._lifts:
            lifted = multiply(poses.take(holders, FRAMES), offsets)
            moved = multiply(lifted.take(base, FRAMES), poses.take(rows, FRAMES))
            poses.swapaxes(0, FRAMES)[rows] = moved.swapaxes(0, FRAMES)


def base_poses(tree: Tree) -> BasePoses:
    """Return where the movable bases of a tree are, which the tree keeps."""

    def made() -> BasePoses:
        cell = tree.cell
        return BasePoses(kept(cell, "all frames", lambda: AllFrames(cell)), tree)

    return kept(tree, "base poses", made)


def _lift(frames: AllFrames, tree: Tree, attached: Sequence[int]) -> _Lift:
    holders = [tree.bases[k].frame for k in attached]
    rows = [frames.rows_with[k] for k in attached]
    return _Lift(
        holders=np.array([frames.rows[tree.name(at.link)] for at in holders]),
        offsets=np.array([at.pose.matrix() for at in holders]),
        rows=np.concatenate(rows),
        base=np.repeat(np.arange(len(attached)), [len(span) for span in rows]),
    )


def product_program() -> Program:
    """Return the program X_AB, X_BC -> X_AC = X_AB X_BC of matrices."""

    def product(left: Any, right: Any) -> Any:
        return (Pose.from_matrix(left) @ Pose.from_matrix(right)).matrix()

    return trace(product, outputs=("X_AC",), X_AB=(4, 4), X_BC=(4, 4))
