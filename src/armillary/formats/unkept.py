"""What a reader leaves out: known but not kept, reported once a kind; or unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.xml import Element, report_unused, unused

__all__ = ["Guesses", "Unkept", "report_leftovers"]

MOST_EXPLAINED: Final = 200
MOST_GUESSES: Final = 12


class Unkept:
    """Count what the model has no field for, and report each kind once.

    report: Receives one finding for each kind, with the place of the first.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._found: dict[str, tuple[Place, Severity, int]] = {}

    def add(
        self, kind: str, place: Place, severity: Severity = Severity.WARNING
    ) -> None:
        """Count one more of a kind: `"<gazebo>"`.

        severity: A note where nothing is computed from it.
        """
        first, _, count = self._found.get(kind, (place, severity, 0))
        self._found[kind] = first, severity, count + 1

    def add_children(self, element: Element, names: Iterable[str]) -> None:
        """Count the children of these names, from which nothing is computed."""
        for name in names:
            for child in element.children_named(name):
                self.add(f"<{name}>", child.place, Severity.NOTE)

    def add_prefixed(self, element: Element) -> None:
        """Count the children that another program has put there: `<drake:...>`."""
        names = (child.name for child in element.children if ":" in child.name)
        self.add_children(element, dict.fromkeys(names))

    def tell(self) -> None:
        """Report what was counted."""
        for kind, (place, severity, count) in self._found.items():
            times = f"; there are {count}, and this is the first" if count > 1 else ""
            add = (
                self._report.note if severity is Severity.NOTE else self._report.warning
            )
            add(place, "not-kept", f"{kind} is not kept{times}")


class Guesses:
    """Say which name may have been meant, for as long as that is worth its time.

    A file with thousands of wrong names has one fault, not thousands of them.
    """

    def __init__(self) -> None:
        self._left = MOST_GUESSES

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the sentence that names the nearest known name, or nothing."""
        self._left -= 1
        likely = nearest(name, known) if self._left >= 0 else None
        return f"Did you mean {quote(likely)}?" if likely is not None else ""


def report_leftovers(
    element: Element, report: Report, unlike: Severity = Severity.WARNING
) -> None:
    """Report all in an element that was not asked for; the first ones with a guess.

    unlike: Severity of a name that is like no known one; others may be misspelt.
    """
    if report.count(Severity.WARNING) < MOST_EXPLAINED:
        report_unused(element, report, unlike=unlike)
        return
    for leftover in unused(element):
        report.warning(
            leftover.place, f"unknown-{leftover.kind}", "this was not understood"
        )
