"""The rules that a manipulator in a file breaks, and the links that break them."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.model.link import Link
from armillary.model.validate import Problem, problems_of

__all__ = ["broken_rules"]


def broken_rules(links: Sequence[Link]) -> list[tuple[Problem, int | None]]:
    """Return the broken rules, each with the place of the last link it is about."""
    problems = list(problems_of(links))
    if not problems:
        return []
    by_frame: dict[str, int] = {}
    by_joint: dict[str, int] = {}
    for k, link in enumerate(links):
        by_joint[link.coordinate] = k
        for name in (link.name, *(frame.name for frame in link.frames)):
            by_frame[name] = k
    return [
        (
            problem,
            (by_joint if _is_of_joint(problem) else by_frame).get(problem.subject),
        )
        for problem in problems
    ]


def _is_of_joint(problem: Problem) -> bool:
    return problem.rule == "unique-joint" or problem.rule.startswith("coupling")
