"""Where a base stands in a state, and how it moves."""

from __future__ import annotations

import msgspec

from armillary.model.workcell import WORLD
from armillary.spatial.pose import IDENTITY, Pose


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the base of a manipulator stands just now.

    Attributes:
        manipulator: Its name.
        on: The frame it is fixed to, qualified; `world` for a base that stands free.
        pose: Of the base in that frame.
    """

    manipulator: str
    on: str = WORLD
    pose: Pose = IDENTITY


class BaseVelocity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The twist of a free base in the world, about its origin, in world axes.

    Attributes:
        manipulator: Its name.
        linear: [m/s].
        angular: [rad/s].
    """

    manipulator: str
    linear: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular: tuple[float, float, float] = (0.0, 0.0, 0.0)
