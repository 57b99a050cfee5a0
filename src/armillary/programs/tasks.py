"""Tasks of a program while it runs, and what they wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from armillary.programs.asked import AskedAnything
from armillary.programs.moves import Following
from armillary.programs.steps import Value
from armillary.programs.tracks import Track

__all__ = ["BranchesEnd", "Free", "Going", "Lock", "Signal", "Task", "Until", "Waits"]


class Until(NamedTuple):
    """Goes on at an instant [s]."""

    time: float


class Signal(NamedTuple):
    """Goes on when a signal has a value."""

    name: str
    value: Value
    deadline: float


class Free(NamedTuple):
    """Goes on when the task has a zone."""

    zone: str


class BranchesEnd(NamedTuple):
    """Goes on when branches of a task have ended."""

    branches: tuple[Task, ...]


Waits = Until | Signal | Free | BranchesEnd
Going = Iterator[Waits | AskedAnything]
"""What a task waits for, one after the other, and what it asks for between."""


@dataclass(eq=False)
class Task:
    """A task while it runs.

    Attributes:
        name: Its name; that of a branch is the name of its task.
        row: Its name in charts, which tells branches apart.
        track: The motions of its joints.
        going: What it does next.
        waits: What it waits for; None where it can go on, or has ended.
        place: Where its present step is.
        following: What its robot follows.
        has_ended: Whether all its steps are done.
    """

    name: str
    row: str
    track: Track
    going: Going
    waits: Waits | None = None
    place: str = ""
    following: Following | None = None
    has_ended: bool = False


@dataclass(eq=False)
class Lock:
    """A zone: who is in it, how many times, who waits, and which span left it last."""

    owner: str = ""
    inside: int = 0
    queue: deque[str] = field(default_factory=deque[str])
    left: int | None = None
