"""What runs of programs keep and do not ask again, by counts of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.planning import cartesian
from armillary.programs import moves, world
from armillary.programs.sensors import SensorWatch
from armillary.programs.steps import (
    PTP,
    Appear,
    Drive,
    Grip,
    Leave,
    Linear,
    Planned,
    Release,
    Wait,
    WaitFor,
)
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, box, place

ROBOT = "irb2400"
FAST: Any = {"acceleration": 8.0}
LOOPED: Any = {"velocity": 2.0, "acceleration": 6.0}

Calls = Counter[str]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Counts of calls of what runs ask other parts of the package."""
    counts = Calls()

    def count(owner: Any, name: str) -> None:
        asked: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return asked(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    for name in ("curve_through", "meet", "planner"):
        count(moves, name)
    count(cartesian, "lines_of")
    for name in ("fk", "solver_of"):
        count(world, name)
    count(SensorWatch, "_rows")
    return counts


@pytest.fixture(scope="module")
def looped() -> arm.Cell:
    """A palletiser, whose rods close loops."""
    return arm.Cell(name="loops", manipulators=arm.example("palletiser").manipulators)


def fresh(cell: arm.Cell) -> arm.Cell:
    """Return the cell without what its runs have kept."""
    return cell.replace(name=f"{cell.name} again")


def picks(cell: arm.Cell, *starts: Any) -> arm.Program:
    """The same two lines from a pose, reached from several joint positions."""
    tool = np.asarray(cell.pose("flange", cell.home))
    X = arm.Pose.from_matrix(tool)
    steps = list[Any]()
    for start in starts:
        low = X @ arm.Pose.translation(0.0, 0.0, 0.05)
        steps += [
            PTP(to=start),
            PTP(to=X, frame="flange"),
            Linear(to=low, frame="flange"),
            Linear(to=X, frame="flange"),
        ]
    return arm.Program(steps)


def test_lines_from_a_pose_are_found_once_wherever_the_robot_comes_from(
    looped: arm.Cell, calls: Calls
):
    home = np.asarray(looped.home.q)
    starts = [home + step for step in (0.05, -0.04, 0.03)]
    timeline = looped.run(picks(looped, *starts), **LOOPED)
    assert timeline.success, timeline.failure
    assert calls["lines_of"] == 2
    # Wherever it came from, it stands at the pose to the bit.
    ends = [s.end for s in timeline.spans if s.name == "PTP"][1::2]
    first, *others = (timeline.state(end).q for end in ends)
    for q in others:
        assert q.tobytes() == first.tobytes()


def test_what_a_cell_has_kept_does_not_change_a_run(looped: arm.Cell):
    home = np.asarray(looped.home.q)
    for start in (home + 0.05, home - 0.04):
        looped.run(picks(looped, start), **LOOPED)
    work = picks(looped, home + 0.03)
    after, alone = looped.run(work, **LOOPED), fresh(looped).run(work, **LOOPED)
    times = np.linspace(0.0, after.duration, 200)
    assert after.duration == alone.duration
    assert after.at(times).q.tobytes() == alone.at(times).q.tobytes()


def carrying(rounds: int) -> arm.Program:
    """A robot takes a box to the table and back, so many times."""
    on_table, grasp = place(0.2, -0.9), SIDE / 2 + 0.002
    steps: list[Any] = [Appear(part="box", at=on_table), PTP(to=READY)]
    for _ in range(rounds):
        height = HEIGHT + SIDE / 2 + grasp
        steps += [
            PTP(to=above(0.2, -0.9, height + 0.1), frame=TOOL),
            Linear(to=above(0.2, -0.9, height), frame=TOOL),
            Grip(part="box", by=TOOL),
            Linear(to=above(0.2, -0.9, height + 0.1), frame=TOOL),
            Linear(to=above(0.2, -0.9, height), frame=TOOL),
            Release(part="box"),
        ]
    return arm.Program({ROBOT: steps}, absent=("box",))


def test_rounds_that_repeat_ask_for_no_more_kernels_and_solvers(
    cell: arm.Cell, calls: Calls
):
    counts = list[Calls]()
    for rounds in (1, 3):
        calls.clear()
        timeline = fresh(cell).run(carrying(rounds), **FAST)
        assert timeline.success, timeline.failure
        counts.append(Calls(calls))
    assert counts[0]["fk"] > 0
    assert counts[0]["solver_of"] > 0
    # Where the box lies differs by rounding from one round to the next.
    for name in ("fk", "solver_of", "lines_of"):
        assert counts[1][name] <= counts[0][name] + 2, name


def test_lines_take_the_solver_of_their_run(cell: arm.Cell, calls: Calls):
    heights = 0.7, 0.6, 0.5, 0.6
    lines = [Linear(to=above(0.9, 0.0, z), frame=TOOL) for z in heights[1:]]
    start = PTP(to=above(0.9, 0.0, heights[0]), frame=TOOL)
    timeline = fresh(cell).run(arm.Program({ROBOT: [start, *lines]}), **FAST)
    assert timeline.success, timeline.failure
    assert calls["lines_of"] == len(lines)
    assert calls["solver_of"] == 1


def passing(seconds: float) -> arm.Program:
    """A box passes a light barrier, and goes on for some time."""
    where = arm.Pose.translation(0.9, -1.0, HEIGHT + SIDE / 2)
    beam = arm.Sensor(shape=arm.shapes.Box(size=(0.4, 0.002, 0.002), pose=where))
    steps = [
        Drive(joint="belt/carrier", speed=0.25),
        Appear(part="box", at=place(0.9, -1.5), on="belt/carrier"),
        WaitFor(signal="beam"),
        WaitFor(signal="beam", value=False),
        Wait(seconds=seconds),
        Leave(part="box"),
    ]
    return arm.Program({"source": steps}, sensors={"beam": beam}, absent=("box",))


def test_sensors_look_ahead_in_rows(cell: arm.Cell, calls: Calls):
    counts = list[int]()
    for seconds in (2.0, 2000.0):
        calls.clear()
        timeline = fresh(cell).run(passing(seconds), **FAST)
        assert timeline.success, timeline.failure
        counts.append(calls["_rows"])
    assert counts[0] <= 30
    assert counts[1] <= counts[0] + 10


def test_a_program_that_was_run_finds_nothing_again(cell: arm.Cell, calls: Calls):
    own = fresh(cell)
    first = own.run(carrying(1), **FAST)
    calls.clear()
    again = own.run(carrying(1), **FAST)
    assert again.duration == first.duration
    assert calls["lines_of"] == calls["curve_through"] == calls["meet"] == 0


def on_slide(axis: str) -> arm.Cell:
    """A robot, and a slide along x and y at 0, that carries a box."""
    links = [
        arm.Link(name="bed"),
        arm.Link(
            name="x", parent="bed", joint=arm.joints.Prismatic(axis=(1.0, 0.0, 0.0))
        ),
        arm.Link(
            name="y", parent="x", joint=arm.joints.Prismatic(axis=(0.0, 1.0, 0.0))
        ),
    ]
    (robot,) = arm.example("irb2400").manipulators
    slide = arm.Manipulator(name="slide", links=links)
    return arm.Cell(name=axis, manipulators=[robot, slide, box("box")])


def on_slide_driven(axis: str) -> arm.Program:
    """One joint of the slide moves, which a robot follows and a sensor sees."""
    where = arm.Pose.translation(0.5, 0.0, 0.0)
    beam = arm.shapes.Box(size=(0.01, 0.01, 0.01), pose=where)
    meet = PTP(to=above(0.9, 0.0, 0.8), frame=TOOL, relative_to="slide/y")
    return arm.Program(
        {
            "drive": [Drive(joint=f"slide/{axis}", speed=0.25), Wait(seconds=2.5)],
            ROBOT: [meet],
        },
        sensors={"beam": arm.Sensor(shape=beam)},
    )


def test_what_one_joint_does_is_not_kept_for_another():
    """Both move in the same way from the same place; only their names differ."""
    cell = on_slide("both")
    start = cell.home.attach("box", "slide/y", pose=arm.Pose.translation(0.0, 0.0, 0.0))
    cell.run(on_slide_driven("x"), start, **FAST)
    after = cell.run(on_slide_driven("y"), start, **FAST)
    alone = on_slide("both").run(on_slide_driven("y"), start, **FAST)
    assert after.success, after.failure
    assert after.signals == alone.signals
    assert [c.value for c in after.signals if c.signal == "beam"] == [False]
    times = np.linspace(0.0, after.duration, 200)
    assert after.at(times).q.tobytes() == alone.at(times).q.tobytes()
    pose = cell.fk(TOOL, relative_to="slide/y")(after.at(after.duration).q)
    assert np.abs(pose - np.asarray(above(0.9, 0.0, 0.8).matrix())).max() < 1e-8


def test_what_one_assembly_does_is_not_kept_for_another():
    (linkage,) = arm.example("five_bar").manipulators
    body = arm.Link(name="body", collisions=[arm.shapes.Sphere(radius=0.01)])
    ball = arm.Manipulator(name="ball", links=[body])
    cell = arm.Cell(name="linkage", manipulators=[linkage, ball])
    assemblies = cell.branches()
    to = np.asarray(cell.home.q) + 0.2
    there = cell.fk("tool", state=assemblies["home"])(to)[:3, 3]
    where = arm.Pose.translation(*there)
    shape = arm.shapes.Sphere(radius=0.02, pose=where)
    program = arm.Program(
        {"five_bar": [PTP(to=to)]},
        sensors={"there": arm.Sensor(shape=shape, parts=("ball",))},
    )
    for name, is_there in (("home", True), ("2", False)):
        start = assemblies[name].attach(
            "ball", "tool", pose=arm.Pose.translation(0, 0, 0)
        )
        timeline = cell.run(program, start, acceleration=5.0, velocity=2.0)
        assert timeline.success, timeline.failure
        times = np.linspace(0.0, timeline.duration, 1000)
        tips = cell.fk("tool", state=start)(timeline.at(times).q)[:, :3, 3]
        near = np.linalg.norm(tips - there, axis=1) < 0.03
        assert near[-1] == is_there, name
        (*_, last) = [each for each in timeline.signals if each.signal == "there"]
        assert last.value == is_there, name
        assert near.any() == is_there


def test_ways_are_kept_by_what_stands_around(calls: Calls):
    """They were kept by the place of obstacles in memory, which others take later."""
    own = arm.Cell(manipulators=arm.example("irb2400").manipulators)
    own = own.replace(rules=own.rules.include_self(ROBOT))
    program = arm.Program({ROBOT: [PTP(to=READY), Planned(to="home")]})
    for z in (3.0, 3.0, 4.0):
        far = arm.shapes.Box(size=(0.1, 0.1, 0.1), pose=arm.Pose.translation(0, 0, z))
        check = own.collision().with_obstacles({"far": far})
        timeline = own.run(program, check=check, **FAST)
        assert timeline.success, timeline.failure
    assert calls["planner"] == 2
