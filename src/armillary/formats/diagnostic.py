"""What readers and writers find: where, how bad, what, and how to fix it."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from armillary.errors import FormatError, printable, suggestion, unknown
from armillary.limits import DIAGNOSTICS, HINTS, Limit

__all__ = [
    "NOWHERE",
    "SWAPPED_LIMITS",
    "Budget",
    "Diagnostic",
    "Explanation",
    "Place",
    "Report",
    "Severity",
    "Unsupported",
    "explained",
    "explanations",
    "fault",
]

T = TypeVar("T")


class Severity(enum.Enum):
    """How serious a diagnostic is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    rank: int  # 0 is that of the worst; found in the member, without a hash of Python


for _rank, _severity in enumerate(Severity):
    _severity.rank = _rank


class Place(msgspec.Struct, frozen=True):
    """A location in a file; lines and columns count from 1, and 0 means unknown.

    An empty path means that there is no file, as for a cell that is being written.
    Where lines are not enough, `part` is what is meant in the file: a prim of a stage.
    """

    path: str = ""
    line: int = 0
    column: int = 0
    part: str = ""

    def __str__(self) -> str:
        known = itertools.takewhile(bool, (self.line, self.column))
        at = ":".join([printable(self.path), *map(str, known)])
        return f"{at} <{printable(self.part)}>" if self.part else at


NOWHERE: Final = Place()

SWAPPED_LIMITS: Final[Mapping[str, str]] = {
    "swap": "they are swapped",
    "unlimited": "the joint is taken as unlimited",
}
"""How limits with lower above upper may be read, and how messages say it."""


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One error, warning or note.

    place: The location in the file.
    code: A stable id such as `"unknown-joint-type"`, to search for and to test.
    message: What was found, as a clause without a full stop.
    hint: A sentence that says how to fix it, or nothing.
    """

    place: Place
    code: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        text = printable(self.message)
        if self.hint:
            stop = "" if text.endswith((".", "?", "!")) else "."
            text = f"{text}{stop} {printable(self.hint)}"
        where = f"{self.place}: " if self.place.path else ""
        return f"{where}{self.severity.value}[{self.code}]: {text}"


def fault(
    where: Place | str, code: str, message: str, *, hint: str = ""
) -> FormatError:
    """Return the exception for a single error.

    where: The location, or the path of a file as a whole.
    """
    place = Place(where) if isinstance(where, str) else where
    return FormatError(Diagnostic(place=place, code=code, message=message, hint=hint))


class Budget:
    """What reading may still cost: limits, and what has been counted against them.

    A report brings one to all that read with it.
    """

    __slots__ = ("_counted", "_most")

    def __init__(self, most: Mapping[Limit, int] | None = None) -> None:
        """Allow what the limits declare.

        most: Other numbers for some of them.
        """
        self._most = dict(most or {})
        self._counted: Counter[Limit] = Counter()

    def renewed(self) -> Budget:
        """Return a budget of the same numbers, of which nothing is spent."""
        return Budget(self._most)

    def most(self, limit: Limit) -> int:
        """Return the greatest number that a limit allows."""
        return self._most.get(limit, limit.most)

    def check(self, limit: Limit, count: int, where: Place | str) -> None:
        """Refuse a size or depth beyond a limit.

        Raises:
            FormatError: It is; the message says what was asked and what is allowed.
        """
        if count > self.most(limit):
            raise self.excess(limit, where, count)

    def spend(self, limit: Limit, where: Place | str, count: int = 1) -> None:
        """Count what adds up.

        Raises:
            FormatError: All that was counted exceeds the limit.
        """
        self._counted[limit] += count
        if self._counted[limit] > self.most(limit):
            raise self.excess(limit, where)

    def excess(
        self, limit: Limit, where: Place | str, count: int | None = None
    ) -> FormatError:
        """Return the error that there is too much, with the fix of its diagnostic.

        count: How much there is, if that is known.
        """
        message = limit.excess(count, self.most(limit))
        return fault(where, limit.code, message, hint=explained(limit.code).fix)


class Unsupported:
    """Count what a model or a file cannot hold, to report each kind once."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Place, Severity, int]] = {}

    def add(
        self,
        kind: str,
        place: Place = NOWHERE,
        severity: Severity = Severity.WARNING,
        *,
        count: int = 1,
    ) -> None:
        """Count one more of a kind: `"<gazebo>"`.

        severity: A note if no answer depends on it.
        count: How many more there are.
        """
        if not count:
            return
        first, _, before = self._found.get(kind, (place, severity, 0))
        self._found[kind] = first, severity, before + count

    @property
    def kinds(self) -> dict[str, tuple[Place, Severity, int]]:
        """Return the kinds so far: where each was first, how bad, and how often."""
        return dict(self._found)

    def take(self) -> list[Diagnostic]:
        """Return a diagnostic for each kind, at the location of the first, and forget.

        They come in the order in which the kinds were first counted.
        """
        diagnostics: list[Diagnostic] = []
        for kind, (place, severity, count) in self._found.items():
            times = ""
            if count > 1:
                first = f"; there are {count}, and this is the first"
                times = first if place.path else f" ({count} times)"
            message = f"{kind} is not kept{times}"
            diagnostics.append(
                Diagnostic(
                    place=place, severity=severity, code="not-kept", message=message
                )
            )
        self._found.clear()
        return diagnostics


