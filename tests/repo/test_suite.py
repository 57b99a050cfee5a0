"""The tests themselves: none bounds time, and the quick ones look at every layer."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
CLOCK = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic)(?:_ns)?\b"
    r"|\btime\.time(?:_ns)?\("
)

# Files whose clocks bound no work: how often the clock stands there, and for what.
WAITS = {
    "cli/test_sweep.py": (2, "waits for another process"),
    "test_disk_cache.py": (2, "sets the age of a file"),
    "kernel/test_search.py": (2, "a deadline is not over before its time"),
    "sweeps/test_interrupted.py": (2, "waits for another process"),
    "people.py": (2, "waits for a browser"),
    "planning/test_constraint.py": (2, "a clock that passes when it is asked"),
    "planning/test_pausing.py": (1, "a clock that passes in searches and proofs alone"),
    "planning/test_planned_loops.py": (2, "more time begins behind the first way"),
}


def test_no_test_measures_time():
    """Work is counted, see `work.py`: a busy machine then changes nothing."""
    found = {}
    for path in TESTS.rglob("*.py"):
        if path != Path(__file__):
            count = len(CLOCK.findall(path.read_text("utf-8")))
            if count:
                found[path.relative_to(TESTS).as_posix()] = count
    assert found == {name: count for name, (count, _) in WAITS.items()}


def test_quick_tests_look_at_every_folder(request: pytest.FixtureRequest):
    config = request.config
    if config.args != [*map(str, config.getini("testpaths"))] or config.option.keyword:
        pytest.skip("only where all tests are collected")
    rooms = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    quick = {
        item.path.parent.relative_to(TESTS)
        for item in request.session.items
        if not item.get_closest_marker("peers")
        and not item.get_closest_marker("thorough")
    }
    assert rooms - quick <= {Path("peers")}


class Case:
    """A case of a test of which five are drawn."""

    path = Path("test_x.py")

    def __init__(self, number: int) -> None:
        self.nodeid, self.marks = f"test_x.py::test[{number}]", set[str]()

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace(args=(5,)) if name == "sampled" else None

    def add_marker(self, name: str) -> None:
        self.marks.add(name)


def test_parts_together_try_all_cases(request: pytest.FixtureRequest):
    conftest: Any = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    ignored = SimpleNamespace(pytest_deselected=lambda items: None)

    def cases(part: str | None) -> list[Case]:
        options = {"seed": 0, "part": part}
        items = [Case(number) for number in range(20)]
        conftest.pytest_collection_modifyitems(
            SimpleNamespace(getoption=options.get, hook=ignored), items
        )
        return items

    quick = {case.nodeid for case in cases(None) if not case.marks}
    parts = [{case.nodeid for case in cases(f"{k}/5")} for k in range(5)]
    assert len(quick) == 5
    assert [len(part) for part in parts] == [8] * 5
    assert set.intersection(*parts) == quick
    assert set.union(*parts) == {case.nodeid for case in cases(None)}


@pytest.mark.parametrize("part", ["5/5", "1", "a/b", "0/0"])
def test_a_part_that_there_is_not_is_refused(part: str, request: pytest.FixtureRequest):
    conftest: Any = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    options = {"seed": 0, "part": part}
    with pytest.raises(pytest.UsageError, match=f"--part={part}"):
        conftest.part_of(SimpleNamespace(getoption=options.get))
