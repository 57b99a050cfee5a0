"""A gizmo on the base of a manipulator that is free to be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from armillary.kinematics.all_frames import pose
from armillary.kinematics.frame_tree import movable_bases
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.spatial.pose import Pose
from armillary.view.panel.events import by_people
from armillary.view.panel.gizmo import Gizmo

if TYPE_CHECKING:
    from armillary.view.viewer import Viewer

__all__ = ["Bases"]

NONE: Final = "(no gizmo)"


class Bases:
    """A gizmo on the chosen base."""

    def __init__(self, viewer: Viewer) -> None:
        """Add it, if the cell has bases that are not fixed."""
        self._viewer = viewer
        names = movable_bases(viewer.cell)
        self._is_there = bool(names)
        if not names:
            return
        with viewer.server.gui.add_folder("Move a base", expand_by_default=False):
            self._name = viewer.server.gui.add_dropdown(
                "manipulator", (NONE, *names), hint="Drag its gizmo in the scene."
            )
        self._gizmo = Gizmo(viewer, "/base", dragged=self._dragged, released=self._settle)
        self._name.on_update(by_people(viewer, self._settle))

    def show(self, state: State) -> None:
        """Put the gizmo on the base, unless that is attached to something."""
        if not self._is_there:
            return
        name = self._name.value
        is_free = name != NONE and state.parent(name) == WORLD
        self._gizmo.put(self._pose(name, state) if is_free else None)

    def _settle(self) -> None:
        self.show(self._viewer.state)

    def _dragged(self, X: npt.NDArray[np.float64]) -> None:
        state = self._viewer.state
        placed = state.place(self._name.value, Pose.from_matrix(X).normalised())
        self._viewer.change(placed)

    def _pose(self, name: str, state: State) -> npt.NDArray[np.float64]:
        manipulator = self._viewer.cell.manipulators[self._viewer.cell.index[name]]
        base = manipulator.links[manipulator.order[0]].name
        return pose(self._viewer.cell, f"{name}/{base}", state)
