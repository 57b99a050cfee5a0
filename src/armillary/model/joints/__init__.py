"""The joints that armillary brings along, one a file."""

from __future__ import annotations

from armillary.model.joint import Joint
from armillary.model.joints.circle_track import CircleTrack
from armillary.model.joints.coordinate import AngleCoordinate, LengthCoordinate
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.joints.curve import Curve
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.four_bar_slider import FourBarSlider
from armillary.model.joints.oval_track import OvalTrack
from armillary.model.joints.paul import PaulPrismatic, PaulRevolute
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw

__all__ = [
    "JOINT_TYPES",
    "AngleCoordinate",
    "CircleTrack",
    "CraigPrismatic",
    "CraigRevolute",
    "Curve",
    "Fixed",
    "FourBarSlider",
    "LengthCoordinate",
    "OvalTrack",
    "PaulPrismatic",
    "PaulRevolute",
    "Prismatic",
    "Revolute",
    "Screw",
]

JOINT_TYPES: dict[str, type[Joint]] = {
    kind.tag: kind
    for kind in (
        Fixed,
        Revolute,
        Prismatic,
        Screw,
        PaulRevolute,
        PaulPrismatic,
        CraigRevolute,
        CraigPrismatic,
        CircleTrack,
        OvalTrack,
        Curve,
        FourBarSlider,
        AngleCoordinate,
        LengthCoordinate,
    )
}
"""The built-in joints by the tag under which files know them."""
