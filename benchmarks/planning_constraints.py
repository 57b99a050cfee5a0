"""Planners within constraints of frames: an upright tool, a box, arms with a part.

The peer is OMPL's RRT-Connect in a `ProjectedStateSpace`, over our check and kinematics
from Python; its ways are sampled, ours are proven.

Ends are random joint positions that are projected onto the constraints and touch
nothing. A pair that no search joins in the time that there is counts for neither the
median nor the judge: its ends may lie in regions that nothing joins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.planning.constraint import Manifold
from armillary.planning.planned_cell import PlannedCell
from armillary.planning.planner import Planner
from armillary.shapes import Box
from benchmarks.measure import Figure, absent, faster, fewer, within
from benchmarks.planning_peers import OmplUpright

Array = npt.NDArray[np.float64]

PAIRS = fewer(24)
DRAWN = 40
"""Random positions for each that is wanted."""
ENOUGH = 1.0
"""Time for a search [s]."""
TURNS = 3
FEW = 5
PATIENCE = 10.0
"""Time for a search of OMPL [s]."""
UPRIGHT, HELD = 0.02, 0.2
"""What is asked of medians [s]."""

TABLE = (
    ((0.3, 0.3, 1.0), (1.1, 0.0, 0.5)),
    ((0.4, 0.2, 0.8), (-0.9, 0.8, 0.4)),
    ((1.0, 0.1, 0.3), (0.3, 1.2, 1.2)),
    ((0.2, 1.0, 0.2), (0.2, -1.2, 1.0)),
)
"""Sizes and places of the boxes [m]."""


def constraint_figures() -> Iterator[Figure]:
    """Yield times within constraints, and what a judge finds of the answers."""
    robot = arm.example("irb2400").manipulators[0]
    boxes = [
        arm.Manipulator(
            name=f"box{k}",
            links=[
                arm.Link(
                    name="box",
                    collisions=[Box(size=size, pose=arm.Pose.translation(*place))],
                )
            ],
        )
        for k, (size, place) in enumerate(TABLE)
    ]
    cell = arm.Cell(manipulators=[robot, *boxes])
    rules = cell.rules.exclude("box*/*", "box*/*", reason="still")
    cell = cell.replace(rules=rules.include_self(robot.name))
    down = arm.Pose.rotation_x(np.pi)
    upright = arm.FrameConstraint("tool0", target=down, position="", rotation="xy")
    title = "six joints, tool upright"
    yield from _figures(title, cell, upright, UPRIGHT)
    yield _beside_ompl(title, cell, upright)
    level = arm.FrameConstraint(
        "tool0",
        target=arm.Pose.translation(0.0, 0.0, 1.0),
        position="",
        rotation="",
        box=((-2.0, -2.0, -0.1), (2.0, 2.0, 0.1)),
    )
    yield from _figures("six joints, tool in a box", cell, level, UPRIGHT)
    both = arm.Cell(
        manipulators=[robot.replace(name="left"), robot.replace(name="right")],
        mounts=[
            arm.Mount(manipulator="right", pose=arm.Pose.translation(0.0, 1.5, 0.0))
        ],
    )
    rules = both.rules.include_self("left").include_self("right")
    both = both.replace(rules=rules)
    q = [0.3, 0.2, 0.1, 0.2, 0.8, 0.1, -0.3, 0.3, 0.0, 0.1, 0.7, 0.2]
    tools = "left/tool0", "right/tool0"
    target = both.fk(tools[0], relative_to=tools[1])(q)
    part = arm.FrameConstraint(tools[0], relative_to=tools[1], target=target)
    yield from _figures("two arms that hold a part", both, part, HELD)


def _ends(
    cell: arm.Cell, constraint: arm.FrameConstraint
) -> tuple[Planner, Manifold, Array]:
    """Return a planner, and pairs of free positions, shape (2 k, n)."""
    check = cell.collision()
    planner = cell.planner(check)
    n = len(cell.joint_names)
    planned = PlannedCell(check, planner.weights, planner.options.step)
    surface = planned.manifold([constraint], None, np.empty((0, n)), None)
    rng = np.random.default_rng(0)
    drawn = rng.uniform(surface.lower, surface.upper, (2 * DRAWN * PAIRS, n))
    Q, is_done = surface.project(drawn)
    return planner, surface, Q[is_done & ~check(Q)][: 2 * PAIRS]


def _beside_ompl(title: str, cell: arm.Cell, constraint: arm.FrameConstraint) -> Figure:
    """Return how much longer OMPL takes for a few of the pairs."""
    if find_spec("ompl") is None:
        return absent(f"{title}; OMPL", "ompl is not installed")
    planner, _, Q = _ends(cell, constraint)
    ompl = OmplUpright(cell, planner.check, "tool0", planner.options.step)
    ours: list[float] = []
    theirs: list[float] = []
    for k in range(0, 2 * FEW, 2):
        ask = partial(planner, Q[k], Q[k + 1], constraints=[constraint])
        plan, best = ask(timeout=ENOUGH), np.inf
        for _ in range(TURNS):
            start = time.perf_counter()
            ask(timeout=ENOUGH)
            best = min(best, time.perf_counter() - start)
        ours.append(best if plan.success else np.inf)
        theirs.append(ompl(Q[k], Q[k + 1], timeout=PATIENCE))
    solved = sum(np.isfinite(theirs))
    what = f"{title}, {FEW} pairs, of which OMPL solves {solved} in {PATIENCE:g} s"
    # A pair that OMPL does not solve counts as the time that it had.
    late = np.minimum(theirs, PATIENCE)
    return faster(
        f"{what}; median", float(np.median(ours)), float(np.median(late)), at_least=50
    )


def _figures(
    title: str, cell: arm.Cell, constraint: arm.FrameConstraint, most: float
) -> Iterator[Figure]:
    planner, surface, Q = _ends(cell, constraint)
    check = planner.check
    took: list[float] = []
    worst, touching = 0.0, 0
    for k in range(0, len(Q) - 1, 2):
        ask = partial(planner, Q[k], Q[k + 1], constraints=[constraint], timeout=ENOUGH)
        start = time.perf_counter()
        plan = ask()
        best = time.perf_counter() - start
        if plan:
            for _ in range(TURNS - 1):
                start = time.perf_counter()
                ask()
                best = min(best, time.perf_counter() - start)
            took.append(best)
            t = np.linspace(0.0, 1.0, 200)[:, None]
            ways = zip(plan.q[:-1], plan.q[1:], strict=True)
            between = np.concatenate([a + t * (b - a) for a, b in ways])
            worst = max(worst, float(surface.violations(between).max()))
            touching += bool(check(between).any())
            assert plan.proven
    what = f"{title}, {len(took)} of {len(Q) // 2} pairs joined in {ENOUGH:g} s"
    yield within(f"{what}, median", float(np.median(took)), at_most=most)
    got = f"{worst:.2f}, {touching} touch"
    yield Figure(
        f"{title}, greatest part of a tolerance that is used, 200 samples a motion",
        got,
        "",
        "below 1, none",
        got,
        worst < 1.0 and not touching,
    )
