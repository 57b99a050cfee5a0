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
from armillary.kinematics.all_frames import poses
from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.speed_bounds import SpeedBounds, speeds_are_known
from armillary.model.cloud import Cloud
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
        link: The number of the link in the cell.
        distance: The kernel of the distance from the sensor's shape.
        reach: How far the shape reaches from the link's primary frame [m].
    """

    part: str
    name: str
    link: int
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
        self.name, self._world = name, world
        self._frame = cell.frame(sensor.frame)
        self._name = cell.qualified(sensor.frame)
        self._known: dict[Hashable, tuple[float, float]] = {}
        parts = [world.part(part) for part in sensor.parts] or movable_parts(world)
        shape = sensor.shape
        self._reach = reach_of(shape)
        self._seen = [
            Seen(part, name, link, distance_kernel(shape, solid), reach_of(solid))
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
        world = self._world
        least = math.inf
        found = poses(world.cell, world.state, q=world.values(time).q)
        X_W = np.linalg.inv(found[self._name])
        for seen in self._seen:
            if seen.part not in world.absent:
                least = min(least, float(seen.distance(X_W @ found[seen.name])))
        return least

    def next_change(self, is_on: bool, until: float) -> float:
        """Return when the sensor changes, infinite where it does not before an instant.

        Args:
            is_on: What it holds now.
            until: The instant [s], may be infinite.
        """
        # What was found stays true while nothing else moves what it sees.
        tracks, key = self._moving()
        change, searched = self._known.get((is_on, key), (math.inf, -math.inf))
        if change == math.inf and until > searched:
            searched = max(until, self._world.time + AHEAD)
            change = self._found(is_on, searched, tracks) if tracks else math.inf
            self._known = {(is_on, key): (change, searched)}
        return change

    def _moving(self) -> tuple[list[Track], Hashable]:
        """Return what moves the sensor or a part, and what identifies that."""
        world = self._world
        parts = {seen.name for seen in self._seen if seen.part not in world.absent}
        _, joints = world.chain(self._name, *sorted(parts))
        tracks = [
            track
            for track in world.tracks.values()
            if track.moves(world.time) and not joints.isdisjoint(track.joints.tolist())
        ]
        if not parts:
            tracks = []
        pieces = tuple((each.name, len(each.pieces), each.end) for each in tracks)
        return tracks, (len(world.changes), pieces)

    def _found(self, is_on: bool, until: float, tracks: list[Track]) -> float:
        world = self._world
        end = min(until, max(track.end for track in tracks))
        speed = self._speed(world.time, end, tracks)
        if speed == 0.0:
            return math.inf
        sign = -1.0 if is_on else 1.0

        def value(time: float) -> float:
            return sign * self.distance(time)

        time = world.time
        d, step = value(time), LEAST_STEP
        # Where it has just changed, shapes touch, or cease to, and go on doing so.
        while d <= 0.0 and time < end:
            ahead = value(min(time + step, end))
            if ahead <= d:
                return time
            time, d, step = min(time + step, end), ahead, 2.0 * step
        while time < end:
            before, step = time, LEAST_STEP
            if d > NEAR and math.isfinite(speed):
                step = max(d / speed, LEAST_STEP)
            time = min(time + step, end)
            d = value(time)
            if d <= 0.0:
                return _crossing(value, before, time)
        return math.inf

    def _speed(self, start: float, end: float, tracks: list[Track]) -> float:
        """Return how fast parts and the sensor can approach each other [m/s]."""
        world = self._world
        cell, state = world.cell, world.state
        moving = moving_links(cell)
        if not speeds_are_known(moving, state):
            return math.inf
        first = world.values(start).q
        lower, upper, rates = np.array(first), np.array(first), np.zeros(len(first))
        for track in tracks:
            ranges = track.range(start, end)
            for whole, part in zip((lower, upper, rates), ranges, strict=True):
                whole[track.joints] = part
        bounds = SpeedBounds.of(moving, state.tree, lower, upper)

        def of(at: FrameRef, reach: float) -> float:
            fixed = moving.fixed_to(state.tree, at.link)
            lever = reach + math.hypot(*(fixed.pose @ at.pose).position)
            row = np.array([[fixed.row, 0]])
            speeds = bounds.between(row, np.array([[lever, 0.0]]))[0]
            return float(np.where(rates > 0.0, speeds, 0.0) @ rates)

        own = of(self._frame, self._reach)
        return own + max(
            of(FrameRef(seen.link, IDENTITY), seen.reach) for seen in self._seen
        )


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
) -> list[tuple[str, int, Primitive | Cloud]]:
    """Return the collision shapes of a part, with names and numbers of their links."""
    cell, k = world.cell, world.cell.number(part)
    first = cell.starts[k]
    links = cell.manipulators[k].links
    return [
        (f"{part}/{link.name}", first + number, solid)
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
    found = poses(world.cell, world.now())
    X = np.linalg.inv(found[frame])
    solids = solids_of_part(world, part, meshes)
    if not solids:
        manipulator = world.cell.manipulators[world.cell.number(part)]
        base = manipulator.links[manipulator.base].name
        return float(np.linalg.norm((X @ found[f"{part}/{base}"])[:3, 3]))
    distances = (
        float(distance_kernel(POINT, solid)(X @ found[name]))
        for name, _, solid in solids
    )
    return max(0.0, min(distances))
