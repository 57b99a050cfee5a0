"""glTF 2.0, one .glb file or a .gltf with buffers, by the library `trimesh`."""

from __future__ import annotations

import base64
import binascii
import io
import struct
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from armillary.errors import FormatError
from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.images import Image, no_image
from armillary.formats.mesh.library import library
from armillary.formats.mesh.surface import Surface

__all__ = ["read_glb", "read_gltf"]

Open = Callable[[str, Place], bytes]
T = TypeVar("T")

TRIANGLES, STRIP = 4, 5
POINTS: Final = ((5126, "VEC3"),)
INDICES: Final = tuple((kind, "SCALAR") for kind in (5121, 5123, 5125))
PLACES: Final = ((5126, "VEC2"),)
UV: Final = "_UV"  # the library keeps attributes that begin with _
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


class _Image(_Part):
    uri: str | None = None
    buffer_view: Index | None = None


class _Texture(_Part):
    source: Index | None = None


class _TextureInfo(_Part):
    index: Index
    tex_coord: Index = 0
    extensions: Any = None


class _Scene(_Part):
    nodes: list[Index] = field(default_factory=list[int])


class _Roughness(_Part):
    base_color_factor: list[float] | None = None
    base_color_texture: _TextureInfo | None = None


class _Material(_Part):
    pbr_metallic_roughness: _Roughness = field(default_factory=_Roughness)


class _Look(NamedTuple):
    """What is on a primitive.

    Attributes:
        colour: Of its material.
        source: The number of its image, or why there is none.
        uv: The accessor of places in the image.
    """

    colour: list[float] | None
    source: int | str | None = None
    uv: int | None = None


class _Document(_Part):
    scene: Index = 0
    scenes: list[_Scene] = field(default_factory=list[_Scene])
    nodes: list[_Node] = field(default_factory=list[_Node])
    meshes: list[_Mesh] = field(default_factory=list[_Mesh])
    materials: list[_Material] = field(default_factory=list[_Material])
    textures: list[_Texture] = field(default_factory=list[_Texture])
    images: list[_Image] = field(default_factory=list[_Image])
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
        raise fault(place, "wrong-content", "a GLB file begins with 'glTF'")
    version, size = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise fault(place, "wrong-version", f"glTF {version} is not read, only 2")
    if size != len(data):
        message = f"the file says it has {size} bytes, but has {len(data)}"
        raise fault(place, "wrong-size", message)
    chunks: list[tuple[bytes, bytes]] = []
    at = START
    while at < len(data) and len(chunks) < 2:
        head, at = data[at : at + HEAD], at + HEAD
        size, left = int.from_bytes(head[:4], "little"), len(data) - at
        if size > left:
            message = f"a chunk says it has {size} bytes, but {left} are left"
            raise fault(place, "wrong-size", message)
        chunks.append((head[4:], data[at : at + size]))
        at += size
    if not chunks or chunks[0][0] != b"JSON":
        raise fault(place, "wrong-content", "the document does not come first")
    binary = dict(chunks[1:]).get(b"BIN\0")
    _Guard(chunks[0][1], surface).add_to_surface(open_beside, binary)


def read_gltf(data: bytes, surface: Surface, open_beside: Open) -> None:
    """Add the triangles of the scene of a glTF file in text [m], in its own axes.

    open_beside: Returns the bytes of another file.

    Raises:
        FormatError: The file is faulty, or needs what is not read.
    """
    _Guard(data, surface).add_to_surface(open_beside, None)


