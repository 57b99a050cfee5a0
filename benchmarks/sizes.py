"""The same questions at ten times the size: loading, dynamics, checks, controllers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm
from armillary.kernel import draft
from benchmarks.costs import process_time
from benchmarks.distances import peer_shape
from benchmarks.measure import Figure, best_times, within, without_cache
from benchmarks.peer_checks import PeerChecks
from benchmarks.robots import ROBOTS, SHARE, talos

MANY = 400
BODIES = 160
JOINTS = (30, 45, 60)
CALLS = 20


def figures() -> Iterator[Figure]:
    """Yield the figures of large robots."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.urdf"
        large.write_text(branches(MANY, 7))
        yield from load_figures(large)
        yield from check_figures(large)
        yield from process_figures(large)
        yield from dynamics_figures(Path(folder) / "bodies.urdf")
        yield covers_figure()
        yield from talos_figures()
        for count in JOINTS:
            path = Path(folder) / "chain.urdf"
            path.write_text(branches(count + 1, count))
            cell = arm.load(path)
            make = first_step(cell, f"b0l{count}", list(cell.joint_names))
            yield from controller_figures(f"a chain of {count} joints", make, 100e-6)


def talos_figures() -> Iterator[Figure]:
    """Yield the figures of a humanoid's controller."""
    robot = talos()
    make = first_step(robot.cell, robot.tip, robot.joints)
    yield from controller_figures("Talos, 32 joints", make, 20e-6)


def branches(links: int, joints: int, per_branch: int = 20) -> str:
    """Return the URDF of chains on one base, whose first joints move.

    Each link has a box of 4 x 4 x 10 cm and a mass; a chain of more joints than
    `per_branch` is one chain.
    """
    each = max(per_branch, joints + 1)
    inertia = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
    body = (
        f'<inertial><mass value="1"/><origin xyz="0 0 0.05"/>{inertia}</inertial>'
        '<collision><origin xyz="0 0 0.05"/><geometry><box size="0.04 0.04 0.1"/>'
        "</geometry></collision>"
    )
    parts = [f'<link name="base">{body}</link>']
    for n in range(links - 1):
        b, k = n // (each - 1), n % (each - 1) + 1
        parent = "base" if k == 1 else f"b{b}l{k - 1}"
        start = f"{0.4 * (b % 5 + 1)} {0.4 * (b // 5)} 0" if k == 1 else "0 0 0.12"
        kind = "revolute" if k <= joints else "fixed"
        parts.append(
            f'<link name="b{b}l{k}">{body}</link>'
            f'<joint name="b{b}j{k}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="b{b}l{k}"/><origin xyz="{start}" rpy="0.{k % 4} 0 0.3"/>'
            f'<axis xyz="{k % 2} {1 - k % 2} 0"/>'
            '<limit lower="-2" upper="2" velocity="2" effort="100"/></joint>'
        )
    return f'<robot name="large">{"".join(parts)}</robot>'


def load_figures(large: Path) -> Iterator[Figure]:
    """Yield the processor time of loading a file, beside Pinocchio's model of it.

    The peer makes the tree alone; ours keeps shapes, limits, places and diagnostics.
    Rows are of files that are read; those of files that were read before say so.
    """
    import pinocchio as pin

    paths = {
        "Panda": ROBOTS / "panda_description/urdf/panda.urdf",
        "Talos": ROBOTS / "talos_data/robots/talos_reduced.urdf",
        f"{MANY} links": large,
    }
    for name, path in paths.items():
        load = partial(arm.load, path, packages={"example-robot-data": SHARE})
        ours, again, tree, everything = best_times(
            without_cache(load),
            load,
            partial(pin.buildModelFromUrdf, str(path)),
            partial(_with_shapes, pin, path),
            clock=time.process_time,
        )
        most = {"Panda": 2e-3, "Talos": 10e-3}.get(name, 50e-3)
        yield within(f"load {name}, its tree alone", ours, at_most=most, peer=tree)
        title = f"load {name}; Pinocchio's tree with meshes read"
        yield within(title, ours, at_most=most, peer=everything)
        title = f"load {name} again, its tree alone"
        yield within(title, again, at_most=2e-3, peer=tree)


def _with_shapes(pin: Any, path: Path) -> None:
    model = pin.buildModelFromUrdf(str(path))
    kind = pin.GeometryType.COLLISION
    pin.buildGeomFromUrdf(model, str(path), kind, None, [str(SHARE.parent)])


def check_figures(path: Path) -> Iterator[Figure]:
    """Yield how long the check of many links takes to build, and to answer."""
    import pinocchio as pin

    cell = arm.load(path)
    cell.collision()(cell.home.q)  # compiles
    start = time.process_time()
    cell = arm.load(path)
    loaded = time.process_time() - start
    check = cell.collision()
    check(cell.home.q)
    built = time.process_time() - start - loaded
    model = pin.buildModelFromUrdf(str(path))
    geometry = pin.GeometryModel()
    numbers: dict[str, int] = {}
    for link in cell.manipulators[0].links:
        frame = model.frames[model.getFrameId(link.name)]
        (shape,) = link.collisions
        assert isinstance(shape, arm.shapes.Box)
        at = frame.placement * pin.SE3(shape.pose.matrix())
        made = pin.GeometryObject(link.name, frame.parentJoint, at, peer_shape(shape))
        name = f"{cell.manipulators[0].name}/{link.name}"
        numbers[name] = geometry.addGeometryObject(made)
    tested = np.zeros((len(numbers), len(numbers)), np.bool_)
    for pair in check.pairs:
        i, j = sorted(numbers[name] for name in pair)
        tested[i, j] = True
    paired = time.process_time()
    geometry.setCollisionPairs(tested)
    peer = PeerChecks(model, geometry)
    peer.touches(np.zeros(model.nq))
    theirs = time.process_time() - paired
    title = f"{MANY} links, {len(check.pairs):,} pairs"
    what = f"{title}: check and first answer, code cached"
    yield within(what, built, at_most=50e-3, peer=theirs)
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (CALLS, model.nq))
    assert list(check(Q)) == [peer.touches(q) for q in Q]
    asked: dict[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
        "check(q)": (check, peer.touches),
        "contacts(q)": (check.contacts, peer.contacts),
        "distances(q)": (check.distances, peer.distances),
    }
    for what, (mine, rival) in asked.items():
        one, other = best_times(
            lambda: [mine(q) for q in Q],  # noqa: B023
            lambda: [rival(q) for q in Q],  # noqa: B023
            turns=3,
            clock=time.process_time,
        )
        most, each = 200e-6, other / CALLS
        yield within(f"{title}: {what}", one / CALLS, at_most=most, peer=each)


