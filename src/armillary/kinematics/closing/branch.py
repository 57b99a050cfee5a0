"""A branch: the assemblies that joints lead to from one, without a singularity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.disk_cache import cached_arrays
from armillary.kernel import Kernel
from armillary.kernel.compiler import emitter_fingerprint
from armillary.kernel.host import host
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.references import vectorize
from armillary.kinematics.closing.block_programs import BlockPrograms
from armillary.kinematics.closing.stages import (
    AssemblyGrid,
    block_programs,
    earlier_blocks,
    grid_of,
    inputs_program,
    nearest_rows,
)
from armillary.model.fields import kept
from armillary.model.loops.system import Block
from armillary.model.workcell import Workcell
from armillary.trace import Port

__all__ = ["PARTS", "Branch", "Fields", "home_branch"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Fields = dict[str, Array]

MAKERS: Final = (
    "armillary.kinematics.closing.block_programs",
    "armillary.kinematics.closing.branch",
    "armillary.kinematics.closing.stages",
)
"""Modules on which tables depend."""
PARTS: Final = 16
"""Parts in which the ways of blocks are walked whose inputs earlier blocks make."""
SAFE: Final = 0.02
"""The least determinant on ways to safe cells, compared with that at the seed."""
SAME: Final = 1e-6
"""Difference of passive joints at a corner, by two ways, that counts as rounding."""
ON_BORDER: Final = 1e-9
"""Turns by which points on the border, half a turn from the seed, count as nearer."""


class Branch:
    """The assemblies of a cell to which straight ways lead from one, its seed.

    Each block has a table over the cells of its `AssemblyGrid`, with two assemblies for
    each cell, and the seed behind them. Where straight ways lead from the seed to the
    centre and all corners of a cell, and short ones from that centre to the same
    corners, the first is that of the centre, from which every row of the cell is then
    solved for: it is where its own straight way ends. In other cells the first is the
    seed, so that each row goes its own straight way. The second one is for rows whose
    straight way is blocked: the assembly of the centre, reached from a neighbouring
    cell, or that of the nearest cell with one.

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
        """Return the table of a block, which an earlier process may have made."""
        programs, system = block_programs(self.cell, number), self.cell.loop_system
        parts: list[str | Array] = [
            host().identity,
            emitter_fingerprint(),
            self.seed,
        ]
        # The table of a block follows from those before it.
        for b in range(number + 1):
            pipeline = _walking(self.cell, b).fingerprint
            inputs = inputs_program(self.cell, b).fingerprint
            parts += [pipeline, inputs, repr((grid_of(self.cell, b), system.blocks[b]))]
        arrays = cached_arrays(
            "loops", parts, lambda: self._made(number), made_by=MAKERS
        )
        columns = map(programs.column, ("u0", "p0", "j0", "reciprocal0"))
        return dict(zip(columns, arrays, strict=True))

    def _made(self, number: int) -> list[Array]:
        programs, filled = block_programs(self.cell, number), self._filled(number)
        u0, p0 = filled.u0, filled.p0
        with np.errstate(all="ignore"):
            j0, reciprocal0 = vectorize(programs.implicit, u0, p0)
        # Rates at a stored assembly, from which rows of its cell begin.
        j0[~np.isfinite(j0).all(axis=(1, 2))] = 0.0  # singular: no use as a start
        return [x[filled.records] for x in (u0, p0, j0, reciprocal0)]

    def _filled(self, number: int) -> _Filling:
        """Return the assemblies of a block over its grid, cached here."""
        return kept(self, ("filled", number), lambda: self._fill(number))

    def _fill(self, number: int) -> _Filling:
        cell, grid = self.cell, grid_of(self.cell, number)
        block = cell.loop_system.blocks[number]
        start, p = self.within(grid, block.inputs), self.seed[list(block.unknowns)]
        filled = _Filling(grid, start, p)
        if grid.cells == 1:
            return filled
        ways = kept(self, ("ways", grid), lambda: _Ways(self, grid))
        follow = _follower(cell, number)
        filled.give(ways.of(number), follow)
        filled.is_safe &= ways.is_whole
        if grid.joints != block.inputs:
            independent = np.tile(self.seed[: cell.loop_system.count], (grid.cells, 1))
            independent[:, list(grid.joints)] = grid.centres()
            filled.amend(self._inputs(number, independent, grid)[0])
        filled.spread(follow)
        return filled

    def within(self, grid: AssemblyGrid, joints: Sequence[int]) -> Array:
        """Return joints of the seed, those between limits in the turn of a grid."""
        return np.array(grid.within(self.seed[list(joints)].tolist(), joints))

    def _inputs(
        self, number: int, independent: Array, grid: AssemblyGrid
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

    def _solved(self, number: int, independent: Array, grid: AssemblyGrid) -> Array:
        """Return the unknowns of a block at independent joints, NaN where open."""
        filled, own = self._filled(number), grid_of(self.cell, number)
        if own.joints == grid.joints and own.axes == grid.axes:
            return np.where(filled.is_own[:, None], filled.p0[:-2], np.nan)
        u, at = self._inputs(number, independent, grid)
        is_known = np.isfinite(at) & (at < own.cells)
        source = filled.source[np.where(is_known, at, 0.0).astype(np.int64)]
        follow = _follower(self.cell, number)
        unknowns, *_ = follow(u, filled.u0[source], filled.p0[source])
        return np.where(is_known[:, None], unknowns, np.nan)


class _Walked(NamedTuple):
    """A block on straight ways to centres of cells, then to corners.

    Attributes:
        u: Its inputs, shape (parts + 1, points, d).
        p: Its unknowns, shape (parts + 1, points, k); NaN behind what blocks a way.
        least: The least determinant on each way, shape (points,), compared with the one
            at the seed.
    """

    u: Array
    p: Array
    least: Array


class _Ways:
    """Straight ways from the seed of a branch to the centres and corners of a grid.

    Attributes:
        is_whole: Which cells have all their corners on one side of the seed. Along a
            joint that turns freely, ways to either side end half a turn from it.
    """

    def __init__(self, branch: Branch, grid: AssemblyGrid) -> None:
        """Choose where ways end: at most half a turn from the seed of a branch."""
        self._branch, self._grid = branch, grid
        self._walked: dict[tuple[int, int], _Walked] = {}
        self._start = branch.within(grid, grid.joints)
        period = np.array([axis.period * axis.is_free for axis in grid.axes])
        # The nearer way around: points beyond half a turn from the seed are reached
        # from the other side.
        whole = np.where(period > 0.0, period, np.inf)
        points = np.vstack([grid.centres(), grid.corners()])
        change = points - self._start
        turns = np.floor(np.abs(change) / whole + 0.5 - ON_BORDER) * np.sign(change)
        self._points: Array = points - turns * period
        # A cell whose corners are reached by different numbers of turns is split.
        corners = turns[grid.cells :][grid.corners_of_cells()]
        self.is_whole: Truths = (corners == corners[0]).all(axis=(0, 2))

    def of(self, number: int, parts: int = 0) -> _Walked:
        """Return the ways of a block.

        Args:
            number: Of the block.
            parts: In which it walks; 0 to choose.
        """
        system = self._branch.cell.loop_system
        block, count = system.blocks[number], system.count
        on_inputs = self._grid.joints == block.inputs
        if not parts:
            # Inputs that earlier blocks make move on curves, and are followed in short
            # straight parts; independent joints move straight.
            follows = any(k >= count for k in block.inputs) and not on_inputs
            parts = PARTS if follows else 1
        key = number, parts
        if key not in self._walked:
            t = np.arange(parts + 1)[:, None, None] / parts
            on_axes = self._start + t * (self._points - self._start)
            u = on_axes if on_inputs else self._inputs(block, on_axes)
            self._walked[key] = self._walk(number, u)
        return self._walked[key]

    def _inputs(self, block: Block, on_axes: Array) -> Array:
        """Return the inputs of a block, as earlier blocks make them."""
        branch, parts = self._branch, len(on_axes) - 1
        system = branch.cell.loop_system
        columns: list[Array] = []
        for k in block.inputs:
            if k in self._grid.joints:
                columns.append(on_axes[..., self._grid.joints.index(k)])
                continue
            b = system.block_of[k]
            place = system.blocks[b].unknowns.index(k)
            columns.append(self.of(b, parts).p[..., place])
        return np.stack(columns, axis=-1)

    def _walk(self, number: int, u: Array) -> _Walked:
        """Return the ways of a block whose inputs are known."""
        branch = self._branch
        block = branch.cell.loop_system.blocks[number]
        p: Array = np.empty((*u.shape[:2], len(block.unknowns)))
        p[0] = branch.seed[list(block.unknowns)]
        ratio, least = np.ones(u.shape[1]), np.ones(u.shape[1])
        follow = _follower(branch.cell, number)
        # Each part compares determinants with its own start, hence the products.
        for k in range(len(u) - 1):
            p[k + 1], there, lowest = follow(u[k + 1], u[k], p[k])
            least = np.fmin(least, ratio * lowest)
            ratio = ratio * there
        return _Walked(u, p, least)


class _Filling:
    """The assemblies of a block at the centres of the cells of a grid.

    Attributes:
        u0: Where each assembly is that may be stored: at the centres of cells, then at
            the seed; the last row is NaN and stands for a missing one.
        p0: Its passive joints.
        is_safe: Whether all rows of a cell are solved for from the assembly at its
            centre.
        source: For each cell the number of the assembly that leads there where straight
            ways are blocked; -1, the missing one, where it is not known.
    """

    def __init__(self, grid: AssemblyGrid, u: Array, p: Array) -> None:
        """Begin with a seed alone.

        Args:
            grid: The cells.
            u: The inputs at the seed.
            p: Passive joints at the seed.
        """
        self._grid, cells = grid, grid.cells
        self.u0: Array = np.full((cells + 2, len(u)), np.nan)
        self.p0: Array = np.full((cells + 2, len(p)), np.nan)
        self.u0[cells], self.p0[cells] = u, p
        self.is_safe: Truths = np.zeros(cells, np.bool_)
        self.source: Indices = np.full(cells, -1, np.int64)

    @property
    def is_own(self) -> Truths:
        """Return which cells have an assembly at their own centre."""
        return self.source == np.arange(len(self.source))

    @property
    def records(self) -> Indices:
        """Return the assemblies in the order of the table: two a cell, and the seed."""
        cells = len(self.source)
        if cells == 1:
            return np.array([cells])
        first = np.where(self.is_safe, np.arange(cells), cells)
        second = np.where(self.is_safe, cells, self.source)
        return np.concatenate([first, second, [cells]])

    def give(self, ways: _Walked, follow: Kernel) -> None:
        """Take the assemblies that straight ways lead to, and find which are safe.

        Along a single axis all are: the way to a row passes the centre, or ends on the
        way to it.

        Args:
            ways: To centres and corners.
            follow: The kernel of ways from one assembly to others.
        """
        grid, cells = self._grid, self._grid.cells
        u, p = ways.u[-1], ways.p[-1]
        self.u0[:cells], self.p0[:cells] = u[:cells], p[:cells]
        is_own = np.isfinite(p[:cells]).all(axis=1)
        self.source[is_own] = np.flatnonzero(is_own)
        self.is_safe = is_own
        if len(grid.axes) == 1:
            return
        self.is_safe = is_own & (ways.least[:cells] > SAFE)
        for corner in grid.corners_of_cells() + cells:
            some = np.flatnonzero(self.is_safe)
            at = corner[some]
            ends, *_ = follow(u[at], u[some], p[some])
            size = 1.0 + np.abs(p[some])
            same = (np.abs(ends - p[at]) < SAME * size).all(axis=1)
            self.is_safe[some] = same & (ways.least[at] > SAFE)

    def amend(self, u: Array) -> None:
        """Take the inputs at those centres to which no straight way leads."""
        left = np.flatnonzero(self.source < 0)
        self.u0[left] = u[left]

    def spread(self, follow: Kernel) -> None:
        """Fill cells without an assembly from their neighbours, cell by cell.

        Where there is none, they share that of a neighbour. Cells farther off have no
        second assembly.
        """
        # Breadth first from cells that straight ways reach: of each front, all
        # neighbours at once.
        after = _next_cells(self._grid)
        fresh = np.flatnonzero(self.source >= 0)
        while fresh.size:
            by, to = _neighbours(after, fresh)
            left = self.source[to] != to
            by, to = by[left], to[left]
            u = self._nearest(to, by)
            ends, *_ = follow(u, self.u0[by], self.p0[by])
            closed = np.isfinite(ends).all(axis=1)
            fresh, first = np.unique(to[closed], return_index=True)
            self.u0[fresh], self.p0[fresh] = u[closed][first], ends[closed][first]
            self.source[fresh] = fresh
        own = np.flatnonzero(self.source >= 0)
        for _ in self._grid.axes:  # cells that share a corner with one of these
            by, to = _neighbours(after, own)
            left = self.source[to] < 0
            self.source[to[left]] = self.source[by[left]]
            own = np.unique(np.concatenate([own, to[left]]))

    def _nearest(self, to: Indices, by: Indices) -> Array:
        """Return the inputs of cells, whole turns nearer to those of others."""
        return nearest_rows(self.u0[to], self.u0[by], self._grid.periods)


def _neighbours(after: Indices, cells: Indices) -> tuple[Indices, Indices]:
    """Return pairs of a cell and its neighbour, as two arrays.

    after: What `_next_cells` returns.
    """
    by = np.tile(cells, len(after))
    to = after[:, cells].ravel()
    return by[to >= 0], to[to >= 0]


def _next_cells(grid: AssemblyGrid) -> Indices:
    """Return the next cell of each in each direction, -1 at the ends, (2 d, cells)."""
    shape = grid.shape
    numbers: Indices = np.arange(int(np.prod(shape))).reshape(shape)
    neighbours: list[Indices] = []
    for number, axis in enumerate(grid.axes):
        for step in (1, -1):
            moved = np.roll(numbers, -step, number)
            if not axis.is_round:
                end = [slice(None)] * len(shape)
                end[number] = slice(-1, None) if step > 0 else slice(0, 1)
                moved[tuple(end)] = -1
            neighbours.append(moved.ravel())
    return np.array(neighbours, dtype=np.int64)


def _follower(cell: Workcell, number: int) -> Kernel:
    """Return the kernel u, u0, p0 -> p, there, least of walks of a block.

    p is NaN where the way is blocked; determinants are compared with the one at u0.
    """

    def made() -> Kernel:
        return compile_pipeline(_walking(cell, number))()

    return kept(cell, ("follower", number), made)


def _walking(cell: Workcell, number: int) -> Pipeline:
    """Return the pipeline of `_follower`."""

    def made() -> Pipeline:
        system = cell.loop_system
        programs = BlockPrograms(system, system.blocks[number])  # equal ones share code
        inputs = [
            Port(programs.column(name), programs.shapes[name])
            for name in ("u", "u0", "p0")
        ]
        stages = (
            programs.implicit,
            programs.walk_start,
            *programs.noting_walk,
            programs.arrived,
        )
        name, results = programs.column("follow"), ("p", "there", "least")
        return Pipeline(name, tuple(inputs), (), stages, results)

    return kept(cell, ("walking", number), made)


def home_branch(cell: Workcell) -> Branch:
    """Return the branch of a cell's assembly at home, cached by the cell."""
    return kept(cell, "home branch", lambda: Branch(cell, cell.joints.home))
