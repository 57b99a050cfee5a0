"""What a timeline says of steps and signals, and what is made of it."""

# ruff: noqa: D102 -- docstrings of `Cycle` are those of `Timeline`.

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.programs.clearance import Clearance
from armillary.programs.ending import RunFailure
from armillary.programs.loads import Loads
from armillary.programs.recording import Event, Recording
from armillary.programs.steps import AnyStep, Value
from armillary.trajectories.motion import Motion
from armillary.view.chart import Chart, ChartMark

__all__ = ["Cycle", "SignalChange", "Span", "spans_of"]


class Span(NamedTuple):
    """A step of a program in time.

    Attributes:
        task: The task; of a branch of `Parallel`, its name beside the task.
        place: Where the step is in the program, as in `robot[2][0]`.
        name: Its label, or its kind.
        step: The step itself.
        start: When it begins [s].
        end: When it ends [s].
        waited_for: What it waited for, such as `signal 'ready'`; empty if for nothing.
        cause: The number of the span that let it go on, among `Timeline.spans`; None
            where the step itself took the time.
    """

    task: str
    place: str
    name: str
    step: AnyStep
    start: float
    end: float
    waited_for: str = ""
    cause: int | None = None


def spans_of(spans: Iterable[Span], task: str) -> list[Span]:
    """Return the spans of a task and of its branches, in order of their ends."""
    own = (span for span in spans if span.place.startswith(f"{task}["))
    return sorted(own, key=lambda span: span.end)


class SignalChange(NamedTuple):
    """A signal that changes.

    Attributes:
        signal: Its name.
        time: When [s].
        value: What it holds from then on.
    """

    signal: str
    time: float
    value: Value


class Cycle(Protocol):
    """A timeline, as reports, charts and programs for controllers are made of it."""

    @property
    def cell(self) -> Workcell: ...
    @property
    def recording(self) -> Recording: ...
    @property
    def spans(self) -> tuple[Span, ...]: ...
    @property
    def signals(self) -> tuple[SignalChange, ...]: ...
    @property
    def failure(self) -> RunFailure | None: ...
    @property
    def duration(self) -> float: ...
    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def critical_path(self) -> tuple[Span, ...]: ...
    @property
    def use(self) -> dict[str, float]: ...
    def state(self, time: float) -> State: ...
    def absent(self, time: float) -> frozenset[str]: ...
    def motion(self, task: str) -> Motion: ...
    def clearance(self) -> Clearance: ...
    def loads(self) -> Loads: ...
    def chart(self) -> Chart: ...
    def marks(self) -> tuple[ChartMark, ...]: ...
