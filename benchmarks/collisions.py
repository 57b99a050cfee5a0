"""Collision checks of cells, beside Pinocchio with coal, and MuJoCo: one thread.

The arm has the lengths of a Panda and 59 spheres of our own, about where its links are.
The peer is asked for one configuration after the other, as it offers no batch: from
Python Pinocchio's `computeCollisions`, which stops at the first contact and has all its
loops in C++, with its broad phase or pair after pair, whichever is faster there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.shapes import Box, Capsule, ConvexPolyhedron, Cylinder, Primitive, Sphere
from benchmarks.distances import peer_shape
from benchmarks.inverse import first_tries
from benchmarks.learned_rules import Pinocchio as HullsInPinocchio
from benchmarks.learned_rules import panda_urdf
from benchmarks.measure import Figure, best_times, faster, within
from benchmarks.peer_checks import PeerChecks

BATCH = 40_000
FEW = 200
EDGES = 10_000
MOVED = 100
OBSTACLES = 15
FEW_EDGES = 3
NEW_STATES = 1000
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
    yield from distance_figures()
    yield from hull_figures()
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
        pairs = peer.checks.touches_by_pairs
        kernel = check._kernel("touching")
        narrow, out = Q.astype(kernel.dtype), np.empty(len(Q), kernel.dtype)
        ours, whole, one, *theirs = best_times(
            lambda: kernel(narrow, out=out, threads=1),  # noqa: B023
            lambda: check(Q),  # noqa: B023
            lambda: [check(q) for q in few],  # noqa: B023
            lambda: [peer(q) for q in few],  # noqa: B023
            lambda: [pairs(q) for q in few],  # noqa: B023
            turns=8,
            clock=time.process_time,
        )
        each = min(theirs) / FEW
        title = f"arm in 59 spheres against {what}"
        if what in asked:
            kind = f"{title}, kernel, {kernel.dtype}"
            yield within(kind, ours / BATCH, at_most=asked[what])
        yield faster(f"{title}, kernel", ours / BATCH, each, at_least=20)
        yield faster(f"{title}, check(Q)", whole / BATCH, each, at_least=20)
        yield faster(f"{title}, check(q)", one / FEW, each, at_least=1)


def call_figures() -> Iterator[Figure]:
    """Yield figures of single calls and of changed cells."""
    check, q = cell_with(()).collision(), random_q(1)[0]
    check(q)
    repeats = 1000
    (ours,) = best_times(lambda: [check(q) for _ in range(repeats)])
    yield within("one call, arm in 59 spheres, check(q)", ours / repeats, at_most=4e-6)
    yield from moved_figures()
    yield from obstacle_figures()


def moved_figures() -> Iterator[Figure]:
    """Yield figures of checks after boxes moved, beside the same in Pinocchio."""
    yield from figures_among(
        MOVED, {"100 boxes": (MOVED, 1e-3), "one of 100": (1, 150e-6)}
    )
    yield from figures_among(10 * MOVED, {"one of 1 000": (1, 150e-6)})


def figures_among(boxes: int, moves: dict[str, tuple[int, float]]) -> Iterator[Figure]:
    """Yield such figures of a number of boxes.

    moves: How many of them move, and what is asked for [s].

    Each is a new state, its check and the first answer; the peer is given the new
    placements of its shapes and asked once, with its broad phase or without.
    """
    shapes = obstacles("boxes", boxes)
    cell, q = cell_with(shapes), random_q(1)[0]
    peer = Pinocchio(cell.collision(), shapes)
    names = [f"obstacle{k}" for k in range(boxes)]
    rng = np.random.default_rng(0)

    def poses() -> dict[str, arm.Pose]:
        return {
            name: arm.Pose.from_rpy(*rng.uniform(-1, 1, 3), rng.uniform(-0.1, 0.1, 3))
            for name in names
        }

    def ours(state: arm.State, moved: dict[str, arm.Pose]) -> tuple[float, bool]:
        start = time.thread_time()
        answer = bool(cell.collision(state.place_all(moved))(q))
        return time.thread_time() - start, answer

    def theirs(
        moved: dict[str, arm.Pose], ask: Callable[[Any], bool]
    ) -> tuple[float, bool]:
        placed = [
            (peer.body(name), peer.place(X @ shapes[names.index(name)].pose))
            for name, X in moved.items()
        ]
        start = time.thread_time()
        for body, X in placed:
            body.placement = X
        answer = ask(q)
        return time.thread_time() - start, answer

    # Each with poses of its own, since a peer stops at the first contact; the first
    # turn compiles.
    peers = peer.checks.touches, peer.checks.touches_by_pairs
    for what, (count, most) in moves.items():
        took: list[list[float]] = []
        for _ in range(60):
            every = poses()
            state = cell.home.place_all(every)
            cell.collision(state)(q)
            moved = dict(list(poses().items())[:count])
            turns = [ours(state, moved)]
            for ask in peers:
                theirs(every, ask)
                turns.append(theirs(moved, ask))
            assert len({answer for _, answer in turns}) == 1
            took.append([time for time, _ in turns])
        mine, *rivals = np.median(took[1:], axis=0).tolist()
        title = f"{what} moved: state, cell.collision(state), first check(q), median"
        yield within(title, mine, at_most=most, peer=min(rivals))


def obstacle_figures() -> Iterator[Figure]:
    """Yield the figure of a check among new obstacles: shapes, first answer, prover."""
    check, q = cell_with(()).collision(), random_q(2)
    rng = np.random.default_rng(0)

    def scene() -> dict[str, Primitive]:
        made: dict[str, Primitive] = {}
        for k in range(OBSTACLES):
            at = rng.uniform((-0.8, -0.8, -0.4), (0.8, 0.8, 1.2))
            pose = arm.Pose.from_rpy(*rng.uniform(-3, 3, 3), at)
            size = float(rng.uniform(0.02, 0.1))
            made[f"shape{k}"] = (
                Sphere(radius=size, pose=pose),
                Box(size=(size, 2 * size, size), pose=pose),
                Capsule(radius=size, length=0.2, pose=pose),
            )[k % 3]
        return made

    took: list[float] = []
    for _ in range(60):
        given = scene()
        start = time.thread_time()
        among = check.with_obstacles(given)
        among(q[0])
        among.motion(q[0], q[0])
        took.append(time.thread_time() - start)
    title = f"{OBSTACLES} new obstacles: check, first check(q), first motion, median"
    yield within(title, float(np.median(took[1:])), at_most=0.5e-3)


def distance_figures() -> Iterator[Figure]:
    """Yield figures of the distance of each pair, and its slopes, beside Pinocchio.

    Times are those of all threads together.
    """
    Q, few = random_q(BATCH // 4), random_q(FEW)
    asked = {"itself": (2e-6, 4e-6)}
    for what in ("itself", "20 spheres", "20 boxes"):
        count, _, kind = what.partition(" ")
        shapes = obstacles(kind, int(count)) if kind else []
        check = cell_with(shapes).collision()
        peer = Pinocchio(check, shapes)
        here, there = check.distances(few[:20]), [peer.distances(q) for q in few[:20]]
        is_free = np.array(there) > 1e-3  # coal's depth of boxes is another one
        assert np.abs(here - there)[is_free].max() < 1e-5
        distances, slopes, one, theirs = best_times(
            lambda: check.distances(Q),  # noqa: B023
            lambda: check.gradients(Q),  # noqa: B023
            lambda: [check.distances(q) for q in few],  # noqa: B023
            lambda: [peer.checks.distances(q) for q in few],  # noqa: B023
            turns=4,
            clock=time.process_time,
        )
        title, each = f"arm in 59 spheres against {what}", theirs / FEW
        yield faster(f"{title}, distances(Q)", distances / len(Q), each, at_least=5)
        yield faster(f"{title}, distances(q)", one / FEW, each, at_least=1)
        if what in asked:
            most, most_slopes = asked[what]
            yield within(f"{title}, distances(Q)", distances / len(Q), at_most=most)
            yield within(f"{title}, gradients(Q)", slopes / len(Q), at_most=most_slopes)


def hull_figures() -> Iterator[Figure]:
    """Yield figures of a Panda with its meshes as hulls, one call at a time."""
    path = panda_urdf()
    cell = arm.load(path)
    check = cell.collision()
    peer = HullsInPinocchio(cell, str(path), check.pairs)
    Q = cell.samples(FEW).rows(0, FEW)
    values = check.distances(Q)
    free = (values > 0.0).all(axis=1)
    one = check.distances(Q[free][0])
    assert np.abs(one - peer.distances(Q[free][0])).max() < 1e-5
    peers = peer.checks
    asked: list[tuple[str, Callable[[Any], object], list[Any], float]] = [
        ("check(q)", check, [peers.touches, peers.touches_by_pairs], 3e-6),
        ("distances(q)", check.distances, [peers.distances], 60e-6),
        ("contacts(q)", check.contacts, [peers.contacts], 20e-6),
        ("gradients(q)", check.gradients, [peers.distances_and_jacobians], 80e-6),
        ("clearance(q)", check.clearance, [peers.distances], 80e-6),
    ]
    for where, rows in (("free", Q[free]), ("some overlap", Q[~free])):
        title = f"Panda in hulls, {len(check.pairs)} pairs, {where}"
        given = list(peer.joints(rows))
        assert check(rows).tolist() == [peers.touches(q) for q in given]
        for what, ours, theirs, most in asked:
            is_single = what == "contacts(q)"  # which takes no batch
            one, batch, *rivals = best_times(
                lambda: [ours(q) for q in rows],  # noqa: B023
                lambda: ours(rows[0] if is_single else rows),  # noqa: B023
                *(partial(_each, rival, given) for rival in theirs),
                turns=4,
                clock=time.process_time,
            )
            each, count = min(rivals) / len(rows), len(rows)
            yield within(f"{title}, {what}", one / count, at_most=most, peer=each)
            if not is_single:
                name = f"{title}, {what.replace('q', 'Q')}"
                yield faster(name, batch / count, each, at_least=1)


def _each(call: Callable[[Any], object], rows: Iterable[Any]) -> None:
    for row in rows:
        call(row)


def motion_figures() -> Iterator[Figure]:
    """Yield figures of motions: many among boxes, then few kinds of them."""
    shapes = obstacles("boxes", 20)
    check = cell_with(shapes).collision()
    peer = Pinocchio(check, shapes)
    q0, q1 = motions_of(check, EDGES)

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
    yield from kinds_of_motions()


def motions_of(check: CollisionCheck, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of motions that begin at random positions that are free."""
    starts, ends = (random_q(4 * count, seed) for seed in (1, 2))
    free = ~check(starts)
    return starts[free][:count], ends[free][:count]


