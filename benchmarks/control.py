"""Steps of controllers beside placo, mink and pink, and what they guarantee.

Peers that are not installed are left out. placo asks for another release of Pinocchio
than the tests do: `pip install placo mink pin-pink daqp mujoco` in an environment of
its own measures them all in one run.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary import tasks
from armillary.model.rules import Rule
from benchmarks.control_guarantees import SCENES, judged, run_of
from benchmarks.control_scenes import PANDA, UR5, Scene, two_arms
from benchmarks.measure import Figure, absent, cheaper, fewer, within

Array = npt.NDArray[np.float64]
Step = Callable[[int], object]

RATE = 1000.0
MARGIN = 0.02
ACCELERATION = 15.0
STEPS, TURNS, BATCH = 300, 5, 512
SEEDS, SECONDS, EVERY = fewer(20), 20.0, 200
"""Of the runs that judge what is guaranteed."""


def figures() -> Iterator[Figure]:
    """Yield the figures of steps of controllers."""
    with tempfile.TemporaryDirectory() as folder:
        for scene in (PANDA, UR5):
            path = scene.write(Path(folder))
            yield from plain(scene, path)
            yield from avoiding(scene, path)
        yield from of_two_arms(UR5.write(Path(folder)))
        yield from first_use(PANDA, PANDA.write(Path(folder)))
        for name in SCENES:
            for speed in (0.0, 0.1):
                yield from guaranteed(name, Path(folder), speed)


def plain(scene: Scene, path: Path) -> Iterator[Figure]:
    """Yield the lines of steps without obstacles, beside each peer."""
    runs: dict[str, Step] = {"ours": ours(scene, scene.cell(path))}
    peers = {"placo": placo, "mink": mink, "pink": pink}
    for name, make in peers.items():
        if find_spec(name):
            runs[name] = make(scene, path, None)
    medians = _medians(runs)
    what = f"{scene.name}, step of one row, no obstacles: median"
    yield within(what, medians["ours"], at_most=10e-6)
    for name, at_most in (("placo", 1.0), ("mink", 1.0), ("pink", 1.0)):
        if name in medians:
            yield cheaper(
                f"{what}, beside {name}",
                medians["ours"],
                medians[name],
                at_most=at_most,
            )
        else:
            yield absent(f"{what}, beside {name}", f"{name} is not installed")


def avoiding(scene: Scene, path: Path) -> Iterator[Figure]:
    """Yield the lines of steps that avoid obstacles and the arm itself."""
    cell = scene.cell(path)
    obstacles = scene.obstacles(path, 4)
    runs: dict[str, Step] = {"ours": ours(scene, cell, obstacles)}
    runs["made anew"] = ours(scene, cell, obstacles, is_moving=True)
    for name, make in (("mink", mink), ("pink", pink)):
        if find_spec(name):
            runs[name] = make(scene, path, obstacles)
    medians = _medians(runs)
    count = len(obstacles)
    what = f"{scene.name}, {count} obstacles and its own pairs, one row: median"
    yield within(what, medians["ours"], at_most=scene.single)
    moving = medians["made anew"]
    yield within(f"{what}, obstacles made anew", moving, at_most=scene.single)
    for name, at_most in (("mink", 1 / 8), ("pink", 1 / 50)):
        if name in medians:
            yield cheaper(
                f"{what}, beside {name}",
                medians["ours"],
                medians[name],
                at_most=at_most,
            )
        else:
            yield absent(f"{what}, beside {name}", f"{name} is not installed")
    each = _batch(scene, cell, obstacles)
    yield within(
        f"{scene.name}, {count} obstacles and its own pairs, a row of {BATCH}",
        each,
        at_most=scene.batch,
    )


def of_two_arms(path: Path) -> Iterator[Figure]:
    """Yield the line of two arms that avoid each other and themselves."""
    cell, q = two_arms(path)
    frames = [f"{m.name}/wrist_3_link" for m in cell.manipulators]
    control = cell.controller(
        [*map(tasks.Frame, frames), tasks.Posture(weight=1e-3)],
        avoid=cell.collision(margin=MARGIN),
        acceleration=ACCELERATION,
    )
    goals = [cell.fk(frame)(q) for frame in frames]
    at = [q, np.zeros_like(q)]

    def step(k: int) -> None:
        found = control(*at, [*(moved(goal, k / RATE) for goal in goals), q])
        at[:] = found.q_next, found.qd

    pairs = len(cell.collision().pairs)
    what = f"two UR5, 12 joints, {pairs} pairs, one row: median"
    yield within(what, _medians({"ours": step})["ours"], at_most=45e-6)


def guaranteed(name: str, folder: Path, speed: float) -> Iterator[Figure]:
    """Yield the lines of what holds in simulations, with distances by coal.

    speed: The greatest of obstacles [m/s].
    """
    run = SCENES[name](folder, SEEDS)
    kept = run_of(run, SECONDS, speed)
    judged_steps = kept.is_kept[::EVERY]
    least = min(
        float(judged(run, kept, seed, EVERY)[judged_steps[:, seed]].min())
        for seed in range(SEEDS)
    )
    what = f"{name}, {SEEDS} seeds of {SECONDS:g} s, obstacles to {speed:g} m/s"
    wanted = MARGIN - 5e-4
    for by, found in (
        (f"coal, each {EVERY}th step", least),
        ("the controller, all steps", float(kept.distance[kept.is_kept].min())),
    ):
        yield Figure(
            f"{what}: least distance by {by}",
            f"{found * 1e3:.2f} mm",
            "",
            f">= {wanted * 1e3:.1f} mm",
            f"{found * 1e3:.2f} mm",
            found >= wanted,
        )
    beyond, part = kept.beyond(run.cell), float(kept.is_kept.mean())
    yield Figure(
        f"{what}: beyond limits", str(beyond), "", "0", str(beyond), not beyond
    )
    yield Figure(
        f"{what}: acceleration beyond its limit, in parts of it",
        f"{kept.excess:.1e}",
        "",
        "< 1e-9",
        f"{kept.excess:.1e}",
        kept.excess < 1e-9,
    )
    yield Figure(
        f"{what}: steps before one is PUSHED or INSIDE",
        f"{part:.1%}",
        "",
        "",
        f"{part:.1%}",
        True,
    )


def first_use(scene: Scene, path: Path) -> Iterator[Figure]:
    """Yield the lines of the first step, compiled and from the cache."""
    from armillary.kernel import kernel, pipeline_kernel

    obstacles = scene.obstacles(path, 4)
    before = os.environ.get("ARMILLARY_CACHE")
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARMILLARY_CACHE"] = folder
        for _ in range(2):
            cell = scene.cell(path)
            kernel._shared.cache_clear()
            pipeline_kernel._columns.cache_clear()
            start = time.perf_counter()
            ours(scene, cell, obstacles)(0)
            times.append(time.perf_counter() - start)
    if before is None:
        del os.environ["ARMILLARY_CACHE"]
    else:
        os.environ["ARMILLARY_CACHE"] = before
    yield within(f"{scene.name}, first step, cold", times[0], at_most=4.0)
    yield within(f"{scene.name}, first step, cached", times[1], at_most=0.1)


def moved(X: Array, t: float) -> Array:
    """Return a pose that goes around a circle of 10 cm, after t [s]."""
    found = X.copy()
    found[:3, 3] += around(t)
    return found


def around(t: float) -> tuple[float, float, float]:
    """Return how far that is from its centre [m]."""
    return 0.1 * np.sin(t), 0.1 * (np.cos(t) - 1.0), 0.0


def ours(
    scene: Scene,
    cell: arm.Cell,
    obstacles: Array | None = None,
    *,
    is_moving: bool = False,
) -> Callable[[int], Any]:
    """Return the function that makes the k-th step of a simulation.

    is_moving: Whether obstacles are made anew for each step, as those that move are.
    """
    Obstacles = arm.Obstacles
    ends = radii = None
    goal = cell.fk(scene.tip)(scene.home)
    avoid = given = None
    if obstacles is not None:
        rules = [Rule(a=a, b=b, tested=True) for a, b in scene.pairs]
        chosen = arm.Rules(between=False, rules=rules)
        avoid = cell.collision(rules=chosen, margin=MARGIN)
        ends, radii = obstacles[:, :6].reshape(-1, 2, 3), obstacles[:, 6]
        given = Obstacles(ends, radii)
    control = cell.controller(
        [tasks.Frame(scene.tip), tasks.Posture(weight=1e-3)],
        avoid=avoid,
        acceleration=ACCELERATION,
        rate=RATE,
    )
    at = [scene.home, np.zeros_like(scene.home)]

    def step(k: int) -> Any:
        target = moved(goal, k / RATE)
        around = Obstacles(ends, radii) if is_moving else given
        found = control(*at, [target, scene.home], obstacles=around)
        at[:] = found.q_next, found.qd
        return found

    return step


def _batch(scene: Scene, cell: arm.Cell, obstacles: Array) -> float:
    """Return the time of a row of a batch of different positions [s]."""
    rules = [Rule(a=a, b=b, tested=True) for a, b in scene.pairs]
    avoid = cell.collision(rules=arm.Rules(between=False, rules=rules), margin=MARGIN)
    control = cell.controller(
        [tasks.Frame(scene.tip), tasks.Posture(weight=1e-3)],
        avoid=avoid,
        acceleration=ACCELERATION,
    )
    given = arm.Obstacles(obstacles[:, :6].reshape(-1, 2, 3), obstacles[:, 6])
    rng = np.random.default_rng(0)
    Q = scene.home + rng.uniform(-0.2, 0.2, (BATCH, len(scene.home)))
    T = cell.fk(scene.tip)(Q + rng.uniform(-0.01, 0.01, Q.shape))
    V = np.zeros_like(Q)
    best = np.inf
    for _ in range(10):
        start = time.perf_counter()
        control(Q, V, [T, scene.home], obstacles=given)
        best = min(best, time.perf_counter() - start)
    return best / BATCH


def _medians(runs: dict[str, Step]) -> dict[str, float]:
    """Return the median time of a step of each [s], all having taken turns."""
    best = dict.fromkeys(runs, np.inf)
    times = np.empty(STEPS)
    first = 0
    for _ in range(TURNS):
        for name, step in runs.items():
            for k in range(STEPS):
                start = time.perf_counter()
                step(first + k)
                times[k] = time.perf_counter() - start
            best[name] = min(best[name], float(np.median(times)))
        first += STEPS
    return best


def placo(scene: Scene, path: Path, _: Array | None) -> Step:
    """Return the same step by placo: a frame, a posture and limits."""
    module: Any = import_module("placo")
    robot = module.RobotWrapper(str(path), module.Flags.ignore_collisions)
    solver = module.KinematicsSolver(robot)
    solver.mask_fbase(True)
    solver.dt = 1.0 / RATE
    solver.enable_velocity_limits(True)
    solver.enable_joint_limits(True)
    home = dict(zip(robot.joint_names(), scene.home.tolist(), strict=True))
    for name, value in home.items():
        robot.set_joint(name, value)
    robot.update_kinematics()
    goal = robot.get_T_world_frame(scene.tip)
    task = solver.add_frame_task(scene.tip, goal)
    task.configure(scene.tip, "soft", 1.0, 0.1)
    posture = solver.add_joints_task()
    posture.set_joints(home)
    posture.configure("posture", "soft", 1e-3)

    def step(k: int) -> None:
        task.T_world_frame = moved(goal, k / RATE)
        solver.solve(True)
        robot.update_kinematics()

    return step


def mink(scene: Scene, path: Path, obstacles: Array | None) -> Step:
    """Return the same step by mink with daqp."""
    module: Any = import_module("mink")
    model = scene.mujoco(path, obstacles)
    configuration = module.Configuration(model)
    configuration.update(scene.home)
    task = module.FrameTask(scene.tip, "body", 1.0, 0.3)
    posture = module.PostureTask(model, 0.03)
    posture.set_target(scene.home)
    task.set_target_from_configuration(configuration)
    goal = task.transform_target_to_world.as_matrix()
    speeds = {model.joint(k).name: 2.0 for k in range(model.njnt)}
    limits = [module.ConfigurationLimit(model), module.VelocityLimit(model, speeds)]
    if obstacles is not None:
        pairs = [([f"c{a}"], [f"c{b}"]) for a, b in scene.capsule_pairs]
        geoms = [model.geom(k) for k in range(model.ngeom)]
        moving = [g.name for g in geoms if g.name[0] == "c" and g.bodyid[0]]
        others = [g.name for g in geoms if g.name[0] == "o"]
        limits.append(
            module.CollisionAvoidanceLimit(
                model,
                [*pairs, (moving, others)],
                gain=0.1,
                minimum_distance_from_collisions=MARGIN,
                collision_detection_distance=0.3,
            )
        )

    def step(k: int) -> None:
        target = module.SE3.from_matrix(moved(goal, k / RATE))
        task.set_target(target)
        v = module.solve_ik(
            configuration, [task, posture], 1.0 / RATE, "daqp", limits=limits
        )
        configuration.integrate_inplace(v, 1.0 / RATE)

    return step


def pink(scene: Scene, path: Path, obstacles: Array | None) -> Step:
    """Return the same step by pink with daqp."""
    module: Any = import_module("pink")
    model, geometry = scene.pinocchio(path, obstacles)
    more: dict[str, Any] = {}
    barriers = None
    if obstacles is not None:
        more = {"collision_model": geometry, "collision_data": geometry.createData()}
        barriers = [
            module.barriers.SelfCollisionBarrier(
                n_collision_pairs=min(24, len(geometry.collisionPairs)),
                gain=10.0,
                safe_displacement_gain=0.0,
                d_min=MARGIN,
            )
        ]
    configuration = module.Configuration(model, model.createData(), scene.home, **more)
    task, posture = module.FrameTask(scene.tip, 1.0, 0.3), module.PostureTask(1e-3)
    task.set_target_from_configuration(configuration)
    posture.set_target(scene.home)
    goal = task.transform_target_to_world.copy()
    start = goal.translation.copy()

    def step(k: int) -> None:
        t = k / RATE
        goal.translation = start + np.array(around(t))
        task.set_target(goal)
        v = module.solve_ik(
            configuration,
            [task, posture],
            1.0 / RATE,
            solver="daqp",
            barriers=barriers,
            safety_break=False,
        )
        configuration.integrate_inplace(v, 1.0 / RATE)

    return step
