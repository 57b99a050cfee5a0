"""Reports: what stands on the page, and that nothing else can get there."""

from __future__ import annotations

import hashlib
import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import armillary as arm
from armillary.programs.clearance import Clearance
from armillary.programs.report import (
    CycleReport,
    FileDigest,
    HandledPart,
    JointLoad,
    Use,
)
from armillary.view.chart import ChartSignal, ChartStep, ChartWait
from armillary.view.plan_view import FrameWay, Outline, PlanView

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = "<script>alert(1)</script>\"'&\n\x1b[31m${title}"


def report(name: str = "name", **changes: Any) -> CycleReport:
    """A report with everything, in which all texts are one."""
    triangle = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    outline = Outline(
        manipulator=name, link=name, corners=triangle, lowest=0.0, highest=1.0
    )
    wait = ChartWait(start=1.0, end=2.5, what=name)
    kept: dict[str, Any] = {
        "title": name,
        "cell": name,
        "cycle_time": 4.0,
        "steps": (
            ChartStep(
                name=name, manipulator=name, start=0.0, end=1.0, is_critical=True
            ),
            ChartStep(name=name, manipulator=name, start=1.0, end=4.0, waits=(wait,)),
        ),
        "signals": (ChartSignal(name=name, changes=((0.0, False), (1.0, True))),),
        "clearances": (
            Clearance(pair=(name, name), distance=0.25, time=1.0, step=name),
            Clearance(pair=(name, "floor"), distance=-0.125, proven=-0.126, time=2.0),
        ),
        "loads": (
            JointLoad(joint=name, peak=90.0, rms=30.0, limit=120.0, time=1.5),
            JointLoad(joint=name, peak=3.0, rms=1.0),
        ),
        "uses": (Use(manipulator=name, working=2.5, waiting=1.5, energy=7.0),),
        "parts": (HandledPart(name=name, start=name, end=name, grips=3),),
        "files": (FileDigest(name=name, sha256="ab" * 32, size=17),),
        "plan": PlanView(
            name=name,
            outlines=(outline,),
            ways=(FrameWay(name=name, points=triangle),),
            sticks=(triangle[:2],),
        ),
        "notes": (name,),
    }
    return CycleReport(**{**kept, **changes})


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_the_page_says_what_the_record_does():
    texts = Tags(report().html).texts
    for expected in ("4.000 s", "-125.0 mm", "75 %", "75.0 %", "62.5 %", "-126.00"):
        assert expected in texts, expected
    assert "ab" * 32 in texts
    assert texts.count("-") == 4  # what is not known
    assert "name (1.500 s)" in texts  # what a step waits for


def test_bars_are_where_steps_are():
    (chart,) = re.findall(r'<svg[^>]*class="chart".*?</svg>', report().html, re.S)
    root = ET.fromstring(chart)
    bars = [each for each in root.iter("rect") if each.get("rx") == "3"]
    spans = [(float(b.get("x", 0)), float(b.get("width", 0))) for b in bars]
    (x0, w0), (x1, w1), (x2, w2) = spans
    assert x0 + w0 == pytest.approx(x1, abs=0.02)
    assert w1 == pytest.approx(3.0 * w0, abs=0.02)
    assert (x2 - x0, w2) == pytest.approx((w0, 1.5 * w0), abs=0.02)
    assert x1 + w1 <= 1000.0
    (signal,) = root.iter("polyline")
    levels = [point.split(",")[1] for point in signal.get("points", "").split()]
    assert len(set(levels)) == 2


def test_texts_cannot_become_markup():
    plain, evil = Tags(report().html), Tags(report(EVIL).html)
    assert evil.tags == plain.tags
    assert [name for name, _ in evil.attributes] == [n for n, _ in plain.attributes]
    assert "script" not in evil.tags
    assert "\x1b" not in report(EVIL).html
    # A record from elsewhere is read with the same checks.
    read = msgspec.json.decode(msgspec.json.encode(report(EVIL)), type=CycleReport)
    assert read == report(EVIL)


def test_the_page_asks_for_nothing():
    tags = Tags(report().html)
    names = {name for name, _ in tags.attributes}
    assert not names & {"src", "href", "action", "srcset", "data", "onload", "onclick"}
    assert not set(tags.tags) & {"link", "img", "iframe", "object", "script", "use"}
    assert not re.search(
        r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", report().html
    )
    policy = dict(tags.attributes)["content"]
    assert policy is None or "default-src 'none'" in report().html


def test_browsers_show_it_without_errors(browser: Browser, tmp_path: Path):
    path = tmp_path / "report.html"
    report(EVIL).write(path)
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    faults: list[str] = []
    page.on("console", lambda line: faults.append(line.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request", lambda one: faults.extend([one.url] * (one.url != path.as_uri()))
    )
    page.goto(path.as_uri())
    assert page.locator("section").count() == 9
    # Nothing is wider than the page, and no bar has no height.
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1000
    heights = page.evaluate(
        "[...document.querySelectorAll('svg')].map((each) => each.clientHeight)"
    )
    assert min(heights) > 5
    page.close()
    assert not faults


def test_what_is_not_known_has_no_section():
    page = CycleReport(title="a", cell="b", cycle_time=1.0).html
    assert "<section>" not in page


def test_digests_are_those_of_files(tmp_path: Path):
    path = tmp_path / "cell.urdf"
    path.write_bytes(b"abc" * 99)
    made = FileDigest.of(path)
    assert made == FileDigest(
        name="cell.urdf", sha256=hashlib.sha256(b"abc" * 99).hexdigest(), size=297
    )
    with pytest.raises(arm.errors.FormatError, match="No such file"):
        FileDigest.of(tmp_path / "none")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cycle_time": 0.0}, "above 0"),
        ({"cycle_time": math.nan}, "above 0"),
        (
            {"steps": (ChartStep(name="a", manipulator="b", start=2.0, end=1.0),)},
            "Step 'a' of 'b'",
        ),
        (
            {"steps": (ChartStep(name="a", manipulator="b", start=0.0, end=9.0),)},
            "not within the cycle",
        ),
        (
            {"signals": (ChartSignal(name="a", changes=((2.0, 1), (1.0, 0))),)},
            "in order",
        ),
    ],
)
def test_times_must_fit(changes: dict[str, Any], message: str):
    with pytest.raises(arm.errors.ModelError, match=message):
        report(**changes)


def test_charts_bear_odd_numbers():
    odd = (
        ChartSignal(name="a", changes=()),
        ChartSignal(name="b", changes=((0.0, math.nan), (1.0, math.inf))),
        ChartSignal(name="c", changes=((0.0, -3.0), (1.0, -1.0))),
    )
    for cycle in (1e-6, 0.7, 1e7):
        made = report(cycle_time=cycle, steps=(), signals=())
        assert "svg" in made.html
    page = report(signals=odd).html
    assert "nan" not in page.lower().replace("manipulator", "")


def test_it_is_not_written_to_folders(tmp_path: Path):
    with pytest.raises(arm.errors.ViewError, match="is a folder"):
        report().write(tmp_path)
