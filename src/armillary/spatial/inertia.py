"""Spatial inertia: mass, first moment and rotational inertia of a rigid body."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6, halves, scale6
from armillary.spatial.vector import (
    EYE,
    ZERO,
    Number,
    Rows,
    Vector3,
    add,
    add_rows,
    apply,
    are_floats,
    cross,
    dot,
    multiply,
    number,
    rows,
    scale,
    skew,
    subtract_rows,
    transpose,
    vector,
)
from armillary.trace import Traced

__all__ = [
    "INERTIAL",
    "InertiaFault",
    "SpatialInertia",
    "VelocityInertia",
]

TOLERANCE: Final = 1e-6
INERTIAL: Final = (
    *("m", "h_x", "h_y", "h_z"),
    *("I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz"),
)
"""The names of `SpatialInertia.parameters`, in their order."""
_NOTHING: Final = (ZERO, ZERO, ZERO)
POINT: Final = 1e-20  # what rounding may leave of the moments of a point [kg m^2 / kg]


class SpatialInertia(msgspec.Struct, frozen=True):
    """The inertia of a body, all about the origin of one frame and in its axes.

    Attributes:
        mass: [kg].
        first_moment: Mass times centre of mass [kg m].
        rotational: Rotational inertia about the origin [kg m^2], symmetric.
    """

    mass: Number
    first_moment: Vector3
    rotational: Rows

    @staticmethod
    def zero() -> SpatialInertia:
        """Return the inertia of nothing."""
        return SpatialInertia(0.0, ZERO, (ZERO, ZERO, ZERO))

    @staticmethod
    def from_centre(mass: Number, centre: Any, rotational: Any) -> SpatialInertia:
        """Return the inertia of a body from that about its centre of mass.

        Args:
            mass: [kg].
            centre: Centre of mass [m], shape (3,).
            rotational: About the centre, in the frame's axes [kg m^2], shape (3, 3).

        Raises:
            ShapeError: A shape differs.
        """
        m, c = number(mass), vector(centre)
        moment = scale(m, c)
        return SpatialInertia(
            m, moment, add_rows(rows(rotational), _of_point(c, moment))
        )

    @staticmethod
    def from_second_moment(
        mass: Number, first_moment: Any, second_moment: Any
    ) -> SpatialInertia:
        """Return the inertia of a body from its moments about the origin.

        Args:
            mass: [kg].
            first_moment: Mass times centre [kg m], shape (3,).
            second_moment: Sums of x x, y y, z z, x y, x z, y z over the mass [kg m^2],
                shape (6,): I = trace(J) 1 - J.

        Raises:
            ShapeError: A shape differs.
        """
        moments = np.asarray(second_moment, dtype=object)
        if moments.shape != (6,):
            raise ShapeError(f"A second moment has shape (6,), not {moments.shape}.")
        xx, yy, zz, xy, xz, yz = map(number, moments)
        rotational = _symmetric(yy + zz, xx + zz, xx + yy, 0.0 - xy, 0.0 - xz, 0.0 - yz)
        return SpatialInertia(number(mass), vector(first_moment), rotational)

    @staticmethod
    def from_parameters(parameters: Any) -> SpatialInertia:
        """Return the inertia of ten numbers, as from `parameters`, shape (10,).

        Raises:
            ShapeError: The shape differs.
        """
        given = np.asarray(parameters, dtype=object)
        if given.shape != (10,):
            raise ShapeError(f"An inertia has 10 parameters, not {given.shape}.")
        m, x, y, z, xx, xy, yy, xz, yz, zz = map(number, given)
        return SpatialInertia(m, (x, y, z), _symmetric(xx, yy, zz, xy, xz, yz))

    @property
    def parameters(self) -> tuple[Number, ...]:
        """Return m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz.

        The inertial parameters, in which forces are linear: mass [kg], first moment
        [kg m], rotational inertia about the origin [kg m^2].
        """
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.rotational
        return self.mass, *self.first_moment, xx, xy, yy, xz, yz, zz

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        """Return the inertia of both bodies fixed to each other; same frame."""
        return SpatialInertia(
            self.mass + other.mass,
            add(self.first_moment, other.first_moment),
            add_rows(self.rotational, other.rotational),
        )

    def transformed(self, X_AB: Pose) -> SpatialInertia:
        """Return this inertia, given in B, about the origin and in the axes of A.

        h_A = R h + m p,  I_A = R I R' + (p . u) 1 - (p u' + u p') / 2,  u = 2 R h + m p
        """
        p = X_AB.position
        turned = apply(X_AB.rotation, self.first_moment)
        shift = scale(self.mass, p)
        return SpatialInertia(
            self.mass,
            add(turned, shift),
            add_rows(
                _turned(X_AB.rotation, self.rotational),
                _of_point(p, add(scale(2.0, turned), shift)),
            ),
        )

    def scaled(self, factor: Number) -> SpatialInertia:
        """Return the inertia of the same mass, all of it `factor` times as far away."""
        by = number(factor)
        square = by * by
        x, y, z = (scale(square, row) for row in self.rotational)
        return SpatialInertia(self.mass, scale(by, self.first_moment), (x, y, z))

    def apply(self, V: Vector6) -> Vector6:
        """Return the momentum of a twist, (m v + w x h, h x v + I w)."""
        v, w = halves(V)
        # The body's frame need not be at its centre: h = m c couples both halves.
        h = self.first_moment
        linear = add(scale(self.mass, v), cross(w, h))
        return (*linear, *add(cross(h, v), apply(self.rotational, w)))

    def matrix(self) -> npt.NDArray[Any]:
        """Return [m 1, -[h]; [h], I], shape (6, 6), linear first."""
        h = skew(self.first_moment)
        result = np.zeros((6, 6), dtype=np.float64 if self.is_float else object)
        result[:3, :3] = np.eye(3) * self.mass
        result[:3, 3:] = np.transpose(h)
        result[3:, :3] = h
        result[3:, 3:] = self.rotational
        return result

    @property
    def is_float(self) -> bool:
        """Return whether nothing in it is traced."""
        i = self.rotational
        return are_floats((self.mass, *self.first_moment, *i[0], *i[1], *i[2]))

    def centre(self) -> Vector3:
        """Return the centre of mass [m].

        Raises:
            ModelError: There is no mass.
        """
        m = self.mass
        if not isinstance(m, Traced) and m == 0.0:
            raise ModelError("A body without mass has no centre of mass.")
        x, y, z = self.first_moment
        return x / m, y / m, z / m

    def point_mass(self) -> SpatialInertia:
        """Return the inertia of floats of the same mass in the same centre, a point."""
        if not self.mass > 0.0:
            return SpatialInertia(self.mass, self.first_moment, (ZERO, ZERO, ZERO))
        return self.from_centre(self.mass, self.centre(), (ZERO, ZERO, ZERO))

    def about_centre(self) -> Rows:
        """Return the rotational inertia about the centre of mass [kg m^2].

        Raises:
            ModelError: There is no mass.
        """
        back = scale(-1.0, self.first_moment)
        return add_rows(self.rotational, _of_point(self.centre(), back))

    def fault(self) -> InertiaFault | None:
        """Return why no rigid body has this inertia of floats; None if one has.

        Moments may be wrong by `TOLERANCE` of the largest about the origin, and by what
        rounding leaves of the moments of a point mass.
        """
        x, y, z = self.first_moment
        a, b, c = self.rotational
        return _fault_of(self.mass, (x, y, z), (tuple(a), tuple(b), tuple(c)))


class InertiaFault(NamedTuple):
    """Why no rigid body has an inertia.

    Attributes:
        message: A clause.
        is_refused: Whether links refuse it, because energies could be negative or not
            finite. Otherwise they keep it.
    """

    message: str
    is_refused: bool


@lru_cache(maxsize=256)  # a reader asks, and each link that is made of it
def _fault_of(mass: float, first: Vector3, i: Rows) -> InertiaFault | None:
    moments = (*i[0], *i[1], *i[2])
    if not all(map(math.isfinite, (mass, *first, *moments))):
        return InertiaFault("an entry is not finite", is_refused=True)
    if mass < 0.0:
        return InertiaFault(f"the mass is negative, {mass:g} kg", True)
    size: float = max([abs(x) for x in moments])
    margin = TOLERANCE * size + POINT * mass
    _, xy, xz, yx, _, yz, zx, zy, _ = moments
    if max(abs(xy - yx), abs(xz - zx), abs(yz - zy)) > margin:
        return InertiaFault("the rotational inertia is not symmetric", True)
    if mass == 0.0:
        if any(first):
            return InertiaFault("there is a first moment, but no mass", True)
        fault = _moment_fault(i, margin)
        if size == 0.0 or fault is not None:
            return fault
        return InertiaFault("there are moments of inertia, but no mass", False)
    central = SpatialInertia(mass, first, i).about_centre()
    if not all(map(math.isfinite, (*central[0], *central[1], *central[2]))):
        return InertiaFault("the moments are too large for the mass", True)
    return _moment_fault(central, margin)


def _moment_fault(central: Rows, margin: float) -> InertiaFault | None:
    """Judge the rotational inertia I about the centre of mass.

    The second moments, trace(I) / 2 1 - I, must not be negative in any direction.
    """
    size: float = max([abs(x) for row in central for x in row])
    if size == 0.0:
        return None
    # Squares of numbers that are divided by the largest cannot underflow to a pass.
    unit = [[float(x) / size for x in row] for row in central]
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = unit
    half = 0.5 * (xx + yy + zz) + margin / size
    # Pivots of Gaussian elimination.
    # tr(I)/2 1 - I is positive semidefinite if all pivots of its elimination are above
    # zero.
    first = half - xx
    if first > 0.0:
        second = half - yy - xy * xy / first
        mixed = yz + xy * xz / first
        if second > 0.0 and half - zz - xz * xz / first - mixed * mixed / second > 0.0:
            return None
    low, middle, high = (size * float(x) for x in np.linalg.eigvalsh(unit))
    shown = f"{low:.6g}, {middle:.6g}, {high:.6g} kg m^2"
    if low < -margin:
        return InertiaFault(f"a principal moment is negative: {shown}", True)
    if low + middle < high - 2.0 * margin:
        message = f"the largest principal moment exceeds the sum of the others: {shown}"
        return InertiaFault(message, False)
    return None


def _symmetric(
    xx: Number, yy: Number, zz: Number, xy: Number, xz: Number, yz: Number
) -> Rows:
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def _of_point(p: Vector3, u: Vector3) -> Rows:
    """Return (p . u) 1 - (p u' + u p') / 2; with u = m p the inertia of a point."""
    xx, yy, zz = p[0] * u[0], p[1] * u[1], p[2] * u[2]
    return _symmetric(
        yy + zz,
        xx + zz,
        xx + yy,
        0.0 - 0.5 * (p[0] * u[1] + p[1] * u[0]),
        0.0 - 0.5 * (p[0] * u[2] + p[2] * u[0]),
        0.0 - 0.5 * (p[1] * u[2] + p[2] * u[1]),
    )


def _turned(m: Rows, inertia: Rows) -> Rows:
    """Return m I m', each of its six numbers once."""
    if m is EYE:  # of what is only moved
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = add_rows(inertia, _NOTHING)
        return _symmetric(xx, yy, zz, xy, xz, yz)
    x, y, z = multiply(m, inertia)
    return _symmetric(
        dot(x, m[0]),
        dot(y, m[1]),
        dot(z, m[2]),
        dot(x, m[1]),
        dot(x, m[2]),
        dot(y, m[2]),
    )


