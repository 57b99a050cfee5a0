"""Undo, redo, home, and the state as a file."""

from __future__ import annotations

from typing import Any

from armillary.kinematics.state import State, home
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["HistoryButtons"]


class HistoryButtons:
    """Buttons to undo and redo, to go home, and to save the state."""

    def __init__(self, session: Session) -> None:
        """Add them."""
        self._session = session
        gui = session.server.gui
        self._steps = gui.add_button_group("History", ("Undo", "Redo", "Home"))
        self._steps.on_click(by_people(session, self._step))
        save = gui.add_button("Save state", hint="As `state.to_json()` writes it")

        @save.on_click
        def _(event: Any) -> None:
            if event.client is not None:
                event.client.send_file_download(
                    "state.json", session.state.to_json().encode()
                )

    def show(self, state: State) -> None:
        """Nothing of this depends on the state."""

    def _step(self) -> None:
        history = self._session.history
        match self._steps.value:
            case "Undo":
                state = history.undo()
            case "Redo":
                state = history.redo()
            case _:
                self._session.change(home(self._session.cell))
                return
        if state is not None:
            self._session.change(state, remember=False)
