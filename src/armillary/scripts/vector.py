"""The vector of scripts: four numbers, of floats or traced scalars."""

# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from armillary.errors import ScriptError
from armillary.spatial.vector import Vector3, cross, dot, norm
from armillary.trace import Traced
from armillary.trace.functions import absolute, acos, maximum, minimum

__all__ = ["ScriptVector", "as_three"]

SIZES: Final = (0, 3, 4)


class ScriptVector:
    """A vector X, Y, Z with a fourth number W, as scripts use it: `vcVector`.

    It can be changed in place; operators return new ones. Lengths are in millimetres.
    """

    __slots__ = ("W", "X", "Y", "Z")

    def __init__(self, *values: Any) -> None:
        """Make a vector of nothing, of another, of three numbers or of four.

        Raises:
            ScriptError: Something else is given.
        """
        if len(values) == 1 and isinstance(values[0], ScriptVector):
            other = values[0]
            values = (other.X, other.Y, other.Z, other.W)
        if len(values) not in SIZES:
            raise ScriptError(
                f"vcVector.new takes a vector, 3 numbers or 4, not {values!r}."
            )
        numbers = [_number(value) for value in values]
        self.X, self.Y, self.Z, self.W = [*numbers, *[0.0] * (4 - len(numbers))]

    @property
    def xyz(self) -> Vector3:
        """Return X, Y, Z."""
        return self.X, self.Y, self.Z

    def __iter__(self) -> Iterator[Any]:
        return iter(self.xyz)

    def __repr__(self) -> str:
        return f"vcVector({self.X!r}, {self.Y!r}, {self.Z!r})"

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, ScriptVector):
            return NotImplemented
        return are_equal((*self.xyz, self.W), (*other.xyz, other.W))

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __add__(self, other: Any) -> ScriptVector:
        if not isinstance(other, ScriptVector):
            return NotImplemented
        return ScriptVector(self.X + other.X, self.Y + other.Y, self.Z + other.Z)

    def __sub__(self, other: Any) -> ScriptVector:
        if not isinstance(other, ScriptVector):
            return NotImplemented
        return ScriptVector(self.X - other.X, self.Y - other.Y, self.Z - other.Z)

    def __neg__(self) -> ScriptVector:
        return ScriptVector(0.0 - self.X, 0.0 - self.Y, 0.0 - self.Z)

    def __mul__(self, other: Any) -> Any:
        """Return the dot product with a vector, or the product with a number."""
        if isinstance(other, ScriptVector):
            return dot(self.xyz, other.xyz)
        if not _is_number(other):
            return NotImplemented
        return ScriptVector(self.X * other, self.Y * other, self.Z * other)

    def __rmul__(self, other: Any) -> Any:
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        return ScriptVector(self.X / other, self.Y / other, self.Z / other)

    def __xor__(self, other: Any) -> ScriptVector:
        """Return the cross product."""
        if not isinstance(other, ScriptVector):
            return NotImplemented
        return ScriptVector(*cross(self.xyz, other.xyz))

    def length(self) -> Any:
        """Return sqrt(X X + Y Y + Z Z)."""
        return norm(self.xyz)

    def square(self) -> Any:
        """Return X X + Y Y + Z Z."""
        return dot(self.xyz, self.xyz)

    def normalize(self) -> None:
        """Give this vector length 1; the zero vector remains."""
        length = self.length()
        if length > 0.0:
            self.X, self.Y, self.Z = (x / length for x in self.xyz)

    def angle(self, other: ScriptVector) -> Any:
        """Return the angle between two vectors [rad], 0 where one is zero."""
        lengths = self.length() * other.length()
        if lengths > 0.0:
            cosine = dot(self.xyz, other.xyz) / lengths
            return acos(maximum(-1.0, minimum(1.0, cosine)))
        return 0.0


def as_three(values: tuple[Any, ...], method: str) -> Vector3:
    """Return what a method was given, a vector or three numbers.

    Raises:
        ScriptError: It is something else.
    """
    if len(values) == 1 and isinstance(values[0], ScriptVector):
        return values[0].xyz
    if len(values) == 3:
        x, y, z = map(_number, values)
        return x, y, z
    raise ScriptError(f"{method} takes a vector or 3 numbers, not {values!r}.")


def are_equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    """Return whether numbers are equal, as one question where they are traced."""
    difference: Any = 0.0
    for x, y in zip(a, b, strict=True):
        difference = difference + absolute(x - y)
    return difference == 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Traced))


def _number(value: Any) -> Any:
    if isinstance(value, Traced):
        return value
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ScriptError(f"A vector holds numbers, not {value!r}.") from error
