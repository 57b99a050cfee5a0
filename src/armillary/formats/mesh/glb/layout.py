"""What of a glTF document tells where triangles are."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

__all__ = [
    "Accessor",
    "Buffer",
    "Document",
    "Mesh",
    "Node",
    "Primitive",
    "Scene",
    "View",
]

Three = tuple[float, float, float]
Four = tuple[float, float, float, float]


class Buffer(Struct, rename="camel"):
    """Bytes: those of the file itself where there is no reference."""

    byte_length: int
    uri: str | None = None


class View(Struct, rename="camel"):
    """A part of a buffer."""

    buffer: int
    byte_length: int
    byte_offset: int = 0
    byte_stride: int | None = None


class Accessor(Struct, rename="camel"):
    """Numbers in a view."""

    component_type: int
    count: int
    type: str
    buffer_view: int | None = None
    byte_offset: int = 0
    sparse: Any = None


class Primitive(Struct, rename="camel"):
    """Triangles, or lines or points."""

    attributes: dict[str, int]
    indices: int | None = None
    mode: int = 4


class Mesh(Struct, rename="camel"):
    """What a node shows."""

    primitives: list[Primitive]


class Node(Struct, rename="camel"):
    """A frame: its pose in its parent, what it shows, what hangs on it."""

    mesh: int | None = None
    children: list[int] = msgspec.field(default_factory=list[int])
    matrix: list[float] | None = None
    translation: Three = (0.0, 0.0, 0.0)
    rotation: Four = (0.0, 0.0, 0.0, 1.0)
    scale: Three = (1.0, 1.0, 1.0)


class Scene(Struct, rename="camel"):
    """The nodes that are shown together."""

    nodes: list[int] = msgspec.field(default_factory=list[int])


class Document(Struct, rename="camel"):
    """A glTF document."""

    scene: int = 0
    scenes: list[Scene] = msgspec.field(default_factory=list[Scene])
    nodes: list[Node] = msgspec.field(default_factory=list[Node])
    meshes: list[Mesh] = msgspec.field(default_factory=list[Mesh])
    accessors: list[Accessor] = msgspec.field(default_factory=list[Accessor])
    buffer_views: list[View] = msgspec.field(default_factory=list[View])
    buffers: list[Buffer] = msgspec.field(default_factory=list[Buffer])
    extensions_required: list[str] = msgspec.field(default_factory=list[str])
