"""What a server shows now: one state, its scene, and the states before it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from armillary.errors import ViewError
from armillary.kinematics.state import State
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.drawing import drawings
from armillary.view.scene import Scene
from armillary.view.server import LOOPBACK, serve, stop

__all__ = ["Session"]

logger = logging.getLogger("armillary.view")


class Session:
    """The state that all browsers of a server show; threads may change it.

    Attributes:
        cell: What is shown.
        meshes: What reads the files of its meshes.
        server: The viser server, which it starts.
        scene: The nodes of the cell.
        history: The states so far, to undo and redo.
        notes: What could not be drawn, or is drawn simpler than it is.
        lock: Held while the state changes.
        changed: Set when it has changed.
        closed: Set by `close`.
        play: Shows a motion, see `Playback.load`, which sets it.
    """

    play: Callable[..., None]

    def __init__(
        self,
        cell: Workcell,
        state: State,
        *,
        meshes: MeshSource | None,
        host: str = LOOPBACK,
        port: int | None = None,
        insecure_remote: bool = False,
    ) -> None:
        """Start a server, as `serve` does, and draw the cell in a state."""
        self.cell = cell
        self.meshes = meshes
        self.lock = threading.RLock()
        self.changed, self.closed = threading.Event(), threading.Event()
        self.history = History(state)
        self._watchers: list[Callable[[State], None]] = []
        self.server = serve(host=host, port=port, insecure_remote=insecure_remote)
        try:
            drawn = drawings(cell, meshes)
            self.notes = drawn.notes
            self.scene = Scene(self.server, cell, drawn, state)
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Return the address to open in a browser."""
        host = self.server.get_host()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.server.get_port()}"

    @property
    def state(self) -> State:
        """Return the state that is shown."""
        return self.history.state

    def change(self, state: State, *, remember: bool = True) -> None:
        """Show a state of the cell.

        Args:
            state: What to show.
            remember: Whether `history` keeps it, to be undone. Changes that follow
                each other quickly, such as those of a slider, are one step.

        Raises:
            ViewError: The viewer has been closed.
        """
        with self.lock:
            if self.closed.is_set():
                raise ViewError("The viewer has been closed; call cell.view again.")
            if state is self.state:
                return
            self.scene.show(state)
            self.history.show(state, remember=remember)
            self.changed.set()
            for call in self._watchers:
                try:
                    call(state)
                except Exception:  # of the user; the viewer goes on
                    logger.exception("A function given to on_change raised an error.")

    def draw(self, call: Callable[[], None]) -> None:
        """Call what changes controls or the scene, unless the server is stopped."""
        with self.lock:
            if not self.closed.is_set():
                with self.server.atomic():
                    call()

    def close(self) -> None:
        """Stop the server."""
        with self.lock:
            if self.closed.is_set():
                return
            self.closed.set()
        stop(self.server)

    def on_change(self, call: Callable[[State], None]) -> None:
        """Have a function called with each state that will be shown; log its errors."""
        self._watchers.append(call)


# earlier states


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
