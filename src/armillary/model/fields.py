"""Fields of values: stored as tuples, given as any sequence; and their replacement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec

from armillary.errors import unknown

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

if TYPE_CHECKING:

    class TupleOf(Generic[T_co]):
        """To type checkers: a field that reads as a tuple and takes any sequence."""

        @overload
        def __get__(self, owner: None, kind: type) -> Any: ...
        @overload
        def __get__(self, owner: object, kind: type) -> tuple[T_co, ...]: ...
        def __get__(self, owner: object, kind: type) -> Any: ...
        def __set__(self, owner: object, value: Sequence[T_co]) -> None: ...
else:
    TupleOf = tuple[T_co, ...]

EMPTY: Final[Any] = ()
"""The default of such a field."""


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


def kept(owner: object, name: Hashable, make: Callable[[], T]) -> T:
    """Return what `make` gives; it is made once and kept with its immutable owner."""
    known: dict[Hashable, Any] = vars(owner).setdefault("kept", {})
    found = known.get(name)
    return known.setdefault(name, make()) if found is None else found


def reduced(struct: msgspec.Struct) -> tuple[Any, ...]:
    """Return how a struct is pickled: by its fields, without what it has kept."""
    values = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return partial(type(struct), **values), ()
