"""All poses of a state in one call: the kernel, and the bases that states move."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from armillary.kernel import shared_kernel
from armillary.kernel.arguments import as_inputs
from armillary.kinematics.all_frames_program import (
    product_program,
    survey_of,
    survey_program,
)
from armillary.kinematics.free_bases import Bases, Standing
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.trace import Port, Program

__all__ = ["Survey"]

Array = npt.NDArray[np.float64]

MOST_COMPILED: Final = 1_000
"""Frames of a cell; for more of them compiling takes longer than it saves."""


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
        self._standings: WeakKeyDictionary[Tree, Standing] = WeakKeyDictionary()

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
        standing = self._standings.get(tree)
        if standing is None:
            standing = Standing(self._bases, tree)
            self._standings[tree] = standing
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
