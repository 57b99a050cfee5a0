"""Tasks of a program while it runs, and what they wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from armillary.programs.moves import Following
from armillary.programs.steps import Value
from armillary.programs.tracks import Track

__all__ = ["Free", "Lock", "Signal", "Task", "Until", "Waits"]


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


Waits = Until | Signal | Free


@dataclass(eq=False)
class Task:
    """A task while it runs.

    Attributes:
        name: Its name.
        track: The motions of its joints.
        going: What it does next.
        waits: What it waits for; None where it can go on, or has ended.
        place: Where its present step is.
        following: What its robot follows.
        has_ended: Whether all its steps are done.
    """

    name: str
    track: Track
    going: Iterator[Waits]
    waits: Waits | None = None
    place: str = ""
    following: Following | None = None
    has_ended: bool = False


@dataclass(eq=False)
class Lock:
    """A zone: who is in it, who waits, and which span left it last."""

    owner: str = ""
    queue: deque[str] = field(default_factory=deque[str])
    left: int | None = None
