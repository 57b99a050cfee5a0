"""`armillary track`: joint motion that follows a file of poses, step by step."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from armillary.cli.input import add_file, open_cell
from armillary.cli.joints import si_factors
from armillary.cli.options import add_frame_pair, add_out, add_state, chosen_state
from armillary.cli.result_file import result_file
from armillary.cli.targets import FORMS, open_targets
from armillary.control import tasks
from armillary.errors import ShapeError
from armillary.ik.reason import RateReason

DONE, VOID = 0, 1
BROKEN = (
    RateReason.INVALID,
    RateReason.INSIDE,
    RateReason.PUSHED,
    RateReason.BRAKING,
)
DESCRIPTION = f"""\
Follow the poses of a file with a frame, one for each step of a controller, from the
state on: within the limits of positions, rates and accelerations, and with --avoid with
links apart. {FORMS}; metres and radians. Joint positions after each step are written,
and how many steps ended how is printed. The exit code is 1 if limits or distances could
not be kept in a step, or a pose is not finite.
"""


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "track", help="joint motion that follows poses, step by step",
        description=DESCRIPTION,
    )  # fmt: skip
    add_file(parser)
    add_frame_pair(parser)
    parser.add_argument(
        "--targets", metavar="FILE", required=True, help="poses, CSV or NPY"
    )
    parser.add_argument(
        "--avoid",
        metavar="M",
        type=float,
        help="keep links farther apart than this [m]",
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=float, default=1000.0, help="steps a second; 1000"
    )
    parser.add_argument(
        "--acceleration",
        metavar="A",
        type=float,
        help="of all joints [m/s^2 or rad/s^2]; else that of the model",
    )
    add_state(parser)
    add_out(parser, "Q.npy", "joint positions")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Follow and write; return an exit code: whether all bounds were kept."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    avoid = None
    if options.avoid is not None:
        avoid = cell.collision(state, margin=options.avoid)
    control = cell.controller(
        [tasks.Frame(options.frame, options.relative_to), tasks.Posture()],
        avoid=avoid,
        acceleration=options.acceleration,
        rate=options.rate,
        state=state,
    )
    with open_targets(options.targets, degrees=options.degrees) as targets:
        poses = np.concatenate([np.empty((0, 4, 4)), *(X for X, _ in targets.chunks)])
    if not len(poses):
        raise ShapeError(f"{options.targets}: there are no poses to follow.")
    motion = control.simulate(state.q, [poses, None], len(poses))
    if options.out is not None:
        names = cell.joint_names
        factors = si_factors(cell.workcell, names) if options.degrees else 1.0
        q = motion.q[1:]
        with result_file(options.out, q.shape[:1], q.shape[1:], names=names) as append:
            append(q / factors)
    for reason, count in motion.summary().items():
        print(f"{count:8} {RateReason[reason].sentence}")
    if avoid is not None:
        print(f"least distance {motion.distance.min():.6f} m")
    return VOID if np.isin(motion.reason, BROKEN).any() else DONE
