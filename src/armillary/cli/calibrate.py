"""`armillary calibrate`: numbers of a robot from a file of measurements."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.calibration import measurements as kinds
from armillary.calibration.calibrate import LOSSES, calibrate
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
from armillary.errors import ShapeError, printable
from armillary.formats import registry
from armillary.sweeps.row_files import open_rows

Array = npt.NDArray[np.float64]

DISTANCE: Final = "distance"
MEASURED: Final = {*RPY, *QUATERNION, DISTANCE}
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
called like a measured column is written with its manipulator, robot/x. The exit code is
1 if the search did not end.
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
        RELATIVE_TO,
        option("--sigma S", "standard deviation of lengths [m]", type=float),
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
        option("--out FILE", "the file to write the calibrated cell to"),
        JSON,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Calibrate, print the report and write the cell; return an exit code."""
    cell = open_cell(options)
    measured = _measurement(cell, options)
    found = calibrate(cell, measured, options.parameters, loss=options.loss)
    about = found.to_dict()
    if options.cross_validate:
        (rows,) = found.cross_validated(options.cross_validate)
        about["cross_validated"] = float(np.sqrt((rows**2).mean()))
    if options.json:
        print(json.dumps(about))
    else:
        for line in found.report().splitlines():
            print(printable(line))
        if options.cross_validate:
            print(
                f"\nresiduals of rows left out: {about['cross_validated']:.3g} of the "
                "standard deviations stated"
            )
    if options.out is not None:
        report = registry.save(found.cell.workcell, options.out, meshes=cell.meshes)
        warn(report)
        print(f"{printable(options.out)}: written", file=sys.stderr)
    return 0 if found.success else 1


def _measurement(cell: Cell, options: argparse.Namespace) -> kinds.Measurement:
    """Return what the file holds.

    Raises:
        ArmillaryError: It has no names, columns that are nothing, or faulty numbers.
    """
    path: str = options.measurements
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
    rows = np.concatenate([np.zeros((0, len(names))), *chunks])
    joints = [k for k, name in enumerate(names) if name not in MEASURED]
    others = [k for k, name in enumerate(names) if name in MEASURED]
    chosen = [names[k] for k in joints]
    factors = (
        joint_factors(cell.workcell, chosen)
        if options.degrees
        else np.ones(len(joints))
    )
    q = cell.device(joints=chosen, state=cell.home).whole(rows[:, joints] * factors)
    frame = chosen_frame(cell, options)
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
