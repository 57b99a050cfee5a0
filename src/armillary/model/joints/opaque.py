"""The joint of a type that is not known here."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from armillary.errors import JointError, quote
from armillary.forks import IMPORT_LOCK
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.vector import Number


class OpaqueJoint(Joint, frozen=True):
    """Keep the place of a joint whose class is not known: it is saved, but cannot move.

    Attributes:
        kind: The tag of its class.
        parameters: Its other parameters, as a JSON object; stored in its shortest form.
    """

    kind: str
    parameters: str = "{}"
    unit = Unit.OTHER

    def check(self) -> None:
        """Bring the parameters into their shortest form.

        Raises:
            JointError: They are not a JSON object, or hold `type` or `precursor`.
        """
        try:
            parameters = msgspec.json.decode(self.parameters, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise JointError(
                f"The parameters of an OpaqueJoint are not a JSON object: {error}."
            ) from error
        for name in ("type", "precursor"):
            if name in parameters:
                raise JointError(
                    f"The parameters of an OpaqueJoint hold {quote(name)}; that has a "
                    "field of its own."
                )
        text = msgspec.json.encode(parameters).decode()
        msgspec.structs.force_setattr(self, "parameters", text)

    def pose(self, q: Number) -> NoReturn:
        """Refuse: only its class knows.

        Raises:
            JointError: Always.
        """
        with IMPORT_LOCK:
            from armillary.plugins import advice  # nobody else pays for it

        raise JointError(
            f"Joint type {quote(self.kind)} is not known here, so it cannot move. "
            f"{advice(self.kind)}"
        )
