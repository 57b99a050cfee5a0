"""Collision checks of cells, beside Pinocchio with coal, and MuJoCo: one thread.

The arm has the lengths of a Panda and 59 spheres of our own, about where its links are.
Peers are asked for one configuration after the other, as they offer no batch: from
Python Pinocchio's `computeCollisions`, which stops at the first contact and has all its
loops in C++, and MuJoCo's kinematics and collision stages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.shapes import Box, Capsule, Cylinder, Primitive, Sphere
from benchmarks.distances import peer_shape
from benchmarks.measure import Figure, best_times, faster, within

BATCH = 40_000
FEW = 200
EDGES = 10_000
MOVED = 100
FEW_EDGES = 3
STEP = math.radians(0.5)
LIMITS = np.array(
    [
        (-2.967, 2.967),
        (-1.8326, 1.8326),
        (-2.967, 2.967),
        (-3.1416, 0.0873),
        (-2.967, 2.967),
        (-0.0873, 3.8223),
        (-2.967, 2.967),
    ]
)
FRAMES = (  # of joints: about x by an angle, then along x and z [m]
    (0.0, 0.0, 0.333),
    (-0.5, 0.0, 0.0),
    (0.5, 0.0, 0.316),
    (0.5, 0.0825, 0.0),
    (-0.5, -0.0825, 0.384),
    (0.5, 0.0, 0.0),
    (0.5, 0.088, 0.0),
)
SPHERES: dict[str, list[tuple[float, float, float, float]]] = {  # x, y, z, radius [m]
    "link0": [(0, 0, 0.05, 0.08)],
    "link1": [
        (0, 0, -0.19, 0.06),
        (0, 0, 0, 0.06),
        (0, -0.08, 0, 0.06),
        (0, -0.03, 0, 0.06),
    ],
    "link2": [
        (0, 0, 0.03, 0.06),
        (0, 0, 0.08, 0.06),
        (0, -0.12, 0, 0.06),
        (0, -0.17, 0, 0.06),
    ],
    "link3": [
        (0, 0, -0.06, 0.05),
        (0, 0, -0.1, 0.06),
        (0.08, 0.06, 0, 0.055),
        (0.08, 0.02, 0, 0.055),
    ],
    "link4": [
        (0, 0, 0.02, 0.055),
        (0, 0, 0.06, 0.055),
        (-0.08, 0.095, 0, 0.06),
        (-0.08, 0.06, 0, 0.055),
    ],
    "link5": [
        *[
            (0, 0.055, 0, 0.06),
            (0, 0.085, 0, 0.05),
            (0, 0, -0.22, 0.05),
            (0, 0.05, -0.18, 0.05),
        ],
        *[
            (x, 0.08, z, 0.025)
            for x in (0.01, -0.01)
            for z in (-0.14, -0.11, -0.085, -0.06)
        ],
    ],
    "link6": [(0, 0, 0.01, 0.05), (0.08, 0.035, 0, 0.052), (0.085, -0.01, 0, 0.05)],
    "link7": [
        *[(0, 0, 0.07, 0.05), (0.02, 0.04, 0.08, 0.025), (0.04, 0.02, 0.08, 0.025)],
        *[(0.04, 0.06, 0.085, 0.02), (0.06, 0.04, 0.085, 0.02)],
    ],
    "hand": [
        (0, 0.015 * y, z, 0.028)
        for z in (0.117, 0.137, 0.157)
        for y in (-5, -3, -1, 1, 3, 5)
    ],
    "left": [(0, 0.015, 0.192, 0.012), (0, 0.01, 0.207, 0.012)],
    "right": [(0, -0.015, 0.192, 0.012), (0, -0.01, 0.207, 0.012)],
}
APART = (  # links that never touch, or always
    "link0 link2, link1 link3, link2 link4, link3 link5, link4 link6, link5 link7, "
    "link5 hand, link3 link6, link6 hand, link6 left, link6 right, link3 link7, "
    "link7 hand, link5 left, link5 right, link4 link7"
)


def figures() -> Iterator[Figure]:
    """Yield the figures of collision checks of cells."""
    yield from batch_figures()
    yield from call_figures()
    yield from motion_figures()
    yield from large_figures()


def panda() -> arm.Manipulator:
    """Return an arm of seven joints with a hand, in spheres."""

    def shapes(name: str) -> list[Sphere]:
        return [
            Sphere(radius=r, pose=arm.Pose.translation(x, y, z))
            for x, y, z, r in SPHERES[name]
        ]

    links = [arm.Link(name="link0", collisions=shapes("link0"))]
    for k, (turns, x, z) in enumerate(FRAMES):
        X = arm.Pose.rotation_x(turns * math.pi) @ arm.Pose.translation(x, 0.0, z)
        name = f"link{k + 1}"
        joint = arm.joints.Revolute(axis=(0, 0, 1), precursor=X)
        links.append(
            arm.Link(
                name=name,
                parent=f"link{k}",
                joint=joint,
                limits=arm.Limits(lower=LIMITS[k, 0], upper=LIMITS[k, 1]),
                collisions=shapes(name),
            )
        )
    fixed = arm.joints.Fixed(precursor=arm.Pose.rotation_z(-math.pi / 4))
    links += [
        arm.Link(name=name, parent="link7", joint=fixed, collisions=shapes(name))
        for name in ("hand", "left", "right")
    ]
    return arm.Manipulator(name="panda", links=links)


def cell_with(obstacles: Sequence[Primitive]) -> arm.Cell:
    """Return a cell with the arm and obstacles, each of which states may move."""
    things = [
        arm.Manipulator(
            name=f"obstacle{k}", links=[arm.Link(name="body", collisions=[shape])]
        )
        for k, shape in enumerate(obstacles)
    ]
    cell = arm.Cell(manipulators=[panda(), *things])
    rules = cell.rules.include("panda/*", "panda/*")
    for pair in APART.split(", "):
        a, b = pair.split()
        rules = rules.exclude(f"panda/{a}", f"panda/{b}", reason="never")
    if things:
        rules = rules.exclude("obstacle*/*", "obstacle*/*", reason="fixed")
        for base in ("link0", "link1"):
            rules = rules.exclude(f"panda/{base}", "obstacle*/*", reason="fixed")
    return cell.replace(rules=rules)


def obstacles(kind: str, count: int) -> list[Primitive]:
    """Return obstacles around the arm."""
    rng = np.random.default_rng(3)
    found: list[Primitive] = []
    while len(found) < count:
        x, y, z = rng.uniform(-0.8, 0.8, 3)
        if math.hypot(x, y) < 0.35:
            continue
        turn = arm.Pose.rotation_z(rng.uniform(-3, 3)) @ arm.Pose.rotation_x(1.0)
        pose = arm.Pose.translation(x, y, z + 0.4) @ turn
        size = tuple(rng.uniform(0.05, 0.2, 3).tolist())
        radius = float(rng.uniform(0.05, 0.12))
        found.append(
            {
                "spheres": Sphere(radius=radius, pose=pose),
                "boxes": Box(size=size, pose=pose),
                "capsules": Capsule(radius=0.5 * radius, length=0.3, pose=pose),
                "cylinders": Cylinder(radius=radius, length=0.3, pose=pose),
            }[kind]
        )
    return found


def random_q(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(*LIMITS.T, (count, 7))


def batch_figures() -> Iterator[Figure]:
    """Yield figures of many configurations."""
    Q, few = random_q(BATCH), random_q(FEW)
    asked = {"itself": 105e-9, "20 spheres": 170e-9}
    for what in ("itself", "20 spheres", "20 boxes", "20 capsules", "20 cylinders"):
        count, _, kind = what.partition(" ")
        shapes = obstacles(kind, int(count)) if kind else []
        check = cell_with(shapes).collision()
        peer = Pinocchio(check, shapes)
        assert [peer(q) for q in few] == check(few).tolist()
        kernel = check._kernel("touching")
        narrow, out = Q.astype(kernel.dtype), np.empty(len(Q), kernel.dtype)
        ours, theirs = best_times(
            lambda: kernel(narrow, out=out, threads=1),  # noqa: B023
            lambda: [peer(q) for q in few],  # noqa: B023
            turns=8,
        )
        title = f"arm in 59 spheres against {what}"
        if what in asked:
            kind = f"{title}, kernel, {kernel.dtype}"
            yield within(kind, ours / BATCH, at_most=asked[what])
        yield faster(f"{title}; Pinocchio", ours / BATCH, theirs / FEW, at_least=20)
        (whole,) = best_times(lambda: check(Q), turns=4)  # noqa: B023
        yield faster(f"{title}, check(Q)", whole / BATCH, theirs / FEW, at_least=20)


def call_figures() -> Iterator[Figure]:
    """Yield figures of single calls and of changed cells."""
    check, q = cell_with(()).collision(), random_q(1)[0]
    check(q)
    repeats = 1000
    (ours,) = best_times(lambda: [check(q) for _ in range(repeats)])
    yield within("one call, arm in 59 spheres, check(q)", ours / repeats, at_most=4e-6)
    yield from moved_figures()


def moved_figures() -> Iterator[Figure]:
    """Yield figures of checks after boxes moved, beside the same in Pinocchio.

    Each is a new state, its check and the first answer; the peer is given the new
    placements of its shapes and asked once.
    """
    shapes = obstacles("boxes", MOVED)
    cell, q = cell_with(shapes), random_q(1)[0]
    peer = Pinocchio(cell.collision(), shapes)
    names = [f"obstacle{k}" for k in range(MOVED)]
    rng = np.random.default_rng(0)

    def poses() -> dict[str, arm.Pose]:
        return {
            name: arm.Pose.from_rpy(*rng.uniform(-1, 1, 3), rng.uniform(-0.1, 0.1, 3))
            for name in names
        }

    def ours(state: arm.State, moved: dict[str, arm.Pose]) -> tuple[float, bool]:
        start = time.perf_counter()
        answer = bool(cell.collision(state.place_all(moved))(q))
        return time.perf_counter() - start, answer

    def theirs(moved: dict[str, arm.Pose]) -> tuple[float, bool]:
        matrices = {name: X.matrix() for name, X in moved.items()}
        start = time.perf_counter()
        for name, X in matrices.items():
            peer.place(name, X @ shapes[names.index(name)].pose.matrix())
        answer = peer(q)
        return time.perf_counter() - start, answer

    # Turns of both, each with poses of its own; the first ones compile.
    for what, count, most in (("100 boxes", MOVED, 1e-3), ("one of 100", 1, 150e-6)):
        best = [math.inf, math.inf]
        for _ in range(60):
            every = poses()
            state = cell.home.place_all(every)
            cell.collision(state)(q)
            theirs(every)
            moved = dict(list(poses().items())[:count])
            times, answers = zip(ours(state, moved), theirs(moved), strict=True)
            assert answers[0] == answers[1]
            best = list(map(min, best, times))
        title = f"{what} moved: state, cell.collision(state) and the first check(q)"
        yield within(title, best[0], at_most=most, peer=best[1])


def motion_figures() -> Iterator[Figure]:
    """Yield the figure of motions among boxes."""
    shapes = obstacles("boxes", 20)
    check = cell_with(shapes).collision()
    peer = Pinocchio(check, shapes)
    starts, ends = (random_q(4 * EDGES, seed) for seed in (1, 2))
    free = ~check(starts)
    q0, q1 = starts[free][:EDGES], ends[free][:EDGES]

    def sampled() -> None:
        for a, b in zip(q0[:FEW_EDGES], q1[:FEW_EDGES], strict=True):
            count = math.ceil(np.abs(b - a).max() / STEP)
            for t in np.linspace(0.0, 1.0, count):
                if peer(a + t * (b - a)):
                    break

    def proven() -> None:
        check.motion(q0, q1)

    ours, theirs = best_times(proven, sampled, turns=2)
    missed = 0
    motions = check.motion(q0, q1)
    for k in range(FEW):
        t = np.linspace(0.0, 1.0, 1000)[:, None]
        missed += bool(motions.free[k] and check(q0[k] + t * (q1[k] - q0[k])).any())
    assert not missed
    yield faster(
        "motions among 20 boxes, proven; Pinocchio at steps of 0.5 degrees",
        ours / EDGES,
        theirs / FEW_EDGES,
        at_least=20,
    )


def large_figures() -> Iterator[Figure]:
    """Yield figures of a cell of 20 manipulators of 20 links."""
    rng = np.random.default_rng(0)
    kinds = [
        Capsule(radius=0.04, length=0.12),
        Box(size=(0.08, 0.08, 0.12)),
        Sphere(radius=0.06),
        Cylinder(radius=0.05, length=0.1),
    ]
    robots: list[arm.Manipulator] = []
    for k in range(20):
        links = [arm.Link(name="base", collisions=[kinds[0]])]
        for i in range(19):
            kind = arm.joints.Revolute if i < 7 else arm.joints.Fixed
            bend = arm.Pose.rotation_x(rng.uniform(-0.6, 0.6))
            joint = kind(precursor=arm.Pose.translation(0, 0, 0.15) @ bend)
            links.append(
                arm.Link(
                    name=f"link{i}",
                    parent=links[-1].name,
                    joint=joint,
                    collisions=[kinds[i % 4]],
                )
            )
        robots.append(arm.Manipulator(name=f"robot{k}", links=links))
    mounts = [
        arm.Mount(
            manipulator=f"robot{k}",
            pose=arm.Pose.translation(1.0 * (k % 5), 1.0 * (k // 5), 0),
        )
        for k in range(20)
    ]
    check = arm.Cell(manipulators=robots, mounts=mounts).collision()
    q = rng.uniform(-1, 1, 140)
    assert check.contacts(q)
    contacts, yes = best_times(lambda: check.contacts(q), lambda: check(q), turns=30)
    title = f"400 links, {len(check.pairs):,} pairs, one state"
    yield within(f"{title}, contacts", contacts, at_most=200e-6)
    yield within(f"{title}, check(q)", yes, at_most=200e-6)


class Pinocchio:
    """Tells whether a configuration touches, by Pinocchio and coal."""

    def __init__(self, check: CollisionCheck, shapes: Sequence[Primitive]) -> None:
        """Make the same arm and the same pairs of shapes."""
        pin: Any = import_module("pinocchio")
        self._compute = pin.computeCollisions
        self.model = model = pin.Model()
        self.geometry = geometry = pin.GeometryModel()
        objects: dict[str, list[int]] = {}

        def add(link: str, parent: int, X: np.ndarray, all_shapes: Any) -> None:
            objects[link] = []
            for k, shape in enumerate(all_shapes):
                at = pin.SE3(X @ shape.pose.matrix())
                made = pin.GeometryObject(f"{link}{k}", parent, at, peer_shape(shape))
                objects[link].append(geometry.addGeometryObject(made))

        parent = 0
        robot = panda()
        add("panda/link0", 0, np.eye(4), robot.link("link0").collisions)
        for k in range(7):
            link = robot.link(f"link{k + 1}")
            at = pin.SE3(link.joint.precursor.matrix())
            parent = model.addJoint(parent, pin.JointModelRZ(), at, f"joint{k}")
            add(f"panda/link{k + 1}", parent, np.eye(4), link.collisions)
        for name in ("hand", "left", "right"):
            link = robot.link(name)
            add(f"panda/{name}", parent, link.joint.precursor.matrix(), link.collisions)
        for k, shape in enumerate(shapes):
            add(f"obstacle{k}/body", 0, np.eye(4), [shape])
        for a, b in check.pairs:
            for i in objects[a]:
                for j in objects[b]:
                    geometry.addCollisionPair(pin.CollisionPair(i, j))
        self.data, self.found = model.createData(), geometry.createData()

    def place(self, obstacle: str, X: np.ndarray) -> None:
        """Move the only shape of an obstacle."""
        number = self.geometry.getGeometryId(f"{obstacle}/body0")
        placement = import_module("pinocchio").SE3(X)
        self.geometry.geometryObjects[number].placement = placement

    def __call__(self, q: np.ndarray) -> bool:
        """Return whether anything touches."""
        return bool(
            self._compute(self.model, self.data, self.geometry, self.found, q, True)
        )
