"""Poses of very many frames: loops over tables in place of straight code.

Straight code of thousands of frames takes long to compile, and one call of it is bound
by the speed at which machine code is fetched. Here a frame is a record: what carries
it, and constants. The pose of a joint of a common type is

    X(q) = M_0 + M_1 sin q + M_2 cos q + M_3 q,

so that one formula serves all of them; joints of other types have straight code for
their own pose alone. Links that joints move come level by level, each behind the one
that carries it. All other frames are fixed to those, and come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.stages import Each, Stage
from armillary.kernel.tables import Table, index, reals, span
from armillary.kinematics.inputs import Inputs, program_of
from armillary.model.frame import FrameRef
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.joints.paul import PaulPrismatic, PaulRevolute
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw
from armillary.model.link_poses import LinkPoses
from armillary.model.motion import TracedMotion
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK
from armillary.spatial.pose import IDENTITY, Pose, matrices_of
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace
from armillary.trace.functions import cos, sin
from armillary.trace.program import Shape

__all__ = ["FrameLoop"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

COMMON: Final = {
    *(Revolute, Prismatic, Screw),
    *(CraigRevolute, CraigPrismatic, PaulRevolute, PaulPrismatic),
}
"""Joints whose pose is linear in 1, sin q, cos q and q."""

WORLD: Final = "world"
LEVELS: Final = "levels"
COMMONS: Final = "commons"
OTHERS: Final = "others"
FIXED: Final = "fixed"
FOUR: Final = range(4)

JOINT_POSES: Final = "joint_poses"
"""The column of the poses of joints of other types, shape (m, 3, 4)."""


class CarriedPlace(NamedTuple):
    """Where a link is: fixed to another, and to a base that states move.

    Attributes:
        carrier: The nearest link below it that a joint moves, or the world.
        base: The number of the movable base between them, -1 if there is none.
        pose: Of its outer frame in that base, or in the carrier.
    """

    carrier: int
    base: int
    pose: Pose


@final
class FrameLoop:
    """The stages that compute the poses of frames in the world by loops over tables.

    Attributes:
        column: The column of poses: of the frames, then of links that carry them.
        stages: What computes them from the joint positions `q`.
        tables: What the stages read.
    """

    def __init__(
        self,
        tree: Tree,
        frames: Sequence[FrameRef],
        bases: Sequence[int],
        selection: Inputs,
        *,
        column: Port,
    ) -> None:
        """Sort frames by what carries them.

        Args:
            tree: What moves, with all movable bases at the origin of the world.
            frames: Whose poses.
            bases: The movable bases that carry some of the frames.
            selection: What programs take: all joints, and none of them passive.
            column: The column of the poses of frames, shape (k, 3, 4) or (k, 4, 4).

        Raises:
            NotCompiled: A joint cannot be compiled.
        """
        self._tree = tree
        self._bases = {tree.base_link(k): place for place, k in enumerate(bases)}
        self._places: dict[int, CarriedPlace] = {
            WORLD_LINK: CarriedPlace(WORLD_LINK, -1, IDENTITY)
        }
        levels = self._levels(at.link for at in frames)
        moving = sorted(levels, key=levels.__getitem__)
        # A link that moves, or the world, has the row of the frame that it is.
        rows: dict[int, int] = {}
        for row, at in enumerate(frames):
            if at.pose.is_identity and (at.link in levels or at.link == WORLD_LINK):
                rows.setdefault(at.link, row)
        count = len(frames)
        for link in (WORLD_LINK, *moving):
            if link not in rows:
                rows[link] = count
                count += 1
        common = [link for link in moving if self._is_common(link)]
        other = [link for link in moving if not self._is_common(link)]
        taken = {*rows.values()}
        fixed = [(row, at) for row, at in enumerate(frames) if row not in taken]
        self._world = rows[WORLD_LINK]
        self._nodes_of = (
            self._nodes(rows, [(rows[k], self._place(k)) for k in common]),
            self._nodes(rows, [(rows[k], self._place(k)) for k in other]),
            self._nodes(rows, [(row, self._at(at)) for row, at in fixed]),
        )
        self._joints = len(selection.inputs)
        self._formulas = self._joint_formulas(common)
        self._drives = np.array([tree.drives[k][0] for k in common]).reshape(-1, 3)
        self._spans = np.stack(
            [
                _spans([levels[k] for k in links], max(levels.values(), default=0))
                for links in (common, other)
            ],
            axis=1,
        )
        # What there is none of has no table.
        X, row = column.shape[1:], (3, 4)
        stages: list[Stage] = []
        steps: list[Stage] = []
        if common:
            one = {"coordinate": (), "rate": (), "shift": (), "formula": (4, 3, 4)}
            program = _program(X[0], COMMONS, _common, carrier=X, **one)
            steps.append(Each(COMMONS, (program,), within=f"{LEVELS}_{COMMONS}"))
        if other:
            program = _program(X[0], OTHERS, _other, carrier=X, offset=row, joint=row)
            steps.append(Each(OTHERS, (program,), within=f"{LEVELS}_{OTHERS}"))
            stages.append(self._others_program(other, selection))
        stages.append(Each(WORLD, (_program(X[0], WORLD, _same, pose=X),)))
        if steps:
            stages.append(Each(LEVELS, tuple(steps)))
        if fixed:
            program = _program(X[0], FIXED, _fixed, carrier=X, offset=row)
            stages.append(Each(FIXED, (program,)))
        present = {WORLD: True, LEVELS: steps, COMMONS: common, OTHERS: other}
        present |= {FIXED: fixed}
        self.stages = tuple(stages)
        self.column = Port(column.name, (count, *X))
        self.tables = tuple(_tables(self.column, [k for k, v in present.items() if v]))

    def pipeline(self, name: str) -> Pipeline:
        """Return the pipeline from `q` to the column of poses."""
        q = Port("q", (self._joints,))
        scratch = (self.column,)
        return Pipeline(
            name, (q,), self.tables, self.stages, (self.column.name,), scratch
        )

    def records(self, bases: Array) -> dict[str, Mapping[str, Any]]:
        """Return the records of the tables.

        bases: The poses of the movable bases in the world, shape (k, 4, 4).
        """
        common, other, fixed = self._nodes_of
        every: dict[str, dict[str, Any]] = {
            WORLD: {"pose": np.eye(4)[np.newaxis, : self.column.shape[1]]},
            LEVELS: {COMMONS: self._spans[:, 0], OTHERS: self._spans[:, 1]},
            COMMONS: {
                "carrier": common.carriers,
                "coordinate": self._drives[:, 0].astype(np.int64),
                "rate": self._drives[:, 1],
                "shift": self._drives[:, 2],
                "formula": (common.offsets[:, None] @ self._formulas)[:, :, :3],
            },
            OTHERS: {
                "carrier": other.carriers,
                "offset": other.offsets[:, :3].copy(),
                "joint": np.arange(len(other.rows)),
            },
            FIXED: {"carrier": fixed.carriers, "offset": fixed.offsets[:, :3].copy()},
        }
        own = [self._world], common.rows, other.rows, fixed.rows
        for name, rows in zip((WORLD, COMMONS, OTHERS, FIXED), own, strict=True):
            every[name]["own"] = rows
        for name, (at, fields) in self.moved(bases).items():
            for field, values in fields.items():
                every[name][field.removeprefix(f"{name}_")][at] = values
        return {
            table.name: {
                field.name: every[table.name][field.name.removeprefix(f"{table.name}_")]
                for field in table.fields
            }
            for table in self.tables
        }

    def moved(
        self, bases: Array
    ) -> dict[str, tuple[Indices, dict[str, npt.NDArray[Any]]]]:
        """Return the records that movable bases decide, as `PipelineRecords.changed`.

        bases: Their poses in the world, shape (k, 4, 4).
        """
        found: dict[str, tuple[Indices, dict[str, npt.NDArray[Any]]]] = {}
        for name, nodes in zip((COMMONS, OTHERS, FIXED), self._nodes_of, strict=True):
            at = np.flatnonzero(nodes.bases >= 0)
            if len(at):
                X = bases[nodes.bases[at]] @ nodes.offsets[at]
                if name == COMMONS:
                    formula = (X[:, None] @ self._formulas[at])[:, :, :3]
                    found[name] = at, {f"{name}_formula": formula}
                else:
                    found[name] = at, {f"{name}_offset": X[:, :3]}
        return found

    # what carries what

    def _place(self, link: int) -> CarriedPlace:
        """Return where a link is; one that a joint moves, where its joint begins."""
        path: list[int] = []
        while link not in self._places:
            path.append(link)
            link = self._tree.parents[link]
        place = self._places[link]
        for step in reversed(path):
            if link >= 0 and self._tree.drives[link]:
                place = CarriedPlace(link, -1, IDENTITY)
            if step in self._bases:
                place = CarriedPlace(WORLD_LINK, self._bases[step], IDENTITY)
            inner = self._tree.placement(step) @ self._tree.links[step].joint.precursor
            place = place._replace(pose=place.pose @ inner)
            self._places[step], link = place, step
        return place

    def _at(self, at: FrameRef) -> CarriedPlace:
        """Return where a frame is."""
        if at.link == WORLD_LINK or self._tree.drives[at.link]:
            return CarriedPlace(at.link, -1, at.pose)
        place = self._place(at.link)
        return place._replace(pose=place.pose @ at.pose)

    def _levels(self, links: Iterable[int]) -> dict[int, int]:
        """Return the moving links that carry some links, and the level of each."""
        found: dict[int, int] = {}
        for link in links:
            path: list[int] = []
            at = self._at(FrameRef(link, IDENTITY)).carrier
            while at != WORLD_LINK and at not in found:
                path.append(at)
                at = self._place(at).carrier
            for step in reversed(path):
                found[step] = 0 if at == WORLD_LINK else found[at] + 1
                at = step
        return found

    def _nodes(
        self, rows: Mapping[int, int], placed: Sequence[tuple[int, CarriedPlace]]
    ) -> _Nodes:
        """Return what frames are fixed to, as arrays.

        Args:
            rows: The row of each moving link.
            placed: The rows of frames, and where they are.
        """
        return _Nodes(
            np.array([row for row, _ in placed], np.int64),
            np.array([rows[place.carrier] for _, place in placed], np.int64),
            np.array([place.base for _, place in placed], np.int64),
            matrices_of([place.pose for _, place in placed]),
        )

    # joints

    def _is_common(self, link: int) -> bool:
        return type(self._tree.links[link].joint) in COMMON

    def _joint_formulas(self, links: Sequence[int]) -> Array:
        """Return M_0 to M_3 of joints, shape (n, 4, 4, 4)."""
        known: dict[TracedMotion, Array] = {}  # which keeps them, and so their hashes
        found = np.zeros((len(links), 4, 4, 4))
        for row, link in zip(found, links, strict=True):
            motion = self._tree.links[link].joint.motion  # equal joints share it
            if motion not in known:
                known[motion] = _formula(motion)
            row[:] = known[motion]
        return found

    def _others_program(self, links: Sequence[int], selection: Inputs) -> Program:
        """Return the program q -> the poses of joints that are not of common types."""

        def equations(now: Tree, q: list[Number]) -> Any:
            poses = LinkPoses(now, q, WORLD_LINK)
            found: list[Any] = []
            for link in links:
                motion = now.links[link].joint.motion
                X = motion.pose(*poses.joint_positions(link))
                found.append(
                    [[*r, p] for r, p in zip(X.rotation, X.position, strict=True)]
                )
            return found

        plain = selection._replace(bases=())
        program = program_of(
            equations, self._tree, plain, name="joints", output=JOINT_POSES
        )
        if isinstance(program, PythonProgram):
            raise NotCompiled("A script moves one of the joints.")
        return program


class _Nodes(NamedTuple):
    """Frames, and what they are fixed to.

    Attributes:
        rows: Their rows, shape (n,).
        carriers: The rows of what carries them, shape (n,).
        bases: The numbers of movable bases between, -1 without one, shape (n,).
        offsets: The poses of the frames in those, shape (n, 4, 4).
    """

    rows: Indices
    carriers: Indices
    bases: Indices
    offsets: Array


def _formula(motion: TracedMotion) -> Array:
    """Return M_0 to M_3 of a joint of a common type, shape (4, 4, 4)."""
    # At 0, pi and +-pi/2: M_0 + M_2, M_0 - M_2 + pi M_3, M_0 +- (M_1 + pi/2 M_3).
    quarter = 0.5 * math.pi
    at_zero, at_pi, ahead, back = (
        motion.pose(q).matrix() for q in (0.0, math.pi, quarter, -quarter)
    )
    constant = 0.5 * (ahead + back)
    by_cos = at_zero - constant
    by_q = (at_pi - constant + by_cos) / math.pi
    return np.stack([constant, ahead - constant - quarter * by_q, by_cos, by_q])


def _spans(levels: Sequence[int], last: int) -> Indices:
    """Return the range of each level in a list sorted by it, shape (last + 1, 2)."""
    counts = np.bincount(np.array(levels, np.int64), minlength=last + 1)
    return np.stack([np.cumsum(counts) - counts, counts], axis=1)


def _tables(column: Port, present: Sequence[str]) -> Iterator[Table]:
    """Yield tables; fields have the name of their table in front.

    Args:
        column: The column of poses.
        present: The names of the tables that have records.
    """
    for table in present:
        own, carrier = (
            index(f"{table}_{end}", column.name) for end in ("own", "carrier")
        )
        offset = reals(f"{table}_offset", (3, 4))
        match table:
            case "world":
                fields = own, reals("world_pose", column.shape[1:])
            case "levels":
                names = (name for name in (COMMONS, OTHERS) if name in present)
                fields = (*(span(f"levels_{name}", name) for name in names),)
            case "commons":
                fields = (
                    *(own, carrier, index("commons_coordinate", "q")),
                    *(reals("commons_rate"), reals("commons_shift")),
                    reals("commons_formula", (4, 3, 4)),
                )
            case "others":
                fields = own, carrier, offset, index("others_joint", JOINT_POSES)
            case _:
                fields = own, carrier, offset
        yield Table(table, fields, is_single=table == WORLD)


def _program(
    rows: int, table: str, pose: Callable[..., Any], /, **shapes: Shape
) -> Program:
    """Return the program of the pose of a record of a table, with so many rows."""
    fields = {f"{table}_{name}": shape for name, shape in shapes.items()}
    return trace(
        lambda *given: pose(*given)[:rows],
        name=table,
        outputs=(f"{table}_own",),
        **fields,
    )


def _common(carrier: Any, coordinate: Any, rate: Any, shift: Any, formula: Any) -> Any:
    """Return the pose of a link behind a joint of a common type."""
    q = rate * coordinate + shift
    factors = 1.0, sin(q), cos(q), q
    rows = [
        [sum(f * M[i][j] for f, M in zip(factors, formula, strict=True)) for j in FOUR]
        for i in FOUR[:3]
    ]
    return (Pose.from_matrix(carrier) @ Pose.from_matrix(rows)).matrix()


def _other(carrier: Any, offset: Any, joint: Any) -> Any:
    """Return the pose of a link behind any other joint, whose pose is known."""
    X_WF = Pose.from_matrix(carrier) @ Pose.from_matrix(offset)
    return (X_WF @ Pose.from_matrix(joint)).matrix()


def _fixed(carrier: Any, offset: Any) -> Any:
    """Return the pose of a frame that is fixed to a link, or to the world."""
    return (Pose.from_matrix(carrier) @ Pose.from_matrix(offset)).matrix()


def _same(pose: Any) -> Any:
    return pose
