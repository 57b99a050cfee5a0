"""A joint as text and back: its tag and its parameters in JSON."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.spatial.pose import Pose


def json_round_trip(joint: Joint) -> Joint:
    """Save a joint as JSON and load it again.

    Raises:
        JointError: A second saving gives another text.
    """
    text = _saved(joint)
    loaded = type(joint)(**msgspec.json.decode(text))
    if _saved(loaded) != text:
        raise JointError(f"it is saved as {text!r}, loaded and saved as another text.")
    return loaded


def _saved(joint: Joint) -> bytes:
    names = joint.__struct_fields__
    return msgspec.json.encode({name: _plain(getattr(joint, name)) for name in names})


def _plain(value: Any) -> Any:
    """Return a parameter with its poses as 4x4 rows."""
    if isinstance(value, Pose):
        return value.matrix().tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in cast(tuple[Any, ...], value)]
    return value
