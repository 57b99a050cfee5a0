"""Timelines: what happens in a cell while a program runs."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote, unknown
from armillary.forks import IMPORT_LOCK
from armillary.kernel.arguments import positive_number
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.programs.clearance import Clearance, clearance
from armillary.programs.ending import RunFailure, RunReason
from armillary.programs.loads import Loads, loads
from armillary.programs.playing import chart_of, marks_of, played_of
from armillary.programs.program import Program
from armillary.programs.recording import Event, Recording
from armillary.programs.spans import SignalChange, Span, spans_of
from armillary.programs.steps import Grip, Release, Value
from armillary.programs.tracks import JointValues
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import Attachment, Samples, sample_times

if TYPE_CHECKING:
    from armillary.programs.post_processors.hand_over import HandedOver
    from armillary.programs.report import CycleReport
    from armillary.view.chart import Chart, ChartMark
    from armillary.view.motion import PlayedMotion

__all__ = ["Timeline"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """What happens in a cell while a program runs, at each instant.

    Attributes:
        program: The program.
        recording: What moved, and what was attached to what.
        spans: All steps that were done, in order of their starts.
        signals: Changes of signals and sensors, in order of time; those at time 0 are
            what they hold at first.
        failure: What could not be done; None where the program was done to its end.
    """

    program: Program
    recording: Recording
    spans: tuple[Span, ...]
    signals: tuple[SignalChange, ...]
    failure: RunFailure | None

    @property
    def success(self) -> bool:
        """Return whether the program was done to its end."""
        return self.failure is None

    @property
    def reason(self) -> RunReason:
        """Return why the run ended."""
        return RunReason.DONE if self.failure is None else self.failure.reason

    def __bool__(self) -> bool:
        """Return whether the program was done to its end."""
        return self.success

    @property
    def duration(self) -> float:
        """Return when the last task ended, or the run failed [s]."""
        return self.recording.duration

    @property
    def cell(self) -> Workcell:
        """Return what was run."""
        return self.recording.cell

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the changes of attachments and bases, the start among them."""
        return self.recording.events

    # at an instant

    def state(self, time: float) -> State:
        """Return the state of the cell at an instant: joints, rates, attachments.

        Args:
            time: The instant [s]; before 0 and after the end it is that of the end
                nearest.
        """
        return self.recording.state(time)

    def absent(self, time: float) -> frozenset[str]:
        """Return the parts that are not in the cell at an instant.

        Args:
            time: The instant [s].
        """
        return self.recording.absent(time)

    def at(self, time: npt.ArrayLike) -> JointValues:
        """Return positions, rates and accelerations of all joints.

        Args:
            time: Instants within the run [s], shape (...).

        Returns:
            Arrays of shape (..., n), joints in the order of `cell.joint_names`.

        Raises:
            ShapeError: They are not numbers.
        """
        return self.recording.at(time)

    def sampled(self, rate: float) -> Samples:
        """Return the motion of all joints at a constant rate, and at the end.

        Jerks are not known; they are NaN.

        Args:
            rate: Samples a second.

        Raises:
            ModelError: The rate is not above 0.
        """
        t = sample_times(self.duration, positive_number("The rate", rate))
        found = self.at(t)
        return Samples(t, *found, np.full_like(found.q, np.nan))

    def motion(self, task: str) -> Motion:
        """Return the motion of the joints of a task, with what it grips on the way.

        Parts that others bring, or that appear, are where they are at the start until
        they are gripped: `state` has the whole cell.

        Args:
            task: The name of the task.

        Raises:
            UnknownName: No task of this name moves joints.
        """
        tracks = {
            track.name: track for track in self.recording.tracks if len(track.joints)
        }
        if task not in tracks:
            raise unknown("task", task, tracks, owner="this timeline")
        motion = tracks[task].motion(self.duration, self.state(0.0))
        attachments = [
            Attachment(span.step.part, span.end, self._holder(span.step))
            for span in spans_of(self.spans, task)
            if isinstance(span.step, Grip | Release)
        ]
        return replace(motion, attachments=tuple(attachments))

    def _holder(self, step: Grip | Release) -> str | None:
        """Return the frame that has a part after a step; None where it stands free."""
        frame = step.by if isinstance(step, Grip) else step.onto
        return None if frame == WORLD else self.cell.qualified(frame)

    # what happened

    def signal(self, name: str, time: float) -> Value:
        """Return what a signal or a sensor holds at an instant.

        Args:
            name: Its name.
            time: The instant [s].

        Raises:
            UnknownName: There is no such signal.
        """
        changes = [change for change in self.signals if change.signal == name]
        if not changes:
            known = sorted({change.signal for change in self.signals})
            raise unknown("signal", name, known, owner="this program")
        k = bisect_right(changes, float(time), key=lambda change: change.time)
        return changes[max(k - 1, 0)].value

    def span(self, name: str) -> Span:
        """Return the first span of a step.

        Args:
            name: The label of the step, its kind or its place.

        Raises:
            UnknownName: No step has this label, kind or place.
        """
        for span in self.spans:
            if name in {span.name, span.place}:
                return span
        known = sorted({span.name for span in self.spans})
        raise unknown("step", name, known, owner="this timeline")

    @property
    def critical_path(self) -> tuple[Span, ...]:
        """Return the spans that decide the duration, from the first to the last one.

        Each begins when the one before it ends, in the same task or in the one that it
        waited for: if any took less time, the whole would. Of a run that failed, the
        last one is the step that failed, or the last one that its task began.
        """
        if not self.spans:
            return ()
        by_task: dict[str, list[int]] = {}
        for k, span in enumerate(self.spans):
            by_task.setdefault(span.task, []).append(k)
        k = self._last_span
        path: list[int] = []
        while True:
            span = self.spans[k]
            if span.cause is None or span.cause in path:
                path.append(k)
                before = by_task[span.task].index(k) - 1
                if before < 0:
                    break
                k = by_task[span.task][before]
            else:
                k = span.cause
        return tuple(self.spans[k] for k in reversed(path))

    @property
    def _last_span(self) -> int:
        """Return the number of the span that ends the run."""
        numbers, failure = range(len(self.spans)), self.failure
        if failure is not None:
            # What other tasks did then was cut off, and has not ended the run.
            at = [k for k in numbers if self.spans[k].place == failure.step]
            of_task = f"{failure.task}["
            own = [k for k in numbers if self.spans[k].place.startswith(of_task)]
            if at and self.spans[at[-1]].end >= failure.time:
                return at[-1]
            if own:
                return own[-1]
        return max(numbers, key=lambda k: (self.spans[k].end, -k))

    @property
    def use(self) -> dict[str, float]:
        """Return the part of the duration during which joints of each task move."""
        total = self.duration or 1.0
        return {
            track.name: sum(
                max(min(piece.end, self.duration) - piece.start, 0.0)
                for piece in track.pieces
            )
            / total
            for track in self.recording.tracks
            if len(track.joints)
        }

    # questions that take time

    def clearance(
        self,
        *,
        tolerance: float = 1e-5,
        during: Span | None = None,
        of: str | None = None,
    ) -> Clearance:
        """Return how near links come, proven between all instants.

        Args:
            tolerance: By how much less than the distance that is found any other may
                be [m].
            during: The span of a step, such as `timeline.span("across")`, in which it
                is asked for; by default the whole run.
            of: A manipulator: only its links count, and what it carries, each beside
                all others. What lies on a table is then no nearer than it is.

        Raises:
            ModelError: As for `cell.collision`; `during` is not a span, or `tolerance`
                is not above 0.
            UnknownName: The manipulator does not exist.
        """
        tolerance = positive_number("tolerance", tolerance)
        if of is not None:
            self.cell.number(of)
        start, end = 0.0, math.inf
        if during is not None:
            given: Any = during
            if not isinstance(given, Span):
                raise ModelError(
                    "during= is the span of a step, such as timeline.span('across'), "
                    f"not {quote(during)}."
                )
            start, end = during.start, during.end
        found = clearance(
            self.recording, tolerance=tolerance, start=start, end=end, of=of
        )
        return msgspec.structs.replace(found, step=self._step_at(found.time))

    def loads(self) -> Loads:
        """Return torques, powers and energy of the joints, beside their limits.

        They are those of `cell.inverse_dynamics` with what is attached at each instant.
        Torques are sampled at both ends of at least 500 intervals a second, and refined
        around the greatest; energies are sums over these by the trapezoidal rule.

        Raises:
            ModelError: No link that joints move has an inertia.
        """
        return loads(self.recording)

    # to see and to hand over

    def chart(self, *, title: str = "") -> Chart:
        """Return the chart of steps and signals, without marks.

        Args:
            title: What it is about.
        """
        return chart_of(self, title)

    def marks(self, *, rate: float = 100.0) -> tuple[ChartMark, ...]:
        """Return when links begin to touch, and what is beyond limits, most and when.

        Positions and rates are compared with limits of the model, torques with its
        efforts. Contacts are looked for at samples; `clearance` proves that no links
        touch between them. What the model does not have, shapes or inertias, is not
        tested.

        Args:
            rate: Samples a second.

        Raises:
            ModelError: The rate is not above 0.
        """
        return marks_of(self, positive_number("The rate", rate))

    def played(
        self, *, rate: float = 30.0, beside: Sequence[Timeline] = ()
    ) -> PlayedMotion:
        """Return what the viewer and pages play: states, and charts with marks.

        `cell.export("cycle.html", motion=timeline)` and `viewer.play(timeline)` call
        this; call it yourself to see other timelines beside this one.

        Args:
            rate: Samples a second; changes of attachments have instants of their own.
            beside: Timelines whose charts are shown below, on the same axis of time.

        Raises:
            ModelError: The rate is not above 0.
        """
        return played_of(self, positive_number("The rate", rate), beside)

    def report(
        self,
        *,
        title: str = "",
        files: Iterable[str | os.PathLike[str]] = (),
    ) -> CycleReport:
        """Return the record of the cycle; `.write("report.html")` makes a page of it.

        It has the steps and what they waited for, signals, the least clearance, loads,
        the use of manipulators, parts, and a plan of the cell.

        Args:
            title: What it is about; by default the name of the cell.
            files: Paths of files that were used, whose digests are in it.

        Raises:
            ModelError: The timeline takes no time.
            FormatError: A file cannot be read.
        """
        with IMPORT_LOCK:
            from armillary.programs.timeline_report import report_of

        return report_of(self, title or self.cell.name, files)

    def hand_over(
        self,
        task: str,
        path: str | os.PathLike[str],
        *,
        grips: Mapping[str, str | None] | None = None,
        **options: Any,
    ) -> HandedOver:
        """Write what a task does as a program for the controller of its robot.

        Its motions are those of the timeline, with the rests for `Wait`. `Set` and
        `WaitFor` become instructions on ports; the program waits for a signal as long
        as it takes, in place of the rest that the timeline has there.

        Args:
            task: The name of the task.
            path: The file; its ending chooses the language, see `cell.hand_over`.
            grips: The signal of each frame that grips or carries, which is on while it
                holds a part; None where it has none.
            options: Those of `cell.hand_over`, such as `outputs`, `inputs`, `tool` and
                `tolerance`.

        Raises:
            UnknownName: No task of this name moves joints; a port is missing.
            ModelError: The run has failed, a signal is not True or False, the task
                shares a zone, or waits for a signal while it moves; and as for
                `cell.hand_over`.
            FormatError: A file cannot be written.
        """
        with IMPORT_LOCK:
            from armillary.programs.task_hand_over import hand_over_task

        return hand_over_task(self, task, path, grips=grips or {}, options=options)

    def _step_at(self, time: float) -> str:
        """Return the step that moves joints at an instant, empty where none does."""
        moving = {
            track.name
            for track in self.recording.tracks
            for piece in track.pieces
            if piece.start <= time <= piece.end
        }
        for span in self.spans:
            if span.start <= time <= span.end and span.task in moving:
                return span.place
        return ""

    def __repr__(self) -> str:
        end = "" if self.failure is None else f"; {self.failure}"
        return f"<Timeline: {self.duration:.6g} s, {len(self.spans)} steps{end}>"
