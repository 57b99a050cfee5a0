"""Plans on a button: from where people started to the shown state, or to a posture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.panel.plans import ACCELERATION, RATE, motion_limits, trace_of
from people import Person, part, until

pytest.importorskip("viser")

SIDE = [0.35, 0.5, 0.3, 0.0, 0.7, 0.0]
OTHER = [-0.35, 0.5, 0.3, 0.0, 0.7, 0.0]
INSIDE = [0.0, 0.6, 0.2, 0.0, 0.6, 0.0]


@pytest.fixture(scope="module")
def viewer() -> Iterator[Any]:
    """An arm that must lift over a crate, which no browser shows."""
    shape = arm.shapes.Box(size=(0.9, 0.2, 1.0), pose=arm.Pose.translation(0, 0, 0.5))
    crate = arm.Manipulator(
        name="crate", links=[arm.Link(name="body", collisions=[shape])]
    )
    at = arm.Pose.translation(1.3, 0.0, 0.0)
    with arm.example("irb2400").add(crate, pose=at).view() as viewer:
        yield viewer


@pytest.fixture
def controls(viewer: Any) -> Any:
    found = part(viewer, "PlanControls")
    press(found, "Clear")
    return found


def press(controls: Any, button: str) -> None:
    Person().press(controls._do, button)


def is_playing(viewer: Any) -> bool:
    return bool(part(viewer, "Playback").is_playing)


def test_it_plans_from_where_people_started_and_plays(
    viewer: Any, controls: Any
) -> None:
    home = viewer.state
    viewer.show(home.replace(q=SIDE))
    press(controls, "Plan")
    assert "Start here" in controls._said.value
    press(controls, "Start here")
    viewer.show(home.replace(q=OTHER))
    press(controls, "Plan")
    until(lambda: "way points" in controls._said.value)
    assert "proven" in controls._said.value
    until(lambda: is_playing(viewer))
    motion = part(viewer, "Playback")._motion
    ends = [motion.state(k).q for k in (0, len(motion.times) - 1)]
    assert np.allclose(ends, [SIDE, OTHER], rtol=0, atol=1e-9)
    # The trace is one line of the tool, from end to end, over the crate.
    points = controls._trace.points
    fk = arm.example("irb2400").fk("tool0")
    assert controls._trace.visible
    assert np.allclose(points[0, 0], fk(SIDE)[:3, 3], atol=1e-5)
    assert np.allclose(points[-1, 1], fk(OTHER)[:3, 3], atol=1e-5)
    assert np.array_equal(points[1:, 0], points[:-1, 1])
    x, y, z = points[:, 0].T
    is_over = (np.abs(y) < 0.1) & (x > 0.85)
    assert (z[is_over] > 1.0).all()
    part(viewer, "Playback")._switch()


def test_it_goes_to_postures_and_says_why_it_cannot(viewer: Any, controls: Any) -> None:
    state = viewer.state
    viewer.show(state.replace(q=SIDE))
    controls._to.value = "folded"
    press(controls, "Plan")
    until(lambda: "way points" in controls._said.value)
    until(lambda: is_playing(viewer))
    motion = part(viewer, "Playback")._motion
    posture = viewer.cell.manipulators[0].posture("folded")
    last = motion.state(len(motion.times) - 1)
    assert np.allclose(last.q, posture.q, rtol=0, atol=1e-9)
    viewer.show(state.replace(q=INSIDE))
    press(controls, "Plan")
    until(lambda: "touch at the start" in controls._said.value)
    assert "crate/body" in controls._said.value
    assert not controls._trace.visible


def test_limits_that_a_file_lacks_are_ours() -> None:
    cell = arm.example("irb2400").workcell
    limits = motion_limits(cell)
    assert np.array_equal(limits["velocity"], cell.velocity_limits)
    assert (limits["acceleration"] == ACCELERATION).all()
    bare = arm.example("five_bar").workcell
    unlimited = ~np.isfinite(bare.velocity_limits)
    assert (motion_limits(bare)["velocity"][unlimited] == RATE).all()


def test_a_trace_of_what_rests_has_no_lines() -> None:
    cell = arm.example("irb2400")
    q = np.array([SIDE, SIDE])
    motion = arm.Motion.through([0.0, 1.0], q, np.zeros_like(q), start=cell.home)
    assert trace_of(motion).shape == (1, 2, 3)
    assert not trace_of(motion).any()
