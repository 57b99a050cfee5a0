"""Hand a motion over to the controller of a robot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, ModelError, quote, unknown
from armillary.kernel.arguments import positive_number
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.programs.post_processors.instructions import (
    Instruction,
    MotionSpan,
    Pause,
    SetSignal,
    grip_signals,
    spans_of,
    with_stops,
)
from armillary.programs.post_processors.points import levers_of, points_of
from armillary.programs.post_processors.post_processor import (
    Axis,
    ControllerJob,
    JobStep,
    Passage,
    Port,
    Ports,
    PostProcessor,
    turning,
)
from armillary.programs.post_processors.registry import post_processor
from armillary.replaced_file import replacing
from armillary.trajectories.motion import Motion

__all__ = ["HandedOver", "hand_over"]

Array = npt.NDArray[np.float64]

TOLERANCE: Final = 1e-6
"""How far the tool may be from the motion by default [m, or rad of a joint]."""

ROUNDED: Final = 0.8
"""The greatest part of a tolerance that numbers of 24 bits may take."""

LIMIT_ROUNDING: Final = 1e-6
"""Part of a limit by which rounding may exceed it."""

STANDS: Final = 1e-12
"""By how much a joint may move that the program does not have [m or rad]."""


class HandedOver(NamedTuple):
    """What was written.

    Attributes:
        files: Their paths, the named one last.
        points: How many points the program has.
        deviation: A bound of how far the tool [m], or joints [m or rad], are from the
            motion where the controller does as the language is stated to.
        shortest: The shortest time between two points [s].
        duration: How long it takes, without waiting for signals [s].
        assumptions: What the program assumes, a line each; it has them at its head.
    """

    files: tuple[Path, ...]
    points: int
    deviation: float
    shortest: float
    duration: float
    assumptions: tuple[str, ...]


def hand_over(  # noqa: PLR0913
    cell: Workcell,
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    language: str | None = None,
    axes: Sequence[str | Axis | None] | None = None,
    external: Sequence[str | Axis] = (),
    elsewhere: Sequence[str] = (),
    tool: str | None = None,
    tolerance: float | None = None,
    instructions: Iterable[Instruction] = (),
    grips: Mapping[str, str | None] | None = None,
    outputs: Mapping[str, Port] | None = None,
    inputs: Mapping[str, Port] | None = None,
    plugins: Iterable[str] = (),
) -> HandedOver:
    """Write a motion as a program for the controller of a robot.

    docs/handover.md says what each language does with it, and what it assumes.

    Args:
        cell: The cell that moves.
        motion: The motion of its joints.
        path: The file: `.script` for URScript, `.src` for KRL, with a `.dat` beside it,
            `.mod` for RAPID, `.csv` and `.json` for rows of any controller. Its name is
            that of the program.
        language: The name of a post-processor, where a plug-in offers it.
        axes: Joints of the robot in the order of the controller's axes, or an `Axis`
            with sign and offset of each, and None for each axis that the robot lacks;
            by default those of the motion that are neither `external` nor `elsewhere`,
            in their order.
        external: Joints that it moves with the robot, such as those of rails.
        elsewhere: Joints that other controllers move, at the same times.
        tool: The frame whose way must be kept, such as `tool0`; by default that of each
            joint.
        tolerance: How far the tool may be from it [m], or each joint [m or rad]; by
            default 1e-6, or more where numbers of the language round too much for
            that. Controllers that interpolate linearly get many points so: 1e-4 is
            what most robots repeat.
        instructions: `SetSignal`, `WaitForSignal` and `Pause`, each with its time.
        grips: The signal of each frame that grips, which is on while it holds a part;
            None where it has none. Needed where the motion has attachments.
        outputs: The port of each signal that is set.
        inputs: The port of each signal that is waited for.
        plugins: Installed packages that may be imported for `language`.

    Raises:
        UnknownName: A joint, frame, signal or language does not exist.
        ModelError: The controller cannot do this: its axes, a name, a number that is
            not finite, a limit of the model that is exceeded, a wait in motion.
        StateError: The motion was made for another cell.
        FormatError: A file cannot be written.
        PluginError: A plug-in is broken.
    """
    made_by = post_processor(path, language, plugins)
    target = Path(path)
    made_by.check_name(target.stem)
    whole = _bound(cell, motion)
    _check_limits(cell, whole)
    moved = _moved(made_by, whole, axes, external, elsewhere, tool)
    steps = [*instructions, *chain.from_iterable(grip_signals(whole, grips or {}))]
    ports = Ports(
        _ports(made_by, "outputs", outputs, _named(steps, SetSignal)),
        _ports(made_by, "inputs", inputs, _named(steps, None)),
    )
    if not made_by.may_set_in_motion:
        steps = with_stops(moved.motion, steps)
    written, rounding = _written(made_by, moved, steps, tolerance)
    passages = [step.points for step in written if isinstance(step, Passage)]
    if not passages:
        raise ModelError("This motion takes no time, so that there is nothing to do.")
    deviation = rounding + max(points.deviation for points in passages)
    count = sum(len(points.times) for points in passages)
    remarks = _remarks(cell, made_by, moved, count, deviation)
    job = ControllerJob(
        name=target.stem,
        axes=moved.axes,
        places=moved.places,
        units=moved.motion.units,
        steps=tuple(written),
        ports=ports,
        remarks=remarks,
    )
    files = _write(target, made_by.write(job))
    pauses = sum(step.duration for step in written if isinstance(step, Pause))
    return HandedOver(
        files=files,
        points=count,
        deviation=deviation,
        shortest=min(float(np.diff(points.times).min()) for points in passages),
        duration=moved.motion.duration + pauses,
        assumptions=remarks,
    )


class _Moved(NamedTuple):
    """What a controller moves.

    Attributes:
        motion: The motion of its joints.
        axes: They, in the order of the motion.
        places: Where controllers have them.
        tool: The frame whose way must be kept, None for that of each joint.
        levers: How far each joint moves it at most per unit, shape (n,); None likewise.
    """

    motion: Motion
    axes: tuple[Axis, ...]
    places: tuple[int, ...]
    tool: str | None
    levers: Array | None


def _moved(
    made_by: PostProcessor,
    whole: Motion,
    axes: Sequence[str | Axis | None] | None,
    external: Sequence[str | Axis],
    elsewhere: Sequence[str],
    tool: str | None,
) -> _Moved:
    """Return what the controller moves of a motion; see `hand_over`."""
    state: Any = whole.start
    cell: Workcell = state.cell
    lists = {"axes": axes, "external": external, "elsewhere": elsewhere}
    for what, given in lists.items():
        if isinstance(given, str):
            raise ModelError(f"{what}= is a list of joints, not {quote(given)}.")
    if axes is not None:
        axes = [axis if axis is None else _axis(axis, cell, whole) for axis in axes]
    others = [_axis(axis, cell, whole) for axis in external]
    left = [_axis(name, cell, whole).joint for name in elsewhere]
    robot, others, places = _axes(made_by, whole, axes, others, left)
    chosen = (*robot, *others)
    moved = _of_axes(whole, chosen)
    levers = None
    if tool is not None:
        order = [whole.joint_names.index(name) for name in moved.joint_names]
        levers = levers_of(whole, state, tool)[order]
    return _Moved(moved, chosen, places, tool, levers)


def _written(
    made_by: PostProcessor,
    moved: _Moved,
    steps: list[Instruction],
    tolerance: float | None,
) -> tuple[list[JobStep], float]:
    """Return what the controller does, one after the other, and what rounding adds."""
    motion, levers = moved.motion, moved.levers
    turns = turning(motion.units)
    lost = made_by.rounding(_positions(motion.q, moved.axes), turns)
    rounding = float(lost.max() if levers is None else lost @ levers)
    kept = _tolerance(made_by, tolerance, rounding) - rounding
    written: list[JobStep] = [
        _passage(made_by, motion, each, levers, kept, moved.axes)
        if isinstance(each, MotionSpan)
        else each
        for each in spans_of(motion, steps)
    ]
    return written, rounding


def _remarks(
    cell: Workcell, made_by: PostProcessor, moved: _Moved, count: int, deviation: float
) -> tuple[str, ...]:
    """Return the lines at the head of a program: what it is of, and what it assumes."""
    motion, tool = moved.motion, moved.tool
    return (
        f"Made by armillary of a motion of the cell {cell.name}",
        f"content {motion.digest or 'not known'}",
        f"{motion.duration:.6f} s, {count} points; deviation at most {deviation:.3g} "
        + (f"m of {tool}" if tool is not None else "m or rad of each joint"),
        *_axis_lines(moved.axes, moved.places, turning(motion.units)),
        *made_by.assumptions,
    )


def _tolerance(made_by: PostProcessor, given: float | None, rounding: float) -> float:
    """Return the tolerance, of which rounding takes a part."""
    if given is None:
        return max(TOLERANCE, rounding / ROUNDED)
    tolerance = positive_number("tolerance", given)
    if rounding > ROUNDED * tolerance:
        raise ModelError(
            f"Numbers of {made_by.name} have 24 bits, which moves the tool by up to "
            f"{rounding:.2g}: a tolerance of {tolerance:g} cannot be kept. Leave out "
            f"tolerance=, which then is {rounding / ROUNDED:.3g}."
        )
    return tolerance


def _passage(
    made_by: PostProcessor,
    motion: Motion,
    span: MotionSpan,
    levers: Array | None,
    tolerance: float,
    axes: Sequence[Axis],
) -> Passage:
    """Return the points of a span, in positions of the controller."""
    cuts = np.array([signal.time for signal in span.signals])
    points = points_of(
        motion,
        span.begin,
        span.end,
        cuts=cuts,
        degree=made_by.degree,
        levers=levers,
        tolerance=tolerance,
    )
    at = np.abs(points.times[:, None] - cuts).argmin(axis=0).tolist()
    pieces = points.pieces * [axis.sign for axis in axes]
    pieces[:, 0] += [axis.offset for axis in axes]
    signals = tuple(zip(at, span.signals, strict=True))
    return Passage(points._replace(pieces=pieces), signals)


def _bound(cell: Workcell, motion: Any) -> Motion:
    """Return a motion of this cell."""
    if not isinstance(motion, Motion):
        raise ModelError(
            "A motion is handed over, such as that of plan.timed() or line.timed(), "
            f"not {quote(motion)}. Of what was recorded: Motion.of(recorded)."
        )
    numbers = motion.times, motion.law, motion.curve
    if not all(np.isfinite(part).all() for part in numbers):
        raise ModelError("A number of this motion is not finite.")
    return motion.bound(cell)


def _axes(
    made_by: PostProcessor,
    motion: Motion,
    axes: Sequence[Axis | None] | None,
    external: Sequence[Axis],
    elsewhere: Sequence[str],
) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[int, ...]]:
    """Return the axes of the robot, the others, and the places of the first."""
    others = tuple(external)
    if axes is None:
        named = {*elsewhere, *(axis.joint for axis in others)}
        axes = [Axis(name) for name in motion.joint_names if name not in named]
    robot = tuple(axis for axis in axes if axis is not None)
    places = tuple(k for k, axis in enumerate(axes) if axis is not None)
    joints = [axis.joint for axis in (*robot, *others)]
    for joint in (*joints, *elsewhere):
        if [*joints, *elsewhere].count(joint) > 1:
            raise ModelError(f"Joint {quote(joint)} is named twice.")
    name = made_by.name
    wanted = made_by.robot_axes
    if not robot and wanted is not None:
        raise ModelError(f"axes= names no axis of the robot; {name} has {wanted}.")
    if len(places) < len(axes) and not made_by.may_lack_axes:
        robots = f"Robots of {name} lack no axis" if wanted else f"{name} has no gaps"
        raise ModelError(
            f"{robots}: axes= holds names of joints, not None. "
            + ("Write it to a .json file." if wanted else "Leave None out.")
        )
    if wanted is not None and wanted != len(axes):
        raise _other_number(made_by, motion, axes)
    if len(others) > made_by.external_axes:
        raise ModelError(
            f"{name} moves up to {made_by.external_axes} axes with the robot, and "
            f"external= names {len(others)}."
        )
    units = dict(zip(motion.joint_names, motion.units, strict=True))
    for axis in (*robot, *others) if made_by.robot_axes is not None else ():
        unit = units[axis.joint]
        if unit == Unit.OTHER.value or (unit == Unit.METRE.value and axis in robot):
            raise ModelError(
                f"Joint {quote(axis.joint)} is in {unit or 'no unit'}, and axes of "
                f"robots of {name} turn: name it in external=, if it is one of the "
                "axes that the controller moves with the robot."
            )
    known = {*joints, *elsewhere}
    left = [k for k, joint in enumerate(motion.joint_names) if joint not in known]
    spread = np.abs(motion.curve[:, 1:]).sum(axis=1).max(axis=0)
    spread += np.ptp(motion.curve[:, 0], axis=0)
    for k in left:
        if spread[k] > STANDS:
            raise ModelError(
                f"Joint {quote(motion.joint_names[k])} moves, and the program does not "
                "have it: name it in axes=, external= or, where another controller "
                "moves it, in elsewhere=."
            )
    return robot, others, places


def _other_number(
    made_by: PostProcessor, motion: Motion, axes: Sequence[Axis | None]
) -> ModelError:
    """Return the error of a robot with another number of axes."""
    wanted = made_by.robot_axes
    assert wanted is not None
    fix = (
        "Name those of the robot in their order, axes=[...], and others in "
        "external=[...]."
    )
    if len(motion.joint_names) < wanted:
        fix = (
            "Write those of robots with fewer to a .json file, or by a "
            "post-processor of your own."
        )
        if made_by.may_lack_axes:
            fix = (
                "Name them in the order of the controller's axes, with None for each "
                "that the robot lacks, such as axes=[first, second, third, None, None, "
                "last] of a palletiser, whose flange turns by axis 6."
            )
    given = ["None" if axis is None else quote(axis.joint) for axis in axes]
    return ModelError(
        f"A robot of {made_by.name} has {wanted} axes, and these are {len(given)}: "
        f"{', '.join(given)}. {fix}"
    )


def _of_axes(motion: Motion, axes: Sequence[Axis]) -> Motion:
    """Return the motion of the joints of axes alone, without attachments."""
    order = [motion.joint_names.index(axis.joint) for axis in axes]
    return replace(
        motion,
        curve=motion.curve[..., order],
        joint_names=tuple(axis.joint for axis in axes),
        units=tuple(motion.units[k] for k in order),
        attachments=(),
    )


def _axis(given: Any, cell: Workcell, motion: Motion) -> Axis:
    """Return an axis with the full name of its joint."""
    axis = Axis(given) if isinstance(given, str) else given
    if not isinstance(axis, Axis):
        raise ModelError(f"An axis is a joint's name or an Axis, not {quote(given)}.")
    if axis.sign not in {1.0, -1.0} or not np.isfinite(axis.offset):
        raise ModelError(
            f"The axis of {quote(axis.joint)} has a sign, 1 or -1, and an offset "
            f"[rad or m], not {axis.sign:g} and {axis.offset:g}."
        )
    if axis.joint in motion.joint_names:
        return axis
    full = [name for name in motion.joint_names if name.endswith(f"/{axis.joint}")]
    if len(full) != 1 or cell.joint_names[cell.joint(axis.joint)] != full[0]:
        raise unknown("joint of the motion", axis.joint, motion.joint_names)
    return msgspec.structs.replace(axis, joint=full[0])


def _check_limits(cell: Workcell, motion: Motion) -> None:
    """Refuse a motion beyond limits of the model."""
    names = list(motion.joint_names)
    excess = motion.limit_excess(cell, joints=names)
    if excess > LIMIT_ROUNDING:
        raise ModelError(
            f"The motion goes beyond a limit of positions by {excess:.3g} m or rad; "
            "motion.limit_excess(cell) says so, too."
        )
    limits = cell.velocity_limits[[cell.joint(name) for name in names]]
    peaks = motion.peaks().velocity
    over = peaks > limits * (1.0 + LIMIT_ROUNDING)
    if over.any():
        k = int(np.argmax(over))
        raise ModelError(
            f"Joint {quote(names[k])} moves at up to {peaks[k]:.6g} m/s or rad/s, and "
            f"its limit is {limits[k]:.6g}: motion.stretched(duration) is slower."
        )


def _named(steps: Iterable[Instruction], kind: type | None) -> list[str]:
    """Return the signals that are set, or, of no kind, waited for."""
    return [
        step.signal
        for step in steps
        if not isinstance(step, Pause)
        and isinstance(step, SetSignal) == (kind is SetSignal)
    ]


def _ports(
    made_by: PostProcessor,
    name: str,
    given: Mapping[str, Port] | None,
    needed: Iterable[str],
) -> dict[str, Port]:
    ports = dict(given or {})
    for port in ports.values():
        made_by.check_port(port)
    for signal in needed:
        if signal not in ports:
            raise unknown(
                "signal",
                signal,
                sorted(ports),
                hint=f"Say where it is: {name}={{{quote(signal)}: port}}.",
            )
    return ports


def _positions(q: Array, axes: Sequence[Axis]) -> Array:
    """Return positions that the controller shows, of those of the model."""
    signs = np.array([axis.sign for axis in axes])
    return q * signs + [axis.offset for axis in axes]


def _axis_lines(
    axes: Sequence[Axis], places: Sequence[int], turns: Sequence[bool]
) -> list[str]:
    """Return a remark for each axis."""
    lines: list[str] = []
    names = [f"axis {place + 1}" for place in places]
    names += [f"external axis {k + 1}" for k in range(len(axes) - len(places))]
    for number, axis, does_turn in zip(names, axes, turns, strict=True):
        how = "turns" if does_turn else "slides"
        sign = "-" if axis.sign < 0.0 else ""
        offset = f" + {axis.offset:g}" if axis.offset else ""
        lines.append(f"{number} {how}: {sign}{axis.joint}{offset}")
    return lines


def _write(target: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files beside each other, the named one last."""
    files: list[Path] = []
    *_, named = texts
    for name, text in texts.items():
        file = target if name == named else target.parent / name
        try:
            with replacing(file) as out:
                out.write(text.encode("ascii"))
        except OSError as error:
            raise FormatError(f"{file}: {error.strerror or error}.") from error
        files.append(file)
    return tuple(files)
