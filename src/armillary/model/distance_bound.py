"""A true upper bound of how far a joint moves its outer frame."""

from __future__ import annotations

import math
from typing import Any, Final

from armillary.model.highest import Hill, highest
from armillary.model.motion import Motion
from armillary.model.square_distance import square_distance
from armillary.spatial.pose import Pose

GAPS: Final = [1e-9] * 150 + [1e-5] * 150 + [1e-3] * 900


def largest_distance(motion: Motion, precursor: Pose, low: float, high: float) -> float:
    """Return an upper bound of |p_FM(q)| for q in [low, high] [m].

    It is mostly within 1e-9 relative of the largest distance, and within 1e-5 or 1e-3
    where the distance hardly changes. Over infinite ranges it may be looser, or
    infinite.
    """

    def height(q: Any) -> Any:
        return square_distance(precursor, motion.pose(q).position)

    return math.sqrt(max(0.0, highest(Hill(height), ((low, high),), GAPS)))
