"""How fast joints can move links: true bounds, for proofs about motions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.state import State
from armillary.model.drive import Drive
from armillary.model.fields import kept_few
from armillary.model.joint import Joint
from armillary.model.speed_bound import largest_accelerations, steady_twist
from armillary.model.tree import Tree
from armillary.model.values_read import values_read
from armillary.spatial.pose import IDENTITY

__all__ = [
    "Range",
    "SpeedBounds",
    "farthest",
    "ranges_of",
    "speeds_are_known",
    "speeds_within",
    "zero_product",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# between which limits coordinates of a joint are, and how far it moves its link

Range: TypeAlias = tuple[float, float]


def ranges_of(
    drives: Sequence[Drive], range_of: Callable[[int], Range]
) -> tuple[Range, ...]:
    """Return the range of each coordinate of a joint.

    Args:
        drives: What moves them.
        range_of: The range of each joint of a cell, by its index.
    """
    ranges: list[Range] = []
    for drive in drives:
        a, b = (drive.multiplier * q + drive.offset for q in range_of(drive.of))
        ranges.append((min(a, b), max(a, b)))
    return tuple(ranges)


def speeds(joint: Any, ranges: tuple[Range, ...]) -> tuple[Any, Any]:
    """Return `joint.speed_bounds` of a joint or mechanism within ranges."""
    return _speeds(joint, ranges, values_read(joint))


def farthest(joint: Joint, ranges: tuple[Range, ...]) -> float:
    """Return a bound of how far a joint's frames are apart within ranges [m].

    Its precursor is left out. The distance of a mechanism is bounded by that in the
    middle of the ranges plus, for each coordinate, half of its range times its speed.
    """
    return _farthest(joint, ranges, values_read(joint))


def bending(joint: Any, ranges: tuple[Range, ...]) -> float:
    """Return a bound of accelerations of a joint by its bounds of speeds.

    A point that moves no faster than v + w r at unit rate, of the two bounds and its
    distance r from the outer frame's origin, is accelerated by no more than this
    number times that. It is infinite where nothing is known: of mechanisms, and of
    joints that state bounds of speeds of their own.
    """
    is_derived = isinstance(joint, Joint) and (
        type(joint).speed_bounds is Joint.speed_bounds
    )
    if not is_derived:
        return math.inf
    return _bending(joint, ranges, values_read(joint))


@lru_cache(maxsize=1024)
def _bending(joint: Joint, ranges: tuple[Range, ...], read: Hashable) -> float:
    speeds_at_unit_rate = _speeds(joint, ranges, read)
    if not all(map(math.isfinite, speeds_at_unit_rate)):
        return math.inf
    accelerations = largest_accelerations(joint.motion, *ranges[0])
    parts = zip(accelerations, speeds_at_unit_rate, strict=True)
    ratios = [a / v if v > 0.0 else math.inf for a, v in parts if a > 0.0]
    return max(ratios, default=0.0)


@lru_cache(maxsize=1024)
def _speeds(joint: Any, ranges: tuple[Range, ...], read: Hashable) -> tuple[Any, Any]:
    if len(ranges) == 1:
        return joint.speed_bounds(*ranges[0])
    return joint.speed_bounds(*np.array(ranges).T)


@lru_cache(maxsize=1024)
def _farthest(joint: Joint, ranges: tuple[Range, ...], read: Hashable) -> float:
    if len(ranges) == 1:
        bare = msgspec.structs.replace(joint, precursor=IDENTITY)
        return bare.origin_bound(*ranges[0])
    lower, upper = np.array(ranges).T
    if not np.isfinite(upper - lower).all():
        return math.inf
    middle = joint.motion.pose(*(0.5 * (lower + upper)).tolist()).position
    linear, _ = speeds(joint, ranges)
    half = 0.5 * (upper - lower)
    way = np.where(half > 0.0, linear, 0.0) @ half
    return float(np.linalg.norm(middle) + way)


# how fast joints can move links: true bounds, for proofs about motions


def speeds_are_known(moving: MovingLinks, state: State) -> bool:
    """Return whether speeds have bounds: no closed loop or Python code moves links."""
    return moving.is_compiled and not state.passive.size


def speeds_within(
    moving: MovingLinks,
    state: State,
    lower: Array,
    upper: Array,
    *,
    accelerations: bool = False,
) -> SpeedBounds:
    """Return `SpeedBounds.of` these, kept for all states in which links stand alike.

    They are the same for all grips, and wherever bases are that carry no joint.
    """
    key = moving.pose_key(state), lower.tobytes(), upper.tobytes(), accelerations

    def made() -> SpeedBounds:
        return SpeedBounds.of(
            moving, state.tree, lower, upper, accelerations=accelerations
        )

    return kept_few(moving, "speeds", key, made)


class SpeedBounds(NamedTuple):
    """Bounds of speeds of the f moving links of a cell, by c coordinates of joints.

    They hold while joints are within the limits that they were made for.

    Attributes:
        linear: Of the origin of each link, for unit rates of joints [m per unit], shape
            (f, c); infinite where nothing is known, 0 for coordinates that do not
            move it.
        angular: Of all links that a coordinate moves [rad per unit], shape (c,).
        carried: Which links each coordinate moves, shape (f, c).
        joints: Rates of coordinates for unit rates of the n joints whose limits were
            given, shape (c, n).
        depth: Joints between the world and the link with most.
        bending: Of accelerations, see `bending` [per unit], shape (c,).
        owners: The link that each coordinate moves first, shape (c,).
        parents: The link that carries each link, that of the world itself, shape (f,).
        twists: Of that first link for unit rates, in its own axes and about its origin,
            where it is the same everywhere, linear and then angular; NaN elsewhere,
            shape (c, 6).
    """

    linear: Array
    angular: Array
    carried: npt.NDArray[np.bool_]
    joints: Array
    depth: int
    bending: Array
    owners: Indices
    parents: Indices
    twists: Array

    @classmethod
    def of(
        cls,
        moving: MovingLinks,
        tree: Tree,
        lower: Array,
        upper: Array,
        *,
        accelerations: bool = False,
        only: Iterable[int] | None = None,
    ) -> SpeedBounds:
        """Return the bounds while joints are within limits.

        Args:
            moving: The moving links of a cell.
            tree: What its bases are attached to.
            lower: Least positions of the joints of q, and of the passive ones behind
                them where these are known [m or rad], shape (n,).
            upper: Greatest, shape (n,).
            accelerations: Whether `bending` is wanted; else it is infinite.
            only: The rows that are asked for, with those of `carriers_of`; by default
                all. Nothing is known of the others.
        """
        drives = [tree.drives[link] if link >= 0 else () for link in moving.links]
        starts = np.cumsum([0, *map(len, drives)])
        f, c, n = moving.count, int(starts[-1]), len(lower)
        linear, angular, bent = np.zeros((f, c)), np.zeros(c), np.full(c, np.inf)
        owners = np.repeat(np.arange(f), list(map(len, drives)))
        carried, joints = np.zeros((f, c), np.bool_), np.zeros((c, n))
        twists = np.full((c, 6), np.nan)
        hops, parents = np.zeros(f), [0] * f
        range_of = partial(_range_of, lower.tolist(), upper.tolist())
        asked = range(1, f) if only is None else sorted(set(only) - {0})
        for row in asked:
            link = moving.links[row]
            joint: Joint = tree.links[link].joint
            carrier = moving.fixed_to(tree, tree.parents[link])
            inner = carrier.pose @ tree.placement(link) @ joint.precursor
            parents[row] = carrier.row
            own = slice(int(starts[row]), int(starts[row + 1]))
            ranges = ranges_of(drives[row], range_of)
            linear[row, own], angular[own] = speeds(joint, ranges)
            if accelerations:
                bent[own] = bending(joint, ranges)
            carried[row, own] = True
            if len(ranges) == 1:
                twists[own] = steady_twist(joint.motion) or np.nan
            for k, each in enumerate(drives[row], start=own.start):
                if each.of < n:
                    joints[k, each.of] = abs(each.multiplier)
                else:  # what a loop does to it is not known
                    linear[row, k] = angular[k] = math.inf
                    joints[k], twists[k] = 1.0, np.nan
            # How far the origin of a link is from that of the one that carries it, at
            # most.
            hops[row] = np.linalg.norm(inner.position) + farthest(joint, ranges)
        depth = _add_those_of_carriers(parents, hops, linear, angular, carried)
        motion = linear, angular, carried, joints, depth, bent
        return cls(*motion, owners, np.array(parents), twists)

    def between(self, rows: Indices, levers: Array) -> Array:
        """Return how fast points of two links can approach each other.

        Joints that move both links do not count.

        Args:
            rows: Rows of the two links of each pair, shape (k, 2).
            levers: How far the points are from the origins of the links [m], (k, 2).

        Returns:
            For unit rates of joints [m per unit], shape (k, n).
        """
        total = self.levers(rows, levers)
        speeds_by_joint = zero_product(total[:, :, None], self.joints)
        return speeds_by_joint.sum(axis=1)

    def levers(
        self, rows: Indices, levers: Array, own: Array | float = math.inf
    ) -> Array:
        """Return the same for unit rates of coordinates, shape (k, c).

        own: Further bounds of the speeds of the points for unit rates of the
            coordinates that each of the two links has itself, infinite for others,
            shape (k, 2, c).
        """
        own = np.broadcast_to(own, (*rows.shape, len(self.angular)))
        total = np.zeros((len(rows), len(self.angular)))
        for one, other in ((0, 1), (1, 0)):
            a, b, lever = rows[:, one], rows[:, other], levers[:, one, np.newaxis]
            alone = self.carried[a] & ~self.carried[b]
            speeds = self.linear[a] + zero_product(self.angular, lever)
            total += np.where(alone, np.minimum(speeds, own[:, one]), 0.0)
        return total

    def own_speeds(self, row: int, points: Array) -> Array:
        """Return how fast points of a link move by the coordinates of its own joint.

        Args:
            row: The row of the link.
            points: Points in its axes [m], shape (k, 3).

        Returns:
            The greatest speed for unit rates of coordinates, infinite for those of
            others and where twists change, shape (c,).
        """
        most = np.full(len(self.owners), math.inf)
        for k in np.flatnonzero(self.owners == row).tolist():
            v, w = self.twists[k, :3], self.twists[k, 3:]
            speed = float(np.linalg.norm(v + np.cross(w, points), axis=1).max())
            most[k] = math.inf if math.isnan(speed) else speed
        return most

    def in_order(self) -> Indices:
        """Return the coordinates, those of carriers before those of what they carry."""
        place = np.zeros(len(self.parents), np.int64)
        order = _parents_first(self.parents.tolist())
        place[order] = np.arange(1, len(order) + 1)
        return np.argsort(place[self.owners], kind="stable")

    def common(self, rows: Indices) -> Indices:
        """Return the last link that carries both links of pairs, or is one of them.

        rows: Rows of the two links of each pair, shape (k, 2).
        """
        count = len(self.parents)
        carriers, depths = np.eye(count, dtype=np.bool_), np.zeros(count, np.int64)
        for row in _parents_first(self.parents.tolist()):
            up = self.parents[row]
            carriers[row] |= carriers[up]
            depths[row] = depths[up] + 1
        carriers[:, 0] = True
        pairs, where = np.unique(rows, axis=0, return_inverse=True)
        both = carriers[pairs[:, 0]] & carriers[pairs[:, 1]]
        last = np.argmax(np.where(both, depths, -1), axis=1)
        return np.asarray(last[where.reshape(-1)])


def zero_product(a: Any, b: Any) -> Array:
    """Return a b, 0 where one is 0 and the other infinite."""
    both = np.asarray(np.not_equal(a, 0.0) & np.not_equal(b, 0.0), np.bool_)
    return np.multiply(a, b, out=np.zeros(both.shape), where=both)


def carriers_of(moving: MovingLinks, tree: Tree, row: int) -> list[int]:
    """Return the rows of a moving link and of those that carry it, but the world's."""
    found = list[int]()
    while row:
        found.append(row)
        row = moving.fixed_to(tree, tree.parents[moving.links[row]]).row
    return found


