"""The joint of a type that is not known here."""

from __future__ import annotations

from typing import NoReturn

from armillary.errors import JointError, quote
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.vector import Number


class OpaqueJoint(Joint, frozen=True):
    """Keep the place of a joint whose class is not known: it is saved, but cannot move.

    Attributes:
        kind: The tag of its class.
        parameters: Its other parameters, as a JSON object in its shortest form.
    """

    kind: str
    parameters: str = "{}"
    unit = Unit.OTHER

    def pose(self, q: Number) -> NoReturn:
        """Refuse: only its class knows.

        Raises:
            JointError: Always.
        """
        raise JointError(
            f"Joint type {quote(self.kind)} is not known here, so it cannot move. Give "
            "its class when the cell is loaded: joints=[...]."
        )
