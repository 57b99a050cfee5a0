"""Joints that stay where they are during a motion, or within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.workcell import Workcell

__all__ = ["Bounds", "Region", "region_of"]

Array = npt.NDArray[np.float64]

Bounds: TypeAlias = Mapping[str, tuple[float, float]]
"""Least and greatest positions of joints, by their names."""


@final
class Region(NamedTuple):
    """Where joints may be during a motion.

    Attributes:
        lower: Least joint positions [m or rad], shape (n,).
        upper: Greatest, shape (n,).
        fixed: Places in q of joints that do not move.
    """

    lower: Array
    upper: Array
    fixed: tuple[int, ...]


def region_of(
    cell: Workcell, start: Array | None, fixed: Sequence[str], bounds: Bounds
) -> Region:
    """Return where joints may be: within limits and bounds, fixed ones at a start.

    Args:
        cell: The cell.
        start: Joint positions [m or rad], shape (n,); None where there is none.
        fixed: Names of joints that stay there.
        bounds: Least and greatest positions of joints.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: Bounds are not two numbers, the first not above the second, both
            beyond the limits, or a joint is to be fixed and there is no start.
    """
    lower, upper = (np.array(each, float) for each in cell.limits)
    for name, pair in bounds.items():
        k = cell.joint(name)
        numbers = np.array(pair, float)
        if numbers.shape != (2,) or not numbers[0] <= numbers[1]:
            raise ModelError(
                f"The bounds of '{name}' are the least and the greatest position, not "
                f"{pair!r}."
            )
        lower[k], upper[k] = max(lower[k], numbers[0]), min(upper[k], numbers[1])
        if lower[k] > upper[k]:
            raise ModelError(
                f"The bounds of '{name}', {pair!r}, are beyond its limits, "
                f"{cell.limits[0][k]:g} to {cell.limits[1][k]:g}."
            )
    if isinstance(fixed, str):
        raise ModelError(f"fixed= takes a list of names of joints, as ['{fixed}'].")
    places = tuple(sorted({cell.joint(name) for name in fixed}))
    if places and start is None:
        raise ModelError("A roadmap has no start to fix joints at: bound them.")
    if start is not None:
        # One that starts beyond its limits is reported as such.
        for k in places:
            is_within = lower[k] <= start[k] <= upper[k]
            if is_within:
                lower[k] = upper[k] = start[k]
    return Region(lower, upper, places)