class _Collected:
    """What all views of a report share."""

    def __init__(
        self, budget: Budget, strict: bool, lenient: bool, swapped_limits: str
    ) -> None:
        self.budget, self.strict, self.lenient = budget, strict, lenient
        self.swapped_limits = swapped_limits
        self.most_kept = budget.most(DIAGNOSTICS)
        self.kept: list[Diagnostic] = []
        self.counts = [0 for _ in Severity]  # by rank
        self.most_errors = 10 * self.most_kept
        self.unsupported = Unsupported()
        self.hints_left = budget.most(HINTS)
        self.is_cut = False


class Report:
    """Collect the diagnostics of one reader or writer, to report all of them at once.

    What `error` adds depends on the view of the report and on the caller's options:

    - `report.error`: an error; the file cannot be used.
    - `report.tolerating(...).error`: a warning or a note, since the motion of the model
      is clear all the same; an error if the caller is strict.
    - `report.guessing(...).error`: an error; a warning if the caller is lenient.

    The budget bounds what reading costs: of each severity `DIAGNOSTICS` are kept, and
    the rest are counted.
    """

    __slots__ = ("_all", "_consequence", "_faults", "_is_guess", "_severity")

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        strict: bool = False,
        lenient: bool = False,
        swapped_limits: str = "",
    ) -> None:
        self._all = _Collected(budget or Budget(), strict, lenient, swapped_limits)
        self._severity = Severity.ERROR
        self._consequence = ""
        self._is_guess = False
        self._faults = 0

    @property
    def budget(self) -> Budget:
        """Return what reading may still cost, the same for all views of the report."""
        return self._all.budget

    @property
    def is_strict(self) -> bool:
        """Return whether tolerated faults are errors."""
        return self._all.strict

    @property
    def swapped_limits(self) -> str:
        """Return how the caller reads limits with lower above upper, or nothing."""
        return self._all.swapped_limits

    @property
    def faults(self) -> int:
        """Return the number of calls of `error`, whatever their severity became."""
        return self._faults

    @property
    def unsupported(self) -> Unsupported:
        """Return the counter of what is not kept, which is reported at the end."""
        return self._all.unsupported

    @property
    def settings(self) -> tuple[object, ...]:
        """Return the options of the caller, which decide what is a fault."""
        shared = self._all
        return shared.strict, shared.lenient, shared.swapped_limits

    def contents(self) -> tuple[object, ...] | None:
        """Return what was added so far, for `restore`; None if not all was kept."""
        if max(self._all.counts) > self._all.most_kept:
            return None
        kinds = self.unsupported.kinds
        return tuple(self._all.kept), kinds, self._all.hints_left

    def restore(self, contents: tuple[Any, ...]) -> None:
        """Add to an empty report what another one had."""
        diagnostics, kinds, self._all.hints_left = contents
        for diagnostic in diagnostics:
            self.add(diagnostic)
        for kind, (place, severity, count) in kinds.items():
            self.unsupported.add(kind, place, severity, count=count)

    def apart(self) -> Report:
        """Return an empty report with the options and the budget of this one.

        It is for another file, which may be faulty without this one being so.
        """
        shared = self._all
        return Report(
            budget=shared.budget,
            strict=shared.strict,
            lenient=shared.lenient,
            swapped_limits=shared.swapped_limits,
        )

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the sentence that names the nearest known name, or nothing.

        Only the first few wrong names of a file get one, since to compare takes time.
        """
        self._all.hints_left -= 1
        return suggestion(name, known) if self._all.hints_left >= 0 else ""

    def tolerating(
        self, consequence: str, severity: Severity = Severity.WARNING
    ) -> Report:
        """Return a view of this report for faults that leave the motion clear.

        consequence: What is done all the same: `"the first one counts"`.
        severity: Severity of an error of the view, unless the caller is strict: a note
            if no answer depends on it.
        """
        return self._view(consequence, Severity.ERROR if self.is_strict else severity)

    def guessing(self, consequence: str) -> Report:
        """Return a view of this report for what can only be read by a guess.

        consequence: The guess: `"they are swapped"`.
        """
        severity = Severity.WARNING if self._all.lenient else Severity.ERROR
        return self._view(consequence, severity, is_guess=not self.is_strict)

    def _view(
        self, consequence: str, severity: Severity, *, is_guess: bool = False
    ) -> Report:
        view = Report.__new__(Report)
        view._all = self._all
        # Within a tolerated part nothing is more serious than that part.
        is_milder = self._severity.rank > severity.rank
        view._severity = self._severity if is_milder else severity
        view._consequence = consequence
        view._is_guess = is_guess
        view._faults = 0
        return view

    def error(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add an error, or what this view of the report makes of it.

        Arguments are those of `Diagnostic`.
        """
        self._faults += 1
        if self._severity is not Severity.ERROR:
            message = f"{message}; {self._consequence}"
        elif self._is_guess:
            hint = f"{hint} With lenient=True, {self._consequence}.".lstrip()
        self._add(place, self._severity, code, message, hint)

    def warning(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a warning: an answer may change; arguments are those of `Diagnostic`."""
        self._add(place, Severity.WARNING, code, message, hint)

    def note(self, place: Place, code: str, message: str, *, hint: str = "") -> None:
        """Add a note: no answer changes; arguments are those of `Diagnostic`."""
        self._add(place, Severity.NOTE, code, message, hint)

    def _add(
        self, place: Place, severity: Severity, code: str, message: str, hint: str
    ) -> None:
        self.add(
            Diagnostic(
                place=place, severity=severity, code=code, message=message, hint=hint
            )
        )

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic as it is."""
        counts, rank = self._all.counts, diagnostic.severity.rank
        counts[rank] += 1
        if counts[rank] <= self._all.most_kept:
            self._all.kept.append(diagnostic)

    def count(self, severity: Severity) -> int:
        """Return the number of diagnostics of a severity, including those not kept."""
        return self._all.counts[severity.rank]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics in the order in which they were added.

        A note at the end counts those that were not kept.
        """
        self._add_unsupported()
        return (*self._all.kept, *self._more())

    def raise_if_errors(self) -> None:
        """End the reading or writing if any diagnostic is an error.

        Raises:
            FormatError: It has all diagnostics, the worst first.
        """
        if self._all.counts[Severity.ERROR.rank]:
            self._add_unsupported()
            worst_first = sorted(self._all.kept, key=lambda d: d.severity.rank)
            raise FormatError(*worst_first, *self._more())

    def bounded(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, and raise once there are ten times more errors than are kept.

        Readers loop over it, to leave out the rest of such a file.
        """
        shared, errors = self._all, Severity.ERROR.rank
        for item in items:
            if shared.counts[errors] > shared.most_errors:
                shared.is_cut = True
                self.raise_if_errors()
            yield item

    def _add_unsupported(self) -> None:
        for diagnostic in self.unsupported.take():
            self.add(diagnostic)

    def _more(self) -> list[Diagnostic]:
        """Return the note on diagnostics that were not kept, if there are any."""
        kept, most_kept = self._all.kept, self._all.most_kept
        excess = {
            severity.value: self.count(severity) - most_kept
            for severity in Severity
            if self.count(severity) > most_kept
        }
        if not excess:
            return []
        counts = ", ".join(
            f"{many} more {kind}{'s' if many > 1 else ''}"
            for kind, many in excess.items()
        )
        cut = "; the rest of the file was not read" if self._all.is_cut else ""
        return [
            Diagnostic(
                place=Place(kept[-1].place.path if kept else ""),
                severity=Severity.NOTE,
                code="more",
                message=f"... and {counts}{cut}",
            )
        ]


class Explanation(NamedTuple):
    """What diagnostics with one id mean.

    Attributes:
        code: The id; one that ends in `*` stands for all ids that begin so.
        meaning: What was found, in a sentence or two.
        fix: What to do about it.
    """

    code: str
    meaning: str
    fix: str


@cache
def explanations() -> dict[str, Explanation]:
    """Return the explanations of all ids, which `diagnostics.toml` lists by topic."""
    import tomllib
    from importlib.resources import files

    text = (files("armillary.formats") / "diagnostics.toml").read_text("utf-8")
    return {code: Explanation(code, *row) for code, row in tomllib.loads(text).items()}


def explained(code: str) -> Explanation:
    """Return what an id means.

    Raises:
        UnknownName: There is no such id.
    """
    known = explanations()
    family = f"{code.partition('-')[0]}-*"
    for each in (code, family):
        if each in known:
            return known[each]
    raise unknown("diagnostic", code, known)
