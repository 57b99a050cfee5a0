"""glTF 2.0, one .glb file or a .gltf with buffers, by the library `trimesh`."""

from __future__ import annotations

import base64
import binascii
import io
import struct
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from armillary.formats.diagnostic import Place
from armillary.formats.mesh.faults import library, refusal
from armillary.formats.mesh.surface import Surface

__all__ = ["read_glb", "read_gltf"]

Open = Callable[[str, Place], bytes]
T = TypeVar("T")

TRIANGLES, STRIP = 4, 5
POINTS: Final = ((5126, "VEC3"),)
INDICES: Final = tuple((kind, "SCALAR") for kind in (5121, 5123, 5125))
MOST_NODES: Final = 20_000
LARGEST_DOCUMENT: Final = 16 << 20
START: Final = 12
HEAD: Final = 8

# What is handed to the library: these fields and no others. An index below 0 would
# count from the end there.
Index = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]


class _Part(Struct, rename="camel", omit_defaults=True):
    """A part of a document."""


class _Buffer(_Part):
    byte_length: Index
    uri: str | None = None


class _View(_Part):
    buffer: Index
    byte_length: Index
    byte_offset: Index = 0
    byte_stride: Positive | None = None


class _Accessor(_Part):
    component_type: int
    count: Positive
    type: str
    buffer_view: Index | None = None
    byte_offset: Index = 0
    sparse: Any = None


class _Primitive(_Part):
    attributes: dict[str, Index]
    indices: Index | None = None
    mode: int = TRIANGLES
    material: Index | None = None


class _Mesh(_Part):
    primitives: list[_Primitive]
    name: str = ""


class _Node(_Part):
    mesh: Index | None = None
    children: list[Index] = field(default_factory=list[int])
    matrix: Annotated[list[float], Meta(min_length=16, max_length=16)] | None = None
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


class _Scene(_Part):
    nodes: list[Index] = field(default_factory=list[int])


class _Roughness(_Part):
    base_color_factor: list[float] | None = None


class _Material(_Part):
    pbr_metallic_roughness: _Roughness = field(default_factory=_Roughness)


class _Document(_Part):
    scene: Index = 0
    scenes: list[_Scene] = field(default_factory=list[_Scene])
    nodes: list[_Node] = field(default_factory=list[_Node])
    meshes: list[_Mesh] = field(default_factory=list[_Mesh])
    materials: list[_Material] = field(default_factory=list[_Material])
    accessors: list[_Accessor] = field(default_factory=list[_Accessor])
    buffer_views: list[_View] = field(default_factory=list[_View])
    buffers: list[_Buffer] = field(default_factory=list[_Buffer])
    extensions_required: list[str] = field(default_factory=list[str])


def read_glb(data: bytes, surface: Surface, open_beside: Open) -> None:
    """Add the triangles of the scene of a GLB file [m], in its own axes.

    open_beside: Returns the bytes of another file.

    Raises:
        FormatError: The file is faulty, or needs what is not read.
    """
    place = Place(surface.path)
    if len(data) < START or data[:4] != b"glTF":
        raise refusal(place, "wrong-content", "a GLB file begins with 'glTF'")
    version, size = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise refusal(place, "wrong-version", f"glTF {version} is not read, only 2")
    if size != len(data):
        message = f"the file says it has {size} bytes, but has {len(data)}"
        raise refusal(place, "wrong-size", message)
    chunks: list[tuple[bytes, bytes]] = []
    at = START
    while at < len(data) and len(chunks) < 2:
        head, at = data[at : at + HEAD], at + HEAD
        size, left = int.from_bytes(head[:4], "little"), len(data) - at
        if size > left:
            message = f"a chunk says it has {size} bytes, but {left} are left"
            raise refusal(place, "wrong-size", message)
        chunks.append((head[4:], data[at : at + size]))
        at += size
    if not chunks or chunks[0][0] != b"JSON":
        raise refusal(place, "wrong-content", "the document does not come first")
    binary = dict(chunks[1:]).get(b"BIN\0")
    _read(chunks[0][1], surface, open_beside, binary)


