"""The panel of a page: its controls, and what the page's script has each of them do.

A control has a kind, which is the name of a method in `page/server.js`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from armillary.kinematics.state import State
from armillary.model.manipulator import Manipulator
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.view.drawing import Drawings, Layer
from armillary.view.motion import Motion
from armillary.view.scene import node_of

if TYPE_CHECKING:
    import viser

__all__ = ["PagePanel"]

WIDEST: Final = {Unit.RADIAN: 2.0 * math.pi, Unit.METRE: 10.0, Unit.OTHER: 10.0}
"""How far a slider without limits goes to each side."""
FINEST: Final = 1e-6
OPEN_AT_FIRST: Final = 12


class PagePanel:
    """The controls of a page, added to a server that records them.

    Attributes:
        controls: What each control is for, by its identifier.
    """

    def __init__(
        self, server: viser.ViserServer, cell: Workcell, state: State, note: str
    ) -> None:
        """Add what the page says of itself; `note` is why its joints do not move."""
        self.controls: dict[str, dict[str, Any]] = {}
        self._gui: Any = server.gui
        self._cell, self._state = cell, state
        self._is_moving = not note
        status = self._gui.add_text("Status", note or "ready", disabled=True)
        self._add(status, "note" if note else "status")

    def add_motion(self, motion: Motion) -> None:
        """Add buttons that play a motion, its speed, and its time to scrub."""
        start, end = float(motion.times[0]), float(motion.times[-1])
        length = max(end - start, FINEST)
        with self._gui.add_folder("Trajectory"):
            self._add(self._gui.add_button("Play"), "play")
            self._add(self._gui.add_button("Pause"), "pause")
            speed = self._gui.add_slider(
                "Speed", min=0.1, max=4.0, step=0.1, initial_value=1.0
            )
            self._add(speed, "speed")
            time = self._gui.add_slider(
                "Time [s]",
                min=start,
                max=start + length,
                step=length / 1000,
                initial_value=start,
            )
            self._add(time, "time")

    def add_joints(self) -> None:
        """Add a folder for each manipulator: its postures, and a slider for a joint."""
        names = self._cell.joint_names
        first = 0
        for manipulator in self._cell.manipulators:
            count = len(manipulator.joint_names)
            if count:
                is_open = len(names) <= OPEN_AT_FIRST
                with self._gui.add_folder(manipulator.name, expand_by_default=is_open):
                    self._add_postures(manipulator, first)
                    for k in range(first, first + count):
                        self._add_joint(k)
            first += count
        text = ", ".join(map(repr, self._state.q))
        vector = self._gui.add_text("q", text, disabled=not self._is_moving)
        self._add(vector, "vector")

    def add_layers(self, drawings: Drawings, shown: tuple[Layer, ...]) -> None:
        """Add a check box for each layer that is drawn."""
        with self._gui.add_folder("Show", expand_by_default=False):
            for layer in Layer:
                links = sorted({x.link for x in drawings.items if x.layer == layer})
                if links:
                    box = self._gui.add_checkbox(layer.value, layer in shown)
                    nodes = [f"{node_of(link)}/{layer.value}" for link in links]
                    self._add(box, "layer", nodes=nodes)

    def add_gizmos(self, nodes: dict[str, str]) -> None:
        """Add a check box for each gizmo: from names of frames to nodes."""
        if nodes:
            with self._gui.add_folder("Drag"):
                for name, node in nodes.items():
                    box = self._gui.add_checkbox(name, False)
                    self._add(box, "layer", nodes=[node])

    def add_frames(self, frames: tuple[str, ...]) -> None:
        """Add the pose of a frame, which people choose."""
        with self._gui.add_folder("Pose in the world", expand_by_default=False):
            self._add(
                self._gui.add_dropdown("Frame", frames, initial_value=frames[0]),
                "chosen",
            )
            position = self._gui.add_text("Position [m]", "", disabled=True)
            self._add(position, "position")
            quaternion = self._gui.add_text("Quaternion wxyz", "", disabled=True)
            self._add(quaternion, "quaternion")

    def _add(self, handle: Any, kind: str, **more: Any) -> None:
        self.controls[handle._impl.uuid] = {"kind": kind, **more}

    def _add_postures(self, manipulator: Manipulator, first: int) -> None:
        places = {name: first + k for k, name in enumerate(manipulator.joint_names)}
        for posture in manipulator.postures if self._is_moving else ():
            both = zip(posture.joints, posture.q, strict=True)
            q = {str(places[name]): position for name, position in both}
            self._add(self._gui.add_button(posture.name), "posture", q=q)

    def _add_joint(self, k: int) -> None:
        cell, q = self._cell, float(self._state.q[k])
        name = cell.joint_names[k]
        unit = cell.links[cell.joints.links[k]].joint.unit
        lower, upper = (float(each[k]) for each in cell.limits)
        least = min(max(lower, -WIDEST[unit]), q)
        most = max(min(upper, WIDEST[unit]), q, least + FINEST)
        slider = self._gui.add_slider(
            f"{name.rpartition('/')[2]} [{unit.value}]",
            min=least,
            max=most,
            step=FINEST,
            initial_value=q,
            disabled=not self._is_moving,
            hint=f"{name}: {lower:g} to {upper:g} {unit.value}",
        )
        self._add(slider, "joint", index=k)
