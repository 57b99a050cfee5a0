"""Motions along paths are played as they are returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.control.obstacles import as_boxes
from armillary.errors import ShapeError
from armillary.view.motion import motion_of
from armillary.view.page import messages_of


def test_samples_of_a_path():
    cell = arm.example("pan_tilt")
    path = np.array([[0.0, 0.0], [1.0, 0.4], [0.3, 0.8]])
    timed = cell.time_path(path, velocity=1.0, acceleration=2.0)
    samples = timed.sampled(rate=50)
    motion = motion_of(cell.home, samples, times=None, rate=None)
    assert np.array_equal(motion.times, samples.time)
    assert np.array_equal(motion.at(samples.time[7]).q, samples.q[7])
    slower = motion_of(cell.home, samples, times=2.0 * samples.time, rate=None)
    assert slower.times[-1] == 2.0 * samples.time[-1]
    two = cell.time_path(np.stack([path, path]), velocity=1.0, acceleration=2.0)
    with pytest.raises(ShapeError, match=r"batch \(2,\).*row=0"):
        motion_of(cell.home, two.at(np.zeros((2, 3))), times=None, rate=None)


# What a controller avoided, in the viewer and in pages.


pytest.importorskip("viser", reason="the extra 'view' is not installed")

STEPS, RATE = 20, 50.0
VELOCITY = np.array([0.5, 0.0, -0.2])
SET = """([uuid, value]) => armillary.receive(
    {type: "GuiUpdateMessage", uuid, updates: {value}})"""


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("irb2400")


@pytest.fixture(scope="module")
def control(cell: arm.Cell) -> Any:
    return cell.controller(
        tasks.Posture(), avoid=cell.collision(margin=0.01), rate=RATE
    )


@pytest.fixture(scope="module")
def obstacles() -> arm.Obstacles:
    """A sphere, a capsule and a box, far away from the arm."""
    X = arm.Pose.translation(0.0, 3.0, 1.0) @ arm.Pose.rotation_x(0.5)
    return arm.Obstacles.joined(
        arm.Obstacles.spheres([[3.0, 0.0, 1.0]], 0.3, VELOCITY),
        arm.Obstacles([[[-3.0, 0.0, 1.0], [-3.0, 1.0, 1.0]]], 0.1, VELOCITY),
        arm.Obstacles.boxes([X.matrix()], (0.2, 0.4, 0.6), VELOCITY),
    )


@pytest.fixture(scope="module")
def motion(cell: arm.Cell, control: Any, obstacles: arm.Obstacles) -> Any:
    q = np.full(6, 0.2)
    return control.simulate(cell.home.q, q, STEPS, obstacles=obstacles)


def test_obstacles_are_drawn_where_they_are(cell: arm.Cell, motion: Any) -> None:
    played = motion_of(cell.home, motion, times=None, rate=None)
    assert np.array_equal(played.times, motion.time)
    assert np.array_equal(played.state(3).q, motion.q[3])
    ball, capsule, box = played.obstacles.surfaces
    assert np.ptp(ball.vertices, axis=0) == pytest.approx([0.6] * 3, rel=0.02)
    assert np.ptp(capsule.vertices, axis=0) == pytest.approx([0.2, 0.2, 1.2], rel=0.02)
    assert np.ptp(box.vertices, axis=0) == pytest.approx([0.2, 0.4, 0.6])
    X = played.obstacles.poses
    assert X.shape == (STEPS + 1, 3, 4, 4)
    moved = motion.time[:, None, None] * VELOCITY
    centres = np.array([(3, 0, 1), (-3, 0.5, 1), (0, 3, 1)]) + moved
    np.testing.assert_allclose(X[..., :3, 3], centres, rtol=0, atol=1e-12)
    assert np.abs(X[:, 1, :3, 2] - [0, 1, 0]).max() < 1e-12  # along the segment


def test_obstacles_that_grow_are_drawn_as_the_greatest(
    cell: arm.Cell, control: Any
) -> None:
    def growing(time: float) -> arm.Obstacles:
        return arm.Obstacles.spheres([[3.0, 0.0, 1.0]], 0.1 + time)

    motion = control.simulate(cell.home.q, cell.home.q, STEPS, obstacles=growing)
    (ball,) = motion_of(cell.home, motion, times=None, rate=None).obstacles.surfaces
    most = 0.1 + motion.time[-2]
    assert np.ptp(ball.vertices, axis=0) == pytest.approx([2 * most] * 3, rel=0.02)


def test_one_row_of_a_batch_is_drawn(
    cell: arm.Cell, control: Any, obstacles: arm.Obstacles
) -> None:
    q = np.tile(cell.home.q, (2, 1))
    at = np.array([3.0, -3.0])
    centres = np.zeros((2, 1, 1, 3)) + at[:, None, None, None]
    balls = arm.Obstacles.spheres(centres, 0.3)
    both = control.simulate(q, q[:, None], STEPS, obstacles=balls)
    with pytest.raises(ShapeError, match=r"motion\.row\(0\)"):
        motion_of(cell.home, both, times=None, rate=None)
    for row in (0, 1):
        one = both.row(row)
        assert np.array_equal(one.q, both.q[row])
        assert np.array_equal(one.distance, both.distance[row])
        shown = motion_of(cell.home, one, times=None, rate=None)
        assert (shown.obstacles.poses[..., :3, 3] == at[row]).all()
    for wrong in ((2,), (0, 0), ("a",), ()):
        with pytest.raises(ShapeError, match=r"batch of shape \(2,\)"):
            both.row(*wrong)


def test_the_viewer_moves_obstacles(cell: arm.Cell, motion: Any) -> None:
    def places(viewer: Any) -> dict[str, Any]:
        found = messages_of(viewer.server)
        return {
            each["name"]: each["position"]
            for each in found
            if each["type"] == "SetPositionMessage"
            and each["name"].startswith("/obstacles")
        }

    with cell.view() as viewer:
        assert not places(viewer)
        viewer.play(motion, play=False)
        first = motion.obstacles(0).numbers[:, :3]
        assert np.allclose(list(places(viewer).values()), first)
        viewer._playback.time = float(motion.time[7])
        viewer._playback._show_now()
        later = motion.obstacles(7).numbers[:, :3]
        assert np.allclose(list(places(viewer).values()), later)
        viewer.play(motion.q, play=False)  # without obstacles
        assert not viewer._session.scene._obstacles


@pytest.mark.thorough
def test_a_page_moves_obstacles(
    browser: Any, cell: arm.Cell, motion: Any, tmp_path: Path
) -> None:
    path = tmp_path / "cell.html"
    cell.export(path, motion=motion)
    page = browser.new_page()
    page.set_default_timeout(120_000)  # the machine may be busy
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("globalThis.armillary !== undefined")
    page.get_by_text("Pose in the world").wait_for()
    control = page.evaluate("armillary.control('time')")
    for k in (0, 9, STEPS - 1):
        page.evaluate(SET, [control, float(motion.time[k]) + 1e-9])
        found = np.array(page.evaluate("armillary.obstacles()")).reshape(3, 3, 4)
        numbers = as_boxes(motion.obstacles(k).numbers)
        np.testing.assert_allclose(found[..., 3], numbers[:, :3], rtol=0, atol=1e-6)
    page.close()
    assert not faults
