"""A browser for the tests of what people see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import armillary as arm
from armillary.errors import ViewError
from armillary.view.shot import browser_flags, browser_path

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


WAIT = 120_000
"""How long a busy machine may take to draw what a test waits for [ms]."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The chromium of this machine, without a window."""
    try:
        path = browser_path()
    except ViewError as error:
        pytest.skip(str(error))
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=browser_flags())
        yield found
        found.close()


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
