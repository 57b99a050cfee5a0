"""Programs of cells: how long runs take against the cycles that they find.

The five examples with programs, each planned anew and with its motions kept; the beam
of a conveyor; and layouts of the palletiser.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from armillary.model.fields import kept
from benchmarks.closed import one_thread
from benchmarks.measure import Figure, faster

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TURNS = 5


def runs() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Return the cells of the examples, and what runs their programs."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        belt, boxes, seam, zone, oval = (
            importlib.import_module(name)
            for name in (
                "moving_belt",
                "stack_boxes",
                "seam_program",
                "shared_zone",
                "oval_stations",
            )
        )
    finally:
        sys.path.remove(str(EXAMPLES))
    oval_start = oval.cell.home.replace(q=oval.at(0.0))
    works = [module.program() for module in (belt, boxes, seam, zone, oval)]
    return {
        "moving belt": (belt, lambda: belt.cell.run(works[0], **belt.FAST)),
        "stack of boxes": (
            boxes,
            lambda: boxes.cell.run(works[1], boxes.layout(), **boxes.LIMITS),
        ),
        "seam": (
            seam,
            lambda: seam.cell.run(works[2], acceleration=seam.ACCELERATION),
        ),
        "shared zone": (
            zone,
            lambda: zone.cell.run(works[3], acceleration=zone.ACCELERATION),
        ),
        "oval stations": (
            oval,
            lambda: oval.cell.run(works[4], oval_start, acceleration=oval.ACCELERATION),
        ),
    }


def seconds(run: Callable[[], Any], before: Callable[[], None]) -> float:
    """Return the least time of a processor that a run takes [s]."""
    least = np.inf
    for _ in range(TURNS):
        before()
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return float(least)


def forget(cell: Any) -> None:
    """Let a cell forget the motions and the changes of sensors of its runs."""
    for name in ("motions of programs", "changes of sensors"):
        kept(cell.workcell, name, dict[Any, Any]).clear()


def figures() -> Iterator[Figure]:
    """Yield the figures of runs of programs."""
    with one_thread():
        found = runs()
        for name, (module, run) in found.items():
            timeline = run()
            assert timeline.success, timeline.failure
            cycle = timeline.duration
            planned = seconds(run, lambda cell=module.cell: forget(cell))
            yield faster(f"{name}, run and planned", planned, cycle, at_least=100.0)
            again = seconds(run, lambda: None)
            yield faster(f"{name}, planned before", again, cycle, at_least=1000.0)
        yield later_beam(found["moving belt"][0])
        yield layouts(found["stack of boxes"][0])


def later_beam(belt: Any) -> Figure:
    """Return by how much a cycle grows with a beam 0.25 s farther on its conveyor."""
    met = [
        belt.cell.run(belt.program(beam=at, count=1), **belt.FAST).span("meet").start
        for at in (belt.BEAM, belt.BEAM + 0.25 * belt.SPEED)
    ]
    later = met[1] - met[0]
    return Figure(
        "a beam 0.25 s farther on",
        f"{later:.9f} s later",
        "-",
        "0.250000 s",
        f"{abs(later - 0.25):.1e} s off",
        abs(later - 0.25) < 1e-6,
    )


def layouts(boxes: Any) -> Figure:
    """Return how long one of many layouts of a palletiser takes."""
    places = np.random.default_rng(0).uniform((1.35, 0.75), (1.65, 1.05), (129, 2))
    boxes.cycle(places[:1])
    start = time.process_time()
    boxes.cycle(places[1:])
    each = (time.process_time() - start) / (len(places) - 1)
    # 10 000 of them in a minute on two cores
    return faster("a layout of the palletiser; 12 ms", each, 0.012, at_least=1.0)
