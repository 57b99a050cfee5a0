"""A branch: the assemblies that joints lead to from one, without a singularity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.vectorize import vectorize
from armillary.kinematics.closing.block_programs import BlockPrograms
from armillary.kinematics.closing.grid import Grid
from armillary.kinematics.closing.stages import (
    block_programs,
    earlier_blocks,
    grid_of,
    inputs_program,
)
from armillary.model.fields import kept
from armillary.model.workcell import Workcell
from armillary.trace import Port

__all__ = ["Branch", "home_branch"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Fields = dict[str, Array]


class Branch:
    """The assemblies of a cell that are connected with one, stored on grids.

    Each block has a table over the cells of its `Grid`. An assembly there is the one to
    which the straight way from the given one leads, or where that is blocked, the way
    from a neighbouring cell. Cells where loops cannot be closed have
    the assembly of the nearest one where they can.

    Attributes:
        cell: Whose loops.
        seed: The assembly: positions of all joints, passive ones last.
    """

    def __init__(self, cell: Workcell, seed: Sequence[float]) -> None:
        """Begin at an assembly."""
        self.cell = cell
        self.seed = np.array(seed, dtype=np.float64)

    def tables(self, blocks: Sequence[int]) -> dict[str, Fields]:
        """Return the tables of some blocks, by name."""
        return {
            block_programs(self.cell, b).column("assemblies"): kept(
                self, ("table", b), lambda b=b: self._table(b)
            )
            for b in blocks
        }

    def _table(self, number: int) -> Fields:
        programs, filled = block_programs(self.cell, number), self._filled(number)
        u0, p0 = filled.u0[filled.source], filled.p0[filled.source]
        with np.errstate(all="ignore"):
            j0, reciprocal0 = vectorize(programs.implicit, u0, p0)
        j0[~np.isfinite(j0).all(axis=(1, 2))] = 0.0  # singular: no use as a start
        fields = {"u0": u0, "p0": p0, "j0": j0, "reciprocal0": reciprocal0}
        return {programs.column(name): values for name, values in fields.items()}

    def _filled(self, number: int) -> _Filling:
        """Return the assemblies of a block over its grid, which this keeps."""
        return kept(self, ("filled", number), lambda: self._fill(number))

    def _fill(self, number: int) -> _Filling:
        cell, grid = self.cell, grid_of(self.cell, number)
        system = cell.loop_system
        block = system.blocks[number]
        centres = grid.centres()
        on_inputs = grid.joints == block.inputs
        if on_inputs:
            u = centres
        else:
            independent = np.tile(self.seed[: system.count], (len(centres), 1))
            independent[:, list(grid.joints)] = centres
            u = self._inputs(number, independent, grid)[0]
        seed = np.array(
            [
                axis.reduced(self.seed[k])
                for k, axis in zip(grid.joints, grid.axes, strict=True)
            ]
        )
        seed_u = seed if on_inputs else self.seed[list(block.inputs)]
        first = int(grid.place(seed.tolist()))
        filled = _Filling(
            grid, first, np.vstack([u, seed_u]), self.seed[list(block.unknowns)]
        )
        if len(centres) > 1:
            straight = all(k < system.count for k in block.inputs)
            filled.spread(_follower(cell, number), straight=straight)
        return filled

    def _inputs(
        self, number: int, independent: Array, grid: Grid
    ) -> tuple[Array, Array]:
        """Return the inputs of a block, and their cells, at independent joints.

        grid: Whose centres the joints are.
        """
        earlier = earlier_blocks(self.cell, number)
        solved = [self._solved(b, independent, grid) for b in earlier]
        with np.errstate(all="ignore"):
            u, at, *_ = vectorize(
                inputs_program(self.cell, number), independent, *solved
            )
        return u, at

    def _solved(self, number: int, independent: Array, grid: Grid) -> Array:
        """Return the unknowns of a block at independent joints, NaN where open."""
        filled, own = self._filled(number), grid_of(self.cell, number)
        if own.joints == grid.joints and own.axes == grid.axes:
            return np.where(filled.is_own[:, None], filled.p0[:-1], np.nan)
        u, at = self._inputs(number, independent, grid)
        is_known = np.isfinite(at)
        source = filled.source[np.where(is_known, at, 0.0).astype(np.int64)]
        follow = _follower(self.cell, number)
        found: Array = follow(u, filled.u0[source], filled.p0[source])
        return np.where(is_known[:, None], found, np.nan)


class _Filling:
    """Assemblies at the centres of the cells of a grid, found from one to the next.

    Attributes:
        u0: Where each assembly is that may be stored; the last is the seed.
        p0: Its passive joints.
        source: For each cell the number of the assembly that it uses, -1 for none.
    """

    def __init__(self, grid: Grid, first: int, u: Array, p: Array) -> None:
        """Begin with a seed alone.

        Args:
            grid: The cells.
            first: The cell in which the seed is.
            u: The inputs at the centre of each cell, then at the seed.
            p: Passive joints at the seed.
        """
        cells = len(u) - 1
        self.u0 = u
        self.p0: Array = np.vstack([np.full((cells, len(p)), np.nan), p])
        self.source: Indices = np.full(cells, -1 if cells > 1 else cells, np.int64)
        self._first = first
        self._periods = np.array(grid.periods)
        self._after = _next_cells(grid)

    @property
    def is_own(self) -> Truths:
        """Return which cells have an assembly at their own centre."""
        return self.source == np.arange(len(self.source))

    def spread(self, follow: Kernel, *, straight: bool) -> None:
        """Fill cells from their neighbours, first the nearest to the seed.

        straight: Whether all are tried on the straight way from the seed before.
        """
        seed = len(self.source)
        to: Indices = np.arange(seed) if straight else np.array([self._first])
        by: Indices = np.full(len(to), seed)
        while to.size:
            u = self._nearest(to, by)
            found: Array = follow(u, self.u0[by], self.p0[by])
            closed = np.isfinite(found).all(axis=1)
            to, first = np.unique(to[closed], return_index=True)
            self.u0[to], self.p0[to] = u[closed][first], found[closed][first]
            self.source[to] = to
            by, to = self._neighbours(to)
            left = self.source[to] != to
            by, to = by[left], to[left]
        if self.source[self._first] < 0:
            self.source[self._first] = seed
        self._share()

    def _nearest(self, to: Indices, by: Indices) -> Array:
        """Return the inputs of cells, whole turns nearer to those of others."""
        period = np.where(self._periods > 0.0, self._periods, np.inf)
        turns = np.floor((self.u0[to] - self.u0[by]) / period + 0.5)
        return self.u0[to] - turns * self._periods

    def _share(self) -> None:
        """Give cells without an assembly that of the nearest one, cell by cell."""
        given = np.flatnonzero(self.source >= 0)
        while given.size:
            by, to = self._neighbours(given)
            fresh = self.source[to] < 0
            self.source[to[fresh]] = self.source[by[fresh]]
            given = np.unique(to[fresh])

    def _neighbours(self, cells: Indices) -> tuple[Indices, Indices]:
        """Return cells, as often as they have neighbours, and those."""
        by = np.tile(cells, len(self._after))
        to = self._after[:, cells].ravel()
        return by[to >= 0], to[to >= 0]


def _next_cells(grid: Grid) -> Indices:
    """Return the next cell of each in each direction, -1 at the ends, (2 d, cells)."""
    shape = grid.shape
    numbers: Indices = np.arange(int(np.prod(shape))).reshape(shape)
    found: list[Indices] = []
    for axis, is_round in enumerate(grid.is_round):
        for step in (1, -1):
            moved = np.roll(numbers, -step, axis)
            if not is_round:
                end = [slice(None)] * len(shape)
                end[axis] = slice(-1, None) if step > 0 else slice(0, 1)
                moved[tuple(end)] = -1
            found.append(moved.ravel())
    return np.array(found, dtype=np.int64)


def _follower(cell: Workcell, number: int) -> Kernel:
    """Return the kernel u, u0, p0 -> p of a block, NaN where the way is blocked."""

    def made() -> Kernel:
        system = cell.loop_system
        programs = BlockPrograms(system, system.blocks[number])  # equal ones share code
        d, k = programs.sizes
        shapes = {"u": (d,), "u0": (d,), "p0": (k,)}
        inputs = [Port(programs.column(name), size) for name, size in shapes.items()]
        stages = (
            programs.implicit,
            programs.start,
            *programs.solve,
            programs.arrived,
        )
        name, results = programs.column("follow"), (programs.column("p"),)
        return compile_pipeline(Pipeline(name, tuple(inputs), (), stages, results))()

    return kept(cell, ("follower", number), made)


def home_branch(cell: Workcell) -> Branch:
    """Return the branch of a cell's assembly at home, which the cell keeps."""
    return kept(cell, "home branch", lambda: Branch(cell, cell.joints.home))
