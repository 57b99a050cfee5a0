"""Poses of the links that joints move, as stages that other stages follow.

Links that are fixed to another share its pose. What is attached to what, and where
bases are, is in tables: states of a cell compile nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Each, Stage
from armillary.kernel.tables import Table, index, reals, span
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.kept_formulas import MOTION, kept_formula, motion_digest
from armillary.kinematics.poses import (
    MOST_COMPILED,
    FixedTo,
    ReleasedFrames,
    StandingBases,
)
from armillary.kinematics.state import State, branch_of
from armillary.model.fields import kept, kept_few
from armillary.model.frame import FrameRef
from armillary.model.joint import Joint
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose, matrices_of
from armillary.trace import Port, Program, trace

if TYPE_CHECKING:  # of large cells
    from armillary.kinematics.frame_loop import FrameLoop

__all__ = [
    "ATTACHED",
    "CARRIED",
    "POSES",
    "STATE_BASES",
    "FixedLinks",
    "MovingLinks",
    "moving_links",
    "on_base",
    "poses_of_links",
    "straight_links",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_STRAIGHT: Final = 24
"""Links in straight code; loops are faster for more, and compile at once."""

POSES: Final = "poses"
"""The column of the poses of moving links in the world, shape (n, 3, 4)."""

STATE_BASES: Final = "state_bases"
ATTACHED: Final = "attached_bases"
CARRIED: Final = "carried_links"


class FixedLinks(NamedTuple):
    """What links are fixed to while bases are attached to the same frames.

    Attributes:
        rows: The rows of the moving links that they move with, shape (n,).
        bases: The manipulators whose movable bases are nearest below them, -1 where
            they are fixed to the moving link itself; shape (n,).
        matrices: Their poses in those bases, or in the moving links, shape (n, 4, 4).
    """

    rows: Indices
    bases: Indices
    matrices: Array


class MovingLinks:
    """The links of a cell that joints move; the first row is that of the world.

    Attributes:
        cell: Whose links.
        links: Their numbers in the cell, -1 for the world.
        count: How many there are, with the world.
        joints: How many joints q has.
        released: The same as frames, and the bases that carry them.
        is_compiled: Whether stages compute their poses; otherwise `POSES` is an input,
            made by `interpreted`.
    """

    def __init__(self, cell: Workcell, most_straight: int = MOST_STRAIGHT) -> None:
        """Find the links; the program is traced when it is needed.

        most_straight: So many links are left to straight code.
        """
        self.cell = cell
        self._most_straight = most_straight
        moving = [k for k, drives in enumerate(cell.joints.drives) if drives]
        self.links = (WORLD_LINK, *moving)
        self.count = len(self.links)
        self.joints = len(cell.joint_names)
        self.released = ReleasedFrames(
            cell, [FrameRef(link, IDENTITY) for link in self.links]
        )
        self._rows = {link: row for row, link in enumerate(self.links)}
        self._fixed_below: dict[int, tuple[int, Pose]] = {}

    @property
    def selection(self) -> Inputs:
        """Return what programs of poses take: all joints, and movable bases."""
        return self.released.selection

    def __reduce__(self) -> tuple[Any, ...]:
        is_usual = self._most_straight == MOST_STRAIGHT
        return (moving_links if is_usual else straight_links), (self.cell,)

    def fixed_to(self, tree: Tree, link: int) -> FixedTo:
        """Return the moving link that a link is fixed to, and its pose in that."""
        # Up to the nearest base it is the same in all trees.
        rows = self._rows
        known = self._fixed_below.get(link)
        if known is None:
            bases = {*map(tree.base_link, range(len(tree.bases)))}
            known = self._fixed_to(tree, link, IDENTITY, bases)
            self._fixed_below[link] = known
        at, pose = known
        if at not in rows:
            at, pose = self._fixed_to(tree, at, pose, set())
        return FixedTo(rows[at], pose)

    def _fixed_to(
        self, tree: Tree, link: int, pose: Pose, ends: set[int]
    ) -> tuple[int, Pose]:
        """Return a link that carries another, and a pose that is fixed to that in it.

        Args:
            tree: What is attached to what.
            link: The other link.
            pose: In that.
            ends: Links that end the way, as moving links do.
        """
        while link not in self._rows and link not in ends:
            inner = tree.links[link].joint.precursor
            pose = tree.placement(link) @ (pose if inner.is_identity else inner @ pose)
            link = tree.parents[link]
        return link, pose

    def mounted(self, tree: Tree, manipulator: int) -> FixedTo:
        """Return the moving link that carries a base, and the base's pose in that."""
        at = tree.base(manipulator).frame
        row, pose = self.fixed_to(tree, at.link)
        return FixedTo(row, pose @ at.pose)

    def fixed_links(self, tree: Tree, links: Sequence[int]) -> FixedLinks:
        """Return what links are fixed to in all trees with the attachments of one."""
        movable = {tree.base_link(k): k for k in tree.movable}
        rows, bases, poses = [0], [-1], [IDENTITY]
        number = {WORLD_LINK: 0}
        for link in links:
            if link in number:
                continue
            number[link] = len(rows)
            pose, at, base = IDENTITY, link, -1
            while at >= 0 and at not in self._rows and base < 0:
                inner = tree.links[at].joint.precursor
                pose = pose if inner.is_identity else inner @ pose
                base = movable.get(at, -1)
                if base < 0:
                    pose = tree.placement(at) @ pose
                    at = tree.parents[at]
            row = self.mounted(tree, base).row if base >= 0 else self._rows[at]
            rows.append(row)
            bases.append(base)
            poses.append(pose)
        chosen = [number[link] for link in links]
        row_of, base_of = np.array([rows, bases], np.int64)[:, chosen]
        return FixedLinks(row_of, base_of, matrices_of(poses)[chosen])

    def base_frames(self, tree: Tree) -> Array:
        """Return where movable bases are in the moving links that carry them.

        Returns:
            Poses of all bases of the cell, shape (m, 4, 4); of those that cannot move
            they are where these were mounted.
        """
        if not tree.carried_bases:
            return tree.base_matrices
        frames = tree.base_matrices.copy()
        for k in tree.carried_bases:
            frames[k] = self.mounted(tree, k).pose.matrix()
        return frames

    @property
    def coordinates(self) -> int:
        """Return how many coordinates their joints have."""
        drives = self.cell.joints.drives
        return sum(len(drives[link]) for link in self.links if link >= 0)

    @property
    def joint_types(self) -> set[type[Joint]]:
        """Return the types of the joints that move the links."""
        links = self.cell.links
        return {type(links[link].joint) for link in self.links if link >= 0}

    @property
    def is_simple(self) -> bool:
        """Return whether poses are numbers wherever q is finite.

        They need not be where loops may not close, or where users' formulas end.
        """
        known = "armillary.model.joints."
        own = all(kind.__module__.startswith(known) for kind in self.joint_types)
        return own and len(self.cell.joints.home) == self.joints

    # as stages of a pipeline

    @property
    def is_compiled(self) -> bool:
        """Return whether stages compute poses; otherwise they are an input."""
        return self._loop is not None or self._program is not None

    @property
    def is_straight(self) -> bool:
        """Return whether straight code computes poses, rather than loops or Python."""
        return self._loop is None and self._program is not None

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Return the inputs of pipelines: joint positions, or poses."""
        if self.is_compiled:
            return (Port("q", (self.joints,)),)
        return (Port(POSES, (self.count, 3, 4)),)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables that the stages read."""
        if not self.is_compiled:
            return ()
        tables: list[Table] = []
        if self.selection.passive:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.kernel import passive_tables

            tables += passive_tables(self.cell, self.selection)
        bases = len(self.released.bases)
        if self._loop is not None:
            tables += self._loop.tables
        elif bases:
            tables.append(self.base_table)
        if bases:
            tables += [
                Table(
                    ATTACHED,
                    (
                        index("carrier", POSES),
                        reals("base_offset", (3, 4)),
                        span("carried", CARRIED),
                    ),
                ),
                Table(CARRIED, (index("link", POSES),)),
            ]
        return tuple(tables)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages from the column `q` to `POSES`; NaN where none is known."""
        if not self.is_compiled:
            return ()
        stages: list[Stage] = []
        if self.selection.passive:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.kernel import passive_stages

            stages += passive_stages(self.cell, self.selection)
        if self._loop is not None:
            stages += self._loop.stages
        elif self._program is not None:
            stage = self._program
            has_bases = bool(self.released.bases)
            stages.append(Each(STATE_BASES, (stage,)) if has_bases else stage)
        if not self.released.bases:
            return tuple(stages)
        poses = {"carrier": (3, 4), "base_offset": (3, 4), "link": (3, 4)}
        on_bases = trace(on_base, name="attached_link", outputs=("link",), **poses)
        return (
            *stages,
            Each(ATTACHED, (Each(CARRIED, (on_bases,), within="carried"),)),
        )

    @property
    def base_table(self) -> Table:
        """Return the table of the poses of movable bases."""
        field = reals("bases", (len(self.released.bases), 4, 4))
        return Table(STATE_BASES, (field,), is_single=True)

    @property
    def scratch(self) -> tuple[Port, ...]:
        """Return the scratch of pipelines with the stages: poses, where loops do."""
        return () if self._loop is None else (self._loop.column,)

    def pose_key(self, state: State) -> Hashable:
        """Return what decides, besides q, where the links are in a state.

        These are the poses of the movable bases that carry them, and the branch of
        closed loops, by all positions; what else is in the cell does not count.
        """
        tree = state.tree
        carriers = self._carriers(tree)
        # Passive joints are on one branch or another, depending on q.
        passive = state.passive.tobytes()
        positions = state.q.tobytes() if passive else b""
        return tuple([tree.base(k).frame for k in carriers]), passive, positions

    def free_bases(self, tree: Tree) -> frozenset[int]:
        """Return the bases in the world that carry neither moving links nor bases.

        What is moved with one of them are links that are fixed to it. They depend on
        what is attached to what.
        """

        def made() -> frozenset[int]:
            carried = tree.carried_bases
            above = (tree.ancestors(tree.base_link(k)) for k in carried)
            holders = {k for links in above for k in tree.bases_among(links)}
            return frozenset(tree.movable).difference(holders, self._carriers(tree))

        return kept(tree.alike or tree, ("free bases", self), made)

    def _carriers(self, tree: Tree) -> tuple[int, ...]:
        """Return the movable bases that carry moving links, in order."""

        def made() -> tuple[int, ...]:
            bases = map(tree.base_link, self.released.bases)
            above = (tree.bases_among(tree.ancestors(base)) for base in bases)
            every = {k for some in above for k in some}
            return tuple(sorted(every.intersection(tree.movable)))

        # They depend on the links that bases are attached to.
        def known() -> tuple[int, ...]:
            carried = tree.carried_bases
            attached = carried, tuple([tree.bases[k].frame.link for k in carried])
            return kept_few(self, "carriers", attached, made)

        return kept(tree.alike or tree, ("carriers", self), known)

    def records(self, state: State) -> dict[str, Mapping[str, Any]]:
        """Return the records of the tables in a state of the cell."""
        records: dict[str, Mapping[str, Any]] = {}
        if not self.is_compiled:
            return records
        if state.passive.size:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.branch import home_branch

            branch = branch_of(state) or home_branch(self.cell)
            needed = self.cell.loop_system.needed(self.selection.passive)
            records |= branch.tables(needed)
        if not self.released.bases:
            if self._loop is not None:
                records |= self._loop.records(np.empty((0, 4, 4)))
            return records
        bases, levels = self.standing(state)
        # One table has the bases of all levels: its records are worked off in order.
        nothing = np.empty(0, np.int64)
        counts = np.concatenate([nothing, *(level.counts for level in levels)])
        offsets = [level.offsets[:, :3] for level in levels]
        if self._loop is not None:
            records |= self._loop.records(bases)
        else:
            records[STATE_BASES] = {"bases": bases[np.newaxis]}
        return records | {
            ATTACHED: {
                "carrier": np.concatenate(
                    [nothing, *(level.holders for level in levels)]
                ),
                "base_offset": np.concatenate([np.empty((0, 3, 4)), *offsets]),
                "carried": np.stack([np.cumsum(counts) - counts, counts], axis=1),
            },
            CARRIED: {
                "link": np.concatenate([nothing, *(level.rows for level in levels)])
            },
        }

    def standing(self, state: State) -> StandingBases:
        """Return where the movable bases are in a state."""
        tree = state.tree
        holders = {k: self.mounted(tree, k) for k in self.released.bases}
        return self.released.standing(tree, holders, world=0)

    def interpreted(self, state: State, Q: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the poses of moving links by Python: (n, joints) -> (n, count, 3, 4).

        Raises:
            NotCompiled: A script that cannot be compiled moves a closed loop.
        """
        if self.selection.passive:
            raise NotCompiled(
                "The poses of this cell cannot be compiled, because of a script or its "
                "size; loops are solved for in compiled code only."
            )
        return self.released.interpreted(state.tree, Q)[..., :3, :]

    @cached_property
    def _program(self) -> Program | None:
        make = partial(self.released.program, form="rows", name="links")
        motion = motion_digest(self.cell)
        if motion is None or self.count > MOST_COMPILED:
            return make()
        return kept_formula("links", (motion, self.links), make, made_by=MOTION)

    @cached_property
    def _loop(self) -> FrameLoop | None:
        column = Port(POSES, (self.count, 3, 4))
        return self.released.loop(column, most=self._most_straight)


