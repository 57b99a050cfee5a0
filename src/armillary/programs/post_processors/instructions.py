"""What a program does beside moving: neutral instructions, each at an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote, unknown
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import in_order

__all__ = [
    "NEAR",
    "Instruction",
    "MotionSpan",
    "Pause",
    "SetSignal",
    "WaitForSignal",
    "grip_signals",
    "spans_of",
    "with_stops",
]

Array = npt.NDArray[np.float64]

AT_REST: Final = 1e-6
"""Rates below which joints stand [m/s or rad/s]."""


NEAR: Final = 1e-7
"""Instants within this time of each other count as one [s]."""


class SetSignal(msgspec.Struct, frozen=True, kw_only=True, tag="set"):
    """Set a digital output.

    Attributes:
        time: When, in the time of the motion [s].
        signal: Its name.
        value: What it is then.
    """

    time: float
    signal: str
    value: bool = True


class WaitForSignal(msgspec.Struct, frozen=True, kw_only=True, tag="wait"):
    """Wait until a digital input has a value; the robot stands.

    Attributes:
        time: When, in the time of the motion, which does not go on meanwhile [s].
        signal: Its name.
        value: What is waited for.
    """

    time: float
    signal: str
    value: bool = True


class Pause(msgspec.Struct, frozen=True, kw_only=True, tag="pause"):
    """Stand for a while.

    Attributes:
        time: When, in the time of the motion, which does not go on meanwhile [s].
        duration: How long [s].
    """

    time: float
    duration: float


Instruction: TypeAlias = SetSignal | WaitForSignal | Pause


class MotionSpan(NamedTuple):
    """A part of a motion without waits.

    Attributes:
        begin: When it begins [s].
        end: When it ends [s].
        signals: What is set meanwhile, in order of time, neither at its begin nor end.
    """

    begin: float
    end: float
    signals: tuple[SetSignal, ...]


def grip_signals(
    motion: Motion,
    grips: Mapping[str, str | None],
    holders: Sequence[str | None] | None = None,
) -> list[list[SetSignal]]:
    """Return the signals of each grip and release of a motion, in their order.

    Args:
        motion: What has the attachments.
        grips: The signal of each frame that grips: it is on while the frame holds a
            part; None where the gripper has no signal.
        holders: The frame that has the part before each of these, where more is known
            than the motion says: other robots may have gripped it.

    Raises:
        UnknownName: A frame that grips is not named, or does not exist.
        ModelError: A part is released that nothing has gripped.
    """
    if motion.start is not None:
        cell = motion.start.cell
        grips = {cell.qualified(name): signal for name, signal in grips.items()}
    held: dict[str, str] = {}
    made: list[list[SetSignal]] = []
    for k, event in enumerate(motion.attachments):
        before = held.pop(event.part, None) if holders is None else holders[k]
        if event.by is not None:
            held[event.part] = event.by
        elif before is None and motion.start is not None:
            before = motion.start.parent(event.part)
        if event.by is None and before is None:
            raise ModelError(
                f"Part {quote(event.part)} is released at {event.time:g} s, and it is "
                "not known what held it: give the motion a cell by motion.bound(cell)."
            )
        signals: list[SetSignal] = []
        # A part that another frame takes is let go by the one before.
        for holder, value in ((event.by, True), (before, False)):
            if holder is None:
                continue
            if holder not in grips:
                raise unknown(
                    "gripping frame",
                    holder,
                    sorted(grips),
                    hint=f"The motion grips or releases {quote(event.part)} by it at "
                    f"{event.time:g} s: "
                    f"grips={{{quote(holder)}: 'a signal', or None}}.",
                )
            signal = grips[holder]
            if signal is not None:
                signals.append(SetSignal(time=event.time, signal=signal, value=value))
        made.append(signals)
    return made


def with_stops(
    motion: Motion, instructions: Sequence[Instruction]
) -> list[Instruction]:
    """Return instructions with a stop where a signal is set while the motion rests."""
    stops = [
        Pause(time=each.time, duration=0.0)
        for each in instructions
        if isinstance(each, SetSignal)
        and 0.0 <= each.time <= motion.duration
        and np.abs(motion.at(each.time).qd).max() <= AT_REST
    ]
    return [*stops, *instructions]


def spans_of(
    motion: Motion, instructions: Sequence[Instruction]
) -> list[MotionSpan | Instruction]:
    """Return the spans of a motion, and what is done between them, in order.

    Raises:
        ModelError: An instruction is not within the motion, or waits while it moves.
    """
    steps: list[MotionSpan | Instruction] = []
    signals: list[SetSignal] = []
    begin = 0.0

    def close(end: float) -> None:
        nonlocal signals, begin
        if end > begin + NEAR:
            inside = tuple(each for each in signals if each.time < end - NEAR)
            steps.append(MotionSpan(begin, end, inside))
            steps.extend(signals[len(inside) :])
            signals, begin = [], end

    for each in in_order(instructions):
        _check(motion, each)
        if not isinstance(each, SetSignal):
            close(each.time)
            steps.append(each)
        elif each.time > begin + NEAR:
            signals.append(each)
        else:
            steps.append(each)
    close(motion.duration)
    return [*steps, *signals]


def _check(motion: Motion, instruction: Instruction) -> None:
    time = instruction.time
    if not 0.0 <= time <= motion.duration:
        raise ModelError(
            f"An instruction is at {time:g} s, and the motion is from 0 to "
            f"{motion.duration:g} s."
        )
    if isinstance(instruction, SetSignal):
        return
    if isinstance(instruction, Pause) and not 0.0 <= instruction.duration < np.inf:
        raise ModelError(
            f"A pause takes a time [s], at least 0, not {instruction.duration:g}."
        )
    rates: Any = np.abs(motion.at(time).qd)
    if rates.max() > AT_REST:
        k = int(np.argmax(rates))
        name = motion.joint_names[k] if motion.joint_names else f"q{k}"
        raise ModelError(
            f"The program waits at {time:g} s, where joint {quote(name)} moves at "
            f"{rates[k]:g} m/s or rad/s. Let the motion rest there: motion.then(..., "
            "pause=...)."
        )
