"""Named frames on links."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from armillary.errors import quote
from armillary.model.check_pose import rigid
from armillary.spatial.pose import IDENTITY, Pose


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A named frame that is fixed to a link.

    Attributes:
        name: Unique among the links and frames of its manipulator.
        pose: Where it is in the link's primary frame.
        end_effector: Whether it is one of those that tools are known by.
    """

    name: str
    pose: Pose = IDENTITY
    end_effector: bool = False

    def __post_init__(self) -> None:
        """Store a 4x4 array as the pose that it is.

        Raises:
            ModelError: It does not hold finite numbers.
        """
        if self.pose is not IDENTITY:
            pose = rigid(self.pose, f"frame {quote(self.name)}")
            msgspec.structs.force_setattr(self, "pose", pose)


class FrameRef(NamedTuple):
    """Where a frame is fixed: to a link, at a pose in its outer frame.

    link: Its number in the manipulator; in the cell through the links of all
        manipulators in turn, where -1 is the world.
    """

    link: int
    pose: Pose
