"""`armillary fk`: the pose of a frame, for one joint vector or a file of them."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    FRAME_PAIR,
    JSON,
    STATES,
    chosen_state,
    out,
    row_output,
    written_answers,
)
from armillary.cli.table import finite
from armillary.cli.verb import verb
from armillary.errors import StateError

Array = npt.NDArray[np.float64]

DESCRIPTION = """\
Print the pose of a frame, a 4x4 matrix [m]. The joint vector is in m and rad, in the
order that 'info' shows; without one, the cell is at home. A CSV file holds one vector
a line; a first line of joint names picks joints, the others stay at home. Poses of a
file are printed one a line, row by row, or written with --out: shape (..., 4, 4).
Poses that are not finite, since a joint position is NaN or a loop cannot be closed,
are counted on stderr. The exit code is 1 if there are any.
"""


@verb(
    "fk",
    (*FILE, *FRAME_PAIR, *STATES, JSON, out("X.npy", "poses")),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Compute and print or write; return an exit code: whether all poses exist."""
    cell = open_cell(options)
    if options.q_file is not None:
        if options.state is not None:
            raise StateError("--q-file takes the cell as it was built: no --state.")
        if options.json:
            raise StateError("--json is of one state, not of --q-file.")
        return _many(cell, options)
    pose = cell.pose(
        options.frame, chosen_state(cell, options), relative_to=options.relative_to
    )
    if options.json:
        about = {
            "cell": cell.name,
            "frame": cell.qualified(options.frame),
            "relative_to": cell.qualified(options.relative_to),
            "pose": [finite(row) for row in pose.tolist()],
        }
        print(json.dumps(about))
    else:
        with row_output(options, (), (4, 4)) as write:
            write(pose)
    return _judged(_missing(pose), 1)


def _many(cell: Cell, options: argparse.Namespace) -> int:
    fk = cell.fk(options.frame, relative_to=options.relative_to)
    missing = count = 0
    for poses in written_answers(fk, cell, cell.home, options, (4, 4)):
        missing += _missing(poses)
        count += len(poses)
    return _judged(missing, count)


def _missing(poses: Array) -> int:
    """Return how many of some poses, shape (..., 4, 4), are not finite."""
    return int((~np.isfinite(poses).all(axis=(-2, -1))).sum())


def _judged(missing: int, count: int) -> int:
    """Tell how many poses do not exist, if any; return the exit code."""
    if missing:
        print(
            f"{missing} of {count} poses are not finite: a joint position is NaN or "
            "outside the domain of its joint, or a loop cannot be closed there.",
            file=sys.stderr,
        )
    return 1 if missing else 0
