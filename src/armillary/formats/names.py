"""Names in files: free ones, likely ones, repeated ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.model.link import Link
from armillary.model.validate import ModelProblem, problems_of

if TYPE_CHECKING:  # other formats than XML have names, too
    from armillary.formats.xml import Element

__all__ = [
    "FreeNames",
    "broken_rules",
    "check_unique",
    "depth_first",
    "shown_cycle",
]

MOST_SHOWN: Final = 10


class FreeNames:
    """Derive names that are not taken yet."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def derive(self, name: str) -> str:
        """Return `name`, or `name_2`, `name_3` and so on where that is taken."""
        free, count = name, 1
        while free in self._taken:
            count += 1
            free = f"{name}_{count}"
        self._taken.add(free)
        return free


def check_unique(
    kind: str, named: Iterable[tuple[str, Element]], report: Report
) -> None:
    """Report an error for each name that is given a second time.

    kind: What the names are of, for messages: `"link"`.
    named: Each name, and the element that gives it.
    """
    first: dict[str, Element] = {}
    for name, element in report.bounded(named):
        taken = first.setdefault(name, element)
        if name and taken is not element:
            other = taken.path != element.path
            where = taken.place if other else f"line {taken.line}"
            report.error(
                element.place,
                "repeated-name",
                f"a {kind} is called {quote(name)} already, at {where}",
                hint="Rename one.",
            )


def shown_cycle(cycle: Sequence[str]) -> str:
    """Return a cycle as messages show it, its first name at both ends."""
    closed = [*cycle, cycle[0]]
    more = " -> ..." if len(closed) > MOST_SHOWN else ""
    return " -> ".join(map(quote, closed[:MOST_SHOWN])) + more


def depth_first(root: str, children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return all names below a root: parents first, children in their order."""
    waiting, ordered = [root], list[str]()
    while waiting:
        name = waiting.pop()
        ordered.append(name)
        waiting.extend(reversed(children.get(name, ())))
    return ordered


def broken_rules(links: Sequence[Link]) -> list[tuple[ModelProblem, int | None]]:
    """Return the rules of manipulators that links break.

    Each comes with the index of the last link that it is about, None where there is no
    such link.
    """
    problems = list(problems_of(links))
    if not problems:
        return []
    by_joint = {link.coordinate: k for k, link in enumerate(links)}
    by_frame = {
        name: k
        for k, link in enumerate(links)
        for name in (link.name, *(frame.name for frame in link.frames))
    }
    return [
        (
            problem,
            (by_joint if _is_of_joint(problem) else by_frame).get(problem.subject),
        )
        for problem in problems
    ]


def _is_of_joint(problem: ModelProblem) -> bool:
    return problem.rule == "unique-joint" or problem.rule.startswith("coupling")
