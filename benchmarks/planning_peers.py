"""Other planners, asked for the same: VAMP for its spheres, OMPL over our checks.

VAMP (github.com/KavrakiLab/vamp) is a peer only: where its package `vamp` can be
imported and `VAMP_SOURCE` names the folder of its source, in which
`resources/problem_tar_to_pkl_json.py` has unpacked the problems of MotionBenchMaker.
Its robot, problems and pairs are then read from there.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.shapes import Box, Capsule, Primitive, Sphere

Array = npt.NDArray[np.float64]

MISSING = "VAMP, see benchmarks/planning_peers.py"
CAGE_RADIUS = 0.2
CAGE: tuple[tuple[float, float, float], ...] = (
    (0.55, 0.0, 0.25),
    (0.35, 0.35, 0.25),
    (0.0, 0.55, 0.25),
    (-0.55, 0.0, 0.25),
    (-0.35, -0.35, 0.25),
    (0.0, -0.55, 0.25),
    (0.35, -0.35, 0.25),
    (0.35, 0.35, 0.8),
    (0.0, 0.55, 0.8),
    (-0.35, 0.35, 0.8),
    (-0.55, 0.0, 0.8),
    (-0.35, -0.35, 0.8),
    (0.0, -0.55, 0.8),
    (0.35, -0.35, 0.8),
)
"""Centres of the balls of VAMP's sphere cage [m]."""
CAGE_START = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
CAGE_GOAL = np.array([2.35, 1.0, 0.0, -0.8, 0.0, 2.5, 0.785])


def vamp_source() -> Path | None:
    """Return the folder of VAMP's source; None where VAMP is not there."""
    named = os.environ.get("VAMP_SOURCE")
    if named is None or find_spec("vamp") is None:
        return None
    return Path(named)


def cage_shapes() -> list[Primitive]:
    """Return the balls of VAMP's sphere cage."""
    return [
        Sphere(radius=CAGE_RADIUS, pose=arm.Pose.translation(*place)) for place in CAGE
    ]


def among(robot: arm.Cell, shapes: list[Primitive]) -> arm.Cell:
    """Return the cell of a robot with shapes that states may move, each a link."""
    for k, shape in enumerate(shapes):
        body = arm.Link(name="body", collisions=[shape])
        thing = arm.Manipulator(name=f"thing{k}", links=[body])
        robot = robot.add(thing, bolted=False)
    return robot.replace(rules=robot.rules.exclude("thing*/*", "thing*/*"))


@cache
def panda_of_vamp() -> arm.Cell:
    """Return VAMP's Panda in 59 spheres, with its rules."""
    source = vamp_source()
    assert source is not None, MISSING
    folder = source / "resources" / "panda"
    return arm.load(folder / "panda_spherized.urdf", srdf=folder / "panda.srdf")


# problems of MotionBenchMaker


@dataclass(frozen=True, eq=False)
class MadeProblem:
    """A problem of MotionBenchMaker.

    Attributes:
        kind: The name of its set.
        shapes: The obstacles as VAMP takes them.
        start: Joint positions [rad], shape (7,).
        goals: The same, shape (k, 7).
        about: What VAMP reads.
    """

    kind: str
    shapes: list[Primitive]
    start: Array
    goals: Array
    about: Mapping[str, Any]


def made_problems() -> Iterator[MadeProblem]:
    """Yield the problems of MotionBenchMaker that have an answer."""
    source = vamp_source()
    assert source is not None, MISSING
    with (source / "resources" / "panda" / "problems.pkl").open("rb") as file:
        every = pickle.load(file)["problems"]  # made by VAMP's script
    for kind, problems in every.items():
        for each in problems:
            if each["valid"]:
                start, goals = np.array(each["start"]), np.array(each["goals"])
                yield MadeProblem(kind, _shapes(each), start, goals, each)


