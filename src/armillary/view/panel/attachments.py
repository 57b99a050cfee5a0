"""What is attached to what: grip, attach and release from the panel."""

from __future__ import annotations

from armillary.kinematics.frame_tree import movable_bases
from armillary.kinematics.state import State
from armillary.model.end_effectors import frames_by_use
from armillary.model.mount import WORLD
from armillary.spatial.pose import IDENTITY
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["Attachments"]


class Attachments:
    """A manipulator, a frame, and buttons to attach the one to the other."""

    def __init__(self, session: Session) -> None:
        """Add them, if the cell has manipulators whose bases are not fixed."""
        self._session = session
        parts = movable_bases(session.cell)
        frames = frames_by_use(session.cell)
        self._is_there = bool(parts and frames)
        if not self._is_there:
            return
        gui = session.server.gui
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
        self._part.on_update(by_people(session, lambda: self.show(session.state)))
        self._do.on_click(by_people(session, self._clicked))

    def show(self, state: State) -> None:
        """Say what the chosen part is attached to."""
        if self._is_there:
            holder = state.parent(self._part.value)
            self._said.value = "nothing" if holder == WORLD else holder

    def _clicked(self) -> None:
        part, frame, state = self._part.value, self._frame.value, self._session.state
        match self._do.value:
            case "Grip":
                state = state.grip(part, by=frame, replace=True)
            case "Attach":
                state = state.attach(part, frame, pose=IDENTITY, replace=True)
            case _:
                state = state.release(part)
        self._session.change(state)
