"""A joint as text and back: as the native format holds it."""

from __future__ import annotations

import msgspec

from armillary.errors import JointError
from armillary.formats.records import joint_of, joint_record
from armillary.model.joint import Joint
from armillary.model.parameters import nested_in


def native_round_trip(joint: Joint) -> Joint:
    """Save a joint as a native file holds it, and load it again.

    Raises:
        ArmillaryError: It cannot be saved or loaded.
        JointError: A second saving gives another text.
    """
    text = _saved(joint)
    joints: list[Joint] = [joint, *nested_in(joint)]
    kinds = {each.tag: type(each) for each in joints}
    loaded = joint_of(msgspec.json.decode(text), kinds)
    again = _saved(loaded)
    if again != text:
        raise JointError(
            f"it is saved as {text.decode()}, then loaded and saved as "
            f"{again.decode()}."
        )
    return loaded


def _saved(joint: Joint) -> bytes:
    return msgspec.json.encode(joint_record(joint))
