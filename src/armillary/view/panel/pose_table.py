"""Joint positions and poses of frames as text to copy, and all of them as a file."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State
from armillary.model.end_effectors import frames_by_use
from armillary.model.mount import WORLD
from armillary.spatial.pose import Pose
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["PoseTable"]

MOST_LISTED: Final = 12
HEADER: Final = ("frame", "x", "y", "z", "qw", "qx", "qy", "qz")


class PoseTable:
    """Text boxes with q and with the pose of a frame in another one."""

    def __init__(self, session: Session) -> None:
        """Add them."""
        self._session = session
        gui = session.server.gui
        names = session.cell.frame_names
        movers = frames_by_use(session.cell) or list(names)
        with gui.add_folder("Poses", expand_by_default=False):
            self._frame = gui.add_dropdown("frame", names, initial_value=movers[0])
            self._to = gui.add_dropdown("relative to", names, initial_value=WORLD)
            self._pose = gui.add_text("x y z [m], w x y z", "", multiline=True)
            self._q = gui.add_text("q", "", multiline=True)
            save = gui.add_button("Save all poses", hint="A CSV file, in the world")
        chosen = by_people(session, lambda: self.show(session.state))
        self._frame.on_update(chosen)
        self._to.on_update(chosen)
        save.on_click(self._save)
        self.show(session.state)

    def show(self, state: State) -> None:
        """Write the numbers of a state."""
        placed = poses(self._session.cell, state)
        X = Pose.from_matrix(placed.relative(self._frame.value, self._to.value))
        position = ", ".join(f"{each:.6f}" for each in X.position)
        quaternion = ", ".join(f"{each:.6f}" for each in X.quaternion())
        self._pose.value = f"{position}\n{quaternion}"
        self._q.value = ", ".join(f"{each:.6f}" for each in state.q)

    def _save(self, event: Any) -> None:
        if event.client is None:
            return
        text = io.StringIO()
        rows = csv.writer(text)
        rows.writerow(HEADER)
        for name, matrix in poses(self._session.cell, self._session.state).items():
            X = Pose.from_matrix(matrix)
            rows.writerow((name, *X.position, *X.quaternion()))
        event.client.send_file_download("poses.csv", text.getvalue().encode())
