"""Sweeps over many samples, and the reductions that they can keep in place of rows.

`arm.sweep` runs one; `rows` is the question whose results are the samples themselves.
"""

from __future__ import annotations

from armillary.sweeps.fields import rows
from armillary.sweeps.reductions import Best, Count, Histogram, Reduction, Voxels
from armillary.sweeps.result import SweepResult
from armillary.sweeps.samples import Samples

__all__ = [
    "Best",
    "Count",
    "Histogram",
    "Reduction",
    "Samples",
    "SweepResult",
    "Voxels",
    "rows",
]
