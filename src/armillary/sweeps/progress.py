"""A progress bar for long work, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TextIO

__all__ = ["ERASE", "ProgressBar"]

DELAY: Final = 0.5  # [s] before a bar appears
INTERVAL: Final = 0.1  # [s] between two pictures of it
WIDTH: Final = 40
ERASE: Final = "\r\033[K"


class ProgressBar:
    """Show on stderr how much of `total` is done, once the work takes long."""

    def __init__(
        self,
        total: int,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the clock; `stream` is stderr unless given."""
        self._total = max(1, total)
        self._stream = stream or sys.stderr
        self._clock = clock
        self._start = clock()
        self._next = self._start + DELAY
        self._visible = False

    def at(self, done: int, note: str = "") -> None:
        """Show that `done` of the total is done, with a note behind the bar."""
        now = self._clock()
        if now < self._next or not self._stream.isatty():
            return
        self._next = now + INTERVAL
        self._visible = True
        share = min(1.0, done / self._total)
        full = round(share * WIDTH)
        left = (now - self._start) * (1.0 - share) / share if share else 0.0
        bar = "#" * full + "." * (WIDTH - full)
        text = f"[{bar}] {share:4.0%}, {left:.0f} s left"
        self._stream.write(ERASE + text + (f", {note}" if note else ""))
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Erase the bar."""
        if self._visible:
            self._stream.write(ERASE)
            self._stream.flush()
