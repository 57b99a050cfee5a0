"""All poses of a state in one call: the kernel, and the bases that states move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import shared_kernel
from armillary.kernel.arguments import as_inputs
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.poses import LinkPoses, poses_of
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.tree import Base, Tree, nearest
from armillary.model.workcell import WORLD, WORLD_LINK, Workcell
from armillary.spatial.pose import Pose
from armillary.trace import Port, Program, trace

__all__ = ["Poses", "pose", "poses"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_COMPILED: Final = 1_000
"""Frames of a cell; for more of them compiling takes longer than it saves."""


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
    (X,) = poses_of(bound.tree, bound.q, [cell.frame(frame)], to)
    return X.matrix()


def poses(cell: Workcell, state: State, *, q: npt.ArrayLike | None = None) -> Poses:
    """Return the poses of all frames in a state, each computed once.

    q: Joint positions in place of the state's, shape (..., n) [m or rad]; each
        frame's poses then have the shape (..., 4, 4).

    Raises:
        StateError: The state is not one of this cell.
        ShapeError: `q` has another number of joints.
    """
    survey = kept(cell, "survey", lambda: Survey(cell))
    bound = bound_state(cell, state)
    matrices = (
        survey.one(bound.q, bound.tree) if q is None else survey.many(q, bound.tree)
    )
    return Poses(cell, survey.rows, matrices)


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

    def relative(self, frame: str, to: str) -> Array:
        """Return the pose of `frame` in the frame `to`, shape (..., 4, 4)."""
        pose: Array = np.linalg.solve(self[to], self[frame]).astype(np.float64)
        return pose


class Survey:
    """The poses of all frames of a cell, compiled once for all attachments.

    Bases that states may move are inputs of the kernel. Where one is held by a frame,
    that frame's pose must be known first: what such bases carry is computed as if they
    stood at the origin of the world, and moved afterwards.
    """

    def __init__(self, cell: Workcell) -> None:
        """Prepare the questions about `cell`; kernels are made when they are needed."""
        self.names = cell.frame_names[1:]
        self.rows = {name: k for k, name in enumerate(self.names)}
        self._cell = cell
        self._frames = [cell.frame(name) for name in self.names]
        self._bases = Bases(cell)

    def one(self, q: tuple[float, ...], tree: Tree) -> Array:
        """Return the poses of all frames in the world, shape (k, 4, 4)."""
        return self._settled(self._of_one, np.matmul, np.array(q), tree)

    def many(self, q: Any, tree: Tree) -> Array:
        """Return the poses at many q, (..., n) -> (..., k, 4, 4)."""
        return self._settled(self._of_many, self._product, q, tree)

    def _settled(
        self,
        survey: Callable[..., Array],
        multiply: Callable[[Array, Array], Array],
        q: Any,
        tree: Tree,
    ) -> Array:
        standing = kept(tree, "standing", lambda: Standing(self._bases, tree))
        poses = survey(q, standing.matrices) if self._bases.free else survey(q)
        standing.settle(poses, multiply)
        poses.flags.writeable = False
        return poses

    @cached_property
    def _of_one(self) -> Callable[..., Array]:
        # A block of several lanes would compute the same row in each of them.
        return self._kernel(lanes=1)

    @cached_property
    def _of_many(self) -> Callable[..., Array]:
        return self._kernel(lanes=None)

    @cached_property
    def _product(self) -> Callable[[Array, Array], Array]:
        return shared_kernel(product_program())  # NumPy's takes ten times as long

    def _kernel(self, lanes: int | None) -> Callable[..., Array]:
        if 0 < len(self._frames) <= MOST_COMPILED:
            return shared_kernel(self._program, lanes=lanes)
        return self._interpreted

    @cached_property
    def _program(self) -> Program:
        return survey_program(self._cell, self._frames, self._bases.free)

    def _interpreted(self, q: Any, matrices: Any = ()) -> Array:
        """Return what a kernel would, row by row."""
        port, count = Port("q", (len(self._cell.joint_names),)), len(self._frames)
        (Q,) = as_inputs(Program("survey", (port,), (), (), ()), [q])
        survey = survey_of(self._cell, self._frames, self._bases.free)
        poses = np.empty((*Q.shape[:-1], count, 4, 4))
        for row in np.ndindex(Q.shape[:-1]):
            found = survey(Q[row].tolist(), matrices)
            poses[row] = np.reshape(found, (count, 4, 4))
        return poses


class Bases:
    """The bases of a cell that states may move, and what moves with each of them.

    The frames of a cell are rows, manipulator by manipulator, the links of each first.

    Attributes:
        free: The manipulators whose bases are not bolted down.
        roots: For each manipulator the free one that it is bolted to in the end, itself
            maybe; -1 where that is the world.
        starts: The first row of each manipulator.
        carried: For each free one the rows that move with it.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the mounts of `cell`."""
        self.free = Tree.of(cell).movable
        sizes = [len(manipulator.places) for manipulator in cell.manipulators]
        self.starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        self.roots = _roots(cell, self.free)
        spans: dict[int, list[Indices]] = {k: [] for k in self.free}
        for m, root in enumerate(self.roots):
            if root >= 0:
                spans[root].append(np.arange(self.starts[m], self.starts[m + 1]))
        self.carried = {k: np.concatenate(found) for k, found in spans.items()}

    def row(self, cell: Workcell, link: int) -> int:
        """Return the row of a link's outer frame."""
        k = cell.owners[link]
        return self.starts[k] + link - cell.starts[k]


