"""Options of a motion to play: a file of joint vectors, and their rate."""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.joints import si_factors
from armillary.cli.vectors import checked_vectors, open_vectors
from armillary.errors import ModelError
from armillary.kinematics.state import State

__all__ = ["add_motion", "chosen_motion"]


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
) -> npt.NDArray[np.float64] | None:
    """Return the joint positions of the motion, shape (k, n), None if there is none.

    Joints that a CSV file does not name stay as in the state.

    Raises:
        ModelError: A rate is given without a motion.
        ArmillaryError: The file holds something else.
    """
    if options.motion is None:
        if options.rate is not None:
            raise ModelError("--rate is that of the vectors of --motion.")
        return None
    with open_vectors(options.motion) as vectors:
        joints = vectors.names or cell.joint_names
        factors = si_factors(cell.workcell, joints) if options.degrees else 1.0
        whole = cell.device(joints=joints, state=state).whole
        rows = [
            whole(np.atleast_2d(q * factors))
            for q in checked_vectors(vectors, joints, options.motion)
        ]
    return np.concatenate(rows) if rows else np.empty((0, len(cell.joint_names)))
