"""Check boxes: which layers are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from armillary.kinematics.state import State
from armillary.view.drawing import Layer
from armillary.view.panel.events import by_people

if TYPE_CHECKING:
    from armillary.view.viewer import Viewer

__all__ = ["LayerSwitches"]

AT_FIRST: Final = (Layer.VISUALS,)
WITHOUT_SHAPES: Final = (Layer.JOINTS, Layer.FRAMES)


class LayerSwitches:
    """A check box for each layer that has something to show, and the notes."""

    def __init__(self, viewer: Viewer) -> None:
        """Add them, and hide what is not shown at first."""
        self._viewer = viewer
        gui, scene = viewer.server.gui, viewer.scene
        shown = AT_FIRST if Layer.VISUALS in scene.layers else (
            (Layer.COLLISIONS,) if Layer.COLLISIONS in scene.layers else WITHOUT_SHAPES
        )
        with gui.add_folder("Show", expand_by_default=False):
            for layer in scene.layers:
                self._add(layer, layer in shown)
        if viewer.notes:
            with gui.add_folder("Notes", expand_by_default=False):
                for note in viewer.notes:
                    gui.add_text("", note, multiline=True, disabled=True)

    def show(self, state: State) -> None:
        """Nothing of this depends on the state."""

    def _add(self, layer: Layer, is_shown: bool) -> None:
        scene = self._viewer.scene
        box: Any = self._viewer.server.gui.add_checkbox(layer.value, is_shown)
        scene.show_layer(layer, is_shown)
        box.on_update(
            by_people(self._viewer, lambda: scene.show_layer(layer, bool(box.value)))
        )
