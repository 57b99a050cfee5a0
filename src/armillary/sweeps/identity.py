"""Digests of questions and cells, equal in every process."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast

import numpy as np

__all__ = ["digest"]

OURS: Final = __name__.partition(".")[0]
DATA: Final = (
    *(bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic),
    *(tuple, list, dict, set, frozenset),
)


def digest(thing: Any) -> str:
    """Return the hash of the content of an object.

    It is that of a pickle without references, with sets in order, and with functions by
    their instructions, defaults, what they enclose, and the global data, functions of
    their package and objects of ours that they name: equal things have equal hashes in
    all processes of one version of Python.

    Raises:
        TypeError, AttributeError, PicklingError, RecursionError: It has no pickle, or
            refers to itself.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.fast = True  # no references: they depend on which equal texts are one
    pickler.dump(thing)
    return hashlib.sha256(stream.getvalue()).hexdigest()


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)
        self._seen: set[int] = set()  # functions, which may name themselves

    def persistent_id(self, obj: Any, /) -> Any:
        if isinstance(obj, set | frozenset):
            return sorted(map(digest, cast("set[Any]", obj)))
        return None

    def reducer_override(self, obj: Any, /) -> Any:
        if isinstance(obj, CodeType):
            return tuple, ([obj.co_code, obj.co_names, obj.co_consts],)
        if isinstance(obj, MethodType) and _package(obj) != OURS:
            return tuple, ([obj.__func__, obj.__self__],)
        if isinstance(obj, FunctionType) and _package(obj) != OURS:
            return tuple, (self._of_function(obj),)
        return NotImplemented

    def _of_function(self, function: FunctionType) -> list[Any]:
        # Processes import the program that was started by this name.
        module = function.__module__.replace("__mp_main__", "__main__")
        name = f"{module}.{function.__qualname__}"
        if id(function) in self._seen:
            return [name]
        self._seen.add(id(function))
        named = function.__globals__
        return [
            name,
            function.__code__,
            function.__defaults__,
            function.__kwdefaults__,
            [cell.cell_contents for cell in function.__closure__ or ()],
            [
                (each, _of_global(named[each]))
                for each in sorted(named.keys() & {*_names(function.__code__)})
                if _counts(named[each], function)
            ],
        ]


def _package(thing: Any) -> str:
    return str(thing.__module__).partition(".")[0]


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code uses, as of global values."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _of_global(value: Any) -> Any:
    """Return what stands for a global value; of data without a pickle the type."""
    if isinstance(value, FunctionType):
        return value
    try:
        return digest(value)
    except Exception:
        return type(value).__qualname__


def _counts(value: Any, function: FunctionType) -> bool:
    """Return whether a global value is part of what a function is."""
    if isinstance(value, FunctionType):
        return _package(value) == _package(function)
    return isinstance(value, DATA) or _package(type(value)) == OURS
