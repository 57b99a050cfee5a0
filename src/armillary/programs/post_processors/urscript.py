"""URScript, of Universal Robots.

The program has the motion itself, as polynomials of time, and a loop that asks for the
position at the end of each cycle of the controller by `servoj`. So it needs few points,
and fits cycles of 2 ms (e-Series) and of 8 ms (CB3). The driver of Universal Robots for
ROS interpolates in the same way, by `servoj` in a loop of URScript.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.programs.post_processors.instructions import Pause, SetSignal
from armillary.programs.post_processors.points import QUINTIC
from armillary.programs.post_processors.post_processor import (
    ControllerJob,
    JobStep,
    Passage,
    PostProcessor,
    decimal,
    ports_that,
)

__all__ = ["URSCRIPT"]

AXES: Final = 6
PORTS: Final = 8
LOOP: Final = """\
  step = get_steptime()
  lookahead = 0.1
  gain = 300
  global clock = 0.0
  def follow(begin, duration, c0, c1, c2, c3, c4, c5):
    while clock + step <= begin + duration + 0.000001:
      clock = clock + step
      local u = (clock - begin) / duration
      local q = c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * c5))))
      servoj(q, t=step, lookahead_time=lookahead, gain=gain)
    end
  end
  def rest(end_time, q):
    servoj(q, t=lookahead, lookahead_time=lookahead, gain=gain)
    stopj(4.0)
    clock = end_time
  end"""
"""What follows polynomials of time, and stops at the end of a passage."""


def _write(job: ControllerJob) -> dict[str, str]:
    lines = [f"def {job.name}():", *(f"  {line}" for line in job.comments("#"))]
    lines += LOOP.splitlines()
    lines.append(f"  movej({_list(job.start)}, a=0.5, v=0.25)")
    for step in job.steps:
        lines += [f"  {line}" for line in _step(step, job)]
    lines += ["end", ""]
    return {job.name + URSCRIPT.suffix: "\n".join(lines)}


def _step(step: JobStep, job: ControllerJob) -> Iterator[str]:
    match step:
        case Passage(points):
            for k, piece in enumerate(points.pieces):
                for signal in step.at(k):
                    yield _set(signal, job)
                begin, end = points.times[k : k + 2]
                numbers = [decimal(begin), decimal(end - begin), *map(_list, piece)]
                yield f"follow({', '.join(numbers)})"
            yield f"rest({decimal(points.times[-1])}, {_list(points.q[-1])})"
        case SetSignal():
            yield _set(step, job)
        case Pause(duration=duration):
            yield f"sleep({decimal(duration)})"
        case _:
            port = job.ports.inputs[step.signal]
            yield f"while get_standard_digital_in({port}) != {step.value}:"
            yield "  sync()"
            yield "end"


def _set(signal: SetSignal, job: ControllerJob) -> str:
    port = job.ports.outputs[signal.signal]
    return f"set_standard_digital_out({port}, {signal.value})"


def _list(q: npt.NDArray[np.float64]) -> str:
    return f"[{', '.join(map(decimal, q + 0.0))}]"


URSCRIPT: Final = PostProcessor(
    name="urscript",
    title="Universal Robots",
    suffix=".script",
    degree=QUINTIC,
    robot_axes=AXES,
    external_axes=0,
    longest_name=32,
    reserved=(
        "def end if elif else while for in return thread kill run join global local "
        "true false and or not xor break continue halt follow rest clock step "
        "lookahead gain movej servoj stopj sleep sync get_steptime "
        "set_standard_digital_out get_standard_digital_in"
    ),
    is_single=False,
    assumptions=(
        "Positions are in radians, in the order base, shoulder, elbow, wrist 1, 2, 3.",
        "Polynomials of time are followed by servoj, once a cycle of the controller.",
        "servoj smooths the way by lookahead and gain, which no manual states exactly.",
        "Signals are set at the first cycle after their time.",
        "At each stop the robot waits for lookahead seconds, and stops by stopj.",
        "Arrays are added and multiplied: PolyScope 5.10 or newer.",
        "The way to the start, by movej, is not checked for collisions.",
    ),
    check_port=ports_that(
        f"A standard port of URScript is a number from 0 to {PORTS - 1}",
        range(PORTS).__contains__,
    ),
    write=_write,
)
