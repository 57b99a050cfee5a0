"""Which links are tested for collision: contype, conaffinity and `<exclude>`.

MuJoCo tests two geoms if a bit of the `contype` of one is in the `conaffinity` of the
other, unless they are on one body, on bodies that are fixed to each other, or on a body
and its parent; the world and what is fixed to it is nobody's parent here. Rules are
about links: a pair of links is tested if any of their geoms are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import NAME, ElementTable, Row
from armillary.formats.mjcf.bodies import Body
from armillary.formats.mjcf.document import Document
from armillary.formats.mjcf.trees import Trees
from armillary.limits import MJCF_PAIRS
from armillary.model.link_pattern import links_of
from armillary.model.rules import Rule, RuleReason, Rules

__all__ = ["EXCLUDE", "is_tested", "masks_of", "read_rules", "rules_of"]

EXCLUDE: Final = ElementTable[Report](
    "exclude", Row("body1", NAME, "a"), Row("body2", NAME, "b")
)
"""Two bodies that are not tested against each other."""

Masks = frozenset[tuple[int, int]]
BITS: Final = 31


def masks_of(body: Body, report: Report) -> Masks:
    """Return the pairs of contype and conaffinity of the geoms that may touch."""
    found: set[tuple[int, int]] = set()
    for geom in body.of("geom"):
        masks: list[int] = []
        for key in ("contype", "conaffinity"):
            number = geom.element.number(key, report, default=1.0)
            if number != int(number) or not 0 <= number < 1 << BITS:
                message = f"{quote(key)} of {geom.element.label} is {number:g}"
                report.error(
                    geom.element.place,
                    "bad-number",
                    f"{message}; it takes a whole number of {BITS} bits",
                )
                number = 1.0
            masks.append(int(number))
        if any(masks):
            found.add((masks[0], masks[1]))
    return frozenset(found)


def is_tested(one: Masks, other: Masks) -> bool:
    """Return whether any geoms of two links are tested."""
    return any(c & b or d & a for a, b in one for c, d in other)


def read_rules(
    document: Document, bodies: Sequence[Body], trees: Trees, has_shapes: set[str]
) -> Rules:
    """Return the rules of a model.

    has_shapes: The links that can touch, as `manipulator/link`.
    """
    report = document.report
    at = [each.qualified if each is not None else "" for each in trees.bodies]
    masks = {
        name: masks_of(body, report)
        for body, name in zip(bodies, at, strict=True)
        if name in has_shapes
    }
    untested: set[tuple[str, str]] = set()
    classes: dict[Masks, list[str]] = {}
    for name, each in masks.items():
        classes.setdefault(each, []).append(name)
    kinds = list(classes)
    for k, one in enumerate(kinds):
        for other in kinds[k:]:
            if not is_tested(one, other):
                first, second = classes[one], classes[other]
                report.budget.spend(
                    MJCF_PAIRS, document.root.place, len(first) * len(second)
                )
                untested |= {_pair(a, b) for a in first for b in second if a != b}
    by_name = {body.name: k for k, body in enumerate(bodies) if body.name}
    by_name["world"] = 0
    for element in document.sections.get("contact", []):
        if element.name == "pair":
            report.unsupported.add("a <pair> of <contact>", element.place)
        if element.name != "exclude":
            continue
        values = EXCLUDE.read(element, report)
        ends: list[str] = []
        for name in values.values():
            if name is not None and name not in by_name:
                report.error(
                    element.place,
                    "unknown-link",
                    f"{element.label} names the body {quote(name)}, which does not "
                    "exist",
                    hint=report.hint(name, by_name),
                )
            elif name is not None:
                ends.append(at[by_name[name]])
        if len(ends) == 2 and ends[0] != ends[1] and has_shapes.issuperset(ends):
            untested.add(_pair(ends[0], ends[1]))
    return rules_of(untested, _on_static(bodies, trees, has_shapes), has_shapes)


def _on_static(
    bodies: Sequence[Body], trees: Trees, has_shapes: set[str]
) -> set[tuple[str, str]]:
    """Return the pairs of moving links and the static ones with shapes that carry them.

    MuJoCo tests these, while links that share a joint are not.
    """
    pairs: set[tuple[str, str]] = set()
    static = {0}
    for k, body in enumerate(bodies[1:], 1):
        moves = bool(trees.joints[k]) or body.is_mocap
        if not moves and body.parent in static:
            static.add(k)
    for k, body in enumerate(bodies[1:], 1):
        if not trees.joints[k] or body.parent not in static:
            continue
        carrier = body.parent
        while carrier > 0 and _name(trees, carrier) not in has_shapes:
            carrier = bodies[carrier].parent
        if _name(trees, carrier) in has_shapes:
            pairs.add(_pair(_name(trees, k), _name(trees, carrier)))
    return pairs


def _name(trees: Trees, body: int) -> str:
    at = trees.bodies[body]
    return "" if at is None else at.qualified


def rules_of(
    untested: Iterable[tuple[str, str]],
    on_static: Iterable[tuple[str, str]],
    has_shapes: set[str],
) -> Rules:
    """Return the rules that leave pairs of links out.

    Where no links of two manipulators, or of one, are tested, one rule says so.

    untested: Pairs of links as `manipulator/link`, in any order.
    on_static: Pairs that are tested though they share a joint.
    has_shapes: The links that can touch.
    """
    left_out = {_pair(a, b) for a, b in untested}
    rules = [
        Rule(a="*", b="*", where="rigid", reason=RuleReason.RIGID),
        Rule(a="*", b="*", where="joined", reason=RuleReason.ADJACENT),
    ]
    rules += [
        Rule(a=a, b=b, tested=True, reason=RuleReason.ALWAYS)
        for a, b in sorted(on_static)
        if a in has_shapes and b in has_shapes and (a, b) not in left_out
    ]
    counts: dict[tuple[str, str], int] = {}
    for a, b in left_out:
        key = _owner(a), _owner(b)
        counts[key] = counts.get(key, 0) + 1
    sizes: dict[str, int] = {}
    for name in has_shapes:
        sizes[_owner(name)] = sizes.get(_owner(name), 0) + 1
    whole: set[tuple[str, str]] = set()
    for (one, other), count in sorted(counts.items()):
        n, m = sizes.get(one, 0), sizes.get(other, 0)
        if count == (n * (n - 1) // 2 if one == other else n * m) and count > 1:
            whole.add((one, other))
            a, b = links_of(one), links_of(other)
            rules.append(Rule(a=a, b=b, reason=RuleReason.NEVER))
    rules += [
        Rule(a=a, b=b, reason=RuleReason.NEVER)
        for a, b in sorted(left_out)
        if (_owner(a), _owner(b)) not in whole
    ]
    return Rules(within=True, rules=tuple(rules))


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _owner(name: str) -> str:
    return name.partition("/")[0]
