"""Every rule of a legal manipulator, each with an id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from armillary.errors import ModelError, quote, suggestion
from armillary.model.joint_dynamics import NO_DYNAMICS
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.mechanism import Mechanism
from armillary.model.parents import cycles, endless

MOST_REPORTED = 20


class ModelProblem(NamedTuple):
    """A broken rule.

    Attributes:
        rule: Its id.
        subject: Name of the link, joint or frame it is about.
        message: What is wrong, and how to fix it.
    """

    rule: str
    subject: str
    message: str


def check_manipulator(name: str, links: Sequence[Link]) -> None:
    """Check every rule.

    Raises:
        ModelError: One or more are broken; the message lists them.
    """
    problems = list(problems_of(links))
    if not name or "/" in name:
        text = f"A manipulator's name is {quote(name)}; it needs one, without '/'."
        problems.insert(0, ModelProblem("name", name, text))
    if not problems:
        return
    lines = [f"[{problem.rule}] {problem.message}" for problem in problems]
    if len(lines) > MOST_REPORTED:
        lines[MOST_REPORTED:] = [f"... and {len(lines) - MOST_REPORTED} more."]
    heading = f"Manipulator {quote(name)} breaks {len(problems)} rule(s):"
    raise ModelError("\n  ".join([heading, *lines]))


def problems_of(links: Sequence[Link]) -> Iterator[ModelProblem]:
    """Yield the broken rules of a tree of links; later rules need the earlier ones."""
    for rules in (NAMING, STRUCTURE):
        problems = [problem for rule in rules for problem in rule(links)]
        yield from problems
        if problems:
            return


def _link_names(links: Sequence[Link]) -> Iterator[ModelProblem]:
    seen: set[str] = set()
    for link in links:
        if not link.name:
            yield ModelProblem("link-name", "", "A link has no name.")
        for name in (link.name, *(frame.name for frame in link.frames)):
            if name in seen:
                text = f"Two links or frames are called {quote(name)}; rename one."
                yield ModelProblem("unique-frame", name, text)
            seen.add(name)


def _joint_names(links: Sequence[Link]) -> Iterator[ModelProblem]:
    seen: set[str] = set()
    for link in links:
        if link.parent is None:
            continue
        if link.coordinate in seen:
            text = f"Two joints are called {quote(link.coordinate)}; rename one."
            yield ModelProblem("unique-joint", link.coordinate, text)
        seen.add(link.coordinate)


def _one_base(links: Sequence[Link]) -> Iterator[ModelProblem]:
    bases = [link for link in links if link.parent is None]
    if not links:
        yield ModelProblem("base", "", "It has no links; it needs at least a base.")
    elif not bases:
        text = "No link is the base: all have parents, so they form a cycle."
        yield ModelProblem("base", links[0].name, text)
    for extra in bases[1:]:
        text = (
            f"{quote(bases[0].name)} and {quote(extra.name)} both have no parent; a "
            "manipulator has one base. Give one of them a parent, or make it a "
            "manipulator of its own."
        )
        yield ModelProblem("one-base", extra.name, text)
    for base in bases:
        if base.moves:
            text = (
                f"The base {quote(base.name)} has a moving joint, but nothing to move "
                "in; put a fixed base link in front of it."
            )
            yield ModelProblem("fixed-base", base.name, text)


def _parents(links: Sequence[Link]) -> Iterator[ModelProblem]:
    names = {link.name for link in links}
    for link in links:
        if link.parent is not None and link.parent not in names:
            text = (
                f"Link {quote(link.name)} has the parent {quote(link.parent)}, which "
                f"does not exist. {suggestion(link.parent, names)}"
            )
            yield ModelProblem("parent", link.name, text.rstrip())


def _reached(links: Sequence[Link]) -> Iterator[ModelProblem]:
    """Find links that no path from the base reaches: they form a cycle."""
    parents = {link.name: link.parent for link in links if link.parent is not None}
    for name, *_ in cycles(parents):
        text = f"Link {quote(name)} is its own ancestor; the links form a cycle."
        yield ModelProblem("cycle", name, text)


def _couplings(links: Sequence[Link]) -> Iterator[ModelProblem]:
    if all(link.coupling is None for link in links):
        return
    moving = _coordinates(links)
    followed = (link.coupling.of if link.coupling else "" for link in links)
    circling = endless([moving.get(name, -1) for name in followed])
    for k, link in enumerate(links):
        coupling = link.coupling
        if coupling is None:
            continue
        if not link.has_coordinate:
            why = "is a mechanism" if link.moves else "is fixed"
            text = f"Joint {quote(link.coordinate)} {why}, so it cannot follow."
            yield ModelProblem("coupling-fixed", link.coordinate, text)
        elif coupling.of not in moving:
            text = (
                f"Joint {quote(link.coordinate)} follows {quote(coupling.of)}, which "
                "is not a moving joint of this manipulator. "
                f"{suggestion(coupling.of, moving)}"
            )
            yield ModelProblem("coupling-unknown", link.coordinate, text.rstrip())
        elif k in circling:
            text = f"Joint {quote(link.coordinate)} follows itself, in a cycle."
            yield ModelProblem("coupling-cycle", link.coordinate, text)


def _dynamics(links: Sequence[Link]) -> Iterator[ModelProblem]:
    for link in links:
        if link.dynamics == NO_DYNAMICS or link.has_coordinate:
            continue
        why = "is a mechanism" if link.moves else "is fixed"
        text = (
            f"Joint {quote(link.coordinate)} {why}, so it has no coordinate for "
            "dynamics; give them to a joint that has one."
        )
        yield ModelProblem("dynamics-fixed", link.coordinate, text)


def _inputs(links: Sequence[Link]) -> Iterator[ModelProblem]:
    """Compare what mechanisms take with what they are given."""
    takers = [k for k in links if k.inputs or isinstance(k.joint, Mechanism)]
    known = _coordinates(links) if takers else {}
    for link in takers:
        name, joint = link.coordinate, link.joint
        if not isinstance(joint, Mechanism):
            if not isinstance(joint, OpaqueJoint):
                kind = type(joint).__name__
                text = f"Joint {quote(name)} has inputs, but a {kind} takes none."
                yield ModelProblem("inputs", name, text)
            continue
        units = joint.input_units
        if len(link.inputs) != len(units):
            text = (
                f"Joint {quote(name)} is a {type(joint).__name__}, which takes "
                f"{len(units)} coordinates; inputs names {len(link.inputs)} joints."
            )
            yield ModelProblem("inputs", name, text)
            continue
        for each, unit in zip(link.inputs, units, strict=True):
            if each not in known:
                text = (
                    f"Joint {quote(name)} takes the coordinate of {quote(each)}, which "
                    "is not a moving joint of this manipulator. "
                    f"{suggestion(each, known)}"
                )
                yield ModelProblem("inputs-unknown", name, text.rstrip())
            elif links[known[each]].joint.unit is not unit:
                given = links[known[each]].joint.unit
                text = (
                    f"Joint {quote(name)} takes the coordinate of {quote(each)} as "
                    f"{unit.name}, but it is {given.name}."
                )
                yield ModelProblem("inputs", name, text)


def _coordinates(links: Sequence[Link]) -> dict[str, int]:
    """Return the position of the link behind each joint with a coordinate."""
    return {link.coordinate: k for k, link in enumerate(links) if link.has_coordinate}


Rule = Callable[[Sequence[Link]], Iterator[ModelProblem]]

NAMING: tuple[Rule, ...] = (_link_names, _joint_names, _one_base, _parents)
STRUCTURE: tuple[Rule, ...] = (_reached, _couplings, _dynamics, _inputs)
