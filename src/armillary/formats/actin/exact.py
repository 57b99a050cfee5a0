"""The attribute that holds numbers which Actin's way to say them would round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from armillary.formats.actin.names import OWN
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element

__all__ = ["ATTRIBUTE", "exact_attribute", "exactly"]

ATTRIBUTE: Final = f"{{{OWN}}}exact"
TOLERANCE: Final = 1e-9


def exact_attribute(
    wanted: Iterable[float], said: Iterable[float]
) -> dict[str, Iterable[float]]:
    """Return the attribute of an element to be written, nothing if it is not needed.

    wanted: The numbers that shall be read.
    said: What follows from the rest of the element.
    """
    numbers = tuple(wanted)
    return {} if numbers == tuple(said) else {"am:exact": numbers}


def exactly(
    element: Element, said: tuple[float, ...], report: Report
) -> tuple[float, ...]:
    """Return the exact numbers where they are given and no others than those said.

    said: What follows from the rest of the element.
    """
    given = element.numbers(ATTRIBUTE, len(said), report)
    if given is None:
        return said
    margin = TOLERANCE * max(map(abs, said))
    if all(abs(a - b) <= margin for a, b in zip(given, said, strict=True)):
        return given
    report.warning(
        element.place,
        "not-exact",
        f"'exact' of {element.label} is left out: it contradicts the element",
        hint="Remove it after editing the element.",
    )
    return said
