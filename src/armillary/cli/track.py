"""`armillary track`: joint motion that follows a file of poses, step by step."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    AXES,
    FRAME_PAIR,
    JOINTS,
    JSON,
    STATE,
    avoid,
    chosen_axes,
    chosen_state,
    collision_check,
    out,
    row_output,
)
from armillary.cli.table import finite
from armillary.cli.targets import FORMS, open_targets
from armillary.cli.vectors import chosen_factors
from armillary.cli.verb import option, verb
from armillary.collision.check import CollisionCheck
from armillary.control import tasks
from armillary.control.obstacles import Obstacles
from armillary.control.options import CONFLICTS
from armillary.control.simulation import ControlledMotion
from armillary.errors import ModelError, ShapeError
from armillary.ik.reason import RateReason
from armillary.kinematics.state import State
from armillary.model.display import plural
from armillary.sweeps.row_files import open_rows

Array = npt.NDArray[np.float64]

DONE, VOID = 0, 1
BROKEN = (
    RateReason.INVALID,
    RateReason.INSIDE,
    RateReason.PUSHED,
    RateReason.BRAKING,
)
CAPSULE: Final = 7
"""Numbers of a capsule: both ends and the radius [m]."""
DESCRIPTION = f"""\
Follow the poses of a file with a frame, one for each step of a controller, from the
state on: within the limits of positions, rates and accelerations, and with --avoid with
links apart. {FORMS}; metres and radians. Joint positions after each step are written,
and how many steps ended how is printed. The exit code is 1 if limits or distances could
not be kept in a step, or a pose is not finite.
"""


@verb(
    "track",
    (
        *FILE,
        *FRAME_PAIR,
        option("--targets FILE", "poses, CSV or NPY", required=True, is_input=True),
        JOINTS,
        *AXES,
        avoid("keep links farther apart than this [m]"),
        option(
            "--obstacles FILE",
            "capsules that --avoid is about, too: x,y,z of both ends and the "
            "radius [m]; CSV or NPY, (k, 7), or (steps, k, 7) where they move",
        ),
        option(
            "--conflict",
            "whether motion bends around what is in the way, or slows down; bend",
            choices=CONFLICTS,
            default=CONFLICTS[0],
        ),
        option("--rate HZ", "steps a second; 1000", type=float, default=1000.0),
        option(
            "--acceleration A",
            "of all joints [m/s^2 or rad/s^2]; else that of the model",
            type=float,
        ),
        *STATE,
        JSON,
        out("Q.npy", "joint positions"),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Follow and write; return an exit code: whether all bounds were kept."""
    if options.obstacles is not None and options.avoid is None:
        raise ModelError(
            "--obstacles are avoided at the distance of --avoid: add --avoid 0.01."
        )
    cell = open_cell(options)
    state = chosen_state(cell, options)
    check = None  # by hulls: controllers have no other
    if options.avoid is not None:
        check = collision_check(cell, state, options.avoid)
    poses = _poses(options)
    control = cell.controller(
        [_task(options), tasks.Posture()],
        avoid=check,
        acceleration=options.acceleration,
        conflict=options.conflict,
        rate=options.rate,
        joints=options.joints,
        state=state,
    )
    obstacles = None
    if options.obstacles is not None:
        obstacles = _obstacles(options.obstacles, len(poses), options.rate)
    motion = control.simulate(state.q, [poses, None], len(poses), obstacles=obstacles)
    if options.out is not None:
        _write(cell, motion, options)
    off = _off(cell, state, options, motion, poses[-1])
    if options.json:
        print(json.dumps(_object(cell, options, motion, off)))
    else:
        _print(motion, check, off)
    return VOID if np.isin(motion.reason, BROKEN).any() else DONE


def _task(options: argparse.Namespace) -> tasks.Frame:
    position, rotation = map(chosen_axes, (options.position, options.rotation))
    is_whole = position == rotation == "xyz"
    return tasks.Frame(
        options.frame,
        options.relative_to,
        position=position,
        rotation=rotation,
        axes=options.frame if options.axes == "target" and not is_whole else None,
    )


