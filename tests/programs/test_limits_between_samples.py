"""Whatever a program moves keeps its limits at all instants, not only at samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.programs.timeline import Timeline
from armillary.programs.world import RunLimits
from belt_cell import TOOL, above, place

Array = npt.NDArray[np.float64]
steps = arm.steps

DENSE = 10_000


def exceeded(timeline: Timeline, rate: float, bend: float) -> tuple[float, Array]:
    """By how much positions, and which ratios rates and accelerations, exceed limits.

    rate: The greatest rates of joints without limits in the model; bend: likewise.
    """
    limits = RunLimits(timeline.cell, rate, bend)
    beyond, ratios = -np.inf, np.zeros(2)
    for track in timeline.recording.tracks:
        lower, upper = limits.position[:, track.joints]
        greatest = (
            limits.velocity[:, track.joints],
            limits.acceleration[:, track.joints],
        )
        for piece in track.pieces:
            motion = piece.motion
            count = max(DENSE // len(motion.law), 4)
            k = np.repeat(np.arange(len(motion.law)), count)
            share = np.tile(np.linspace(0.0, 1.0, count), len(motion.law))
            q, *rates, _ = motion._evaluated(k, share * np.diff(motion.times)[k])
            beyond = max(beyond, (lower - q).max(), (q - upper).max())
            of = [
                np.maximum(each / most[1], each / most[0]).max()
                for each, most in zip(rates, greatest, strict=True)
            ]
            ratios = np.maximum(ratios, of)
    return beyond, ratios


def serial(
    axes: Sequence[str], limits: Sequence[tuple[float, float]], length: float
) -> arm.Cell:
    """An arm whose joints turn about z or slide along x, of links of a length."""
    links = [arm.Link(name="base")]
    for k, (axis, (lower, upper)) in enumerate(zip(axes, limits, strict=True)):
        along = (1.0, 0.0, 0.0)
        joint = (
            arm.joints.Revolute(
                axis=(0, 0, 1), precursor=arm.Pose.translation(length, 0, 0)
            )
            if axis == "turn"
            else arm.joints.Prismatic(axis=along)
        )
        bounds = arm.Limits(lower=lower, upper=upper, velocity=1.0, acceleration=2.0)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint,
                joint_name=f"j{k}",
                limits=bounds,
            )
        )
    return arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])


def test_a_joint_that_comes_to_its_limit_on_a_line_stays_within_it():
    # It was 0.93 mm beyond it, and its acceleration 0.6 % too great.
    cell = serial(["slide", "slide"], [(1.4, 2.0), (-2.0, 2.0)], 0.0)
    line = steps.Linear(to=arm.Pose.translation(1.0, 0, 0), frame="link1")
    timeline = cell.run(
        arm.Program({"arm": [line]}), cell.home.joints({"j0": 1.5, "j1": 0.5})
    )
    assert timeline.success, timeline.failure
    t = np.linspace(0.0, timeline.duration, DENSE)
    q = timeline.at(t).q
    assert q[:, 0].min() == pytest.approx(1.4, abs=1e-9)
    # The tool goes on along its line, from 2 to 1 m.
    assert (np.diff(q.sum(axis=1)) < 1e-12).all()
    assert q.sum(axis=1)[[0, -1]] == pytest.approx([2.0, 1.0], abs=1e-9)
    beyond, ratios = exceeded(timeline, 1.0, 2.0)
    assert beyond <= 1e-9
    assert ratios.max() <= 1.0 + 1e-9


@pytest.fixture(scope="module")
def redundant() -> arm.Cell:
    """An arm of four turns on a slide, of which each has little room."""
    rooms = [(-0.1, 0.15), (-0.4, 0.3), (0.2, 0.9), (-1.0, -0.3), (0.0, 0.7)]
    return serial(["slide", "turn", "turn", "turn", "turn"], rooms, 0.4)


def line_of(cell: arm.Cell, seed: int) -> tuple[Timeline, Array]:
    """A line of a redundant arm on which limits bind, and its ends."""
    rng = np.random.default_rng(seed)
    lower, upper = cell.limits
    while True:
        home = cell.home.replace(q=rng.uniform(lower, upper))
        first = cell.pose("link4", home)
        last = first.copy()
        last[:2, 3] += rng.uniform(-0.3, 0.3, 2)
        step = steps.Linear(to=arm.Pose.from_matrix(last), frame="link4")
        timeline = cell.run(arm.Program({"arm": [step]}), home)
        if timeline.success and timeline.duration > 0.5:
            return timeline, np.stack([first, last])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_lines_of_redundant_arms_keep_limits_and_their_line(
    redundant: arm.Cell, seed: int
):
    timeline, (first, last) = line_of(redundant, seed)
    beyond, ratios = exceeded(timeline, 1.0, 2.0)
    assert beyond <= 1e-9
    assert ratios.max() <= 1.0 + 1e-9
    q = timeline.at(np.linspace(0.0, timeline.duration, DENSE)).q
    X = redundant.fk("link4")(q)
    along = last[:3, 3] - first[:3, 3]
    along /= np.linalg.norm(along)
    off = X[:, :3, 3] - first[:3, 3]
    off -= (off @ along)[:, None] * along
    assert np.linalg.norm(off, axis=1).max() < 1e-5
    assert np.abs(X[:, :3, :3] - first[:3, :3]).max() < 1e-4


def test_lines_on_a_conveyor_keep_limits(cell: arm.Cell):
    # Accelerations were too great between samples 10 ms apart: by 0.3 % here, by 6.5 %
    # for a delta.
    body = "box/body"
    on_box: Any = {"frame": TOOL, "relative_to": body}
    work = [
        steps.PTP(to=above(0, 0, 0.2), **on_box),
        steps.Linear(to=above(0, 0, 0.15), **on_box),
        steps.Linear(to=above(0.05, 0, 0.15), **on_box),
        steps.Wait(seconds=0.1),
        steps.Linear(
            to=[above(0.05, 0.05, 0.15), above(0, 0.05, 0.2)], blend=0.02, **on_box
        ),
        steps.PTP(to="home"),
    ]
    program = arm.Program(
        {"belt": [steps.Drive(joint="belt/carrier", speed=0.2)], "irb2400": work}
    )
    start = cell.home.place("box", place(0.9, -0.4)).attach("box", "belt/carrier")
    timeline = cell.run(program, start, acceleration=20.0)
    assert timeline.success, timeline.failure
    beyond, ratios = exceeded(timeline, 1.0, 20.0)
    assert beyond <= 1e-9
    assert ratios.max() <= 1.0 + 2e-9


def followed(cell: arm.Cell, frame: str, q: Array, speed: float) -> Timeline:
    """A robot that follows a conveyor for 2 s, and stays where it is on it."""
    along = arm.joints.Prismatic(axis=(1.0, 0.0, 0.0))
    carrier = arm.Link(name="carrier", parent="bed", joint=along)
    belt = arm.Manipulator(name="belt", links=[arm.Link(name="bed"), carrier])
    cell = arm.Cell(manipulators=[*cell.manipulators, belt])
    start = cell.home.replace(q=[*q, 0.0])
    X = cell.pose(frame, start)
    there: Any = {"frame": frame, "relative_to": "belt/carrier"}
    work = [steps.PTP(to=arm.Pose.from_matrix(X), **there), steps.Wait(seconds=2.0)]
    drive = steps.Drive(joint="belt/carrier", speed=speed)
    program = arm.Program({"belt": [drive], "arm": work})
    timeline = cell.run(program, start, acceleration=50.0)
    assert timeline.success, timeline.failure
    met = timeline.span("PTP").end
    values = timeline.at(np.linspace(met, timeline.duration, 2001))
    fk = cell.fk(frame, relative_to="belt/carrier", state=timeline.state(met))
    assert np.abs(fk(values.q) - X).max() < 1e-6
    beyond, ratios = exceeded(timeline, 1.0, 50.0)
    assert beyond <= 1e-9
    assert ratios.max() <= 1.0 + 2e-9
    return timeline


@pytest.mark.parametrize(("home", "speed"), [(0.9, 0.2), (0.9, 0.12), (-0.9, -0.2)])
def test_a_redundant_arm_that_follows_a_frame_passes_a_limit(home: float, speed: float):
    # One slide comes to its limit, and the other takes over. It was refused.
    cell = serial(["slide", "slide"], [(-1.0, 1.0), (-2.0, 2.0)], 0.0)
    timeline = followed(cell, "link1", np.array([home, 0.2]), speed)
    # It does not stay away from its limit.
    assert abs(timeline.at(timeline.duration).q[0]) > 0.99


@pytest.mark.parametrize("draw", [0, 2, 5])
def test_turns_that_follow_a_frame_pass_limits(redundant: arm.Cell, draw: int):
    q = np.random.default_rng(0).uniform(*redundant.limits, (draw + 1, 5))[draw]
    followed(redundant, "link4", q, 0.05 if draw % 2 else -0.05)
