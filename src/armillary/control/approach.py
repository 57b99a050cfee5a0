"""The pairs that a controller keeps apart: of links, and of links and obstacles.

What is compiled is in `approach_stages`; here are the tables that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.check_stages import CENTRES
from armillary.collision.tested_shapes import solids_of
from armillary.control.active_set import OTHER
from armillary.control.approach_stages import approach_stages
from armillary.control.obstacles import OBSTACLE, rod_around
from armillary.errors import ModelError
from armillary.kernel.pipeline import Stage
from armillary.kernel.pipeline_kernel import Callees
from armillary.kernel.tables import Table, code, index, reals, span
from armillary.kinematics.moving_links import POSES
from armillary.kinematics.moving_twists import TWISTS, MovingTwists
from armillary.kinematics.speed_bounds import SpeedBounds, speeds_are_known
from armillary.trace import Port

__all__ = ["NEARS", "OBSTACLES", "ROWS", "Approach"]

Array = npt.NDArray[np.float64]

ROWS: Final = "approach_rows"
NEARS: Final = "approach_nears"
OBSTACLES: Final = "obstacles"

FEWEST: Final = 64
"""Room for so many pairs at least; more of them compile other code."""

POSE: Final = (3, 4)
VECTOR: Final = (3,)
MOST: Final = 1e30


@dataclass(frozen=True, eq=False)
class Approach:
    """The pairs that a controller keeps apart.

    Attributes:
        twists: Of the moving links.
        check: The pairs of links, and where their shapes are.
        slots: How many obstacles a step can be given.
        width: How many numbers each has, those of capsules or of boxes.
        others: For how many rows that are not of pairs there is room, behind those.
    """

    twists: MovingTwists
    check: CollisionCheck | None
    slots: int
    width: int = OBSTACLE
    others: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Approach, (
            self.twists,
            self.check,
            self.slots,
            self.width,
            self.others,
        )

    # what is compiled

    @cached_property
    def room(self) -> int:
        """Return for how many pairs of shapes there is room."""
        room = FEWEST
        rods = len(self.rods) if self.slots else 0
        while room < max(self.pair_count, self.shape_count, rods):
            room *= 4
        return room

    @property
    def pair_room(self) -> int:
        """Return for how many rows of pairs there is room."""
        return self.room * (1 + self.slots)

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return further inputs."""
        return (Port(OBSTACLES, (self.slots, self.width)),) if self.slots else ()

    @property
    def blank(self) -> tuple[Port, ...]:
        """Return columns that are written before they are read."""
        c = len(self.twists.joints)
        room = self.pair_room + self.others
        found = [Port(ROWS, (room, c + 3)), Port(NEARS, (room, 1))]
        if self.check is not None:
            found.append(Port(CENTRES, (self.room, 3)))
        return tuple(found)

    @property
    def rows(self) -> Table:
        """Return the table of rows."""
        return Table(
            "rows",
            (index("row", ROWS), index("is_near", NEARS), reals("row_number")),
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return all tables."""
        n = self.twists.moving.joints
        found = [self.rows]
        if self.check is not None:
            found += [
                Table(
                    "bodies",
                    (
                        index("body_pose", POSES),
                        reals("body_centre", VECTOR),
                        index("body", CENTRES),
                    ),
                ),
                Table(
                    "pairs",
                    (
                        index("centre_a", CENTRES),
                        index("centre_b", CENTRES),
                        reals("radii"),
                        index("X_A", POSES),
                        index("X_B", POSES),
                        index("twists_a", TWISTS),
                        index("twists_b", TWISTS),
                        reals("pair_rates", (n,)),
                        code("distance"),
                        index("pair_row", ROWS),
                        index("pair_near", NEARS),
                        reals("pair_number"),
                    ),
                ),
            ]
        if self.slots:
            found += [
                Table(
                    "rods",
                    (
                        index("rod_pose", POSES),
                        index("rod_twists", TWISTS),
                        reals("rod_a", VECTOR),
                        reals("rod_b", VECTOR),
                        reals("rod_radius"),
                        reals("rod_rates", (n,)),
                        span("of_rod", "meetings"),
                    ),
                ),
                Table(
                    "meetings",
                    (
                        index("obstacle", OBSTACLES),
                        index("meeting_row", ROWS),
                        index("meeting_near", NEARS),
                        reals("meeting_number"),
                    ),
                ),
                Table("given_obstacles", (index("given_obstacle", OBSTACLES),)),
            ]
        return tuple(found)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that write rows, and `least_distance` and `nearest`."""
        return approach_stages(
            self.twists,
            has_pairs=self.check is not None,
            width=self.width if self.slots else 0,
        )

    # what it is given

    @property
    def pair_count(self) -> int:
        """Return how many pairs of shapes can move against each other."""
        return 0 if self.check is None else len(self.moving_pairs)

    @property
    def shape_count(self) -> int:
        """Return how many shapes there are."""
        return 0 if self.check is None else len(self.check.tables.pairs.shapes)

    @cached_property
    def moving_pairs(self) -> npt.NDArray[np.int64]:
        """Return the pairs of shapes that do not move together, sorted."""
        assert self.check is not None
        tables = self.check.tables
        return np.sort(np.concatenate([tables.of_spheres, tables.of_shapes]))

    @cached_property
    def rods(self) -> list[tuple[int, Any, str]]:
        """Return the capsules around shapes of moving links, with rows of these.

        They are those of all links, also of such as are in no pair.

        Raises:
            ModelError: There is none.
        """
        if self.check is None:
            return []
        moving, tree = self.twists.moving, self.check.state.tree
        found: list[tuple[int, Any, str]] = []
        for k, link in enumerate(moving.cell.links):
            row, pose = moving.fixed_to(tree, k)
            if not row:
                continue
            name = tree.name(k)
            for solid in solids_of(link, name, self.check.meshes):
                rod = rod_around(solid, pose @ link.primary)
                if rod is not None:
                    found.append((row, rod, name))
        if not found:
            raise ModelError(
                "Obstacles are avoided by moving links that have collision shapes; "
                "here is none. See Link(collisions=...)."
            )
        return found

    def names(self, number: int) -> tuple[str, str]:
        """Return what the pair of a row is of: two links, or a link and an obstacle."""
        assert self.check is not None
        first = self.pair_count
        if number < first:
            tables = self.check.tables.pairs
            a, b = (int(k) for k in tables.pairs[self.moving_pairs[number]])
            return tables.shapes[a].link, tables.shapes[b].link
        rod, slot = divmod(number - first, self.slots)
        return self.rods[rod][2], f"obstacle {slot}"

    def records(
        self, dtype: np.dtype[Any], lanes: int, obstacles: int
    ) -> tuple[dict[str, Mapping[str, Any]], list[Callees]]:
        """Return the records of the tables, and the code of distances.

        obstacles: How many there are, at most `slots`.
        """
        found: dict[str, Mapping[str, Any]] = {}
        callees: list[Callees] = []
        numbers = list(range(self.pair_count))
        if self.check is not None:
            found |= self._pair_records(dtype, lanes, callees)
        if self.slots:
            first, s = self.pair_count, self.slots
            at = [
                first + s * k + slot
                for k in range(len(self.rods))
                for slot in range(obstacles)
            ]
            slots = np.tile(np.arange(obstacles), len(self.rods))
            starts = obstacles * np.arange(len(self.rods))
            rows = np.array([row for row, *_ in self.rods])
            rods = [rod for _, rod, _ in self.rods]
            levers = [
                max(np.linalg.norm(rod.a), np.linalg.norm(rod.b)) + rod.radius
                for rod in rods
            ]
            world = np.zeros_like(rows)
            found["rods"] = {
                "rod_pose": rows,
                "rod_twists": rows,
                "rod_a": np.array([rod.a for rod in rods]),
                "rod_b": np.array([rod.b for rod in rods]),
                "rod_radius": np.array([rod.radius for rod in rods]),
                "rod_rates": self._rates(
                    np.stack([rows, world], axis=1),
                    np.stack([levers, np.zeros(len(rods))], axis=1),
                ),
                "of_rod": np.stack(
                    [starts, np.full(len(rods), obstacles)], axis=1
                ).astype(np.int64),
            }
            found["given_obstacles"] = {"given_obstacle": np.arange(obstacles)}
            found["meetings"] = {
                "obstacle": slots,
                "meeting_row": np.array(at, np.int64),
                "meeting_near": np.array(at, np.int64),
                "meeting_number": np.array(at, np.float64),
            }
            numbers += at
        others = np.arange(self.others)
        rows = np.array([*numbers, *(self.pair_room + others)], np.int64)
        found["rows"] = {
            "row": rows,
            "is_near": rows,
            "row_number": np.array([*numbers, *(OTHER + others)], np.float64),
        }
        return found, callees

    def _pair_records(
        self, dtype: np.dtype[Any], lanes: int, callees: list[Callees]
    ) -> dict[str, Mapping[str, Any]]:
        assert self.check is not None
        tables, placed = self.check.tables, self.check.placed
        pairs, chosen = tables.pairs, self.moving_pairs
        both = pairs.pairs[chosen]
        ordered = np.zeros((len(pairs.pairs), 2), np.int64)
        codes = np.zeros_like(ordered)
        for kind in pairs.kinds:
            if not np.isin(kind.pairs, chosen).any():
                continue
            made = kind.callees(placed, "all", dtype, lanes)
            callees.append(made)
            ordered[kind.pairs] = placed.rows[kind.sides].T
            codes[kind.pairs] = made.codes
        reach = np.linalg.norm(placed.centres, axis=1) + pairs.radii
        count = len(chosen)
        a, b = ordered[chosen].T
        return {
            "bodies": {
                "body_pose": placed.rows,
                "body_centre": placed.centres,
                "body": np.arange(len(placed.rows)),
            },
            "pairs": {
                "centre_a": both[:, 0],
                "centre_b": both[:, 1],
                "radii": np.minimum(pairs.radii[both].sum(axis=1), MOST),
                "X_A": a,
                "X_B": b,
                "twists_a": a,
                "twists_b": b,
                "pair_rates": self._rates(placed.rows[both], reach[both]),
                "distance": codes[chosen],
                "pair_row": np.arange(count),
                "pair_near": np.arange(count),
                "pair_number": np.arange(count, dtype=np.float64),
            },
        }

    def _rates(self, rows: Any, levers: Any) -> Array:
        """Return how fast bodies approach for unit rates of joints, at most."""
        moving = self.twists.moving
        assert self.check is not None
        state = self.check.state
        if not speeds_are_known(moving, state):
            return np.full((len(rows), moving.joints), MOST)
        speeds = SpeedBounds.of(moving, state.tree, *moving.cell.limits)
        return np.minimum(speeds.between(rows, np.minimum(levers, MOST)), MOST)
