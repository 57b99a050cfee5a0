"""Poses of the links that joints move, as stages that other stages follow.

Links that are fixed to another share its pose. What is attached to what, and where
bases are, is in tables: states of a cell compile nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Each, Pipeline, Stage
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.tables import Table, index, reals, span
from armillary.kinematics.bound_state import branch_of
from armillary.kinematics.closing.branch import home_branch
from armillary.kinematics.closing.kernel import passive_stages, passive_tables
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.poses import MOST_COMPILED
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.joint import Joint
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD, WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace

__all__ = [
    "LIFTED",
    "LIFTS",
    "POSES",
    "SETTING",
    "FixedTo",
    "MovingLinks",
    "lift",
    "moving_links",
    "poses_of_links",
]

POSES: Final = "poses"
"""The column of the poses of moving links in the world, shape (n, 3, 4)."""

SETTING: Final = "setting"
LIFTS: Final = "lifts"
LIFTED: Final = "lifted_links"


class FixedTo(NamedTuple):
    """A moving link to which something is fixed, and where.

    Attributes:
        row: The row of that link in `POSES`.
        pose: Of what is fixed to it, in that link's frame.
    """

    row: int
    pose: Pose


class MovingLinks:
    """The links of a cell that joints move; the first row is that of the world.

    Attributes:
        cell: Whose links.
        links: Their numbers in the cell, -1 for the world.
        count: How many there are, with the world.
        joints: How many joints q has.
        released: The tree of the cell, with movable bases at the origin of the world.
        is_compiled: Whether stages compute their poses; otherwise `POSES` is an input,
            made by `interpreted`.
    """

    def __init__(self, cell: Workcell) -> None:
        """Find the links; the program is traced when it is needed."""
        self.cell = cell
        tree = Tree.of(cell)
        self.released = tree.released()
        moving = [k for k, drives in enumerate(tree.drives) if drives]
        self.links = (WORLD_LINK, *moving)
        self.count = len(self.links)
        self.joints = len(cell.joint_names)
        self._rows = {link: row for row, link in enumerate(self.links)}
        carriers = [tree.carriers[cell.owners[link]] for link in moving]
        self._rows_with: dict[int, list[int]] = {}
        """The rows of the links that each movable base carries."""
        for row, k in enumerate(carriers, start=1):
            if k >= 0:
                self._rows_with.setdefault(k, []).append(row)
        self._bases = tuple(sorted(self._rows_with))

    def __reduce__(self) -> tuple[Any, ...]:
        return moving_links, (self.cell,)

    def fixed_to(self, tree: Tree, link: int) -> FixedTo:
        """Return the moving link that a link is fixed to, and its pose in that."""
        pose: Pose = IDENTITY
        while link >= 0 and link not in self._rows:
            inner = tree.links[link].joint.precursor
            pose = tree.placement(link) @ (pose if inner.is_identity else inner @ pose)
            link = tree.parents[link]
        return FixedTo(self._rows[link], pose)

    def mounted(self, tree: Tree, manipulator: int) -> FixedTo:
        """Return the moving link that carries a base, and the base's pose in that."""
        at = tree.bases[manipulator].frame
        row, pose = self.fixed_to(tree, at.link)
        return FixedTo(row, pose @ at.pose)

    @property
    def joint_types(self) -> set[type[Joint]]:
        """Return the types of the joints that move the links."""
        links = self.cell.links
        return {type(links[link].joint) for link in self.links if link >= 0}

    # as stages of a pipeline

    @property
    def is_compiled(self) -> bool:
        """Return whether stages compute poses; otherwise they are an input."""
        return self._program is not None

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
        found = list(passive_tables(self.cell, self.selection))
        if self._bases:
            found += [
                Table(
                    SETTING,
                    (reals("bases", (len(self._bases), 4, 4)),),
                    is_single=True,
                ),
                Table(
                    LIFTS,
                    (
                        index("carrier", POSES),
                        reals("mounting", (3, 4)),
                        span("carried", LIFTED),
                    ),
                ),
                Table(LIFTED, (index("lifted", POSES),)),
            ]
        return tuple(found)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages from the column `q` to `POSES`; NaN where none is known."""
        if self._program is None:
            return ()
        found: list[Stage] = [*passive_stages(self.cell, self.selection)]
        if not self._bases:
            return (*found, self._program)
        poses = {"carrier": (3, 4), "mounting": (3, 4), "lifted": (3, 4)}
        lifted = trace(lift, name="lift", outputs=("lifted",), **poses)
        return (
            *found,
            Each(SETTING, (self._program,)),
            Each(LIFTS, (Each(LIFTED, (lifted,), within="carried"),)),
        )

    def records(self, state: State) -> dict[str, Mapping[str, Any]]:
        """Return the records of the tables in a state of the cell."""
        found: dict[str, Mapping[str, Any]] = {}
        if not self.is_compiled:
            return found
        if self.selection.passive:
            branch = branch_of(state) or home_branch(self.cell)
            needed = self.cell.loop_system.needed(self.selection.passive)
            found |= branch.tables(needed)
        if not self._bases:
            return found
        tree: Tree = state.tree
        where = {k: self.mounted(tree, k) for k in self._bases}
        lifted = [
            k for level in tree.levels for k in level if k in where and where[k].row
        ]
        bases = [
            np.eye(4) if where[k].row else where[k].pose.matrix() for k in self._bases
        ]
        rows = [self._rows_with[k] for k in lifted]
        counts = np.array([len(each) for each in rows], np.int64)
        spans = np.stack([np.cumsum(counts) - counts, counts], axis=1)
        return found | {
            SETTING: {"bases": np.array([bases])},
            LIFTS: {
                "carrier": np.array([where[k].row for k in lifted], np.int64),
                "mounting": np.array(
                    [where[k].pose.matrix()[:3] for k in lifted]
                ).reshape(-1, 3, 4),
                "carried": spans,
            },
            LIFTED: {"lifted": np.array([k for each in rows for k in each], np.int64)},
        }

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
        tree = state.tree
        frames = [FrameRef(link, IDENTITY) for link in self.links]
        poses = np.empty((len(Q), self.count, 3, 4))
        for row, q in zip(poses, Q.tolist(), strict=True):
            found = poses_of(tree, q, frames, IN_WORLD)
            row[:] = [X.matrix()[:3] for X in found]
        return poses

    @property
    def has_bases(self) -> bool:
        """Return whether a base that may move carries some of them."""
        return bool(self._bases)

    @cached_property
    def selection(self) -> Inputs:
        """Return what programs of poses take: all joints, and movable bases."""
        n, every = len(self.cell.joint_names), range(len(self.cell.joints.home))
        home = self.cell.joints.home
        return Inputs(tuple(every[:n]), home, (), self._bases, tuple(every[n:]))

    @cached_property
    def _program(self) -> Program | None:
        if self.count > MOST_COMPILED:
            return None
        frames = [FrameRef(link, IDENTITY) for link in self.links]

        def equations(now: Tree, q: list[Number]) -> Any:
            return [
                [[*r, p] for r, p in zip(X.rotation, X.position, strict=True)]
                for X in poses_of(now, q, frames, IN_WORLD)
            ]

        program = program_of(
            equations, self.released, self.selection, name="links", output=POSES
        )
        return None if isinstance(program, PythonProgram) else program


def moving_links(cell: Workcell) -> MovingLinks:
    """Return the moving links of a cell, which the cell keeps."""
    return kept(cell, "moving links", lambda: MovingLinks(cell))


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
    return kept(state, ("poses of links", kind), made)


def _compiled(moving: MovingLinks, dtype: str) -> CompiledPipeline:
    pipeline = Pipeline("links", moving.inputs, moving.tables, moving.stages, (POSES,))
    return compile_pipeline(pipeline, dtype=dtype)


def lift(carrier: Any, mounting: Any, lifted: Any) -> Any:
    """Return the pose of a link on a base that another link carries."""
    X = Pose.from_matrix(carrier) @ Pose.from_matrix(mounting)
    return (X @ Pose.from_matrix(lifted)).matrix()[:3]
