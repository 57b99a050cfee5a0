"""Poses in RobWork files: angles in degrees and a position, or twelve numbers."""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.xml import Element
from armillary.spatial.euler import rows_from_moving_zyx
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import is_proper, nearest_rotation, orthonormality_error
from armillary.spatial.vector import Rows, Vector3, cross, transpose

__all__ = ["TRANSFORM", "looks_like_radians", "read_transform"]

TRANSFORM: Final = ("RPY", "Pos", "Transform")
"""The elements that make up a pose."""

EXACT: Final = 1e-12
# Six digits after the point leave errors of a few 1e-6, three digits a few 1e-3.
ROUNDED: Final = 1e-5
SHEARED: Final = 1e-2
RADIANS: Final = 2e-3
_NONE: Final = (0.0, 0.0, 0.0)


def read_transform(element: Element, desk: Desk) -> Pose:
    """Return the pose that an element's children `RPY`, `Pos` or `Transform` give.

    It is the identity without any, and after an error. Either of RPY and Pos may be
    missing here, and be empty as in RobWork; it is zero then.
    """
    rpy, pos, twelve = (element.only_child(name, desk.report) for name in TRANSFORM)
    if twelve is not None and (rpy is not None or pos is not None):
        desk.report.error(
            twelve.place,
            "two-transforms",
            f"{element.label} has <Transform> beside <RPY> or <Pos>",
            hint="Keep one of them.",
        )
    if twelve is not None:
        return _twelve_numbers(element, twelve, desk)
    if (rpy is None) != (pos is None):
        desk.report.warning(
            element.place,
            "half-transform",
            f"{element.label} has <{'Pos' if rpy is None else 'RPY'}> but no "
            f"<{'RPY' if rpy is None else 'Pos'}>, which is taken as 0 0 0",
        )
    position = _three(pos, desk)
    angles = _three(rpy, desk)
    if rpy is not None and any(map(looks_like_radians, angles)):
        desk.report.warning(
            rpy.place,
            "radians",
            f"the angles {quote(rpy.text.strip())} look like radians; they are read as "
            "degrees, as RobWork does",
        )
    z, y, x = map(math.radians, angles)
    return Pose(rows_from_moving_zyx(z, y, x), position)


def looks_like_radians(angle: float) -> bool:
    """Return whether a number of degrees is a multiple of a right angle in radians.

    Nobody turns anything by 1.57, 3.14 or 6.283 degrees, but many do by pi / 2.
    """
    turns = abs(angle) / (0.5 * math.pi)
    return 0.5 < turns < 4.5 and abs(turns - round(turns)) * 0.5 * math.pi < RADIANS


def _three(element: Element | None, desk: Desk) -> Vector3:
    """Return the three numbers of an element, zeros for an empty or missing one."""
    if element is None:
        return _NONE
    values = element.text_numbers(3, desk.report) if element.read_text() else _NONE
    desk.close(element)
    return _NONE if values is None else (values[0], values[1], values[2])


def _twelve_numbers(owner: Element, element: Element, desk: Desk) -> Pose:
    if not element.read_text():
        desk.report.warning(
            element.place,
            "half-transform",
            f"<Transform> of {owner.label} is empty, which is taken as no transform",
        )
        return IDENTITY
    n = element.text_numbers(12, desk.report)
    desk.close(element)
    if n is None:
        return IDENTITY
    rotation: Rows = ((n[0], n[1], n[2]), (n[4], n[5], n[6]), (n[8], n[9], n[10]))
    position = (n[3], n[7], n[11])
    return Pose(_made_right(owner, element, rotation, desk), position)


def _made_right(owner: Element, element: Element, m: Rows, desk: Desk) -> Rows:
    """Return a true rotation in place of the one that a file gives, and tell.

    RobWork takes any nine numbers. A left-handed frame keeps its x and y axes, and its
    z axis is turned round.
    """
    error = orthonormality_error(m)
    if not error <= SHEARED:
        desk.report.error(
            element.place,
            "bad-rotation",
            f"<Transform> of {owner.label} is no rotation: R R' differs from 1 by "
            f"{error:.3g}",
            hint="Give three rows: those of a rotation, each with a coordinate behind.",
        )
        return IDENTITY.rotation
    if not is_proper(m):
        x, y, _ = transpose(m)
        m = transpose((x, y, cross(x, y)))
        desk.report.warning(
            element.place,
            "left-handed",
            f"<Transform> of {owner.label} is a reflection (determinant -1), so its "
            "frame would be left-handed; its x and y axes are kept, its z axis is "
            "turned round",
            hint="What has no mirror symmetry comes out otherwise than in RobWork.",
        )
    elif error > ROUNDED:
        desk.report.warning(
            element.place,
            "sheared",
            f"<Transform> of {owner.label} is a rotation only to {error:.2g}; the "
            "nearest one is taken",
        )
    return m if error <= EXACT else nearest_rotation(m)
