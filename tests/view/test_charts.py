"""Charts below the scene: what a click does, and that names stay texts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import armillary as arm
from armillary.programs.steps import Appear, Leave, Wait
from armillary.view.chart import Chart, ChartMark, ChartSignal, ChartStep
from armillary.view.page import CHART_WIDTH

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("viser", reason="the extra 'view' is not installed")

EVIL = "<img src=x onerror=alert(1)>\"'&"


def chart(name: str) -> Chart:
    step = ChartStep(name=name, manipulator=name, start=0.5, end=2.0)
    return Chart(
        end=4.0,
        steps=(step,),
        signals=(ChartSignal(name=name, changes=((0.0, False), (1.0, True))),),
        marks=(ChartMark(time=3.0, what=name),),
        title=name,
    )


@pytest.mark.parametrize("width", [1000.0, 345.0])
def test_things_are_at_their_time(width: float):
    root = ET.fromstring(chart("a").svg(width))
    left, right, end = (
        float(root.get(f"data-{k}", 0)) for k in ("left", "right", "end")
    )
    assert 0.0 < left < right < width and end == 4.0
    groups = {float(g.get("data-time", -1)): g for g in root.iter("g")}
    assert set(groups) == {0.5, 3.0}
    bar, line = groups[0.5].find("rect"), groups[3.0].find("line")
    assert bar is not None and line is not None
    scale = (right - left) / end
    assert float(bar.get("x", 0)) == pytest.approx(left + 0.5 * scale, abs=0.02)
    assert float(bar.get("width", 0)) == pytest.approx(1.5 * scale, abs=0.02)
    assert float(line.get("x1", 0)) == pytest.approx(left + 3.0 * scale, abs=0.02)
    place, height = chart("a").place(3.0, width)
    assert place == pytest.approx(left + 3.0 * scale)
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"


def test_names_stay_texts():
    plain, evil = (ET.fromstring(chart(name).svg()) for name in ("name", EVIL))
    assert [each.tag for each in evil.iter()] == [each.tag for each in plain.iter()]
    assert [[*e.attrib] for e in evil.iter()] == [[*e.attrib] for e in plain.iter()]


def cell_with_box() -> arm.Cell:
    link = arm.Link(name="body", visuals=[arm.shapes.Box(size=(0.2, 0.2, 0.2))])
    parts = [arm.Manipulator(name=each, links=[link]) for each in ("box", "other")]
    return arm.Cell(name="boxes", manipulators=parts)


def boxes(seconds: float) -> arm.Timeline:
    """A box that comes after a second, and leaves two seconds after that."""
    steps = [
        Wait(seconds=seconds, label=EVIL),
        Appear(part="box"),
        Wait(seconds=2.0, label="there"),
        Leave(part="box"),
        Wait(seconds=1.0),
    ]
    return cell_with_box().run(arm.Program({"source": steps}, absent=("box",)))


def test_a_click_goes_to_its_instant(browser: Browser, tmp_path: Path):
    path = tmp_path / "cycle.html"
    first, second = boxes(1.0), boxes(2.0)
    cell_with_box().export(path, motion=first.played(beside=[second]))
    page = browser.new_page(viewport={"width": 600, "height": 400})
    page.set_default_timeout(120_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda one: faults.extend([one.url] * one.url.startswith(("http", "ws"))),
    )
    page.goto(path.as_uri())
    charts = page.locator("#charts svg.chart")
    charts.nth(1).wait_for()
    assert charts.count() == 2
    assert page.locator("#charts img").count() == 0
    hidden = "() => [...armillary.hidden()]"
    assert len(page.evaluate(hidden)) == 1
    # Dispatched, as machines that draw slowly take long to move a mouse.
    page.locator("#charts g", has_text="there").first.dispatch_event("click")
    assert page.evaluate("armillary.time()") == 1.0
    assert page.evaluate(hidden) == []
    cursor = charts.first.locator("xpath=./*[local-name()='line'][last()]")
    x, _ = first.played(beside=[second]).charts[0].place(1.0, CHART_WIDTH)
    assert float(cursor.get_attribute("x1") or 0) == pytest.approx(x, abs=0.02)
    box = charts.first.bounding_box()
    assert box is not None
    wide = box["width"] / CHART_WIDTH
    at, _ = first.played(beside=[second]).charts[0].place(3.5, CHART_WIDTH)
    event = {"clientX": box["x"] + at * wide, "clientY": box["y"] + 2.0}
    charts.first.dispatch_event("click", event)
    assert page.evaluate("armillary.time()") == pytest.approx(3.5, abs=0.02)
    assert len(page.evaluate(hidden)) == 1
    # The scene ends where charts begin.
    below = page.locator("#charts").bounding_box()
    scene = page.locator("#root").bounding_box()
    assert below is not None and scene is not None
    assert scene["height"] == pytest.approx(below["y"], abs=1.0)
    page.close()
    assert not faults


def test_the_viewer_goes_to_steps_and_hides_what_is_absent():
    timeline = boxes(1.0)
    with cell_with_box().view() as viewer:
        viewer.play(timeline, play=False)
        playback = viewer._playback
        scene = viewer._session.scene
        assert [frame.visible for frame in scene._frames] == [False, True]
        playback._charts._chosen.value = "1.000 s  source: there"
        playback._charts._go()
        assert playback.time == playback._slider.value == 1.0
        assert [frame.visible for frame in scene._frames] == [True, True]
        playback.go_to(3.5)
        assert [frame.visible for frame in scene._frames] == [False, True]
        viewer.show(cell_with_box().home.place("other", arm.Pose.translation(1, 0, 0)))
        playback.show(viewer.state)
        assert [frame.visible for frame in scene._frames] == [True, True]
