"""The joints that armillary brings along, one a file."""

from __future__ import annotations

from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.oval_track import OvalTrack
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute

JOINT_TYPES: dict[str, type[Joint]] = {
    kind.tag: kind for kind in (Fixed, Revolute, Prismatic, OvalTrack)
}
"""The built-in joints by the tag under which files know them."""
