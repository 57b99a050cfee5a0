"""Several programs in one kernel: spheres of an arm, closures.

The formulas are examples of pipelines; tests compare them with brute force.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from armillary.kernel import compile
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import At, Each, When, While
from armillary.kernel.tables import Table, index, reals, span
from armillary.spatial.dh import craig
from armillary.spatial.lu import LU
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    dot,
    subtract,
)
from armillary.trace import Port, Program, jvp, trace
from armillary.trace.functions import by_precision, maximum, select
from benchmarks.measure import Figure, best_times, cheaper, faster, within

BATCH = 20_000
RECORDS = 4096
RECORD_SIZES = (3, 9, 48)
TURN = math.pi / 2
PANDA = (  # alpha, a, d of Craig's order
    (0.0, 0.0, 0.333),
    (-TURN, 0.0, 0.0),
    (TURN, 0.0, 0.316),
    (TURN, 0.0825, 0.0),
    (-TURN, -0.0825, 0.384),
    (TURN, 0.0, 0.0),
    (TURN, 0.088, 0.107),
)
SPHERES = (6, 6, 8, 8, 8, 10, 6, 7)  # of each link, 59 in all


# Spheres of an arm: pairs of links by a ball around each, then pairs of spheres.


class SphereArm:
    """A Panda of spheres: where they are on its links, and a ball around each link.

    Attributes:
        link: Of each sphere.
        centres: In the frames of the links [m], shape (59, 3).
        radii: Of the spheres [m], shape (59,).
        balls: Centres of the balls in the frames of the links [m], shape (8, 3).
        reaches: Radii of the balls [m], shape (8,).
    """

    def __init__(self) -> None:
        """Scatter spheres about the frames of the links, the base first."""
        rng = np.random.default_rng(0)
        self.link = np.repeat(np.arange(8), SPHERES)
        below = np.array([0.0, 0.0, -0.05])
        self.centres = below + rng.uniform(-0.08, 0.08, (59, 3))
        self.radii = rng.uniform(0.04, 0.07, 59)
        owned = [self.link == k for k in range(8)]
        self.balls = np.array([self.centres[own].mean(0) for own in owned])
        out = np.linalg.norm(self.centres - self.balls[self.link], axis=1) + self.radii
        self.reaches = np.array([out[own].max() for own in owned])
        self.first = np.array([np.flatnonzero(own)[0] for own in owned])

    def carried(self, q: Any) -> Any:
        """Return the centres of all spheres and of all balls, (59, 3) and (8, 3)."""
        poses = [Pose.identity()]
        for (alpha, a, d), angle in zip(PANDA, q, strict=True):
            poses.append(poses[-1] @ craig(theta=angle, d=d, a=a, alpha=alpha))
        centres = [
            poses[link] @ tuple(centre)
            for link, centre in zip(self.link, self.centres.tolist(), strict=True)
        ]
        balls = [
            pose @ tuple(ball)
            for pose, ball in zip(poses, self.balls.tolist(), strict=True)
        ]
        return centres, balls, 1.0

    def tables(self, obstacles: np.ndarray) -> dict[str, dict[str, Any]]:
        """Return the records of `free`, for spheres (count, 4) in the way."""
        links = [(i, j) for i in range(8) for j in range(i + 2, 8) if (i, j) != (5, 7)]
        pairs: list[tuple[Any, Any]] = []
        ranges: list[tuple[int, int]] = []
        for i, j in links:
            a, b = (np.flatnonzero(self.link == k) for k in (i, j))
            ranges.append((len(pairs), len(a) * len(b)))
            pairs += [(x, y) for x in a for y in b]
        a, b = np.array(pairs).T
        i, j = np.array(links).T
        return {
            "links": {
                "ball_a": i,
                "ball_b": j,
                "near": self.reaches[i] + self.reaches[j],
                "spheres_of_pair": ranges,
            },
            "pairs": {"a": a, "b": b, "reach": self.radii[a] + self.radii[b]},
            "obstacles": {"obstacle": obstacles[:, :3], "size": obstacles[:, 3]},
            "movers": {
                "ball": np.arange(1, 8),
                "ball_radius": self.reaches[1:],
                "spheres_of_link": np.stack([self.first, SPHERES], 1)[1:],
            },
            "spheres": {"sphere": np.arange(59), "radius": self.radii},
        }


def free(arm: SphereArm) -> Pipeline:
    """Return 1 where no spheres of an arm overlap others or obstacles, else 0."""
    tables = (
        Table(
            "links",
            (
                index("ball_a", "balls"),
                index("ball_b", "balls"),
                reals("near"),
                span("spheres_of_pair", "pairs"),
            ),
        ),
        Table("pairs", (index("a", "centres"), index("b", "centres"), reals("reach"))),
        Table("obstacles", (reals("obstacle", (3,)), reals("size"))),
        Table(
            "movers",
            (
                index("ball", "balls"),
                reals("ball_radius"),
                span("spheres_of_link", "spheres"),
            ),
        ),
        Table("spheres", (index("sphere", "centres"), reals("radius"))),
    )
    carried = trace(
        arm.carried, name="carried", outputs=("centres", "balls", "free"), q=(7,)
    )
    pair = _overlap("pair", "a", "b", "reach")
    sphere = _overlap("sphere", "sphere", "obstacle", "radius", "size")
    links = Each(
        "links",
        (
            _overlap("near", "ball_a", "ball_b", "near", first=True),
            When("touch", (Each("pairs", (pair,), within="spheres_of_pair"), _close())),
        ),
        active="free",
    )
    movers = Each(
        "movers",
        (
            _overlap("far", "ball", "obstacle", "ball_radius", "size", first=True),
            When(
                "touch",
                (Each("spheres", (sphere,), within="spheres_of_link"), _close()),
            ),
        ),
        active="free",
    )
    stages = (carried, links, Each("obstacles", (movers,), active="free"))
    return Pipeline("free", (Port("q", (7,)),), tables, stages, ("free",))


def _overlap(name: str, a: str, b: str, *reach: str, first: bool = False) -> Program:
    """Return by how much two spheres overlap, squared; below 0 where they do not.

    Args:
        name: Of the program.
        a: The centre of one.
        b: The centre of the other.
        reach: Radii, to be added.
        first: Whether it is written to `touch` and forgets the worst overlap; else the
            worst one is updated.
    """

    def overlap(*given: Any) -> Any:
        d = subtract(tuple(given[0]), tuple(given[1]))
        reached = sum(given[2 : 2 + len(reach)], 0.0)
        found = reached * reached - dot(d, d)
        return (found, -1.0) if first else maximum(found, given[-1])

    shapes: dict[str, tuple[int, ...]] = {a: (3,), b: (3,), **dict.fromkeys(reach, ())}
    if first:
        return trace(overlap, name=name, outputs=("touch", "worst"), **shapes)
    return trace(overlap, name=name, outputs=("worst",), **shapes, worst=())


def _close() -> Program:
    return trace(
        lambda worst: select(worst > 0.0, 0.0, 1.0),
        name="close",
        outputs=("free",),
        worst=(),
    )


# A four-bar linkage: its passive angles by Newton's method, with the rates.

CRANK, COUPLER, ROCKER, GROUND = 0.3, 0.8, 0.6, 0.9
STEPS = 12


def four_bar() -> Pipeline:
    """Return the angles of coupler and rocker for a crank at q, and their rates."""
    begin = trace(
        lambda q, near: (near, 1.0), name="begin", outputs=("p", "error"), **_Q_NEAR
    )
    names = {"q": (), "p": (2,)}
    newton = trace(_newton, name="newton", outputs=("p", "error"), **names)
    rates = trace(_rates, name="rates", outputs=("rates",), **names)
    stages = (begin, While("error", (newton,), STEPS), rates)
    inputs = tuple(Port(name, shape) for name, shape in _Q_NEAR.items())
    return Pipeline("four_bar", inputs, (), stages, ("p", "rates"))


_Q_NEAR: dict[str, tuple[int, ...]] = {"q": (), "near": (2,)}


def closure(q: Any, p: Any) -> list[Any]:
    """Return by how much the ends of the coupler and the rocker miss each other."""
    x = CRANK * np.cos(q) + COUPLER * np.cos(p[0]) - GROUND - ROCKER * np.cos(p[1])
    y = CRANK * np.sin(q) + COUPLER * np.sin(p[0]) - ROCKER * np.sin(p[1])
    return [x, y]


def _by_passive(q: Any, p: Any) -> tuple[list[Any], list[list[Any]]]:
    residual = closure(q, p)
    columns = [jvp(residual, [(angle, 1.0)]) for angle in p]
    return residual, [list(row) for row in zip(*columns, strict=True)]


def _newton(q: Any, p: Any) -> Any:
    residual, A = _by_passive(q, p)
    step = LU.of(A).solve(residual)
    size = maximum(abs(step[0]), abs(step[1]))
    bound = by_precision(q, double=1e-9, single=1e-4)  # the next step squares it
    return [a - d for a, d in zip(p, step, strict=True)], size - bound


def _rates(q: Any, p: Any) -> Any:
    residual, A = _by_passive(q, p)
    return [-rate for rate in LU.of(A).solve(jvp(residual, [(q, 1.0)]))]


# Figures.


def figures() -> Iterator[Figure]:
    """Yield the figures of pipelines."""
    arm = SphereArm()
    kernel = compile_pipeline(free(arm), dtype="float32")
    rng = np.random.default_rng(2)
    Q = rng.uniform(-2.5, 2.5, (4 * BATCH, 7)).astype("float32")
    out = np.empty(len(Q), "float32")
    for count, at_most in ((0, 400e-9), (20, 800e-9)):
        directions = rng.normal(size=(count, 3))
        around = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        obstacles = np.column_stack([0.9 * around, np.full(count, 0.1)])
        check = kernel(arm.tables(obstacles))
        (ours,) = best_times(lambda check=check: check(Q, out=out, threads=1))
        what = f"Panda of 59 spheres, {count} obstacles, float32: free or not"
        yield within(what, ours / len(Q), at_most=at_most)
    yield closure_figure()
    for size in RECORD_SIZES:
        yield lookup_figure(size)


def closure_figure() -> Figure:
    """Return the line for a four-bar, beside its closed form as a kernel."""
    q = np.linspace(-3.0, 3.0, BATCH)
    fast, exact = compile_pipeline(four_bar())(), compile(four_bar_by_hand())
    angles = exact(q)
    near = angles + np.random.default_rng(0).uniform(-0.1, 0.1, angles.shape)
    out = angles.copy(), angles.copy()
    ours, theirs = best_times(
        lambda: fast(q, near, out=out, threads=1),
        lambda: exact(q, out=angles, threads=1),
    )
    assert np.abs(out[0] - angles).max() < 1e-12
    what = "four-bar by Newton from near, with rates, beside its closed form"
    return cheaper(what, ours / BATCH, theirs / BATCH, at_most=8.0)


def four_bar_by_hand() -> Program:
    """Return the angles of coupler and rocker by the law of cosines."""

    def angles(q: Any) -> Any:
        x, y = GROUND - CRANK * np.cos(q), 0.0 - CRANK * np.sin(q)
        square = x * x + y * y
        inside = (COUPLER**2 + square - ROCKER**2) / (2.0 * COUPLER * np.sqrt(square))
        coupler = np.arctan2(y, x) + np.arccos(inside)
        rocker = np.arctan2(
            COUPLER * np.sin(coupler) - y, COUPLER * np.cos(coupler) - x
        )
        return [coupler, rocker]

    return trace(angles, name="by_hand", outputs=("p",), q=())


def lookup_figure(size: int) -> Figure:
    """Return the line for the sum of a record that each row chooses, beside NumPy."""
    total = trace(
        lambda x: sum(x[1:], x[0]), name="total", outputs=("y",), **{"x": (size,)}
    )
    records = Table("records", (reals("x", (size,)),))
    stages = (At("records", (total,), "where"),)
    pipeline = Pipeline("lookup", (Port("where", ()),), (records,), stages, ("y",))
    rng = np.random.default_rng(size)
    x, where = rng.normal(size=(RECORDS, size)), rng.uniform(0.0, RECORDS, BATCH)
    kernel, out = compile_pipeline(pipeline)({"records": {"x": x}}), np.empty(BATCH)
    ours, theirs = best_times(
        lambda: kernel(where, out=out, threads=1),
        lambda: x[where.astype(np.int64)].sum(axis=1),
    )
    assert np.abs(out - x[where.astype(np.int64)].sum(axis=1)).max() < 1e-12
    what = f"sum of the {size} numbers of the record that each row chooses"
    return faster(what, ours / BATCH, theirs / BATCH, at_least=2.0)
