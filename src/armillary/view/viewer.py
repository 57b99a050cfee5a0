"""The viewer: the scene of a cell in browsers, and a panel that changes its state."""

from __future__ import annotations

import logging
import threading
import time
import webbrowser
from collections.abc import Callable
from typing import Any, Final

import numpy.typing as npt

from armillary.errors import ArmillaryError, printable, shortened
from armillary.kinematics.state import State, bound_state
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.motion import motion_of
from armillary.view.panel.part import PanelPart
from armillary.view.panel.parts import PARTS
from armillary.view.panel.playback import Playback
from armillary.view.panel_layout import lay_out
from armillary.view.session import Session

__all__ = ["Viewer"]

logger = logging.getLogger("armillary.view")

PANEL_PERIOD: Final = 0.1  # [s]


class Viewer:
    """A cell in the browser, on this machine only.

    All browsers that are connected show the same state, and any of them may change it.

    Attributes:
        cell: What is shown.
        server: The viser server, to add things of your own to its scene and panel.
        notes: What could not be drawn, or is drawn simpler than it is.
    """

    def __init__(
        self,
        cell: Workcell,
        state: State,
        *,
        meshes: MeshSource | None,
        host: str,
        port: int | None,
        insecure_remote: bool,
    ) -> None:
        """Start the server and show a state; see `Cell.view`."""
        self.cell = cell
        self._session = Session(
            cell,
            state,
            meshes=meshes,
            host=host,
            port=port,
            insecure_remote=insecure_remote,
        )
        self.server, self.notes = self._session.server, self._session.notes
        try:
            lay_out(self.server)
            self._playback = Playback(self._session)
            self._parts: list[PanelPart] = [
                self._playback,
                *(part(self._session) for part in PARTS),
            ]
        except BaseException:
            self.close()
            raise
        self.server.gui.set_panel_label(printable(shortened(cell.name)))
        threading.Thread(target=self._follow, daemon=True).start()

    def __repr__(self) -> str:
        return f"<viewer of {self.cell.name!r} at {self.address}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{self.address}" width="100%" height="600" '
            'style="border: 0"></iframe>'
        )

    @property
    def address(self) -> str:
        """Return the address to open in a browser."""
        return self._session.address

    @property
    def is_closed(self) -> bool:
        """Return whether the server has been stopped."""
        return self._session.closed.is_set()

    @property
    def state(self) -> State:
        """Return the state that is shown, with what people did in the browser."""
        return self._session.state

    def show(self, state: State) -> None:
        """Show a state of the cell.

        Raises:
            StateError: It is not a state of this cell.
            ViewError: The viewer has been closed.
        """
        self._session.change(bound_state(self.cell, state))

    def on_change(self, call: Callable[[State], None]) -> None:
        """Have a function called with each state that will be shown.

        It is called in the thread of whoever changed the state. Its errors are logged.
        """
        self._session.on_change(call)

    def _follow(self) -> None:
        """Bring the panel in line with the state, ten times a second at most."""
        rest = PANEL_PERIOD
        while not self._session.closed.wait(rest):
            if self._session.changed.wait(1.0):
                self._session.changed.clear()
                start = time.monotonic()
                self._session.draw(self._bring_in_line)
                # Large panels leave most of the time to the scene.
                rest = max(PANEL_PERIOD, 4.0 * (time.monotonic() - start))

    def _bring_in_line(self) -> None:
        for part in self._parts:
            try:
                part.show(self.state)
            except ArmillaryError as error:  # the others are shown
                logger.warning("%s: %s", type(part).__name__, error)

    def play(
        self,
        motion: Any,
        *,
        times: npt.ArrayLike | None = None,
        rate: float | None = None,
        start: State | None = None,
        play: bool = True,
    ) -> None:
        """Play a motion; the panel has controls to pause, scrub and change its speed.

        It pauses where anything else changes the state.

        Args:
            motion: Joint positions, shape (k, n) [m or rad], a list of states, a
                `Trajectory` of `cell.simulate`, or a `ControlledMotion` of a
                controller, with what it avoided.
            times: Instants [s], ascending, shape (k,).
            rate: Samples a second, in place of times; 30 by default.
            start: What joint positions leave open: attachments and bases; by default
                as shown.
            play: Whether it starts at once.

        Raises:
            ShapeError: A shape does not fit.
            ModelError: A number is not finite, or times do not ascend.
            StateError: A state is not one of this cell.
            ViewError: The viewer has been closed.
        """
        first = self.state if start is None else bound_state(self.cell, start)
        played = motion_of(first, motion, times=times, rate=rate)
        self._playback.load(played, play=play)

    def open(self) -> bool:
        """Open the browser of this machine; return whether there is one."""
        return webbrowser.open(self.address)

    def wait(self) -> None:
        """Wait until `close` is called, or Ctrl-C is pressed, which closes it."""
        try:
            while not self._session.closed.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server."""
        self._session.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
