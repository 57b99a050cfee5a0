"""Twists of many links: their Jacobians, by as many kernels as it takes.

A kernel reads and writes no more than some bytes for a row, which Jacobians of a
hundred links by a hundred joints exceed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.kinematics.questions import jacobian
from armillary.kinematics.state import State

__all__ = ["link_twists"]

Array = npt.NDArray[np.float64]

MOST_NUMBERS: Final = 1 << 15
"""Most numbers of a row that one kernel returns, unless those of one link are more."""


def link_twists(
    state: State, links: Sequence[str], joints: int
) -> Callable[[Array], Array]:
    """Return the function from joint positions to twists of links per unit rates.

    Args:
        state: The state whose attachments and moved bases are used.
        links: Names of t links.
        joints: How many joints the cell has.

    Returns:
        (..., joints) -> (..., t, 6, joints): linear [m/unit], then angular [rad/unit].
    """
    count = max(1, MOST_NUMBERS // max(1, 6 * joints))
    kernels = [
        jacobian(state.cell, links[k : k + count], state=state)
        for k in range(0, len(links), count)
    ]
    if len(kernels) == 1:
        return kernels[0]
    return lambda Q: np.concatenate([kernel(Q) for kernel in kernels], axis=-3)
