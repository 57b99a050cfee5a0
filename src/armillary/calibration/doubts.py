"""What is likely to be wrong with measurements, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import Measurement
from armillary.calibration.measurements import Poses
from armillary.calibration.pose_starts import pose_starts
from armillary.model.cell_parameters import named_parameters
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose

__all__ = ["doubts_of_rows"]

Array = npt.NDArray[np.float64]

FAR: Final = 8.0
"""Rows with residuals above so many typical ones are named."""
CLEARLY: Final = 0.2
"""A reading of rotations is said to be better if they are off by that part."""
ALIKE: Final = 1e-3
"""Joint positions that differ by less are the same ones [m or rad]."""
SHOWN: Final = 8
TRANSPOSED: Final = (
    "transposed rotations would fit better; are matrices by columns, or poses the "
    "inverse ones?"
)
W_ELSEWHERE: Final = (
    "quaternions would fit better with w at the other end; is w the first of four, or "
    "the last?"
)


def doubts_of_rows(
    cell: Workcell,
    measurements: Sequence[Measurement],
    names: Sequence[str],
    residuals: Sequence[Array],
) -> Iterator[str]:
    """Yield what rows of measurements are likely to be wrong, and why.

    Args:
        cell: The nominal cell.
        measurements: What was measured of it.
        names: Of the parameters.
        residuals: Of each measurement, of the calibrated cell, in parts of errors.
    """
    for each, rows in zip(measurements, residuals, strict=True):
        # Torques, which have no frame, also differ by rates at the same positions.
        is_moved = each.q.size == 0 or np.ptp(each.q, axis=0).max() > ALIKE
        if each.frame and len(each) > 1 and not is_moved:
            yield (
                f"{each.label}: all {len(each)} rows have the same joint positions, "
                "and decide no more than one of them; measure at others."
            )
        sizes = np.sqrt((rows**2).mean(axis=1))
        limit = FAR * max(float(np.median(sizes)), 1.0)
        far = np.flatnonzero(sizes > limit)
        if len(far):
            worst = far[np.argsort(-sizes[far], kind="stable")][:SHOWN]
            listed = ", ".join(map(str, np.sort(worst)))
            more = f" and {len(far) - SHOWN} more" if len(far) > SHOWN else ""
            yield (
                f"{each.label}: row {listed}{more} fits far worse than others; check "
                "it, or use loss='cauchy' (--loss cauchy)."
            )
        if isinstance(each, Poses) and np.median(np.abs(rows[:, 3:])) > 1.0:
            yield from _other_readings(each, cell, names)


def _other_readings(
    measurement: Poses, cell: Workcell, names: Sequence[str]
) -> Iterator[str]:
    """Yield what rotations may be read as with which they are much nearer to the cell.

    Poses that are unknown, as of a camera on a hand, are started anew for each reading.
    """
    parameters = named_parameters(cell, names)
    X = measurement.measured
    quaternions = [Pose.from_matrix(each, tolerance=1e-2).quaternion() for each in X]

    def rolled(places: int) -> Array:
        turned = np.roll(quaternions, places, axis=1)
        return np.array([Pose.from_quaternion(q).matrix()[:3, :3] for q in turned])

    readings = [
        ("", X[:, :3, :3]),
        (TRANSPOSED, X[:, :3, :3].transpose(0, 2, 1)),
        (W_ELSEWHERE, rolled(1)),
        (W_ELSEWHERE, rolled(-1)),
    ]
    typical: list[float] = []
    for _, rotations in readings:
        other = X.copy()
        other[:, :3, :3] = rotations
        read = Poses(
            measurement.frame,
            measurement.q,
            other,
            sigma=measurement.sigma,
            sigma_rotation=measurement.sigma_rotation,
            relative_to=measurement.relative_to,
        )
        p = pose_starts(cell, [read], parameters)
        off = read.compared(cell, names, p).residuals[:, 3:]
        typical.append(float(np.median(np.linalg.norm(off, axis=1))))
    best = int(np.argmin(typical))
    if typical[best] < CLEARLY * typical[0]:
        yield f"{measurement.label}: {readings[best][0]}"
