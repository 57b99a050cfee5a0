"""What a tool is to follow: straight lines and arcs, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.ik.targets import as_matrices
from armillary.kinematics.joint_vector import finite_numbers
from armillary.model.check_pose import are_rigid

__all__ = ["ORIENTATIONS", "Arc", "Line", "Orientation", "Segment", "length_of"]

Array = npt.NDArray[np.float64]

Orientation: TypeAlias = Literal["shortest", "fixed", "tangent"]
ORIENTATIONS: Final = ("shortest", "fixed", "tangent")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A straight line to a pose.

    Attributes:
        to: Where it ends: a pose, shape (4, 4), (7,) as w x y z and origin, or (8,), a
            dual quaternion; or a position, shape (3,), at which the tool keeps its
            orientation [m].
        orientation: How the tool turns: by the `shortest` rotation to that of `to`, the
            default where that is a pose, or `fixed`, not at all.
        blend: How far from its end the corner there is left [m]; 0 for a stop there. By
            default that of `cell.line`.
    """

    to: Any
    orientation: Orientation | None = None
    blend: float | None = None

    def __post_init__(self) -> None:
        """Make arrays of what is given.

        Raises:
            ShapeError: `to` is neither a pose nor a position.
            ModelError: A number is not finite, or `orientation` is unknown.
        """
        object.__setattr__(self, "to", _place("to", self.to))
        _check_orientation(self, ("shortest", "fixed"))
        if self.orientation == "shortest" and self.to.shape == (3,):
            raise ModelError(
                "A line to a position has no orientation to turn to: give a pose (4, 4)"
                " as to=, or leave orientation= out."
            )
        _check_blend(self.blend)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """A part of a circle, or all of it: through a point to a pose, or about an axis.

    Give `to` and `through`, or `axis`, `angle` and `centre`.

    Attributes:
        to: Where it ends, as for `Line`.
        through: A point between both ends, shape (3,) [m], or a pose, whose origin
            counts.
        axis: About which the tool moves, shape (3,), of any length.
        angle: By how much it moves about that, right-handed [rad]; beyond 2 pi it goes
            round again.
        centre: A point on the axis, shape (3,) [m].
        orientation: `shortest` and `fixed` as for `Line`; with `tangent` the tool turns
            with the arc, as a wheel that is fixed to its axis, which is the default
            where an axis is given.
        blend: As for `Line`.
    """

    to: Any = None
    through: Any = None
    axis: Any = None
    angle: float | None = None
    centre: Any = None
    orientation: Orientation | None = None
    blend: float | None = None

    def __post_init__(self) -> None:
        """Make arrays of what is given.

        Raises:
            ShapeError: An array has another shape.
            ModelError: Neither or both kinds are given, a number is not finite, the
                axis or the angle is zero, or `orientation` is unknown.
        """
        by_points = [self.to is not None, self.through is not None]
        about = [x is not None for x in (self.axis, self.angle, self.centre)]
        if not (
            (all(by_points) and not any(about)) or (all(about) and not any(by_points))
        ):
            raise ModelError(
                "An arc needs a point and an end, Arc(to=pose, through=point), or an "
                "axis, Arc(axis=(0, 0, 1), angle=1.0, centre=point)."
            )
        _check_orientation(self, ORIENTATIONS)
        _check_blend(self.blend)
        if all(by_points):
            object.__setattr__(self, "to", _place("to", self.to))
            through = _place("through", self.through)
            point = through if through.shape == (3,) else through[:3, 3].copy()
            point.flags.writeable = False
            object.__setattr__(self, "through", point)
            if self.orientation == "shortest" and self.to.shape == (3,):
                raise ModelError(
                    "An arc to a position has no orientation to turn to: give a pose "
                    "(4, 4) as to=, or leave orientation= out."
                )
            return
        if self.orientation == "shortest":
            raise ModelError(
                "An arc about an axis has no orientation to turn to: it turns with the "
                "arc, 'tangent', or is 'fixed'."
            )
        for name in ("axis", "centre"):
            value = finite_numbers(getattr(self, name), 3)
            if value is None:
                raise ModelError(
                    f"{name}= takes three finite numbers, not "
                    f"{quote(getattr(self, name))}."
                )
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        given: Any = self.angle
        angle = float(given) if isinstance(given, Real) else math.nan
        if not math.isfinite(angle) or angle == 0.0:
            raise ModelError(
                f"angle= is a finite number of radians, not 0, and is "
                f"{quote(self.angle)}."
            )
        object.__setattr__(self, "angle", angle)
        if not np.linalg.norm(self.axis) > 0.0:
            raise ModelError("The axis of an arc must have a length above 0.")


Segment: TypeAlias = Line | Arc


def _place(name: str, given: Any) -> Array:
    """Return a pose, shape (4, 4), or a position, shape (3,), read-only.

    Raises:
        ShapeError: It has another shape.
        ModelError: It is not finite, or no rigid pose.
    """
    array = np.array(as_matrices(given), dtype=np.float64)
    if array.shape not in ((3,), (4, 4)):
        raise ShapeError(
            f"{name}= is a pose of shape (4, 4), (7,) or (8,), or a position (3,), not "
            f"of shape {np.shape(given)}."
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{name}= holds a number that is not finite.")
    if array.shape == (4, 4) and not are_rigid(array):
        raise ModelError(
            f"{name}= is not a rigid pose: its rotation is not orthonormal and "
            "right-handed, or its last row is not 0 0 0 1."
        )
    array.flags.writeable = False
    return array


def _check_orientation(segment: Segment, known: tuple[str, ...]) -> None:
    """Refuse an orientation that does not exist.

    Raises:
        ModelError: It does not exist.
    """
    given: Any = segment.orientation
    if given is not None and given not in known:
        kind = type(segment).__name__
        raise ModelError(
            f"orientation= of {kind} is one of {', '.join(known)}, not {quote(given)}."
        )


def _check_blend(blend: Any) -> None:
    """Refuse a blend that is not a length.

    Raises:
        ModelError: It is not a finite number of at least 0.
    """
    if blend is not None:
        length_of("blend", blend)


def length_of(name: str, value: Any) -> float:
    """Return a finite length of at least 0 [m].

    Raises:
        ModelError: It is something else.
    """
    length = float(value) if isinstance(value, Real) else math.nan
    if not 0.0 <= length < math.inf:
        raise ModelError(f"{name}= is a length [m] of at least 0, not {quote(value)}.")
    return length