def _shapes(problem: Mapping[str, Any]) -> list[Primitive]:
    """Return the shapes that VAMP makes: cylinders are capsules, or boxes in `box`."""
    shapes: list[Primitive] = [
        Sphere(radius=each["radius"], pose=arm.Pose.translation(*each["position"]))
        for each in problem["sphere"]
    ]
    for each in problem["cylinder"]:
        radius, length, pose = each["radius"], each["length"], _pose(each)
        if problem["problem"] == "box":
            size = 2.0 * radius, 2.0 * radius, length
            shapes.append(Box(size=size, pose=pose))
        else:
            shapes.append(Capsule(radius=radius, length=length, pose=pose))
    for each in problem["box"]:
        x, y, z = (2.0 * half for half in each["half_extents"])
        shapes.append(Box(size=(x, y, z), pose=_pose(each)))
    return shapes


def _pose(about: Mapping[str, Any]) -> arm.Pose:
    roll, pitch, yaw = about["orientation_euler_xyz"]
    return arm.Pose.from_rpy(roll, pitch, yaw, about["position"])


# planners


@dataclass(frozen=True)
class Took:
    """What one question took, and what came out.

    Attributes:
        path: Way points, shape (k, n); (0, n) where nothing was found.
        seconds: As the planner itself says, plan and shortening together.
        called: The same, as seen from Python.
        length: The sum of the lengths of the motions.
    """

    path: Array
    seconds: float
    called: float
    length: float


class Vamp:
    """VAMP's RRT-Connect with its own settings, and its shortening."""

    def __init__(self, planner: str = "rrtc", **settings: Any) -> None:
        """Choose a planner."""
        self._vamp: Any = import_module("vamp")
        self._panda = self._vamp.panda
        made = self._vamp.configure_robot_and_planner_with_kwargs(
            "panda", planner, **settings
        )
        _, self._plan, self._settings, self._shortening = made

    def cage(self) -> Any:
        """Return the environment of the sphere cage."""
        environment = self._vamp.Environment()
        for place in CAGE:
            environment.add_sphere(self._vamp.Sphere(list(place), CAGE_RADIUS))
        return environment

    def environment(self, problem: MadeProblem) -> Any:
        """Return the environment of a problem."""
        return self._vamp.problem_dict_to_vamp(problem.about)

    def __call__(
        self, start: Array, goals: Array, environment: Any, *, seed: int = 0
    ) -> Took:
        """Plan, and shorten the way."""
        samples = self._panda.halton()
        samples.skip(1000 * seed)
        a, b = start.tolist(), np.atleast_2d(goals).tolist()
        goal = b[0] if len(b) == 1 else b
        began = time.perf_counter()
        found = self._plan(a, goal, environment, self._settings, samples)
        if not len(found.path):
            called = time.perf_counter() - began
            return Took(np.zeros((0, 7)), found.nanoseconds * 1e-9, called, np.inf)
        shorter = self._panda.simplify(
            found.path, environment, self._shortening, samples
        )
        called = time.perf_counter() - began
        seconds = (found.nanoseconds + shorter.nanoseconds) * 1e-9
        rows = [list(shorter.path[k]) for k in range(len(shorter.path))]
        path = np.array(rows, np.float64)
        return Took(path, seconds, called, float(shorter.path.cost()))


