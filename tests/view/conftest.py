"""A browser for the tests of what people see."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import armillary as arm

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The chromium of this machine, without a window."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium; on Debian: apt install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
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
        pages[-1].goto(viewer.address)
        pages[-1].get_by_text("Save state").wait_for(timeout=30_000)
        return viewer, pages[-1]

    yield show
    for page in pages:
        page.close()
    for viewer in viewers:
        viewer.close()
