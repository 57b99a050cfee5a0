"""`armillary calibrate`: numbers of a robot from a file of measurements."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.calibration import measurements as kinds
from armillary.calibration.calibrate import LOSSES, calibrate
from armillary.calibration.calibration import Calibration
from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell, warn
from armillary.cli.options import (
    FRAME,
    JSON,
    RELATIVE_TO,
    chosen_frame,
    names_of,
)
from armillary.cli.targets import QUATERNION, RPY, named_poses
from armillary.cli.vectors import joint_factors
from armillary.cli.verb import option, verb, whole_number
from armillary.errors import (
    ArmillaryError,
    ModelError,
    ShapeError,
    printable,
    quote,
)
from armillary.formats import registry
from armillary.model.frame import Frame
from armillary.model.workcell import IN_WORLD
from armillary.sweeps.row_files import open_rows

Array = npt.NDArray[np.float64]

DISTANCE: Final = "distance"
MEASURED: Final = {*RPY, *QUATERNION, DISTANCE}
CANDIDATES: Final = 2000
"""Joint positions of which `--next` chooses."""
OF_MOTION: Final = re.compile(r"(q|qd|qdd|torque):(.*?)(?: \[.*\])?")
"""Columns of a motion, as motion files have them, and its torques."""
NOT_READ: Final = re.compile(r"time( \[.*\])?|qddd:.*")
SHAPES: Final = {
    "point": kinds.SamePoint,
    "plane": kinds.OnPlane,
    "sphere": kinds.OnSphere,
}
DESCRIPTION = """\
Find numbers of a robot with which it does what was measured, and print how good they
are. The CSV file has a line of names, then one row a line: joint names, and what was
measured of the frame [m]: x,y,z, with roll,pitch,yaw or qw,qx,qy,qz for a pose, or
distance from the frame --relative-to. Other joints stay at home. With --on there are
joints alone: the frame was on one unknown point, plane or sphere. A joint that is
called like a measured column is written with its manipulator, robot/x.

For masses and friction there are columns q:J, qd:J, qdd:J and torque:J of each joint J
instead, along a motion, as in motion files; units in brackets and time are not read.

With --next the report ends with joint positions to measure next, as lines of such a
file: the best of 2000 at which nothing touches, or of those of --candidates. The exit
code is 1 if the search did not end.
"""


@verb(
    "calibrate",
    (
        *FILE,
        option("measurements CSV", "joint positions, and what was measured"),
        option(
            "--parameters A,B,...",
            "names of numbers to find, such as elbow.precursor, tool0 or robot.mount",
            type=names_of,
            required=True,
        ),
        FRAME,
        option(
            "--reflector NAME",
            "add a frame to --frame, where a reflector sits, and find it, too",
        ),
        RELATIVE_TO,
        option(
            "--sigma S",
            "standard deviation of lengths [m], or of torques [N m]",
            type=float,
        ),
        option("--sigma-rotation S", "that of rotations [rad]", type=float),
        option("--on SHAPE", "on what the frame was", choices=tuple(SHAPES)),
        option("--loss NAME", "how outliers count", choices=LOSSES, default="linear"),
        option("--degrees", "angles are in degrees", action="store_true"),
        option("--mm", "measured lengths are in millimetres", action="store_true"),
        option(
            "--cross-validate K",
            "also compare each of K parts of the rows with what the others say",
            type=whole_number(2),
        ),
        option(
            "--next N",
            "also say at which N joint positions to measure next",
            type=whole_number(1),
        ),
        option(
            "--candidates FILE",
            "joint positions of which --next chooses, CSV with names of joints",
            is_input=True,
        ),
        option("--plot FILE", "the picture to draw: residuals and parameters"),
        option("--out FILE", "the file to write the calibrated cell to"),
        JSON,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Calibrate, print the report and write the cell; return an exit code."""
    cell, frame = open_cell(options), ""
    parameters: list[str] = list(options.parameters)
    names, rows = _rows(options.measurements)
    if not any(OF_MOTION.fullmatch(name) for name in names):
        frame = chosen_frame(cell, options)
    if options.reflector is not None:
        cell, frame = _with_reflector(cell, frame, options.reflector)
        parameters.append(frame)
    measured = _measurement(cell, frame, options, names, rows)
    found = calibrate(cell, measured, parameters, loss=options.loss)
    # Written first: what follows may fail, or be interrupted.
    if options.out is not None:
        report = registry.save(found.cell.workcell, options.out, meshes=cell.meshes)
        warn(report)
        print(f"{printable(options.out)}: written", file=sys.stderr)
    about = found.to_dict()
    if options.cross_validate:
        (left_out,) = found.cross_validated(options.cross_validate)
        about["cross_validated"] = float(np.sqrt((left_out**2).mean()))
    if not options.json:
        for line in found.report().splitlines():
            print(printable(line))
        if options.cross_validate:
            print(
                f"\nresiduals of rows left out: {about['cross_validated']:.3g} of the "
                "standard deviations stated"
            )
    if options.next:
        joints = [name for name in names if name not in MEASURED]
        chosen = _next_poses(cell, found, joints, options)
        about["next_poses"] = {"joints": joints, "rows": chosen.tolist()}
        if not options.json:
            print("\nmeasure next:\n" + printable(",".join(joints)))
            for row in chosen.tolist():
                print(",".join(f"{each:.6g}" for each in row))
    if options.json:
        print(json.dumps(about))
    if options.plot is not None:
        found.plot(options.plot)
        print(f"{printable(options.plot)}: drawn", file=sys.stderr)
    return 0 if found.success else 1


