"""Fields of values: stored as tuples or arrays, given as any sequence; replacement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, quote, unknown

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

if TYPE_CHECKING:
    Read_co = TypeVar("Read_co", covariant=True)
    Given_contra = TypeVar("Given_contra", contravariant=True)

    class TypedField(Generic[Read_co, Given_contra]):
        """To type checkers: a field that reads as one type and takes another."""

        @overload
        def __get__(self, owner: None, kind: type) -> Any: ...
        @overload
        def __get__(self, owner: object, kind: type) -> Read_co: ...
        def __get__(self, owner: Any, kind: type) -> Any: ...
        def __set__(self, owner: object, value: Given_contra) -> None: ...

    Array = npt.NDArray[np.floating[Any]]
    Numbers = Sequence[float] | Array
    Point = tuple[float, float, float]
    Points = Sequence[Numbers] | Array

    Vector = TypedField[npt.NDArray[np.float64], Numbers]
    TupleOf = TypedField[tuple[T, ...], Sequence[T]]
    Floats = TypedField[tuple[float, ...], Numbers]
    TwoFloats = TypedField[tuple[float, float], Numbers]
    ThreeFloats = TypedField[Point, Numbers]
    ThreeFloatsOrNone = TypedField[Point | None, Numbers | None]
    FourFloatsOrNone = TypedField[
        tuple[float, float, float, float] | None, Numbers | None
    ]
    TupleOfPoints = TypedField[tuple[Point, ...], Points]
    ThreePoints = TypedField[tuple[Point, Point, Point], Points]
    FourPoints = TypedField[tuple[Point, Point, Point, Point], Points]
else:
    Vector = np.ndarray
    TupleOf = tuple[T, ...]
    Floats = tuple[float, ...]
    TwoFloats = tuple[float, float]
    ThreeFloats = tuple[float, float, float]
    ThreeFloatsOrNone = ThreeFloats | None
    FourFloatsOrNone = tuple[float, float, float, float] | None
    TupleOfPoints = tuple[ThreeFloats, ...]
    ThreePoints = tuple[ThreeFloats, ThreeFloats, ThreeFloats]
    FourPoints = tuple[ThreeFloats, ThreeFloats, ThreeFloats, ThreeFloats]


def default(value: Any) -> Any:
    """Return the default of such a field, which type checkers take for any type."""
    return value


EMPTY: Final = default(())


def store_tuples(struct: msgspec.Struct, *names: str) -> None:
    """Store the sequences in these fields of a struct that is being made as tuples."""
    for name in names:
        given = getattr(struct, name)
        if type(given) is not tuple:
            msgspec.structs.force_setattr(struct, name, tuple(given))


def replaced(struct: S, fields: Mapping[str, Any], kind: str = "field") -> S:
    """Return a struct with other values of some fields; `kind` is for messages.

    Raises:
        UnknownName: There is no such field.
    """
    known = struct.__struct_fields__
    for name in fields:
        if name not in known:
            raise unknown(kind, name, known, owner=type(struct).__name__)
    return msgspec.structs.replace(struct, **fields)


def renamed(struct: S, where: str, full: Callable[[str], str], *fields: str) -> S:
    """Return a struct whose fields hold the full names of what they name.

    Args:
        struct: A struct.
        where: The begin of messages about a name.
        full: Returns the full name of a name.
        fields: The fields that hold one name each.

    Raises:
        ArmillaryError: `full` refuses a name.
    """
    for field in fields:
        given = getattr(struct, field)
        try:
            name = full(given)
        except ArmillaryError as error:
            raise type(error)(f"{where} {quote(given)}: {error}") from error
        if name != given:
            struct = msgspec.structs.replace(struct, **{field: name})
    return struct


def kept(owner: object, name: Hashable, make: Callable[[], T]) -> T:
    """Return what `make` gives; it is made once and kept with its immutable owner."""
    try:
        return owner.__dict__["kept"][name]
    except KeyError:
        pass  # what `make` raises has no other error before it
    made = make()
    return owner.__dict__.setdefault("kept", {}).setdefault(name, made)


def kept_few(
    owner: object, name: Hashable, key: Hashable, make: Callable[[], T], most: int = 8
) -> T:
    """Return what `make` gives, kept with its owner for each of the last few keys.

    most: How many are kept; when there are more, all are forgotten.
    """
    made = kept(owner, name, dict[Hashable, T])
    try:
        return made[key]
    except KeyError:
        pass
    value = make()
    if len(made) >= most:
        made.clear()
    return made.setdefault(key, value)


def reduced(struct: msgspec.Struct) -> tuple[Any, ...]:
    """Return how a struct is pickled: by its fields, without what it has kept."""
    values = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return partial(type(struct), **values), ()
