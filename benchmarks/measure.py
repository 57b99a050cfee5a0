"""Fair timing on a shared machine: rivals take turns, the best turn of each counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import TypeVar

T = TypeVar("T")

TURNS = 12
QUICK = "ARMILLARY_QUICK_BENCHMARKS"
"""Set, in the environment, for one turn of each task: to see whether groups run."""


def fewer(count: int) -> int:
    """Return how many of something to measure: a twentieth where it is to be quick."""
    return max(1, count // 20) if os.environ.get(QUICK) else count


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, what is asked, what came out.

    Attributes:
        ratio: Our time in parts of the peer's, 0 without a peer.
    """

    what: str
    ours: str
    peer: str
    asked: str
    got: str
    holds: bool
    ratio: float = 0.0

    @property
    def mark(self) -> str:
        """Return what is to be seen at once."""
        marks = ["PEER AHEAD"] * (self.ratio > 1.0)
        marks += ["falls short"] * (not self.holds)
        return ", ".join(marks)


def best_times(
    *tasks: Callable[[], object],
    turns: int = TURNS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the shortest time of each task [s], all having taken turns."""
    for task in tasks:
        task()
    best = [float("inf")] * len(tasks)
    for _ in range(fewer(turns)):
        for k, task in enumerate(tasks):
            start = clock()
            task()
            best[k] = min(best[k], clock() - start)
    return best


def without_cache(task: Callable[[], T]) -> Callable[[], T]:
    """Return a task to which nothing is known that was made before it."""

    def run() -> T:
        before = os.environ.get("ARMILLARY_CACHE")
        os.environ["ARMILLARY_CACHE"] = "off"
        try:
            return task()
        finally:
            os.environ.pop("ARMILLARY_CACHE")
            if before is not None:
                os.environ["ARMILLARY_CACHE"] = before

    return run


@dataclass(frozen=True)
class Turns:
    """Medians of two tasks that took turns: their times [s], and of the ratio."""

    ours: float
    peer: float
    ratio: float

    def at_most(self, what: str, most: float) -> Figure:
        """Return the line for a time that is to be a fraction of the peer's."""
        return Figure(
            what,
            duration(self.ours),
            duration(self.peer),
            f"<= {most:g} of its time",
            f"{self.ratio:.2f}",
            self.ratio <= most,
            self.ratio,
        )


def nothing() -> None:
    """Do nothing before a task."""


def medians(
    ours: Callable[[], object],
    *peers: Callable[[], object],
    turns: int,
    before: Callable[[], object] = nothing,
) -> list[Turns]:
    """Return how long a task takes beside each peer; for those that take seconds.

    A ratio is of two times of one turn, which others on the machine disturb alike; a
    first turn does not count. `before` is called before each task and not timed.
    """

    def seconds(task: Callable[[], object]) -> float:
        before()
        start = time.perf_counter()
        task()
        return time.perf_counter() - start

    took = [
        [seconds(task) for task in (ours, *peers)] for _ in range(fewer(turns) + 1)
    ][1:]
    return [
        Turns(
            median(times[0] for times in took),
            median(times[k] for times in took),
            median(times[0] / times[k] for times in took),
        )
        for k in range(1, len(peers) + 1)
    ]


def faster(what: str, ours: float, peer: float, *, at_least: float) -> Figure:
    """Return the line for a rate that is to be a multiple of the peer's."""
    ratio = peer / ours
    return Figure(
        what,
        duration(ours),
        duration(peer),
        f">= {at_least:g} times",
        f"{ratio:.3g} times",
        ratio >= at_least,
        1.0 / ratio,
    )


def cheaper(what: str, ours: float, peer: float, *, at_most: float) -> Figure:
    """Return the line for a time that is to be a fraction of the peer's."""
    ratio = ours / peer
    return Figure(
        what,
        duration(ours),
        duration(peer),
        f"<= {at_most:g} of its time",
        f"{ratio:.2f}",
        ratio <= at_most,
        ratio,
    )


def within(
    what: str, ours: float, *, at_most: float, peer: float | None = None
) -> Figure:
    """Return the line for a time with a bound of its own [s]."""
    limit = f"<= {duration(at_most)}"
    holds = ours <= at_most
    if peer is None:
        return Figure(what, duration(ours), "", limit, duration(ours), holds)
    ratio = ours / peer
    got = f"{ratio:.2g} of the peer's"
    return Figure(what, duration(ours), duration(peer), limit, got, holds, ratio)


def absent(what: str, peer: str) -> Figure:
    """Return the line for a comparison whose peer is not there."""
    return Figure(what, "", "", "", f"left out: {peer}", True)


def beside(
    module: str, what: str, figures: Callable[[], Iterator[Figure]]
) -> Iterator[Figure]:
    """Yield figures that need a peer's module, or a line that says it is missing."""
    if find_spec(module) is None:
        yield absent(what, f"{module} is not installed")
    else:
        yield from figures()


def duration(seconds: float) -> str:
    """Return a time as people read it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(figures: list[Figure]) -> str:
    """Return the figures as a Markdown table, first those whose peer is ahead."""
    rows = [("what", "ours", "peer", "asked", "got", "")]
    ordered = sorted(figures, key=lambda f: -max(f.ratio, 1.0))
    rows += [(f.what, f.ours, f.peer, f.asked, f.got, f.mark) for f in ordered]
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (c.ljust(width) for c, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"