def _rows(path: str) -> tuple[list[str], Array]:
    """Return the names and the rows of a file."""
    with open_rows(path) as file:
        if file.names is None:
            raise ShapeError(
                f"{path}: the first line must name the columns: joints, then what was "
                "measured, such as x,y,z."
            )
        names = list(file.names)
        chunks = list(file.chunks)
    for width in {each.shape[1] for each in chunks} - {len(names)}:
        raise ShapeError(
            f"{path}: the first line names {len(names)} columns, {', '.join(names)}; "
            f"rows have {width} numbers."
        )
    return names, np.concatenate([np.zeros((0, len(names))), *chunks])


def _with_reflector(cell: Cell, frame: str, name: str) -> tuple[Cell, str]:
    """Return a cell with one more frame, at `frame`, and its whole name.

    Raises:
        ModelError: Nothing moves the frame, or the name is taken.
    """
    workcell = cell.workcell
    at = workcell.frame(frame) if frame else IN_WORLD
    if at.link < 0:
        raise ModelError(
            "--reflector adds a frame to a link of a robot, which --frame names."
        )
    owner = workcell.owners[at.link]
    robot = workcell.manipulators[owner]
    link = robot.links[at.link - workcell.starts[owner]]
    added = Frame(name=name, pose=link.primary.inverse() @ at.pose)
    changed = robot.exchange(link.replace(frames=[*link.frames, added]))
    return cell.exchange(changed), f"{robot.name}/{name}"


def _positions(
    cell: Cell, options: argparse.Namespace, joints: Sequence[str], rows: Array
) -> Array:
    """Return positions of all joints [m or rad], others than those named at home."""
    factors = joint_factors(cell.workcell, joints) if options.degrees else 1.0
    return cell.device(joints=list(joints), state=cell.home).whole(rows * factors)


def _next_poses(
    cell: Cell, found: Calibration, names: Sequence[str], options: argparse.Namespace
) -> Array:
    """Return the joint positions to measure next, in the units of the file.

    names: Of the joints of the file; others stay where they are.
    """
    places = [cell.joint(name) for name in names]
    if options.candidates is not None:
        columns, rows = _rows(options.candidates)
        q = _positions(cell, options, columns, rows)
    else:
        seen = found.measurements[0].q
        low, high = cell.limits
        ranges = {
            name: (float(seen[:, k].min()) - 1e-9, float(seen[:, k].max()) + 1e-9)
            for name, k in zip(names, places, strict=True)
            if not np.isfinite([low[k], high[k]]).all()
        }
        drawn = cell.samples(CANDIDATES, joints=list(names), within=ranges)
        device = cell.device(joints=list(names), state=cell.home)
        q = device.whole(drawn.rows(0, CANDIDATES))
        try:
            q = q[~np.asarray(cell.collision()(q))]
        except ArmillaryError as error:  # such as a mesh that is not there
            print(
                "warning: whether anything touches at the joint positions to measure "
                f"next was not checked. {printable(str(error))}",
                file=sys.stderr,
            )
    factors = joint_factors(cell.workcell, names) if options.degrees else 1.0
    return q[found.next_poses(q, options.next)][:, places] / factors