class Ompl:
    """OMPL's planners, each state and motion tested by a check of ours from Python."""

    def __init__(
        self, check: Callable[[Array], Any], limits: tuple[Array, Array], step: float
    ) -> None:
        """Make the space within limits [m or rad], shape (n,) each.

        Args:
            check: Returns whether a state touches.
            limits: Least and greatest joint positions.
            step: Distance of samples of a motion.
        """
        base: Any = import_module("ompl.base")
        self._og: Any = import_module("ompl.geometric")
        self._base = base
        lower, upper = limits
        self._count = len(lower)
        space = base.RealVectorStateSpace(self._count)
        bounds = base.RealVectorBounds(self._count)
        for k in range(self._count):
            bounds.setLow(k, float(lower[k]))
            bounds.setHigh(k, float(upper[k]))
        space.setBounds(bounds)
        self._space = space
        count = self._count

        def is_free(state: Any) -> bool:
            return not check(np.array([state[k] for k in range(count)]))

        self._is_free = is_free
        self._part = step / float(np.linalg.norm(upper - lower))

    def __call__(
        self, start: Array, goal: Array, *, timeout: float, planner: str = "RRTConnect"
    ) -> Took:
        """Plan, and shorten the way as OMPL does."""
        setup = self._og.SimpleSetup(self._space)
        setup.setStateValidityChecker(self._is_free)
        information = setup.getSpaceInformation()
        information.setStateValidityCheckingResolution(self._part)
        a, b = self._space.allocState(), self._space.allocState()
        for k in range(self._count):
            a[k], b[k] = float(start[k]), float(goal[k])
        setup.setStartAndGoalStates(a, b)
        setup.setPlanner(getattr(self._og, planner)(information))
        began = time.perf_counter()
        solved = setup.solve(timeout)
        if not solved:
            took = time.perf_counter() - began
            return Took(np.zeros((0, self._count)), took, took, np.inf)
        setup.simplifySolution()
        took = time.perf_counter() - began
        path = setup.getSolutionPath()
        rows = [[each[k] for k in range(self._count)] for each in path.getStates()]
        return Took(np.array(rows), took, took, float(path.length()))


class OmplUpright:
    """OMPL along the constraint that an axis points down, over our check from Python.

    Its projection asks our kinematics and Jacobian, as it asks our check.
    """

    def __init__(
        self, cell: arm.Cell, check: Callable[[Array], Any], frame: str, step: float
    ) -> None:
        """Make the space within the limits of a cell.

        Args:
            cell: The cell.
            check: Returns whether a state touches.
            frame: Whose z points down.
            step: Distance of samples of a motion.
        """
        base: Any = import_module("ompl.base")
        self._og: Any = import_module("ompl.geometric")
        lower, upper = cell.limits
        n = self._count = len(lower)
        fk, jacobian = cell.fk(frame), cell.jacobian(frame)

        class Down(base.Constraint):  # pyright: ignore[reportUntypedBaseClass]
            def __init__(self) -> None:
                super().__init__(n, 2, 1e-4)

            def function(self, x: Array, out: Array) -> None:
                out[:] = fk(np.array(x))[:2, 2]

            def jacobian(self, x: Array, out: Array) -> None:
                q = np.array(x)
                turning = jacobian(q)[3:]
                out[:] = np.cross(turning.T, fk(q)[:3, 2]).T[:2]

        self._constraint = Down()
        self._ambient = base.RealVectorStateSpace(n)
        bounds = base.RealVectorBounds(n)
        for k in range(n):
            bounds.setLow(k, float(lower[k]))
            bounds.setHigh(k, float(upper[k]))
        self._ambient.setBounds(bounds)
        self._space = base.ProjectedStateSpace(self._ambient, self._constraint)
        self._information = base.ConstrainedSpaceInformation(self._space)
        self._space.setup()
        self._space.setDelta(step)

        def is_free(state: Any) -> bool:
            return not check(np.array([state[k] for k in range(n)]))

        self._is_free = is_free

    def __call__(self, start: Array, goal: Array, *, timeout: float) -> float:
        """Plan and shorten; return how long it took [s], infinite without a way."""
        setup = self._og.SimpleSetup(self._information)
        setup.setStateValidityChecker(self._is_free)
        a, b = self._space.allocState(), self._space.allocState()
        a.copy(start)
        b.copy(goal)
        setup.setStartAndGoalStates(a, b)
        setup.setPlanner(self._og.RRTConnect(self._information))
        began = time.perf_counter()
        if "Exact" not in str(setup.solve(timeout)):
            return np.inf
        setup.simplifySolution()
        return time.perf_counter() - began