def kinds_of_motions() -> Iterator[Figure]:
    """Yield figures of one motion and of many: short, long, free, and against hulls."""
    check = cell_with(obstacles("spheres", 20)).collision()
    q0, q1 = motions_of(check, 2000)
    near = q0 + 0.15 * (q1 - q0)
    title = "motions of an arm in 59 spheres among 20"
    check.motion(q0[0], near[0])
    # Each motion once: the first try of each.
    short = first_tries(lambda ends: check.motion(*ends), zip(q0, near, strict=True))
    alone, late = np.percentile(short, (50, 99)).tolist()
    yield within(f"{title}, 0.15 of a long one, alone", alone, at_most=20e-6)
    yield within(f"{title}, the same, 99 of 100", late, at_most=500e-6)
    free = check.motion(q0, q1).free
    kinds = {
        "0.15 of a long one": (q0, near),
        "between random positions": (q0, q1),
        "of these free ones": (q0[free], q1[free]),
        "of these ones that touch": (q0[~free], q1[~free]),
    }
    for kind, ends in kinds.items():
        (whole,) = best_times(partial(check.motion, *ends), turns=4)
        yield within(f"{title}, {kind}, batch", whole / len(ends[0]), at_most=8e-6)
    points = np.random.default_rng(4).normal(size=(20, 40, 3))
    hulls = [
        ConvexPolyhedron(
            vertices=0.1 * each / np.linalg.norm(each, axis=1)[:, None], pose=place.pose
        )
        for each, place in zip(points, obstacles("spheres", 20), strict=True)
    ]
    check = cell_with(hulls).collision()
    q0, q1 = motions_of(check, FEW)
    (whole,) = best_times(partial(check.motion, q0, q1), turns=4)
    title = "motions of an arm in 59 spheres among 20 hulls, batch"
    yield within(title, whole / FEW, at_most=100e-6)


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
    times: list[float] = []
    for row in rng.uniform(-1, 1, (NEW_STATES, 140)):
        start = time.process_time()
        check.contacts(row)
        times.append(time.process_time() - start)
    median, late = np.percentile(times, (50, 99)).tolist()
    yield within(f"{title}, contacts of new q, median", median, at_most=200e-6)
    yield within(f"{title}, contacts of new q, p99", late, at_most=500e-6)
    yield within(f"{title}, check(q)", yes, at_most=200e-6)


