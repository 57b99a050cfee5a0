"""Clearance and loads of timelines beside dense samples."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.programs.clearance import nearest_below
from armillary.programs.steps import PTP, Drive, Grip, Linear, Wait
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, place

ROBOT = "irb2400"
HIGH = HEIGHT + SIDE + 0.001


@pytest.fixture(scope="module")
def timeline(cell: arm.Cell) -> arm.Timeline:
    start = cell.home.place("box", place(0.9, -0.2)).place("other", place(0.9, 0.5))
    program = arm.Program(
        {
            ROBOT: [
                PTP(to=READY),
                PTP(to=above(0.9, -0.2, HIGH + 0.2), frame=TOOL),
                Linear(to=above(0.9, -0.2, HIGH + 0.005), frame=TOOL, speed=0.5),
                Grip(part="box", by=TOOL),
                Linear(to=above(0.9, 0.2, HIGH + 0.2), frame=TOOL),
                PTP(to=READY),
            ],
            "belt": [Wait(seconds=1.0), Drive(joint="belt/carrier", speed=0.1)],
        }
    )
    timeline = cell.run(program, start, acceleration=8.0)
    assert timeline.success, timeline.failure
    return timeline


def test_clearance_is_the_least_of_dense_samples(timeline: arm.Timeline):
    found = timeline.clearance()
    dense = np.inf
    for a, b in timeline.recording.attached_spans():
        times = np.linspace(a, b, 5001)
        dense = min(
            dense, timeline.recording.check(a).clearance(timeline.at(times).q).min()
        )
    assert found.distance <= dense + 1e-9
    assert found.proven <= found.distance
    assert found.proven >= found.distance - 2e-5
    nearest = timeline.recording.check(found.time).contacts(
        timeline.at(found.time).q, within=found.distance + 1e-6
    )
    assert found.pair in [contact.links for contact in nearest]
    assert found.is_free == (found.proven > 0.0)
    assert found.step


def test_clearance_of_one_step(timeline: arm.Timeline):
    # The least of the run is at the box; the robot moves far from everything before.
    recording = timeline.recording
    for name in ("PTP", "Linear", f"{ROBOT}[4]"):
        span = timeline.span(name)
        found = timeline.clearance(during=span)
        times = np.linspace(span.start, span.end, 201)
        states = {float(recording.check(t).clearance(recording.at(t).q)) for t in times}
        assert found.distance <= min(states) + 1e-9
        assert found.distance >= min(states) - 1e-4
        assert span.start <= found.time <= span.end
        assert found.distance - 2e-5 <= found.proven <= found.distance
    # Of a step that takes no time it is that of both states at its instant.
    grip = timeline.span("Grip")
    sides = [recording.check(grip.start), recording.check(grip.start - 1e-9)]
    q = recording.at(grip.start).q
    expected = min(float(check.clearance(q)) for check in sides)
    at_once = timeline.clearance(during=grip)
    assert at_once.distance == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ModelError, match="during= is the span of a step"):
        timeline.clearance(during="Grip")  # type: ignore[arg-type]
    for tolerance in (0.0, -1.0, np.nan):
        with pytest.raises(ModelError, match="tolerance is a finite number above 0"):
            timeline.clearance(tolerance=tolerance)


def test_clearance_of_a_robot_and_what_it_carries(timeline: arm.Timeline):
    # A box lies a millimetre above the belt, which is not what the robot does.
    recording = timeline.recording
    assert timeline.clearance().distance == pytest.approx(0.001, abs=1e-9)
    across = timeline.spans[1]
    found = timeline.clearance(during=across, of=ROBOT)
    assert any(link.startswith(ROBOT) for link in found.pair)
    check = recording.check(across.start)
    own = [any(link.startswith(ROBOT) for link in pair) for pair in check.pairs]
    times = np.linspace(across.start, across.end, 5001)
    dense = check.distances(recording.at(times).q)[:, own].min()
    assert dense - 1e-4 <= found.distance <= dense + 1e-9
    assert found.distance > 0.01
    # Afterwards the box in its hand is as near as the belt below.
    lift = timeline.clearance(during=timeline.span(f"{ROBOT}[4]"), of=ROBOT)
    assert lift.distance == pytest.approx(0.001, abs=1e-6)
    assert set(lift.pair) == {"belt/bed", "box/body"}
    # The other box stays on the table or the belt, with nothing that it carries.
    assert "other/body" in timeline.clearance(of="other").pair
    with pytest.raises(UnknownName, match="irb2400"):
        timeline.clearance(of="irb24000")


def test_clearance_of_a_cell_that_nothing_tests():
    alone = arm.example("scara")
    rules = alone.rules.exclude("*", "*")
    quiet = alone.replace(rules=rules)
    timeline = quiet.run(arm.Program([Wait(seconds=1.0)]))
    found = timeline.clearance()
    assert found.distance == np.inf
    assert repr(found) == "<Clearance: no pair of links is tested>"


@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_what_is_proven_is_near_what_is_found_in_cells_of_any_size(size: float):
    """A ball that passes another: planned motions are refused by this alone."""
    ball, slide = arm.shapes.Sphere(radius=size / 10), arm.joints.Prismatic()
    passing = arm.Link(
        name="ball",
        parent="rail",
        joint=slide,
        joint_name="x",
        limits=arm.Limits(
            lower=-size, upper=size, velocity=30 * size, acceleration=1000 * size
        ),
        collisions=[ball],
    )
    stands = arm.Link(name="ball", collisions=[ball])
    rail = arm.Manipulator(name="a", links=[arm.Link(name="rail"), passing])
    cell = arm.Cell(manipulators=[rail, arm.Manipulator(name="b", links=[stands])])
    cell = cell.replace(rules=cell.rules.include("*", "*"))
    start = cell.home.replace(q=[-0.8 * size])
    timeline = cell.run(arm.Program({"a": [PTP(to=[0.6 * size])]}), start)
    found = nearest_below(
        timeline.recording, lambda _: True, 0.0, timeline.duration, 0.0
    )
    assert found.distance == pytest.approx(-0.2 * size)
    assert found.distance - found.proven <= 2e-9 + 1e-6 * size


def test_loads_are_the_greatest_of_dense_samples(timeline: arm.Timeline):
    cell = arm.Cell.of(timeline.cell)
    loads = timeline.loads()
    n = len(cell.joint_names)
    peak, energy, squares = np.zeros(n), 0.0, np.zeros(n)
    for a, b in timeline.recording.attached_spans():
        times = np.linspace(a, b, 20_001)
        values = timeline.at(times)
        torque = cell.inverse_dynamics(state=timeline.state(a))(*values)
        peak = np.maximum(peak, np.abs(torque).max(axis=0))
        h = (b - a) / 20_000
        energy += h * np.maximum(torque * values.qd, 0.0).sum()
        squares += h * (torque**2).sum(axis=0)
    assert (loads.peak >= peak - 1e-9).all()
    assert loads.peak == pytest.approx(peak, rel=1e-3, abs=1e-9)
    assert loads.energy == pytest.approx(energy, rel=1e-3)
    rms = np.sqrt(squares / timeline.duration)
    assert loads.rms == pytest.approx(rms, rel=1e-3, abs=1e-9)
    for k, name in enumerate(loads.joints):
        assert name == cell.joint_names[k]


def test_use_and_samples(timeline: arm.Timeline):
    assert 0.0 < timeline.use[ROBOT] <= 1.0
    samples = timeline.sampled(100.0)
    assert samples.time[-1] == timeline.duration
    assert np.allclose(samples.q[-1], timeline.state(timeline.duration).q)
