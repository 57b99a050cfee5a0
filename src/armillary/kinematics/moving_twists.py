"""Twists of the links that joints move, per unit rate, as stages behind their poses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Final, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.stages import Each, Stage
from armillary.kernel.tables import Table, index, reals
from armillary.kinematics.inputs import program_of
from armillary.kinematics.jacobian import Twist, jacobian, twists_at_point
from armillary.kinematics.moving_links import (
    ATTACHED,
    CARRIED,
    POSES,
    STATE_BASES,
    MovingLinks,
    on_base,
)
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD, WORLD_LINK
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number, add, apply, cross, subtract, three
from armillary.trace import Port, Program, trace
from armillary.trace.functions import absolute, select

__all__ = ["TWISTS", "MovingTwists", "moving_twists"]

MOST_STRAIGHT_TWISTS: Final = 48
"""Joints, and links, whose twists are in straight code.

It has a number for each link and each joint. Loops over links compile sooner, and for
more are as fast.
"""

TWISTS: Final = "twists"
"""The column of the twists of moving links, shape (links, 6, columns).

Of each link, the velocity of its origin [m/s per unit] and the angular one [rad/s per
unit], in the axes of the world, a column for each joint asked for. If not all joints
are, a last column holds what the rates of the others add [m/s, rad/s].
"""

RATES: Final = "qd"
"""The column of the rates of all joints, shape (n,), of which the others are read."""


UNIT_TWISTS: Final = "unit_twists"
"""The column of the twists of links, about their origins, relative to what carries
their joint: one for each coordinate of each joint, shape (m, 6)."""

CARRYING: Final = "carrying_twists"
STANDING: Final = "standing_twists"


@final
class MovingTwists(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The twists of the moving links of a cell.

    Attributes:
        moving: The links, by straight code.
        joints: The joints that have a column, as indices into q.
    """

    moving: MovingLinks
    joints: tuple[int, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return MovingTwists, (self.moving, self.joints)

    @property
    def others(self) -> tuple[int, ...]:
        """Return the joints that have no column."""
        return tuple(k for k in range(self.moving.joints) if k not in self.joints)

    @property
    def columns(self) -> int:
        """Return how many columns there are."""
        return len(self.joints) + bool(self.others)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of the stages, those of `moving` among them."""
        more = {
            ATTACHED: index("carrier_twists", TWISTS),
            CARRIED: index("own", TWISTS),
        }
        tables = [
            Table(table.name, (*table.fields, more[table.name]))
            if table.name in more
            else table
            for table in self.moving.tables
        ]
        if self.is_straight:
            return tuple(tables)
        fields = [
            *(index(f"{end}_twists", TWISTS) for end in ("joint_carrier", "joint_own")),
            *(index(f"{end}_pose", POSES) for end in ("joint_carrier", "joint_own")),
            index("unit_twist", UNIT_TWISTS),
            *(reals("joint_column"), reals("joint_factor")),
        ]
        if self.others:
            fields += [index("joint_rate", RATES), reals("joint_rate_factor")]
        standing = Table(STANDING, (index("world_twists", TWISTS),), is_single=True)
        return *tables, standing, Table(CARRYING, tuple(fields))

    @property
    def is_straight(self) -> bool:
        """Return whether twists are computed by straight code, rather than loops."""
        sizes = self.moving.count - 1, len(self.joints)
        has_loops = bool(self.moving.selection.passive)
        return has_loops or min(sizes) <= MOST_STRAIGHT_TWISTS

    @property
    def scratch(self) -> tuple[Port, ...]:
        """Return the scratch of pipelines with the stages: twists, where loops do."""
        shape = self.moving.count, 6, self.columns
        return () if self.is_straight else (Port(TWISTS, shape),)

    def records(self, state: State) -> dict[str, Mapping[str, Any]]:
        """Return the records of the tables in a state of the cell."""
        records = self.moving.records(state)
        if ATTACHED in records:
            attached, carried = records[ATTACHED], records[CARRIED]
            records[ATTACHED] = {**attached, "carrier_twists": attached["carrier"]}
            records[CARRIED] = {**carried, "own": carried["link"]}
        if not self.is_straight:
            records[STANDING] = {"world_twists": np.zeros(1, np.int64)}
            records[CARRYING] = self._carrying_records
        return records

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages from `q` and `RATES` to `POSES` and `TWISTS`.

        Raises:
            NotCompiled: A script that cannot be compiled moves links, or there are too
                many.
        """
        moving = self.moving
        if not moving.is_straight:
            raise NotCompiled(
                f"The motion of the {moving.count - 1} moving links of this cell "
                "cannot be compiled, because of a script or their number."
            )
        # Twists of released links come behind their poses, then what is attached.
        has_bases = bool(moving.released.bases)
        released = moving.stages[:-1] if has_bases else moving.stages
        straight: Stage = self._program if self.is_straight else self._unit_program
        loops = () if self.is_straight else self._loops
        if not has_bases:
            return *released, straight, *loops
        on_bases = Each(CARRIED, self._on_bases, within="carried")
        in_world = Each(STATE_BASES, (straight,))
        return *released, in_world, *loops, Each(ATTACHED, (on_bases,))

    @property
    def _program(self) -> Program:
        moving = self.moving

        def equations(now: Tree, q: list[Number], qd: Any) -> Any:
            poses = LinkPoses(now, q, IN_WORLD.link)
            return [self._rows(poses, now, q, link, qd) for link in moving.links]

        program = program_of(
            equations,
            moving.released.tree,
            moving.released.selection,
            name="link_twists",
            output=TWISTS,
            **{RATES: (moving.joints,)},
        )
        if isinstance(program, PythonProgram):
            raise NotCompiled("The motion of links cannot be compiled.")
        return program

    def _rows(
        self, poses: LinkPoses, now: Tree, q: list[Number], link: int, qd: Any
    ) -> Any:
        if link < 0:
            return [[0.0] * self.columns for _ in range(6)]
        at = FrameRef(link, IDENTITY)
        columns = jacobian(now, q, Twist(at, IN_WORLD, at, IN_WORLD), poses)
        rows: list[list[Number]] = []
        for row in range(6):
            entries = [columns[k][row] for k in self.joints]
            if self.others:
                rest = (columns[k][row] * qd[k] for k in self.others)
                entries.append(sum(rest, 0.0))
            rows.append(entries)
        return rows

    # by a loop over links, each behind the one that carries it

    @property
    def _unit_program(self) -> Program:
        """Return the program q -> `UNIT_TWISTS`."""
        moving = self.moving

        def equations(now: Tree, q: list[Number]) -> Any:
            poses = LinkPoses(now, q, IN_WORLD.link)
            return [
                list(twist)
                for link in moving.links[1:]
                for twist in twists_at_point(
                    poses, link, poses.link_pose(link).position
                )
            ]

        tree, selection = moving.released.tree, moving.released.selection
        program = program_of(
            equations, tree, selection, name="unit_twists", output=UNIT_TWISTS
        )
        if isinstance(program, PythonProgram):
            raise NotCompiled("The motion of links cannot be compiled.")
        return program

    @property
    def _loops(self) -> tuple[Stage, ...]:
        """Return the stages from `UNIT_TWISTS` to `TWISTS`."""
        V = 6, self.columns

        def nothing(world_twists: Any) -> list[list[float]]:
            return [[0.0 for _ in row] for row in world_twists]

        world = trace(
            nothing,
            name="world_twists",
            outputs=("world_twists",),
            world_twists=V,
        )
        others = {"joint_rate": (), "joint_rate_factor": ()} if self.others else {}
        carried = trace(
            partial(_carried_twists, joints=len(self.joints)),
            name="joint_twists",
            outputs=("joint_own_twists",),
            joint_carrier_twists=V,
            joint_carrier_pose=(3, 4),
            joint_own_pose=(3, 4),
            unit_twist=(6,),
            joint_column=(),
            joint_factor=(),
            **others,
        )
        return Each(STANDING, (world,)), Each(CARRYING, (carried,))

    @cached_property
    def _carrying_records(self) -> dict[str, npt.NDArray[Any]]:
        """Return the records of `CARRYING`: one for each coordinate of each joint."""
        moving, tree = self.moving, self.moving.released.tree
        row_of = {link: row for row, link in enumerate(moving.links)}
        first = dict[int, int]()  # the row of `UNIT_TWISTS` of the first coordinate
        for link in moving.links[1:]:
            first[link] = sum(len(tree.drives[at]) for at in first)
        carriers = {link: self._carrier(tree, link, row_of) for link in first}
        depths: dict[int, int] = {WORLD_LINK: 0}

        def depth(link: int) -> int:
            path: list[int] = []
            while link not in depths:
                path.append(link)
                link = carriers[link]
            for step in reversed(path):
                depths[step] = depths[carriers[step]] + 1
            return depths[path[0] if path else link]

        place = {joint: k for k, joint in enumerate(self.joints)}
        rows: list[tuple[float, ...]] = []
        for link in sorted(first, key=depth):
            carrier = row_of[carriers[link]]
            for k, drive in enumerate(tree.drives[link]):
                column = place.get(drive.of, -1)
                shared = drive.of, 0.0 if column >= 0 else drive.multiplier
                unit = first[link] + k
                own = (carrier, row_of[link], unit, column, drive.multiplier)
                rows.append((*own, *shared))
                # What further coordinates add to is the link itself.
                carrier = row_of[link]
        table = np.array(rows)
        carrier, own, unit, joint = table[:, [0, 1, 2, 5]].astype(np.int64).T
        records: dict[str, npt.NDArray[Any]] = {
            "joint_carrier_twists": carrier,
            "joint_own_twists": own,
            "joint_carrier_pose": carrier,
            "joint_own_pose": own,
            "unit_twist": unit,
            "joint_column": table[:, 3],
            "joint_factor": table[:, 4],
        }
        if self.others:
            records |= {"joint_rate": joint, "joint_rate_factor": table[:, 6]}
        return records

    @staticmethod
    def _carrier(tree: Tree, link: int, row_of: Mapping[int, int]) -> int:
        """Return the nearest moving link below a link, or the world."""
        at = tree.parents[link]
        while at >= 0 and at not in row_of:
            at = tree.parents[at]
        return at if at >= 0 else WORLD_LINK

    @property
    def _on_bases(self) -> tuple[Program, Program]:
        X, V = (3, 4), (6, self.columns)
        twists = trace(
            _twists_on_base,
            name="attached_twists",
            outputs=("own",),
            carrier=X,
            base_offset=X,
            link=X,
            carrier_twists=V,
            own=V,
        )
        poses = {"carrier": X, "base_offset": X, "link": X}
        return twists, trace(on_base, name="attached_link", outputs=("link",), **poses)


def _carried_twists(
    carrier_twists: Any,
    carrier_pose: Any,
    own_pose: Any,
    unit: Any,
    column: Any,
    factor: Any,
    *other: Any,
    joints: int,
) -> Any:
    """Return the twists of a link, which its joint carries on from another link.

    `unit` is its twist for a unit rate of a coordinate. That has a column, in which
    `factor` counts; if not, its rate and a factor, `other`, count in the last one.
    """
    ends = (three([row[3] for row in pose]) for pose in (own_pose, carrier_pose))
    arm = subtract(*ends)
    columns: list[Any] = []
    for k, theirs in enumerate(_columns(carrier_twists)):
        v, w = three(theirs[:3]), three(theirs[3:])
        share = select(absolute(column - k) < 0.5, factor, 0.0)
        if k == joints:
            share = other[0] * other[1]
        moved = [*add(v, cross(w, arm)), *w]
        columns.append([a + share * b for a, b in zip(moved, unit, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _twists_on_base(
    carrier: Any, base_offset: Any, link: Any, carrier_twists: Any, own: Any
) -> Any:
    """Return the twists of a link on a base that another link carries.

    `link` and `own` are as if the base stood at the origin of the world.
    """
    X_WC = Pose.from_matrix(carrier)
    X_WB = X_WC @ Pose.from_matrix(base_offset)
    arm = subtract(X_WB @ Pose.from_matrix(link).position, X_WC.position)
    columns: list[Any] = []
    for theirs, mine in zip(_columns(carrier_twists), _columns(own), strict=True):
        v, w = three(theirs[:3]), three(theirs[3:])
        linear = add(add(v, cross(w, arm)), apply(X_WB.rotation, three(mine[:3])))
        columns.append([*linear, *add(w, apply(X_WB.rotation, three(mine[3:])))])
    return [list(row) for row in zip(*columns, strict=True)]


def _columns(matrix: Any) -> list[Any]:
    return [list(column) for column in zip(*matrix, strict=True)]


def moving_twists(moving: MovingLinks) -> MovingTwists:
    """Return the twists of links for given rates of all joints, the same ones."""
    return kept(moving, "twists", lambda: MovingTwists(moving, ()))
