"""Signals of a run: what they hold, and when tasks see that they change."""

from __future__ import annotations

import math
from collections.abc import Mapping

from armillary.programs.spans import SignalChange
from armillary.programs.steps import Value

__all__ = ["Signals"]


class Signals:
    """What signals and sensors hold during a run.

    Attributes:
        values: What each holds.
        changes: All changes in order of time, first of all what they hold at first.
        setters: The span that set each last; None for sensors.
        scan: The scan cycle in which tasks see them [s], 0 where they do so at once.
    """

    def __init__(self, values: Mapping[str, Value], scan: float) -> None:
        """Begin with the values that they hold at first."""
        self.values = dict(values)
        self.setters: dict[str, int | None] = {}
        self.scan = scan
        self.changes = [
            SignalChange(name, 0.0, value) for name, value in values.items()
        ]

    def set(self, signal: str, value: Value, *, time: float, span: int | None) -> None:
        """Give a signal a value at an instant [s], by a step if it is set by one."""
        if not self.holds(signal, value):
            self.values[signal] = value
            self.setters[signal] = span
            self.changes.append(SignalChange(signal, time, value))

    def holds(self, signal: str, value: Value) -> bool:
        """Return whether a signal has a value."""
        return _is_same(self.values[signal], value)

    def are_seen(self, signal: str, value: Value, *, time: float) -> bool:
        """Return whether tasks see that a signal has a value: at once, or by scans."""
        if not self.scan:
            return self.holds(signal, value)
        last = self._scans(time)[0]
        changes = [each for each in self.changes if each.signal == signal]
        # A change at the instant of a scan is seen by the next one.
        held = next((c for c in reversed(changes) if c.time < last), changes[0])
        return _is_same(held.value, value)

    def next_look(self, signal: str, value: Value, *, time: float) -> float:
        """Return when a task that waits for a value looks next, infinite if in vain."""
        return self._scans(time)[1] if self.holds(signal, value) else math.inf

    def missed(self, signal: str, value: Value) -> str:
        """Return what to say of a value that a signal had and no longer has."""
        times = [
            change.time
            for change in self.changes
            if change.signal == signal and _is_same(change.value, value)
        ]
        if not times:
            return ""
        now = self.values[signal]
        return f" any more: it was so at {times[-1]:.6g} s, and is {now!r} since"

    def _scans(self, time: float) -> tuple[float, float]:
        """Return the instants of the last scan until an instant, and of the next."""
        if not self.scan:
            return time, math.inf
        n = math.floor(time / self.scan)
        while (n + 1) * self.scan <= time:
            n += 1
        while n * self.scan > time:
            n -= 1
        return n * self.scan, (n + 1) * self.scan


def _is_same(held: Value, value: Value) -> bool:
    """Return whether a signal that holds one value has another: True is not 1."""
    return held == value and isinstance(held, bool) == isinstance(value, bool)
