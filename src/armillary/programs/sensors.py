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
from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.speed_bounds import SpeedBounds, zero_product
from armillary.model.cloud import Cloud
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.primitive import Primitive
from armillary.model.shapes.mesh import MeshSource
from armillary.model.shapes.sphere import Sphere
from armillary.programs.program import Sensor
from armillary.programs.tracks import Track
from armillary.programs.world import World
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["SensorWatch", "distance_to_part"]

Array = npt.NDArray[np.float64]

NEAR: Final = 1e-9
"""Distance from which steps are short [m]."""

LEAST_STEP: Final = 1e-5
"""The shortest step [s]; what touches for less time may be missed."""

SAMPLED: Final = 0.004
SLOWER: Final = 1.5
"""Between poses by which the speed of what closed loops move is judged [s], and by how
much it may be greater between them."""

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
        self._known: dict[tuple[str, ...], tuple[Hashable, float, float]] = {}
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

    def distance(self, time: float) -> float:
        """Return the least distance from a part that is there [m].

        It is below 0 where they overlap, and infinite where no part is there.
        """
        return min(self._distances(time, self._present()), default=math.inf)

    def _present(self) -> list[Seen]:
        """Return the shapes of parts that are there."""
        absent = self._world.absent
        return [seen for seen in self._seen if seen.part not in absent]

    def _distances(self, time: float, shapes: list[Seen]) -> list[float]:
        """Return the distances from shapes [m]."""
        world = self._world
        q = world.values(time).q
        X_W = np.linalg.inv(world.poses_at(self._frame, q))
        return [
            float(seen.distance(X_W @ world.poses_at(seen.at, q))) for seen in shapes
        ]

    def next_change(self, is_on: bool, until: float) -> float:
        """Return when the sensor changes, infinite where it does not before an instant.

        Args:
            is_on: What it holds now.
            until: The instant [s], may be infinite.
        """
        # Off, each part may come by itself: what moves one leaves what is known of
        # the others. On, all that touch have to leave.
        present = self._present()
        groups = {"": present} if is_on else dict[str, list[Seen]]()
        if not is_on:
            for seen in present:
                groups.setdefault(seen.part, []).append(seen)
        changes = (self._change_of(each, is_on, until) for each in groups.values())
        return min(changes, default=math.inf)

    def _change_of(self, shapes: list[Seen], is_on: bool, until: float) -> float:
        """Return when shapes change the sensor, if no others do."""
        world = self._world
        names = tuple(sorted(seen.name for seen in shapes))
        carriers, joints = world.chain(self._name, *names)
        tracks = [
            track
            for track in world.tracks.values()
            if track.moves(world.time) and not joints.isdisjoint(track.joints.tolist())
        ]
        if not names or not tracks:
            return math.inf
        # What was found stays true while nothing else moves or carries them.
        pieces = tuple((each.name, len(each.pieces), each.end) for each in tracks)
        placed = tuple(p for p in world.state.placements if p.manipulator in carriers)
        key = is_on, pieces, placed
        known, change, searched = self._known.get(names, (None, math.inf, -math.inf))
        if known != key or change <= world.time:  # or it has happened
            change, searched = math.inf, -math.inf
        if change == math.inf and until > searched:
            searched = max(until, world.time + AHEAD)
            change = self._kept(is_on, searched, tracks, shapes)
            self._known[names] = key, change, searched
        return change

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
        speeds = self._speeds(start, end, tracks, shapes)
        if not speeds.any():
            return math.inf
        sign = -1.0 if is_on else 1.0

        def value(time: float) -> float:
            return sign * min(self._distances(time, shapes))

        time, step = start, LEAST_STEP
        d = value(time)
        # Where it has just changed, shapes touch, or cease to, and go on doing so.
        while d <= 0.0 and time < end:
            ahead = value(min(time + step, end))
            if ahead <= d:
                return time
            time, d, step = min(time + step, end), ahead, 2.0 * step
        distances = np.array(self._distances(time, shapes))
        while time < end:
            before, step = time, LEAST_STEP
            if d > NEAR:
                with np.errstate(divide="ignore"):
                    times = np.abs(distances) / speeds
                # Off, any part may come; on, all that touch have to leave.
                least = times[distances <= 0.0].max() if is_on else times.min()
                step = max(float(least), LEAST_STEP)
            time = min(time + step, end)
            distances = np.array(self._distances(time, shapes))
            d = sign * float(distances.min())
            if d <= 0.0:
                return _crossing(value, before, time)
        return math.inf

    def _speeds(
        self, start: float, end: float, tracks: list[Track], shapes: list[Seen]
    ) -> Array:
        """Return how fast each part and the sensor can approach each other [m/s].

        Returns:
            Of each shape, shape (k,).
        """
        world = self._world
        cell, state = world.cell, world.state
        moving = moving_links(cell)
        first = world.values(start).q
        lower, upper, rates = np.array(first), np.array(first), np.zeros(len(first))
        for track in tracks:
            ranges = track.range(start, end)
            for whole, part in zip((lower, upper, rates), ranges, strict=True):
                whole[track.joints] = part
        bounds = SpeedBounds.of(moving, state.tree, lower, upper)
        links = [(self._frame, self._name, self._reach)] + [
            (seen.at, seen.name, seen.reach) for seen in shapes
        ]
        found = np.empty(len(links))
        for k, (at, name, reach) in enumerate(links):
            fixed = moving.fixed_to(state.tree, at.link)
            lever = reach + math.hypot(*(fixed.pose @ at.pose).position)
            row = np.array([[fixed.row, 0]])
            speeds = bounds.between(row, np.array([[lever, 0.0]]))[0]
            _, joints = world.chain(name)
            used = np.zeros(len(rates), np.bool_)
            used[sorted(joints)] = True
            # What is not known of a joint does not matter where it rests.
            found[k] = zero_product(np.where(used, speeds, 0.0), rates).sum()
            if not moving.is_compiled or not math.isfinite(found[k]):
                found[k] = self._sampled_speed(name, reach, start, end)
        return found[1:] + found[0]

    def _sampled_speed(
        self, name: str, reach: float, start: float, end: float
    ) -> float:
        """Return about how fast points near a frame move at most, by its poses [m/s].

        For closed loops, where nothing bounds how fast joints that are moved by others
        turn.
        """
        count = math.ceil((end - start) / SAMPLED) + 1
        times = np.linspace(start, end, count + 1)
        X = self._world.frame_poses(name, times)
        way = np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1)
        turned = np.linalg.norm(np.diff(X[:, :3, :3], axis=0), axis=(1, 2))
        most = (way + reach * turned).max(initial=0.0) * count / (end - start)
        return float(most) * SLOWER


def _crossing(value: Callable[[float], float], before: float, time: float) -> float:
    """Return the instant between two at which a distance becomes 0.

    By the Illinois method, a regula falsi that halves the value at an end which stays.
    """
    low, high, d_low, d_high = before, time, value(before), value(time)
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
