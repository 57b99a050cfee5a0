"""What tells one question or cell from another, the same in every process."""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
from types import CodeType, FunctionType
from typing import Any, cast

__all__ = ["digest"]


def digest(thing: Any) -> str:
    """Return the hash of what a thing is made of.

    It is that of a pickle without references, with sets in order, and with functions by
    their code, defaults and what they enclose: equal things have equal hashes in all
    processes.

    Raises:
        TypeError, AttributeError, PicklingError, RecursionError: It has no pickle, or
            refers to itself.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=5)
    pickler.fast = True  # no references: they depend on which equal texts are one
    pickler.dump(thing)
    return hashlib.sha256(stream.getvalue()).hexdigest()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any, /) -> Any:
        if isinstance(obj, set | frozenset):
            return list, (sorted(map(repr, cast("set[Any]", obj))),)
        if isinstance(obj, FunctionType):
            return tuple, (_of_function(obj),)
        return NotImplemented


def _of_function(function: FunctionType) -> list[Any]:
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    name = f"{function.__module__}.{function.__qualname__}"
    return [name, _code(function), function.__defaults__, enclosed]


def _code(function: FunctionType) -> str:
    """Return the text of a function; where there is none, its instructions."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return _instructions(function.__code__)


def _instructions(code: CodeType) -> str:
    constants = [
        _instructions(each) if isinstance(each, CodeType) else repr(each)
        for each in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {constants}"
