"""The diagnostics of one reading, and what every element reader does with elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, unused

__all__ = ["ReaderContext"]

MOST_UNKNOWN: Final = 100


class ReaderContext:
    """The report of one reading.

    Attributes:
        report: Receives the diagnostics; its methods `error`, `warning` and `note` are
            here too.
        unsupported: Counts what the model has no field for.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.unsupported = report.unsupported
        self.error, self.warning, self.note = report.error, report.warning, report.note
        self._likely: dict[str, str | None] = {}

    def children(self, element: Element, known: Sequence[str]) -> list[Element]:
        """Return the children with known names; `close` reports the others."""
        for name in known:
            element.children_named(name)
        return [child for child in element.children if child.name in known]

    def close(self, element: Element) -> None:
        """Report what was not read in an element.

        RobWork refuses a file with an unknown element. Here it is an error if the name
        is like a known one: a joint that is left out changes all that follows.
        """
        for leftover in unused(element):
            kind, name, hint, add = leftover.kind, leftover.name, "", self.warning
            if kind == "attribute":
                hint = self.hint(name, element.asked(kind))
            elif kind == "element":
                likely = self._likely_element(name, element.asked(kind))
                add = self.warning if likely is None else self.error
                hint = f"Did you mean {quote(likely)}?" if likely else ""
            message = f"the {kind} {quote(name)} of {element.label} was not understood"
            add(leftover.place, f"unknown-{kind}", message, hint=hint)

    def _likely_element(self, name: str, known: Sequence[str]) -> str | None:
        """Return the most similar name, None without one, empty after many names."""
        if name not in self._likely:
            if len(self._likely) >= MOST_UNKNOWN:
                return ""
            self._likely[name] = nearest(name, known)
        return self._likely[name]

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the sentence that names the nearest known name, or nothing."""
        return self.report.hint(name, known)

    def choice(
        self, element: Element, name: str, known: Sequence[str], default: str
    ) -> str:
        """Return the value of an attribute that is one of a few words.

        Any other value is an error and gives the default, as a missing attribute does.
        """
        value = element.attribute(name)
        if value is None or value in known:
            return default if value is None else value
        self.error(
            element.place,
            "unknown-value",
            f"attribute {quote(name)} of {element.label} is {quote(value)}, not one of "
            f"{', '.join(known)}",
            hint=self.hint(value, known),
        )
        return default
