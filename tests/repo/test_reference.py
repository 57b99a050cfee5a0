"""The documentation builds as HTML without a warning, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "docs" / "build.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built in a process of its own, where warnings are errors."""
    pytest.importorskip("pdoc")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-W", "error", str(BUILD), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    return folder


def test_reference_shows_public_methods(site: Path):
    text = (site / "api" / "armillary.html").read_text("utf-8")
    assert 'id="Cell.fk"' in text
    assert "twice the rate at single precision" in text  # from its docstring
    assert 'id="Reason"' in text  # imported on first use
    assert len(list((site / "api").rglob("*.html"))) > 20


def test_links_lead_to_pages_and_headings(site: Path):
    texts = {
        path: re.sub(r"<script.*?</script>", "", path.read_text("utf-8"), flags=re.S)
        for path in site.rglob("*.html")
    }
    anchors = {path: set(re.findall(r'id="([^"]*)"', t)) for path, t in texts.items()}
    wrong: list[tuple[str, str]] = []
    for path, text in texts.items():
        for found in re.findall(r'(?:href|src)="(?!\w+:)([^"]*)"', text):
            link = unescape(found)
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            # pdoc links to inherited members, too, which have no place of their own.
            checked = anchor and target.suffix == ".html" and "api" not in target.parts
            is_there = target.exists() and (not checked or anchor in anchors[target])
            if not is_there:
                wrong.append((str(path.relative_to(site)), link))
    assert not wrong


def test_no_page_needs_a_network(site: Path):
    loaded = [
        (path.name, link)
        for path in site.rglob("*.html")
        for link in re.findall(
            r'<(?:script|img|link)\b[^>]*(?:src|href)="(\w+:[^"]*)"',
            path.read_text("utf-8"),
        )
        if not link.startswith("data:")
    ]
    assert not loaded
