"""A page: one file that holds a cell, for a browser without Python or network.

The page is viser's client. In place of the connection to a server, scripts of ours
(`page/*.js`) answer it in the browser: they have what a server would send, recorded.
"""

from __future__ import annotations

import html
import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, ViewError, quote
from armillary.kinematics.bound_state import bound_state, home
from armillary.kinematics.moving_links import MovingLinks, moving_links, poses_of_links
from armillary.kinematics.state import State
from armillary.model.shapes.mesh import MeshSource
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.replaced_file import replacing
from armillary.view.drawing import Drawings, drawings
from armillary.view.motion import Motion, motion_of
from armillary.view.page_pack import Arrays, messages_of, packed
from armillary.view.page_panel import PagePanel
from armillary.view.scene import Scene, node_of
from armillary.view.server import serve, stop, viser_module

__all__ = ["PageSize", "export"]

Array = npt.NDArray[np.float64]

SCRIPTS: Final = ("unpack", "pose", "cell", "playback", "server", "main")
"""The scripts of the page, in the order in which they build on each other."""
MOST_LINKS: Final = 2000
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "connect-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
)
"""What browsers let the page do: nothing that asks a network.

The client makes functions of text, where its WebAssembly is bound.
"""
NO_FORMULAS: Final = (
    "This page has no formulas of the cell: its joints cannot be moved here."
)


class PageSize(NamedTuple):
    """How large a page is.

    Attributes:
        total: Of the file [bytes].
        meshes: Of vertices, faces and images in it, before compression [bytes].
        notes: What could not be drawn, or is drawn simpler than it is.
    """

    total: int
    meshes: int
    notes: tuple[str, ...] = ()


def export(
    cell: Workcell,
    path: str | os.PathLike[str],
    *,
    state: State | None = None,
    trajectory: Any = None,
    times: npt.ArrayLike | None = None,
    rate: float | None = None,
    meshes: MeshSource | None = None,
) -> PageSize:
    """Write a cell as one HTML file, which browsers open from disk without a network.

    Args:
        cell: What the page shows.
        path: The file, which is replaced if it exists.
        state: Where the cell is; home by default. Attachments stay as they are here.
        trajectory: A motion to play: joint positions, shape (k, n) [m or rad], a list
            of states, or a `Trajectory`.
        times: Its instants [s], ascending, shape (k,).
        rate: Its samples a second where there are no times; by default 30.
        meshes: What reads the files of its meshes; by default that of the cell.

    Returns:
        How large the page is.

    Raises:
        StateError: The state is not one of this cell, or has numbers that are not
            finite.
        ShapeError: The shape of the trajectory or the times does not fit.
        ModelError: A number of the trajectory is not finite, or the cell has too many
            links for a page.
        ViewError: viser is not installed, or there is no such folder.
    """
    viser = viser_module()
    shown = home(cell) if state is None else bound_state(cell, state)
    _check(cell, shown, path)
    motion = None
    if trajectory is not None:
        motion = motion_of(shown, trajectory, times=times, rate=rate)
        shown = motion.state(0)
    found = drawings(cell, meshes)
    data, arrays = _recorded(cell, shown, found, motion)
    client = Path(viser.__file__).parent / "client" / "build" / "index.html"
    text = _page(client.read_text(encoding="utf-8"), cell.name, packed(data, arrays))
    content = text.encode()
    with replacing(path) as file:
        file.write(content)
    return PageSize(len(content), sum(map(len, arrays.contents)), found.notes)


def _check(cell: Workcell, state: State, path: str | os.PathLike[str]) -> None:
    folder = Path(path).parent
    if not folder.is_dir():
        raise ViewError(
            f"There is no folder {quote(str(folder))} to write the page to."
        )
    if Path(path).is_dir():
        raise ViewError(
            f"{quote(str(path))} is a folder; name a file, such as cell.html."
        )
    if len(cell.links) > MOST_LINKS:
        raise ModelError(
            f"A page holds up to {MOST_LINKS} links; this cell has {len(cell.links)}. "
            "Export a part of it, or use cell.view()."
        )
    if not np.isfinite(state.positions).all():
        raise StateError("A position of the state is not finite.")


