"""Digests of questions and cells, equal in every process."""

from __future__ import annotations

import inspect
import io
import pickle
import sys
from types import FunctionType, MethodType
from typing import Any, Final, cast

from armillary.digests import hasher
from armillary.model.fields import kept
from armillary.model.user_warning import OURS
from armillary.model.workcell import Workcell

__all__ = ["cell_digest", "digest"]

KNOWN: Final = {OURS, "numpy", "msgspec", "builtins", "functools"}


class _UnnamedError(Exception):
    """A function is not what its module has by its name, or has no source text."""


def digest(thing: Any, *, is_ours: bool = False) -> str | None:
    """Return the hash of the content of an object; None if it cannot be recognised.

    It is that of a pickle without references, with sets in order, and with functions by
    module, name and source text. Functions that their module does not have by this
    name, such as lambdas and nested functions, cannot be recognised by another process.

    Args:
        thing: The object.
        is_ours: Whether it is recognised only if its classes and functions are those of
            this package, of NumPy and of Python: what others do is not in the hash.

    Raises:
        TypeError, AttributeError, PicklingError, RecursionError: It has no pickle, or
            refers to itself.
    """
    stream = io.BytesIO()
    pickler = (_OurPickler if is_ours else _Pickler)(stream, protocol=5)
    pickler.fast = True  # no references: they depend on which equal texts are one
    try:
        pickler.dump(thing)
    except _UnnamedError:
        return None
    if is_ours:
        return hasher(stream.getvalue()).hexdigest()
    # Motions and sweeps that users keep are recognised by it: it stays what it was.
    from hashlib import sha256  # it loads OpenSSL, which keys of the cache spare

    return sha256(stream.getvalue()).hexdigest()


def cell_digest(cell: Workcell) -> str | None:
    """Return the digest of a cell, which is computed once: a cell does not change."""
    return kept(cell, "digest", lambda: digest(cell))


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any, /) -> Any:
        if isinstance(obj, set | frozenset):
            is_ours = isinstance(self, _OurPickler)
            items = cast("set[Any]", obj)
            digests = [digest(each, is_ours=is_ours) for each in items]
            if None in digests:
                raise _UnnamedError
            return sorted(cast("list[str]", digests))
        return None

    def reducer_override(self, obj: Any, /) -> Any:
        if isinstance(obj, MethodType) and _is_foreign(obj):
            return tuple, ([obj.__func__, obj.__self__],)
        if isinstance(obj, FunctionType) and _is_foreign(obj):
            return tuple, (_of_function(obj),)
        return NotImplemented


class _OurPickler(_Pickler):
    def reducer_override(self, obj: Any, /) -> Any:
        defined = cast("Any", obj if hasattr(obj, "__qualname__") else type(obj))
        if str(defined.__module__).partition(".")[0] not in KNOWN:
            raise _UnnamedError
        return NotImplemented  # functions go by their names alone


def _is_foreign(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] != OURS


def _of_function(function: FunctionType) -> tuple[str, str]:
    """Return the full name of a function, and its source text.

    Raises:
        _UnnamedError: Another process would not find it by this name.
    """
    # Processes import the program that was started by this name.
    module = function.__module__.replace("__mp_main__", "__main__")
    named: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        named = getattr(named, part, None)
    if named is not function:
        raise _UnnamedError
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise _UnnamedError from error
    return f"{module}.{function.__qualname__}", source
