"""Scalars that record arithmetic, the table of operations, Programs, derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armillary.late_names import LateNames
from armillary.trace.interval import Interval
from armillary.trace.jvp import jvp
from armillary.trace.ops import OPS, Op, Traced
from armillary.trace.program import (
    Instruction,
    Port,
    Program,
    evaluate,
    listing,
    trace,
)
from armillary.trace.scalar import Scalar, TracedBool
from armillary.trace.vjp import vjp

if TYPE_CHECKING:
    from armillary.trace.derivatives import (
        Followers,
        composed,
        cotangent_program,
        tangent_program,
    )

__all__ = [
    "OPS",
    "Followers",
    "Instruction",
    "Interval",
    "Op",
    "Port",
    "Program",
    "Scalar",
    "Traced",
    "TracedBool",
    "composed",
    "cotangent_program",
    "evaluate",
    "jvp",
    "listing",
    "tangent_program",
    "trace",
    "vjp",
]

# Few processes ask for derivatives.
if not TYPE_CHECKING:
    __getattr__ = LateNames(
        __name__,
        {
            "Followers": "derivatives",
            "composed": "derivatives",
            "cotangent_program": "derivatives",
            "tangent_program": "derivatives",
        },
    ).getter()


def __dir__() -> list[str]:
    return __all__
