"""Timelines to see: states at instants, charts, and marks of what is wrong."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.programs.recording import Recording
from armillary.programs.spans import Cycle
from armillary.programs.steps import Value
from armillary.trajectories.motion_parts import sample_times
from armillary.view.chart import Chart, ChartMark, ChartSignal, ChartStep, ChartWait
from armillary.view.motion import PlayedMotion

__all__ = ["chart_of", "marks_of", "played_of"]

Array = npt.NDArray[np.float64]

BEYOND: Final = 1e-6
"""By how much positions and rates may be beyond limits without a mark [m or rad]."""

SHORTEST: Final = 1e-3
"""The least length of the axis of time of a chart [s]."""


def chart_of(timeline: Cycle, title: str) -> Chart:
    """Return the chart of steps and signals, see `Timeline.chart`."""
    return Chart(
        end=max(timeline.duration, SHORTEST),
        steps=tuple(_steps(timeline)),
        signals=tuple(_signals(timeline)),
        title=title,
    )


def _steps(timeline: Cycle) -> Iterator[ChartStep]:
    critical = set(map(id, timeline.critical_path))
    for span in timeline.spans:
        wait = ChartWait(start=span.start, end=span.end, what=span.waited_for)
        yield ChartStep(
            name=span.name,
            manipulator=span.task,
            start=span.start,
            end=span.end,
            waits=(wait,) if span.waited_for else (),
            is_critical=id(span) in critical,
        )


def _signals(timeline: Cycle) -> Iterator[ChartSignal]:
    for name in dict.fromkeys(change.signal for change in timeline.signals):
        changes = [each for each in timeline.signals if each.signal == name]
        words = dict.fromkeys(
            each.value for each in changes if isinstance(each.value, str)
        )
        level = {word: float(k) for k, word in enumerate(words)}

        def number(value: Value, level: dict[str, float] = level) -> float:
            return level[value] if isinstance(value, str) else float(value)

        levels = tuple((each.time, number(each.value)) for each in changes)
        yield ChartSignal(name=name, changes=levels)


def marks_of(timeline: Cycle, rate: float) -> tuple[ChartMark, ...]:
    """Return contacts, and what is beyond limits, see `Timeline.marks`."""
    recording = timeline.recording
    marks = [
        *_contacts(recording, rate),
        *_beyond(recording, rate),
        *_loads(timeline),
    ]
    return tuple(sorted(marks, key=lambda mark: mark.time))


def _contacts(recording: Recording, rate: float) -> Iterator[ChartMark]:
    """Yield the instants at which links begin to touch."""
    touched = False
    for start, end in recording.attached_spans():
        try:
            check = recording.check(start)
        except ModelError:  # such as meshes that are missing
            return
        if not len(check.pairs):
            touched = False
            continue
        times = start + sample_times(end - start, rate)
        q = recording.at(times).q
        touches = np.asarray(check(q))
        begins = touches & ~np.append(touched, touches[:-1])
        for k in np.flatnonzero(begins).tolist():
            near = check.contacts(q[k], within=0.0)
            pair = " and ".join(map(quote, near[0].links)) if near else "links"
            yield ChartMark(time=float(times[k]), what=f"{pair} touch")
        touched = bool(touches[-1])


def _beyond(recording: Recording, rate: float) -> Iterator[ChartMark]:
    """Yield where positions and rates of joints go farthest beyond their limits."""
    cell = recording.cell
    times = sample_times(max(recording.duration, SHORTEST), rate)
    values = recording.at(times)
    of_run = (
        ("position", values.q, *cell.limits),
        ("rate", values.qd, *recording.velocity),
    )
    for k, name in enumerate(cell.joint_names):
        for what, found, lower, upper in of_run:
            excess = np.maximum(lower[k] - found[:, k], found[:, k] - upper[k])
            at = int(np.argmax(excess))
            if excess[at] > BEYOND * max(abs(float(found[at, k])), 1.0):
                text = (
                    f"the {what} of {quote(name)} is {excess[at]:.4g} beyond its limit"
                )
                yield ChartMark(time=float(times[at]), what=text)


def _loads(timeline: Cycle) -> Iterator[ChartMark]:
    """Yield the greatest loads that are beyond their limits."""
    try:
        loads = timeline.loads()
    except ModelError:  # no link has an inertia
        return
    for name, use, when in zip(
        loads.joints, loads.use.tolist(), loads.when.tolist(), strict=True
    ):
        if use > 1.0:
            what = f"{quote(name)} needs {100.0 * use:.0f} % of its limit"
            yield ChartMark(time=when, what=what)


def played_of(timeline: Cycle, rate: float, beside: Sequence[Cycle]) -> PlayedMotion:
    """Return states at instants, and charts, see `Timeline.played`."""
    recording = timeline.recording
    changes = [event.time for event in timeline.events]
    times = np.unique([*sample_times(timeline.duration, rate).tolist(), *changes])
    every = (timeline, *beside)
    end = max(SHORTEST, *(each.duration for each in every))

    @functools.cache
    def charts() -> tuple[Chart, ...]:
        return tuple(
            Chart(
                end=end,
                steps=tuple(_steps(each)),
                signals=tuple(_signals(each)),
                marks=each.marks(),
                title=f"{each.cell.name}, {each.duration:.3f} s",
            )
            for each in every
        )

    return PlayedMotion(
        times,
        lambda k: recording.state(float(times[k])),
        absent=lambda k: recording.absent(float(times[k])),
        make_charts=charts,
    )
