"""Carlson's symmetric elliptic integrals, which areas of ellipsoids need."""

from __future__ import annotations

from math import sqrt
from typing import Final

# The series behind the duplications end at the fifth order of this.
CLOSE: Final = 1e-3


def carlson_g(x: float, y: float, z: float) -> float:
    """Return R_G(x, y, z) of numbers from 0 up.

    With z the middle one, no digits cancel (DLMF 19.21.10):
    2 R_G = z R_F - (x - z) (y - z) R_D / 3 + sqrt(x y / z).
    """
    x, z, y = sorted((x, y, z))
    if z == 0.0:
        return 0.5 * sqrt(y)
    # The function is homogeneous; small or large numbers must not leave the floats.
    root = sqrt(y)
    x, z = x / y, z / y
    if z == 0.0:
        return 0.5 * root
    R_F, R_D = _carlson(x, 1.0, z)
    return 0.5 * root * (z * R_F - (x - z) * (1.0 - z) * R_D / 3.0 + sqrt(x / z))


def _carlson(x: float, y: float, z: float) -> tuple[float, float]:
    """Return R_F(x, y, z) and R_D(x, y, z), by duplication until all are close.

    DLMF 19.26.18 and 19.26.20 for the steps, 19.36.1 and 19.36.2 for the series.
    """
    tail, weight = 0.0, 1.0
    while max(x, y, z) - min(x, y, z) > CLOSE * max(x, y, z):
        a, b, c = sqrt(x), sqrt(y), sqrt(z)
        duplication = a * b + b * c + c * a
        tail += weight / (c * (z + duplication))
        weight *= 0.25
        x, y, z = (0.25 * (each + duplication) for each in (x, y, z))
    return _series_f(x, y, z), 3.0 * tail + weight * _series_d(x, y, z)


def _series_f(x: float, y: float, z: float) -> float:
    A = (x + y + z) / 3.0
    X, Y = 1.0 - x / A, 1.0 - y / A
    Z = -X - Y
    E2, E3 = X * Y - Z * Z, X * Y * Z
    terms = 1.0 - E2 / 10.0 + E3 / 14.0 + E2 * E2 / 24.0 - 3.0 * E2 * E3 / 44.0
    return terms / sqrt(A)


def _series_d(x: float, y: float, z: float) -> float:
    A = (x + y + 3.0 * z) / 5.0
    X, Y = 1.0 - x / A, 1.0 - y / A
    Z = -(X + Y) / 3.0
    XY, ZZ = X * Y, Z * Z
    E2, E3 = XY - 6.0 * ZZ, (3.0 * XY - 8.0 * ZZ) * Z
    E4, E5 = 3.0 * (XY - ZZ) * ZZ, XY * ZZ * Z
    terms = 1.0 - 3.0 * E2 / 14.0 + E3 / 6.0 + 9.0 * E2 * E2 / 88.0
    terms += -3.0 * E4 / 22.0 - 9.0 * E2 * E3 / 52.0 + 3.0 * E5 / 26.0
    return terms / (A * sqrt(A))
