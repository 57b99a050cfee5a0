"""Fields of values: stored as tuples, given as any sequence; and their replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec

from armillary.errors import unknown

T_co = TypeVar("T_co", covariant=True)
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
