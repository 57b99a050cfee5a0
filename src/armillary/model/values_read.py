"""What the code of a class of the user's reads besides its parameters.

A formula is traced once for equal joints. But `pose` may also read constants of its
module, of a closure or of a class, and these may change. So their values are a part of
the key under which a traced formula is cached.

Sweeps have digests of functions (`kinematics/identity.py`), which must be equal in all
processes; these keys are compared within one process alone, and must be cheap: they are
read at each use of a joint. So the key of a class is cached with `Watch`es, which tell
whether anything that was read is another object now, or an array holds other bytes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from operator import is_
from types import (
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from armillary.model.parameters import nested_in

__all__ = ["values_read"]

OURS: Final = frozenset({"armillary", "numpy", "scipy", "msgspec"})
CODE: Final = (FunctionType, property, staticmethod, classmethod, cached_property)
CACHED: Final = type(lru_cache(len))
PLAIN: Final = (type(None), bool, int, str, bytes)
DEEPEST: Final = 60  # calls in calls; Python itself allows about 200 here


def values_read(joint: Any) -> Hashable:
    """Return all values that the code of a joint, and of joints in it, may read.

    Values that differ, if only in the sign of a zero, give different results. Compared
    are numbers, texts, arrays, sequences, dicts, functions, and the attributes of
    modules and of the user's classes and objects whose names occur in the code. An
    object of a library is compared by its identity.
    """
    values: list[Hashable] = []
    for each in (joint, *nested_in(joint)):
        kind: Any = cast(Any, type(each))
        if _users_classes(kind):
            values.append(_read(kind))
    return tuple(values)


class Watch(NamedTuple):
    """Objects that a key depends on, and how to get them again.

    Attributes:
        get: Returns them, given `owner`.
        owner: Where they are.
        objects: What they were; held, so that no other object gets their identity.
    """

    get: Callable[[Any], Sequence[Any]]
    owner: Any
    objects: Sequence[Any]

    def holds(self) -> bool:
        """Return whether all of them are the same objects."""
        now = self.get(self.owner)
        return len(now) == len(self.objects) and all(map(is_, now, self.objects))


class ArrayWatch(NamedTuple):
    """An array that a key depends on, and what it held: numbers change in place."""

    array: npt.NDArray[Any]
    contents: Hashable

    def holds(self) -> bool:
        """Return whether it holds the same."""
        return _array_key(self.array) == self.contents


class ClassKey:
    """A key of what the code of a class reads, hashed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        self._value, self._hash = value, hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, ClassKey) and self._value == other._value


# Of each class the names of attributes that its code reads, as found the last time.
_known_names: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()
# Of each class what was read the last time, and how to see that it is still true.
_last_read: dict[type, tuple[ClassKey, list[Watch | ArrayWatch]]] = {}
MOST_CLASSES: Final = 256  # of those: watches keep classes alive
ABSENT: Final = object()


def _read(kind: type) -> Hashable:
    """Return what the code of a class reads.

    Functions that are called read further attributes, of which the names are known only
    once they are entered; so all is read again until no name is new.
    """
    last = _last_read.get(kind)
    if last is not None and all(watch.holds() for watch in last[1]):
        return last[0]
    names = _known_names.get(kind, frozenset())
    while True:
        reader = _ValueReader(names)
        key = ClassKey(reader.attributes(kind, 0))
        if reader.names == names:
            break
        names = reader.names
    _known_names[kind] = names
    if len(_last_read) >= MOST_CLASSES:
        _last_read.clear()
    _last_read[kind] = key, reader.watches
    return key


def _entries(names: Iterable[str], owner: Mapping[str, Any]) -> list[Any]:
    return [owner.get(name, ABSENT) for name in names]


def _items(owner: Mapping[Any, Any]) -> list[Any]:
    return [*owner, *owner.values()]


def _elements(owner: Iterable[Any]) -> list[Any]:
    return list(owner)


def _fields(names: Sequence[str], owner: Any) -> list[Any]:
    return [getattr(owner, name) for name in names]


def _slot_values(owner: Any) -> list[Any]:
    return list(_slots(owner).values())


def _code_of(function: FunctionType) -> tuple[Any, ...]:
    cells = function.__closure__ or ()
    contents = (cell.cell_contents if _is_filled(cell) else ABSENT for cell in cells)
    defaults = function.__defaults__, function.__kwdefaults__
    return function.__code__, *defaults, *contents


def _array_elements(array: npt.NDArray[Any]) -> list[Any]:
    return array.ravel().tolist()


def _array_key(array: npt.NDArray[Any]) -> Hashable:
    return array.dtype.str, array.shape, array.tobytes()


@lru_cache(maxsize=1024)
def _users_classes(kind: type) -> tuple[type, ...]:
    return tuple(each for each in kind.__mro__ if _is_users(each.__module__))


def _inside(member: Any) -> list[FunctionType]:
    match member:
        case FunctionType():
            return [member]
        case property():
            return _inside(member.fget)
        case staticmethod() | classmethod():
            return _inside(cast(Any, member).__func__)
        case cached_property():
            return _inside(cast(Any, member).func)
        case _:
            return []


