"""Programs of cells: how long runs take against the cycles that they find.

The five examples with programs, each planned anew and with its motions kept; the beam
of a conveyor; and layouts of the palletiser.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from armillary.model.fields import kept

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


def main() -> None:
    """Print the figures."""
    found = runs()
    print(f"{'':16}{'cycle':>9}{'planned':>10}{'ratio':>8}{'kept':>10}{'ratio':>8}")
    for name, (module, run) in found.items():
        timeline = run()
        assert timeline.success, timeline.failure
        planned = seconds(run, lambda cell=module.cell: forget(cell))
        again = seconds(run, lambda: None)
        cycle = timeline.duration
        print(
            f"{name:16}{cycle:7.3f} s{1e3 * planned:7.1f} ms{cycle / planned:7.0f}x"
            f"{1e3 * again:7.1f} ms{cycle / again:7.0f}x"
        )

    belt, _ = found["moving belt"]
    met = [
        belt.cell.run(belt.program(beam=at, count=1), **belt.FAST).span("meet").start
        for at in (belt.BEAM, belt.BEAM + 0.25 * belt.SPEED)
    ]
    print(f"beam moved by 0.25 s of the conveyor: {met[1] - met[0]:.9f} s later")

    boxes, _ = found["stack of boxes"]
    places = np.random.default_rng(0).uniform((1.35, 0.75), (1.65, 1.05), (20, 2))
    boxes.cycle(places[:1])
    start = time.process_time()
    boxes.cycle(places[1:])
    each = (time.process_time() - start) / (len(places) - 1)
    print(
        f"layouts of {len(boxes.boxes)} boxes: {1e3 * each:.1f} ms of CPU each; "
        f"10 000 on two of them in {10_000 * each / 2:.0f} s"
    )


if __name__ == "__main__":
    main()
