"""What readers and writers find: where, how bad, what, and the mend."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Final

from armillary.errors import FormatError, printable

__all__ = ["Diagnostic", "Place", "Report", "Severity"]

MOST_KEPT: Final = 100


class Severity(enum.Enum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a file; lines and columns count from 1, and 0 stands for unknown.

    An empty path stands for what is in no file, such as a tree about to be written.
    """

    path: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        spot = itertools.takewhile(bool, (self.line, self.column))
        return ":".join([printable(self.path), *map(str, spot)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding in a file.

    code: A stable id such as `"unknown-joint-type"`, to search for and to test.
    message: What was found, as a clause without a full stop.
    hint: A sentence that tells the mend, or nothing.
    """

    place: Place
    severity: Severity
    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = printable(self.message)
        if self.hint:
            stop = "" if text.endswith((".", "?", "!")) else "."
            text = f"{text}{stop} {printable(self.hint)}"
        where = f"{self.place}: " if self.place.path else ""
        return f"{where}{self.severity.value}[{self.code}]: {text}"


class Report:
    """Collect the findings of one reader or writer, so that all are told at once.

    At most `most_kept` findings of each severity are kept; the rest are counted.
    """

    def __init__(self, *, most_kept: int = MOST_KEPT) -> None:
        self._kept: list[Diagnostic] = []
        self._counts: Counter[Severity] = Counter()
        self._most_kept = most_kept

    def error(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a finding that makes the file unusable."""
        self._add(place, Severity.ERROR, code, message, hint)

    def warning(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a finding that people should know of: doubtful, or left out."""
        self._add(place, Severity.WARNING, code, message, hint)

    def note(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a finding that is no fault."""
        self._add(place, Severity.NOTE, code, message, hint)

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a finding that was made elsewhere."""
        self._counts[diagnostic.severity] += 1
        if self._counts[diagnostic.severity] <= self._most_kept:
            self._kept.append(diagnostic)

    def count(self, severity: Severity) -> int:
        """Return how many findings of a severity there were, those not kept too."""
        return self._counts[severity]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the findings in the order in which they were made.

        A note at the end counts those that were too many to keep.
        """
        return (*self._kept, *self._more())

    def raise_if_errors(self) -> None:
        """Raise a FormatError with every finding, errors first, if one is an error."""
        if self._counts[Severity.ERROR]:
            order = list(Severity)
            worst_first = sorted(self._kept, key=lambda d: order.index(d.severity))
            raise FormatError(*worst_first, *self._more())

    def _add(
        self, place: Place, severity: Severity, code: str, message: str, hint: str
    ) -> None:
        self.add(
            Diagnostic(
                place=place, severity=severity, code=code, message=message, hint=hint
            )
        )

    def _more(self) -> list[Diagnostic]:
        """Return the note on findings that were not kept, if there were any."""
        excess = {
            severity.value: self._counts[severity] - self._most_kept
            for severity in Severity
            if self._counts[severity] > self._most_kept
        }
        if not excess:
            return []
        counts = ", ".join(
            f"{many} more {kind}{'s' if many > 1 else ''}"
            for kind, many in excess.items()
        )
        return [
            Diagnostic(
                place=Place(self._kept[-1].place.path if self._kept else ""),
                severity=Severity.NOTE,
                code="more",
                message=f"... and {counts}",
            )
        ]
