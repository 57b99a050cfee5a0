"""Which pairs an SRDF disables and enables, as rules."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element, report_unused
from armillary.model.rules import Reason, Rule

__all__ = ["REASONS", "read_rules"]

REASONS: Final = {
    "Adjacent": Reason.ADJACENT,
    "Never": Reason.NEVER,
    "Always": Reason.ALWAYS,
    "Default": Reason.DEFAULT,
    "User": Reason.USER,
    "Rigid": Reason.RIGID,
}
"""Reasons as MoveIt's assistant writes them; others are kept as they are."""

PAIRS: Final = ("enable_collisions", "disable_collisions")


def read_rules(robot: Element, names: Names) -> list[Rule]:
    """Return the rules, in the order in which MoveIt applies them; none without any.

    All pairs of the robot's links are tested, but those of links that are disabled as a
    whole, but those that are enabled, but those that are disabled.
    """
    name = names.manipulator.name
    defaults = robot.children_named("disable_default_collisions")
    pairs = {kind: robot.children_named(kind) for kind in PAIRS}
    if not defaults and not any(pairs.values()):
        return []
    own = f"{name}/*"
    found = [
        Rule(a=own, b=own, tested=True, reason=Reason.SRDF),
        Rule(a=own, b=own, where="rigid", reason=Reason.RIGID),
    ]
    for element in defaults:
        link = names.link(element, "link")
        report_unused(element, names.report)
        if link is not None:
            found.append(Rule(a=f"{name}/{link}", b="*", reason=Reason.DEFAULT))
    for kind, elements in pairs.items():
        found += _read_pairs(elements, names, tested=kind == "enable_collisions")
    return found


def _read_pairs(
    elements: tuple[Element, ...], names: Names, *, tested: bool
) -> list[Rule]:
    name = names.manipulator.name
    found: dict[tuple[str, str], tuple[Rule, Place]] = {}
    for element in elements:
        links = names.link(element, "link1"), names.link(element, "link2")
        given = element.attribute("reason") or ""
        report_unused(element, names.report)
        a, b = links
        if a is None or b is None:
            continue
        if a == b:
            names.report.warning(
                element.place,
                "one-link",
                f"<{element.name}> names {quote(a)} twice; it has no effect",
            )
            continue
        reason = REASONS.get(given, given) or Reason.SRDF
        rule = Rule(a=f"{name}/{a}", b=f"{name}/{b}", tested=tested, reason=reason)
        key = (a, b) if a < b else (b, a)
        first, place = found.setdefault(key, (rule, element.place))
        if first is not rule and first.reason != rule.reason:
            names.report.warning(
                element.place,
                "repeated-pair",
                f"<{element.name}> names {quote(a)} and {quote(b)} again, for another "
                f"reason than at line {place.line}, which counts",
            )
    return [rule for rule, _ in found.values()]
