"""The states that a viewer has shown, to undo and redo."""

from __future__ import annotations

import time
from typing import Final

from armillary.kinematics.state import State

__all__ = ["History"]

SAME_STEP: Final = 0.6
"""Changes that follow each other within this time are one step [s]."""
MOST_KEPT: Final = 1000


class History:
    """States in the order in which they were shown.

    Attributes:
        state: The one that is shown.
    """

    def __init__(self, state: State) -> None:
        """Begin with a state."""
        self.state = state
        self._undone: list[State] = []
        self._done: list[State] = []
        self._changed = 0.0

    def show(self, state: State, *, remember: bool) -> None:
        """Note that a state is shown.

        Args:
            state: The new one.
            remember: Whether the one before can be had again by `undo`. Of changes
                that follow each other quickly the first one counts.
        """
        now = time.monotonic()
        if remember and now - self._changed > SAME_STEP:
            self._done = [*self._done[1 - MOST_KEPT :], self.state]
        if remember:
            self._changed = now
            self._undone.clear()
        self.state = state

    def undo(self) -> State | None:
        """Return the state before the last step, None if there was no step."""
        return self._step(self._done, self._undone)

    def redo(self) -> State | None:
        """Return the state after the step that was undone last, else None."""
        return self._step(self._undone, self._done)

    def _step(self, come_from: list[State], go_to: list[State]) -> State | None:
        if not come_from:
            return None
        go_to.append(self.state)
        self._changed = 0.0
        return come_from.pop()
