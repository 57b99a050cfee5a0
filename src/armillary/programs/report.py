"""A report of what a cell does: a record, and the page that shows it.

The page is one HTML file without scripts, made from `report_template.html`, that asks
no network: it forbids that itself. All texts of the record are escaped.
"""

from __future__ import annotations

import hashlib
import html
import math
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final, Self

import msgspec

from armillary.errors import FormatError, ModelError, printable, quote
from armillary.view.plan_view import PlanView
from armillary.view.result_file import check_target, write_result

__all__ = [
    "Clearance",
    "CycleReport",
    "CycleStep",
    "FileDigest",
    "HandledPart",
    "JointLoad",
    "Signal",
    "Use",
    "Wait",
]

COLOURS: Final = ("#3f7cac", "#d98032", "#4f9d69", "#8a6fb0", "#b5525c", "#5b8e9b")
"""Colours of manipulators in charts, by turns."""

WAITING: Final = "#c9d1d9"
LEFT: Final = 150.0
"""Where charts begin, right of the names [pixels]."""
WIDTH: Final = 1000.0
ROW: Final = 30.0
TICKS: Final = 10
CLOSE: Final = 0.9
"""The part of a limit from which a load is marked."""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a step waits.

    Attributes:
        start: When it begins [s].
        end: When it ends [s].
        what: What is waited for, such as a signal or a zone.
    """

    start: float
    end: float
    what: str


class CycleStep(msgspec.Struct, frozen=True, kw_only=True):
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
    waits: tuple[Wait, ...] = ()
    is_critical: bool = False


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """What a signal is over time.

    Attributes:
        name: Its name.
        changes: Times [s], ascending, and what it is from then on.
    """

    name: str
    changes: tuple[tuple[float, bool | float], ...]


class Clearance(msgspec.Struct, frozen=True, kw_only=True):
    """The least distance of two things.

    Attributes:
        pair: Their names.
        value: The distance [m], negative where they overlap.
        time: When [s].
        is_proven: Whether it holds between samples, too.
    """

    pair: tuple[str, str]
    value: float
    time: float
    is_proven: bool = False


class JointLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The force or torque of a joint.

    Attributes:
        joint: Its name.
        peak: The greatest, in either direction [N m or N].
        rms: The root of the mean square over the cycle.
        limit: That of the model; None without one.
        time: When the peak is [s].
        unit: `N m` or `N`.
    """

    joint: str
    peak: float
    rms: float
    limit: float | None = None
    time: float | None = None
    unit: str = "N m"


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """How long a manipulator is used in a cycle.

    Attributes:
        manipulator: Its name.
        working: How long it does something [s].
        waiting: How long it waits for something [s].
        energy: What its motors give and take, the sum of both [J].
    """

    manipulator: str
    working: float
    waiting: float = 0.0
    energy: float | None = None


class HandledPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part that is handled.

    Attributes:
        name: Its name.
        start: On what it is at the start.
        end: On what it is at the end.
        grips: How often it is gripped.
    """

    name: str
    start: str
    end: str
    grips: int = 0


class FileDigest(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was used.

    Attributes:
        name: Its name.
        sha256: The hash of its bytes, in hexadecimal digits.
        size: How long it is [bytes].
    """

    name: str
    sha256: str
    size: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Return that of a file.

        Raises:
            FormatError: It cannot be read.
        """
        try:
            with Path(path).open("rb") as file:
                made = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
        except OSError as error:
            name = os.fspath(path)
            raise FormatError(f"{name}: {error.strerror or error}.") from error
        return cls(name=Path(path).name, sha256=made, size=size)


class CycleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell does in a cycle, as far as it is known; what is not known is empty.

    `msgspec.json.encode(report)` is a file of it, which `msgspec.json.decode(content,
    type=CycleReport)` reads.

    Attributes:
        title: What it is about.
        cell: The name of the cell.
        cycle_time: How long the cycle takes [s].
        steps: Of all manipulators.
        signals: What changes.
        clearances: The least of each pair, those that matter.
        loads: Of joints.
        uses: Of manipulators.
        parts: What is handled.
        files: What was used.
        plan: The cell from above.
        notes: Sentences, such as what the report assumes.
    """

    title: str
    cell: str
    cycle_time: float
    steps: tuple[CycleStep, ...] = ()
    signals: tuple[Signal, ...] = ()
    clearances: tuple[Clearance, ...] = ()
    loads: tuple[JointLoad, ...] = ()
    uses: tuple[Use, ...] = ()
    parts: tuple[HandledPart, ...] = ()
    files: tuple[FileDigest, ...] = ()
    plan: PlanView | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the times.

        Raises:
            ModelError: A time is not within the cycle, or a step ends before it begins.
        """
        if not 0.0 < self.cycle_time < math.inf:
            raise ModelError(
                f"A cycle takes a time above 0 [s], not {self.cycle_time:g}."
            )
        for step in self.steps:
            for each in (step, *step.waits):
                if not 0.0 <= each.start <= each.end <= self._latest:
                    raise ModelError(
                        f"Step {quote(step.name)} of {quote(step.manipulator)} is from "
                        f"{each.start:g} to {each.end:g} s, which is not within the "
                        f"cycle of {self.cycle_time:g} s."
                    )
        for signal in self.signals:
            times = [time for time, _ in signal.changes]
            if not all(0.0 <= time <= self._latest for time in times) or (
                times != sorted(times)
            ):
                raise ModelError(
                    f"Changes of signal {quote(signal.name)} are in order of time, "
                    f"within the cycle of {self.cycle_time:g} s."
                )

    @property
    def _latest(self) -> float:
        """Return the end of the cycle, with what rounding may add [s]."""
        return self.cycle_time * (1.0 + 1e-9)

    @property
    def least_clearance(self) -> Clearance | None:
        """Return the least of the clearances; None without any."""
        known = [each for each in self.clearances if not math.isnan(each.value)]
        return min(known, key=lambda each: each.value, default=None)

    @property
    def html(self) -> str:
        """Return the page."""
        template = (files("armillary.programs") / "report_template.html").read_text(
            "utf-8"
        )
        sections = [
            _section("Sequence", _gantt(self), bool(self.steps or self.signals)),
            _section("Use of manipulators", _uses(self), bool(self.uses)),
            _section("Steps", _steps(self), bool(self.steps)),
            _section("Clearances", _clearances(self), bool(self.clearances)),
            _section("Loads beside limits", _loads(self), bool(self.loads)),
            _section("Parts", _parts(self), bool(self.parts)),
            _section("Plan", self.plan.svg if self.plan else "", self.plan is not None),
            _section("Files", _files(self), bool(self.files)),
            _section("Notes", _notes(self), bool(self.notes)),
        ]
        return Template(template).substitute(
            title=_text(self.title),
            cell=_text(self.cell),
            cards="\n".join(_cards(self)),
            sections="\n".join(sections),
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which is replaced if it exists.

        Raises:
            ViewError: It cannot be written.
        """
        check_target(path, "report.html")
        write_result(path, self.html.encode())


# Pieces of the page


def _text(given: object) -> str:
    return html.escape(printable(str(given)))


def _number(value: float | None, digits: int = 3) -> str:
    is_known = value is not None and math.isfinite(value)
    return f"{value:.{digits}f}" if is_known else "-"


def _percent(share: float) -> str:
    return f"{_number(100.0 * share, 1)} %" if math.isfinite(share) else "-"


def _share(value: float, limit: float | None) -> float:
    """Return the part of a limit; NaN without one."""
    if limit is None or not 0.0 < limit < math.inf:
        return math.nan
    return value / limit


def _section(title: str, content: str, is_known: bool) -> str:
    if not is_known:
        return ""
    return f"<section><h2>{title}</h2>\n{content}\n</section>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    lines = ["<table><thead><tr>", *(f"<th>{each}</th>" for each in head)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        lines.append(f"<tr>{''.join(f'<td>{each}</td>' for each in row)}</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def _cards(report: CycleReport) -> list[str]:
    """Return the numbers at the head of the page."""
    cards = [("cycle", f"{_number(report.cycle_time)} s", "")]
    least = report.least_clearance
    if least is not None:
        how = "bad" if least.value <= 0.0 else ""
        cards.append(("least clearance", f"{_number(1e3 * least.value, 1)} mm", how))
    shares = [_share(each.peak, each.limit) for each in report.loads]
    known = [each for each in shares if not math.isnan(each)]
    if known:
        most = max(known)
        how = "bad" if most > 1.0 else "close" if most > CLOSE else ""
        cards.append(("greatest load", f"{100.0 * most:.0f} %", how))
    if report.steps:
        cards.append(("steps", str(len(report.steps)), ""))
    waiting = sum(each.waiting for each in report.uses)
    if report.uses:
        cards.append(("waiting", f"{_number(waiting)} s", ""))
    return [
        f'<div class="card {how}"><b>{value}</b><span>{name}</span></div>'
        for name, value, how in cards
    ]


