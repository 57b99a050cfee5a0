"""Check boxes: which layers are drawn."""

from __future__ import annotations

from typing import Any

from armillary.kinematics.state import State
from armillary.view.kinds import Layer
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["LayerSwitches"]


class LayerSwitches:
    """A check box for each layer that has something to show, and the notes."""

    def __init__(self, session: Session) -> None:
        """Add them, and hide what is not shown at first."""
        self._session = session
        gui, scene = session.server.gui, session.scene
        with gui.add_folder("Show", expand_by_default=False):
            for layer in scene.layers:
                self._add(layer, layer in scene.first_layers)
        if session.notes:
            with gui.add_folder("Notes", expand_by_default=False):
                for note in session.notes:
                    gui.add_text("", note, multiline=True, disabled=True)

    def show(self, state: State) -> None:
        """Nothing of this depends on the state."""

    def _add(self, layer: Layer, is_shown: bool) -> None:
        scene = self._session.scene
        box: Any = self._session.server.gui.add_checkbox(layer.value, is_shown)
        box.on_update(
            by_people(self._session, lambda: scene.show_layer(layer, bool(box.value)))
        )
