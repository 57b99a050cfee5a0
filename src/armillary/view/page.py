"""A page: one file that holds a cell, for a browser without Python or network.

The page is viser's client. In place of the connection to a server, scripts of ours
(`page/*.js`) answer it in the browser: they have what a server would send, recorded.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, printable, shortened
from armillary.kinematics.moving_links import (
    MovingLinks,
    poses_of_links,
    straight_links,
)
from armillary.kinematics.poses import FixedTo
from armillary.kinematics.postures import postures_of
from armillary.kinematics.state import State
from armillary.limits import PAGE_LINKS
from armillary.model.manipulator import Manipulator
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.view.drawing import drawings
from armillary.view.kinds import Drawings
from armillary.view.motion import PlayedMotion, motion_of
from armillary.view.page_kinematics import UNCOMPILED, kinematics_script, solver_names
from armillary.view.panel.gizmo import NO_GIZMO, PART_OF_SCENE
from armillary.view.panel.joint_sliders import (
    is_angle,
    joint_folders,
    label_of,
    slider_of,
)
from armillary.view.panel_layout import lay_out
from armillary.view.result_file import check_target, write_result
from armillary.view.scene import Scene, node_of
from armillary.view.server import LOOPBACK, serve, stop, viser_module

if TYPE_CHECKING:
    import viser

__all__ = ["PagePanel", "PageSize", "cell_data", "messages_of", "write_page"]

SCRIPTS: Final = ("unpack", "pose", "cell", "playback", "charts", "server", "main")
"""The scripts of the page, in the order in which they build on each other."""
MOST_LINKS: Final = PAGE_LINKS.most
CHART_WIDTH: Final = 1400.0
"""Of charts below the scene [pixels]; browsers scale them to the window."""
GIZMO: Final = "/gizmo"
"""The name of its node."""
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "connect-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
)
"""What browsers let the page do: nothing that asks a network.

