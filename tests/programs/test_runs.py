"""Runs from many states at once are those from each alone, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import StateError
from armillary.planning import cartesian
from armillary.programs import run
from armillary.programs.steps import PTP, Grip, Linear, Planned, Release, Wait
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, place

ROBOT = "irb2400"
FAST: Any = {"acceleration": 8.0}
LOOPED: Any = {"velocity": 2.0, "acceleration": 6.0}


def numbers(timeline: arm.Timeline) -> bytes:
    """Return all that a timeline has, as bytes."""
    times = np.linspace(0.0, timeline.duration, 300)
    found = timeline.at(times)
    spans = [
        (s.task, s.place, s.name, s.start, s.end, s.waited_for, s.cause)
        for s in timeline.spans
    ]
    text = repr((spans, timeline.failure, timeline.duration)).encode()
    states = [timeline.state(t) for t in times[::50]]
    return (
        text
        + found.q.tobytes()
        + found.qd.tobytes()
        + b"".join(each.passive.tobytes() for each in states)
        + repr([each.placements for each in states]).encode()
    )


def fresh(cell: arm.Cell) -> arm.Cell:
    """Return the cell without what its runs have kept."""
    return cell.replace(name=f"{cell.name} again")


def moved(x: float, y: float) -> list[Any]:
    """A box is taken from a place of the table to another one."""
    grasp = HEIGHT + SIDE + 0.002
    return [
        PTP(to=READY),
        PTP(to=above(x, y, grasp + 0.1), frame=TOOL),
        Linear(to=above(x, y, grasp), frame=TOOL),
        Grip(part="box", by=TOOL),
        Linear(
            to=[above(x, y, grasp + 0.1), above(x, y - 0.1, grasp + 0.1)],
            frame=TOOL,
            blend=0.03,
        ),
        Linear(to=above(x, y - 0.1, grasp), frame=TOOL, speed=0.2),
        Release(part="box"),
        Wait(seconds=0.1),
    ]


PLACES = [(0.2, -0.9), (0.25, -0.85), (0.1, -0.95), (0.2, -0.9), (3.0, -0.9)]


def test_runs_of_many_states_are_those_of_each_alone(cell: arm.Cell):
    # The box is elsewhere in each; at (0.1, -0.95) the robot does not find it.
    states = [cell.home.place("box", place(x, y)) for x, y in PLACES]
    program = arm.Program({ROBOT: moved(0.2, -0.9)})
    alone = [fresh(cell).run(program, state, **FAST) for state in states]
    together = fresh(cell).runs(program, states, **FAST)
    assert [numbers(each) for each in together] == [numbers(each) for each in alone]
    assert any(each.success for each in alone)
    assert not all(each.success for each in alone)


def layouts(looped: arm.Cell, count: int) -> list[arm.State]:
    """States of a palletiser, some of which its lines lead beyond its reach."""
    rng = np.random.default_rng(3)
    return [
        looped.home.place("table", arm.Pose.translation(x, y, 0.4))
        for x, y in rng.uniform((0.3, 0.1), (3.1, 1.6), (count, 2)).tolist()
    ]


@pytest.fixture(scope="module")
def looped() -> arm.Cell:
    """A palletiser, whose rods close loops, and a table."""
    shape = arm.shapes.Box(size=(0.2, 0.2, 0.1), pose=arm.Pose.translation(0, 0, -0.05))
    link = arm.Link(name="slab", collisions=[shape], frames=[arm.Frame(name="top")])
    table = arm.Manipulator(name="table", links=[link])
    (robot,) = arm.example("palletiser").manipulators
    return arm.Cell(name="loops", manipulators=[robot, table])


def touching() -> arm.Program:
    """A palletiser goes down to the table by lines, and up."""
    down = arm.Pose.rotation_y(np.pi)
    high, low = (arm.Pose.translation(0, 0, z) @ down for z in (0.5, 0.15))
    side = arm.Pose.translation(0.7, 0, 0.5) @ down
    at: Any = {"frame": "flange", "relative_to": "table/top"}
    return arm.Program(
        {
            "palletiser": [
                PTP(to=high, **at),
                Linear(to=low, **at),
                Linear(to=high, speed=0.3, **at),
                Linear(to=[high, side], **at),
            ]
        }
    )


def test_runs_beside_runs_that_fail_are_as_alone(looped: arm.Cell):
    states = layouts(looped, 16)
    alone = [fresh(looped).run(touching(), state, **LOOPED) for state in states]
    together = fresh(looped).runs(touching(), states, **LOOPED)
    assert [numbers(each) for each in together] == [numbers(each) for each in alone]
    steps = {each.failure.step for each in alone if each.failure}
    assert {"palletiser[0]", "palletiser[3]"} <= steps
    assert sum(each.success for each in alone) > 5


def test_runs_beyond_those_that_go_on_at_once(
    looped: arm.Cell, monkeypatch: pytest.MonkeyPatch
):
    states = layouts(looped, 7)
    at_once = fresh(looped).runs(touching(), states, **LOOPED)
    monkeypatch.setattr(run, "AT_ONCE", 3)
    in_parts = fresh(looped).runs(touching(), states, **LOOPED)
    assert [numbers(each) for each in in_parts] == [numbers(each) for each in at_once]


def test_lines_of_many_runs_are_found_in_one_call(
    looped: arm.Cell, monkeypatch: pytest.MonkeyPatch
):
    rows = list[int]()
    asked = cartesian.lines_of

    def counted(solver: Any, tool: Any, wanted: Any, **options: Any) -> Any:
        rows.append(len(wanted))
        return asked(solver, tool, wanted, **options)

    monkeypatch.setattr(cartesian, "lines_of", counted)
    states = [
        looped.home.place("table", arm.Pose.translation(1.5 + 0.02 * k, 0.7, 0.4))
        for k in range(8)
    ]
    found = fresh(looped).runs(touching(), [*states, states[0]], **LOOPED)
    assert all(each.success for each in found)
    # The ninth layout is the first one: what it asks for is not found twice.
    assert rows == [8, 8, 8]


def test_runs_of_an_empty_list_and_of_home(cell: arm.Cell):
    program = arm.Program({ROBOT: [PTP(to=READY)]})
    assert cell.runs(program, [], **FAST) == []
    (timeline,) = cell.runs(program, [None], **FAST)
    assert numbers(timeline) == numbers(cell.run(program, **FAST))


def carriages() -> arm.Cell:
    """Two carriages on one rail, each with a slide on it, that may not pass."""
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    far = arm.Limits(lower=-2.0, upper=2.0)
    cars = [
        arm.Manipulator(
            name=name,
            links=[
                arm.Link(name="rail"),
                arm.Link(name="car", parent="rail", joint=slide, limits=far),
                arm.Link(name="tip", parent="car", joint=slide, limits=far),
            ],
        )
        for name in ("left", "right")
    ]
    apart = arm.CoupledLimit(joints={"right/car": 1, "left/car": -1}, lower=0.5)
    return arm.Cell(manipulators=cars, coupled_limits=[apart])


@pytest.mark.parametrize("first", [PTP, Linear])
def test_where_joints_of_other_tasks_are_decides_within_coupled_limits(first: Any):
    # What was found for one place of the left carriage was taken for another one, where
    # the carriages are nearer to each other than their coupled limit allows.
    cars = carriages()
    to, then = (arm.Pose.translation(x, 0, 0) for x in (1.0, 0.6))
    program = arm.Program(
        {
            "left": [Wait(seconds=1.0)],
            "right": [
                first(to=to, frame="right/tip"),
                Linear(to=then, frame="right/tip"),
            ],
        }
    )
    states = [
        cars.home.joints({"left/car": x, "right/car": 1.5, "right/tip": 0.5})
        for x in (-1.5, 0.6, 0.9, -0.2)
    ]
    options: Any = {"velocity": 1.0, "acceleration": 2.0}
    alone = [fresh(cars).run(program, state, **options) for state in states]
    kept, other = fresh(cars), fresh(cars)
    for timeline in alone:
        assert timeline.success, timeline.failure
        q = timeline.state(timeline.duration).q
        assert cars.limit_rows.excess(q) < 1e-9
    expected = [numbers(each) for each in alone]
    assert [
        numbers(each) for each in other.runs(program, states, **options)
    ] == expected
    one_by_one = [kept.run(program, state, **options) for state in states]
    assert [numbers(each) for each in one_by_one] == expected


def test_runs_with_planned_steps(cell: arm.Cell):
    program = arm.Program(
        {ROBOT: [Planned(to=above(0.2, -0.9, HEIGHT + 0.6), frame=TOOL)]},
        absent=("other",),
    )
    states = [cell.home.place("box", place(x, y)) for x, y in PLACES[:2]]
    alone = [fresh(cell).run(program, state, **FAST) for state in states]
    together = fresh(cell).runs(program, states, **FAST)
    assert [numbers(each) for each in together] == [numbers(each) for each in alone]
    assert alone[0].success, alone[0].failure


def test_states_of_other_cells_are_refused(cell: arm.Cell, looped: arm.Cell):
    program = arm.Program({ROBOT: [PTP(to=READY)]})
    with pytest.raises(StateError):
        cell.runs(program, [cell.home, looped.home], **FAST)
    one: Any = cell.home
    with pytest.raises(StateError, match=r"run\(\) takes one"):
        cell.runs(program, one, **FAST)
