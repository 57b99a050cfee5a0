"""What is shown now: one state, the scene that shows it, and the states before it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from armillary.errors import ViewError
from armillary.kinematics.state import State
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.drawing import drawings
from armillary.view.history import History
from armillary.view.scene import Scene

if TYPE_CHECKING:
    import viser

__all__ = ["Session"]


class Session:
    """The state that all browsers of a server show; threads may change it.

    Attributes:
        cell: What is shown.
        meshes: What reads the files of its meshes.
        server: The viser server.
        scene: The nodes of the cell.
        history: The states so far, to undo and redo.
        notes: What could not be drawn, or is drawn simpler than it is.
        lock: Held while the state changes.
        changed: Set when it has changed.
        closed: Set when the server is stopped.
    """

    def __init__(
        self,
        cell: Workcell,
        state: State,
        *,
        meshes: MeshSource | None,
        server: viser.ViserServer,
        lock: threading.RLock,
        closed: threading.Event,
    ) -> None:
        """Draw the cell in a state."""
        self.cell = cell
        self.meshes = meshes
        self.server = server
        self.lock = lock
        self.changed = threading.Event()
        self.closed = closed
        self.history = History(state)
        found = drawings(cell, meshes)
        self.notes = found.notes
        self.scene = Scene(server, cell, found, state)
        self._watchers: list[Callable[[State], None]] = []

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
                call(state)

    def draw(self, call: Callable[[], None]) -> None:
        """Call what changes controls or the scene, unless the server is stopped."""
        with self.lock:
            if not self.closed.is_set():
                with self.server.atomic():
                    call()

    def on_change(self, call: Callable[[State], None]) -> None:
        """Have a function called with each state that will be shown."""
        self._watchers.append(call)
