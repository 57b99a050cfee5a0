"""The joints that armillary brings along, one a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from armillary.late_names import LateNames
from armillary.model.joint import Joint

if TYPE_CHECKING:
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

_CLASSES: Final = LateNames(
    __name__,
    {
        "Fixed": "fixed",
        "Revolute": "revolute",
        "Prismatic": "prismatic",
        "Screw": "screw",
        "PaulRevolute": "paul",
        "PaulPrismatic": "paul",
        "CraigRevolute": "craig",
        "CraigPrismatic": "craig",
        "CircleTrack": "circle_track",
        "OvalTrack": "oval_track",
        "Curve": "curve",
        "FourBarSlider": "four_bar_slider",
        "AngleCoordinate": "coordinate",
        "LengthCoordinate": "coordinate",
    },
)

JOINT_TYPES: Final[Mapping[str, type[Joint]]] = _CLASSES
"""The built-in joints by the tag under which files know them, the name of the class."""

if not TYPE_CHECKING:  # checkers know the names, and that there are no others
    __getattr__ = _CLASSES.getter()


def __dir__() -> list[str]:
    return __all__
