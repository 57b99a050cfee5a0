"""Controllers among moving obstacles: seeds of a scene as one batch, judged by coal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary import tasks
from armillary.model.rules import Rule
from armillary.shapes import Box, Capsule, Cylinder, Sphere
from benchmarks.control_scenes import PANDA, UR5, Scene, two_arms

__all__ = ["SCENES", "Kept", "Run", "judged", "run_of"]

Array = npt.NDArray[np.float64]

MARGIN, ACCELERATION, RATE = 0.02, 15.0, 1000.0
COUNT, AMPLITUDE, CLEAR = 12, 0.15, 0.1


class Run(NamedTuple):
    """A cell, what follows targets, where it begins, and what is near.

    Attributes:
        cell: The cell; its rules say which pairs count.
        tips: Frames that follow targets.
        home: Where it begins.
        obstacles: Both ends and the radius of each, shape (seeds, k, 7).
    """

    cell: arm.Cell
    tips: Sequence[str]
    home: Array
    obstacles: Array


@dataclass(frozen=True)
class Kept:
    """What a simulation kept.

    Attributes:
        q: Positions, shape (steps + 1, seeds, n).
        qd: Rates.
        reason: Of each step, shape (steps, seeds).
        distance: The least, as the controller says [m].
        ends: Of obstacles at each step [m], shape (steps, seeds, k, 2, 3).
    """

    q: Array
    qd: Array
    reason: npt.NDArray[np.int64]
    distance: Array
    ends: Array

    @property
    def is_kept(self) -> npt.NDArray[np.bool_]:
        """Return the steps before which nothing came too fast to be given way to."""
        void = arm.RateReason.PUSHED, arm.RateReason.INSIDE
        return ~np.logical_or.accumulate(np.isin(self.reason, void), axis=0)

    @property
    def excess(self) -> float:
        """Return by which part the greatest acceleration is beyond its limit."""
        change = float(np.abs(np.diff(self.qd, axis=0)).max())
        return change * RATE / ACCELERATION - 1.0

    def beyond(self, cell: arm.Cell) -> int:
        """Return how many positions and rates of joints are beyond limits."""
        lower, upper = cell.limits
        is_beyond = (self.q < lower) | (self.q > upper)
        return int((is_beyond | (np.abs(self.qd) > cell.velocity_limits)).sum())


def _of_scene(scene: Scene, folder: Path, seeds: int) -> Run:
    path = scene.write(folder)
    rules = [Rule(a=a, b=b, tested=True) for a, b in scene.pairs]
    cell = scene.cell(path).replace(rules=arm.Rules(between=False, rules=rules))
    around = np.array([scene.obstacles(path, seed) for seed in range(seeds)])
    return Run(cell, [scene.tip], scene.home, around)


def _two_arms(folder: Path, seeds: int) -> Run:
    cell, home = two_arms(UR5.write(folder))
    tips = [f"{m.name}/wrist_3_link" for m in cell.manipulators]
    return Run(cell, tips, home, _near(cell, tips, home, seeds))


def _on_oval(_: Path, seeds: int) -> Run:
    cell = arm.example("oval_track_cell")
    home = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3, 0.0])
    return Run(cell, ["tool0"], home, _near(cell, ["tool0"], home, seeds))


SCENES: dict[str, Callable[[Path, int], Run]] = {
    "Panda": lambda folder, seeds: _of_scene(PANDA, folder, seeds),
    "UR5": lambda folder, seeds: _of_scene(UR5, folder, seeds),
    "two UR5": _two_arms,
    "UR5e on the oval": _on_oval,
}


def _near(cell: arm.Cell, tips: Sequence[str], home: Array, seeds: int) -> Array:
    """Return obstacles about the tips that are clear of the arms where they begin."""
    rng = np.random.default_rng(0)
    at = np.array([cell.fk(tip)(home)[:3, 3] for tip in tips])
    control = cell.controller(tasks.Posture(), avoid=cell.collision(margin=MARGIN))
    found = np.empty((seeds, COUNT, 7))
    for seed in range(seeds):
        tried = 64 * COUNT
        middle = at[rng.integers(len(at), size=tried)]
        middle = middle + rng.uniform(-0.8, 0.8, middle.shape)
        half = 0.1 * rng.normal(size=middle.shape) * (np.arange(tried) % 3 > 0)[:, None]
        radii = rng.uniform(0.03, 0.07, tried)
        ends = np.stack([middle - half, middle + half], axis=1)[:, None]
        each = arm.Obstacles(ends, radii[:, None] + CLEAR)
        step = control(home, np.zeros_like(home), None, obstacles=each)
        free = np.flatnonzero(step.distance > 0.0)[:COUNT]
        assert len(free) == COUNT
        found[seed] = np.concatenate(
            [ends[free, 0].reshape(-1, 6), radii[free, None]], 1
        )
    return found


def run_of(run: Run, seconds: float, speed: float) -> Kept:
    """Return how all seeds move while obstacles swing by 15 cm.

    speed: Their greatest speed [m/s].
    """
    steps, (seeds, k, _) = int(seconds * RATE), run.obstacles.shape
    rng = np.random.default_rng(1)
    along = rng.normal(size=(seeds, k, 3))
    along *= AMPLITUDE / np.linalg.norm(along, axis=-1, keepdims=True)
    turns = rng.uniform(0.3, 1.0, (seeds, k, 1)) * speed / AMPLITUDE
    phases = rng.uniform(0.0, 2.0 * np.pi, (seeds, 3))
    at, radii = run.obstacles[..., :6].reshape(seeds, k, 2, 3), run.obstacles[..., 6]
    control = run.cell.controller(
        [*map(tasks.Frame, run.tips), tasks.Posture(weight=1e-3)],
        avoid=run.cell.collision(margin=MARGIN),
        acceleration=ACCELERATION,
        rate=RATE,
    )
    goals = [np.tile(run.cell.fk(tip)(run.home), (seeds, 1, 1)) for tip in run.tips]
    n = len(run.home)
    q, qd = np.tile(run.home, (seeds, 1)), np.zeros((seeds, n))
    kept = Kept(
        q=np.empty((steps + 1, seeds, n)),
        qd=np.empty((steps + 1, seeds, n)),
        reason=np.empty((steps, seeds), np.int64),
        distance=np.empty((steps, seeds)),
        ends=np.empty((steps, seeds, k, 2, 3)),
    )
    kept.q[0], kept.qd[0] = q, qd
    size = np.array([0.15, 0.42, 0.2])
    for step in range(steps):
        t = step / RATE
        wander = min(t, 1.0) * size * np.sin(np.array([1.7, 1.1, 2.3]) * t + phases)
        targets = [goal.copy() for goal in goals]
        for target in targets:
            target[:, :3, 3] += wander
        kept.ends[step] = at + (np.sin(turns * t) * along)[:, :, None]
        moves = turns * np.cos(turns * t) * along
        around = arm.Obstacles(kept.ends[step], radii, moves)
        found = control(q, qd, [*targets, run.home], obstacles=around)
        q, qd = found.q_next, found.qd
        kept.q[step + 1], kept.qd[step + 1] = q, qd
        kept.reason[step], kept.distance[step] = found.reason, found.distance
    return kept


def judged(run: Run, kept: Kept, seed: int, every: int) -> Array:
    """Return least distances of one seed by coal [m], of every so many steps."""
    import coal

    makers: dict[type, Callable[[Any], Any]] = {
        Sphere: lambda s: coal.Sphere(s.radius),
        Capsule: lambda s: coal.Capsule(s.radius, s.length),
        Cylinder: lambda s: coal.Cylinder(s.radius, s.length),
        Box: lambda s: coal.Box(*s.size),
    }
    several = len(run.cell.manipulators) > 1
    shapes: dict[str, list[tuple[Any, Array]]] = {}
    for manipulator in run.cell.manipulators:
        for link in manipulator.links:
            name = f"{manipulator.name}/{link.name}" if several else link.name
            shapes[name] = [
                (makers[type(s)](s), np.array((link.primary @ s.pose).matrix()))
                for s in link.collisions
            ]
    fk = {name: run.cell.fk(name) for name, listed in shapes.items() if listed}
    moves = {
        name: bool(np.abs(run.cell.jacobian(name)(run.home)).max() > 0.0) for name in fk
    }
    pairs = [
        tuple(_in(fk, name) for name in pair)
        for pair in run.cell.collision(margin=MARGIN).pairs
    ]
    radii = run.obstacles[seed, :, 6]
    steps = range(0, len(kept.reason), every)
    found = np.empty(len(steps))
    for row, step in enumerate(steps):
        X = {name: each(kept.q[step, seed]) for name, each in fk.items()}
        placed = {
            name: [
                (shape, _transform(coal, X[name] @ at)) for shape, at in shapes[name]
            ]
            for name in fk
        }
        others = [
            _obstacle(coal, ends, r)
            for ends, r in zip(kept.ends[step, seed], radii, strict=True)
        ]
        tested = [
            (a, b) for one, two in pairs for a in placed[one] for b in placed[two]
        ]
        tested += [
            (a, b) for name in fk if moves[name] for a in placed[name] for b in others
        ]
        found[row] = min(_distance(coal, a, b) for a, b in tested)
    return found


def _in(names: Any, name: str) -> str:
    return name if name in names else name.rsplit("/", maxsplit=1)[-1]


def _transform(coal: Any, X: Array) -> Any:
    return coal.Transform3s(X[:3, :3].copy(), X[:3, 3].copy())


def _obstacle(coal: Any, ends: Array, radius: float) -> tuple[Any, Any]:
    middle, along = 0.5 * (ends[0] + ends[1]), ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    if not length:
        return coal.Sphere(radius), coal.Transform3s(np.eye(3), middle)
    z = along / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    R = np.stack([x, np.cross(z, x), z], axis=1)
    return coal.Capsule(radius, length), coal.Transform3s(R, middle)


def _distance(coal: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> float:
    result = coal.DistanceResult()
    coal.distance(a[0], a[1], b[0], b[1], coal.DistanceRequest(), result)
    return float(result.min_distance)
