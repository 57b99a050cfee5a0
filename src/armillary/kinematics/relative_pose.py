"""One pair of frames over many states."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.bound_state import bound_state, branch_of
from armillary.kinematics.closing.kernel import closed_kernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.poses import poses_program
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

Array = npt.NDArray[np.float64]


def between(
    cell: Workcell, frame: str, state: State, *, relative_to: str = WORLD
) -> Between:
    """Return the pose of one frame in another over many states.

    Args:
        cell: What has the frames.
        frame: Whose pose.
        state: A state with the attachments of them all.
        relative_to: In which frame.

    Raises:
        UnknownName: A frame does not exist.
        StateError: The state is not one of this cell.
    """
    return Between(cell, frame, relative_to, bound_state(cell, state))


class Between:
    """The pose of one frame in another, for all states that hold things alike.

    It is made by `cell.between`, which compiles the path between the two once. Bases
    on that path may stand anywhere, and loops be closed on any branch; a state in which
    another link holds one of the bases is refused, because the path is another.

    Attributes:
        kernel: From q to the pose, (..., n) -> (..., 4, 4), with the bases where they
            are, and loops closed on the branch, of the state that it was made of.
    """

    def __init__(
        self, cell: Workcell, frame: str, relative_to: str, state: State
    ) -> None:
        """Compile the path between two frames as it is in `state`."""
        self._cell = cell
        self._ends = cell.frame(frame), cell.frame(relative_to)
        self._names = frame, relative_to
        self._path = self._path_in(state.tree)
        n = len(cell.joint_names)
        bases = tuple(m for m in self._path if m in state.tree.movable)
        passive = state.tree.passive_joints(state.tree.between(self._ends))
        self._selection = Inputs(
            tuple(range(n)),
            tuple(state.positions.tolist()),
            bases=bases,
            passive=passive,
        )
        self._program = poses_program(
            state.tree,
            [self._ends[0]],
            self._ends[1],
            single=True,
            form="matrix",
            selection=self._selection,
        )
        kernel = closed_kernel(
            cell, self._selection, self._program, branch=branch_of(state)
        )
        values = self._selection.values(state.tree)
        self.kernel: AnyKernel = bind(kernel, values)

    def __repr__(self) -> str:
        frame, relative_to = map(quote, self._names)
        return f"<pose of {frame} relative to {relative_to}>"

    def __call__(self, state: State) -> Array:
        """Return the pose in a state, shape (4, 4).

        Raises:
            StateError: Another link holds what is between the frames.
        """
        return self.many([state])[0]

    def many(self, states: Iterable[State]) -> Array:
        """Return the poses in k states, shape (k, 4, 4).

        Raises:
            StateError: Another link holds what is between the frames in one of them.
        """
        rows: list[Array] = []
        bases: list[Array] = []
        passive = list(self._selection.passive)
        for number, state in enumerate(states):
            bound = state.bound(self._cell)
            tree = bound.tree
            if self._path_in(tree) != self._path:
                raise StateError(
                    f"The path from '{self._names[1]}' to '{self._names[0]}' is not "
                    f"the same in state {number}: something on it was gripped or "
                    "released. Ask the cell again with that state."
                )
            rows.append(bound.positions)
            bases += self._selection.values(tree)
        n, m = len(self._cell.joint_names), len(self._cell.passive_names)
        x = np.array(rows, dtype=np.float64).reshape(len(rows), n + m)
        given = [np.array(bases)] if bases else []
        solved = [x[:, passive]] if passive else []
        return self._of_all_joints(*given, *solved, x[:, :n])

    @cached_property
    def _of_all_joints(self) -> Kernel:
        """Return the kernel of moved bases, passive joints and q, (...) -> (4, 4)."""
        return shared_kernel(self._program)

    def _path_in(self, tree: Tree) -> dict[int, int]:
        """Return the link that carries each base on the path, in order."""
        bases = sorted(tree.bases_among(tree.between(self._ends)))
        return {m: tree.bases[m].frame.link for m in bases}
