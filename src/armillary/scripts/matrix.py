"""The matrix of scripts: three axes and an origin, of floats or traced scalars."""

from __future__ import annotations

from typing import Any, Final

from armillary.errors import ScriptError
from armillary.scripts.vector import ScriptVector, are_equal, as_three
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.pose import Pose
from armillary.spatial.quaternion import quaternion_from_rows, rows_from_quaternion
from armillary.spatial.rotation import about_axis, about_y, about_z, quaternion_log
from armillary.spatial.vector import (
    EYE,
    ZERO,
    Number,
    Rows,
    Vector3,
    add,
    apply,
    are_floats,
    cross,
    dot,
    multiply,
    negate,
    norm,
    scale,
    subtract,
    transpose,
)
from armillary.trace.functions import atan2, cos, hypot, select, sin

__all__ = ["DEGREE", "MILLIMETRE", "ScriptMatrix"]

DEGREE: Final = 0.017453292519943295
MILLIMETRE: Final = 1e-3
FLAT: Final = 1e-12


class ScriptMatrix:
    """A pose with axes N, O, A and origin P, as scripts use it: `vcMatrix`.

    Lengths are in millimetres, angles in degrees. The axes are what scripts write; they
    are unit vectors at right angles unless a script says otherwise.
    """

    __slots__ = ("_origin", "_rows")

    def __init__(self, *values: Any) -> None:
        """Make the identity, or a copy.

        Raises:
            ScriptError: Something else than a matrix is given.
        """
        self._rows: Rows = EYE
        self._origin: Vector3 = ZERO
        if not values:
            return
        (other, *rest) = values
        if rest or not isinstance(other, ScriptMatrix):
            raise ScriptError(f"vcMatrix.new takes a matrix, not {values!r}.")
        self._rows, self._origin = other._rows, other._origin

    @classmethod
    def of_pose(cls, pose: Pose) -> ScriptMatrix:
        """Return the matrix of a pose in metres."""
        made = cls()
        made._rows = pose.rotation
        made._origin = scale(1.0 / MILLIMETRE, pose.position)
        return made

    def pose(self) -> Pose:
        """Return the pose, in metres."""
        return Pose(self._rows, scale(MILLIMETRE, self._origin))

    def __repr__(self) -> str:
        return f"vcMatrix(P={self._origin!r}, rows={self._rows!r})"

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, ScriptMatrix):
            return NotImplemented
        return are_equal(self._entries, other._entries)

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    @property
    def _entries(self) -> tuple[Number, ...]:
        return (*self._rows[0], *self._rows[1], *self._rows[2], *self._origin)

    def __mul__(self, other: Any) -> Any:
        """Return the product with a matrix, or the image of a point."""
        if isinstance(other, ScriptVector):
            moved = add(apply(self._rows, other.xyz), self._origin)
            return ScriptVector(*moved)
        if not isinstance(other, ScriptMatrix):
            return NotImplemented
        made = ScriptMatrix(self)
        made._append(other._rows, other._origin)
        return made

    # axes and origin: copies, so that writing to them changes nothing

    def _column(self, k: int) -> ScriptVector:
        return ScriptVector(*(row[k] for row in self._rows))

    def _set_column(self, k: int, value: ScriptVector) -> None:
        columns = list(transpose(self._rows))
        columns[k] = as_three((value,), "An axis")
        self._rows = transpose((columns[0], columns[1], columns[2]))

    @property
    def N(self) -> ScriptVector:
        """The x axis."""
        return self._column(0)

    @N.setter
    def N(self, value: ScriptVector) -> None:
        self._set_column(0, value)

    @property
    def O(self) -> ScriptVector:  # noqa: E743
        """The y axis."""
        return self._column(1)

    @O.setter
    def O(self, value: ScriptVector) -> None:  # noqa: E743
        self._set_column(1, value)

    @property
    def A(self) -> ScriptVector:
        """The z axis."""
        return self._column(2)

    @A.setter
    def A(self, value: ScriptVector) -> None:
        self._set_column(2, value)

    @property
    def P(self) -> ScriptVector:
        """The origin [mm]."""
        return ScriptVector(*self._origin)

    @P.setter
    def P(self, value: ScriptVector) -> None:
        self._origin = as_three((value,), "P")

    # rotations as numbers

    @property
    def WPR(self) -> ScriptVector:
        """X, Y, Z [deg] with R = Rz(Z) Ry(Y) Rx(X); Z is 0 where Y is +-90."""
        return ScriptVector(*_degrees(fixed_xyz(self._rows)))

    @WPR.setter
    def WPR(self, value: ScriptVector) -> None:
        self.setWPR(value)

    def getWPR(self) -> ScriptVector:
        """Return `WPR`."""
        return self.WPR

    def setWPR(self, *values: Any) -> None:
        """Turn to X, Y, Z [deg], see `WPR`; the origin stays."""
        self._rows = rows_from_fixed_xyz(*_radians(as_three(values, "setWPR")))

    def getEuler(self) -> ScriptVector:
        """Return X, Y, Z [deg] with R = Rz(Z) Ry(Y) Rz(X) and Z in [-90, 90].

        Y has a sign. Where Y is 0 or 180, Z is 0.
        """
        # The z axis of R is (cos Z sin Y, sin Z sin Y, cos Y). Of the two angles Z that
        # lead to it the one in [-90, 90] is taken, and Y gets the sign of its x.
        rows = self._rows
        x, y = rows[0][2], rows[1][2]
        locked = x * x + y * y < 1e-28
        sign = select(x < 0.0, -1.0, 1.0)
        about = select(locked, 0.0, atan2(sign * y, sign * x))
        tilt = atan2(sign * hypot(x, y), rows[2][2])
        # Ry(-tilt) Rz(-about) R is the rotation that remains about z.
        back = multiply(about_y(0.0 - tilt), about_z(0.0 - about))
        last = multiply(back, rows)
        spin = atan2(last[1][0], last[0][0])
        return ScriptVector(*_degrees((spin, tilt, about)))

    def setEuler(self, *values: Any) -> None:
        """Turn to X, Y, Z [deg], see `getEuler`; the origin stays."""
        spin, tilt, about = _radians(as_three(values, "setEuler"))
        turned = multiply(about_z(about), about_y(tilt))
        self._rows = multiply(turned, about_z(spin))

    def getQuaternion(self) -> ScriptVector:
        """Return the unit quaternion X, Y, Z, W with W >= 0."""
        w, x, y, z = quaternion_from_rows(self._rows)
        return ScriptVector(x, y, z, w)

    def setQuaternion(self, *values: Any) -> None:
        """Turn to a quaternion X, Y, Z, W of any length; the origin stays."""
        x, y, z, w = _four(values, "setQuaternion")
        self._rows = rows_from_quaternion((w, x, y, z))

    def getAxisAngle(self) -> ScriptVector:
        """Return a unit axis X, Y, Z and the angle W [deg] in [0, 180]."""
        turn = quaternion_log(quaternion_from_rows(self._rows))
        angle = norm(turn)
        if angle > 0.0:
            return ScriptVector(*scale(1.0 / angle, turn), angle / DEGREE)
        return ScriptVector(0.0, 0.0, 1.0, 0.0)

    def setAxisAngle(self, *values: Any) -> None:
        """Turn about an axis X, Y, Z of any length by W [deg]; the origin stays."""
        x, y, z, w = _four(values, "setAxisAngle")
        self._rows = about_axis((x, y, z), w * DEGREE)

    # motions: `Rel` in its own axes (behind), `Abs` in those of its parent (before)

    def translateRel(self, *values: Any) -> None:
        """Move by x, y, z [mm] along its own axes."""
        self._append(EYE, as_three(values, "translateRel"))

    def translateAbs(self, *values: Any) -> None:
        """Move by x, y, z [mm] along the axes of its parent."""
        self._origin = add(self._origin, as_three(values, "translateAbs"))

    def rotateRelX(self, angle: Any) -> None:
        """Turn by an angle [deg] about its own x axis."""
        self._mix(1, 2, angle)

    def rotateRelY(self, angle: Any) -> None:
        """Turn by an angle [deg] about its own y axis."""
        self._mix(2, 0, angle)

    def rotateRelZ(self, angle: Any) -> None:
        """Turn by an angle [deg] about its own z axis."""
        self._mix(0, 1, angle)

    def rotateRelV(self, axis: ScriptVector, angle: Any) -> None:
        """Turn by an angle [deg] about an axis through its origin, in its own axes."""
        self._append(about_axis(as_three((axis,), "rotateRelV"), angle * DEGREE), ZERO)

    def rotateAbsX(self, angle: Any) -> None:
        """Turn by an angle [deg] about the x axis of its parent, the origin too."""
        self._turn((1.0, 0.0, 0.0), angle)

    def rotateAbsY(self, angle: Any) -> None:
        """Turn by an angle [deg] about the y axis of its parent, the origin too."""
        self._turn((0.0, 1.0, 0.0), angle)

    def rotateAbsZ(self, angle: Any) -> None:
        """Turn by an angle [deg] about the z axis of its parent, the origin too."""
        self._turn((0.0, 0.0, 1.0), angle)

    def rotateAbsV(self, axis: ScriptVector, angle: Any) -> None:
        """Turn by an angle [deg] about an axis of its parent, the origin too."""
        self._turn(as_three((axis,), "rotateAbsV"), angle)

    def identity(self) -> None:
        """Become the identity."""
        self._rows, self._origin = EYE, ZERO

    def invert(self) -> None:
        """Become the inverse, also where the axes are not unit vectors.

        Raises:
            ScriptError: The axes lie in a plane.
        """
        # The rows of the inverse are the cross products of the axes, divided by the
        # volume that the axes span; the origin becomes -inverse(R) p.
        n, o, a = transpose(self._rows)
        volume: Any = dot(n, cross(o, a))
        box: Any = norm(n) * norm(o) * norm(a)
        if are_floats([volume]) and abs(volume) <= FLAT * box:
            raise ScriptError("invert: the axes of the matrix lie in a plane.")
        factor = 1.0 / volume
        self._rows = (
            scale(factor, cross(o, a)),
            scale(factor, cross(a, n)),
            scale(factor, cross(n, o)),
        )
        self._origin = negate(apply(self._rows, self._origin))

    def uniform(self) -> None:
        """Make the axes unit vectors at right angles: A keeps its direction, then N."""
        # Gram and Schmidt, A first: what N has along A is taken off.
        n, _, a = transpose(self._rows)
        a = scale(1.0 / norm(a), a)
        n = subtract(n, scale(dot(n, a), a))
        n = scale(1.0 / norm(n), n)
        self._rows = transpose((n, cross(a, n), a))

    def _append(self, rows: Rows, origin: Vector3) -> None:
        self._origin = add(apply(self._rows, origin), self._origin)
        self._rows = multiply(self._rows, rows)

    def _mix(self, i: int, j: int, angle: Any) -> None:
        """Turn axis i towards axis j by an angle [deg]."""
        # R times a rotation about the third axis changes two columns only.
        s, c = sin(angle * DEGREE), cos(angle * DEGREE)
        columns = list(transpose(self._rows))
        first, second = columns[i], columns[j]
        columns[i] = add(scale(c, first), scale(s, second))
        columns[j] = subtract(scale(c, second), scale(s, first))
        self._rows = transpose((columns[0], columns[1], columns[2]))

    def _turn(self, axis: Vector3, angle: Any) -> None:
        turned = about_axis(axis, angle * DEGREE)
        self._rows = multiply(turned, self._rows)
        self._origin = apply(turned, self._origin)


def _four(values: tuple[Any, ...], method: str) -> tuple[Any, Any, Any, Any]:
    """Return what a method was given: one of four numbers, or a vector and an angle."""
    if len(values) == 1 and isinstance(values[0], ScriptVector):
        vector = values[0]
        return vector.X, vector.Y, vector.Z, vector.W
    if len(values) == 2:
        return (*as_three(values[:1], method), values[1])
    if len(values) == 4:
        return values
    raise ScriptError(f"{method} takes a vector or 4 numbers, not {values!r}.")


def _degrees(angles: Vector3) -> Vector3:
    return scale(1.0 / DEGREE, angles)


def _radians(angles: Vector3) -> Vector3:
    return scale(DEGREE, angles)