def read_gltf(data: bytes, surface: Surface, open_beside: Open) -> None:
    """Add the triangles of the scene of a glTF file in text [m], in its own axes.

    open_beside: Returns the bytes of another file.

    Raises:
        FormatError: The file is faulty, or needs what is not read.
    """
    _read(data, surface, open_beside, None)


def _read(
    text: bytes, surface: Surface, open_beside: Open, binary: bytes | None
) -> None:
    """Read a document; `binary` is the chunk of bytes that a GLB file has."""
    place = Place(surface.path)
    if len(text) > LARGEST_DOCUMENT:
        message = f"the document has more than {LARGEST_DOCUMENT} bytes"
        raise refusal(place, "mesh-too-large", message)
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        message = f"the document is not glTF: {error}".removesuffix(".")
        raise refusal(place, "bad-document", message) from error
    colours, expected = _prepare(document, surface)
    buffers: dict[str, bytes] = {}
    for number, buffer in enumerate(document.buffers):
        own = binary if number == 0 else None
        buffers[str(number)] = _bytes(buffer, number, own, open_beside, place)
        buffer.uri = str(number)
    trimesh = library("trimesh", "glTF", place)
    try:
        scene = trimesh.load_scene(
            io.BytesIO(msgspec.json.encode(document)),
            file_type="gltf",
            resolver=buffers,
            process=False,
            skip_materials=True,
        )
        found = [scene.graph[node] for node in scene.graph.nodes_geometry]
    except Exception as error:  # whatever the library trips over
        message = f"the file cannot be read: {error!r}"
        raise refusal(place, "bad-document", message) from error
    for matrix, name in sorted(found, key=lambda each: int(each[1])):
        mesh = scene.geometry[name]
        expected[name] -= 1
        surface.add(
            np.asarray(mesh.vertices, np.float64),
            np.asarray(mesh.faces),
            matrix=np.asarray(matrix),
            colour=colours[name],
        )
    if any(expected.values()):
        raise refusal(place, "bad-document", "not all nodes of the scene could be read")


