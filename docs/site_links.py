"""Whether the pages of a site lead somewhere, without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path


def faults(site: Path) -> list[str]:
    """Return the links of all pages of a folder to missing files or anchors.

    What a page loads from elsewhere, such as a script, is a fault, too.
    """
    pages = {path.resolve(): path for path in site.rglob("*.html")}
    texts = {
        path: re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", _text(path), flags=re.S)
        for path in pages
    }
    anchors = {path: set(re.findall(r'\bid="([^"]*)"', texts[path])) for path in pages}
    return [
        f"{pages[path].relative_to(site)}: {link}"
        for path, text in texts.items()
        for link in (*_lost(path, text, anchors), *_foreign(text))
    ]


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _lost(path: Path, text: str, anchors: dict[Path, set[str]]) -> Iterator[str]:
    """Yield the links of a page to files or anchors that do not exist."""
    for found in re.findall(r'(?:href|src)="(?!\w+:)([^"]*)"', text):
        link = unescape(found)
        name, _, anchor = link.partition("#")
        name = name.partition("?")[0]  # the version of a style sheet
        target = (path.parent / name).resolve() if name else path
        known = anchors.get(target)
        if not target.exists() or (
            anchor and known is not None and anchor not in known
        ):
            yield link


def _foreign(text: str) -> list[str]:
    """Return what a page loads from a network."""
    loaded = r'<(?:script|img|link)\b[^>]*(?:src|href)="((?:\w+:)?//[^"]*)"'
    return re.findall(loaded, text)
