"""Arithmetic that remembers itself: traced scalars, their table, programs."""

from __future__ import annotations

from armillary.trace.interval import Interval
from armillary.trace.jvp import tangent
from armillary.trace.ops import OPS, Op, Traced
from armillary.trace.program import (
    Instruction,
    Port,
    Program,
    listing,
    replay,
    trace,
)
from armillary.trace.scalar import Scalar, TracedBool

__all__ = [
    "OPS",
    "Instruction",
    "Interval",
    "Op",
    "Port",
    "Program",
    "Scalar",
    "Traced",
    "TracedBool",
    "listing",
    "replay",
    "tangent",
    "trace",
]
