"""The cell in a browser: a node for each link, below it what is drawn of that link.

Names of nodes are made of numbers, so that names from files cannot be mistaken for
paths; names from files are shown as text only.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.kernel import shared_kernel
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.trace import Program, trace
from armillary.view.camera import FIELD_OF_VIEW, fitted
from armillary.view.kinds import (
    FARTHEST,
    Axes,
    Drawing,
    Drawings,
    DrawnSurface,
    Label,
    Layer,
    Lines,
)

if TYPE_CHECKING:
    import viser

__all__ = ["Scene", "move", "node_of"]

Array = npt.NDArray[np.float64]

TOUCHING: Final = (235, 40, 30)
ROD: Final = (90, 95, 105)
ROD_WIDTH: Final = 4.0  # [pixels]
TRACE: Final = (30, 110, 220)
TRACE_WIDTH: Final = 3.0  # [pixels]
GRID: Final = (225, 228, 232)
GRID_SECTIONS: Final = (190, 196, 204)
EMPTY: Final = np.array([(-0.5, -0.5, 0.0), (0.5, 0.5, 0.5)])
"""What is looked at where nothing is drawn [m]."""
MOST_WITH_SHADOWS: Final = 100
"""Layers with more drawings have no shadows, which take as long as the rest."""
LARGEST_BODY: Final = 20.0
"""What reaches further from its link's origin does not count for the first view [m]."""


def node_of(link: int) -> str:
    """Return the name of the node of a link; -1 is the world."""
    return f"/cell/{'world' if link < 0 else link}"


