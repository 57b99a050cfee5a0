"""Arithmetic that remembers itself: traced scalars, their table, programs."""

from __future__ import annotations

from armillary.trace.derive import tangent
from armillary.trace.ops import OPS, Op, Traced
from armillary.trace.program import Instruction, Port, Program, listing, replay, trace
from armillary.trace.scalar import Scalar, Truth
from armillary.trace.spec import verify

__all__ = [
    "OPS",
    "Instruction",
    "Op",
    "Port",
    "Program",
    "Scalar",
    "Traced",
    "Truth",
    "listing",
    "replay",
    "tangent",
    "trace",
    "verify",
]
