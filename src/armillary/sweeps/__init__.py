"""Sweeps over many samples, and the reductions that they can keep in place of rows.

`arm.sweep` runs one; `rows` is the question whose results are the samples themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from armillary.late_names import LateNames

if TYPE_CHECKING:
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

_NAMES: Final = LateNames(
    __name__,
    {
        "rows": "fields",
        "Best": "reductions",
        "Count": "reductions",
        "Histogram": "reductions",
        "Reduction": "reductions",
        "Voxels": "reductions",
        "SweepResult": "result",
        "Samples": "samples",
    },
)

if not TYPE_CHECKING:  # checkers know the names, and that there are no others
    __getattr__ = _NAMES.getter()


def __dir__() -> list[str]:
    return __all__
