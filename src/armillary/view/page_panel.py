"""The panel of a page: its controls, and what the page's script has each of them do.

A control has a kind, which is the name of a method in `page/server.js`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from armillary.kinematics.state import State
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.view.motion import Motion
from armillary.view.panel.gizmo import NO_GIZMO
from armillary.view.panel.joint_sliders import (
    is_angle,
    joint_folders,
    label_of,
    postures_of,
    slider_of,
)
from armillary.view.scene import Scene

if TYPE_CHECKING:
    import viser

__all__ = ["PagePanel"]

FINEST: Final = 1e-6
"""The step of sliders: what people type is rounded to it [m, rad or s]."""


class PagePanel:
    """The controls of a page, added to a server that records them.

    Attributes:
        controls: What each control is for, by its identifier.
        is_moving: Whether its joints can be moved.
    """

    def __init__(
        self, server: viser.ViserServer, cell: Workcell, state: State, note: str
    ) -> None:
        """Add what the page says of itself; `note` is why its joints do not move."""
        self.controls: dict[str, dict[str, Any]] = {}
        self._server = server
        self._gui: Any = server.gui
        self._cell, self._state = cell, state
        self.is_moving = not note
        status = self._gui.add_text("Status", note or "ready", disabled=True)
        self._add(status, "status")

    def add_motion(self, motion: Motion) -> None:
        """Add buttons that play a motion, its speed, and its time to scrub."""
        start, end = float(motion.times[0]), float(motion.times[-1])
        length = max(end - start, FINEST)
        with self._gui.add_folder("Motion"):
            self._add(self._gui.add_button("Play"), "play")
            self._add(self._gui.add_button("Pause"), "pause")
            speed = self._gui.add_slider(
                "speed", min=0.1, max=4.0, step=0.1, initial_value=1.0
            )
            self._add(speed, "speed")
            time = self._gui.add_slider(
                "time [s]",
                min=start,
                max=start + length,
                step=length / 1000,
                initial_value=start,
            )
            self._add(time, "time")

    def add_joints(self) -> None:
        """Add a folder for each manipulator: its postures, and a slider for a joint."""
        for manipulator, joints in joint_folders(self._server, self._cell):
            self._add_postures(manipulator)
            for k in joints:
                self._add_joint(k)
        text = ", ".join(map(repr, self._state.q.tolist()))
        vector = self._gui.add_text("q", text, disabled=not self.is_moving)
        self._add(vector, "vector")

    def add_layers(self, scene: Scene) -> None:
        """Add a check box for each layer that has something to show."""
        with self._gui.add_folder("Show", expand_by_default=False):
            for layer in scene.layers:
                box = self._gui.add_checkbox(layer.value, layer in scene.first_layers)
                self._add(box, "layer", nodes=scene.nodes_in(layer))

    def add_target(self, frames: list[str]) -> None:
        """Add the choice of the frame that a gizmo is on; none at first."""
        with self._gui.add_folder("Target"):
            chosen = self._gui.add_dropdown(
                "frame", (NO_GIZMO, *frames), initial_value=NO_GIZMO
            )
            self._add(chosen, "target")

    def add_frames(self, frames: tuple[str, ...]) -> None:
        """Add the pose of a frame, which people choose."""
        with self._gui.add_folder("Pose in the world", expand_by_default=False):
            self._add(
                self._gui.add_dropdown("frame", frames, initial_value=frames[0]),
                "chosen",
            )
            position = self._gui.add_text("Position [m]", "", disabled=True)
            self._add(position, "position")
            quaternion = self._gui.add_text("Quaternion wxyz", "", disabled=True)
            self._add(quaternion, "quaternion")

    def _add(self, handle: Any, kind: str, **more: Any) -> None:
        self.controls[handle._impl.uuid] = {"kind": kind, **more}

    def _add_postures(self, manipulator: Manipulator) -> None:
        for name, positions in postures_of(manipulator).items():
            q = {str(self._cell.joint(each)): at for each, at in positions.items()}
            button = self._gui.add_button(name, disabled=not self.is_moving)
            self._add(button, "posture", q=q)

    def _add_joint(self, k: int) -> None:
        arguments = slider_of(self._cell, k, float(self._state.q[k]))
        arguments["step"] = min(arguments["step"], FINEST)
        slider = self._gui.add_slider(**arguments, disabled=not self.is_moving)
        name = label_of(self._cell, k, None)
        self._add(slider, "joint", index=k, label=name, isAngle=is_angle(self._cell, k))
