"""Where manipulators are mounted."""

from __future__ import annotations

from typing import Final

import msgspec

from armillary.errors import quote
from armillary.model.check_pose import rigid
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["WORLD", "Mount"]

WORLD: Final = "world"


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """Where the base of a manipulator stands.

    Attributes:
        manipulator: Name of what stands.
        on: A frame of another manipulator, or `world`; a bare name is stored qualified
            by its cell.
        pose: Of the base in that frame; a precursor of its fixed joint comes after it.
        bolted: Whether it stays there in every state; parts that are gripped do not.
    """

    manipulator: str
    on: str = WORLD
    pose: Pose = IDENTITY
    bolted: bool = True

    def __post_init__(self) -> None:
        """Store a 4x4 array as the pose that it is.

        Raises:
            ModelError: It does not hold finite numbers.
        """
        if self.pose is not IDENTITY:
            pose = rigid(self.pose, f"the mount of {quote(self.manipulator)}")
            msgspec.structs.force_setattr(self, "pose", pose)
