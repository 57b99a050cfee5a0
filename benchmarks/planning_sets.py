"""Problems for planners: arms at a table, at a shelf, in boxes and in a cage.

One arm, an arm on an oval track, and two arms that share a space. Every problem has a
way: start and goal are nodes of one roadmap whose edges are proven free, with some
distance to spare, so whoever misses one has missed it. Straight motions of the joints
from start to goal touch. The same numbers give the same problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.model.shapes.mesh import MeshSource
from armillary.shapes import Box, Cylinder, Primitive, Sphere

Array = npt.NDArray[np.float64]
Poses = Callable[[np.random.Generator, int], Array]

SPARE = 0.005
"""How far apart the ways that are known keep what may touch [m]."""
NEIGHBOURS = 10
SAMPLES = 300
CANDIDATES = 60
RETREAT = (0.0, 0.06, 0.12, 0.2, 0.3)
"""How far the tool is drawn back, on a way out to where it has room [m]."""
DOWN = arm.Pose.rotation_x(math.pi).matrix()
FORWARD = arm.Pose.rotation_y(0.5 * math.pi).matrix()
HERE = arm.Pose.translation(0.0, 0.0, 0.0)
ROOM = 1.1
"""Between two arms that face each other [m]."""


@dataclass(frozen=True)
class Scene:
    """Obstacles before an arm that stands at the origin, x ahead, and tasks in it.

    Attributes:
        name: What it is.
        shapes: The obstacles.
        targets: Gives poses of the tool, shape (k, 4, 4).
    """

    name: str
    shapes: tuple[Primitive, ...]
    targets: Poses


@dataclass(frozen=True, eq=False)
class Problem:
    """A start, a goal, and a way between them that is proven.

    Attributes:
        setting: The cell and what is asked of it.
        start: Joint positions [m or rad], shape (n,).
        goal: The same.
        way: Way points from the one to the other, shape (k, n).
    """

    setting: Setting
    start: Array
    goal: Array
    way: Array


Reach = tuple[list[str], str, arm.Pose]


@dataclass(frozen=True, eq=False)
class Setting:
    """A cell with arms and obstacles.

    Attributes:
        name: Of the set, as `ur5 shelf`.
        cell: The cell.
        arms: For each arm the joints that reach, its tool, and where its base is at a
            station.
        stations: Where the tasks are, in the world.
        targets: Poses of tools at a station.
    """

    name: str
    cell: arm.Cell
    arms: tuple[Reach, ...]
    stations: tuple[arm.Pose, ...]
    targets: Poses

    @cached_property
    def check(self) -> CollisionCheck:
        """Return the check that planners are given."""
        return self.cell.collision()

    def problems(self, count: int, seed: int = 0) -> list[Problem]:
        """Return problems, the same for the same seed."""
        rng = np.random.default_rng(seed)
        sure = self.cell.collision(margin=SPARE)
        ends = [self._candidates(rng, sure, station) for station in self.stations]
        roadmap = _Roadmap(sure, self._samples(rng, sure))
        numbers = [[roadmap.add(each) for each in group] for group in ends]
        home = roadmap.largest
        known = [[k for k in group if roadmap.part(k) == home] for group in numbers]
        starts, goals = known[0], known[-1]
        found: list[Problem] = []
        pairs = [(a, b) for a in starts for b in goals if a != b]
        for k in rng.permutation(len(pairs)).tolist():
            if len(found) == count:
                break
            a, b = (roadmap.nodes[each] for each in pairs[k])
            if not self.check.motion(a, b).free:
                way = roadmap.way(*pairs[k])
                found.append(Problem(self, a, b, way))
        return found

    def _samples(self, rng: np.random.Generator, sure: CollisionCheck) -> Array:
        lower, upper = (np.clip(each, -math.pi, math.pi) for each in self.cell.limits)
        Q = rng.uniform(lower, upper, (60 * SAMPLES, len(lower)))
        return Q[~sure(Q)][:SAMPLES]

    def _candidates(
        self, rng: np.random.Generator, sure: CollisionCheck, station: arm.Pose
    ) -> Iterator[Array]:
        """Yield ways out of joint positions that reach targets, shape (k, n)."""
        count = CANDIDATES
        avoid = sure if len(self.arms) == 1 else None
        ways = [self._ways_of(rng, each, station, avoid) for each in self.arms]
        free = 0
        for _ in range(100 * count):
            parts = [group[int(rng.integers(len(group)))] for group in ways]
            steps = min(map(len, (joined for _, joined in parts)))
            way = np.zeros((steps, len(self.cell.joint_names)))
            for joints, joined in parts:
                way[:, joints] = joined[:steps]
            if not sure(way[:1]).any():
                free += 1
                yield way
            if free == count:
                return

    def _ways_of(
        self,
        rng: np.random.Generator,
        one: Reach,
        station: arm.Pose,
        avoid: CollisionCheck | None,
    ) -> list[tuple[list[int], Array]]:
        """Return the ways of one arm back from targets that it reaches."""
        joints, tool, base = one
        names = list(self.cell.joint_names)
        numbers = [names.index(each) for each in joints]
        ik = self.cell.ik(tool, joints=joints, avoid=avoid)
        found: list[tuple[list[int], Array]] = []
        for X in (station @ base).matrix() @ self.targets(rng, 2 * CANDIDATES):
            answers = ik.all(X, starts=16)
            rows = answers.q[answers.success]
            if not len(rows):
                continue
            way = [rows[int(rng.integers(len(rows)))]]
            for back in RETREAT[1:]:
                at = X.copy()
                at[:3, 3] -= back * X[:3, 2]
                answer = ik(at, near=way[-1])
                if not answer.success or np.abs(answer.q - way[-1]).max() > 1.0:
                    break
                way.append(answer.q)
            found.append((numbers, np.array(way)))
        return found


class _Roadmap:
    """Joint positions and motions between them that are proven."""

    def __init__(self, check: CollisionCheck, samples: Array) -> None:
        self._check = check
        self.nodes: list[Array] = []
        self._edges: list[list[int]] = []
        self._parents: list[int] = []
        self._names: dict[int, int] = {}
        for q in samples:
            self._node(q)
        for k in range(len(self.nodes)):
            self._connect(k, k)

    @property
    def largest(self) -> int:
        """Return the part with most nodes."""
        parts = [self.part(k) for k in range(len(self.nodes))]
        return max(set(parts), key=parts.count)

    def part(self, k: int) -> int:
        """Return which part a node belongs to: nodes of a part are connected."""
        while self._parents[k] != k:
            self._parents[k] = k = self._parents[self._parents[k]]
        return k

    def add(self, way: Array) -> int:
        """Add way points, as far as they are free; return the number of the first."""
        first = self._node(way[0])
        last = first
        if len(way) > 1:
            free = self._check.motion(way[:-1], way[1:]).free.tolist()
            for q, is_free in zip(way[1:], free, strict=True):
                if not is_free:
                    break
                node = self._node(q)
                self._join(last, node)
                last = node
        self._connect(last, first)
        if last != first:
            self._connect(first, first)
        return first

    def way(self, a: int, b: int) -> Array:
        """Return the way points with the fewest motions, shape (k, n)."""
        came, waiting = {b: b}, [b]
        for node in waiting:
            for other in self._edges[node]:
                if other not in came:
                    came[other] = node
                    waiting.append(other)
        way = [a]
        while way[-1] != b:
            way.append(came[way[-1]])
        return np.array([self.nodes[k] for k in way])

    def _node(self, q: Array) -> int:
        self.nodes.append(q)
        self._edges.append([])
        self._parents.append(len(self._parents))
        return len(self.nodes) - 1

    def _connect(self, k: int, before: int) -> None:
        """Join a node to the nearest of those that were there before a number."""
        others = np.array(self.nodes[:before])
        if not len(others):
            return
        q = self.nodes[k]
        near = np.argsort(((others - q) ** 2).sum(axis=1))[:NEIGHBOURS]
        free = self._check.motion(np.tile(q, (len(near), 1)), others[near]).free
        for other in near[free].tolist():
            self._join(k, other)

    def _join(self, a: int, b: int) -> None:
        self._edges[a].append(b)
        self._edges[b].append(a)
        self._parents[self.part(a)] = self.part(b)


# scenes


def scenes(
    seed: int = 0, *, open_behind: bool = False, ahead: bool = False
) -> dict[str, Scene]:
    """Return the scenes by their names; another seed moves what stands in them.

    Args:
        seed: Of sizes and places.
        open_behind: Whether arms also come from the other side, 1.1 m ahead.
        ahead: Whether the arm needs its place to the left and right, to drive there.
    """
    rng = np.random.default_rng(seed)
    middle = 0.5 * ROOM if open_behind else 0.55
    made = (
        table(rng, middle),
        shelf(rng, middle, is_open=open_behind),
        boxes(rng, middle, is_one=open_behind),
        cage(rng, (0.0, ROOM) if open_behind else (0.0,), ahead=ahead),
    )
    return {each.name: each for each in made}


def table(rng: np.random.Generator, middle: float) -> Scene:
    """Return a table on which things stand; tools reach down between them."""
    board = Box(size=(0.8, 1.6, 0.04), pose=arm.Pose.translation(middle, 0, -0.03))
    shapes: list[Primitive] = [board]
    places: list[tuple[float, float]] = []
    while len(places) < 8:
        x, y = middle + rng.uniform(-0.25, 0.3), rng.uniform(-0.65, 0.65)
        if all(math.hypot(x - a, y - b) > 0.22 for a, b in places):
            places.append((x, y))
            up = float(rng.uniform(0.12, 0.4))
            at = arm.Pose.translation(x, y, 0.5 * up)
            if len(places) % 2:
                shapes.append(Cylinder(radius=0.04, length=up, pose=at))
            else:
                turned = at @ arm.Pose.rotation_z(float(rng.uniform(-1.5, 1.5)))
                shapes.append(Box(size=(0.08, 0.12, up), pose=turned))

    def targets(rng: np.random.Generator, count: int) -> Array:
        low, high = (middle - 0.25, -0.6, 0.03), (middle + 0.25, 0.6, 0.1)
        return _poses(rng.uniform(low, high, (count, 3)), DOWN, _turns(rng, count))

    return Scene("table", tuple(shapes), targets)


def shelf(rng: np.random.Generator, middle: float, *, is_open: bool) -> Scene:
    """Return a shelf of two by three compartments; tools reach in from the front."""
    depth, width, thick = 0.3, 1.1, 0.02
    x = middle if is_open else middle + 0.5 * depth - 0.03
    heights = np.array([0.02, 0.36, 0.7, 1.04]) + rng.uniform(-0.03, 0.03, 4)
    mid = 0.5 * float(heights[0] + heights[-1])
    tall = float(heights[-1] - heights[0]) + thick
    shapes: list[Primitive] = [
        Box(size=(depth, width, thick), pose=arm.Pose.translation(x, 0, float(z)))
        for z in heights
    ]
    shapes += [
        Box(size=(depth, thick, tall), pose=arm.Pose.translation(x, y, mid))
        for y in (-0.5 * width, float(rng.uniform(-0.05, 0.05)), 0.5 * width)
    ]
    if not is_open:
        at = arm.Pose.translation(x + 0.5 * depth, 0, mid)
        shapes.append(Box(size=(thick, width, tall), pose=at))
    front = x - 0.5 * depth

    def targets(rng: np.random.Generator, count: int) -> Array:
        level = rng.integers(0, 3, count)
        side = rng.choice([-1.0, 1.0], count)
        points = np.stack(
            [
                rng.uniform(front + 0.03, front + 0.12, count),
                side * rng.uniform(0.15, 0.4, count),
                heights[level] + rng.uniform(0.1, 0.2, count),
            ],
            axis=1,
        )
        return _poses(points, FORWARD, _turns(rng, count))

    return Scene("shelf", tuple(shapes), targets)


def boxes(rng: np.random.Generator, middle: float, *, is_one: bool) -> Scene:
    """Return open boxes, one or two; tools reach down into them."""
    side, thick = (0.6 if is_one else 0.42), 0.015
    at = [0.0] if is_one else [-0.32, 0.32]
    up = float(rng.uniform(0.2, 0.28))
    shapes: list[Primitive] = []
    half = 0.5 * side
    for y in at:
        floor = Box(size=(side, side, thick), pose=arm.Pose.translation(middle, y, 0.0))
        shapes.append(floor)
        for dx, dy in ((half, 0.0), (-half, 0.0), (0.0, half), (0.0, -half)):
            size = (thick, side, up) if dx else (side, thick, up)
            place = arm.Pose.translation(middle + dx, y + dy, 0.5 * up)
            shapes.append(Box(size=size, pose=place))

    def targets(rng: np.random.Generator, count: int) -> Array:
        points = rng.uniform(
            (middle - 0.13, -0.13, 0.06), (middle + 0.13, 0.13, 0.16), (count, 3)
        )
        points[:, 1] += rng.choice(at, count)
        return _poses(points, DOWN, _turns(rng, count))

    return Scene("box", tuple(shapes), targets)


def cage(rng: np.random.Generator, bases: Sequence[float], *, ahead: bool) -> Scene:
    """Return balls of 0.17 m on two rings around each arm; tools reach out of them."""
    shapes: list[Primitive] = []
    turn = float(rng.uniform(0.0, 0.9))
    for base in bases:
        for k in range(7):
            angle = turn + k * math.tau / 7
            x, y = base + 0.6 * math.cos(angle), 0.6 * math.sin(angle)
            if ahead and x < 0.25:
                continue
            if all(abs(x - other) + abs(y) > 0.45 for other in bases):
                shapes += [
                    Sphere(radius=0.17, pose=arm.Pose.translation(x, y, z))
                    for z in (0.25, 0.8)
                ]

    def targets(rng: np.random.Generator, count: int) -> Array:
        angle = rng.uniform(-1.0, 1.0, count) * (1.0 if ahead else math.pi)
        radius, height = rng.uniform((0.5, 0.2), (0.72, 0.9), (count, 2)).T
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        outwards = [(arm.Pose.rotation_z(a).matrix() @ FORWARD) for a in angle]
        X = _poses(np.stack([x, y, height], axis=1), DOWN, _turns(rng, count))
        X[:, :3, :3] = np.array(outwards)[:, :3, :3]
        return X

    return Scene("cage", tuple(shapes), targets)


def _turns(rng: np.random.Generator, count: int) -> Array:
    return rng.uniform(-math.pi, math.pi, count)


def _poses(points: Array, tool: Array, turns: Array) -> Array:
    """Return poses at points, each turned about the axis of the tool."""
    X = np.array([tool @ arm.Pose.rotation_z(float(a)).matrix() for a in turns])
    X[:, :3, 3] = points
    return X


# settings


def setting(robot: str, scene: str, arms: Arm, seed: int = 0) -> Setting:
    """Return a cell with a scene.

    Args:
        robot: `ur5`, `oval` or `two`: one arm, on an oval track, or two face to face.
        scene: `table`, `shelf`, `box` or `cage`.
        arms: The arm.
        seed: What moves the obstacles.
    """
    return MAKERS[robot](f"{robot} {scene}", scenes_of(robot, seed)[scene], arms)


def scenes_of(robot: str, seed: int) -> dict[str, Scene]:
    """Return the scenes before a robot."""
    return scenes(seed, open_behind=robot == "two", ahead=robot == "oval")


@dataclass(frozen=True)
class Arm:
    """An arm of six joints.

    Attributes:
        manipulator: The arm, whose base stands at its origin.
        tool: Its tool frame, z ahead.
        meshes: What reads the files of its meshes.
    """

    manipulator: arm.Manipulator
    tool: str
    meshes: MeshSource | None = None

    def named(self, name: str) -> arm.Manipulator:
        """Return it by another name."""
        return self.manipulator.replace(name=name)


def hulls() -> Arm:
    """Return the UR5 of example-robot-data, its meshes as hulls."""
    from benchmarks.robots import ur5

    cell = ur5().cell
    return Arm(cell.manipulators[0], "tool0", cell.meshes)


def capsules() -> Arm:
    """Return the UR5e of an example cell, in capsules and cylinders."""
    cell = arm.example("oval_track_cell")
    return Arm(cell.manipulators[cell.index["ur5e"]], "tool0")


def _cell(
    name: str,
    robots: Sequence[tuple[arm.Manipulator, Any]],
    scene: Scene,
    stations: Sequence[arm.Pose],
    meshes: MeshSource | None,
) -> arm.Cell:
    """Return a cell: robots, each at a pose or on a frame, and a scene at stations."""
    cell = arm.Cell(name=name.replace(" ", "_"), meshes=meshes)
    for robot, at in robots:
        if isinstance(at, str):
            cell = cell.add(robot, on=at)
        else:
            cell = cell.add(robot, pose=at or HERE)
    for k, station in enumerate(stations):
        links = [arm.Link(name="floor")]
        links += [
            arm.Link(name=f"thing{j}", parent="floor", collisions=[shape])
            for j, shape in enumerate(scene.shapes)
        ]
        fixed = arm.Manipulator(name=f"scene{k}", links=links)
        cell = cell.add(fixed, pose=station)
    rules = cell.rules
    for robot, _ in robots:
        rules = rules.include_self(robot.name)
    return cell.replace(rules=rules)


def _one(name: str, scene: Scene, arms: Arm) -> Setting:
    cell = _cell(name, [(arms.named("arm"), None)], scene, [HERE], arms.meshes)
    joints = list(cell.joint_names)
    return Setting(
        name, cell, ((joints, f"arm/{arms.tool}", HERE),), (HERE,), scene.targets
    )


def _oval(name: str, scene: Scene, arms: Arm) -> Setting:
    track, ahead = arm.joints.OvalTrack(straight=2.0, radius=0.8), 0.12
    cart = arm.Link(
        name="cart",
        parent="rail",
        joint=track,
        limits=arm.Limits(lower=-2.5, upper=2.5),
        collisions=[Box(size=(0.3, 0.3, 0.1), pose=arm.Pose.translation(0, 0, -0.06))],
    )
    rail = arm.Manipulator(name="track", links=[arm.Link(name="rail"), cart])
    # Outside of the lower straight, which the cart rides at y = -0.8 m.
    stations = tuple(
        arm.Pose.translation(x, -0.8 - ahead, 0.0) @ arm.Pose.rotation_z(-0.5 * math.pi)
        for x in (-0.75, 0.75)
    )
    cell = _cell(
        name,
        [(rail, None), (arms.named("arm"), "track/cart")],
        scene,
        stations,
        arms.meshes,
    )
    joints = list(cell.joint_names)
    return Setting(
        name, cell, ((joints, f"arm/{arms.tool}", HERE),), stations, scene.targets
    )


def _two(name: str, scene: Scene, arms: Arm) -> Setting:
    facing = arm.Pose.translation(ROOM, 0, 0) @ arm.Pose.rotation_z(math.pi)
    given = [(arms.named("left"), None), (arms.named("right"), facing)]
    cell = _cell(name, given, scene, [HERE], arms.meshes)
    both = tuple(
        (
            [each for each in cell.joint_names if each.startswith(side)],
            f"{side}/{arms.tool}",
            base,
        )
        for side, base in (("left", HERE), ("right", facing))
    )
    return Setting(name, cell, both, (HERE,), scene.targets)


MAKERS: dict[str, Callable[[str, Scene, Arm], Setting]] = {
    "ur5": _one,
    "oval": _oval,
    "two": _two,
}