def process_figures(path: Path) -> Iterator[Figure]:
    """Yield the processor time of new processes that check many links once."""
    code = (
        f"import armillary as arm; cell = arm.load({str(path)!r})\n"
        "cell.collision()(cell.home.q)"
    )
    peer = (
        f"import pinocchio as pin; path = {str(path)!r}\n"
        "model = pin.buildModelFromUrdf(path)\n"
        "shapes = pin.buildGeomFromUrdf(model, path, pin.GeometryType.COLLISION)\n"
        "shapes.addAllCollisionPairs(); found = shapes.createData()\n"
        "kind = pin.BroadPhaseManager_DynamicAABBTreeCollisionManager\n"
        "manager, data = kind(model, shapes, found), model.createData()\n"
        "pin.computeCollisions(model, data, manager, pin.neutral(model), True)"
    )
    with tempfile.TemporaryDirectory() as cache:
        place = {**os.environ, "ARMILLARY_CACHE": cache}
        ours = ["-W", "ignore", "-c", code]
        with tempfile.TemporaryDirectory() as empty:
            first = {"ARMILLARY_CACHE": empty, "ARMILLARY_BACKGROUND": "on"}
            cold = process_time(ours, {**place, **first}, rounds=0)
        cached = process_time(ours, place, rounds=2)
        other = process_time(["-c", peer], place, rounds=2)
    title = f"new process: load {MANY} links, first check"
    yield within(f"{title}; Pinocchio", cached, at_most=1.0, peer=other)
    yield within(f"{title}, nothing cached; Pinocchio", cold, at_most=5.0, peer=other)


def dynamics_figures(path: Path) -> Iterator[Figure]:
    """Yield a call of dynamics of more than 128 bodies."""
    import pinocchio as pin

    path.write_text(branches(BODIES + 1, BODIES))
    cell, model = arm.load(path), pin.buildModelFromUrdf(str(path))
    data, q = model.createData(), np.full(BODIES, 0.1)
    start = time.process_time()
    kernel = cell.inverse_dynamics()
    torques = kernel(q, q, q)
    made = time.process_time() - start
    assert np.allclose(torques, pin.rnea(model, data, q, q, q))
    ours, peer = best_times(
        lambda: kernel(q, q, q), lambda: pin.rnea(model, data, q, q, q), turns=CALLS
    )
    title = f"inverse dynamics of {BODIES} bodies in a chain"
    yield within(f"{title}, one call", ours, at_most=40e-6, peer=peer)
    yield within(f"{title}, the first", made, at_most=10.0)


def covers_figure() -> Figure:
    """Return how long spheres that cover a Panda take where they were made before."""
    path = ROBOTS / "panda_description/urdf/panda.urdf"
    load = partial(arm.load, path, packages={"example-robot-data": SHARE})
    load().with_collisions("spheres")  # kept on disk
    (took,) = best_times(
        lambda: load().with_collisions("spheres"), turns=2, clock=time.process_time
    )
    return within("load and with_collisions('spheres'), kept", took, at_most=0.1)


Step = Callable[[], object]


def first_step(cell: arm.Cell, tip: str, joints: list[str]) -> Callable[[], Step]:
    """Return what makes a controller, makes its first step, and returns a step."""
    zero = np.zeros(len(joints))
    q = np.clip(zero, *cell.limits)

    def make() -> Step:
        frame = arm.tasks.Frame(tip)
        control = cell.controller([frame, arm.tasks.Posture(weight=1e-3)])
        target = cell.fk(tip)(q)
        step = lambda: control(q, zero, [target, q])  # noqa: E731
        step()
        return step

    return make


def controller_figures(
    name: str, make: Callable[[], Step], at_most: float
) -> Iterator[Figure]:
    """Yield the first step of a controller, and one of many."""
    names = "ARMILLARY_CACHE", "ARMILLARY_BACKGROUND"
    before = {key: os.environ[key] for key in names if key in os.environ}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(zip(names, (folder, "on"), strict=True))
        start = time.process_time()
        try:
            step = make()
            first = time.process_time() - start
            draft.wait()  # further steps run the code proper
        except arm.errors.ModelError as error:
            reason, _, _ = str(error).partition(";")
            yield Figure(f"{name}, controller", "", "", "", f"refused: {reason}", False)
            return
        finally:
            for key in names:
                os.environ.pop(key)
            os.environ.update(before)
    yield within(f"{name}, controller's first step, cold", first, at_most=2.0)
    (took,) = best_times(lambda: [step() for _ in range(CALLS)], turns=CALLS)
    yield within(f"{name}, a step of the controller", took / CALLS, at_most=at_most)