def _prepare(
    document: _Document, surface: Surface
) -> tuple[dict[str, list[float] | None], dict[str, int]]:
    """Check a document, and give each primitive a mesh and a name of its own.

    Returns:
        The colour of each mesh, and in how many nodes of the scene it is.
    """
    place = Place(surface.path)
    if document.extensions_required:
        needed = ", ".join(document.extensions_required)
        raise refusal(
            place,
            "unsupported-extension",
            f"the file cannot be read without {needed}",
            hint="Export it without compression and extensions.",
        )
    colours: dict[str, list[float] | None] = {}
    meshes: list[_Mesh] = []
    split: list[list[int]] = []
    for mesh in document.meshes:
        split.append([])
        for primitive in mesh.primitives:
            if primitive.mode < TRIANGLES or "POSITION" not in primitive.attributes:
                continue  # lines and points bound nothing
            name = str(len(meshes))
            colours[name] = _colour(document, primitive, place)
            primitive.attributes = {"POSITION": primitive.attributes["POSITION"]}
            primitive.material = None
            split[-1].append(len(meshes))
            meshes.append(_Mesh([primitive], name))
    used: set[int] = set()
    points, corners = 0, 0
    for mesh in meshes:
        (primitive,) = mesh.primitives
        position, indices = primitive.attributes["POSITION"], primitive.indices
        points += _count(document, position, POINTS, "points", place)
        used.add(position)
        if indices is not None:
            corners += _count(document, indices, INDICES, "indices", place)
            used.add(indices)
        surface.check_counts(points, corners // 3, place)
    # The library reads those, too, that nothing uses.
    document.accessors = [
        document.accessors[number if number in used else min(used)]
        for number in range(len(document.accessors) if used else 0)
    ]
    expected = dict.fromkeys(colours, 0)
    for number in _shown(document, place):
        node = document.nodes[number]
        if node.mesh is not None:
            parts = _entry(split, node.mesh, "mesh", place)
            start = len(document.nodes)
            document.nodes += [_Node(mesh=part) for part in parts]
            node.children += range(start, start + len(parts))
            node.mesh = None
            for part in parts:
                expected[str(part)] += 1
    document.meshes = meshes
    return colours, expected


def _count(
    document: _Document,
    number: int,
    kinds: tuple[tuple[int, str], ...],
    what: str,
    place: Place,
) -> int:
    """Return how many entries an accessor has, which must be of one of the kinds."""
    accessor = _entry(document.accessors, number, "accessor", place)
    if (accessor.component_type, accessor.type) not in kinds:
        message = f"accessor {number} does not hold {what}"
        raise refusal(place, "bad-accessor", message)
    if accessor.sparse is not None or accessor.buffer_view is None:
        message = f"accessor {number} is sparse or has no view, which is not read"
        raise refusal(place, "unsupported-accessor", message)
    return accessor.count


def _colour(
    document: _Document, primitive: _Primitive, place: Place
) -> list[float] | None:
    """Check the kind of a primitive, and return its colour."""
    if primitive.mode not in {TRIANGLES, STRIP}:
        raise refusal(
            place,
            "unsupported-element",
            f"primitives of mode {primitive.mode} are not read",
            hint="Export triangles.",
        )
    if primitive.material is None:
        return None
    material = _entry(document.materials, primitive.material, "material", place)
    return material.pbr_metallic_roughness.base_color_factor


def _shown(document: _Document, place: Place) -> list[int]:
    """Return the nodes of the scene, which make a tree."""
    if not document.scenes:
        children = {child for node in document.nodes for child in node.children}
        roots = [k for k in range(len(document.nodes)) if k not in children]
        document.scenes, document.scene = [_Scene(roots)], 0
    waiting = list(_entry(document.scenes, document.scene, "scene", place).nodes)
    seen: dict[int, None] = {}
    while waiting:
        number = waiting.pop()
        node = _entry(document.nodes, number, "node", place)
        if number in seen:
            message = f"node {number} has two parents; nodes make a tree"
            raise refusal(place, "not-a-tree", message)
        seen[number] = None
        if len(seen) > MOST_NODES:
            message = f"the scene has more than {MOST_NODES} nodes"
            raise refusal(place, "mesh-too-large", message)
        if not 0.0 < np.linalg.norm(node.rotation) < np.inf:
            message = f"the rotation of node {number} has no length"
            raise refusal(place, "bad-number", message)
        waiting.extend(node.children)
    return list(seen)


def _entry(entries: list[T], number: int, what: str, place: Place) -> T:
    if number >= len(entries):
        message = f"there is no {what} {number}; there are {len(entries)}"
        raise refusal(place, "bad-index", message)
    return entries[number]


def _bytes(
    buffer: _Buffer, number: int, binary: bytes | None, open_beside: Open, place: Place
) -> bytes:
    """Return the bytes of a buffer: in the file, in text, or in another file."""
    data = binary
    if buffer.uri is not None and buffer.uri.startswith("data:"):
        head, _, body = buffer.uri.partition(",")
        try:
            if not head.endswith(";base64"):
                raise binascii.Error("it is not in base64")
            data = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError) as error:
            message = f"the text of buffer {number} cannot be read: {error}"
            raise refusal(place, "bad-document", message) from error
    elif buffer.uri is not None:
        data = open_beside(unquote(buffer.uri), place)
    if data is None or len(data) < buffer.byte_length:
        raise refusal(
            place,
            "wrong-size",
            f"buffer {number} says it has {buffer.byte_length} bytes, but has "
            f"{len(data or b'')}",
        )
    return data