The client makes functions of text, where its WebAssembly is bound.
"""
MESHES: Final = ("MeshMessage", "GlbMessage")
"""The messages of viser that hold vertices, faces or images."""


class PageSize(NamedTuple):
    """How large a page is.

    Attributes:
        total: The size of the file [bytes].
        meshes: The size of its vertices, faces and images before compression [bytes].
        notes: What could not be drawn, or is drawn simpler than it is.
    """

    total: int
    meshes: int
    notes: tuple[str, ...] = ()


def write_page(
    cell: Workcell,
    path: str | os.PathLike[str],
    *,
    state: State,
    motion: Any,
    times: npt.ArrayLike | None,
    rate: float | None,
    meshes: MeshSource | None,
) -> PageSize:
    """Write a cell in a state as one HTML file; see `Cell.export`."""
    viser = viser_module()
    check_target(path, "cell.html")
    _check(cell, state)
    played = None
    if motion is not None:
        played = motion_of(state, motion, times=times, rate=rate)
        state = played.state(0)
    drawn = drawings(cell, meshes)
    targets = solver_names(cell, state)
    data = _recorded(cell, state, drawn, played, targets)
    client = Path(viser.__file__).parent / "client" / "build" / "index.html"
    text = _page(
        client.read_text(encoding="utf-8"),
        cell.name,
        kinematics_script(cell, state, frames=list(dict.fromkeys(targets.values()))),
        packed(data),
    )
    content = text.encode()
    write_result(path, content)
    return PageSize(len(content), _size_of_meshes(data["messages"]), drawn.notes)


def _check(cell: Workcell, state: State) -> None:
    if len(cell.links) > MOST_LINKS:
        raise ModelError(
            f"A page holds up to {MOST_LINKS} links; this cell has {len(cell.links)}. "
            "Export a part of it, or use cell.view()."
        )
    if not np.isfinite(state.positions).all():
        raise StateError("A position of the state is not finite.")


def _recorded(
    cell: Workcell,
    state: State,
    found: Drawings,
    motion: PlayedMotion | None,
    targets: dict[str, str],
) -> dict[str, Any]:
    """Return the data of a page; `targets` are those of `solver_names`."""
    server = serve(host=LOOPBACK, port=None)
    try:
        lay_out(server)
        server.gui.set_panel_label(printable(shortened(cell.name)))
        absent = frozenset[str]() if motion is None else motion.absent(0)
        scene = Scene(server, cell, found, state, absent)
        note = "" if straight_links(cell).is_straight else UNCOMPILED
        panel = PagePanel(server, cell, state, note)
        for layer in scene.layers:
            scene.show_layer(layer, True)  # so that the page holds it
            scene.show_layer(layer, layer in scene.first_layers)
        obstacles: list[str] = []
        if motion is not None:
            panel.add_motion(motion)
            obstacles = scene.show_obstacles(motion.obstacles.surfaces)
        panel.add_joints()
        panel.add_layers(scene)
        if panel.is_moving and targets:
            _add_gizmo(scene)
            panel.add_target(list(targets))
        panel.add_frames(cell.frame_names)
        return {
            "messages": messages_of(server),
            "cell": cell_data(cell, state, found, motion)
            | {
                "gizmo": GIZMO,
                "targets": targets,
                "controls": panel.controls,
                "obstacles": obstacles,
                "absent": [] if motion is None else _absences(motion, scene),
                "charts": [] if motion is None else _charts(motion),
            },
        }
    finally:
        stop(server)


def _absences(motion: PlayedMotion, scene: Scene) -> list[dict[str, Any]]:
    """Return which nodes are hidden from which instants on, where that changes."""
    changes: list[dict[str, Any]] = []
    before = frozenset[str]()
    for k in range(len(motion.times)):
        absent = motion.absent(k)
        if absent != before or not k:
            changes.append({"sample": k, "nodes": scene.nodes_of(absent)})
        before = absent
    return changes if len(changes) > 1 or before else []


def _charts(motion: PlayedMotion) -> list[dict[str, str]]:
    return [
        {"title": each.title, "svg": each.svg(CHART_WIDTH)} for each in motion.charts
    ]


def _add_gizmo(scene: Scene) -> None:
    """Add a gizmo, hidden."""
    scene.server.scene.add_transform_controls(
        GIZMO, scale=PART_OF_SCENE * scene.size, depth_test=False, visible=False
    )


def _size_of_meshes(messages: list[dict[str, Any]]) -> int:
    """Return the bytes of vertices, faces and images in messages."""
    arrays = Arrays()
    arrays.put([each for each in messages if each["type"] in MESHES])
    return sum(map(len, arrays.contents))


def _page(client: str, name: str, kinematics: str, data: str) -> str:
    """Return viser's client with our scripts and data before its own.

    Names from files are in strings of `kinematics`, where they cannot end the script.
    """
    formulas = kinematics.replace("</", "<\\/").replace("<!--", "<\\!--")
    folder = files("armillary.view") / "page"
    parts = [(folder / f"{each}.js").read_text("utf-8") for each in SCRIPTS]
    scripts = "\n".join(parts)
    ours = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<script type="text/plain" id="armillary-data">{data}</script>\n'
        f'<script>(() => {{\n"use strict";\nconst kinematics = {formulas};\n'
        f"{scripts}}})();</script>\n"
    )
    start, _, rest = client.partition("<head>")
    title = f"<title>{html.escape(printable(name))}</title>"
    return f"{start}<head>\n{ours}{rest.replace('<title>Viser</title>', title, 1)}"


# what a server would send: messages, and arrays that they refer to


ALIGNMENT: Final = 8
UNSENT: Final = frozenset({"ReplayDoneMessage", "RunJavascriptMessage"})


class Arrays:
    """Arrays that the JSON of a page refers to; equal ones are kept once."""

    def __init__(self) -> None:
        """Begin without any."""
        self.contents: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def add(self, content: bytes, dtype: str) -> dict[str, Any]:
        """Return what stands in the JSON for an array."""
        number = self._numbers.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return {"__binary_index": number, "dtype": dtype}

    def put(self, value: Any) -> Any:
        """Return a value in which references stand for arrays and bytes."""
        match value:
            case dict():
                items = cast("dict[str, Any]", value).items()
                return {key: self.put(each) for key, each in items}
            case list() | tuple():
                return [self.put(each) for each in cast("list[Any]", value)]
            case bytes():
                return self.add(value, "|u1")
            case np.ndarray():
                array = cast("npt.NDArray[Any]", value)
                return self.add(array.tobytes(), array.dtype.str)
            case _:
                return value


def messages_of(server: viser.ViserServer) -> list[dict[str, Any]]:
    """Return the messages by which a new browser learns what a server shows."""
    server.flush()
    websockets: Any = server._websock_server  # pyright: ignore[reportPrivateUsage]
    buffer = websockets.get_message_buffer()
    with buffer.buffer_lock:
        messages = [buffer.message_from_id[k] for k in sorted(buffer.message_from_id)]
    return [_message(each) for each in messages if type(each).__name__ not in UNSENT]


def packed(data: dict[str, Any]) -> str:
    """Return the text of data, arrays among it."""
    arrays = Arrays()
    content_table = arrays.put(data)
    content_table["lengths"] = [len(each) for each in arrays.contents]
    text = json.dumps(content_table, separators=(",", ":")).encode()
    content = bytearray(len(text).to_bytes(8, "little") + text)
    for each in arrays.contents:
        content += bytes(-len(content) % ALIGNMENT) + each
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _message(message: Any) -> dict[str, Any]:
    buffers: list[memoryview[int]] = []
    values = message.as_serializable_dict(buffers)
    return _filled(values, buffers)


def _filled(value: Any, buffers: list[memoryview[int]]) -> Any:
    """Return a message with its arrays in their places."""
    match value:
        case {"__binary_index": int(number), "dtype": str(dtype)}:
            return np.frombuffer(buffers[number].tobytes(), dtype)
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _filled(each, buffers) for key, each in items}
        case list() | tuple():
            return [_filled(each, buffers) for each in cast("list[Any]", value)]
        case _:
            return value


# what scripts know of the cell: its links, and what each is fixed to


Array = npt.NDArray[np.float64]


def cell_data(
    cell: Workcell, state: State, found: Drawings, motion: PlayedMotion | None
) -> dict[str, Any]:
    """Return what `PageCell` and `PageServer` know of a cell; see `page/cell.js`.

    state: The first one of the motion, if there is a motion.
    """
    moving = straight_links(cell)
    states = [state]
    if motion is not None:
        states = [motion.state(k) for k in range(len(motion.times))]
    carriers = _Carriers(moving, states)
    drawn = sorted({each.link for each in found.items} - {WORLD_LINK})
    frames = {
        name: {"name": name, **carriers.place(at.link, at.pose)}
        for name in cell.frame_names
        for at in [cell.frame(name)]
    }
    return {
        "joints": cell.joint_names,
        "movingLinks": [
            "world",
            *(state.tree.name(link) for link in moving.links[1:]),
        ],
        "q": state.q,
        "poses": _poses(moving, state).ravel(),
        "bases": carriers.bases,
        "links": [{"node": node_of(k), **carriers.place(k)} for k in drawn],
        "frames": list(frames.values()),
        "rods": [[frames[a], frames[b]] for a, b in found.rods],
        "motion": None if motion is None else _motion(motion, states, carriers),
    }


class _Carriers:
    """The rows of poses that links and frames are fixed to.

    They are those of moving links, then one for each base that does not stay where it
    is in the states: that is moved, attached or released.
    """

    def __init__(self, moving: MovingLinks, states: Sequence[State]) -> None:
        self.moving = moving
        self._tree = states[0].tree
        everyone = range(len(moving.cell.manipulators))
        known = {each.placements: each.tree for each in states}
        places = [
            [moving.mounted(tree, m) for m in everyone] for tree in known.values()
        ]
        self._first = places[0]
        changing = [
            m for m in everyone if any(each[m] != self._first[m] for each in places)
        ]
        self._rows = {m: moving.count + k for k, m in enumerate(changing)}

    @property
    def bases(self) -> list[dict[str, Any]]:
        """Return for each of their rows what carries it in the first state."""
        return [_fixed(self._first[m]) for m in self._rows]

    def place(self, link: int, within: Pose = IDENTITY) -> dict[str, Any]:
        """Return the row that carries a frame of a link, and its pose in that."""
        row, pose = self.moving.fixed_to(self._tree, link)
        owners = self.moving.cell.owners
        own = self._rows.get(owners[link]) if link >= 0 else None
        carrier = self.moving.links[row]
        if own is not None and (carrier < 0 or owners[carrier] != owners[link]):
            pose = self._first[owners[link]].pose.inverse() @ pose
            row = own
        return _fixed(FixedTo(row, pose @ within))

    def poses(self, state: State) -> Array:
        """Return the poses of all rows in a state, shape (rows, 3, 4)."""
        links = _poses(self.moving, state)
        if not self._rows:
            return links
        mounted = [self.moving.mounted(state.tree, m) for m in self._rows]
        bases = [links[row] @ pose.matrix() for row, pose in mounted]
        return np.concatenate([links, bases])


def _fixed(at: FixedTo) -> dict[str, Any]:
    return {"row": at.row, "pose": at.pose.matrix()[:3].ravel().tolist()}


def _poses(moving: MovingLinks, state: State) -> Array:
    """Return the poses of moving links in a state, shape (count, 3, 4)."""
    poses = poses_of_links(moving, state)(state.q[np.newaxis])
    return np.asarray(poses[0], np.float64)


def _motion(
    motion: PlayedMotion, states: Sequence[State], carriers: _Carriers
) -> dict[str, Any]:
    """Return the joint positions at each instant, and where obstacles are.

    The poses of all rows go with them where the page cannot compute them: it has
    formulas of the first state.
    """
    first = states[0]
    about: dict[str, Any] = {
        "times": motion.times,
        "obstacles": motion.obstacles.poses[..., :3, :].astype(np.float32),
        "q": np.array([each.q for each in states], np.float64),
    }
    is_alike = all(each.placements == first.placements for each in states)
    if not carriers.moving.is_straight or not is_alike or first.passive.size:
        about["poses"] = np.array([carriers.poses(each) for each in states])
    return about


# the panel, whose controls the server records


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

    def add_motion(self, motion: PlayedMotion) -> None:
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
