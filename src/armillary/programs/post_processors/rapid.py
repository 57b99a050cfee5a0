"""RAPID, of ABB: moves of joints that take given times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.programs.post_processors.instructions import Pause, SetSignal
from armillary.programs.post_processors.points import LINEAR
from armillary.programs.post_processors.post_processor import (
    WORD,
    ControllerJob,
    JobStep,
    Passage,
    PostProcessor,
    decimal,
    durations,
    ports_that,
    rounded,
)

__all__ = ["RAPID"]

AXES: Final = 6
EXTERNAL: Final = 6
LONGEST_NAME: Final = 32
NOT_CONNECTED: Final = "9E9"
ABSENT: Final = "0"
"""The number of an axis that the robot lacks; 9E9 is for external axes alone."""


def _write(job: ControllerJob) -> dict[str, str]:
    lines = [f"MODULE {job.name}", *(f"  {line}" for line in job.comments("!"))]
    lines += ["  PROC main()", f"    {_move(job.start, job)},v100,fine,tool0;"]
    for step in job.steps:
        lines += [f"    {line}" for line in _step(step, job)]
    lines += ["  ENDPROC", "ENDMODULE", ""]
    return {job.name + RAPID.suffix: "\n".join(lines)}


def _step(step: JobStep, job: ControllerJob) -> Iterator[str]:
    match step:
        case Passage(points, signals):
            if signals:
                _, signal = signals[0]
                raise ModelError(
                    f"Signal {quote(signal.signal)} is set at {signal.time:g} s, where "
                    "the robot moves. RAPID runs ahead of MoveAbsJ in motion, so that "
                    "it would be set too early: set it where the motion rests. A robot "
                    "that follows a frame rests after a PTP to what does not move."
                )
            takes = durations(points.times)
            last = len(takes) - 1
            for k, q in enumerate(points.q[1:]):
                zone = "fine" if k == last else "z0"
                time = decimal(takes[k])
                yield f"{_move(q, job)},v1000\\T:={time},{zone},tool0;"
        case SetSignal(signal=signal, value=value):
            yield f"SetDO {job.ports.outputs[signal]},{int(value)};"
        case Pause(duration=duration):
            if duration:
                yield f"WaitTime {decimal(np.float32(duration))};"
        case _:
            port = job.ports.inputs[step.signal]
            yield f"WaitDI {port},{int(step.value)};"


def _move(q: npt.NDArray[np.float64], job: ControllerJob) -> str:
    numbers = list(map(decimal, rounded(q, job.is_turning)))
    external = numbers[job.robot :]
    external += [NOT_CONNECTED] * (EXTERNAL - len(external))
    robot = [ABSENT] * AXES
    for place, number in zip(job.places, numbers, strict=False):
        robot[place] = number
    return f"MoveAbsJ [[{','.join(robot)}],[{','.join(external)}]]\\NoEOffs"


RAPID: Final = PostProcessor(
    name="rapid",
    title="ABB, IRC5 and OmniCore",
    suffix=".mod",
    degree=LINEAR,
    robot_axes=AXES,
    external_axes=EXTERNAL,
    may_lack_axes=True,
    may_set_in_motion=False,
    longest_name=LONGEST_NAME,
    reserved=(
        "module endmodule proc endproc func endfunc trap endtrap const var pers task "
        "local if then else elseif endif for from to step do endfor while endwhile "
        "test case default endtest goto return raise retry trynext error exit and or "
        "xor not div mod true false alias record endrecord sysmodule noview nostepin "
        "viewonly readonly with without undo backward inout main "
        "moveabsj setdo waitdi waittime jointtarget tool0 fine z0 v100 v1000"
    ),
    is_single=True,
    assumptions=(
        "Axes of robax, then of extax, in degrees, of axes that slide in millimetres.",
        "Numbers of axes that the robot lacks are 0.",
        "Zeros and signs are those of the model, unless axes= says otherwise.",
        "MoveAbsJ moves all axes straight, and takes the time of its argument T.",
        "Zone z0 cuts each corner within half of its sides: by the tolerance at most.",
        "Signals are set where the robot stands, at fine points.",
        "num has 24 bits. Load is that of tool0.",
        "The way to the start is not checked for collisions.",
    ),
    check_port=ports_that(
        "A port of RAPID is the name of a signal of the controller, such as "
        "'doGripper'",
        lambda port: WORD.fullmatch(str(port)) and len(str(port)) <= LONGEST_NAME,
    ),
    write=_write,
)
