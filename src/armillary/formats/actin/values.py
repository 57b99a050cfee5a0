"""Single values in elements: numbers, names, choices."""

from __future__ import annotations

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import Report
from armillary.formats.numbers import WHITE_SPACE, number_text
from armillary.formats.xml import Element, report_unused, tag

__all__ = ["choice", "identifier", "number", "number_element", "text_element"]


def number(parent: Element, name: str, report: Report) -> tuple[float, Element] | None:
    """Return the number in the only child of a name, and the child; None without it."""
    child = parent.only_child(name, report)
    if child is None:
        return None
    values = child.text_numbers(1, report)
    return None if values is None else (values[0], child)


def identifier(parent: Element, report: Report) -> str:
    """Return what an element calls itself, empty where it does not."""
    child = parent.only_child("identifier", report)
    if child is None:
        return ""
    text = child.read_text()
    report_unused(child, report)
    return text


def choice(
    parent: Element, name: str, known: tuple[str, ...], report: Report
) -> str | None:
    """Return which of the known words a child says; the first where there is none."""
    child = parent.only_child(name, report)
    if child is None:
        report.warning(
            parent.place,
            "missing-element",
            f"{parent.label} has no <{name}>; it is taken as {known[0]}",
        )
        return known[0]
    given = child.read_text()
    report_unused(child, report)
    if given.upper() in known:
        return given.upper()
    likely = nearest(given, known)
    report.error(
        child.place,
        "unknown-choice",
        f"no <{name}> is called {quote(given)}",
        hint=f"Did you mean {quote(likely)}?"
        if likely
        else f"Known are {', '.join(known)}.",
    )
    return None


def number_element(name: str, value: float) -> Element:
    """Return an element to be written that holds a number."""
    return tag(name, text=number_text(value + 0.0))


def text_element(name: str, text: str, report: Report) -> Element:
    """Return an element to be written that holds a text, which must show its ends."""
    if text != text.strip(WHITE_SPACE):
        report.warning(
            Element(name).place,
            "lost-space",
            f"the white space around {quote(text)} is not kept",
        )
    return tag(name, text=text)
