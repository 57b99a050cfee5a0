"""What is attached to what: grip, attach and release from the panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armillary.kinematics.frame_tree import movable_bases
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.spatial.pose import IDENTITY
from armillary.view.panel.events import by_people
from armillary.view.panel.targets import frames_to_drag

if TYPE_CHECKING:
    from armillary.view.viewer import Viewer

__all__ = ["Attachments"]


class Attachments:
    """A manipulator, a frame, and buttons to attach the one to the other."""

    def __init__(self, viewer: Viewer) -> None:
        """Add them, if the cell has manipulators whose bases are not fixed."""
        self._viewer = viewer
        parts = movable_bases(viewer.cell)
        frames = frames_to_drag(viewer.cell)
        self._is_there = bool(parts and frames)
        if not self._is_there:
            return
        gui = viewer.server.gui
        with gui.add_folder("Attach", expand_by_default=False):
            self._part = gui.add_dropdown("part", parts)
            self._frame = gui.add_dropdown("to", frames)
            self._do = gui.add_button_group(
                "",
                ("Grip", "Attach", "Release"),
                hint="Grip keeps the part where it is; Attach puts its base at the "
                "frame.",
            )
            self._said = gui.add_text("attached to", "", disabled=True)
        self._part.on_update(by_people(viewer, lambda: self.show(viewer.state)))
        self._do.on_click(by_people(viewer, self._clicked))

    def show(self, state: State) -> None:
        """Say what the chosen part is attached to."""
        if self._is_there:
            holder = state.parent(self._part.value)
            self._said.value = "nothing" if holder == WORLD else holder

    def _clicked(self) -> None:
        part, frame, state = self._part.value, self._frame.value, self._viewer.state
        match self._do.value:
            case "Grip":
                state = state.grip(part, by=frame, replace=True)
            case "Attach":
                state = state.attach(part, frame, pose=IDENTITY, replace=True)
            case _:
                state = state.release(part)
        self._viewer.change(state)