def _measurement(
    cell: Cell,
    frame: str,
    options: argparse.Namespace,
    names: list[str],
    rows: Array,
) -> kinds.Measurement:
    """Return what the file holds.

    frame: That which was measured.

    Raises:
        ArmillaryError: Columns are nothing, or numbers are faulty.
    """
    path: str = options.measurements
    if any(OF_MOTION.fullmatch(name) for name in names):
        return _torques(cell, options, names, rows)
    joints = [k for k, name in enumerate(names) if name not in MEASURED]
    others = [k for k, name in enumerate(names) if name in MEASURED]
    chosen = [names[k] for k in joints]
    q = _positions(cell, options, chosen, rows[:, joints])
    common: dict[str, Any] = {}
    if options.sigma is not None:
        common["sigma"] = options.sigma
    columns = [names[k] for k in others]
    scale = 1e-3 if options.mm else 1.0
    if options.on is not None:
        if columns:
            raise ShapeError(
                f"{path}: with --on {options.on} columns are joints; leave out "
                f"{', '.join(columns)}."
            )
        return SHAPES[options.on](frame, q, relative_to=options.relative_to, **common)
    if columns == [DISTANCE]:
        lengths = scale * rows[:, others[0]]
        return kinds.Distances(frame, q, lengths, to=options.relative_to, **common)
    if not columns:
        raise ShapeError(
            f"{path}: no column is what was measured: x,y,z, a pose, or distance; or "
            "say --on for a point, plane or sphere."
        )
    X = named_poses(columns, rows[:, others], path, degrees=options.degrees)
    X[:, :3, 3] *= scale
    common["relative_to"] = options.relative_to
    if len(columns) == 3:
        return kinds.Positions(frame, q, X[:, :3, 3], **common)
    if options.sigma_rotation is not None:
        common["sigma_rotation"] = options.sigma_rotation
    return kinds.Poses(frame, q, X, **common)


def _torques(
    cell: Cell, options: argparse.Namespace, names: Sequence[str], rows: Array
) -> kinds.Torques:
    """Return the torques of a motion.

    Raises:
        ShapeError: A column is missing, twice there, or of something else.
    """
    path: str = options.measurements
    places: dict[tuple[str, int], int] = {}
    for k, name in enumerate(names):
        match = OF_MOTION.fullmatch(name)
        if match is None:
            if NOT_READ.fullmatch(name):
                continue
            raise ShapeError(
                f"{path}: {quote(name)} is not a column of a motion, such as q:elbow, "
                "qd:elbow, qdd:elbow or torque:elbow."
            )
        key = match[1], cell.joint(match[2])
        if key in places:
            raise ShapeError(f"{path}: column {quote(name)} is there twice.")
        places[key] = k
    factors = joint_factors(cell.workcell, cell.joint_names) if options.degrees else 1.0
    found: list[Array] = []
    for kind in ("q", "qd", "qdd", "torque"):
        columns = [places.get((kind, j)) for j in range(len(cell.joint_names))]
        missing = [
            f"{kind}:{cell.joint_names[j]}" for j, c in enumerate(columns) if c is None
        ]
        if missing:
            raise ShapeError(
                f"{path}: torques depend on all joints; there is no column "
                f"{', '.join(missing)}."
            )
        values = rows[:, [c for c in columns if c is not None]]
        found.append(values if kind == "torque" else values * factors)
    sigma = {} if options.sigma is None else {"sigma": options.sigma}
    return kinds.Torques(*found, **sigma)
