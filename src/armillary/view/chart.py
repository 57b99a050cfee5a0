"""A chart over time: steps with their waits, signals, and marks, as an SVG picture.

Reports have it, and the viewer and pages, where a click on it goes to an instant.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from armillary.errors import printable

__all__ = [
    "Chart",
    "ChartMark",
    "ChartSignal",
    "ChartStep",
    "ChartWait",
    "colours_of",
    "escaped",
]

COLOURS: Final = ("#3f7cac", "#d98032", "#4f9d69", "#8a6fb0", "#b5525c", "#5b8e9b")
"""Colours of manipulators in charts, by turns."""

BAD: Final = "#b3261e"
WAITING: Final = "#c9d1d9"
LEFT: Final = 150.0
"""Where charts begin, right of the names [pixels]."""
RIGHT: Final = 20.0
WIDTH: Final = 1000.0
ROW: Final = 30.0
TOP: Final = 12.0
"""Where rows begin, below the marks [pixels]."""
TICKS: Final = 10
LETTER: Final = 7.0
"""The width of a letter, about [pixels]."""
STYLE: Final = (
    ".chart{display:block;width:100%;height:auto}"
    ".chart text{font:12px system-ui,sans-serif;fill:#39434d}"
    ".chart text.tick{text-anchor:middle}.chart text.in{fill:#fff}"
    ".chart .grid{stroke:#e1e6ea}"
    ".chart .signal{fill:none;stroke:#1d2630;stroke-width:1.6}"
)


class ChartWait(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a step waits.

    Attributes:
        start: When it begins [s].
        end: When it ends [s].
        what: What is waited for, such as a signal or a zone.
    """

    start: float
    end: float
    what: str


class ChartStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a manipulator.

    Attributes:
        name: What it does.
        manipulator: What does it.
        start: When it begins, waiting included [s].
        end: When it ends [s].
        waits: When it waits meanwhile, and for what.
        is_critical: Whether the cycle would be shorter if the step were.
    """

    name: str
    manipulator: str
    start: float
    end: float
    waits: tuple[ChartWait, ...] = ()
    is_critical: bool = False


class ChartSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What a signal is over time.

    Attributes:
        name: Its name.
        changes: Times [s], ascending, and what it is from then on.
    """

    name: str
    changes: tuple[tuple[float, bool | float], ...]