@lru_cache(maxsize=1024)
def _is_users(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root == "__main__" or root not in OURS | sys.stdlib_module_names


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in code and its inner functions.

    Texts that could be names are among them, as of `getattr(x, "name")`.
    """
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    texts = (each for each in code.co_consts if isinstance(each, str))
    named = {*code.co_names, *(text for text in texts if text.isidentifier())}
    return tuple(sorted(named.union(*(_names(each) for each in inner))))


class _Same:
    """An object of a class that is not looked into: equal to itself alone."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner  # kept, so that no other object gets its address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._owner is other._owner

    def __hash__(self) -> int:
        return id(self._owner)


class _ValueReader:
    """Turns values into keys; an object that is met again is entered no second time.

    Attributes:
        names: The attributes that are compared of classes, modules and objects.
        watches: What the keys depend on.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.watches: list[Watch | ArrayWatch] = []
        self._seen: dict[int, tuple[int, Any]] = {}

    def value(self, value: Any, depth: int) -> Hashable:
        """Return a key that differs from those of other values."""
        kind = type(value).__name__
        if isinstance(value, (float, *PLAIN)):
            return kind, value.hex() if isinstance(value, float) else value
        if id(value) in self._seen:
            return "seen", self._seen[id(value)][0]
        if depth > DEEPEST:
            return "too deep"
        self._seen[id(value)] = len(self._seen), value
        if isinstance(value, (np.ndarray, np.generic)):
            array = cast(npt.NDArray[Any], value)
            if array.dtype == object:
                self._watch(_array_elements, array)
                return kind, self.value(array.tolist(), depth)
            contents = _array_key(array)
            self.watches.append(ArrayWatch(array, contents))
            return contents
        if isinstance(value, FunctionType):
            return self._function(value, depth)
        parts = _parts(value)
        if parts is None:
            return kind, self.attributes(value, depth)
        if isinstance(value, (list, set, deque)):
            self._watch(_elements, value)
        elif isinstance(value, (dict, MappingProxyType)):
            self._watch(_items, value)
        read = [self.value(part, depth + 1) for part in parts]
        return kind, frozenset(read) if "set" in kind else tuple(read)

    def _watch(self, get: Callable[[Any], Sequence[Any]], owner: Any) -> None:
        self.watches.append(Watch(get, owner, get(owner)))

    def attributes(self, owner: Any, depth: int) -> Hashable:
        """Return a key of what code may read of a module, a class or another object."""
        if not isinstance(owner, (type, ModuleType)):
            return self._of_object(owner, depth)
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        if not _is_users(module):
            return module
        if isinstance(owner, ModuleType):
            return self._members(vars(owner), depth)
        users = _users_classes(owner)
        return tuple(self._members(vars(each), depth) for each in users)

    def _members(self, members: Mapping[str, Any], depth: int) -> Hashable:
        """Return the members that are named; of a class all of its code.

        What is named may call that: operators, and methods of a library.
        """
        is_class = isinstance(members, MappingProxyType)
        self._watch(_items if is_class else partial(_entries, self.names), members)
        read = [
            (name, self.value(each, depth + 1))
            for name, each in members.items()
            if name in self.names or (is_class and isinstance(each, CODE))
        ]
        return tuple(read)

    def _of_object(self, owner: Any, depth: int) -> Hashable:
        fields: tuple[str, ...] = getattr(owner, "__struct_fields__", ())
        is_known = fields or isinstance(owner, SimpleNamespace)
        if not is_known and not _is_users(type(owner).__module__):
            return _Same(owner)
        in_dict: dict[str, Any] = getattr(owner, "__dict__", {})
        self._watch(_items, in_dict)
        self._watch(_slot_values, owner)
        if fields:
            self._watch(partial(_fields, fields), owner)
        own = {**in_dict, **_slots(owner)}
        members = {name: own[name] for name in sorted(self.names & own.keys())}
        members |= {name: getattr(owner, name) for name in fields}
        read = [(name, self.value(each, depth + 1)) for name, each in members.items()]
        return self.value(type(owner), depth + 1), tuple(read)

    def _function(self, function: FunctionType, depth: int) -> Hashable:
        if not _is_users(function.__module__):
            return function.__module__, function.__qualname__
        code, space = function.__code__, function.__globals__
        names = _names(code)
        self.names |= frozenset(names)
        self._watch(_code_of, function)
        self._watch(partial(_entries, names), space)
        cells = function.__closure__ or ()
        read: list[Any] = [space[name] for name in names if name in space]
        read += [cell.cell_contents for cell in cells if _is_filled(cell)]
        read += [function.__defaults__, function.__kwdefaults__]
        return code, tuple(self.value(each, depth + 1) for each in read)


def _parts(value: Any) -> list[Any] | None:
    """Return the values in a container; None for what has attributes instead."""
    match value:
        case list() | tuple() | set() | frozenset() | deque():
            return list(cast(Any, value))
        case dict() | MappingProxyType():
            return list(cast(dict[Any, Any], value).items())
        case partial():
            called = cast(Any, value)
            return [called.func, called.args, called.keywords]
        case MethodType():
            return [value.__func__, value.__self__]
        case property() | staticmethod() | classmethod() | cached_property():
            return list(_inside(value))
        case _ if isinstance(value, CACHED):
            return [cast(Any, value).__wrapped__]
        case _:
            return None


def _slots(owner: Any) -> dict[str, Any]:
    """Return the attributes of an object that are kept in slots."""
    return {
        name: getattr(owner, name)
        for kind in _users_classes(cast(Any, type(owner)))
        for name, each in vars(kind).items()
        if isinstance(each, MemberDescriptorType) and hasattr(owner, name)
    }


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
