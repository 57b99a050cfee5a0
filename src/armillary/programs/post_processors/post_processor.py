"""The contract of a post-processor, which makes a program for one kind of controller.

A post-processor is a value, as a format is: what the controller can do, and a function
that writes a `ControllerJob`, in which everything is checked and in the order of the
controller's axes. An installed package offers one by the entry point group
`armillary.post_processors`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, printable, quote
from armillary.model.unit import Unit
from armillary.programs.post_processors.instructions import (
    Pause,
    SetSignal,
    WaitForSignal,
)
from armillary.programs.post_processors.points import MotionPoints

__all__ = [
    "Axis",
    "ControllerJob",
    "JobStep",
    "Passage",
    "Ports",
    "PostProcessor",
    "decimal",
    "durations",
    "ports_that",
    "rounded",
]

Array = npt.NDArray[np.float64]
Port: TypeAlias = int | str
"""Of a digital input or output: a number, or a name, as controllers have them."""

WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Axis(msgspec.Struct, frozen=True):
    """An axis of a controller: its position is sign * q + offset.

    Attributes:
        joint: The joint that it is in the model.
        sign: 1, or -1 where the controller counts the other way.
        offset: What the controller shows where the model is at 0 [rad or m].
    """

    joint: str
    sign: float = 1.0
    offset: float = 0.0


class Ports(NamedTuple):
    """The ports of a controller by the names of signals.

    Attributes:
        outputs: Of those that it sets.
        inputs: Of those that it waits for.
    """

    outputs: Mapping[str, Port]
    inputs: Mapping[str, Port]


class Passage(NamedTuple):
    """A part of the motion without waits.

    Attributes:
        points: Where it goes, in positions of the controller's axes [rad or m].
        signals: What is set at which of the points, neither the first nor the last.
    """

    points: MotionPoints
    signals: tuple[tuple[int, SetSignal], ...]

    def at(self, k: int) -> list[SetSignal]:
        """Return what is set at a point."""
        return [signal for at, signal in self.signals if at == k]


def turning(units: Iterable[str]) -> tuple[bool, ...]:
    """Return whether axes of these units turn."""
    return tuple(unit != Unit.METRE.value for unit in units)


JobStep: TypeAlias = Passage | SetSignal | WaitForSignal | Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerJob:
    """What a post-processor writes.

    Attributes:
        name: Of the program.
        axes: Of the robot, then those outside of it.
        places: Which of the controller's axes those of the robot are, from 0 on; others
            are not there.
        units: The unit of each: `m`, `rad` or nothing.
        steps: What is done, in order.
        ports: Of signals.
        remarks: What the program assumes, a line each.
    """

    name: str
    axes: tuple[Axis, ...]
    places: tuple[int, ...]
    units: tuple[str, ...]
    steps: tuple[JobStep, ...]
    ports: Ports
    remarks: tuple[str, ...]

    @property
    def robot(self) -> int:
        """Return how many of the axes are of the robot."""
        return len(self.places)

    @property
    def is_turning(self) -> tuple[bool, ...]:
        """Return whether each axis turns, and does not slide."""
        return turning(self.units)

    @property
    def start(self) -> Array:
        """Return the positions at the start [rad or m], shape (n,)."""
        passages = (step for step in self.steps if isinstance(step, Passage))
        return next(passages).points.pieces[0, 0]

    def comments(self, mark: str) -> list[str]:
        """Return the remarks as lines of comment, of ASCII without control characters.

        mark: What begins a comment.
        """
        lines = (
            printable(line).encode("ascii", "backslashreplace").decode()
            for line in self.remarks
        )
        return [f"{mark} {line}".rstrip() for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostProcessor:
    """How programs of one language are made.

    Attributes:
        name: For the `language=` of a caller, and for messages.
        title: Whose controllers, in a few words.
        suffix: The ending of the file, lower case.
        degree: How the controller moves between points: `LINEAR`, `CUBIC` or `QUINTIC`.
        robot_axes: How many axes its robots have; None for any number, of any unit.
        may_lack_axes: Whether it also moves robots that lack some of these.
        may_set_in_motion: Whether it sets signals while the robot moves; if not, stops
            are made where they are set at rest.
        external_axes: How many others it moves with them, at most.
        longest_name: Characters of the name of a program.
        reserved: Names that no program can have, lower case, between spaces.
        is_single: Whether its numbers have 24 bits, as `rounded` rounds them.
        assumptions: What holds for each program, a sentence each; docs/handover.md
            says where that is written.
        check_port: Raise ModelError for a port that it does not have.
        write: Return the files of a program by their names, the named one last.
    """

    name: str
    title: str
    suffix: str
    degree: int
    robot_axes: int | None
    external_axes: int
    longest_name: int
    reserved: str = ""
    may_lack_axes: bool = False
    may_set_in_motion: bool = True
    is_single: bool
    assumptions: tuple[str, ...]
    check_port: Callable[[Port], None]
    write: Callable[[ControllerJob], Mapping[str, str]]

    def check_name(self, name: str) -> None:
        """Raise ModelError where a program cannot have a name."""
        if not (
            WORD.fullmatch(name)
            and len(name) <= self.longest_name
            and name.lower() not in self.reserved.split()
        ):
            raise ModelError(
                f"A program of {self.name} has the name of its file, and cannot be "
                f"called {quote(name)}: it takes a letter, then letters, digits and "
                f"underscores, at most {self.longest_name}, and no word of the "
                "language. Name the file accordingly."
            )

    def rounding(self, q: Array, is_turning: Iterable[bool]) -> Array:
        """Return how far numbers of the controller are from positions, shape (n,).

        Args:
            q: Positions of axes [rad or m], shape (k, n).
            is_turning: Whether each turns.
        """
        if not self.is_single:
            return np.zeros_like(q[0])
        factors: Array = _factors(is_turning)
        step: Any = np.spacing((np.abs(q).max(axis=0) * factors).astype(np.float32))
        return np.asarray(0.5 * step / factors, np.float64)


def ports_that(are: str, fits: Callable[[Port], object]) -> Callable[[Port], None]:
    """Return what raises ModelError for ports that a controller does not have.

    Args:
        are: What they are, the begin of the message.
        fits: Whether a port is one of them.
    """

    def check(port: Port) -> None:
        given: Any = port
        is_port = isinstance(given, int | str) and not isinstance(given, bool)
        if not (is_port and fits(port)):
            raise ModelError(f"{are}, not {quote(port)}.")

    return check


def _factors(is_turning: Iterable[bool]) -> Array:
    """Return degrees in a radian, millimetres in a metre, of axes, shape (n,)."""
    return np.array([180.0 / math.pi if turns else 1000.0 for turns in is_turning])


def rounded(q: Array, is_turning: Iterable[bool]) -> npt.NDArray[np.float32]:
    """Return positions in degrees and millimetres, of 24 bits.

    Args:
        q: Positions [rad or m], shape (..., n).
        is_turning: Whether each of them turns.
    """
    scaled: Array = q * _factors(is_turning)
    return scaled.astype(np.float32) + np.float32(0.0)  # no -0


def decimal(number: float | np.floating) -> str:
    """Return the shortest text that is read as the same number, without exponent."""
    return np.format_float_positional(number, trim="0")


def durations(times: Array) -> npt.NDArray[np.float32]:
    """Return the durations between instants, of 24 bits, whose errors do not add up."""
    made = np.empty(len(times) - 1, np.float32)
    now = float(times[0])
    for k, end in enumerate(times[1:].tolist()):
        made[k] = end - now
        now += float(made[k])
    return made
