"""What a model or a file cannot hold: counted, and reported once for each kind."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import msgspec

from armillary.formats.diagnostic import NOWHERE, Place, Report, Severity
from armillary.formats.xml import Element
from armillary.spatial.inertia import SpatialInertia

__all__ = ["Unsupported", "possible_inertia"]


class Unsupported:
    """Count what is not kept, and report each kind once.

    report: Receives one diagnostic for each kind, at the location of the first.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._found: dict[str, tuple[Place, Severity, int]] = {}

    def add(
        self,
        kind: str,
        place: Place = NOWHERE,
        severity: Severity = Severity.WARNING,
    ) -> None:
        """Count one more of a kind: `"<gazebo>"`.

        severity: A note if no answer depends on it.
        """
        first, _, count = self._found.get(kind, (place, severity, 0))
        self._found[kind] = first, severity, count + 1

    def add_children(self, element: Element, names: Iterable[str]) -> None:
        """Count the children of these names, on which no answer depends."""
        for name in names:
            for child in element.children_named(name):
                self.add(f"<{name}>", child.place, Severity.NOTE)

    def add_prefixed(self, element: Element) -> None:
        """Count the children that belong to other programs: `<drake:...>`."""
        names = (child.name for child in element.children if ":" in child.name)
        self.add_children(element, dict.fromkeys(names))

    def add_fields(
        self, noun: str, value: msgspec.Struct, written: frozenset[str]
    ) -> None:
        """Count the fields of a value that are not written and not at their default.

        noun: What messages call the value.
        """
        for name, default in _others(type(value), written):
            if getattr(value, name) != default:
                self.add(f"{name.replace('_', ' ')!r} of a {noun}")

    def report_all(self) -> None:
        """Report what was counted."""
        for kind, (place, severity, count) in self._found.items():
            times = ""
            if count > 1:
                first = f"; there are {count}, and this is the first"
                times = first if place.path else f" ({count} times)"
            is_note = severity is Severity.NOTE
            add = self._report.note if is_note else self._report.warning
            add(place, "not-kept", f"{kind} is not kept{times}")


@functools.cache
def _others(
    kind: type[msgspec.Struct], written: frozenset[str]
) -> list[tuple[str, Any]]:
    """Return the fields of a type that are not written, each with its default."""
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(kind):
        if field.name not in written:
            factory = field.default_factory
            is_made = factory is not msgspec.NODEFAULT
            found.append((field.name, factory() if is_made else field.default))
    return found


def possible_inertia(
    inertia: SpatialInertia, place: Place, of: str, report: Report
) -> SpatialInertia | None:
    """Return an inertia that was read, as far as links take it.

    Where only its moments are impossible, mass and centre are kept as a point mass;
    None where there is no mass to keep.

    of: What messages call its link.
    """
    fault = inertia.fault()
    if fault is None:
        return inertia
    message = f"the inertia of {of} is impossible: {fault.message}"
    if fault.is_refused:
        point = inertia.point_mass()
        kept = point.fault() is None
        doing = "its moments are taken as zero" if kept else "it is left out"
        report.tolerating(doing).error(place, "bad-inertia", message)
        return point if kept else None
    report.warning(place, "bad-inertia", message)
    return inertia
