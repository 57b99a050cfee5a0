"""What every part of the reader has at hand: the findings, and a look at children."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import Guesses
from armillary.formats.unsupported import Unsupported
from armillary.formats.xml import Element, unused

__all__ = ["Desk"]

MOST_ODD_NAMES: Final = 100


@dataclass(slots=True, kw_only=True)
class Desk:
    """Where one reading collects what it finds.

    Attributes:
        report: Receives the findings.
        unsupported: Counts what has no place in the model.
    """

    report: Report
    unsupported: Unsupported
    _guesses: Guesses = field(default_factory=Guesses)
    _likely: dict[str, str | None] = field(default_factory=dict[str, str | None])

    @classmethod
    def of(cls, report: Report) -> Desk:
        """Return an empty desk whose findings go to a report."""
        return cls(report=report, unsupported=Unsupported(report))

    def children(self, element: Element, known: Sequence[str]) -> list[Element]:
        """Return the children with known names, in their order, and report the others.

        RobWork refuses a file with an unknown element. Here only one that looks like a
        slip of the pen is an error: a joint that is left out changes all that follows.
        """
        found: list[Element] = []
        told: set[str] = set()
        for child in element.children:
            name = child.name
            if name not in told and len(told) < MOST_ODD_NAMES:
                told.add(name)
                # So that `close` does not tell of it again.
                element.children_named(name)
            if name in known:
                found.append(child)
                continue
            message = f"{child.label} was not understood in {element.label}"
            likely = self._likely_name(name, known)
            if likely is None:
                self.report.warning(child.place, "unknown-element", message)
            else:
                hint = f"Did you mean {likely}?" if likely else ""
                self.report.error(child.place, "unknown-element", message, hint=hint)
        return found

    def _likely_name(self, name: str, known: Sequence[str]) -> str | None:
        """Return the name that may be meant, None if none; empty where all are odd."""
        if name not in self._likely:
            if len(self._likely) >= MOST_ODD_NAMES:
                return ""
            likely = nearest(name, known)
            self._likely[name] = None if likely is None else quote(likely)
        return self._likely[name]

    def close(self, element: Element) -> None:
        """Report what of an element nobody asked for, as far as a person would read."""
        leftovers = unused(element)
        for leftover in islice(leftovers, MOST_ODD_NAMES):
            shown, kind = quote(leftover.name), leftover.kind
            hint = ""
            if kind != "text":
                hint = self.hint(leftover.name, element.asked(kind))
            self.report.warning(
                leftover.place,
                f"unknown-{kind}",
                f"the {kind} {shown} of {element.label} was not understood",
                hint=hint,
            )
        if next(leftovers, None) is not None:
            self.report.warning(
                element.place,
                "unknown-element",
                f"there is more in {element.label} that was not understood",
            )

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the sentence that names the nearest known name, or nothing."""
        return self._guesses.hint(name, known)

    def choice(
        self, element: Element, name: str, known: Sequence[str], default: str
    ) -> str:
        """Return the value of an attribute that is one of a few words.

        Report an error for any other, and return the default then, and without it.
        """
        value = element.attribute(name)
        if value is None or value in known:
            return default if value is None else value
        self.report.error(
            element.place,
            "unknown-value",
            f"attribute {quote(name)} of {element.label} is {quote(value)}, not one of "
            f"{', '.join(known)}",
            hint=self.hint(value, known),
        )
        return default
