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

from armillary.errors import ModelError, StateError, printable, shortened
from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.state import State
from armillary.limits import PAGE_LINKS
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.drawing import drawings
from armillary.view.kinds import Drawings
from armillary.view.motion import Motion, motion_of
from armillary.view.page_cell import cell_data
from armillary.view.page_kinematics import UNCOMPILED, kinematics_script
from armillary.view.page_pack import Arrays, messages_of, packed
from armillary.view.page_panel import PagePanel
from armillary.view.page_targets import solver_names
from armillary.view.panel.gizmo import PART_OF_SCENE
from armillary.view.panel_layout import lay_out
from armillary.view.result_file import check_target, write_result
from armillary.view.scene import Scene
from armillary.view.server import LOOPBACK, serve, stop, viser_module

__all__ = ["PageSize", "write_page"]

SCRIPTS: Final = ("unpack", "pose", "cell", "playback", "server", "main")
"""The scripts of the page, in the order in which they build on each other."""
MOST_LINKS: Final = PAGE_LINKS.most
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
        total: Of the file [bytes].
        meshes: Of vertices, faces and images in it, before compression [bytes].
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
    found = drawings(cell, meshes)
    targets = solver_names(cell, state)
    data = _recorded(cell, state, found, played, targets)
    client = Path(viser.__file__).parent / "client" / "build" / "index.html"
    text = _page(
        client.read_text(encoding="utf-8"),
        cell.name,
        kinematics_script(cell, state, frames=list(dict.fromkeys(targets.values()))),
        packed(data),
    )
    content = text.encode()
    write_result(path, content)
    return PageSize(len(content), _size_of_meshes(data["messages"]), found.notes)


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
    motion: Motion | None,
    targets: dict[str, str],
) -> dict[str, Any]:
    """Return the data of a page; `targets` are those of `solver_names`."""
    server = serve(host=LOOPBACK, port=None)
    try:
        lay_out(server)
        server.gui.set_panel_label(printable(shortened(cell.name)))
        scene = Scene(server, cell, found, state)
        note = "" if moving_links(cell).is_compiled else UNCOMPILED
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
            },
        }
    finally:
        stop(server)


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
