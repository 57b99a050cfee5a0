"""Types of joints, as XML files name them."""

from __future__ import annotations

from collections.abc import Iterable

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element

__all__ = ["known_type"]


def known_type(
    given: str | None,
    known: Iterable[str],
    joint: Element,
    language: str,
    report: Report,
) -> str:
    """Return the type of a joint, the empty text after an error.

    Blanks and capitals are tolerated.

    Args:
        given: What the file says; None where that is an error already.
        known: The types that there are.
        joint: The element, for messages.
        language: What messages call the format.
        report: Gets what is wrong.
    """
    types = tuple(known)
    if given is None or given in types:
        return given or ""
    message = f"{joint.label} has the type {quote(given)}"
    likely = given.strip().lower()
    if likely in types:
        view = report.tolerating(f"it is read as {likely}")
        view.error(joint.place, "spelling", message)
        return likely
    report.error(
        joint.place,
        "unknown-joint-type",
        f"{message}, which {language} does not have",
        hint=f"{report.hint(given, types)} Known types: {', '.join(types)}.".strip(),
    )
    return ""
