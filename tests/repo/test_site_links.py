"""`make docs` refuses a site with links that lead nowhere, or that needs a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def faults(site: Path) -> list[str]:
    path = ROOT / "docs" / "site_links.py"
    spec = importlib.util.spec_from_file_location("site_links", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.faults(site)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "folder" / "b.html").write_text('<h1 id="here">b</h1>')
    return tmp_path


@pytest.mark.parametrize(
    "good",
    [
        '<a href="folder/b.html#here">b</a>',
        '<a id="x" href="#x">itself</a>',
        '<a href="folder/">a folder</a>',
        '<link href="style.css?v=1">',
        '<a href="https://example.org/x">elsewhere</a>',
        '<script>"href=\\"nowhere\\""</script>',
    ],
)
def test_links_that_lead_somewhere_pass(site: Path, good: str):
    (site / "a.html").write_text(good)
    assert faults(site) == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="c.html">c</a>', "c.html"),
        ('<a href="folder/b.html#there">b</a>', "folder/b.html#there"),
        ('<a href="#x">itself</a>', "#x"),
        ('<img src="folder/none.png">', "folder/none.png"),
        (
            '<script src="https://example.org/x.js"></script>',
            "https://example.org/x.js",
        ),
        ('<link href="//example.org/x.css">', "//example.org/x.css"),
    ],
)
def test_others_are_faults(site: Path, page: str, fault: str):
    (site / "a.html").write_text(page)
    assert f"a.html: {fault}" in faults(site)
