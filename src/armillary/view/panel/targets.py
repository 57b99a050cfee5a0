"""A gizmo on a frame: while it is dragged, inverse kinematics follows."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError
from armillary.ik.reason import Reason
from armillary.ik.solution import Solution
from armillary.kinematics.all_frames import pose
from armillary.kinematics.state import State
from armillary.model.end_effectors import frames_by_use
from armillary.view.panel.events import by_people
from armillary.view.panel.gizmo import NO_GIZMO, Gizmo
from armillary.view.session import Session
from armillary.view.target_solver import reaches_poses, target_solver

__all__ = ["TargetControls"]

Array = npt.NDArray[np.float64]

POSITION: Final = "position only"
ROTATIONS: Final = {"full pose": "xyz", "free spin about z": "xy", POSITION: ""}
TIME_OF_A_STEP: Final = 0.05
"""How long one step of a drag may search [s]."""


class TargetControls:
    """A gizmo on a chosen frame, and what is asked of that frame."""

    def __init__(self, session: Session) -> None:
        """Add the controls; the gizmo is on the first end effector."""
        self._session = session
        names = frames_by_use(session.cell)
        gui = session.server.gui
        with gui.add_folder("Target", expand_by_default=bool(names)):
            self._frame = gui.add_dropdown(
                "frame",
                (NO_GIZMO, *names),
                initial_value=names[0] if names else NO_GIZMO,
                hint="Drag its gizmo in the scene; the joints follow.",
            )
            self._kind = gui.add_dropdown("reach", tuple(ROTATIONS))
            self._said = gui.add_text("answer", "", disabled=True)
        self._gizmo = Gizmo(
            session, "/target", dragged=self._dragged, released=self._settle
        )
        self._frame.on_update(by_people(session, self._choose_frame))
        self._kind.on_update(by_people(session, self._choose))
        self._choose_frame()

    def show(self, state: State) -> None:
        """Put the gizmo on its frame."""
        frame = self._frame.value
        is_on = frame != NO_GIZMO
        self._gizmo.put(pose(self._session.cell, frame, state) if is_on else None)

    def _choose_frame(self) -> None:
        cell, frame = self._session.cell, self._frame.value
        if frame != NO_GIZMO and not reaches_poses(cell, frame):
            self._kind.value = POSITION
        self._choose()

    def _choose(self) -> None:
        self._settle()
        frame, kind, state = self._frame.value, self._kind.value, self._session.state
        if frame == NO_GIZMO:
            return

        def prepare() -> None:
            with suppress(ArmillaryError):
                self._solve(state, pose(self._session.cell, frame, state), frame, kind)

        # The first answer compiles, which is done before anybody drags.
        threading.Thread(target=prepare, daemon=True).start()

    def _settle(self) -> None:
        self._said.value = ""
        self.show(self._session.state)

    def _dragged(self, target: Array) -> None:
        """Move the joints so that the frame follows, nearest to where they are."""
        state = self._session.state
        frame, kind = self._frame.value, self._kind.value
        joints, answer = self._solve(state, target, frame, kind)
        self._said.value = Reason(int(answer.reason)).sentence
        if answer.success:
            q = np.array(state.q)
            q[joints] = answer.q
            self._session.change(state.replace(q=q))

    def _solve(
        self, state: State, target: Array, frame: str, kind: str
    ) -> tuple[list[int], Solution]:
        """Return which joints move, and where inverse kinematics wants them."""
        cell = self._session.cell
        solver = target_solver(cell, frame, state, rotation=ROTATIONS[kind])
        joints = [cell.joint(name) for name in solver.joints]
        near = state.q[joints]
        return joints, solver(target, near=near, timeout=TIME_OF_A_STEP)
