"""KRL, of KUKA: a PTP spline block whose points are passed at given times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.programs.post_processors.instructions import Pause, SetSignal
from armillary.programs.post_processors.points import LINEAR
from armillary.programs.post_processors.post_processor import (
    ControllerJob,
    Passage,
    PostProcessor,
    decimal,
    durations,
    ports_that,
    rounded,
)

__all__ = ["KRL"]

Array = npt.NDArray[np.float64]

AXES: Final = 6
EXTERNAL: Final = 6
PORTS: Final = 4096
HEAD: Final = ("&ACCESS RVP", "&REL 1")


def _write(job: ControllerJob) -> dict[str, str]:
    points: list[str] = []

    def point(q: Array) -> str:
        """Return the name of a point, which the .dat file declares."""
        points.append(_axes(q, job))
        return f"XP{len(points) - 1}"

    lines = [*HEAD, f"DEF {job.name} ( )", *job.comments(";")]
    lines += ["BAS (#INITMOV, 0)", f"PTP {point(job.start)}"]
    for step in job.steps:
        match step:
            case Passage():
                lines += _spline(step, job, point)
            case SetSignal():
                lines.append(_set(step, job))
            case Pause(duration=duration):
                lines.append(f"WAIT SEC {decimal(duration)}")
            case _:
                port = job.ports.inputs[step.signal]
                word = "" if step.value else "NOT "
                lines.append(f"WAIT FOR {word}$IN[{port}]")
    lines += ["END", ""]
    data = [*HEAD, f"DEFDAT {job.name}"]
    data += [f"DECL E6AXIS XP{k}={text}" for k, text in enumerate(points)]
    data += ["ENDDAT", ""]
    files = {".dat": data, KRL.suffix: lines}
    return {job.name + suffix: "\n".join(text) for suffix, text in files.items()}


def _spline(
    passage: Passage, job: ControllerJob, point: Callable[[Array], str]
) -> Iterator[str]:
    times = passage.points.times
    whole = float(times[-1] - times[0])
    yield "PTP_SPLINE"
    yield "TIME_BLOCK START"
    parts = durations(100.0 * (times - times[0]) / whole)
    for k, q in enumerate(passage.points.q[1:], start=1):
        for signal in passage.at(k):
            yield f"TRIGGER WHEN PATH=0 DELAY=0 DO {_set(signal, job)}"
        yield f"SPTP {point(q)}"
        yield f"TIME_BLOCK PART = {decimal(parts[k - 1])}"
    yield f"TIME_BLOCK END = {decimal(np.float32(whole))}"
    yield "ENDSPLINE"


def _set(signal: SetSignal, job: ControllerJob) -> str:
    port = job.ports.outputs[signal.signal]
    return f"$OUT[{port}]={str(signal.value).upper()}"


def _axes(q: Array, job: ControllerJob) -> str:
    # The controller keeps components that an aggregate leaves out as they are.
    names = [f"A{k + 1}" for k in job.places]
    names += [f"E{k + 1}" for k in range(len(job.axes) - job.robot)]
    numbers = map(decimal, rounded(q, job.is_turning))
    return "{" + ",".join(map(" ".join, zip(names, numbers, strict=True))) + "}"


KRL: Final = PostProcessor(
    name="krl",
    title="KUKA, KSS 8.3 or newer",
    suffix=".src",
    degree=LINEAR,
    robot_axes=AXES,
    external_axes=EXTERNAL,
    may_lack_axes=True,
    longest_name=24,
    reserved=(
        "def end deffct defdat enddat ptp lin circ spl sptp slin scirc spline "
        "endspline ptp_spline time_block trigger wait for in out if then else endif "
        "while loop repeat until switch case default exit return halt decl int real "
        "bool char axis e6axis pos e6pos frame true false and or not exor bas"
    ),
    is_single=True,
    assumptions=(
        "Axes A1 to A6, then E1 to E6, in degrees, of axes that slide in millimetres.",
        "Axes that the robot lacks, or does not drive freely, are left out.",
        "Zeros and signs are those of the model, unless axes= says otherwise.",
        "Points of a PTP spline block are passed at the times of its TIME_BLOCK.",
        "How axes move between them is not published. Points are so near to each",
        "other that straight lines between them keep the tolerance, too.",
        "Signals are set by TRIGGER at points, without a stop.",
        "REAL has 24 bits. Load, tool and base are those of the controller.",
        "The way to the start, by PTP, is not checked for collisions.",
    ),
    check_port=ports_that(
        f"A port of KRL, such as $OUT[1], is a number from 1 to {PORTS}",
        range(1, PORTS + 1).__contains__,
    ),
    write=_write,
)
