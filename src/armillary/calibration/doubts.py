"""What is likely to be wrong with measurements, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import Measurement
from armillary.calibration.measurements import Poses
from armillary.model.workcell import Workcell

__all__ = ["doubts_of_rows"]

Array = npt.NDArray[np.float64]

FAR: Final = 8.0
"""Rows with residuals above so many typical ones are named."""
CLEARLY: Final = 0.2
"""A reading of rotations is said to be better if they are off by that part."""
SHOWN: Final = 8


def doubts_of_rows(
    cell: Workcell,
    measurements: Sequence[Measurement],
    names: Sequence[str],
    start: Array,
    residuals: Sequence[Array],
) -> Iterator[str]:
    """Yield what rows of measurements are likely to be wrong, and why.

    Args:
        cell: The nominal cell.
        measurements: What was measured of it.
        names: Of the parameters.
        start: Their nominal values.
        residuals: Of each measurement, of the calibrated cell, in parts of errors.
    """
    for each, rows in zip(measurements, residuals, strict=True):
        sizes = np.sqrt((rows**2).mean(axis=1))
        limit = FAR * max(float(np.median(sizes)), 1.0)
        far = np.flatnonzero(sizes > limit)
        if len(far):
            worst = far[np.argsort(-sizes[far], kind="stable")][:SHOWN]
            listed = ", ".join(map(str, np.sort(worst)))
            more = f" and {len(far) - SHOWN} more" if len(far) > SHOWN else ""
            yield (
                f"{each.label}: row {listed}{more} fits far worse than others; check "
                "it, or use loss='cauchy'."
            )
        if isinstance(each, Poses) and _are_inverse(each, cell, names, start):
            yield (
                f"{each.label}: transposed rotations would fit better; are matrices "
                "by columns, or poses the inverse ones?"
            )


def _are_inverse(
    measurement: Poses, cell: Workcell, names: Sequence[str], start: Array
) -> bool:
    """Return whether transposed rotations are much nearer to those of the cell."""
    R = measurement.poses(cell, names, start, measurement.q)[:, :3, :3]
    M = measurement.measured[:, :3, :3]
    plain, other = (
        np.median(np.linalg.norm(R - each, axis=(1, 2)))
        for each in (M, M.transpose(0, 2, 1))
    )
    return bool(other < CLEARLY * plain)