def moving_links(cell: Workcell) -> MovingLinks:
    """Return the moving links of a cell, cached by the cell."""
    return kept(cell, "moving links", lambda: MovingLinks(cell))


def straight_links(cell: Workcell) -> MovingLinks:
    """Return the same by straight code however many there are.

    Pages print it, and controllers have the twists of links beside it.
    """
    return kept(cell, "straight links", lambda: MovingLinks(cell, sys.maxsize))


def poses_of_links(
    moving: MovingLinks, state: State, dtype: npt.DTypeLike = np.float64
) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Return the function from joint positions to poses of moving links in a state.

    It takes (n, joints) and returns (n, count, 3, 4), of type `dtype` where compiled.
    """
    if not moving.is_compiled:
        return partial(moving.interpreted, state)
    if moving.count == 1:
        return lambda Q: np.tile(np.eye(4)[:3], (len(Q), 1, 1, 1))

    def made() -> Kernel:
        code = kept(moving, ("poses", kind), lambda: _compiled(moving, kind))
        return code(moving.records(state))

    kind = np.dtype(dtype).char
    return kept_few(moving, ("poses of links", kind), moving.pose_key(state), made)


def _compiled(moving: MovingLinks, dtype: str) -> CompiledPipeline:
    pipeline = Pipeline(
        "links", moving.inputs, moving.tables, moving.stages, (POSES,), moving.scratch
    )
    return compile_pipeline(pipeline, dtype=dtype)


def on_base(carrier: Any, base_offset: Any, link: Any) -> Any:
    """Return the pose of a link on a base that another link carries."""
    X = Pose.from_matrix(carrier) @ Pose.from_matrix(base_offset)
    return (X @ Pose.from_matrix(link)).matrix()[:3]
