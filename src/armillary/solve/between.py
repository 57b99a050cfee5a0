"""One pair of frames over many states."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from armillary.equations.chain import Key, Layout, ancestry, link_of
from armillary.equations.poses import poses_program
from armillary.equations.selection import Selection
from armillary.errors import StateError
from armillary.kernel import Kernel, shared_kernel
from armillary.model.workcell import FrameAt, Workcell
from armillary.solve.state import State

Array = npt.NDArray[np.float64]


class Between:
    """The pose of one frame in another, for all states that hold things alike.

    It is made by `cell.between`, which compiles the path between the two once. A state
    in which something on that path is held or placed otherwise is refused, rather than
    answered for a path that is no more.

    Attributes:
        kernel: From q to the pose, (..., n) -> (..., 4, 4).
    """

    def __init__(
        self, cell: Workcell, frame: str, relative_to: str, state: State
    ) -> None:
        """Compile the path between two frames as it is in `state`."""
        self._cell = cell
        self._ends = cell.frame(frame), cell.frame(relative_to)
        self._names = frame, relative_to
        self._path = self._path_in(state.layout)
        n = len(cell.joint_names)
        selection = Selection(tuple(range(n)), (0.0,) * n)
        program = poses_program(
            state.layout,
            [self._ends[0]],
            self._ends[1],
            single=True,
            form="matrix",
            selection=selection,
        )
        self.kernel: Kernel = shared_kernel(program)

    def __call__(self, state: State) -> Array:
        """Return the pose in a state, shape (4, 4).

        Raises:
            StateError: What stands between the frames is held otherwise in it.
        """
        return self.many([state])[0]

    def many(self, states: Iterable[State]) -> Array:
        """Return the poses in k states, shape (k, 4, 4).

        Raises:
            StateError: What stands between the frames is held otherwise in one.
        """
        rows: list[tuple[float, ...]] = []
        for number, state in enumerate(states):
            bound = state.bound(self._cell)
            if self._path_in(bound.layout) != self._path:
                raise StateError(
                    f"The path from '{self._names[1]}' to '{self._names[0]}' is not "
                    f"the same in state {number}: something on it was gripped, "
                    "released or moved. Ask the cell again with that state."
                )
            rows.append(bound.q)
        q = np.array(rows, dtype=np.float64)
        poses: Array = self.kernel(q.reshape(len(rows), len(self._cell.joint_names)))
        return poses

    def _path_in(self, layout: Layout) -> dict[int, FrameAt]:
        """Return where the bases on the path stand: all that a state may change."""
        lines = [ancestry(layout, link_of(end)) for end in self._ends]
        shared = set(lines[0]) & set(lines[1])
        path: set[Key] = {key for line in lines for key in line if key not in shared}
        # The base of a manipulator is on the path where its first link is.
        return {
            m: layout.supports[m]
            for m, k in path
            if self._cell.manipulators[m].parents[k] < 0
        }