# velocity inertias: the rate at which the inertia of moving bodies changes


class VelocityInertia(NamedTuple):
    """The matrix B = [0, -[p]; 0, N] of moving bodies.

    B V = V x* I V, and B + B' = V x* I - I V x, the rate of the inertia.

    Attributes:
        p: Linear momentum [kg m/s].
        N: Shape (3, 3) [kg m^2/s].
    """

    p: Vector3
    N: Rows

    @classmethod
    def of(cls, inertia: SpatialInertia, V: Vector6) -> Self:
        """Return that of a body: N = tr(D) 1 - D, D = sum of m x' x^T over its mass."""
        x, y, z = (scale(0.5, row) for row in _doubled_flow(inertia, V))
        return cls(inertia.apply(V)[:3], (x, y, z))

    @classmethod
    def doubled(cls, inertia: SpatialInertia, V: Vector6) -> Self:
        """Return 2 B of a body, which takes fewer operations than B."""
        momentum = scale(2.0, inertia.apply(V)[:3])
        return cls(momentum, _doubled_flow(inertia, V))

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        """Return the sum; same frame."""
        return type(self)(add(self.p, other.p), add_rows(self.N, other.N))

    def apply(self, V: Vector6) -> Vector6:
        """Return B V."""
        return (*cross(V[3:], self.p), *apply(self.N, V[3:]))

    def apply_transposed(self, V: Vector6) -> Vector6:
        """Return B' V."""
        own = apply(transpose(self.N), V[3:])
        return (*ZERO, *add(cross(self.p, V[:3]), own))

    def transformed(self, X_AB: Pose) -> Self:
        """Return this, given in B, about the origin and in the axes of A."""
        R = X_AB.rotation
        p = apply(R, self.p)
        turned = multiply(multiply(R, self.N), transpose(R))
        return type(self)(
            p, subtract_rows(turned, multiply(skew(X_AB.position), skew(p)))
        )


def _doubled_flow(inertia: SpatialInertia, V: Vector6) -> Rows:
    """Return 2 N = 2 (v . h) 1 - 2 v h^T - tr(I) [w] + 2 [w] I of a body."""
    v, w = halves(scale6(2.0, V))
    h, I = inertia.first_moment, inertia.rotational  # noqa: E741
    spin = scale(0.5 * (I[0][0] + I[1][1] + I[2][2]), w)
    x, y, z = transpose((cross(w, I[0]), cross(w, I[1]), cross(w, I[2])))
    a, b, c = v[0] * h[0], v[1] * h[1], v[2] * h[2]
    return (
        (b + c + x[0], x[1] + spin[2] - v[0] * h[1], x[2] - spin[1] - v[0] * h[2]),
        (y[0] - spin[2] - v[1] * h[0], a + c + y[1], y[2] + spin[0] - v[1] * h[2]),
        (z[0] + spin[1] - v[2] * h[0], z[1] - spin[0] - v[2] * h[1], a + b + z[2]),
    )
