"""Plain trajectories, for controllers of your own: rows of positions and rates.

Between rows positions are cubic polynomials of time, as controllers of ROS interpolate
trajectories with rates.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.programs.post_processors.points import CUBIC
from armillary.programs.post_processors.post_processor import (
    ControllerJob,
    Passage,
    PostProcessor,
    ports_that,
)
from armillary.trajectories.motion_files import ALLOWED, csv_rows

__all__ = ["CSV", "JSON"]

Array = npt.NDArray[np.float64]

KIND: Final = "armillary trajectory"
VERSION: Final = 1
SAME_RATE: Final = 1e-9
"""By how much rates may differ where polynomials meet [m/s or rad/s]."""


def _rows(job: ControllerJob) -> Array:
    """Return the time, positions and rates of all points, shape (k, 1 + 2 n).

    Raises:
        ModelError: A rate jumps.
    """
    rows: list[Array] = []
    for step in job.steps:
        if not isinstance(step, Passage):
            continue
        times, pieces = step.points.times, step.points.pieces
        h = np.diff(times)[:, None]
        k: Array = np.arange(pieces.shape[1], dtype=np.float64)
        begin = pieces[:, 1] / h
        end = np.einsum("k,mkn->mn", k, pieces) / h
        gap = np.abs(end[:-1] - begin[1:]).max(axis=1, initial=0.0)
        if (gap > SAME_RATE).any():
            at = float(times[1:-1][np.argmax(gap)])
            raise ModelError(
                f"A rate of the motion jumps by {gap.max():.3g} m/s or rad/s at "
                f"{at:g} s, which rows of positions and rates cannot say."
            )
        rates = np.concatenate([begin, end[-1:]])
        made = np.concatenate([times[:, None], step.points.q, rates], axis=1)
        rows.append(made[1:] if rows else made)  # it goes on where it waited
    return np.concatenate(rows)


def _csv(job: ControllerJob) -> dict[str, str]:
    waits = [step for step in job.steps if not isinstance(step, Passage)]
    waits += [
        s for step in job.steps if isinstance(step, Passage) for s in step.signals
    ]
    if waits:
        raise ModelError(
            "A .csv has no place for signals and waits; a .json has, beside the rows."
        )
    names = [axis.joint for axis in job.axes]
    return {job.name + CSV.suffix: csv_rows(_rows(job), names, job.units, ALLOWED[1])}


def _json(job: ControllerJob) -> dict[str, str]:
    rows = _rows(job)
    n = len(job.axes)
    done: list[Any] = []
    for step in job.steps:
        each = [s for _, s in step.signals] if isinstance(step, Passage) else [step]
        done += map(msgspec.to_builtins, each)
    content = {
        "kind": KIND,
        "version": VERSION,
        "remarks": list(job.remarks),
        "axes": [msgspec.to_builtins(axis) for axis in job.axes],
        "units": list(job.units),
        "outputs": dict(job.ports.outputs),
        "inputs": dict(job.ports.inputs),
        "instructions": done,
        "times": rows[:, 0].tolist(),
        "positions": rows[:, 1 : 1 + n].tolist(),
        "rates": rows[:, 1 + n :].tolist(),
    }
    text = json.dumps(content, allow_nan=False, indent=1)
    return {job.name + JSON.suffix: text + "\n"}


def _plain(name: str, write: Any) -> PostProcessor:
    return PostProcessor(
        name=name,
        title="rows of positions and rates",
        suffix=f".{name}",
        degree=CUBIC,
        robot_axes=None,
        external_axes=1000,
        longest_name=200,
        is_single=False,
        assumptions=(
            "Positions are in metres and radians, rates in these a second.",
            "Between rows, positions are cubic polynomials of time.",
        ),
        check_port=ports_that("A port is a number or a name", lambda _: True),
        write=write,
    )


CSV: Final = _plain("csv", _csv)
JSON: Final = _plain("json", _json)
