"""`armillary run`: what happens in a cell while a program runs, or why it cannot."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell, warn
from armillary.cli.options import JSON, STATE, chosen_state
from armillary.cli.table import finite
from armillary.cli.verb import option, verb
from armillary.errors import printable, quote
from armillary.formats import registry
from armillary.programs.clearance import UNTESTED, Clearance
from armillary.programs.loads import Loads
from armillary.programs.program import Program
from armillary.programs.timeline import Timeline
from armillary.view.motion import RATE

KEPT, BROKEN = 0, 1
DESCRIPTION = """\
Run a program, JSON as `program.write` writes it, and print the steps of its tasks with
the times at which they begin and end [s], and how long it takes. With --at-most,
--clearance and --efforts it also tests the cycle. The exit code is 1 if the program
cannot be done to its end, or a test fails.
"""
NAME_WIDTH: Final = 40


@verb(
    "run",
    (
        *FILE,
        option("program JSON", "what the tasks of the cell do"),
        option(
            "--velocity X",
            "the greatest rate of joints that have no limit [m/s or rad/s]",
            type=float,
        ),
        option(
            "--acceleration X",
            "the greatest acceleration of joints that have no limit [m/s^2 or rad/s^2]",
            type=float,
        ),
        option(
            "--timeout S",
            "time of the cell after which it fails [s]; else 3600",
            type=float,
            default=3600.0,
        ),
        option("--at-most S", "the program takes no longer than this [s]", type=float),
        option(
            "--clearance D",
            "it is proven that no links come nearer than this [m]",
            type=float,
        ),
        option(
            "--efforts",
            "no joint needs more torque or force than its limit",
            action="store_true",
        ),
        option("--report FILE", "write a page about the cycle, HTML"),
        option("--animation FILE", "write the cell and what happens in it, USD"),
        *STATE,
        JSON,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Run and print; return an exit code: whether all that is asked for holds."""
    cell = open_cell(options)
    program = Program.read(options.program)
    timeline = cell.run(
        program,
        chosen_state(cell, options),
        velocity=options.velocity,
        acceleration=options.acceleration,
        timeout=options.timeout,
    )
    clearance = timeline.clearance() if options.clearance is not None else None
    loads = timeline.loads() if options.efforts else None
    broken = [*_broken(timeline, clearance, loads, options)]
    if options.report is not None:
        files = [path for path in (options.file, options.program) if path != "-"]
        timeline.report(files=files).write(options.report)
    if options.animation is not None:
        _animate(cell, timeline, options.animation)
    if options.json:
        print(json.dumps(_object(cell, timeline, clearance, loads, broken)))
    else:
        for line in _lines(timeline, clearance, loads, broken):
            print(line)
    return BROKEN if broken else KEPT


def _animate(cell: Cell, timeline: Timeline, path: str) -> None:
    """Write what happens as an animation.

    Raises:
        ModelError: The ending is not one of a format that holds it.
    """
    report = registry.save(
        cell.workcell,
        path,
        meshes=cell.meshes,
        motions={"cycle": timeline},
        rate=RATE,
    )
    warn(report)


def _but(clearance: Clearance) -> str:
    """Return what to say of pairs of which nothing is proven."""
    count = len(clearance.sampled)
    return f" but for {count} pairs, which were sampled" if count else ""


def _broken(
    timeline: Timeline,
    clearance: Clearance | None,
    loads: Loads | None,
    options: argparse.Namespace,
) -> Iterator[str]:
    """Yield what does not hold of what was asked for."""
    if timeline.failure is not None:
        yield printable(str(timeline.failure))
    most = options.at_most
    if most is not None and not timeline.duration <= most:
        yield f"it takes {timeline.duration:.6g} s, longer than {most:g} s"
    if clearance is not None and (
        clearance.sampled or not clearance.proven >= options.clearance
    ):
        but = _but(clearance)
        pair = " and ".join(map(quote, clearance.pair))
        yield (
            f"{pair} come as near as {clearance.distance:.6g} m at "
            f"{clearance.time:.6g} s, in {clearance.step or 'no step'}; "
            f"{clearance.proven:.6g} m are proven{but}, "
            f"{options.clearance:g} m asked for"
        )
    if loads is not None:
        for name, peak, limit, when in zip(
            loads.joints, loads.peak, loads.limit, loads.when, strict=True
        ):
            if peak > limit:
                yield (
                    f"{quote(name)} needs {peak:.6g} N m or N at {when:.6g} s; its "
                    f"limit is {limit:g}"
                )


def _lines(
    timeline: Timeline,
    clearance: Clearance | None,
    loads: Loads | None,
    broken: list[str],
) -> Iterator[str]:
    width = max((len(span.place) for span in timeline.spans), default=0)
    width = min(max(width, len("step")), NAME_WIDTH)
    yield f"{'begins':>10} {'ends':>10}  {'step':<{width}}  what"
    for span in timeline.spans:
        waited = f", waited for {span.waited_for}" if span.waited_for else ""
        end = f"{span.end:10.4f}" if np.isfinite(span.end) else f"{'-':>10}"
        place = printable(span.place)
        yield (
            f"{span.start:10.4f} {end}  {place:<{width}}  "
            f"{printable(span.name + waited)}"
        )
    yield ""
    yield f"{timeline.duration:.6f} s"
    for name, part in timeline.use.items():
        yield f"{printable(name)} moves for {100 * part:.3g} % of that"
    if clearance is not None:
        least, proven = clearance.distance, clearance.proven
        said = f"least distance {least:.6g} m, proven {proven:.6g} m{_but(clearance)}"
        yield UNTESTED if least == np.inf else said
    if loads is not None:
        yield f"energy {loads.energy:.6g} J, greatest power {loads.power:.6g} W"
    for line in broken:
        yield f"failed: {line}"


def _object(
    cell: Cell,
    timeline: Timeline,
    clearance: Clearance | None,
    loads: Loads | None,
    broken: list[str],
) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for what is not known."""
    return {
        "cell": cell.name,
        "success": not broken,
        "reason": timeline.reason.name,
        "failed": broken,
        "duration": timeline.duration,
        "steps": [
            {
                name: finite([value])[0] if name == "end" else value
                for name, value in span._asdict().items()
                if name != "step"
            }
            for span in timeline.spans
        ],
        "signals": [change._asdict() for change in timeline.signals],
        "use": timeline.use,
        "clearance": None
        if clearance is None
        else {
            **msgspec.structs.asdict(clearance),
            "distance": finite([clearance.distance])[0],
            "proven": finite([clearance.proven])[0],
        },
        "loads": None
        if loads is None
        else {
            "joints": list(loads.joints),
            "peak": finite(loads.peak.tolist()),
            "rms": finite(loads.rms.tolist()),
            "limit": finite(loads.limit.tolist()),
            "power": loads.power,
            "energy": loads.energy,
        },
    }