class Scene:
    """The nodes of a cell; `show` moves them.

    Attributes:
        server: The server that has the nodes.
        cell: What is drawn.
        layers: The layers that have something to show.
        first_layers: The layers that are shown at first.
        size: The diagonal of the box around what is drawn at first [m].
    """

    def __init__(
        self,
        server: viser.ViserServer,
        cell: Workcell,
        drawings: Drawings,
        state: State,
        absent: frozenset[str] = frozenset(),
    ) -> None:
        """Add the nodes and put them where they are in a state, but for absent ones."""
        self.server = server
        self.cell = cell
        self.layers = tuple(
            layer for layer in Layer if any(d.layer == layer for d in drawings.items)
        )
        links = sorted({each.link for each in drawings.items} - {WORLD_LINK})
        # One node for each link that something is drawn of; what is drawn is below it,
        # so that moving the link is one message.
        self._nodes = [node_of(link) for link in links]
        self._rows = {link: k for k, link in enumerate(links)}
        self._names = [state.tree.name(link) for link in links]
        names = [each.name for each in cell.manipulators]
        self._owners = [names[cell.owners[link]] for link in links]
        self._absent: frozenset[str] = frozenset()
        self._rods = drawings.rods
        self.first_layers = _first_layers(drawings, self.layers)
        self._items: dict[Layer, list[tuple[int, Drawing]]] = {
            layer: [] for layer in self.layers
        }
        for k, each in enumerate(drawings.items):
            self._items[each.layer].append((k, each))
        self._obstacles: list[Any] = []
        self._trace: Any = None
        self._handles: dict[Layer, list[Any]] = {}
        """Of layers that have been shown once; the others are not sent."""
        if not any(map(self._has_shadows, self.layers)):
            # Shadows of nothing take most of the time of a picture.
            server.scene.configure_default_lights(cast_shadow=False)
        self._poses = np.zeros((0, 4, 4))
        self._shown: Array | None = None
        self._red: frozenset[int] = frozenset()
        with server.atomic():
            server.scene.add_frame(node_of(WORLD_LINK), show_axes=False)
            self._frames = [
                server.scene.add_frame(node, show_axes=False) for node in self._nodes
            ]
            self.hide(absent)
            self._rod_lines: Any = self._added_rods() if self._rods else None
            self.show(state)
            outline = self.outline(self.first_layers)
            self.size = max(float(np.linalg.norm(np.ptp(outline, axis=0))), 1e-3)
            self._add_surroundings(outline)
            for layer in self.first_layers:
                self.show_layer(layer, True)

    def show(self, state: State) -> None:
        """Move the links to where they are in a state; what stays is not sent."""
        if not self._names:
            return
        placed = poses(self.cell, state)
        self._poses = np.stack([placed[name] for name in self._names])
        now = _positions_quaternions(self._poses)
        # Only links whose pose has changed are sent: of a large cell, few move at a
        # time.
        before, self._shown = self._shown, now
        if before is None:
            moved = range(len(now))
        else:
            moved = np.flatnonzero((now != before).any(axis=1)).tolist()
        with self.server.atomic():
            for k, numbers in zip(moved, now[moved].tolist(), strict=True):
                move(self.server, self._nodes[k], numbers[:3], numbers[3:])
            if self._rods and moved:
                ends = [[placed[a][:3, 3], placed[b][:3, 3]] for a, b in self._rods]
                self._rod_lines.points = np.array(ends, np.float32)

    def hide(self, absent: frozenset[str]) -> None:
        """Hide these manipulators, and show the others."""
        if absent != self._absent:
            self._absent = absent
            with self.server.atomic():
                for frame, owner in zip(self._frames, self._owners, strict=True):
                    frame.visible = owner not in absent

    def nodes_of(self, manipulators: frozenset[str]) -> list[str]:
        """Return the names of the nodes of the links of manipulators."""
        return [
            node
            for node, owner in zip(self._nodes, self._owners, strict=True)
            if owner in manipulators
        ]

    def show_layer(self, layer: Layer, is_visible: bool) -> None:
        """Show or hide all that is in a layer."""
        with self.server.atomic():
            if layer not in self._handles:
                if not is_visible:
                    return
                # A layer is sent when it is first shown, and hidden or shown by a flag
                # after that.
                items = self._items[layer]
                has_shadow = self._has_shadows(layer)
                self._handles[layer] = [
                    _added(self.server, node, each, has_shadow=has_shadow)
                    for node, (_, each) in zip(self.nodes_in(layer), items, strict=True)
                ]
                self._paint(layer, self._red, self._red)
            for handle in self._handles[layer]:
                handle.visible = is_visible

    def _has_shadows(self, layer: Layer) -> bool:
        """Return whether a layer has surfaces, but not too many."""
        items = self._items[layer]
        return len(items) <= MOST_WITH_SHADOWS and any(
            isinstance(each.what, DrawnSurface) for _, each in items
        )

    def nodes_in(self, layer: Layer) -> list[str]:
        """Return the names of the nodes of a layer, which `show_layer` adds."""
        return [f"{node_of(each.link)}/{k}" for k, each in self._items[layer]]

    def show_obstacles(self, surfaces: Sequence[DrawnSurface]) -> list[str]:
        """Draw what is avoided, in place of what was; return the names of nodes."""
        with self.server.atomic():
            for handle in self._obstacles:
                handle.remove()
            names = [f"/obstacles/{k}" for k in range(len(surfaces))]
            self._obstacles = [
                _added(
                    self.server,
                    name,
                    Drawing(Layer.VISUALS, WORLD_LINK, name, IDENTITY, surface),
                    has_shadow=False,
                )
                for name, surface in zip(names, surfaces, strict=True)
            ]
        return names

    def move_obstacles(self, poses: Array) -> None:
        """Move what is avoided, poses of shape (k, 4, 4)."""
        with self.server.atomic():
            for handle, numbers in zip(
                self._obstacles, _positions_quaternions(poses).tolist(), strict=True
            ):
                move(self.server, handle.name, numbers[:3], numbers[3:])

    def show_trace(self, lines: npt.NDArray[np.float32]) -> None:
        """Draw lines along which frames move, shape (k, 2, 3), in place of others."""
        with self.server.atomic():
            if self._trace is not None:
                self._trace.remove()
                self._trace = None
            if len(lines):
                self._trace = self.server.scene.add_line_segments(
                    "/trace",
                    lines,
                    TRACE,
                    thickness=TRACE_WIDTH,
                    thickness_units="screen",
                )

    def mark(self, links: frozenset[int]) -> None:
        """Paint these links red, and the others as they were."""
        before, self._red = self._red, links
        if links != before:
            with self.server.atomic():
                for layer in self._handles:
                    self._paint(layer, links, links ^ before)

    def _paint(
        self, layer: Layer, red: frozenset[int], changed: frozenset[int]
    ) -> None:
        """Give the surfaces of the links that changed their colour, or red."""
        for (_, each), handle in zip(
            self._items[layer], self._handles[layer], strict=True
        ):
            what = each.what
            if (
                each.link in changed
                and isinstance(what, DrawnSurface)
                and not what.texture
            ):
                handle.color = TOUCHING if each.link in red else _rgb(what.colour)

    def _added_rods(self) -> Any:
        return self.server.scene.add_line_segments(
            "/rods",
            np.zeros((len(self._rods), 2, 3), np.float32),
            ROD,
            thickness=ROD_WIDTH,
            thickness_units="screen",
        )

    def outline(self, layers: Collection[Layer]) -> Array:
        """Return points around what layers show of the cell [m], shape (n, 3).

        They are corners of boxes. What reaches far, such as a floor, does not count.
        """
        if not len(self._poses):
            return EMPTY
        here = [owner not in self._absent for owner in self._owners]
        points = [self._poses[here, :3, 3]]
        for each in (
            each for layer in layers for _, each in self._items.get(layer, ())
        ):
            # Floors and half spaces would move the camera far away.
            corners = _corners(each)
            if np.abs(corners).max(initial=0.0) < LARGEST_BODY:
                if each.link != WORLD_LINK:
                    if not here[self._rows[each.link]]:
                        continue
                    X = self._poses[self._rows[each.link]]
                    corners = corners @ X[:3, :3].T + X[:3, 3]
                points.append(corners)
        return np.concatenate(points).clip(-FARTHEST, FARTHEST)

    def _add_surroundings(self, outline: Array) -> None:
        """Add a grid on the ground, light, and where browsers look from at first."""
        # Lines of the grid are at powers of ten: 0.1 m, 1 m, 10 m, as suits the cell.
        section = 10.0 ** round(math.log10(self.size))
        width = 4.0 * math.ceil(self.size / section) * section
        lowest = min(0.0, float(outline[:, 2].min()))
        self.server.scene.add_grid(
            "/grid",
            width=width,
            height=width,
            cell_size=0.1 * section,
            section_size=section,
            position=(0.0, 0.0, lowest - 1e-3 * self.size),
            cell_color=GRID,
            section_color=GRID_SECTIONS,
            fade_distance=5.0 * self.size,
        )
        first = fitted(outline, aspect=1.0)  # the panel covers a side of the window
        camera = self.server.initial_camera
        camera.fov = FIELD_OF_VIEW
        camera.look_at = tuple(first.look_at.tolist())
        camera.position = tuple(first.position.tolist())


