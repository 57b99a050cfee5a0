"""The pairs that a controller keeps apart: of links, and of links and obstacles.

What is compiled is in `approach_stages`; here are the tables that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.columns import CENTRES
from armillary.control.columns import CONTACTS_OF, DISTANCE, StepColumns
from armillary.control.obstacles import CAPSULE_WIDTH, BoundingCapsule, capsule_around
from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.pipeline_kernel import Callees
from armillary.kinematics.moving_twists import MovingTwists
from armillary.model.cloud import Cloud
from armillary.trace import Port

if TYPE_CHECKING:
    from armillary.collision.check import CollisionCheck  # few controllers need it
    from armillary.control.approach_stages import ApproachTables

__all__ = ["ApproachPairs"]

Array = npt.NDArray[np.float64]

FEWEST: Final = 64
"""Room for so many pairs, shapes or capsules at least, whichever are most; more of them
compile other code."""

MOST: Final = 1e30
"""What stands for a radius or a speed without limit."""


class ApproachPairs(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The pairs that a controller keeps apart.

    Attributes:
        twists: Of the moving links.
        check: The pairs of links, and where their shapes are.
        slots: How many obstacles a step can be given.
        width: How many numbers each has, those of capsules or of boxes.
        others: The numbers of rows that are not of pairs, for which there is room
            behind those.
    """

    twists: MovingTwists
    check: CollisionCheck | None
    slots: int
    width: int = CAPSULE_WIDTH
    others: tuple[float, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return ApproachPairs, (
            self.twists,
            self.check,
            self.slots,
            self.width,
            self.others,
        )

    # what is compiled

    @cached_property
    def room(self) -> int:
        """Return the room for pairs, shapes or capsules, whichever are most."""
        # Room grows by factors of 4, so that few numbers of pairs compile other code.
        room = FEWEST
        capsules = len(self.capsules) if self.slots else 0
        while room < max(self.pair_count, self.shape_count, capsules):
            room *= 4
        return room

    @property
    def pair_room(self) -> int:
        """Return for how many rows of pairs there is room."""
        return self.room * (1 + self.slots)

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes of columns that pairs and obstacles decide."""
        sizes = {"room": self.pair_room + len(self.others)}
        return sizes | (
            {"slots": self.slots, "width": self.width} if self.slots else {}
        )

    def scratch(self, columns: StepColumns) -> tuple[Port, ...]:
        """Return columns whose entries are written before they are read."""
        rows = columns.approach_rows, columns.approach_nears
        return rows if self.check is None else (*rows, Port(CENTRES, (self.room, 3)))

    def tables(self, columns: StepColumns) -> ApproachTables:
        """Return the tables that `records` fills."""
        with IMPORT_LOCK:  # a step that is kept needs no stages
            from armillary.control.approach_stages import ApproachTables

        return ApproachTables(columns, self.check is not None, self.slots > 0)

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
        # Pairs that are tested by spheres alone, and those by shapes.
        tables = self.check.tables
        return np.sort(np.concatenate([tables.of_spheres, tables.of_shapes]))

    @cached_property
    def capsules(self) -> list[tuple[int, BoundingCapsule, str]]:
        """Return the capsules around shapes of moving links: link, capsule, name.

        They are those of all links, also of such as are in no pair.

        Raises:
            ModelError: There is none.
        """
        if self.check is None:
            return []
        moving, tree = self.twists.moving, self.check.state.tree
        capsules: list[tuple[int, BoundingCapsule, str]] = []
        with IMPORT_LOCK:
            from armillary.collision.tested_shapes import solids_of
        # Shapes of links that are fixed to a moving one count with that.
        for k, link in enumerate(moving.cell.links):
            row, pose = moving.fixed_to(tree, k)
            if not row:
                continue
            name = tree.name(k)
            for solid in solids_of(link, name, self.check.meshes):
                if isinstance(solid, Cloud):
                    raise ModelError(
                        f"'{name}' moves with a cloud, around which there is no "
                        "capsule for obstacles; give it primitives as collision shapes."
                    )
                capsule = capsule_around(solid, pose @ link.primary)
                if capsule is not None:
                    capsules.append((row, capsule, name))
        if not capsules:
            raise ModelError(
                "Obstacles are avoided by moving links that have collision shapes; "
                "here is none. See Link(collisions=...)."
            )
        return capsules

    def names(self, number: int) -> tuple[str, str]:
        """Return what the pair of a row is of: two links, or a link and an obstacle."""
        assert self.check is not None
        # Numbers of contacts follow those of pairs of links, capsule by capsule, one
        # number for each slot.
        first = self.pair_count
        if number < first:
            tables = self.check.tables.pairs
            a, b = (int(k) for k in tables.pairs[self.moving_pairs[number]])
            return tables.shapes[a].link, tables.shapes[b].link
        capsule, slot = divmod(number - first, self.slots)
        return self.capsules[capsule][2], f"obstacle {slot}"

    def records(
        self, dtype: np.dtype[Any], lanes: int, obstacles: int
    ) -> tuple[dict[str, Mapping[str, Any]], list[Callees]]:
        """Return the records of the tables, and the code of distances.

        obstacles: How many there are, at most `slots`.
        """
        records: dict[str, Mapping[str, Any]] = {}
        # What `Call` runs: code of shapes, compiled apart from the step.
        callees: list[Callees] = []
        numbers = list(range(self.pair_count))
        if self.check is not None:
            records |= self._pair_records(dtype, lanes, callees)
        if self.slots:
            # Numbers leave gaps for empty slots, so that names can be found.
            contacts = [
                self.pair_count + self.slots * k + slot
                for k in range(len(self.capsules))
                for slot in range(obstacles)
            ]
            records |= self._obstacle_records(obstacles, contacts)
            numbers += contacts
        # Other rows have numbers of their own, and places behind all pairs.
        others = np.arange(len(self.others))
        rows = np.array([*numbers, *(self.pair_room + others)], np.int64)
        records["rows"] = {
            "row": rows,
            "is_near": rows,
            "row_number": np.array([*numbers, *self.others], np.float64),
        }
        return records, callees

    def _obstacle_records(
        self, obstacles: int, contacts: Sequence[int]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the records of capsules, obstacles and their contacts.

        Args:
            obstacles: How many obstacles there are.
            contacts: The numbers of the contacts.
        """
        # Obstacles are fixed to the world, the first row of poses and twists.
        links = np.array([link for link, *_ in self.capsules])
        capsules = [capsule for _, capsule, _ in self.capsules]
        # How far points of a capsule are from the origin of its link, at most.
        levers = [
            max(np.linalg.norm(each.a), np.linalg.norm(each.b)) + each.radius
            for each in capsules
        ]
        count, still = len(capsules), np.zeros(len(capsules))
        return {
            "capsules": {
                "capsule_pose": links,
                "capsule_twists": links,
                "capsule_a": np.array([each.a for each in capsules]),
                "capsule_b": np.array([each.b for each in capsules]),
                "capsule_radius": np.array([each.radius for each in capsules]),
                "capsule_rates": self._rates(
                    np.stack([links, np.zeros_like(links)], axis=1),
                    np.stack([levers, still], axis=1),
                ),
                CONTACTS_OF: np.stack(
                    [obstacles * np.arange(count), np.full(count, obstacles)], axis=1
                ).astype(np.int64),
            },
            "given_obstacles": {"given_obstacle": np.arange(obstacles)},
            "contacts": {
                "obstacle": np.tile(np.arange(obstacles), count),
                "contact_row": np.array(contacts, np.int64),
                "contact_near": np.array(contacts, np.int64),
                "contact_number": np.array(contacts, np.float64),
            },
        }

    def _pair_records(
        self, dtype: np.dtype[Any], lanes: int, callees: list[Callees]
    ) -> dict[str, Mapping[str, Any]]:
        assert self.check is not None
        tables, placed = self.check.tables, self.check.placed
        pairs, chosen = tables.pairs, self.moving_pairs
        # Shapes a and b of each pair, by their numbers among all shapes.
        both = pairs.pairs[chosen]
        # `ordered` has the rows of poses of both sides, in the order of the code.
        ordered = np.zeros((len(pairs.pairs), 2), np.int64)
        codes = np.zeros_like(ordered)
        # Each two kinds of shapes have code of their own, which orders its two sides.
        for kind in pairs.kinds:
            if not np.isin(kind.pairs, chosen).any():
                continue
            made = kind.placed_callees(placed, "all", dtype, lanes)
            callees.append(made)
            ordered[kind.pairs] = placed.rows[kind.sides].T
            codes[kind.pairs] = made.codes
        # How far points of a shape are from the origin of its link, at most.
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
                DISTANCE: codes[chosen],
                "pair_row": np.arange(count),
                "pair_near": np.arange(count),
                "pair_number": np.arange(count, dtype=np.float64),
            },
        }

    def _rates(self, rows: Any, levers: Any) -> Array:
        """Return how fast bodies approach for unit rates of joints, at most."""
        with IMPORT_LOCK:
            from armillary.kinematics.speed_bounds import (
                speeds_are_known,
                speeds_within,
            )

        moving = self.twists.moving
        assert self.check is not None
        state = self.check.state
        # Without bounds, all pairs count as near in each step.
        if not speeds_are_known(moving, state):
            return np.full((len(rows), moving.joints), MOST)
        # The greatest approach of two points at such levers, by each joint.
        speeds = speeds_within(moving, state, *moving.cell.limits)
        return np.minimum(speeds.between(rows, np.minimum(levers, MOST)), MOST)