def _manipulators(report: CycleReport) -> dict[str, str]:
    """Return the manipulators in the order of their steps, with their colours."""
    names = dict.fromkeys(
        [step.manipulator for step in report.steps]
        + [use.manipulator for use in report.uses]
    )
    return {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}


def _gantt(report: CycleReport) -> str:
    """Return the chart of steps and signals over time."""
    colours = _manipulators(report)
    rows = [
        name for name in colours if any(s.manipulator == name for s in report.steps)
    ]
    height = ROW * (len(rows) + len(report.signals)) + 34.0
    scale = (WIDTH - LEFT - 20.0) / report.cycle_time

    def at(time: float) -> float:
        return LEFT + scale * time

    lines = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" class="chart">',
        "<title>Steps and signals over time</title>",
        '<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{WAITING}"/>'
        '<line y2="6" stroke="#8b97a3" stroke-width="3"/></pattern></defs>',
        *_axis(report.cycle_time, at, height),
    ]
    for row, name in enumerate(rows):
        y = 6.0 + ROW * row
        lines.append(_label(name, y))
        for step in report.steps:
            if step.manipulator == name:
                lines += _bar(step, y, at, colours[name])
    for row, signal in enumerate(report.signals, start=len(rows)):
        y = 6.0 + ROW * row
        lines.append(_label(signal.name, y))
        lines.append(_level(signal, report.cycle_time, y, at))
    return "\n".join([*lines, "</svg>"])


def _axis(end: float, at: Callable[[float], float], height: float) -> list[str]:
    """Return lines and numbers at round times."""
    power = 10.0 ** math.floor(math.log10(end / TICKS))
    step = next(k * power for k in (1, 2, 5, 10) if TICKS * k * power >= end * 0.999)
    digits = max(0, -math.floor(math.log10(step)))
    lines: list[str] = []
    for k in range(math.floor(end / step + 1e-9) + 1):
        x = at(k * step)
        lines += [
            f'<line x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{height - 22:.1f}" '
            'class="grid"/>',
            f'<text x="{x:.2f}" y="{height - 7:.1f}" class="tick">{k * step:.{digits}f}'
            "</text>",
        ]
    lines.append(f'<text x="4" y="{height - 7:.1f}">time [s]</text>')
    return lines


def _label(name: str, y: float) -> str:
    shown = _text(name if len(name) <= 20 else f"{name[:19]}…")
    return f'<text x="4" y="{y + 16:.1f}">{shown}<title>{_text(name)}</title></text>'


def _bar(
    step: CycleStep, y: float, at: Callable[[float], float], colour: str
) -> list[str]:
    """Return the bar of a step, with its name where there is room."""
    x, width = at(step.start), at(step.end) - at(step.start)
    edge = ' stroke="#b3261e" stroke-width="2"' if step.is_critical else ""
    lines = [
        f"<g><title>{_text(step.name)}: {step.start:.3f} to {step.end:.3f} s</title>"
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(width, 1.0):.2f}" height="22" '
        f'rx="3" fill="{colour}"{edge}/>'
    ]
    for wait in step.waits:
        left, right = at(wait.start), at(wait.end)
        lines.append(
            f'<rect x="{left:.2f}" y="{y:.1f}" width="{right - left:.2f}" height="22" '
            f'rx="3" fill="url(#waits)"><title>waits for {_text(wait.what)}: '
            f"{wait.start:.3f} to {wait.end:.3f} s</title></rect>"
        )
    # Letters are about 7 pixels wide; what does not fit is in the title.
    room = int((width - 8.0) / 7.0)
    waited = sum(at(wait.end) - at(wait.start) for wait in step.waits)
    if room >= 3 and waited < 0.2 * width:
        shown = step.name if len(step.name) <= room else f"{step.name[: room - 1]}…"
        lines.append(
            f'<text x="{x + 5:.2f}" y="{y + 15:.1f}" class="in">{_text(shown)}</text>'
        )
    return [*lines, "</g>"]


