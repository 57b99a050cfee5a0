"""Instants at which parts begin or cease to touch the shapes of sensors.

The distance d(t) of two shapes changes no faster than they move. So from an instant t
at which it is d, nothing happens before t + |d| / v, where v bounds the speed of the
part by rates of joints and `SpeedBounds`. Steps of this length lead to an instant at
which d is less than `NEAR`, shorter ones past that at which it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.distance.pair import distance_kernel
from armillary.collision.tested_shapes import solids_of
from armillary.errors import ModelError, quote
from armillary.kernel import Kernel
from armillary.kinematics.closing.enclosing import Stretches, hull, refined
from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.placement import Placement
from armillary.kinematics.speed_bounds import (
    SpeedBounds,
    carriers_of,
    zero_product,
)
from armillary.model.cloud import Cloud
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.primitive import Primitive
from armillary.model.shapes.mesh import MeshSource
from armillary.model.shapes.sphere import Sphere
from armillary.programs.program import Sensor
from armillary.programs.tracks import Track, stretches_of
from armillary.programs.world import World
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["SensorWatch", "distance_to_part"]

Array = npt.NDArray[np.float64]

NEAR: Final = 1e-9
"""Distance from which steps are short [m]."""

LEAST_STEP: Final = 1e-5
"""The shortest step [s]; what touches for less time may be missed."""

COARSE: Final = 0.02
SHORTEST: Final = 1e-4
"""The longest and the shortest time in which loops are proven to move on [s]."""

SAMPLED: Final = 0.004
SLOWER: Final = 1.5
"""Between poses by which speeds are judged that have no bound [s], and by how much they
may be greater between them."""

MOST_KEPT: Final = 20_000
"""Changes that a cell keeps for further runs."""

AHEAD: Final = 20.0
"""How far a change is searched for at once [s]."""

MOST_ITERATIONS: Final = 60
EXACT: Final = 1e-14
ROUNDING: Final = 1e-15
"""Of the instant at which shapes begin to touch: a distance that counts as 0 [m], and
the part of an instant that rounding leaves undecided."""

POINT: Final = Sphere(radius=1e-9)
"""What stands for the origin of a frame."""


class Seen(NamedTuple):
    """A shape of a part that a sensor sees.

    Attributes:
        part: The manipulator.
        name: Its link, `manipulator/link`.
        at: The link in the cell.
        distance: The kernel of the distance from the sensor's shape.
        reach: How far the shape reaches from the link's primary frame [m].
    """

    part: str
    name: str
    at: FrameRef
    distance: Kernel
    reach: float


class SeenTogether(NamedTuple):
    """Shapes that change a sensor together, while attachments stay as they are.

    Attributes:
        shapes: The shapes.
        names: Their links, in order.
        tracks: What moves these or the sensor.
        placed: Where states place what carries them.
    """

    shapes: list[Seen]
    names: tuple[str, ...]
    tracks: list[Track]
    placed: tuple[Placement, ...]


class PointsNear(NamedTuple):
    """Points about a frame: where it is, its name, and how far they are from it [m]."""

    at: FrameRef
    name: str
    reach: float


class SensorWatch:
    """Watches a sensor during a run."""

    def __init__(
        self, name: str, sensor: Sensor, world: World, meshes: MeshSource | None
    ) -> None:
        """Find the shapes that it sees.

        Raises:
            UnknownName: Its frame or a part does not exist.
            StateError: A part cannot be moved.
            ModelError: No part has a shape.
        """
        cell = world.cell
        self.name, self._sensor, self._world = name, sensor, world
        self._frame = cell.frame(sensor.frame)
        self._name = cell.qualified(sensor.frame)
        # What decides a change, when it comes, and until when it was searched for: of
        # some shapes, and of all.
        self._known: dict[tuple[str, ...], tuple[Hashable, float, float]] = {}
        self._whole: tuple[Hashable, float, float] = None, math.inf, -math.inf
        self._groups: tuple[Hashable, list[SeenTogether]] = None, []
        self._inverted = np.zeros((4, 4)), np.zeros((4, 4))
        parts = [world.part(part) for part in sensor.parts] or movable_parts(world)
        shape = sensor.shape
        self._reach = reach_of(shape)
        self._seen = [
            Seen(
                part,
                name,
                link,
                distance_kernel(shape, solid),
                reach_of(solid),
            )
            for part in parts
            for name, link, solid in solids_of_part(world, part, meshes)
        ]
        if not self._seen:
            raise ModelError(
                f"The sensor {quote(name)} sees nothing: none of its parts has a "
                "collision shape."
            )

    def distance(self, time: float, part: str = "") -> float:
        """Return the least distance from a part that is there [m].

        It is below 0 where they overlap, and infinite where no part is there.

        Args:
            time: The instant [s].
            part: Ask only for this part and those that it carries; by default all.
        """
        chain = self._world.chain
        shapes = self._present()
        if part and part not in chain(self._name)[0]:
            shapes = [each for each in shapes if part in chain(each.name)[0]]
        rows = self._rows(np.array([time]), shapes)
        return float(rows.min(initial=math.inf))

    def _present(self) -> list[Seen]:
        """Return the shapes of parts that are there."""
        absent = self._world.absent
        return [seen for seen in self._seen if seen.part not in absent]

    def _rows(self, times: Array, shapes: list[Seen]) -> Array:
        """Return distances from shapes at instants that ascend, shape (k, s) [m]."""
        world = self._world
        found = np.empty((len(times), len(shapes)))
        if not shapes:
            return found
        q = world.samples(times, self._name, *(seen.name for seen in shapes))
        X_W = self._inverse_of(world.poses_at(self._frame, q))
        for k, seen in enumerate(shapes):
            found[:, k] = seen.distance(X_W @ world.poses_at(seen.at, q))
        return found

    def _inverse_of(self, X: Array) -> Array:
        """Return inverse poses of the sensor; those of one that stands are kept."""
        if X is not self._inverted[0]:
            self._inverted = X, np.asarray(np.linalg.inv(X), np.float64)
        return self._inverted[1]

    def next_change(self, is_on: bool, until: float) -> float:
        """Return when the sensor changes, infinite where it does not before an instant.

        Args:
            is_on: What it holds now.
            until: The instant [s], may be infinite.
        """
        world = self._world
        # As long as nothing changes, what was found stays true.
        key = world.version, is_on
        known, change, searched = self._whole
        if known == key and change > world.time and until <= searched:
            return change
        change = searched = math.inf
        for group in self._groups_of(is_on):
            own, until_then = self._change_of(group, is_on, until)
            change, searched = min(change, own), min(searched, until_then)
        self._whole = key, change, searched
        return change

    def _groups_of(self, is_on: bool) -> list[SeenTogether]:
        """Return the shapes that are there, those that change it together in one."""
        world = self._world
        key = is_on, len(world.changes)
        if self._groups[0] == key:
            return self._groups[1]
        # Off, each part may come by itself: what moves one leaves what is known of
        # the others. On, all that touch have to leave.
        by_part: dict[str, list[Seen]] = {}
        for seen in self._present():
            by_part.setdefault("" if is_on else seen.part, []).append(seen)
        groups: list[SeenTogether] = []
        for shapes in by_part.values():
            names = tuple(sorted([seen.name for seen in shapes]))
            _, joints = world.chain(self._name, *names)
            tracks = [
                track
                for track in world.tracks.values()
                if not joints.isdisjoint(track.places)
            ]
            placed = world.placed(self._name, *names)
            groups.append(SeenTogether(shapes, names, tracks, placed))
        self._groups = key, groups
        return groups

    def _change_of(
        self, group: SeenTogether, is_on: bool, until: float
    ) -> tuple[float, float]:
        """Return when shapes change the sensor, if no others do.

        Returns:
            The instant, and until when it was searched for [s]; both may be infinite.
        """
        world = self._world
        tracks = [track for track in group.tracks if track.end > world.time]
        if not tracks:
            return math.inf, math.inf
        # What was found stays true while nothing else moves or carries them.
        motions = tuple([(each.name, each.changes) for each in tracks])
        key = is_on, motions, group.placed
        never = None, math.inf, -math.inf
        known, change, searched = self._known.get(group.names, never)
        if known != key or change <= world.time:  # or it has happened
            change, searched = math.inf, -math.inf
        if change == math.inf and until > searched:
            searched = max(until, world.time + AHEAD)
            change = self._kept(is_on, searched, tracks, group.shapes)
            self._known[group.names] = key, change, searched
        return change, searched

    def _kept(
        self, is_on: bool, until: float, tracks: list[Track], shapes: list[Seen]
    ) -> float:
        """Return the change in a span of time, which the cell keeps."""
        world = self._world
        names = tuple(seen.name for seen in shapes)
        key = (
            *(self._sensor, is_on, world.time, until, names),
            world.ways(self._name, *names, but=None),
        )
        known = kept(world.cell, "changes of sensors", dict[Hashable, float])
        if key not in known:
            if len(known) >= MOST_KEPT:
                known.clear()
            known[key] = self._found(is_on, until, tracks, shapes)
        return known[key]

    def _found(
        self, is_on: bool, until: float, tracks: list[Track], shapes: list[Seen]
    ) -> float:
        """Return the change in a span of time, of which bounds hold piece by piece."""
        start, last = self._world.time, max(track.end for track in tracks)
        ends = {min(until, track.end) for track in tracks} | {min(until, last)}
        for end in sorted(ends):
            change = self._found_until(is_on, start, end, tracks, shapes)
            if change < math.inf:
                return change
            start = end
        return math.inf

    def _found_until(
        self,
        is_on: bool,
        start: float,
        end: float,
        tracks: list[Track],
        shapes: list[Seen],
    ) -> float:
        times, speeds = self._speeds(start, end, tracks, shapes)
        if not speeds.any():
            return math.inf
        sign = -1.0 if is_on else 1.0
        distances = self._rows(times, shapes)
        changes = sign * distances.min(axis=1) <= 0.0
        may = changes[:-1] | changes[1:] | ~_keeps(sign, times, distances, speeds)
        for k in np.flatnonzero(may).tolist():
            between = float(times[k]), float(times[k + 1])
            change = self._found_between(sign, *between, shapes, speeds[k])
            if change < math.inf:
                return change
        return math.inf

    def _found_between(
        self, sign: float, start: float, end: float, shapes: list[Seen], speeds: Array
    ) -> float:
        """Return the change between two instants, by steps that do not pass one.

        Behind each step distances are asked for at instants that are 1, 2, 4, ... times
        `LEAST_STEP` apart: where parts go away, these lead to the end at once.

        Args:
            sign: 1 where the sensor is off, -1 where it is on.
            start: The first instant [s].
            end: The last one [s].
            shapes: What may change it.
            speeds: How fast each and the sensor approach each other, shape (s,) [m/s].
        """

        def value(time: float) -> float:
            return sign * float(self._rows(np.array([time]), shapes).min())

        def ahead(since: float) -> tuple[Array, Array, Array]:
            doublings = math.ceil(math.log2(max(end - since, 0.0) / LEAST_STEP + 1.0))
            times = since + LEAST_STEP * (2.0 ** np.arange(doublings + 1.0) - 1.0)
            times = np.minimum(times, end)
            distances = self._rows(times, shapes)
            return times, distances, sign * distances.min(axis=1)

        (times, distances, d), k = ahead(start), 0
        # Where it has just changed, shapes touch, or cease to, and go on doing so.
        while d[k] <= 0.0:
            if times[k] >= end:
                return math.inf
            if d[k + 1] <= d[k]:
                return float(times[k])
            k += 1
        while True:
            keeps = _keeps(sign, times[k:], distances[k:], speeds) & (d[k + 1 :] > 0.0)
            k += int(np.argmin(np.append(keeps, [False])))
            before = float(times[k]), float(d[k])
            if before[0] >= end:
                return math.inf
            step = LEAST_STEP
            if d[k] > NEAR:
                never = np.full(len(speeds), math.inf)
                away = np.abs(distances[k])
                each = np.divide(away, speeds, out=never, where=speeds > 0.0)
                least = each[distances[k] <= 0.0].max() if sign < 0.0 else each.min()
                step = max(float(least), LEAST_STEP)
            (times, distances, d), k = ahead(min(before[0] + step, end)), 0
            if d[0] <= 0.0:
                return _crossing(value, before, (float(times[0]), float(d[0])))

    def _speeds(
        self, start: float, end: float, tracks: list[Track], shapes: list[Seen]
    ) -> tuple[Array, Array]:
        """Return how fast each shape and the sensor can approach each other.

        Returns:
            Instants [s], shape (k + 1,), and speeds between them [m/s], shape (k, s):
            true bounds, but where nothing is known: there by poses at these instants.
        """
        links = [PointsNear(self._frame, self._name, self._reach)] + [
            PointsNear(seen.at, seen.name, seen.reach) for seen in shapes
        ]
        times, speeds = self._bounds(start, end, tracks, links)
        for k in np.flatnonzero(np.isinf(speeds).any(axis=0)).tolist():
            sampled = self._sampled_speeds(links[k], times)
            speeds[:, k] = np.where(np.isinf(speeds[:, k]), sampled, speeds[:, k])
        return times, speeds[:, 1:] + speeds[:, :1]

    def _bounds(
        self, start: float, end: float, tracks: list[Track], links: list[PointsNear]
    ) -> tuple[Array, Array]:
        """Return bounds of the speeds of points near frames.

        Returns:
            Instants [s], shape (s + 1,), and bounds between them [m/s], shape (s, k);
            infinite where nothing is known.
        """
        world = self._world
        moving, tree = moving_links(world.cell), world.state.tree
        if not moving.is_compiled:
            times = np.linspace(start, end, math.ceil((end - start) / SAMPLED) + 1)
            return times, np.full((len(times) - 1, len(links)), math.inf)
        fixed = [moving.fixed_to(tree, each.at.link) for each in links]
        asked = {row for each in fixed for row in carriers_of(moving, tree, each.row)}
        if not asked:
            return np.array([start, end]), np.zeros((1, len(links)))
        times, joints = self._stretches(start, end, tracks, asked)
        fastest = joints.fastest
        speeds = SpeedBounds.of(moving, tree, *hull(joints), only=asked)
        found = np.empty((len(fastest), len(links)))
        for k, (at, near) in enumerate(zip(fixed, links, strict=True)):
            lever = near.reach + math.hypot(*(at.pose @ near.at.pose).position)
            pair, levers = np.array([[at.row, 0]]), np.array([[lever, 0.0]])
            # What is not known of a joint does not matter where it rests.
            of_joints = speeds.between(pair, levers)
            found[:, k] = zero_product(of_joints, fastest).sum(axis=1)
        return times, found

    def _stretches(
        self, start: float, end: float, tracks: list[Track], asked: set[int]
    ) -> tuple[Array, Stretches]:
        """Return instants, and where joints are between them.

        asked: The moving links that are asked for. If no loop moves one, all stretches
            are made one: bounds of the whole time are good enough then.
        """
        world = self._world
        moving, tree = moving_links(world.cell), world.state.tree
        rest = world.values(start).q
        drives = [drive for row in asked for drive in tree.drives[moving.links[row]]]
        if all(drive.of < moving.joints for drive in drives):
            ends = np.array([start, end])
            return ends, stretches_of(tracks, rest, ends[:1], ends[1:])

        def at(times: Array) -> Array:
            q = rest[None].repeat(len(times), axis=0)
            for track in tracks:
                q[:, track.joints] = track.samples(times).q
            return q

        return refined(
            world.branch,
            np.linspace(start, end, max(math.ceil((end - start) / COARSE), 1) + 1),
            at,
            lambda a, b: stretches_of(tracks, rest, a, b),
            SHORTEST,
        )

    def _sampled_speeds(self, near: PointsNear, times: Array) -> Array:
        """Return about how fast points near a frame move at most, by its poses.

        For loops next to a singularity, and scripts that are not compiled.

        Returns:
            Between each two instants, shape (k,) [m/s].
        """
        X = self._world.frame_poses(near.name, times)
        way = np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1)
        turned = np.linalg.norm(np.diff(X[:, :3, :3], axis=0), axis=(1, 2))
        speeds = np.pad((way + near.reach * turned) / np.diff(times), 1, mode="edge")
        # Those of neighbours count, too.
        return SLOWER * np.maximum(speeds[1:-1], np.maximum(speeds[:-2], speeds[2:]))


def _keeps(
    sign: float, times: Array, distances: Array, speeds: Array
) -> npt.NDArray[np.bool_]:
    """Return whether a sensor is proven to stay as it is between instants, shape (k,).

    Between two of them a distance is at least half the sum of both, less half the
    way. Off, no part may come; on, not all that touch may leave.

    Args:
        sign: 1 where it is off, -1 where it is on.
        times: The instants [s], shape (k + 1,).
        distances: Of shapes there [m], shape (k + 1, s).
        speeds: How fast each and the sensor approach each other, shape (s,) or (k, s).
    """
    ways = sign * speeds * np.diff(times)[:, None]
    sums = (distances[:-1] + distances[1:] - ways).min(axis=1)
    return np.asarray(sign * sums > 0.0)


def _crossing(
    value: Callable[[float], float],
    before: tuple[float, float],
    after: tuple[float, float],
) -> float:
    """Return the instant between two at which a distance becomes 0.

    By the Illinois method, a regula falsi that halves the value at an end which stays.

    Args:
        value: The distance at an instant [m].
        before: An instant, and its distance.
        after: A later one, and its distance, at most 0.
    """
    (low, d_low), (high, d_high) = before, after
    for _ in range(MOST_ITERATIONS):
        if high - low <= ROUNDING * max(abs(high), 1.0) or d_low <= 0.0:
            break
        middle = high - d_high * (high - low) / (d_high - d_low)
        middle = min(max(middle, np.nextafter(low, high)), np.nextafter(high, low))
        d = value(float(middle))
        if abs(d) <= EXACT:
            return float(middle)
        if d <= 0.0:
            high, d_high, d_low = float(middle), d, 0.5 * d_low
        else:
            low, d_low, d_high = float(middle), d, 0.5 * d_high
    return high


def movable_parts(world: World) -> list[str]:
    """Return the manipulators without joints whose bases states may move."""
    tree = world.state.tree
    return [
        manipulator.name
        for k, manipulator in enumerate(world.cell.manipulators)
        if k in tree.movable and not manipulator.joint_names
    ]


def solids_of_part(
    world: World, part: str, meshes: MeshSource | None
) -> list[tuple[str, FrameRef, Primitive | Cloud]]:
    """Return the collision shapes of a part, with names of their links, and these."""
    cell, k = world.cell, world.cell.number(part)
    first = cell.starts[k]
    links = cell.manipulators[k].links
    return [
        (f"{part}/{link.name}", FrameRef(first + number, IDENTITY), solid)
        for number, link in enumerate(links)
        for solid in solids_of(link, f"{part}/{link.name}", meshes)
    ]


def reach_of(solid: Primitive | Cloud) -> float:
    """Return how far a shape reaches from the primary frame of its link [m]."""
    sphere = solid.bounding_sphere
    centre = solid.pose @ Pose.translation(*sphere.centre)
    return math.hypot(*centre.position) + sphere.radius


def distance_to_part(
    world: World, part: str, frame: str, meshes: MeshSource | None
) -> float:
    """Return how far the origin of a frame is from a part [m], 0 inside of it.

    Of a part without shapes it is the distance from the origin of its base.
    """
    cell = world.cell
    q = world.values(world.time).q
    X = np.linalg.inv(world.poses_at(cell.frame(frame), q))
    solids = solids_of_part(world, part, meshes)
    if not solids:
        manipulator = cell.manipulators[cell.number(part)]
        base = cell.frame(f"{part}/{manipulator.links[manipulator.base].name}")
        return float(np.linalg.norm((X @ world.poses_at(base, q))[:3, 3]))
    distances = (
        float(distance_kernel(POINT, solid)(X @ world.poses_at(link, q)))
        for _, link, solid in solids
    )
    return max(0.0, min(distances))
