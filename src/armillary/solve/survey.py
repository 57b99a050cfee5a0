"""All poses of a state in one call: the kernel, and the bases that states move."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.equations.survey import survey_program
from armillary.kernel import shared_kernel
from armillary.model.workcell import Workcell
from armillary.solve.state import State

Array = npt.NDArray[np.float64]


class Survey:
    """The poses of all frames of a cell, compiled once for all attachments.

    Bases that states may move are inputs of the kernel. Where one is held by a frame,
    that frame's pose must be known first: such bases are filled in, carriers first, and
    the rows of what they carry are multiplied on.
    """

    def __init__(self, cell: Workcell) -> None:
        """Compile the kernel of `cell`."""
        self.names = cell.frame_names[1:]
        self.rows = {name: k for k, name in enumerate(self.names)}
        frames = [cell.frame(name) for name in self.names]
        bolted = {mount.manipulator for mount in cell.mounts if mount.bolted}
        self._free = [
            k for k, m in enumerate(cell.manipulators) if m.name not in bolted
        ]
        self._places = {
            cell.manipulators[k].name: row for row, k in enumerate(self._free)
        }
        # The rows that move with each free base: its own and those bolted onto it.
        root = [self._root(cell, k) for k in range(len(cell.manipulators))]
        self._carried = {
            k: np.flatnonzero([root[at.manipulator] == k for at in frames])
            for k in self._free
        }
        self._cell = cell
        self._bases = np.array(
            [np.eye(4) for _ in self._free], dtype=np.float64
        ).reshape(-1, 4, 4)
        self._kernel = (
            shared_kernel(survey_program(cell, frames, self._free)) if frames else None
        )

    def _root(self, cell: Workcell, k: int) -> int:
        free = set(self._free)
        while k not in free and k >= 0:
            k = cell.supports[k].manipulator
        return k

    def __call__(self, state: State) -> Array:
        """Return the poses of all frames in the world, shape (k, 4, 4)."""
        if self._kernel is None:
            return np.empty((0, 4, 4))
        supports = state.layout.supports
        bases = self._bases.copy()
        held: list[int] = []
        for row, k in enumerate(self._free):
            support = supports[k]
            if support.manipulator >= 0:
                held.append(k)
            elif not support.pose.is_identity:
                bases[row] = support.pose.matrix()
        poses: Array = self._kernel(np.array(state.q), bases)
        done: set[int] = set()
        for k in held:
            self._settle(k, state, poses, done)
        poses.flags.writeable = False
        return poses

    def _settle(self, k: int, state: State, poses: Array, done: set[int]) -> None:
        """Move what manipulator k carries to where it is held, its carriers first."""
        supports = state.layout.supports
        waiting = [k]
        while waiting:
            k = waiting[-1]
            support = supports[k]
            below = self._root(self._cell, support.manipulator)
            if below >= 0 and supports[below].manipulator >= 0 and below not in done:
                waiting.append(below)
                continue
            waiting.pop()
            if k in done:
                continue
            done.add(k)
            holder = self._cell.manipulators[support.manipulator]
            link = holder.links[support.link].name
            X_WL = poses[self.rows[f"{holder.name}/{link}"]]
            rows = self._carried[k]
            poses[rows] = (X_WL @ support.pose.matrix()) @ poses[rows]