class ChartMark(msgspec.Struct, frozen=True, kw_only=True):
    """What is marked at an instant.

    Attributes:
        time: When [s].
        what: What it is, such as links that touch.
    """

    time: float
    what: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Steps and signals over time.

    Attributes:
        end: Until when [s], above 0; it begins at 0.
        steps: Of all manipulators.
        signals: What changes.
        marks: What is wrong, such as contacts and loads beyond limits.
        title: What it is about.
    """

    end: float
    steps: tuple[ChartStep, ...] = ()
    signals: tuple[ChartSignal, ...] = ()
    marks: tuple[ChartMark, ...] = ()
    title: str = ""

    def svg(self, width: float = WIDTH) -> str:
        """Return it as an SVG picture, in which names are escaped.

        Steps and marks have their instant in `data-time` [s]. `data-left` and
        `data-right` say where the axis of time begins and ends, which is at 0 and at
        `data-end`.

        Args:
            width: How wide it is [pixels].
        """
        return _svg(self, width)

    def place(self, time: float, width: float = WIDTH) -> tuple[float, float]:
        """Return where an instant is from the left, and how high the chart is [pixels].

        Args:
            time: The instant [s].
            width: How wide the chart is [pixels].
        """
        rows = len(colours_of(step.manipulator for step in self.steps))
        height = TOP + ROW * (rows + len(self.signals)) + 28.0
        return self.axis(width).at(min(max(time, 0.0), self.end)), height

    def axis(self, width: float) -> TimeAxis:
        """Return the axis of time of a chart of a width [pixels]."""
        left = min(LEFT, 0.25 * width)
        return TimeAxis(left, (width - left - RIGHT) / self.end)


def colours_of(manipulators: Iterable[str]) -> dict[str, str]:
    """Return the colour of each manipulator, in their order; names may come twice."""
    names = dict.fromkeys(manipulators)
    return {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}


def escaped(given: object) -> str:
    """Return a text as HTML has it, on one line."""
    return html.escape(printable(str(given)))


class TimeAxis(NamedTuple):
    """Where the axis of time begins, and how long a second is [pixels]."""

    left: float
    scale: float

    def at(self, time: float) -> float:
        """Return where an instant is [pixels]."""
        return self.left + self.scale * time


def _svg(chart: Chart, width: float) -> str:
    colours = colours_of(step.manipulator for step in chart.steps)
    axis = chart.axis(width)
    left = axis.left
    end, height = chart.place(chart.end, width)
    lines = [
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" class="chart" '
        f'data-left="{left:.2f}" data-right="{end:.2f}" '
        f'data-end="{chart.end!r}">',
        f"<title>{escaped(chart.title or 'Steps and signals over time')}</title>",
        f"<style>{STYLE}</style>",
        '<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{WAITING}"/>'
        '<line y2="6" stroke="#8b97a3" stroke-width="3"/></pattern></defs>',
        *_ticks(chart.end, axis, height, TICKS if width > 600.0 else TICKS // 2),
    ]
    for row, name in enumerate(colours):
        y = TOP + ROW * row
        lines.append(_label(name, y, left))
        for step in chart.steps:
            if step.manipulator == name:
                lines += _bar(step, y, axis, colours[name])
    for row, signal in enumerate(chart.signals, start=len(colours)):
        y = TOP + ROW * row
        lines.append(_label(signal.name, y, left))
        lines.append(_level(signal, chart.end, y, axis))
    lines += [_mark(mark, axis, height) for mark in chart.marks]
    return "\n".join([*lines, "</svg>"])


def _mark(mark: ChartMark, axis: TimeAxis, height: float) -> str:
    """Return a triangle above the rows, with a line down through them."""
    x = axis.at(mark.time)
    return (
        f'<g data-time="{mark.time!r}"><title>{mark.time:.3f} s: {escaped(mark.what)}'
        f'</title><path d="M{x - 5:.2f},0 h10 l-5,9 z" fill="{BAD}"/>'
        f'<line x1="{x:.2f}" x2="{x:.2f}" y1="9" y2="{height - 22:.1f}" '
        f'stroke="{BAD}" stroke-dasharray="3 3"/></g>'
    )


def _ticks(end: float, axis: TimeAxis, height: float, most: int) -> list[str]:
    """Return lines and numbers at round times."""
    power = 10.0 ** math.floor(math.log10(end / most))
    step = next(k * power for k in (1, 2, 5, 10) if most * k * power >= end * 0.999)
    digits = max(0, -math.floor(math.log10(step)))
    lines: list[str] = []
    for k in range(math.floor(end / step + 1e-9) + 1):
        x = axis.at(k * step)
        lines += [
            f'<line x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{height - 22:.1f}" '
            'class="grid"/>',
            f'<text x="{x:.2f}" y="{height - 7:.1f}" class="tick">{k * step:.{digits}f}'
            "</text>",
        ]
    lines.append(f'<text x="4" y="{height - 7:.1f}">time [s]</text>')
    return lines


def _label(name: str, y: float, left: float) -> str:
    shown = escaped(_fitting(name, left - 10.0))
    return f'<text x="4" y="{y + 16:.1f}">{shown}<title>{escaped(name)}</title></text>'


def _fitting(text: str, room: float) -> str:
    """Return a text, or its beginning where there is less room [pixels]."""
    most = int(room / LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _bar(step: ChartStep, y: float, axis: TimeAxis, colour: str) -> list[str]:
    """Return the bar of a step, with its name where there is room."""
    at = axis.at
    x, width = at(step.start), at(step.end) - at(step.start)
    edge = f' stroke="{BAD}" stroke-width="2"' if step.is_critical else ""
    lines = [
        f'<g data-time="{step.start!r}">'
        f"<title>{escaped(step.name)}: {step.start:.3f} to {step.end:.3f} s</title>"
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(width, 1.0):.2f}" height="22" '
        f'rx="3" fill="{colour}"{edge}/>'
    ]
    for wait in step.waits:
        left, right = at(wait.start), at(wait.end)
        lines.append(
            f'<rect x="{left:.2f}" y="{y:.1f}" width="{right - left:.2f}" height="22" '
            f'rx="3" fill="url(#waits)"><title>waits for {escaped(wait.what)}: '
            f"{wait.start:.3f} to {wait.end:.3f} s</title></rect>"
        )
    # What does not fit is in the title.
    waited = sum(at(wait.end) - at(wait.start) for wait in step.waits)
    if width - 8.0 >= 3.0 * LETTER and waited < 0.2 * width:
        shown = _fitting(step.name, width - 8.0)
        lines.append(
            f'<text x="{x + 5:.2f}" y="{y + 15:.1f}" class="in">{escaped(shown)}</text>'
        )
    return [*lines, "</g>"]


def _level(signal: ChartSignal, end: float, y: float, axis: TimeAxis) -> str:
    """Return the line of a signal over time, from its least to its greatest value."""
    at = axis.at
    values = [float(value) for _, value in signal.changes]
    known = [value for value in values if math.isfinite(value)]
    least = min([0.0, *known])
    most = max(known, default=0.0)
    most = most if most > least else least + 1.0
    points: list[str] = []
    level = y + 20.0
    now = 0.0
    for (time, _), value in zip(signal.changes, values, strict=True):
        points.append(f"{at(now):.2f},{level:.1f} {at(time):.2f},{level:.1f}")
        if math.isfinite(value):
            level = y + 20.0 - 16.0 * (value - least) / (most - least)
        now = time
    points.append(f"{at(now):.2f},{level:.1f} {at(end):.2f},{level:.1f}")
    return f'<polyline points="{" ".join(points)}" class="signal"/>'
