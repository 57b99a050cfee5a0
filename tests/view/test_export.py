"""The page that holds a cell, in a browser that opens it from disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import armillary as arm

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("viser", reason="the extra 'view' is not installed")

LEAST_BASE = 1_000_000  # bytes of a page without meshes
RATE = 10.0


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Export a cell and open its page, which must report no error or request."""
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    faults: list[str] = []
    asked: list[str] = []

    def open_page(cell: arm.Cell, **options: Any) -> Page:
        path = tmp_path / "cell.html"
        cell.export(path, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda line: faults.append(line.text) if line.type == "error" else None,
        )
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.get_by_text("Pose in the world").wait_for(timeout=60_000)
        page.wait_for_function("globalThis.armillary !== undefined")
        return page

    yield open_page
    context.close()
    assert not faults
    assert [url for url in asked if not url.startswith(("blob:", "data:"))] == [
        (tmp_path / "cell.html").as_uri()
    ]


def test_page_plays_a_trajectory(opened: Any) -> None:
    cell = arm.example("scara")
    Q = np.linspace(cell.home.q, 0.5 * cell.limits[1], 21)
    page = opened(cell, trajectory=Q, rate=RATE)
    control = _control(page, "time")
    for k in (0, 7, 20):
        page.evaluate(
            "([uuid, value]) => armillary.receive("
            "{type: 'GuiUpdateMessage', uuid, updates: {value}})",
            [control, k / RATE],
        )
        np.testing.assert_array_equal(page.evaluate("armillary.q()"), Q[k])


def _control(page: Page, kind: str) -> str:
    found: str = page.evaluate("(kind) => armillary.control(kind)", kind)
    return found


def test_names_with_markup_are_text(opened: Any) -> None:
    name = "<img src=x onerror=alert(1)><script>alert(1)"
    part = arm.Manipulator(name=name, links=[arm.Link(name="base")])
    page = opened(arm.Cell(name=name, manipulators=[part]))
    assert page.title() == name
    assert page.locator("img[src=x]").count() == 0


def test_size_is_reported_and_small(tmp_path: Path) -> None:
    size = arm.example("ur5e_on_oval").export(tmp_path / "cell.html")
    assert size.total == (tmp_path / "cell.html").stat().st_size
    assert size.total < LEAST_BASE


def test_faults_raise_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = arm.example("scara")
    path = tmp_path / "cell.html"
    with pytest.raises(arm.errors.ArmillaryError, match="There is no folder"):
        cell.export(tmp_path / "none" / "cell.html")
    with pytest.raises(arm.errors.ArmillaryError, match="not finite"):
        cell.export(path, trajectory=np.full((3, len(cell.joint_names)), np.nan))
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(arm.errors.ArmillaryError, match=r"armillary\[view\]"):
        cell.export(path)
    assert not path.exists()
