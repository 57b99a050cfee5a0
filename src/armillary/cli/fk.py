"""`armillary fk`: the pose of a frame, for one joint vector or a file of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import add_file, open_cell
from armillary.cli.joints import si_factors
from armillary.cli.motion import add_q_file
from armillary.cli.options import (
    add_frame_pair,
    add_json,
    add_out,
    add_state,
    chosen_state,
)
from armillary.cli.result_file import result_file
from armillary.cli.table import comma_separated, finite
from armillary.cli.vectors import checked_vectors, open_vectors
from armillary.errors import StateError

Array = npt.NDArray[np.float64]
Write = Callable[[Array], None]

DESCRIPTION = """\
Print the pose of a frame, a 4x4 matrix [m]. The joint vector is in m and rad, in the
order that 'info' shows; without one, the cell is at home. A CSV file holds one vector
a line; a first line of joint names picks joints, the others stay at home. Poses of a
file are printed one a line, row by row, or written with --out: shape (..., 4, 4).
Poses that are not finite, since a joint position is NaN or a loop cannot be closed,
are counted on stderr. The exit code is 1 if there are any.
"""


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "fk",
        help="the pose of a frame, once or a million times",
        description=DESCRIPTION,
    )
    add_file(parser)
    add_frame_pair(parser)
    positions = add_state(parser)
    add_q_file(positions)
    add_json(parser)
    add_out(parser, "X.npy", "poses")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compute and print or write; return an exit code: whether all poses exist."""
    cell = open_cell(options)
    if options.q_file is not None:
        if options.state is not None:
            raise StateError("--q-file takes the cell as it was built: no --state.")
        if options.json:
            raise StateError("--json is of one state, not of --q-file.")
        return _many(cell, options)
    state = chosen_state(cell, options)
    pose = cell.pose(options.frame, state, relative_to=options.relative_to)
    if options.json:
        print(json.dumps(_object(cell, options, pose)))
    else:
        with _sink(options.out, ()) as write:
            write(pose)
    return _judged(_missing(pose), 1)


def _object(cell: Cell, options: argparse.Namespace, pose: Array) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for what is not finite."""
    return {
        "cell": cell.name,
        "frame": cell.qualified(options.frame),
        "relative_to": cell.qualified(options.relative_to),
        "pose": [finite(row) for row in pose.tolist()],
    }


def _many(cell: Cell, options: argparse.Namespace) -> int:
    with open_vectors(options.q_file) as vectors:
        joints = vectors.names or cell.joint_names
        fk = cell.fk(options.frame, relative_to=options.relative_to, joints=joints)
        factors = si_factors(cell.workcell, joints)
        batch = (0,) if vectors.batch is None else vectors.batch
        missing = count = 0
        with _sink(options.out, batch) as write:
            for q in checked_vectors(vectors, joints, options.q_file):
                poses = fk(q * factors if options.degrees else q)
                write(poses)
                missing += _missing(poses)
                count += poses.size // 16
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


@contextmanager
def _sink(path: str | None, batch: tuple[int, ...]) -> Generator[Write, None, None]:
    """Give a function that writes poses to a file, or prints them."""
    if path is None:
        yield _print_rows if batch else _print_matrix
        return
    with result_file(path, batch, (4, 4)) as append:
        yield append


def _print_matrix(pose: Array) -> None:
    for row in pose + 0.0:
        print(" ".join(f"{entry:16.12f}" for entry in row))


def _print_rows(poses: Array) -> None:
    for row in (poses + 0.0).reshape(-1, 16).tolist():
        print(comma_separated(row))