def _level(signal: Signal, end: float, y: float, at: Callable[[float], float]) -> str:
    """Return the line of a signal over time, from its least to its greatest value."""
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


def _meter(parts: Sequence[tuple[float, str]], title: str) -> str:
    """Return a bar of parts of a whole, each with its colour."""
    lines = [
        '<svg viewBox="0 0 240 14" class="meter" role="img" preserveAspectRatio="none">'
        f'<title>{title}</title><rect width="240" height="14" rx="2" fill="#eef1f4"/>'
    ]
    x = 0.0
    for share, colour in parts:
        width = 240.0 * min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
        width = min(width, 240.0 - x)
        lines.append(
            f'<rect x="{x:.2f}" width="{width:.2f}" height="14" fill="{colour}"/>'
        )
        x += width
    return "".join([*lines, "</svg>"])


def _uses(report: CycleReport) -> str:
    colours = _manipulators(report)

    def row(use: Use) -> list[str]:
        shares = use.working / report.cycle_time, use.waiting / report.cycle_time
        parts = [(shares[0], colours[use.manipulator]), (shares[1], "#8b97a3")]
        return [
            _text(use.manipulator),
            _meter(parts, f"works {_percent(shares[0])} of the cycle"),
            _percent(shares[0]),
            _number(use.working),
            _number(use.waiting),
            _number(report.cycle_time - use.working - use.waiting),
            _number(use.energy, 1),
        ]

    head = ("manipulator", "", "works", "works [s]", "waits [s]", "rests [s]")
    return _table((*head, "energy [J]"), map(row, report.uses))


def _steps(report: CycleReport) -> str:
    def row(step: CycleStep) -> list[str]:
        waits = "; ".join(
            f"{_text(wait.what)} ({wait.end - wait.start:.3f} s)" for wait in step.waits
        )
        mark = ' <em class="critical">critical</em>' if step.is_critical else ""
        return [
            _text(step.manipulator),
            _text(step.name) + mark,
            _number(step.start),
            _number(step.end),
            _number(step.end - step.start),
            waits,
        ]

    ordered = sorted(report.steps, key=lambda step: (step.start, step.manipulator))
    head = ("manipulator", "step", "start [s]", "end [s]", "takes [s]", "waits for")
    return _table(head, map(row, ordered))


def _clearances(report: CycleReport) -> str:
    def row(each: Clearance) -> list[str]:
        how = ' class="bad"' if each.value <= 0.0 else ""
        return [
            " - ".join(map(_text, each.pair)),
            f"<span{how}>{_number(1e3 * each.value, 2)}</span>",
            _number(each.time),
            "proven" if each.is_proven else "sampled",
        ]

    ordered = sorted(report.clearances, key=lambda each: each.value)
    return _table(("pair", "least [mm]", "at [s]", ""), map(row, ordered))


def _loads(report: CycleReport) -> str:
    def row(load: JointLoad) -> list[str]:
        share = _share(load.peak, load.limit)
        colour = "#4f9d69" if not share > CLOSE else "#d98032"
        colour = "#b3261e" if share > 1.0 else colour
        how = ' class="bad"' if share > 1.0 else ""
        return [
            _text(load.joint),
            _meter([(share, colour)], f"{_percent(share)} of the limit"),
            f"<span{how}>{_percent(share)}</span>",
            f"{_number(load.peak, 2)} {_text(load.unit)}",
            _number(load.rms, 2),
            _number(load.limit, 2),
            _number(load.time),
        ]

    head = ("joint", "", "of limit", "peak", "rms", "limit", "at [s]")
    return _table(head, map(row, report.loads))


def _parts(report: CycleReport) -> str:
    rows = (
        [_text(part.name), _text(part.start), _text(part.end), str(part.grips)]
        for part in report.parts
    )
    return _table(("part", "at the start on", "at the end on", "grips"), rows)


def _files(report: CycleReport) -> str:
    rows = (
        [_text(each.name), str(each.size), f"<code>{_text(each.sha256)}</code>"]
        for each in report.files
    )
    return _table(("file", "bytes", "SHA-256"), rows)


def _notes(report: CycleReport) -> str:
    lines: list[Any] = [f"<li>{_text(note)}</li>" for note in report.notes]
    return "\n".join(["<ul>", *lines, "</ul>"])
