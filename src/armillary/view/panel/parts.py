"""The parts of the panel, one class each.

A part adds its controls when it is made, calls `session.change` when someone uses them,
and brings them in line when `show` says which state is shown. To add one, write a class
like its neighbours and list it in `PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.csv_text import csv_text
from armillary.kinematics.all_frames import pose, poses
from armillary.kinematics.frame_tree import movable_bases
from armillary.kinematics.loops import branches
from armillary.kinematics.state import State, home
from armillary.model.end_effectors import frames_by_use
from armillary.model.mount import WORLD
from armillary.spatial.pose import IDENTITY, Pose
from armillary.view.kinds import Layer
from armillary.view.panel.contacts import Contacts
from armillary.view.panel.events import by_people
from armillary.view.panel.gizmo import NO_GIZMO, Gizmo
from armillary.view.panel.joint_sliders import JointSliders
from armillary.view.panel.part import PanelPart
from armillary.view.panel.plans import PlanControls
from armillary.view.panel.targets import TargetControls
from armillary.view.session import Session

__all__ = ["PARTS"]

HEADER: Final = ("frame", "x", "y", "z", "qw", "qx", "qy", "qz")
"""Columns of the file with all poses."""


class HistoryButtons:
    """Buttons to undo and redo, to go home, and to save the state."""

    def __init__(self, session: Session) -> None:
        """Add them."""
        self._session = session
        gui = session.server.gui
        self._steps = gui.add_button_group("History", ("Undo", "Redo", "Home"))
        self._steps.on_click(by_people(session, self._step))
        save = gui.add_button("Save state", hint="As `state.to_json()` writes it")

        @save.on_click
        def _(event: Any) -> None:
            if event.client is not None:
                event.client.send_file_download(
                    "state.json", session.state.to_json().encode()
                )

    def show(self, state: State) -> None:
        """Nothing of this depends on the state."""

    def _step(self) -> None:
        history = self._session.history
        match self._steps.value:
            case "Undo":
                state = history.undo()
            case "Redo":
                state = history.redo()
            case _:
                self._session.change(home(self._session.cell))
                return
        if state is not None:
            self._session.change(state, remember=False)


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


class AssemblyControls:
    """A button that looks for assemblies, and the list of those that were found."""

    def __init__(self, session: Session) -> None:
        """Add them, if the cell has closed loops."""
        self._session = session
        self._assemblies: Mapping[str, State] = {}
        if not session.cell.loop_system.passive:
            return
        gui = session.server.gui
        with gui.add_folder("Closed loops", expand_by_default=False):
            find = gui.add_button(
                "Find assemblies", hint="All ways to close the loops at these joints"
            )
            self._chosen: Any = gui.add_dropdown("assembly", ("as shown",))
        find.on_click(by_people(session, self._find))
        self._chosen.on_update(by_people(session, self._choose))

    def show(self, state: State) -> None:
        """The list stays as it was found."""

    def _find(self) -> None:
        state = self._session.state
        self._assemblies = branches(self._session.cell, state)
        self._chosen.options = tuple(self._assemblies)
        if state.branch in self._assemblies:
            self._chosen.value = state.branch

    def _choose(self) -> None:
        state = self._assemblies.get(self._chosen.value)
        if state is not None:
            self._session.change(state)


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
        shown = poses(self._session.cell, self._session.state)
        placed = [(name, Pose.from_matrix(matrix)) for name, matrix in shown.items()]
        rows = [(name, *X.position, *X.quaternion()) for name, X in placed]
        text = csv_text(HEADER, rows)
        event.client.send_file_download("poses.csv", text.encode())


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


PARTS: tuple[Callable[[Session], PanelPart], ...] = (
    HistoryButtons,
    JointSliders,
    TargetControls,
    PlanControls,
    Attachments,
    Bases,
    AssemblyControls,
    Contacts,
    PoseTable,
    LayerSwitches,
)
"""The parts in the order of the panel."""
