"""What a task of a timeline does, as a program for the controller of its robot.

A timeline has the time that a robot waits for a signal; in a program the clock of the
motion stands still meanwhile. So these rests are taken out of the motion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as replaced

from armillary.errors import ModelError, quote
from armillary.model.mount import WORLD
from armillary.programs.post_processors.hand_over import HandedOver, hand_over
from armillary.programs.post_processors.instructions import (
    NEAR,
    Instruction,
    SetSignal,
    WaitForSignal,
    grip_signals,
)
from armillary.programs.spans import Cycle, Span, spans_of
from armillary.programs.steps import Grip, Leave, Release, Set, Value, WaitFor, Zone
from armillary.trajectories.motion import Motion

__all__ = ["hand_over_task"]

Array = npt.NDArray[np.float64]


def hand_over_task(
    timeline: Cycle,
    task: str,
    path: str | os.PathLike[str],
    *,
    grips: Mapping[str, str | None],
    options: Mapping[str, Any],
) -> HandedOver:
    """Write what a task does as a program, see `Timeline.hand_over`."""
    motion = timeline.motion(task)
    if "instructions" in options:
        raise ModelError(
            "Instructions of a task are its steps: leave out instructions=, and "
            "add Set, WaitFor or Wait to the program."
        )
    if timeline.failure is not None:
        raise ModelError(
            f"The run failed, so that nothing is handed over: {timeline.failure}"
        )
    spans = spans_of(timeline.spans, task)
    _check_zones(timeline, task, spans)
    end = max((span.end for span in spans), default=0.0)
    motion = _until(motion, end)
    rests = [(span.start, span.end) for span in spans if isinstance(span.step, WaitFor)]
    begins, ends = np.array(rests).reshape(-1, 2).T

    def clock(time: Any) -> Array:
        """Return the time of the program, of that of the timeline."""
        passed = np.clip(np.asarray(time)[..., None], begins, ends) - begins
        return np.asarray(time - passed.sum(axis=-1))

    gripping = iter(grip_signals(motion, grips, _holders(timeline, task)))
    moved = _without(motion, clock)
    # Rounding must neither change the order of steps nor lead beyond the end.
    times = np.maximum.accumulate(clock(np.array([span.end for span in spans])))
    steps = [
        each
        for span, time in zip(spans, np.minimum(times, moved.duration), strict=True)
        for each in _instructions(span, float(time), gripping)
    ]
    return hand_over(timeline.cell, moved, path, instructions=steps, **options)


def _holders(timeline: Cycle, task: str) -> list[str | None]:
    """Return which frame has the part before each step of a task that moves it on.

    Those of other tasks count: a robot that takes a part from another lets that go.
    """
    found: list[str | None] = []
    holders: dict[str, str | None] = {}
    for span in sorted(timeline.spans, key=lambda span: span.end):
        step = span.step
        if isinstance(step, Leave):
            holders.pop(step.part, None)
        if not isinstance(step, Grip | Release):
            continue
        if span.place.startswith(f"{task}["):
            before = holders.get(step.part)
            if step.part not in holders and isinstance(step, Release):
                before = timeline.state(0.0).parent(step.part)
            found.append(before)
        frame = step.by if isinstance(step, Grip) else step.onto
        holders[step.part] = None if frame == WORLD else timeline.cell.qualified(frame)
    return found


def _until(motion: Motion, end: float) -> Motion:
    """Return the motion up to the end of a task, whose robot may go on to follow."""
    count = int(np.searchsorted(motion.times[:-1], end - NEAR))
    if not count:
        raise ModelError("This task moves nothing, so that there is nothing to do.")
    return replace(
        motion,
        times=np.append(motion.times[:count], min(end, motion.times[count])),
        law=motion.law[:count],
        piece=motion.piece[:count],
    )


def _without(motion: Motion, clock: Callable[[Array], Array]) -> Motion:
    """Return the motion without rests, in which the clock of the program stands."""
    times = clock(motion.times)
    kept = np.diff(times) > NEAR
    moves = np.abs(motion.law[:, 1:]).max(axis=1) > 0.0
    if (moves & (np.diff(times) < np.diff(motion.times) - NEAR)).any():
        raise ModelError(
            "This task waits for a signal while its robot moves, as it does while it "
            "follows a frame: controllers only wait where it rests."
        )
    if not kept.any():
        raise ModelError("This task moves nothing, so that there is nothing to do.")
    return replace(
        motion,
        times=np.append(0.0, np.cumsum(np.diff(times)[kept])),
        law=motion.law[kept],
        piece=motion.piece[kept],
        attachments=(),
    )


def _check_zones(timeline: Cycle, task: str, spans: list[Span]) -> None:
    """Refuse zones that other tasks enter, too: their robots have other controllers."""
    entered = {
        (span.task, span.step.zone)
        for span in timeline.spans
        if isinstance(span.step, Zone)
    }
    for span in spans:
        zone = span.step.zone if isinstance(span.step, Zone) else ""
        others = [name for name, each in entered if each == zone and name != task]
        if others:
            raise ModelError(
                f"{span.place}: the zone {quote(zone)} is shared with "
                f"{', '.join(map(quote, sorted(others)))}, which controllers do not "
                "know: let the tasks wait for signals of each other."
            )


def _digital(span: Span, value: Value) -> bool:
    if not isinstance(value, bool):
        raise ModelError(
            f"{span.place}: signals of controllers are True or False, not {value!r}."
        )
    return value


def _instructions(
    span: Span, time: float, gripping: Iterator[list[SetSignal]]
) -> list[Instruction]:
    """Return what a step does beside moving, at its time of the program."""
    step = span.step
    if isinstance(step, Set):
        value = _digital(span, step.value)
        return [SetSignal(time=time, signal=step.signal, value=value)]
    if isinstance(step, WaitFor):
        value = _digital(span, step.value)
        return [WaitForSignal(time=time, signal=step.signal, value=value)]
    if isinstance(step, Grip | Release):
        return [replaced(each, time=time) for each in next(gripping)]
    return []
