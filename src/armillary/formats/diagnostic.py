"""What readers and writers find: where, how bad, what, and how to fix it."""

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


_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}


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

    How bad a fault is depends on where it stands and on what the caller asked for:

    - `error`: the file cannot be used.
    - `tolerating(...).error`: a warning or a note, for the motion of the model is clear
      all the same; an error for a caller who is strict.
    - `guessing(...).error`: an error; a warning for a caller who is lenient.

    At most `most_kept` findings of each severity are kept; the rest are counted.
    """

    __slots__ = (
        "_consequence",
        "_counts",
        "_faults",
        "_is_cut",
        "_is_guess",
        "_kept",
        "_limits",
        "_severity",
    )

    def __init__(
        self, *, most_kept: int = MOST_KEPT, strict: bool = False, lenient: bool = False
    ) -> None:
        self._kept: list[Diagnostic] = []
        self._counts: Counter[Severity] = Counter()
        self._limits = most_kept, strict, lenient
        self._is_cut = [False]
        self._severity = Severity.ERROR
        self._consequence = ""
        self._is_guess = False
        self._faults = 0

    @property
    def is_strict(self) -> bool:
        """Return whether what is understood all the same is an error."""
        return self._limits[1]

    @property
    def faults(self) -> int:
        """Return how many calls of `error` there were, whatever became of them."""
        return self._faults

    def tolerating(
        self, consequence: str, severity: Severity = Severity.WARNING
    ) -> Report:
        """Return a view of this report for what leaves no doubt about the motion.

        consequence: What is done all the same: `"the first one counts"`.
        severity: Of an error of the view, unless the caller is strict: a note where
            no answer depends on it.
        """
        return self._view(consequence, Severity.ERROR if self.is_strict else severity)

    def guessing(self, consequence: str) -> Report:
        """Return a view of this report for what can only be read by a guess.

        consequence: The guess: `"they are swapped"`.
        """
        lenient = self._limits[2]
        severity = Severity.WARNING if lenient else Severity.ERROR
        return self._view(consequence, severity, is_guess=not self.is_strict)

    def _view(
        self, consequence: str, severity: Severity, *, is_guess: bool = False
    ) -> Report:
        view = Report.__new__(Report)
        view._kept, view._counts, view._limits = self._kept, self._counts, self._limits
        view._is_cut = self._is_cut
        # Inside of what is tolerated nothing is worse than that.
        is_milder = _RANK[self._severity] > _RANK[severity]
        view._severity = self._severity if is_milder else severity
        view._consequence = consequence
        view._is_guess = is_guess
        view._faults = 0
        return view

    def error(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a fault: it makes the file unusable, or is what the view makes of it."""
        self._faults += 1
        if self._severity is not Severity.ERROR:
            message = f"{message}; {self._consequence}"
        elif self._is_guess:
            hint = f"{hint} With lenient=True, {self._consequence}.".lstrip()
        self._add(place, self._severity, code, message, hint)

    def warning(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a finding that changes an answer: doubtful, or left out."""
        self._add(place, Severity.WARNING, code, message, hint)

    def note(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a finding that is no fault."""
        self._add(place, Severity.NOTE, code, message, hint)

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a finding that was made elsewhere."""
        self._counts[diagnostic.severity] += 1
        if self._counts[diagnostic.severity] <= self._limits[0]:
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
            worst_first = sorted(self._kept, key=lambda d: _RANK[d.severity])
            raise FormatError(*worst_first, *self._more())

    def raise_if_many(self) -> None:
        """Raise a FormatError once there are ten times more errors than are kept.

        For the loops of readers: nobody needs the rest of such a file.
        """
        if self._counts[Severity.ERROR] > 10 * self._limits[0]:
            self._is_cut[0] = True
            self.raise_if_errors()

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
            severity.value: self._counts[severity] - self._limits[0]
            for severity in Severity
            if self._counts[severity] > self._limits[0]
        }
        if not excess:
            return []
        counts = ", ".join(
            f"{many} more {kind}{'s' if many > 1 else ''}"
            for kind, many in excess.items()
        )
        cut = "; the rest of the file was not read" if self._is_cut[0] else ""
        return [
            Diagnostic(
                place=Place(self._kept[-1].place.path if self._kept else ""),
                severity=Severity.NOTE,
                code="more",
                message=f"... and {counts}{cut}",
            )
        ]