def _roots(cell: Workcell, free: Sequence[int]) -> list[int]:
    tree = Tree.of(cell)
    bases = [tree.base_link(k) for k in range(len(cell.manipulators))]
    free_links = {bases[k] for k in free}
    roots = nearest(tree.parents, bases, free_links.__contains__)
    return [cell.owners[root] for root in roots]


class _Lift(NamedTuple):
    """Bases to put where they are held, all that hold them being right already.

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


class Standing:
    """Where the free bases stand in a tree.

    Attributes:
        matrices: Their poses in the world, the identity for those held, (f, 4, 4).
    """

    def __init__(self, bases: Bases, tree: Tree) -> None:
        """Sort the bases by how many of them hold each other."""
        frames = [tree.bases[k].frame for k in bases.free]
        is_held = [at.link >= 0 for at in frames]
        self.matrices = np.array(
            [np.eye(4) if at.link >= 0 else at.pose.matrix() for at in frames],
            dtype=np.float64,
        ).reshape(-1, 4, 4)
        self.matrices.flags.writeable = False
        held = [k for k, is_so in zip(bases.free, is_held, strict=True) if is_so]
        levels = _levels(bases, tree, held)
        self._lifts = [_lift(bases, tree, level) for level in levels]

    def settle(self, poses: Array, multiply: Callable[[Array, Array], Array]) -> None:
        """Move what is held to where it is, the lowest first.

        Args:
            poses: Of all frames, shape (..., k, 4, 4), as if what is held stood at the
                origin of the world.
            multiply: The product of two arrays of poses.
        """
        by_frame = poses.swapaxes(0, FRAMES)
        for holders, offsets, rows, base in self._lifts:
            lifted = multiply(poses.take(holders, FRAMES), offsets)
            moved = multiply(lifted.take(base, FRAMES), poses.take(rows, FRAMES))
            by_frame[rows] = moved.swapaxes(0, FRAMES)


def _levels(bases: Bases, tree: Tree, held: Sequence[int]) -> Iterator[list[int]]:
    """Yield the held bases, each held by what the world or an earlier level carries."""
    above: dict[int, list[int]] = {}
    for k in held:
        root = bases.roots[tree.cell.owners[tree.bases[k].frame.link]]
        is_held = root >= 0 and tree.bases[root].frame.link >= 0
        above.setdefault(root if is_held else -1, []).append(k)
    level = above.get(-1)
    while level:
        yield level
        level = [upper for k in level for upper in above.get(k, ())]


def _lift(bases: Bases, tree: Tree, held: Sequence[int]) -> _Lift:
    frames = [tree.bases[k].frame for k in held]
    cell = tree.cell
    rows = [bases.carried[k] for k in held]
    return _Lift(
        holders=np.array([bases.row(cell, at.link) for at in frames]),
        offsets=np.array([at.pose.matrix() for at in frames]),
        rows=np.concatenate(rows),
        base=np.repeat(np.arange(len(held)), [len(span) for span in rows]),
    )


def survey_of(
    cell: Workcell, frames: Sequence[FrameRef], free: Sequence[int]
) -> Callable[..., list[Any]]:
    """Return the function q, bases -> poses in the world, shape (k, 4, 4).

    It takes and gives floats, or traced scalars.

    Args:
        cell: What there is.
        frames: Whose poses.
        free: The manipulators whose base poses in the world are inputs, in order.
    """

    def survey(q: Sequence[Any], bases: Any = ()) -> list[Any]:
        changes = {
            k: Base(FrameRef(WORLD_LINK, Pose.from_matrix(base)))
            for k, base in zip(free, bases, strict=True)
        }
        poses = LinkPoses(Tree.of(cell).attached(changes), q, WORLD_LINK)
        return [poses.pose(at).matrix() for at in frames]

    return survey


def survey_program(
    cell: Workcell, frames: Sequence[FrameRef], free: Sequence[int]
) -> Program:
    """Return `survey_of` as a program, of q alone where there are no free bases."""
    inputs: dict[str, tuple[int, ...]] = {"q": (len(cell.joint_names),)}
    if free:
        inputs["bases"] = (len(free), 4, 4)
    survey = survey_of(cell, frames, free)
    return trace(survey, name="survey", outputs=("poses",), **inputs)


def product_program() -> Program:
    """Return the program X_AB, X_BC -> X_AC = X_AB X_BC of matrices."""

    def product(left: Any, right: Any) -> Any:
        return (Pose.from_matrix(left) @ Pose.from_matrix(right)).matrix()

    return trace(product, outputs=("X_AC",), X_AB=(4, 4), X_BC=(4, 4))
