"""The viewer, as people use it in a browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.panel.events import by_people
from armillary.view.panel.joint_sliders import slider_of
from people import Person, part, until

pytest.importorskip("viser")


def number_box(page: Any, viewer: Any, joint: int) -> Any:
    """The number box of the slider of a joint."""
    uuid = part(viewer, "JointSliders")._sliders[joint]._impl.uuid
    around = 'xpath=ancestor::*[.//input[not(@type="hidden")]][1]'
    slider = page.locator(f'[id="{uuid}"]')
    return slider.locator(around).locator("input:not([type=hidden])")


def is_read_whole(box: Any) -> bool:
    """Whether all that stands in a number box can be read."""
    return box.evaluate("(box) => box.scrollWidth <= box.clientWidth")


def test_a_number_box_moves_its_joint(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    box = number_box(page, viewer, 1)
    box.fill("-2.71828")
    until(lambda: is_read_whole(box))
    page.get_by_text("\N{MINUS SIGN}155.7\N{DEGREE SIGN}").wait_for()
    canvas = page.locator("canvas").first.bounding_box()
    assert canvas["x"] + canvas["width"] <= box.bounding_box()["x"]
    box.fill("0.75")
    box.press("Enter")
    until(lambda: abs(viewer.state.q[1] - 0.75) < 1e-9)
    assert np.array_equal(viewer.state.q[2:], cell.home.q[2:])


@pytest.mark.thorough
def test_a_state_of_python_reaches_the_browser(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    viewer.show(cell.home.joints({"elbow": 0.625}))
    box = number_box(page, viewer, 3)
    until(lambda: box.input_value() == "0.625")


def test_undo_and_redo(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    changed = cell.home.joints({"elbow": 0.5})
    viewer.show(changed)
    page.get_by_role("button", name="Undo").click()
    until(lambda: viewer.state == cell.home)
    page.get_by_role("button", name="Redo").click()
    until(lambda: viewer.state == changed)


@pytest.mark.thorough
def test_the_gizmo_moves_the_tool(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    bent = cell.home.replace(q=[0.0, 1.5, -1.5, 1.5, -1.5, -1.5, 0.0])
    viewer, page = shown(cell, bent)
    before = cell.pose("tool0", viewer.state)
    until(lambda: len(viewer.server.get_clients()) == 1)
    (client,) = viewer.server.get_clients().values()
    client.camera.position = before[:3, 3] + (1.5, 0.0, 0.0)
    client.camera.look_at = before[:3, 3]
    time.sleep(1.0)
    box = page.locator("canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y + 50)  # the tool points down
    page.mouse.down()
    page.mouse.move(x, y + 90, steps=8)
    page.mouse.up()
    gizmo = part(viewer, "TargetControls")._gizmo

    def arrived() -> bool:  # the last of the events may still be on its way
        off = cell.pose("tool0", viewer.state) - gizmo.pose
        return not gizmo.is_dragged and bool(np.abs(off).max() < 1e-5)

    until(lambda: viewer.state != bent and arrived())
    assert cell.pose("tool0", viewer.state)[2, 3] < before[2, 3] - 0.01
    turned = cell.pose("tool0", viewer.state)[:3, :3] - before[:3, :3]
    assert np.abs(turned).max() < 1e-5


@pytest.mark.thorough
def test_two_browsers_show_the_same(shown: Any, browser: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    other = browser.new_page()
    other.set_default_timeout(120_000)  # the machine may be busy
    other.goto(viewer.address)
    other.get_by_text("Save state").wait_for()
    box = number_box(page, viewer, 2)
    box.fill("-0.5")
    box.press("Enter")
    there = number_box(other, viewer, 2)
    until(lambda: there.input_value() == "-0.5")
    other.close()


@pytest.mark.thorough
def test_a_browser_that_was_cut_off_shows_the_present_state(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    page.bring_to_front()
    viewer.server._websock_server.disconnect_all_clients()
    viewer.show(cell.home.joints({"elbow": 0.375}))
    box = number_box(page, viewer, 3)
    until(lambda: box.input_value() == "0.375")
    box.fill("0.5")
    box.press("Enter")
    until(lambda: abs(viewer.state.q[3] - 0.5) < 1e-9)


def test_grip_and_release(shown: Any) -> None:
    cell = arm.example("oval_track_cell")
    viewer, page = shown(cell)
    part(viewer, "Attachments")._part.value = "part"
    page.get_by_text("Attach", exact=True).first.click()
    page.get_by_role("button", name="Grip").click()
    until(lambda: viewer.state.parent("part") == "ur5e/tool0")
    page.get_by_role("button", name="Release").click()
    until(lambda: viewer.state.parent("part") == "world")


@pytest.mark.thorough
def test_a_motion_plays_and_stops(shown: Any) -> None:
    cell = arm.example("ur5e_on_oval")
    viewer, page = shown(cell)
    Q = np.tile(cell.home.q, (200, 1))
    Q[:, 3] = np.linspace(0.0, 1.0, 200)
    viewer.play(Q, rate=100)
    until(lambda: viewer.state.q[3] > 0.2)
    page.get_by_role("button", name="Pause").click()
    until(lambda: page.get_by_role("button", name="Play").is_visible())
    rests = viewer.state
    time.sleep(0.3)
    assert viewer.state == rests
    assert rests.q.tolist() in Q.tolist()


@pytest.fixture
def alone() -> Iterator[Any]:
    """A viewer that no browser shows."""
    with arm.example("ur5e_on_oval").view() as viewer:
        yield viewer


def test_events_of_a_drag_that_wait_are_answered_once(alone: Any) -> None:
    calls: list[int] = []
    answer = by_people(alone._session, lambda: calls.append(0), newest=True)
    with alone._session.lock:
        threads = [threading.Thread(target=answer, args=(Person(),)) for _ in range(9)]
        for thread in threads:
            thread.start()
        until(lambda: sum(thread.is_alive() for thread in threads) == 1)
    until(lambda: len(calls) == 1)
    answer(Person())
    assert len(calls) == 2


def test_a_gizmo_is_dragged_until_everybody_has_let_go(alone: Any) -> None:
    gizmo = part(alone, "TargetControls")._gizmo
    first, second = Person(1), Person(2)
    first.drag(gizmo, "start")
    second.drag(gizmo, "start")
    first.drag(gizmo, "end")
    assert gizmo.is_dragged
    second.drag(gizmo, "end")
    second.drag(gizmo, "update")  # threads answer events, the last one may be late
    assert not gizmo.is_dragged


def test_errors_of_watchers_stop_nothing(alone: Any, caplog: Any) -> None:
    seen: list[arm.State] = []

    def fail(_: arm.State) -> None:
        raise ValueError("of mine")

    alone.on_change(fail)
    alone.on_change(seen.append)
    alone.play(np.linspace(0.0, 1.0, 700).reshape(100, 7), rate=100)
    until(lambda: len(seen) > 5)
    assert "of mine" in caplog.text


def test_a_part_that_fails_leaves_the_others_in_line(alone: Any, caplog: Any) -> None:
    home = alone.state
    part(alone, "TargetControls")._frame.value = "nothing"
    alone.show(home.joints({"elbow": 0.5}))
    slider = part(alone, "JointSliders")._sliders[alone.cell.joint("elbow")]
    until(lambda: slider.value == 0.5)
    alone.show(home.joints({"elbow": 0.25}))
    until(lambda: slider.value == 0.25)
    assert "no frame named 'nothing'" in caplog.text


def test_a_motion_pauses_where_something_else_changes_the_state(alone: Any) -> None:
    home, playback = alone.state, part(alone, "Playback")
    alone.play(np.linspace(0.0, 1.0, 7000).reshape(1000, 7), rate=100)
    until(lambda: alone.state.q[0] > 0.01)
    alone.show(home)
    until(lambda: not playback.is_playing)
    assert alone.state == home
    playback._switch()
    until(lambda: alone.state.q[0] > 0.02)


def test_sliders_stop_where_limits_couple_joints() -> None:
    cell = arm.example("palletiser")
    rows, home = cell.workcell.limit_rows, cell.home.q
    k = int(np.flatnonzero(rows.joints)[0])
    assert rows.labels[0] in slider_of(cell.workcell, k, 0.0)["hint"]
    stopped = 0
    with cell.view() as viewer:
        slider = part(viewer, "JointSliders")._sliders[k]
        for wanted in cell.limits[0][k], cell.limits[1][k]:
            slider._impl.value = float(wanted)  # as a browser sets it
            slider._impl.update_cb[0](Person())
            q = viewer.state.q
            assert rows.holds(q, 1e-12)
            assert np.array_equal(np.delete(q, k), np.delete(home, k))
            stopped += q[k] != wanted
            until(lambda: slider.value == viewer.state.q[k])
    assert stopped


def test_a_slider_that_is_refused_goes_back() -> None:
    cell = arm.example("five_bar")
    with cell.view() as viewer:
        slider = part(viewer, "JointSliders")._sliders[0]
        person = Person()
        slider._impl.value = cell.home.q[0] - 1.0  # as a browser sets it
        slider._impl.update_cb[0](person)
        assert person.told
        assert viewer.state == cell.home
        until(lambda: slider.value == cell.home.q[0])
