"""Rates of controllers beside those of daqp, a dual active-set solver of its own.

What is minimised, and within which bounds, is computed by NumPy from poses and
Jacobians.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from benchmarks import control_scenes
from scipy.optimize import nnls

import armillary as arm
from armillary import tasks
from armillary.control.active_set import active_set_stages
from armillary.control.columns import StepColumns
from armillary.kernel.columns import index_field, number_field
from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.tables import Table
from armillary.model.rules import Rule
from armillary.shapes import Capsule
from arms import arm_of_axes
from rate_problems import CapsuleCell, Gaps, approach_bounds, rate_limits

pytestmark = pytest.mark.peers

Array = np.ndarray
AGREES = 1e-5
MARGIN, DAMPING, FREEDOM = 0.02, 0.01, 1e-6


class Programs(NamedTuple):
    """Quadratic programs, shape (count, ...): H and g, bounds, and A x >= b."""

    H: Array
    g: Array
    low: Array
    high: Array
    A: Array
    b: Array


def daqp(H: Array, g: Array, low: Array, high: Array, A: Array, b: Array) -> Any:
    """Return the rates that daqp finds, None where it finds none."""
    solve = import_module("daqp").solve
    x, _, flag, _ = solve(
        np.ascontiguousarray(H),
        g.copy(),
        np.ascontiguousarray(A),
        np.concatenate([high, np.full(len(b), 1e30)]),
        np.concatenate([low, b]),
        primal_tol=1e-11,
        dual_tol=1e-12,
        iter_limit=10000,
        eps_prox=0.0,
    )
    return np.asarray(x) if flag == 1 else None


def is_best(p: Programs, i: int, x: Array) -> bool:
    """Return whether x is feasible, and its gradient held by constraints it meets."""
    H, g, low, high, A, b = (each[i] for each in p)
    N = np.vstack([np.eye(len(x)), -np.eye(len(x)), A])
    room = N @ x - np.concatenate([low, -high, b])
    if room.min() < -1e-8:
        return False
    C = np.linalg.cholesky(H)
    slope = np.linalg.solve(C, H @ x + g)
    normals = np.linalg.solve(C, N[room < 1e-8].T)
    lengths = np.maximum(np.linalg.norm(normals, axis=0), 1e-300)
    left = nnls(normals / lengths, slope)[1] if lengths.size else np.linalg.norm(slope)
    return float(left) < 1e-6 * float(np.linalg.norm(np.linalg.solve(C, g)))


def programs(count: int, c: int, k: int, kind: str, seed: int = 1) -> Programs:
    """Return random programs; no rates at all hold all constraints."""
    rng = np.random.default_rng(seed)
    p = Programs(
        np.empty((count, c, c)),
        np.empty((count, c)),
        -rng.uniform(0.02, 2.0, (count, c)),
        rng.uniform(0.02, 2.0, (count, c)),
        rng.normal(size=(count, k, c)),
        -rng.exponential(0.3, (count, k)),
    )
    for i in range(count):
        m = int(rng.integers(1, c + 1))
        J = rng.normal(size=(m, c))
        W = np.ones(m) if kind == "plain" else 10.0 ** rng.uniform(-4, 4, m)
        p.H[i] = J.T @ (W[:, None] * J) + 1e-4 * np.eye(c)
        p.g[i] = -J.T @ (W * rng.normal(size=m) * 10.0 ** rng.uniform(-1, 1))
        if kind == "degenerate":
            _degenerate(p, i, rng)
    return p


def _degenerate(p: Programs, i: int, rng: np.random.Generator) -> None:
    """Make rows depend on each other and on bounds, and joints unable to move."""
    A, b, low, high = p.A[i], p.b[i], p.low[i], p.high[i]
    k, c = A.shape
    for j in range(1, k):
        one, two = rng.integers(j, size=2)
        joint, sign = rng.integers(c), rng.choice([-1.0, 1.0])
        match rng.integers(10):
            case 0 | 1:  # the same, perhaps longer
                factor = rng.choice([0.5, 1.0, 3.0])
                A[j], b[j] = factor * A[one], factor * b[one]
            case 2:  # the other side of a wall
                A[j], b[j] = -A[one], b[one] * rng.choice([0.0, 1.0])
            case 3:
                A[j] = 0.0
            case 4:  # a bound
                A[j] = 0.0
                A[j, joint] = sign
                b[j] = low[joint] if sign > 0 else -high[joint]
            case 5:  # through the same edge
                A[j], b[j] = A[one] + A[two], b[one] + b[two]
            case 6:
                A[j] = np.round(A[j])
            case _:
                pass
    b[rng.uniform(size=k) < 0.2] = 0.0
    low[rng.uniform(size=c) < 0.1] = 0.0
    high[rng.uniform(size=c) < 0.1] = 0.0
    still = rng.uniform(size=c) < 0.1
    low[still] = high[still] = 0.0


def solver(c: int, k: int) -> Kernel:
    """Return the kernel of the solver alone, for c rates and k rows."""
    columns = StepColumns(**StepColumns.sizes_of_program(c), room=k)
    rows, nears = columns.approach_rows, columns.approach_nears
    table = Table(
        "rows",
        (
            index_field(columns.row, rows),
            index_field(columns.is_near, nears),
            number_field(columns.row_number),
        ),
    )
    bounds = columns.low, columns.high
    pipeline = Pipeline(
        "program",
        (columns.hessian, columns.gradient, *bounds, rows, nears),
        (table,),
        active_set_stages(columns, table),
        ("x", "slots", "multipliers", "finished"),
    )
    at = np.arange(k)
    records = {"row": at, "is_near": at, "row_number": at.astype(float)}
    return compile_pipeline(pipeline)({"rows": records})


@pytest.mark.parametrize("kind", ["plain", "weighted", "degenerate"])
@pytest.mark.parametrize(("c", "k"), [(2, 5), (7, 20), (12, 40), (40, 30)])
def test_programs_are_solved_as_by_daqp(kind: str, c: int, k: int) -> None:
    count = 1000 if c < 20 else 100
    p = programs(count, c, k, kind)
    lower = np.tril_indices(c)
    rows = np.concatenate([p.A, p.b[..., None], np.zeros((count, k, 2))], axis=-1)
    ones = np.ones((count, k, 1))
    x, *_, finished = solver(c, k)(p.H[:, *lower], p.g, p.low, p.high, rows, ones)
    assert (finished > 0).mean() >= 0.99
    assert (x >= p.low).all()
    assert (x <= p.high).all()
    wrong = 0
    for i in np.flatnonzero(finished > 0).tolist():
        theirs = daqp(*(each[i] for each in p))
        size = 1.0 if theirs is None else max(np.abs(theirs).max(), 1e-3)
        if theirs is None or np.abs(x[i] - theirs).max() > AGREES * size:
            # Theirs calls some degenerate programs infeasible, where 0 is feasible.
            wrong += not is_best(p, i, x[i])
    assert wrong <= 0.001 * count


def planar(n: int) -> arm.Cell:
    """Return an arm of capsules in a plane; links that are no neighbours are tested."""
    at = np.zeros((n, 3))
    at[:, 0] = 0.3 * np.arange(n)
    cell = arm_of_axes(
        "R" * n, [(0.0, 0.0, 1.0)] * n, at, tool=arm.Pose.translation(0.3, 0.0, 0.0)
    )
    (made,) = cell.manipulators
    pose = arm.Pose.translation(0.15, 0.0, 0.0) @ arm.Pose.rotation_y(0.5 * np.pi)
    rod = Capsule(pose=pose, radius=0.04, length=0.2)
    links = [
        link.replace(collisions=[rod]) if link.name[0] == "l" else link
        for link in made.links
    ]
    rules = [
        Rule(a=f"l{i}", b=f"l{j}", tested=True) for j in range(n) for i in range(j - 1)
    ]
    return arm.Cell(
        manipulators=[made.replace(links=links)],
        rules=arm.Rules(between=False, rules=rules),
    )


def scene(which: str, folder: Path) -> arm.Cell:
    """Return an arm of the benchmarks with its pairs."""
    found = getattr(control_scenes, which)
    rules = [Rule(a=a, b=b, tested=True) for a, b in found.pairs]
    cell = found.cell(found.write(folder))
    return cell.replace(rules=arm.Rules(between=False, rules=rules))


CELLS: dict[str, Callable[[Path], tuple[arm.Cell, str]]] = {
    "planar": lambda _: (planar(5), "tool"),
    "Panda": lambda folder: (scene("PANDA", folder), "panda_link7"),
    "two UR5": lambda folder: (
        control_scenes.two_arms(control_scenes.UR5.write(folder))[0],
        "left/wrist_3_link",
    ),
}


class Drawn(NamedTuple):
    """Where cells are, what is asked of them, and what is near."""

    q: Array
    qd: Array
    targets: list[Any]
    obstacles: Array

    @property
    def around(self) -> arm.Obstacles:
        """Return the obstacles."""
        numbers = self.obstacles
        ends = numbers[..., :6].reshape(*numbers.shape[:-1], 2, 3)
        return arm.Obstacles(ends, numbers[..., 9], numbers[..., 6:9])

    def of(self, rows: Array) -> Drawn:
        """Return some of the rows."""
        targets = [each[rows] for each in self.targets]
        return Drawn(self.q[rows], self.qd[rows], targets, self.obstacles[rows])


def drawn(cell: arm.Cell, tip: str, limits: Any, a: Any, dt: float, n: int) -> Drawn:
    """Return rows whose joints are often near limits, and links near obstacles."""
    rng = np.random.default_rng(7)
    count = len(cell.joint_names)
    lower, upper = (np.clip(each, -3.0, 3.0) for each in limits)
    Q = lower + (upper - lower) * rng.uniform(0.0, 1.0, (n, count))
    near = rng.uniform(size=Q.shape)
    Q = np.where(near < 0.08, lower + 1e-3 * rng.exponential(size=Q.shape), Q)
    Q = np.where(near > 0.92, upper - 1e-3 * rng.exponential(size=Q.shape), Q)
    V = rng.normal(size=Q.shape) * rng.choice([0.0, 0.1, 0.5], (n, 1))
    least, most = rate_limits(Q, V, limits, np.full_like(a, np.inf), a, dt)
    V = np.clip(V, least, most)
    at = cell.fk(tip)(Q)[:, :3, 3]
    direction = rng.normal(size=(n, 3, 3))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    out = rng.uniform(0.05, 0.6, (n, 3, 1))
    ends = at[:, None] + out * direction
    obstacles = np.zeros((n, 3, 10))
    obstacles[..., :3] = ends
    obstacles[..., 3:6] = ends + 0.2 * rng.normal(size=ends.shape)
    obstacles[:, 0, 3:6] = ends[:, 0]
    obstacles[..., 6:9] = 0.2 * rng.normal(size=ends.shape)
    obstacles[..., 9] = rng.uniform(0.02, 0.06, (n, 3))
    obstacles[::4, 2] = obstacles[::4, 1]  # rows that are the same
    there = Q + rng.normal(size=Q.shape) * rng.choice([0.01, 0.1, 0.5], (n, 1))
    targets = [cell.fk(tip)(there), there[:, 0] + there[:, 1], there]
    return Drawn(Q, V, targets, obstacles)


def equations(
    listed: Any, q: Array, at: tuple[Array, Array], targets: Any
) -> tuple[Array, Array, Array, Array]:
    """Return H and g of a frame, a coupling and a posture.

    Then what is left of the posture's rates, and the rates of the frame.
    """
    frame, coupling, posture = listed
    X, J = at
    turn = arm.Pose.from_matrix(targets[0][:3]) @ arm.Pose.from_matrix(X[:3]).inverse()
    error = np.concatenate([targets[0][:3, 3] - X[:3, 3], _log(turn)])
    kept = [k for k, axis in enumerate("xyz") if axis in frame.position]
    kept += [k + 3 for k, axis in enumerate("xyz") if axis in frame.rotation]
    W = frame.weight * np.array([1.0] * 3 + [frame.rotation_weight] * 3)[kept]
    A, v = J[kept], frame.gain * error[kept]
    asked = v
    both = np.zeros(len(q))
    both[:2] = 1.0
    A, v = np.vstack([A, both]), np.append(v, coupling.gain * (targets[1] - both @ q))
    W = np.append(W, coupling.weight)
    H, g = A.T @ (W[:, None] * A), -A.T @ (W * v)
    wanted = posture.gain * (targets[2] - q)
    free = FREEDOM * np.linalg.solve(H + FREEDOM * np.eye(len(q)), wanted)
    H = H + (posture.weight + DAMPING**2) * np.eye(len(q))
    return H, g - (posture.weight + DAMPING**2) * free, free, asked


def stiffness(frame: Any, bends: Array, J: Array, v: Array) -> Array:
    """Return what is added to the diagonal of H where a frame misses its request.

    bends: Second derivatives of its position by each joint, shape (3, n).
    """
    kept = [k for k, axis in enumerate("xyz") if axis in frame.position]
    turns = [k + 3 for k, axis in enumerate("xyz") if axis in frame.rotation]
    W = frame.weight * np.array([1.0] * 3 + [frame.rotation_weight] * 3)[kept + turns]
    A = J[kept + turns]
    y = np.linalg.solve(A @ A.T + np.diag(1e-6 / W), v)
    size = np.linalg.norm(A.T @ y)
    if size > frame.gain:
        e = max(1e-6, size**2 / (y @ (y / W)) * (size / frame.gain - 1.0))
        y = np.linalg.solve(A @ A.T + np.diag(e / W), v)
    missing = v - A @ (A.T @ y)
    if W @ missing**2 <= 0.02**2 * (W @ v**2):
        return np.zeros(J.shape[1])
    lost = (W * missing)[: len(kept)] / frame.gain
    return np.maximum(-lost @ bends[kept], 0.0)


def second_differences(cell: arm.Cell, tip: str, Q: Array) -> Array:
    """Return second derivatives of a position by each joint, shape (rows, 3, n)."""
    h, fk = 1e-3, cell.fk(tip)

    def at(step: Array) -> Array:
        return fk(Q + step)[:, :3, 3]

    here = at(np.zeros(Q.shape[-1]))
    each = [
        (16.0 * (at(e) + at(-e)) - at(2 * e) - at(-2 * e) - 30.0 * here) / (12 * h * h)
        for e in h * np.eye(Q.shape[-1])
    ]
    return np.stack(each, axis=-1)


def _log(turn: Any) -> Array:
    """Return the rotation vector of a pose."""
    R = turn.matrix()[:3, :3]
    axis = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine, cosine = np.linalg.norm(axis), 0.5 * (np.trace(R) - 1.0)
    return axis * (np.arctan2(sine, cosine) / max(sine, 1e-300))


@pytest.mark.parametrize("name", CELLS)
def test_controllers_find_what_daqp_finds(name: str, tmp_path: Path) -> None:
    cell, tip = CELLS[name](tmp_path)
    names, n = cell.joint_names, len(cell.joint_names)
    rate, approach, count = 200.0, 15.0, 80
    a, most = np.linspace(50.0, 200.0, n), np.linspace(1.0, 2.0, n)
    check, limits = cell.collision(margin=MARGIN), cell.limits
    coordinates: dict[str, Any] = (
        {"position": "xy", "rotation": "z"} if name == "planar" else {}
    )
    coupling = tasks.Coupling({names[0]: 1.0, names[1]: 1.0})
    given = drawn(cell, tip, limits, a, 1.0 / rate, 16 * count)
    gaps: list[Gaps] = []
    poses = jacobians = bends = np.zeros(0)
    judged = held = wrong = 0
    for weight in (1e-4, 1.0, 1e4):
        listed = [
            tasks.Frame(tip, weight=weight, **coordinates),
            coupling,
            tasks.Posture(),
        ]
        control = cell.controller(
            listed,
            avoid=check,
            velocity=most,
            acceleration=a,
            rate=rate,
            approach=approach,
            damping=DAMPING,
        )
        if not gaps:
            free = control(
                given.q, given.qd, given.targets, obstacles=given.around
            ).distance
            given = given.of(np.flatnonzero(free > 0.9 * MARGIN)[:count])
            assert len(given.q) == count
            capsules = CapsuleCell.of(cell)
            gaps = capsules.gaps(given.q, capsules.pairs(check), given.obstacles)
            poses, jacobians = cell.fk(tip)(given.q), cell.jacobian(tip)(given.q)
            bends = second_differences(cell, tip, given.q)
        step = control(given.q, given.qd, given.targets, obstacles=given.around)
        for k in range(count):
            nearest = gaps[k].values.min()
            assert step.distance[k] == pytest.approx(nearest, abs=1e-9)
            if step.scale[k] < 1.0 or step.reason[k] == arm.RateReason.UNFINISHED:
                continue  # it is not the best that is taken
            q, qd = given.q[k], given.qd[k]
            at = poses[k], jacobians[k]
            targets = [each[k] for each in given.targets]
            H, g, free, v = equations(listed, q, at, targets)
            S = stiffness(listed[0], bends[k], jacobians[k], v)
            room = 1e-3 + 10.0 * np.where(free > 0.0, limits[1] - q, q - limits[0])
            part = min(1.0, (room / np.maximum(np.abs(free), 1e-300)).min())
            H, g = H + np.diag(S), g - part * S * free
            low, high = rate_limits(q, qd, limits, most, a, 1.0 / rate)
            b = approach_bounds(gaps[k], qd, a, 1.0 / rate, MARGIN, approach)
            theirs = daqp(H, g, low, high, gaps[k].slopes, b)
            if theirs is None:
                continue
            judged += 1
            held += any("," in text for text in step.active[k])
            size = max(np.abs(theirs).max(), 1e-3)
            wrong += bool(np.abs(step.qd[k] - theirs).max() > AGREES * size)
    assert judged > 0.6 * 3 * count
    assert held > 0.01 * judged
    assert wrong <= 0.002 * judged
