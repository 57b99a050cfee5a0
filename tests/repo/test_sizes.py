"""A module that outgrows its idea, or has none, is split."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "armillary"
MAX_LINES = 700
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "_src"}


def test_modules_stay_short():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert lengths
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_modules_are_named_after_a_concept():
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    assert paths
    assert [p for p in paths if NAMELESS & {*p.with_suffix("").parts}] == []