class Pinocchio:
    """Tells whether a configuration touches, by Pinocchio and coal."""

    def __init__(self, check: CollisionCheck, shapes: Sequence[Primitive]) -> None:
        """Make the same arm and the same pairs of shapes."""
        pin: Any = import_module("pinocchio")
        model = pin.Model()
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
        owners: list[int] = []
        for k, (a, b) in enumerate(check.pairs):
            for i in objects[a]:
                for j in objects[b]:
                    geometry.addCollisionPair(pin.CollisionPair(i, j))
                    owners.append(k)
        self._owners = np.array(owners)
        self.checks = PeerChecks(model, geometry)

    def body(self, obstacle: str) -> Any:
        """Return the only shape of an obstacle, whose placement may be set."""
        number = self.geometry.getGeometryId(f"{obstacle}/body0")
        return self.geometry.geometryObjects[number]

    def place(self, X: arm.Pose) -> Any:
        """Return a pose as Pinocchio has it."""
        return import_module("pinocchio").SE3(X.matrix())

    def __call__(self, q: np.ndarray) -> bool:
        """Return whether anything touches, with a broad phase."""
        return self.checks.touches(q)

    def distances(self, q: np.ndarray) -> np.ndarray:
        """Return the distance of each pair of links, shape (k,)."""
        found = np.full(self._owners.max() + 1, np.inf)
        values = [each.min_distance for each in self.checks.distances(q)]
        np.minimum.at(found, self._owners, values)
        return found
