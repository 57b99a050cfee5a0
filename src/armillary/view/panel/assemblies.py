"""The assemblies of closed loops at the joint positions that are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from armillary.kinematics.loops import branches
from armillary.kinematics.state import State
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["AssemblyControls"]


class AssemblyControls:
    """A button that looks for assemblies, and the list of those that were found."""

    def __init__(self, session: Session) -> None:
        """Add them, if the cell has closed loops."""
        self._session = session
        self._found: Mapping[str, State] = {}
        if not session.cell.loop_system.passive:
            return
        gui = session.server.gui
        with gui.add_folder("Closed loops", expand_by_default=False):
            find = gui.add_button(
                "Find assemblies", hint="All ways to close the loops at these joints"
            )
            self._chosen: Any = gui.add_dropdown("assembly", ("as shown",))
        find.on_click(by_people(session, self._find))
        self._chosen.on_update(by_people(session, self._choose))

    def show(self, state: State) -> None:
        """The list stays as it was found."""

    def _find(self) -> None:
        state = self._session.state
        self._found = branches(self._session.cell, state)
        self._chosen.options = tuple(self._found)
        if state.branch in self._found:
            self._chosen.value = state.branch

    def _choose(self) -> None:
        state = self._found.get(self._chosen.value)
        if state is not None:
            self._session.change(state)
