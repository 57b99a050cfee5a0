"""Named frames on links."""

from __future__ import annotations

import msgspec

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
