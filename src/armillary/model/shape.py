"""The contract of shapes: bodies fixed to links, as data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, Self, cast

import msgspec

from armillary.errors import ArmillaryError, ModelError, quote
from armillary.model.check_pose import is_rigid
from armillary.model.fields import FourFloatsOrNone, default
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import is_proper, orthonormality_error

Colour = tuple[float, float, float, float]
Point = tuple[float, float, float]

LARGEST: Final = 1e15
ROTATION_TOLERANCE: Final = 1e-6
SHEAR: Final = "its pose is sheared, scaled or reflected; take Pose.normalised()"


class Shape(msgspec.Struct, frozen=True, kw_only=True, tag_field="shape"):
    """A body that is fixed to a link; what it is about stands in its own frame.

    Shapes are values: frozen, hashable, equal by their parameters. Lists and NumPy
    numbers are stored as tuples and floats, and a 4x4 array as the pose that it is.

    Attributes:
        name: For messages and files; may be empty.
        pose: Where it is in the link's primary frame.
        colour: Red, green, blue, opacity in [0, 1]; None where nothing is said.
    """

    name: str = ""
    pose: Pose = IDENTITY
    colour: FourFloatsOrNone = default(None)

    def __post_init__(self) -> None:
        """Bring the parameters into their stored form and check them.

        Raises:
            ModelError: They make no such shape.
        """
        if self.pose is not IDENTITY:
            self._store_pose()
        if self.colour is not None:
            self._store_colour()
        self.check()

    def check(self) -> None:
        """Raise ModelError where the parameters make no such shape.

        Override it to add rules; it is called whenever a shape is made.
        """

    def scaled(self, factor: float) -> Self:
        """Return the shape `factor` times as large, and its frame as far away.

        Raises:
            ModelError: `factor` is not above 0.
        """
        by = _number(factor)
        if not 0.0 < by < math.inf:
            raise ModelError(f"A shape is scaled by a number above 0, not {factor!r}.")
        sizes = {name: _times(by, getattr(self, name)) for name in self._own_fields()}
        return msgspec.structs.replace(self, pose=self.pose.scaled(by), **sizes)

    def _own_fields(self) -> tuple[str, ...]:
        return tuple(n for n in self.__struct_fields__ if n not in SHARED_FIELDS)

    # What subclasses check with.

    def _fault(self, message: str) -> ModelError:
        named = f" {quote(self.name)}" if self.name else ""
        return ModelError(f"{type(self).__name__}{named}: {message}.")

    def _store_length(self, name: str) -> None:
        """Store a parameter as a length that is finite and not below 0."""
        given = getattr(self, name)
        if type(given) is float and 0.0 <= given <= LARGEST:
            return
        msgspec.structs.force_setattr(self, name, self._length(given, name))

    def _store_lengths(self, name: str, count: int) -> None:
        """Store a parameter as so many lengths."""
        given = getattr(self, name)
        if (
            type(given) is tuple
            and len(cast(Any, given)) == count
            and all(
                type(item) is float and 0.0 <= item <= LARGEST
                for item in cast(Any, given)
            )
        ):
            return
        items = self._items(getattr(self, name), name, count)
        lengths = tuple(
            self._length(item, f"{name}[{k}]") for k, item in enumerate(items)
        )
        msgspec.structs.force_setattr(self, name, lengths)

    def _store_points(self, name: str, count: int | None) -> None:
        """Store a parameter as points of three coordinates; any number if None."""
        given = getattr(self, name)
        if _are_points(given) and (count is None or len(given) == count):
            return
        rows = self._items(given, name, count)
        points = tuple(
            tuple(
                self._coordinate(item, f"{name}[{k}]")
                for item in self._items(row, f"{name}[{k}]", 3)
            )
            for k, row in enumerate(rows)
        )
        msgspec.structs.force_setattr(self, name, points)

    def _length(self, given: Any, label: str) -> float:
        value = _number(given)
        if 0.0 <= value <= LARGEST:
            return value
        raise self._fault(
            f"{label} is {_shown(given)}; it must be a length from 0 to {LARGEST:g} m"
        )

    def _coordinate(self, given: Any, label: str) -> float:
        value = _number(given)
        if -LARGEST <= value <= LARGEST:
            return value
        raise self._fault(
            f"{label} holds {_shown(given)}; numbers go up to {LARGEST:g} here"
        )

    def _items(self, given: Any, label: str, count: int | None) -> Sequence[Any]:
        listed = given.tolist() if hasattr(given, "tolist") else given
        if not isinstance(listed, (list, tuple)):
            raise self._fault(f"{label} is {_shown(given)}; it must be a sequence")
        items = cast(Sequence[Any], listed)
        if count is not None and len(items) != count:
            raise self._fault(f"{label} has {len(items)} parts; it must have {count}")
        return items

    def _store_pose(self) -> None:
        pose: Any = self.pose
        if is_rigid(pose):  # as nearly all are
            return
        if not isinstance(pose, Pose):
            try:
                pose = Pose.from_matrix(pose)
            except ArmillaryError as error:
                raise self._fault(f"its pose is invalid. {error}") from error
            msgspec.structs.force_setattr(self, "pose", pose)
        if not (pose.is_float and all(map(math.isfinite, pose.entries))):
            raise self._fault("its pose has an entry that is not a finite number")
        error = orthonormality_error(pose.rotation)
        if error > ROTATION_TOLERANCE or not is_proper(pose.rotation):
            raise self._fault(SHEAR)

    def _store_colour(self) -> None:
        parts = self._items(self.colour, "colour", 4)
        colour = tuple(map(_number, parts))
        if not all(0.0 <= part <= 1.0 for part in colour):
            raise self._fault(f"its colour {_shown(self.colour)} leaves [0, 1]")
        msgspec.structs.force_setattr(self, "colour", colour)


SHARED_FIELDS: Final = frozenset(Shape.__struct_fields__)


def _are_points(given: Any) -> bool:
    """Return whether this is a tuple of points as shapes store them."""
    rows: Any = given
    if type(given) is not tuple or not set(map(type, rows)) <= {tuple}:
        return False
    items: list[Any] = list(itertools.chain.from_iterable(rows))
    return (
        {len(row) for row in rows} <= {3}
        and {type(item) for item in items} <= {float}
        and all(abs(item) <= LARGEST for item in items)
    )


def _number(value: Any) -> float:
    """Return a number as a float, NaN where it is not one."""
    if isinstance(value, (str, bytes, bool)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _times(factor: float, value: Any) -> Any:
    """Return numbers in tuples multiplied; texts stay."""
    if isinstance(value, tuple):
        return tuple(_times(factor, item) for item in cast(Sequence[Any], value))
    return value if isinstance(value, str) else factor * value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