def _first_layers(drawings: Drawings, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers that are shown at first."""
    if drawings.has_shapes:
        for each in (Layer.VISUALS, Layer.COLLISIONS):
            if each in layers:  # visuals may all be missing
                return (each,)
    stick_figure = (Layer.VISUALS, Layer.JOINTS, Layer.FRAMES)
    return tuple(each for each in stick_figure if each in layers)


def move(
    server: viser.ViserServer,
    node: str,
    position: Sequence[float],
    wxyz: Sequence[float],
) -> None:
    """Move a node of the scene.

    Handles of viser compare each vector with the one before within a tolerance, which
    loses small motions and takes most of the time of large cells.
    """
    from viser import _messages

    send = server.scene._queue_scene_message  # pyright: ignore[reportPrivateUsage]
    x, y, z = position
    send(_messages.SetPositionMessage(node, (x, y, z)))
    w, i, j, k = wxyz
    send(_messages.SetOrientationMessage(node, (w, i, j, k)))


def _corners(drawing: Drawing) -> Array:
    """Return the corners of the box around a drawing in the frame of its link."""
    match drawing.what:
        case DrawnSurface(vertices=points):
            pass
        case Lines(points=points):
            points = points.reshape(-1, 3)
        case Axes(length=length):
            points = np.array([(0.0, 0.0, 0.0), (length, length, length)])
        case _:
            return np.zeros((0, 3))
    if not len(points):
        return np.zeros((0, 3))
    sides = np.stack([points.min(axis=0), points.max(axis=0)]).astype(np.float64)
    # Corner (i, j, k) takes x from the lower or upper side by i, y by j, z by k.
    corners = sides[np.indices((2, 2, 2)).reshape(3, 8), [[0], [1], [2]]].T
    R = np.array(drawing.pose.rotation)
    corners_world: Array = corners @ R.T + np.array(drawing.pose.position)
    return corners_world


def _added(
    server: viser.ViserServer, name: str, drawing: Drawing, *, has_shadow: bool
) -> Any:
    """Add a drawing to the scene and return its handle."""
    scene, what = server.scene, drawing.what
    pose: dict[str, Any] = {
        "position": np.array(drawing.pose.position, np.float64),
        "wxyz": np.array(drawing.pose.quaternion(), np.float64),
    }
    match what:
        case DrawnSurface() if what.texture is not None:
            return scene.add_glb(name, glb_of(what), **pose)
        case DrawnSurface():
            opacity = what.colour[3]
            return scene.add_mesh_simple(
                name,
                what.vertices,
                what.faces,
                color=_rgb(what.colour),
                opacity=None if opacity >= 1.0 else opacity,
                side="double",
                flat_shading=True,
                cast_shadow=has_shadow,
                receive_shadow=has_shadow,
                **pose,
            )
        case Lines():
            return scene.add_line_segments(
                name,
                what.points,
                _rgb(what.colour),
                thickness=what.width,
                thickness_units="screen",
                **pose,
            )
        case Axes():
            return scene.add_frame(
                name, axes_length=what.length, axes_radius=what.radius, **pose
            )
        case Label():
            return scene.add_label(name, what.text, **pose)


def _rgb(colour: tuple[float, float, float, float]) -> tuple[int, int, int]:
    red, green, blue = (round(255 * each) for each in colour[:3])
    return red, green, blue


def _positions_quaternions(X: Array) -> Array:
    """Return positions and quaternions w x y z, (n, 4, 4) -> (n, 7)."""
    rows: Array = shared_kernel(_position_quaternion())(X)
    return rows


def _position_quaternion() -> Program:
    def both(X: Any) -> Any:
        pose = Pose.from_matrix(X)
        return [*pose.position, *pose.quaternion()]

    return trace(both, outputs=("position_quaternion",), X=(4, 4))


# surfaces with textures


FLOAT, UINT32, VERTICES, CORNERS = 5126, 5125, 34962, 34963
PNG: Final = b"\x89PNG"


def glb_of(surface: DrawnSurface) -> bytes:
    """Return a surface with its texture as a GLB file, its image as it is.

    Nothing is decoded here, so that an image cannot cost more memory than its file.
    """
    texture = surface.texture
    assert texture is not None
    arrays = (
        np.ascontiguousarray(surface.vertices, "<f4").tobytes(),
        np.ascontiguousarray(texture.uv, "<f4").tobytes(),
        np.ascontiguousarray(surface.faces, "<u4").tobytes(),
        texture.image,
    )
    binary, views = b"", list[dict[str, int]]()
    for data in arrays:
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(data)})
        binary += data + bytes(-len(data) % 4)
    for view, target in zip(views, (VERTICES, VERTICES, CORNERS), strict=False):
        view["target"] = target
    return _glb(_document(surface, views, len(binary)), binary)


def _document(
    surface: DrawnSurface, views: list[dict[str, int]], size: int
) -> dict[str, Any]:
    points = surface.vertices
    texture = surface.texture
    assert texture is not None
    is_png = texture.image.startswith(PNG)
    kinds = ((FLOAT, "VEC3"), (FLOAT, "VEC2"), (UINT32, "SCALAR"))
    counts = (len(points), len(points), 3 * len(surface.faces))
    accessors: list[dict[str, Any]] = [
        {"bufferView": k, "componentType": kind, "type": shape, "count": count}
        for k, ((kind, shape), count) in enumerate(zip(kinds, counts, strict=True))
    ]
    accessors[0] |= {
        "min": points.min(axis=0).tolist(),
        "max": points.max(axis=0).tolist(),
    }
    material = {
        "pbrMetallicRoughness": {
            "baseColorFactor": surface.colour,
            "baseColorTexture": {"index": 0},
            "metallicFactor": 0.0,
        },
        "doubleSided": True,
        "alphaMode": "BLEND" if surface.colour[3] < 1.0 else "OPAQUE",
    }
    primitive = {
        "attributes": {"POSITION": 0, "TEXCOORD_0": 1},
        "indices": 2,
        "material": 0,
    }
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "materials": [material],
        "textures": [{"source": 0}],
        "images": [
            {"bufferView": 3, "mimeType": "image/png" if is_png else "image/jpeg"}
        ],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": size}],
    }


def _glb(document: dict[str, Any], binary: bytes) -> bytes:
    """Return the chunks of a GLB file; `binary` has a multiple of four bytes."""
    text = msgspec.json.encode(document)
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
