"""Files of joint vectors: the options that name them, and the vectors of all joints."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.joints import si_factors
from armillary.cli.vectors import Vectors, checked_vectors, open_vectors
from armillary.errors import ModelError
from armillary.kinematics.state import State

__all__ = ["add_motion", "add_q_file", "chosen_motion", "joint_rows"]

Array = npt.NDArray[np.float64]


def add_q_file(positions: Any) -> None:
    """Add the option `--q-file` to a group of options that give q."""
    positions.add_argument("--q-file", metavar="FILE", help="joint vectors, CSV or NPY")


def add_motion(parser: argparse.ArgumentParser) -> None:
    """Add the options `--motion` and `--rate`."""
    parser.add_argument(
        "--motion", metavar="Q.npy", help="joint vectors to play, CSV or NPY"
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=float, help="vectors a second; else 30"
    )


def chosen_motion(
    cell: Cell, state: State, options: argparse.Namespace
) -> Array | None:
    """Return the joint positions of the motion, shape (k, n), None if there is none.

    Raises:
        ModelError: A rate is given without a motion.
        ArmillaryError: The file holds something else.
    """
    if options.motion is None:
        if options.rate is not None:
            raise ModelError("--rate is that of the vectors of --motion.")
        return None
    with open_vectors(options.motion) as vectors:
        rows = list(joint_rows(cell, state, vectors, options.motion, options.degrees))
    return np.concatenate(rows) if rows else np.empty((0, len(cell.joint_names)))


def joint_rows(
    cell: Cell, state: State, vectors: Vectors, path: str, in_degrees: bool
) -> Iterator[Array]:
    """Yield the joint positions of a file [m or rad], in pieces of shape (k, n).

    Joints that a CSV file does not name stay as in the state.

    Args:
        cell: Whose joints.
        state: Where the joints are that the file does not name.
        vectors: Those in the file.
        path: Of the file.
        in_degrees: Whether its angles are in degrees.

    Raises:
        ArmillaryError: The file has no vectors of joints of this cell.
    """
    joints = vectors.names or cell.joint_names
    factors = si_factors(cell.workcell, joints) if in_degrees else 1.0
    whole = cell.device(joints=joints, state=state).whole
    for q in checked_vectors(vectors, joints, path):
        yield whole(np.atleast_2d(q * factors))
