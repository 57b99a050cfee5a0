"""The joints of a cell as people read them: in the order of q, with their units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armillary.model.unit import Unit
from armillary.model.workcell import Workcell

DEGREES_PER_RADIAN = 180.0 / math.pi


def si_factors(cell: Workcell, joints: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return what makes degrees radians, 1 for joints of other units, shape (n,).

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A bare name is not unique.
    """
    links = [cell.links[cell.joints.links[cell.joint(name)]] for name in joints]
    units = [link.joint.unit for link in links]
    return np.array(
        [1.0 / DEGREES_PER_RADIAN if unit is Unit.RADIAN else 1.0 for unit in units]
    )