class _Guard:
    """Check what `trimesh` does not, and leave out what it need not see.

    text: A document.
    """

    def __init__(self, text: bytes, surface: Surface) -> None:
        self._place = Place(surface.path)
        self._surface = surface
        if len(text) > LARGEST_DOCUMENT:
            message = f"the document has more than {LARGEST_DOCUMENT} bytes"
            raise self._fault("mesh-too-large", message)
        try:
            self._document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            message = f"the document is not glTF: {error}".removesuffix(".")
            raise self._fault("bad-document", message) from error

    def _fault(self, code: str, message: str, hint: str = "") -> FormatError:
        return fault(self._place, code, message, hint=hint)

    def add_to_surface(self, open_beside: Open, binary: bytes | None) -> None:
        """Add the triangles of the scene.

        binary: The chunk of bytes that a GLB file has.
        """
        looks, split = self._split_meshes()
        expected = self._split_nodes(split)
        buffers: dict[str, bytes] = {}
        for number, buffer in enumerate(self._document.buffers):
            own = binary if number == 0 else None
            buffers[str(number)] = self._bytes(buffer, number, own, open_beside)
            buffer.uri = str(number)
        sources = {look.source for look in looks.values()} - {None}
        images = {each: self._image(each, buffers, open_beside) for each in sources}
        document = self._document
        document.materials, document.textures, document.images = [], [], []
        trimesh = library("trimesh", "glTF", self._place)
        try:
            scene = trimesh.load_scene(
                io.BytesIO(msgspec.json.encode(self._document)),
                file_type="gltf",
                resolver=buffers,
                process=False,
                skip_materials=True,
            )
            found = [scene.graph[node] for node in scene.graph.nodes_geometry]
        except Exception as error:  # whatever the library trips over
            why = f"{type(error).__name__}: {error}".removesuffix(": ")
            if isinstance(error, AssertionError):
                why = "its parts contradict each other"
            message = f"the file cannot be read: {why}"
            raise self._fault("bad-document", message) from error
        for matrix, name in sorted(found, key=lambda each: int(each[1])):
            mesh = scene.geometry[name]
            expected[name] -= 1
            self._surface.add(
                np.asarray(mesh.vertices, np.float64),
                np.asarray(mesh.faces),
                matrix=np.asarray(matrix),
                colour=looks[name].colour,
                image=images.get(looks[name].source),
                uv=mesh.vertex_attributes.get(UV),
            )
        if any(expected.values()):
            message = "not all nodes of the scene could be read"
            raise self._fault("bad-document", message)

    def _split_meshes(
        self,
    ) -> tuple[dict[str, _Look], list[list[int]]]:
        """Give each primitive a mesh and a name of its own.

        Returns:
            The look of each, and the new meshes in place of each old one.
        """
        document = self._document
        if document.extensions_required:
            needed = ", ".join(document.extensions_required)
            message = f"the file cannot be read without {needed}"
            hint = "Export it without compression and extensions."
            raise self._fault("unsupported-extension", message, hint)
        looks: dict[str, _Look] = {}
        meshes: list[_Mesh] = []
        split: list[list[int]] = []
        used: set[int] = set()
        points, corners = 0, 0
        for mesh in document.meshes:
            split.append([])
            for primitive in mesh.primitives:
                position = primitive.attributes.get("POSITION")
                if primitive.mode < TRIANGLES or position is None:
                    continue  # lines and points bound nothing
                name = str(len(meshes))
                looks[name] = look = self._look(primitive)
                primitive.attributes = {"POSITION": position}
                if self._holds_uv(look.uv) and look.uv is not None:
                    primitive.attributes[UV] = look.uv
                    used.add(look.uv)
                primitive.material = None
                split[-1].append(len(meshes))
                meshes.append(_Mesh([primitive], name))
                points += self._count(position, POINTS, "points")
                used.add(position)
                if primitive.indices is not None:
                    corners += self._count(primitive.indices, INDICES, "indices")
                    used.add(primitive.indices)
                self._surface.check_counts(points, corners // 3, self._place)
        # The library reads those, too, that nothing uses.
        document.accessors = [
            document.accessors[number if number in used else min(used)]
            for number in range(len(document.accessors) if used else 0)
        ]
        document.meshes = meshes
        return looks, split

    def _split_nodes(self, split: list[list[int]]) -> Counter[str]:
        """Give each mesh of the scene nodes of its own; return their number.

        What all nodes show together is counted first: they may share a large mesh.
        """
        expected: Counter[str] = Counter()
        document = self._document
        shown = self._shown()
        sizes = [self._size_of(parts) for parts in split]
        total = [0, 0, 0]
        for number in shown:
            mesh = document.nodes[number].mesh
            if mesh is not None:
                size = self._entry(sizes, mesh, "mesh")
                total = [n + more for n, more in zip(total, size, strict=True)]
        parts, points, corners = total
        self._surface.check_counts(points, corners // 3, self._place, parts=parts)
        for number in shown:
            node = document.nodes[number]
            if node.mesh is not None:
                parts = self._entry(split, node.mesh, "mesh")
                start = len(document.nodes)
                document.nodes += [_Node(mesh=part) for part in parts]
                node.children += range(start, start + len(parts))
                node.mesh = None
                expected.update(map(str, parts))
        return expected

    def _size_of(self, parts: list[int]) -> tuple[int, int, int]:
        """Return the numbers of parts, of their points and of their corners."""
        document = self._document
        primitives = [document.meshes[part].primitives[0] for part in parts]
        points = [document.accessors[p.attributes["POSITION"]] for p in primitives]
        indices = [p.indices for p in primitives if p.indices is not None]
        corners = [document.accessors[number] for number in indices]
        return (
            len(parts),
            sum(each.count for each in points),
            sum(each.count for each in corners),
        )

    def _count(self, number: int, kinds: tuple[tuple[int, str], ...], what: str) -> int:
        """Return the length of an accessor, which must be of one of the kinds."""
        accessor = self._entry(self._document.accessors, number, "accessor")
        if (accessor.component_type, accessor.type) not in kinds:
            message = f"accessor {number} does not hold {what}"
            raise self._fault("bad-accessor", message)
        if accessor.sparse is not None or accessor.buffer_view is None:
            message = f"accessor {number} is sparse or has no view, which is not read"
            raise self._fault("unsupported-accessor", message)
        return accessor.count

    def _look(self, primitive: _Primitive) -> _Look:
        """Check the kind of a primitive, and return its colour and image."""
        if primitive.mode not in {TRIANGLES, STRIP}:
            message = f"primitives of mode {primitive.mode} are not read"
            raise self._fault("unsupported-element", message, "Export triangles.")
        if primitive.material is None:
            return _Look(None)
        material = self._entry(self._document.materials, primitive.material, "material")
        colour = material.pbr_metallic_roughness.base_color_factor
        info = material.pbr_metallic_roughness.base_color_texture
        if info is None:
            return _Look(colour)
        uv = primitive.attributes.get(f"TEXCOORD_{info.tex_coord}")
        return _Look(colour, self._source(info), uv)

    def _source(self, info: _TextureInfo) -> int | str:
        """Return the number of an image, or why there is none: no triangle is lost."""
        if info.extensions:
            return f"it needs {', '.join(sorted(info.extensions))}"
        textures, images = self._document.textures, self._document.images
        if info.index >= len(textures):
            return f"there is no texture {info.index}; there are {len(textures)}"
        source = textures[info.index].source
        if source is None or source >= len(images):
            return f"texture {info.index} has no image"
        return source

    def _holds_uv(self, number: int | None) -> bool:
        """Return whether an accessor holds places in an image, as floats."""
        if number is None or number >= len(self._document.accessors):
            return False
        found = self._document.accessors[number]
        is_plain = found.sparse is None and found.buffer_view is not None
        return is_plain and (found.component_type, found.type) in PLACES

    def _image(
        self, source: int | str | None, buffers: dict[str, bytes], open_beside: Open
    ) -> Image:
        """Return an image by its number, or by the reason why there is none."""
        if not isinstance(source, int):
            return no_image(source or "", self._place)
        place, image = self._place, self._document.images[source]
        what, uri, number = f"image {source}", image.uri, image.buffer_view
        if uri is not None:
            return Image(lambda: _bytes_at(uri, what, place, open_beside), place)
        views = self._document.buffer_views
        if number is None or number >= len(views):
            return no_image(f"{what} has no bytes", place)
        view = views[number]
        data = buffers.get(str(view.buffer), b"")[view.byte_offset :]
        data = data[: view.byte_length]
        return Image(lambda: data, place)

    def _shown(self) -> list[int]:
        """Return the nodes of the scene, which make a tree."""
        document = self._document
        if not document.scenes:
            children = {child for node in document.nodes for child in node.children}
            roots = [k for k in range(len(document.nodes)) if k not in children]
            document.scenes, document.scene = [_Scene(roots)], 0
        waiting = list(self._entry(document.scenes, document.scene, "scene").nodes)
        seen: dict[int, None] = {}
        while waiting:
            number = waiting.pop()
            node = self._entry(document.nodes, number, "node")
            if number in seen:
                message = f"node {number} has two parents; nodes make a tree"
                raise self._fault("not-a-tree", message)
            seen[number] = None
            if len(seen) > MOST_NODES:
                message = f"the scene has more than {MOST_NODES} nodes"
                raise self._fault("mesh-too-large", message)
            if not 0.0 < np.linalg.norm(node.rotation) < np.inf:
                message = f"the rotation of node {number} has no length"
                raise self._fault("bad-number", message)
            waiting.extend(node.children)
        return list(seen)

    def _entry(self, entries: list[T], number: int, what: str) -> T:
        if number >= len(entries):
            message = f"there is no {what} {number}; there are {len(entries)}"
            raise self._fault("bad-index", message)
        return entries[number]

    def _bytes(
        self, buffer: _Buffer, number: int, binary: bytes | None, open_beside: Open
    ) -> bytes:
        """Return the bytes of a buffer: in the file, in text, or in another file."""
        data = binary
        if buffer.uri is not None:
            data = _bytes_at(buffer.uri, f"buffer {number}", self._place, open_beside)
        size = len(data or b"")
        if data is None or size < buffer.byte_length:
            message = (
                f"buffer {number} says it has {buffer.byte_length} bytes, but has "
                f"{size}"
            )
            raise self._fault("wrong-size", message)
        return data


def _bytes_at(uri: str, what: str, place: Place, open_beside: Open) -> bytes:
    """Return bytes that are in text, or in another file.

    what: Whose they are, for messages.
    """
    if not uri.startswith("data:"):
        return open_beside(unquote(uri), place)
    head, _, body = uri.partition(",")
    try:
        if not head.endswith(";base64"):
            raise binascii.Error("it is not in base64")
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        message = f"the text of {what} cannot be read: {error}"
        raise fault(place, "bad-document", message) from error
