"""Where in the user's own code something happens, for messages."""

from __future__ import annotations

import inspect
from types import FrameType

from armillary.errors import TraceError

OURS = frozenset({"armillary", "numpy"})


def running() -> str:
    """Return `file:line` of the innermost running code of the user, '' if none."""
    frame = inspect.currentframe()
    while frame is not None and not _is_users(frame):
        frame = frame.f_back
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
    function = getattr(function, "func", function)  # functools.partial
    if not hasattr(function, "__code__"):  # an object that can be called
        function = getattr(type(function), "__call__", None)  # noqa: B004
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def fault(message: str, place: str | None = None) -> TraceError:
    """Make the error for what the user's code did at `place`, by default just now."""
    place = running() if place is None else place
    return TraceError(f"{place}: {message}" if place else message)


def _is_users(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    is_pythons = frame.f_code.co_filename.startswith("<frozen")
    return not is_pythons and module.partition(".")[0] not in OURS
