"""Why a run cannot go on: circles of tasks that wait, and signals that never come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armillary.errors import quote
from armillary.programs.ending import RunReason
from armillary.programs.program import Program
from armillary.programs.signals import Signals
from armillary.programs.steps import Set
from armillary.programs.tasks import Free, Lock, Signal, Task

__all__ = ["why_stuck"]


def why_stuck(
    program: Program,
    waiting: Sequence[Task],
    locks: Mapping[str, Lock],
    signals: Signals,
) -> tuple[Task, RunReason, str]:
    """Return the task with which a run ends in which nothing more can happen, and why.

    Args:
        program: What runs.
        waiting: The tasks that wait, at least one.
        locks: The zones by their names.
        signals: What signals hold.
    """
    circle = _circle(waiting, locks)
    if circle:
        text = ", ".join(
            f"{quote(task.name)} waits for the zone {quote(zone)} of "
            f"{quote(locks[zone].owner)}"
            for task, zone in circle
        )
        return circle[0][0], RunReason.DEADLOCK, text
    task = next((t for t in waiting if isinstance(t.waits, Signal)), waiting[0])
    waits = task.waits
    if isinstance(waits, Signal):
        setters = [
            quote(each.name)
            for each in waiting
            if each is not task and _may_set(program, each, waits.name)
        ]
        if setters:
            return (
                task,
                RunReason.DEADLOCK,
                f"{quote(task.name)} waits for the signal {quote(waits.name)}; "
                f"{', '.join(setters)} would set it, and waits, too",
            )
        return (
            task,
            RunReason.NEVER,
            f"nothing makes the signal {quote(waits.name)} {waits.value!r}"
            + signals.missed(waits.name, waits.value),
        )
    zone = waits.zone if isinstance(waits, Free) else ""
    why = f"the zone {quote(zone)} is never left by {quote(locks[zone].owner)}"
    return task, RunReason.NEVER, why


def _circle(
    waiting: Sequence[Task], locks: Mapping[str, Lock]
) -> list[tuple[Task, str]]:
    """Return tasks of which each waits for a zone of the next one."""
    wanted = {
        task.name: (task, task.waits.zone)
        for task in waiting
        if isinstance(task.waits, Free)
    }
    for first in wanted:
        name, chain = first, list[tuple[Task, str]]()
        while name in wanted and len(chain) <= len(wanted):
            task, zone = wanted[name]
            chain.append((task, zone))
            name = locks[zone].owner
            if name == first:
                return chain
    return []


def _may_set(program: Program, task: Task, signal: str) -> bool:
    """Return whether steps of a task set a signal."""
    return any(
        isinstance(step, Set) and step.signal == signal
        for place, step in program.walk()
        if place.startswith((f"{task.name}[", "routine "))
    )
