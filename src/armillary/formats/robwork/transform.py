"""Poses in RobWork files: angles in degrees and a position, or twelve numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.elements import TRANSFORM, number_text
from armillary.formats.xml import Element, tag
from armillary.spatial.euler import moving_zyx, rows_from_moving_zyx
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import (
    is_proper,
    nearest_rotation,
    orthonormality_error,
)
from armillary.spatial.vector import EYE, ZERO, Rows, Vector3, cross, transpose

__all__ = [
    "ANGLE_DIGITS",
    "looks_like_radians",
    "numbers_element",
    "read_transform",
    "transform_elements",
]

# Six digits after the point leave errors of a few 1e-6, three digits a few 1e-3.
EXACT, ROUNDED, SHEARED = 1e-12, 1e-5, 1e-2
RADIANS: Final = 2e-3
ROUNDING: Final = 1e-15
ANGLE_DIGITS: Final = 10


def read_transform(element: Element, report: Report) -> Pose:
    """Return the pose that an element's children `RPY`, `Pos` or `Transform` give.

    Either of RPY and Pos may be missing here, or empty as in RobWork; it is zero then.
    Without any of them, and after an error, the pose is the identity.
    """
    rpy, pos, twelve = (element.only_child(name, report) for name in TRANSFORM)
    if twelve is not None:
        if rpy is not None or pos is not None:
            report.error(
                twelve.place,
                "two-transforms",
                f"{element.label} has <Transform> beside <RPY> or <Pos>",
                hint="Keep one of them.",
            )
        return _read_matrix(element, twelve, report)
    if (rpy is None) != (pos is None):
        given, missing = ("Pos", "RPY") if rpy is None else ("RPY", "Pos")
        message = (
            f"{element.label} has <{given}> but no <{missing}>, which is taken as 0 0 0"
        )
        report.warning(element.place, "half-transform", message)
    position, angles = _read_vector(pos, report), _read_vector(rpy, report)
    if rpy is not None and any(map(looks_like_radians, angles)):
        report.warning(
            rpy.place,
            "radians",
            f"the angles {quote(rpy.text.strip())} look like radians; they are read as "
            "degrees, as RobWork does",
        )
    return Pose(rows_from_moving_zyx(*map(math.radians, angles)), position)


def looks_like_radians(angle: float) -> bool:
    """Return whether an angle [degree] is a multiple of a right angle in radians."""
    turns = abs(angle) / (0.5 * math.pi)
    return 0.5 < turns < 4.5 and abs(turns - round(turns)) * 0.5 * math.pi < RADIANS


def _read_vector(element: Element | None, report: Report) -> Vector3:
    if element is None or not element.read_text():
        return ZERO
    x, y, z = element.text_numbers(3, report) or ZERO
    return x, y, z


def _read_matrix(owner: Element, element: Element, report: Report) -> Pose:
    if not element.read_text():
        message = (
            f"<Transform> of {owner.label} is empty, which is taken as no transform"
        )
        report.warning(element.place, "half-transform", message)
        return IDENTITY
    n = element.text_numbers(12, report)
    if n is None:
        return IDENTITY
    rotation: Rows = ((n[0], n[1], n[2]), (n[4], n[5], n[6]), (n[8], n[9], n[10]))
    return Pose(_corrected(owner, element, rotation, report), (n[3], n[7], n[11]))


def _corrected(owner: Element, element: Element, m: Rows, report: Report) -> Rows:
    """Return an exact rotation in place of nine numbers, which RobWork takes as given.

    A left-handed frame keeps its x and y axes, and its z axis is reversed.
    """
    error = orthonormality_error(m)
    if not error <= SHEARED:
        report.error(
            element.place,
            "bad-rotation",
            f"<Transform> of {owner.label} is not a rotation: R R' differs from 1 by "
            f"{error:.3g}",
            hint="Give the three rows of a rotation, each followed by a coordinate.",
        )
        return EYE
    if not is_proper(m):
        # Columns are axes: z is replaced by x cross y.
        x, y, _ = transpose(m)
        m = transpose((x, y, cross(x, y)))
        report.warning(
            element.place,
            "left-handed",
            f"<Transform> of {owner.label} is a reflection (determinant -1), so its "
            "frame would be left-handed; its x and y axes are kept, its z axis is "
            "reversed",
            hint="A shape without mirror symmetry looks different in RobWork.",
        )
    elif error > ROUNDED:
        report.warning(
            element.place,
            "sheared",
            f"<Transform> of {owner.label} differs from a rotation by {error:.2g}; the "
            "nearest rotation is taken",
        )
    return m if error <= EXACT else nearest_rotation(m)


# Writing


def transform_elements(pose: Pose) -> list[Element]:
    """Return a pose: angles and a position if rounding them is exact, else 12 numbers.

    The identity is left out.
    """
    if pose.is_identity:
        return []
    angles = _rounded_angles(pose.rotation)
    if angles is not None:
        return [numbers_element("RPY", angles), numbers_element("Pos", pose.position)]
    rows = [(*row, p) for row, p in zip(pose.rotation, pose.position, strict=True)]
    return [numbers_element("Transform", [n for row in rows for n in row])]


def _rounded_angles(m: Rows) -> list[float] | None:
    """Return the angles about z, y, x [degree], None if they would not read back."""
    if m == EYE:
        return [0.0, 0.0, 0.0]
    # Angles are preferred, being readable, where their rounding changes nothing.
    angles = [round(math.degrees(angle), ANGLE_DIGITS) for angle in moving_zyx(m)]
    back = rows_from_moving_zyx(*map(math.radians, angles))
    return angles if Pose(m, ZERO).approx_equal(Pose(back, ZERO), ROUNDING) else None


def numbers_element(name: str, values: Iterable[float]) -> Element:
    """Return an element whose text is a list of numbers."""
    return tag(name, text=" ".join(map(number_text, values)))