def _range_of(lower: list[float], upper: list[float], joint: int) -> Range:
    """Return the limits of a joint, by its index; nothing is known behind the last."""
    if joint >= len(lower):
        return -math.inf, math.inf
    return lower[joint], upper[joint]


def _add_those_of_carriers(
    parents: Sequence[int],
    hops: Array,
    linear: Array,
    angular: Array,
    carried: npt.NDArray[np.bool_],
) -> int:
    """Add to the bounds of links, of their own coordinates, those of their carriers.

    Args:
        parents: The link that carries each link.
        hops: How far their origins are from each other, at most [m], shape (f,).
        linear: As in `SpeedBounds`.
        angular: As in `SpeedBounds`.
        carried: As in `SpeedBounds`.

    Returns:
        How many coordinates move a link, at most.
    """
    depth = 0
    for row in _parents_first(parents):
        up = parents[row]
        theirs = carried[up]
        # |v + w x r| <= |v| + |w| |r|, with r across this hop.
        lever = linear[up][theirs] + zero_product(angular[theirs], hops[row])
        linear[row, theirs] = lever
        carried[row] |= theirs
        depth = max(depth, int(carried[row].sum()))
    return depth


def _parents_first(parents: Sequence[int]) -> list[int]:
    """Return all rows but that of the world, each behind the one that carries it."""
    order: list[int] = []
    done = {0}
    for start in range(1, len(parents)):
        line: list[int] = []
        row = start
        while row not in done:
            done.add(row)
            line.append(row)
            row = parents[row]
        order += reversed(line)
    return order
