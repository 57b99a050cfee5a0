"""How links and joints make one tree, or why they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.names import Guesses
from armillary.formats.urdf.bodies import Body
from armillary.formats.urdf.hinges import Hinge

__all__ = ["check_names", "depth_first", "root_of"]

MOST_SHOWN: Final = 10


def check_names(
    bodies: Sequence[Body],
    hinges: Sequence[Hinge],
    guesses: Guesses,
    report: Report,
) -> bool:
    """Report names that are taken, and links that joints name but that do not exist.

    Returns whether every link and both ends of every joint have a right name.
    """
    before = report.count(Severity.ERROR)
    _check_unique("link", ((body.name, body.place) for body in bodies), report)
    _check_unique("joint", ((hinge.name, hinge.place) for hinge in hinges), report)
    known = {body.name for body in bodies}
    for hinge in hinges:
        report.raise_if_many()
        for end, name in (("parent", hinge.parent), ("child", hinge.child)):
            if name and name not in known:
                report.error(
                    hinge.places[end],
                    "unknown-link",
                    f"the {end} of joint {quote(hinge.name)} is {quote(name)}, which "
                    "does not exist",
                    hint=guesses.hint(name, known),
                )
    all_given = "" not in known and all(
        hinge.parent and hinge.child for hinge in hinges
    )
    return all_given and report.count(Severity.ERROR) == before


def _check_unique(
    kind: str, named: Iterable[tuple[str, Place]], report: Report
) -> None:
    first: dict[str, Place] = {}
    for name, place in named:
        report.raise_if_many()
        taken = first.setdefault(name, place)
        if name and taken is not place:
            report.error(
                place,
                "repeated-name",
                f"a {kind} is called {quote(name)} already, at line {taken.line}",
                hint="Rename one.",
            )


def root_of(
    bodies: Sequence[Body], hinges: Sequence[Hinge], report: Report
) -> str | None:
    """Return the name of the link that nothing carries and that carries all others.

    Report links with two parents, more than one root, and cycles; then it is None.
    """
    carrier: dict[str, Hinge] = {}
    is_tree = True
    for hinge in hinges:
        first = carrier.setdefault(hinge.child, hinge)
        if first is not hinge:
            is_tree = False
            report.error(
                hinge.place,
                "two-parents",
                f"joint {quote(hinge.name)} carries link {quote(hinge.child)}, which "
                f"joint {quote(first.name)} of line {first.place.line} carries already",
                hint="A link has one parent; URDF holds no closed loops.",
            )
    roots = [body for body in bodies if body.name not in carrier]
    is_tree &= not _tell_cycles(bodies, carrier, report)
    if len(roots) > 1:
        names = ", ".join(quote(body.name) for body in roots[:MOST_SHOWN])
        more = f" and {len(roots) - MOST_SHOWN} more" if len(roots) > MOST_SHOWN else ""
        report.error(
            roots[1].place,
            "two-roots",
            f"{len(roots)} links have no parent, but a robot has one root: "
            f"{names}{more}",
            hint="Connect them by joints; a fixed one will do.",
        )
    return roots[0].name if is_tree and len(roots) == 1 else None


def _tell_cycles(
    bodies: Sequence[Body], carrier: Mapping[str, Hinge], report: Report
) -> bool:
    """Report each cycle of links once; return whether there are any."""
    rooted: set[str] = set()
    found = False
    for body in bodies:
        name = body.name
        path: dict[str, None] = {}
        while name in carrier and name not in rooted and name not in path:
            path[name] = None
            name = carrier[name].parent
        if name in path:
            found = True
            names = list(path)
            cycle = [*names[names.index(name) :], name][::-1]
            shown = " -> ".join(map(quote, cycle[:MOST_SHOWN]))
            report.error(
                carrier[name].place,
                "cycle",
                f"link {quote(name)} carries itself: {shown}"
                + (" -> ..." if len(cycle) > MOST_SHOWN else ""),
            )
        rooted.update(path)
    return found


def depth_first(root: str, children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return all names below a root: parents first, children in their order."""
    waiting, found = [root], list[str]()
    while waiting:
        name = waiting.pop()
        found.append(name)
        waiting.extend(reversed(children.get(name, ())))
    return found
