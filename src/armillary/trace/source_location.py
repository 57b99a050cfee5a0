"""Where in the user's own code something happens, for messages."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from armillary.errors import TraceError

OURS = frozenset({"armillary", "numpy", "scipy"})
CATCHING = frozenset({"ZeroDivisionError", "ArithmeticError", "FloatingPointError"})

_faults: ContextVar[list[TraceError] | None] = ContextVar("faults", default=None)


@contextmanager
def watched() -> Generator[list[TraceError]]:
    """Yield a list that gets every fault made meanwhile, also those that are caught."""
    faults: list[TraceError] = []
    token = _faults.set(faults)
    try:
        yield faults
    finally:
        _faults.reset(token)


def is_called() -> bool:
    """Tell whether a function that was called compares, not an operator in the code.

    So do `numpy.maximum` of object arrays and `max`.
    """
    frame = _caller()
    if frame is None:
        return False
    return "CALL" in dis.opname[frame.f_code.co_code[frame.f_lasti]]


def running() -> str:
    """Return `file:line` of the innermost running code of the user, '' if none."""
    frame = inspect.currentframe()
    while frame is not None and not _is_users(frame):
        frame = frame.f_back
    return _place(frame)


def users_own() -> str:
    """Return `file:line` of the user's code that did this itself, '' if it is ours."""
    frame = _caller()
    return _place(frame) if frame is not None and _is_users(frame) else ""


def catches_division() -> bool:
    """Tell whether the user's function that divides names an error of division."""
    frame = _caller()
    return (
        frame is not None
        and not CATCHING.isdisjoint(frame.f_code.co_names)
        and _is_users(frame)
    )


def _caller() -> FrameType | None:
    """Return the innermost frame outside of this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame


def _place(frame: FrameType | None) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def raised(error: BaseException) -> str:
    """Return `file:line` of the user's code that led to `error`, '' if none."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if _is_users(trace.tb_frame):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def defined(function: object) -> str:
    """Return `file:line` of the definition of a function, '' where it has none."""
    function = getattr(function, "__wrapped__", function)  # functools.wraps
    function = getattr(function, "func", function)  # functools.partial
    if not hasattr(function, "__code__"):  # an object that can be called
        function = getattr(type(function), "__call__", None)  # noqa: B004
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def fault(message: str, place: str | None = None) -> TraceError:
    """Make the error for what the user's code did at `place`, by default just now."""
    place = running() if place is None else place
    error = TraceError(f"{place}: {message}" if place else message)
    faults = _faults.get()
    if faults is not None:
        faults.append(error)
    return error


def _is_users(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    is_pythons = frame.f_code.co_filename.startswith("<frozen")
    return not is_pythons and module.partition(".")[0] not in OURS
