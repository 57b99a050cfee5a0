"""Plans on a button: from where people started to the shown state, or to a posture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.motion import motion_of, trace_of
from armillary.view.panel.plans import ACCELERATION, RATE, SHOWN, motion_limits
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
    found._start, found._to.value = None, SHOWN
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
    points = viewer._session.scene._trace.points
    fk = arm.example("irb2400").fk("tool0")
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
    assert not is_playing(viewer)


def test_limits_that_a_file_lacks_are_ours() -> None:
    cell = arm.example("irb2400").workcell
    limits = motion_limits(cell)
    assert np.array_equal(limits["velocity"], cell.velocity_limits)
    assert (limits["acceleration"] == ACCELERATION).all()
    bare = arm.example("five_bar").workcell
    unlimited = ~np.isfinite(bare.velocity_limits)
    assert (motion_limits(bare)["velocity"][unlimited] == RATE).all()


def test_a_trace_follows_the_tool_and_leaves_out_rests(viewer: Any) -> None:
    cell = arm.example("irb2400")
    Q = np.array([SIDE, SIDE, OTHER])
    lines = trace_of(motion_of(cell.home, Q, times=None, rate=None))
    ends = cell.fk("tool0")([[SIDE, OTHER]])[0, :, :3, 3]
    assert np.allclose(lines, ends[None], atol=1e-6)
    viewer.play(np.tile(SIDE, (3, 1)))
    playback = part(viewer, "Playback")
    playback._traced.value = True
    playback._draw_trace()
    assert viewer._session.scene._trace is None  # it rests
