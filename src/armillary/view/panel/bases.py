"""A gizmo on the base of a manipulator that is free to be moved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.kinematics.all_frames import pose
from armillary.kinematics.frame_tree import movable_bases
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.spatial.pose import Pose
from armillary.view.panel.events import by_people
from armillary.view.panel.gizmo import NO_GIZMO, Gizmo
from armillary.view.session import Session

__all__ = ["Bases"]


class Bases:
    """A gizmo on the chosen base."""

    def __init__(self, session: Session) -> None:
        """Add it, if the cell has bases that are not fixed."""
        self._session = session
        names = movable_bases(session.cell)
        self._is_there = bool(names)
        if not names:
            return
        with session.server.gui.add_folder("Move a base", expand_by_default=False):
            self._name = session.server.gui.add_dropdown(
                "manipulator", (NO_GIZMO, *names), hint="Drag its gizmo in the scene."
            )
        self._gizmo = Gizmo(
            session, "/base", dragged=self._dragged, released=self._settle
        )
        self._name.on_update(by_people(session, self._settle))

    def show(self, state: State) -> None:
        """Put the gizmo on the base, unless that is attached to something."""
        if not self._is_there:
            return
        name = self._name.value
        is_free = name != NO_GIZMO and state.parent(name) == WORLD
        self._gizmo.put(self._pose(name, state) if is_free else None)

    def _settle(self) -> None:
        self.show(self._session.state)

    def _dragged(self, X: npt.NDArray[np.float64]) -> None:
        state = self._session.state
        placed = state.place(self._name.value, Pose.from_matrix(X).normalised())
        self._session.change(placed)

    def _pose(self, name: str, state: State) -> npt.NDArray[np.float64]:
        manipulator = self._session.cell.manipulators[self._session.cell.index[name]]
        base = manipulator.links[manipulator.order[0]].name
        return pose(self._session.cell, f"{name}/{base}", state)
