"""Runs a script and calls its functions; says of errors in which line they arose."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

from armillary.errors import ArmillaryError, ScriptError, TraceError
from armillary.scripts.host_modules import builtins_of, host_modules
from armillary.scripts.source import TRIED, Source
from armillary.scripts.tracing import formulas_of, remembered, traced_apart
from armillary.trace import Traced

__all__ = ["CONFIGURATION_EVENTS", "Runner"]

MANDATORY: Final = ("OnGetJointCount", "OnForward", "OnInverse")
CONFIGURATION_EVENTS: Final = (
    "OnGetConfigurationCount",
    "OnGetCurrentConfiguration",
    "OnSetCurrentConfiguration",
)
OTHERS: Final = (
    "OnCalculateTarget",
    "OnConstrainParams",
    "OnFinalize",
    "OnGetJointName",
    "OnGetKinematicJointCount",
    "OnGetSecondaryJointCount",
    "OnGetSecondaryJointName",
    "OnInitKinObject",
    "OnRebuild",
    "OnRelaxParams",
    "OnUpdateSecondaryJoints",
    "OnNearestConfig",  # of older scripts: nothing triggers it
    "OnResolveJoints",  # this neither
)


class Runner:
    """A script that has run, and whose events can be called.

    Attributes:
        source: The script.
    """

    def __init__(self, source: Source, own: Mapping[str, Callable[..., Any]]) -> None:
        """Run the script.

        Args:
            source: It.
            own: What its host offers it: `getComponent` and the like.

        Raises:
            ScriptError: It fails, or lacks an event.
        """
        self.source = source
        self._lock = RLock()
        self._is_traced = False
        self._tried = 0
        self._module = f"script:{source.name}"
        self._space: dict[str, Any] = {
            "__name__": self._module,
            "__builtins__": builtins_of(host_modules(own)),
        }
        self._space["__builtins__"][TRIED] = self._note_try
        # Its functions see this dict as their globals, whoever calls them.
        self._formulas = formulas_of(source.tree)
        with self._guarded("the script"):
            exec(source.code, self._space)
        self._check_events()

    def __contains__(self, event: str) -> bool:
        return self._space.get(event) is not None

    def parameters(self, event: str) -> range:
        """Return how many arguments an event may have."""
        function = self._space[event]
        most = function.__code__.co_argcount
        return range(most - len(function.__defaults__ or ()), most + 1)

    def call(self, event: str, *args: Any) -> Any:
        """Call an event, and return what it returns; None where it does not exist.

        Raises:
            ScriptError: It fails.
        """
        function = self._space.get(event)
        if function is None:
            return None
        with self._guarded(event):
            return function(*args)

    def truth(self, event: str, *args: Any) -> bool:
        """Call an event that returns a truth value.

        Raises:
            ScriptError: It fails, or returns something else.
        """
        returned = self.call(event, *args)
        if not isinstance(returned, (bool, int, Traced)):
            raise self.wrong_return(event, returned, "True or False")
        return bool(returned)

    def count(self, event: str, default: int, most: int) -> int:
        """Call an event that returns a count, `default` where it does not exist.

        Raises:
            ScriptError: It fails, or returns something else.
        """
        if event not in self:
            return default
        count = self.call(event)
        least = min(default, 1)
        if type(count) is not int or not least <= count <= most:
            what = f"a whole number from {least} to {most}"
            raise self.wrong_return(event, count, what)
        return count

    @contextmanager
    def asked(self, numbers: Sequence[Any], kept: Sequence[object]) -> Generator[None]:
        """Hold the script for one question; on traced numbers, undo what it keeps.

        kept: What it may change besides its own globals.

        Raises:
            TraceError: It came to a `try` on traced numbers, which raise nothing.
        """
        with self._lock:
            if not any(isinstance(each, Traced) for each in numbers):
                yield
                return
            with (
                self.undone((self._space, *kept)),
                traced_apart(self._space, self._formulas),
            ):
                self._is_traced, self._tried = True, 0
                try:
                    yield
                finally:
                    self._is_traced = False
            if self._tried:
                raise TraceError(
                    f"{self.source.name}:{self._tried}: a try statement cannot be "
                    "traced, as functions raise nothing in machine code."
                )

    def _note_try(self, line: int) -> None:
        if self._is_traced:
            self._tried = line

    def undone(self, kept: Sequence[object]) -> Any:
        """Return a context at whose end objects are as they were."""
        return remembered(kept, self._module)

    def fault(self, event: str, message: str) -> ScriptError:
        """Return the error for what an event did, with its first line."""
        function = self._space.get(event.partition("(")[0])
        line = function.__code__.co_firstlineno if function is not None else 1
        return ScriptError(f"{self.source.name}:{line}: {message}.")

    def wrong_return(self, event: str, returned: Any, wanted: str) -> ScriptError:
        """Return the error for what an event returned."""
        hint = " (is a return missing?)" if returned is None else ""
        message = f"{event} returned {returned!r}{hint}; it must return {wanted}"
        return self.fault(event, message)

    @contextmanager
    def _guarded(self, what: str) -> Generator[None]:
        """Say of what the script raises where it did so.

        Raises:
            ScriptError: It raised something.
        """
        try:
            yield
        except TraceError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            line = self._line_of(error)
            if line is None and isinstance(error, ScriptError):
                raise
            if line is None and what in self:
                line = self._space[what].__code__.co_firstlineno
            text = self.source.line(line or 0)
            shown = f" in: {text}" if text else ""
            kind = type(error).__name__
            name = "" if isinstance(error, ArmillaryError) else f"{kind}: "
            message = str(error).rstrip(".")
            if isinstance(error, RecursionError):
                message = "the script recurses without end"
            raise ScriptError(
                f"{self.source.name}:{line or 1}: {what}: {name}{message}{shown}"
            ) from error

    def _line_of(self, error: BaseException) -> int | None:
        """Return the innermost line of the script that led to an error."""
        lines = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == self.source.name
        ]
        return lines[-1] if lines else None

    def _check_events(self) -> None:
        """Refuse a script without what must be there.

        Raises:
            ScriptError: An event is missing or is not a function.
        """
        name = self.source.name
        for event in (*MANDATORY, *CONFIGURATION_EVENTS, *OTHERS):
            function = self._space.get(event)
            if function is not None and not inspect.isfunction(function):
                raise ScriptError(
                    f"{name}: {event} is not a function, but {function!r}."
                )
        missing = [event for event in MANDATORY if event not in self]
        if missing:
            wanted = missing[0].lower()
            likely = [each for each in self._space if each.lower() == wanted]
            hint = f" It defines {likely[0]}; capitals count." if likely else ""
            raise ScriptError(f"{name}: the script does not define {missing[0]}.{hint}")
        some = [event for event in CONFIGURATION_EVENTS if event in self]
        lacking = [event for event in CONFIGURATION_EVENTS if event not in self]
        if some and lacking:
            line = self._space[some[0]].__code__.co_firstlineno
            raise ScriptError(
                f"{name}:{line}: {' and '.join(some)} cannot do without "
                f"{' and '.join(lacking)}; define all three or none."
            )