def _recorded(
    cell: Workcell, state: State, found: Drawings, motion: Motion | None
) -> tuple[dict[str, Any], Arrays]:
    """Return the data of a page, and the arrays that it refers to."""
    server = serve(host="127.0.0.1", port=None)
    try:
        server.gui.set_panel_label("armillary")
        scene = Scene(server, cell, found, state)
        panel = PagePanel(server, cell, state, NO_FORMULAS)
        for layer in scene.layers:
            scene.show_layer(layer, True)  # so that the page holds it
            scene.show_layer(layer, layer in scene.first_layers)
        if motion is not None:
            panel.add_motion(motion)
        panel.add_joints()
        panel.add_layers(found, scene.first_layers)
        panel.add_frames(cell.frame_names)
        arrays = Arrays()
        data = {
            "messages": messages_of(server),
            "cell": _cell_data(cell, state, found, motion)
            | {"controls": panel.controls},
        }
        return arrays.put(data), arrays
    finally:
        stop(server)


def _cell_data(
    cell: Workcell, state: State, found: Drawings, motion: Motion | None
) -> dict[str, Any]:
    """Return what `PageCell` and `PageServer` know of a cell; see `page/cell.js`."""
    moving, tree = moving_links(cell), state.tree
    drawn = sorted({each.link for each in found.items} - {WORLD_LINK})
    frames = {name: cell.frame(name) for name in cell.frame_names}
    return {
        "joints": cell.joint_names,
        "movingLinks": ["world", *(tree.name(link) for link in moving.links[1:])],
        "q": np.array(state.q, np.float64),
        "poses": _poses(moving, state),
        "links": [{"node": node_of(k), **_place(moving, tree, k)} for k in drawn],
        "frames": [
            {"name": name, **_place(moving, tree, at.link, at.pose.matrix())}
            for name, at in frames.items()
        ],
        "gizmos": [],
        "trajectory": None if motion is None else _trajectory(moving, motion),
    }


def _place(
    moving: MovingLinks, tree: Tree, link: int, within: Array | None = None
) -> dict[str, Any]:
    """Return which moving link carries a frame of a link, and its pose in that."""
    row, pose = moving.fixed_to(tree, link)
    X = pose.matrix() if within is None else pose.matrix() @ within
    return {"row": row, "pose": X[:3].ravel().tolist()}


def _poses(moving: MovingLinks, state: State) -> Array:
    """Return the poses of moving links in a state, shape (count * 12,)."""
    found = poses_of_links(moving, state)(np.array([state.q], np.float64))
    return np.asarray(found, np.float64).ravel()


def _trajectory(moving: MovingLinks, motion: Motion) -> dict[str, Any]:
    """Return the joint positions and the poses of links at each instant."""
    states = [motion.state(k) for k in range(len(motion.times))]
    return {
        "times": motion.times,
        "q": np.array([each.q for each in states], np.float64),
        "poses": np.array([_poses(moving, each) for each in states]),
    }


def _page(client: str, name: str, data: str) -> str:
    """Return viser's client with our scripts and data before its own."""
    folder = files("armillary.view") / "page"
    parts = [(folder / f"{each}.js").read_text("utf-8") for each in SCRIPTS]
    scripts = "\n".join(parts)
    ours = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<script type="text/plain" id="armillary-data">{data}</script>\n'
        f'<script>(() => {{\n"use strict";\n{scripts}}})();</script>\n'
    )
    start, _, rest = client.partition("<head>")
    title = f"<title>{html.escape(name)}</title>"
    return f"{start}<head>\n{ours}{rest.replace('<title>Viser</title>', title, 1)}"
