"""Which joints are inputs of a question, and where the others stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armillary.spatial.vector import Number


class Selection(NamedTuple):
    """The joints that are inputs, in their order, and the rest at rest.

    Attributes:
        inputs: Places in the cell's q.
        rest: A whole q, from which the other joints take their coordinate [m or rad].
    """

    inputs: tuple[int, ...]
    rest: tuple[float, ...]

    def expand(self, q: Sequence[Number]) -> list[Number]:
        """Return the whole q with the inputs put in their places."""
        whole: list[Number] = list(self.rest)
        for place, number in zip(self.inputs, q, strict=True):
            whole[place] = number
        return whole
