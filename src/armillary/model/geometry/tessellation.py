"""Closed surfaces from rings of points, and how finely arcs are cut."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.triangles import Triangles

Array = npt.NDArray[np.float64]

FEWEST_STEPS = 8
MOST_TRIANGLES = 4_000_000


def steps_around(radius: float, tolerance: float) -> int:
    """Return into how many chords a circle is cut, a multiple of four.

    The middle of a chord lies r (1 - cos(pi / n)) inside the circle.

    tolerance: The largest distance that may be [m], above 0.

    Raises:
        ModelError: The tolerance is invalid, or asks for too many chords.
    """
    check_tolerance(tolerance)
    ratio = tolerance / radius if radius > 0.0 else math.inf
    if ratio >= 1.0:
        return FEWEST_STEPS
    # acos(1 - x) = 2 asin(sqrt(x / 2)), which keeps its digits for small x.
    steps = math.pi / (2.0 * math.asin(math.sqrt(0.5 * ratio)))
    if steps > MOST_TRIANGLES:
        raise _too_fine(tolerance)
    return max(FEWEST_STEPS, 4 * math.ceil(0.25 * steps))


def check_tolerance(tolerance: float) -> None:
    """Refuse an invalid distance between a surface and its triangles.

    Raises:
        ModelError: It is not above 0.
    """
    if not tolerance > 0.0:
        raise ModelError(f"A tolerance is a length above 0, not {tolerance!r} m.")


def quarter(steps: int, radius: float) -> tuple[Array, Array]:
    """Return cosines and sines times a radius at angles from 0 to pi/2, ends exact.

    steps: Into how many the quarter is cut; both have shape (steps + 1,).
    """
    angles = np.linspace(0.0, 0.5 * np.pi, steps + 1)
    cosines, sines = np.cos(angles), np.sin(angles)
    cosines[-1], sines[-1] = 0.0, 1.0
    return radius * cosines, radius * sines


def half_circle(steps: int, radius: float) -> tuple[Array, Array]:
    """Return distances from z, and z, along a half circle from -z to z.

    steps: Into how many a whole circle is cut; both have shape (steps / 2 + 1,).
    """
    out, up = quarter(steps // 4, radius)
    return np.r_[out[::-1], out[1:]], np.r_[-up[::-1], up[1:]]


def revolved(profile: tuple[Array, Array], steps: int, tolerance: float) -> Triangles:
    """Return the closed surface of a profile that turns about z.

    profile: Distances from z and heights [m], shape (k,) each, upwards along the
        surface, from the axis and back to it.
    steps: How many chords a circle has.
    tolerance: For the message where there would be too many triangles.

    Raises:
        ModelError: There would be too many triangles.
    """
    out, up = profile
    if 2 * len(out) * steps > MOST_TRIANGLES:
        raise _too_fine(tolerance)
    cosines, sines = quarter(steps // 4, 1.0)
    x = np.r_[cosines[:-1], -sines[:-1], -cosines[:-1], sines[:-1]]
    y = np.r_[sines[:-1], cosines[:-1], -sines[:-1], -cosines[:-1]]
    rings = np.empty((len(out), steps, 3))
    rings[:, :, 0] = np.multiply.outer(out, x)
    rings[:, :, 1] = np.multiply.outer(out, y)
    rings[:, :, 2] = up[:, np.newaxis]
    return lofted(rings, tolerance)


def lofted(rings: Array, tolerance: float) -> Triangles:
    """Return the closed surface that connects rings of points, and closes both ends.

    rings: Points [m], shape (k, m, 3): k rings on top of each other, each
        counter-clockwise from above and, at the ends, convex. Points that coincide
        become one.
    tolerance: For the message where there would be too many triangles.

    Raises:
        ModelError: There would be too many triangles.
    """
    levels, around = rings.shape[:2]
    if 2 * levels * around > MOST_TRIANGLES:
        raise _too_fine(tolerance)
    number = np.arange(levels * around, dtype=np.int64).reshape(levels, around)
    beside = np.roll(number, -1, axis=1)
    a, b, c, d = number[:-1], beside[:-1], beside[1:], number[1:]
    sides = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    fan = np.arange(1, around - 1, dtype=np.int64)
    first = np.zeros(len(fan), dtype=np.int64)
    bottom = np.stack([first, fan + 1, fan], axis=-1)
    top = np.stack([first, fan, fan + 1], axis=-1) + (levels - 1) * around
    return Triangles(rings.reshape(-1, 3), np.vstack([sides, bottom, top])).welded()


def _too_fine(tolerance: float) -> ModelError:
    return ModelError(
        f"A tolerance of {tolerance:g} m asks for more than {MOST_TRIANGLES} "
        "triangles; take a larger one."
    )
