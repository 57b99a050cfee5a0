"""The record of a cycle, of the timeline of a cell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np

from armillary.errors import ModelError
from armillary.kinematics.all_frames import poses
from armillary.model.unit import Unit
from armillary.programs.report import (
    CycleReport,
    FileDigest,
    HandledPart,
    JointLoad,
    Use,
)
from armillary.programs.spans import Cycle
from armillary.programs.steps import Appear, Grip, Leave, Linear, Release
from armillary.view.plan_view import PlanView, plan_view

__all__ = ["report_of"]

ABSENT: Final = "absent"
POINTS: Final = 400
"""Points of the way of a frame in a plan."""


def report_of(
    timeline: Cycle, title: str, files: Iterable[str | os.PathLike[str]]
) -> CycleReport:
    """Return the record of a cycle, see `Timeline.report`."""
    notes: list[str] = []
    if timeline.failure is not None:
        notes.append(f"The program failed: {timeline.failure}")
    chart = timeline.chart()
    clearances = loads = ()
    try:
        found = timeline.clearance()
        clearances = (found,) if np.isfinite(found.distance) else ()
    except ModelError as error:
        notes.append(f"Distances are not known: {error}")
    try:
        loads = tuple(_loads(timeline, notes))
    except ModelError as error:
        notes.append(f"Loads are not known: {error}")
    return CycleReport(
        title=title,
        cell=timeline.cell.name,
        cycle_time=timeline.duration,
        steps=chart.steps,
        signals=chart.signals,
        clearances=clearances,
        loads=loads,
        uses=tuple(_uses(timeline)),
        parts=tuple(_parts(timeline)),
        files=tuple(map(FileDigest.of, files)),
        plan=_plan(timeline),
        notes=tuple(notes),
    )


def _loads(timeline: Cycle, notes: list[str]) -> Iterator[JointLoad]:
    cell, loads = timeline.cell, timeline.loads()
    notes.append(
        f"Motors do {loads.energy:.6g} J of work while they drive and take in "
        f"{loads.braking:.6g} J while they brake; together they need up to "
        f"{loads.power:.6g} W."
    )
    for k, name in enumerate(loads.joints):
        unit = cell.links[cell.joints.links[k]].joint.unit
        limit = float(loads.limit[k])
        if loads.peak[k] > 0.0:
            yield JointLoad(
                joint=name,
                peak=float(loads.peak[k]),
                rms=float(loads.rms[k]),
                limit=limit if np.isfinite(limit) else None,
                time=float(loads.when[k]),
                unit="N" if unit is Unit.METRE else "N m",
            )


def _uses(timeline: Cycle) -> Iterator[Use]:
    for task, share in timeline.use.items():
        waits = (
            span.end - span.start
            for span in timeline.spans
            if span.task == task and span.waited_for
        )
        working = share * timeline.duration
        # A robot that follows a frame moves while it waits.
        waiting = min(sum(waits), timeline.duration - working)
        yield Use(manipulator=task, working=working, waiting=waiting)


def _parts(timeline: Cycle) -> Iterator[HandledPart]:
    steps = [span.step for span in timeline.spans]
    handled = [
        each for each in steps if isinstance(each, Grip | Release | Appear | Leave)
    ]
    for part in dict.fromkeys(each.part for each in handled):
        grips = sum(isinstance(e, Grip) and e.part == part for e in handled)
        start, end = (_place(timeline, part, t) for t in (0.0, timeline.duration))
        yield HandledPart(name=part, start=start, end=end, grips=grips)


def _place(timeline: Cycle, part: str, time: float) -> str:
    if part in timeline.absent(time):
        return ABSENT
    return timeline.state(time).parent(part)


def _plan(timeline: Cycle) -> PlanView:
    """Return the cell at the start from above, with the ways of frames that move."""
    cell = timeline.cell
    linear = [span.step for span in timeline.spans if isinstance(span.step, Linear)]
    frames = dict.fromkeys(cell.qualified(step.frame) for step in linear)
    times = np.linspace(0.0, timeline.duration, POINTS if frames else 0)
    placed = [poses(cell, timeline.state(time)) for time in times.tolist()]
    ways = {name: np.array([X[name][:3, 3] for X in placed]) for name in frames}
    plan = plan_view(
        cell, timeline.state(0.0), ways=ways, meshes=timeline.recording.options.meshes
    )
    absent = timeline.absent(0.0)
    here = tuple(each for each in plan.outlines if each.manipulator not in absent)
    return msgspec.structs.replace(plan, outlines=here)
