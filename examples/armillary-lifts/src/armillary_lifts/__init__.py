"""Lifts for armillary: on scissors, and on a parallelogram."""

from __future__ import annotations

from armillary_lifts.parallelogram_lift import ParallelogramLift
from armillary_lifts.scissor_lift import ScissorLift

__all__ = ["ParallelogramLift", "ScissorLift"]