def _poses(options: argparse.Namespace) -> Array:
    """Return the poses to follow, shape (steps, 4, 4)."""
    with open_targets(
        options.targets,
        degrees=options.degrees,
        position_only=not chosen_axes(options.rotation),
    ) as targets:
        poses = np.concatenate([np.empty((0, 4, 4)), *targets.chunks])
    if not len(poses):
        raise ShapeError(f"{options.targets}: there are no poses to follow.")
    return poses


def _obstacles(path: str, steps: int, rate: float) -> Obstacles:
    """Return the capsules of a file, with the velocities of those that move.

    Raises:
        ShapeError: It holds something else.
    """
    with open_rows(path) as file:
        chunks, batch = list(file.chunks), file.batch
    if not chunks:
        raise ShapeError(f"{path}: there are no capsules; leave --obstacles out.")
    rows = np.concatenate(chunks)
    if rows.shape[1] != CAPSULE or file.names is not None:
        raise ShapeError(
            f"{path}: a capsule is 7 numbers, x,y,z of both ends and the radius [m], "
            f"without a line of names; here are {rows.shape[1]}."
        )
    shape = (len(rows),) if batch is None or len(batch) < 2 else batch
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != steps):
        raise ShapeError(
            f"{path}: capsules have the shape (k, 7), or ({steps}, k, 7) for {steps} "
            f"poses; not {(*shape, CAPSULE)}."
        )
    numbers = np.asarray(rows, np.float64).reshape(*shape, CAPSULE)
    ends = numbers[..., :6].reshape(*shape, 2, 3)
    if len(shape) == 1 or steps == 1:
        return Obstacles(ends, numbers[..., 6])
    # Capsules move from step to step as the file says; the last one stays.
    velocities = rate * np.diff(ends.mean(axis=-2), axis=0, append=ends.mean(-2)[-1:])
    return Obstacles(ends, numbers[..., 6], velocities)


def _write(cell: Cell, motion: ControlledMotion, options: argparse.Namespace) -> None:
    names = cell.joint_names
    q = motion.q[1:] / chosen_factors(cell.workcell, names, options)
    with row_output(options, q.shape[:1], q.shape[1:], names) as write:
        write(q)


def _off(
    cell: Cell,
    state: State,
    options: argparse.Namespace,
    motion: ControlledMotion,
    target: Array,
) -> float:
    """Return how far the position of the frame is from the last target [m]."""
    position = chosen_axes(options.position)
    fk = cell.fk(options.frame, relative_to=options.relative_to, state=state)
    X = fk(motion.q[-1])
    # Only constrained coordinates count, in the axes in which they are constrained.
    error = X[:3, 3] - target[:3, 3]
    if options.axes == "target":
        error = X[:3, :3].T @ error
    return float(np.linalg.norm(error[["xyz".index(each) for each in position]]))


def _print(motion: ControlledMotion, check: CollisionCheck | None, off: float) -> None:
    for reason, count in motion.summary().items():
        first = int(np.argmax(motion.reason == RateReason[reason]))
        print(f"{count:8} {RateReason[reason].sentence}; first in step {first}")
    print(f"{off:.6f} m from the last pose after {plural(len(motion.reason), 'step')}")
    if check is not None:
        print(f"least distance {motion.distance.min():.6f} m")


def _object(
    cell: Cell, options: argparse.Namespace, motion: ControlledMotion, off: float
) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for what is not known."""
    changes = np.flatnonzero(np.diff(motion.reason, prepend=-1))
    return {
        "cell": cell.name,
        "frame": cell.workcell.qualified(options.frame),
        "relative_to": options.relative_to,
        "steps": len(motion.reason),
        "reasons": motion.summary(),
        "least_distance": finite([float(motion.distance.min())])[0],
        "off": finite([off])[0],
        "changes": [
            {
                "step": k,
                "time": float(motion.time[k]),
                "reason": RateReason(int(motion.reason[k])).name,
                "active": list(active),
            }
            for k, active in zip(changes.tolist(), motion.active[changes], strict=True)
        ],
    }
