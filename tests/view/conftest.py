"""A browser for the tests of what people see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import armillary as arm
from armillary.view.scene import Scene

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


WAIT = 120_000
"""How long a busy machine may take to draw what a test waits for [ms]."""


@pytest.fixture(autouse=True)
def plain_light(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw without shadows and without light of surroundings.

    A processor needs about 10 s for these, in each page that is opened. A test that
    asks for `full_light` draws them.
    """
    if "full_light" in request.fixturenames:
        return
    add = Scene._add_surroundings

    def add_plain(scene: Scene, outline: Any) -> None:
        scene.server.scene.configure_default_lights(cast_shadow=False)
        scene.server.scene.configure_environment_map(hdri=None)
        add(scene, outline)

    monkeypatch.setattr(Scene, "_add_surroundings", add_plain)


@pytest.fixture
def full_light() -> None:
    """Draw as for users, with shadows and light of surroundings."""


@pytest.fixture
def shown(browser: Browser) -> Iterator[Callable[..., tuple[Any, Page]]]:
    """Show a cell: the viewer, and a page of the browser that is connected."""
    viewers: list[Any] = []
    pages: list[Page] = []

    def show(cell: arm.Cell, *args: Any) -> tuple[Any, Page]:
        viewer = cell.view(*args)
        viewers.append(viewer)
        pages.append(browser.new_page(viewport={"width": 1000, "height": 700}))
        pages[-1].set_default_timeout(WAIT)
        pages[-1].goto(viewer.address)
        pages[-1].get_by_text("Save state").wait_for()
        return viewer, pages[-1]

    yield show
    for page in pages:
        page.close()
    for viewer in viewers:
        viewer.close()
