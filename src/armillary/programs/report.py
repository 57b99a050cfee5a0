"""A report of what a cell does: a record, and the page that shows it.

The page is one HTML file without scripts, made from `report_template.html`, that asks
no network: it forbids that itself. All texts of the record are escaped.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final, Self

import msgspec

from armillary.errors import FormatError, ModelError, quote
from armillary.programs.clearance import UNTESTED, Clearance
from armillary.view.chart import Chart, ChartSignal, ChartStep, colours_of, escaped
from armillary.view.plan_view import PlanView
from armillary.view.result_file import check_target, write_result

__all__ = [
    "CycleReport",
    "FileDigest",
    "HandledPart",
    "JointLoad",
    "Use",
]

CLOSE: Final = 0.9
"""The part of a limit from which a load is marked."""


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
        clearances: The least of pairs, those that matter.
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
    steps: tuple[ChartStep, ...] = ()
    signals: tuple[ChartSignal, ...] = ()
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
    def chart(self) -> Chart:
        """Return the chart of steps and signals."""
        return Chart(end=self.cycle_time, steps=self.steps, signals=self.signals)

    @property
    def least_clearance(self) -> Clearance | None:
        """Return the least of the clearances; None without any."""
        known = [each for each in self.clearances if not math.isnan(each.distance)]
        return min(known, key=lambda each: each.distance, default=None)

    @property
    def html(self) -> str:
        """Return the page."""
        template = (files("armillary.programs") / "report_template.html").read_text(
            "utf-8"
        )
        sections = [
            _section("Sequence", self.chart.svg(), bool(self.steps or self.signals)),
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
            title=escaped(self.title),
            cell=escaped(self.cell),
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
        how = "bad" if least.distance <= 0.0 else ""
        cards.append(("least clearance", f"{_number(1e3 * least.distance, 1)} mm", how))
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
    colours = colours_of([each.manipulator for each in (*report.steps, *report.uses)])

    def row(use: Use) -> list[str]:
        shares = use.working / report.cycle_time, use.waiting / report.cycle_time
        parts = [(shares[0], colours[use.manipulator]), (shares[1], "#8b97a3")]
        return [
            escaped(use.manipulator),
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
    def row(step: ChartStep) -> list[str]:
        waits = "; ".join(
            f"{escaped(wait.what)} ({wait.end - wait.start:.3f} s)"
            for wait in step.waits
        )
        mark = ' <em class="critical">critical</em>' if step.is_critical else ""
        return [
            escaped(step.manipulator),
            escaped(step.name) + mark,
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
        how = ' class="bad"' if each.distance <= 0.0 else ""
        return [
            " - ".join(map(escaped, each.pair)) if any(each.pair) else UNTESTED,
            f"<span{how}>{_number(1e3 * each.distance, 2)}</span>",
            _number(1e3 * each.proven, 2)
            + (f", but {len(each.sampled)} pairs sampled" if each.sampled else ""),
            _number(each.time),
            escaped(each.step),
        ]

    ordered = sorted(report.clearances, key=lambda each: each.distance)
    head = ("pair", "least [mm]", "proven [mm]", "at [s]", "step")
    return _table(head, map(row, ordered))


def _loads(report: CycleReport) -> str:
    def row(load: JointLoad) -> list[str]:
        share = _share(load.peak, load.limit)
        colour = "#4f9d69" if not share > CLOSE else "#d98032"
        colour = "#b3261e" if share > 1.0 else colour
        how = ' class="bad"' if share > 1.0 else ""
        return [
            escaped(load.joint),
            _meter([(share, colour)], f"{_percent(share)} of the limit"),
            f"<span{how}>{_percent(share)}</span>",
            f"{_number(load.peak, 2)} {escaped(load.unit)}",
            _number(load.rms, 2),
            _number(load.limit, 2),
            _number(load.time),
        ]

    head = ("joint", "", "of limit", "peak", "rms", "limit", "at [s]")
    return _table(head, map(row, report.loads))


def _parts(report: CycleReport) -> str:
    rows = (
        [escaped(part.name), escaped(part.start), escaped(part.end), str(part.grips)]
        for part in report.parts
    )
    return _table(("part", "at the start on", "at the end on", "grips"), rows)


def _files(report: CycleReport) -> str:
    rows = (
        [escaped(each.name), str(each.size), f"<code>{escaped(each.sha256)}</code>"]
        for each in report.files
    )
    return _table(("file", "bytes", "SHA-256"), rows)


def _notes(report: CycleReport) -> str:
    lines: list[Any] = [f"<li>{escaped(note)}</li>" for note in report.notes]
    return "\n".join(["<ul>", *lines, "</ul>"])
