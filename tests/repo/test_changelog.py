"""Every change has its fragment, in the form that changelog/README.md describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed)\.md")


def fault(name: str, text: str) -> str | None:
    """What is wrong with a fragment, or None."""
    if not NAME.fullmatch(name):
        return "its name is not <slug>.<added|changed|fixed|removed>.md"
    if not re.match(r"[A-Z`]", text) or not text.endswith(".\n"):
        return "its text does not start with a capital and end with a full stop"
    return None


def test_changelog_exists():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")


def test_fragments_are_well_formed():
    folder = ROOT / "changelog"
    paths = [path for path in folder.iterdir() if path.name != "README.md"]
    faults = {path.name: fault(path.name, path.read_text("utf-8")) for path in paths}
    assert {name: text for name, text in faults.items() if text} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("urdf.md", "It is read.\n"),
        ("urdf.improved.md", "It is read.\n"),
        ("URDF.added.md", "It is read.\n"),
        ("urdf.added.txt", "It is read.\n"),
        ("urdf.added.md", ""),
        ("urdf.added.md", "it is read.\n"),
        ("urdf.added.md", "It is read\n"),
    ],
)
def test_faults_are_seen(name: str, text: str):
    assert fault(name, text)


def test_good_fragment_has_no_fault():
    assert fault("urdf-mimic.fixed.md", "It is read.\n") is None
