"""Twists of moving links per unit rate of joints, as stages behind those of poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

from armillary.errors import NotCompiled
from armillary.kernel.pipeline import Each, Stage
from armillary.kernel.python_kernel import PythonProgram
from armillary.kernel.tables import Table, index
from armillary.kinematics.inputs import program_of
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.kinematics.moving_links import (
    ATTACHED,
    CARRIED,
    STATE_BASES,
    MovingLinks,
    on_base,
)
from armillary.kinematics.state import State
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number, add, apply, cross, subtract, three
from armillary.trace import Program, trace

__all__ = ["RATES", "TWISTS", "MovingTwists"]

TWISTS: Final = "twists"
"""The column of the twists of moving links, shape (links, 6, columns).

Of each link, the velocity of its origin [m/s per unit] and the angular one [rad/s per
unit], in the axes of the world, a column for each joint asked for. If not all joints
are, a last column holds what the rates of the others add [m/s, rad/s].
"""

RATES: Final = "qd"
"""The column of the rates of all joints, shape (n,), of which the others are read."""


@final
@dataclass(frozen=True, eq=False)
class MovingTwists:
    """The twists of the moving links of a cell.

    Attributes:
        moving: The links.
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
        return tuple(
            Table(table.name, (*table.fields, more[table.name]))
            if table.name in more
            else table
            for table in self.moving.tables
        )

    def records(self, state: State) -> dict[str, Mapping[str, Any]]:
        """Return the records of the tables in a state of the cell."""
        found = self.moving.records(state)
        if ATTACHED in found:
            attached, carried = found[ATTACHED], found[CARRIED]
            found[ATTACHED] = {**attached, "carrier_twists": attached["carrier"]}
            found[CARRIED] = {**carried, "own": carried["link"]}
        return found

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages from `q` and `RATES` to `POSES` and `TWISTS`.

        Raises:
            NotCompiled: A script that cannot be compiled moves links, or there are too
                many.
        """
        moving = self.moving
        if not moving.is_compiled:
            raise NotCompiled(
                f"The motion of the {moving.count - 1} moving links of this cell "
                "cannot be compiled, because of a script or their number."
            )
        found: list[Stage] = []
        for stage in moving.stages:
            if isinstance(stage, Each) and stage.table == ATTACHED:
                found.append(
                    Each(ATTACHED, (Each(CARRIED, self._on_bases, within="carried"),))
                )
            elif isinstance(stage, Each) and stage.table == STATE_BASES:
                found.append(Each(STATE_BASES, (*stage.stages, self._program)))
            else:
                found.append(stage)
        if not moving.released.bases:
            found.append(self._program)
        return tuple(found)

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
        found: list[list[Number]] = []
        for row in range(6):
            entries = [columns[k][row] for k in self.joints]
            if self.others:
                rest = (columns[k][row] * qd[k] for k in self.others)
                entries.append(sum(rest, 0.0))
            found.append(entries)
        return found

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
