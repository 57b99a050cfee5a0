"""glTF 2.0: one .glb file, or a .gltf with buffers."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, field

from armillary.errors import FormatError
from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.images import Image, no_image
from armillary.formats.mesh.surface import MeshSurface
from armillary.limits import GLTF_DOCUMENT, MESH_NODES
from armillary.model.shape import LARGEST
from armillary.spatial.pose import Pose

__all__ = ["read_glb", "read_gltf"]

Open = Callable[[str, Place], bytes]
T = TypeVar("T")

TRIANGLES, STRIP = 4, 5
# What accessors hold: the kind of a number by its code, and how many are in a row.
KINDS: Final = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS: Final = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}
POINTS: Final = ((5126, "VEC3"),)
INDICES: Final = tuple((kind, "SCALAR") for kind in (5121, 5123, 5125))
PLACES: Final = ((5126, "VEC2"),)
START: Final = 12
HEAD: Final = 8

Index = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]
Stride = Annotated[int, Meta(ge=1, le=252)]  # bytes; the most of the specification


# The parts of a document that are read.


class _Json(Struct, rename="camel"):
    """An object of a document."""


class _Buffer(_Json):
    byte_length: Index
    uri: str | None = None


class _View(_Json):
    buffer: Index
    byte_length: Index
    byte_offset: Index = 0
    byte_stride: Stride | None = None


class _Accessor(_Json):
    component_type: int
    count: Positive
    type: str
    buffer_view: Index | None = None
    byte_offset: Index = 0
    sparse: Any = None


class _Primitive(_Json):
    attributes: dict[str, Index]
    indices: Index | None = None
    mode: int = TRIANGLES
    material: Index | None = None


class _Mesh(_Json):
    primitives: list[_Primitive]
    name: str = ""


class _Node(_Json):
    name: str = ""
    mesh: Index | None = None
    children: list[Index] = field(default_factory=list[int])
    matrix: Annotated[list[float], Meta(min_length=16, max_length=16)] | None = None
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


class _ImageSource(_Json):
    uri: str | None = None
    buffer_view: Index | None = None


class _Texture(_Json):
    source: Index | None = None


class _TextureInfo(_Json):
    index: Index
    tex_coord: Index = 0
    extensions: Any = None


class _Roots(_Json):
    nodes: list[Index] = field(default_factory=list[int])


class _Roughness(_Json):
    base_color_factor: list[float] | None = None
    base_color_texture: _TextureInfo | None = None


class _Material(_Json):
    pbr_metallic_roughness: _Roughness = field(default_factory=_Roughness)


class _Document(_Json):
    scene: Index = 0
    scenes: list[_Roots] = field(default_factory=list[_Roots])
    nodes: list[_Node] = field(default_factory=list[_Node])
    meshes: list[_Mesh] = field(default_factory=list[_Mesh])
    materials: list[_Material] = field(default_factory=list[_Material])
    textures: list[_Texture] = field(default_factory=list[_Texture])
    images: list[_ImageSource] = field(default_factory=list[_ImageSource])
    accessors: list[_Accessor] = field(default_factory=list[_Accessor])
    buffer_views: list[_View] = field(default_factory=list[_View])
    buffers: list[_Buffer] = field(default_factory=list[_Buffer])
    extensions_required: list[str] = field(default_factory=list[str])


class _Triangles(NamedTuple):
    """A primitive whose accessors have been checked.

    Attributes:
        position: The accessor of its points.
        indices: That of its corners; without one the points are the corners.
        is_strip: Whether each corner makes a triangle with the two before it.
        points, faces: How many there are; the faces at most.
        colour: Of its material.
        source: The number of its image, or why there is none.
        uv: The accessor of places in the image.
    """

    position: _Accessor
    indices: _Accessor | None
    is_strip: bool
    points: int
    faces: int
    colour: list[float] | None
    source: int | str | None
    uv: _Accessor | None


def read_glb(data: bytes, surface: MeshSurface, open_beside: Open) -> None:
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
    _GltfScene(chunks[0][1], surface, open_beside, binary).add_to_surface()


def read_gltf(data: bytes, surface: MeshSurface, open_beside: Open) -> None:
    """Add the triangles of the scene of a glTF file in text [m], in its own axes.

    open_beside: Returns the bytes of another file.

    Raises:
        FormatError: The file is faulty, or needs what is not read.
    """
    _GltfScene(data, surface, open_beside).add_to_surface()


class _GltfScene:
    """The scene of a document, read from its buffers with NumPy.

    Every index, count and size is checked before an array is made of it.
    """

    def __init__(
        self,
        text: bytes,
        surface: MeshSurface,
        open_beside: Open,
        binary: bytes | None = None,
    ) -> None:
        """Read the document.

        text: The document.
        binary: The chunk of bytes that a GLB file has.
        """
        self._place = Place(surface.path)
        self._surface = surface
        self._open = open_beside
        surface.budget.check(GLTF_DOCUMENT, len(text), self._place)
        try:
            self._document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            message = f"the document is not glTF: {error}".removesuffix(".")
            raise self._fault("bad-document", message) from error
        if self._document.extensions_required:
            needed = ", ".join(self._document.extensions_required)
            message = f"the file cannot be read without {needed}"
            hint = "Export it without compression and extensions."
            raise self._fault("unsupported-extension", message, hint)
        self._buffers = [
            self._bytes(buffer, number, None if number else binary)
            for number, buffer in enumerate(self._document.buffers)
        ]

    def _fault(self, code: str, message: str, hint: str = "") -> FormatError:
        return fault(self._place, code, message, hint=hint)

    def add_to_surface(self) -> None:
        """Add the triangles of the scene to the surface.

        Raises:
            FormatError: The document is faulty, or needs what is not read.
        """
        document = self._document
        meshes = [list(self._triangles_of(mesh)) for mesh in document.meshes]
        shown: list[list[npt.NDArray[np.float64]]] = [[] for _ in meshes]
        # What all nodes show together is counted before anything is read: they may
        # share a large mesh.
        parts, points, faces = 0, 0, 0
        sizes = [
            (len(mesh), sum(p.points for p in mesh), sum(p.faces for p in mesh))
            for mesh in meshes
        ]
        for number, matrix in self._shown():
            size = self._entry(sizes, number, "mesh")
            parts, points, faces = parts + size[0], points + size[1], faces + size[2]
            self._surface.check_counts(points, faces, self._place, parts=parts)
            shown[number].append(matrix)
        images: dict[int | str | None, Image | None] = {None: None}
        for mesh, matrices in zip(meshes, shown, strict=True):
            for primitive in mesh if matrices else ():
                vertices = self._rows(primitive.position).astype(np.float64)
                corners = self._corners(primitive)
                source = primitive.source
                if source not in images:
                    images[source] = self._image(source)
                uv = None if primitive.uv is None else self._rows(primitive.uv)
                for matrix in matrices:
                    self._surface.add(
                        vertices,
                        corners,
                        matrix=matrix,
                        colour=primitive.colour,
                        image=images[source],
                        uv=uv,
                    )

    # Meshes.

    def _triangles_of(self, mesh: _Mesh) -> Iterator[_Triangles]:
        """Yield the primitives of a mesh that are triangles."""
        for primitive in mesh.primitives:
            position = primitive.attributes.get("POSITION")
            if primitive.mode < TRIANGLES or position is None:
                continue  # lines and points bound nothing
            if primitive.mode not in {TRIANGLES, STRIP}:
                message = f"primitives of mode {primitive.mode} are not read"
                raise self._fault("unsupported-element", message, "Export triangles.")
            points = self._accessor(position, POINTS, "points")
            indices = None
            if primitive.indices is not None:
                indices = self._accessor(primitive.indices, INDICES, "indices")
            corners = (indices or points).count
            is_strip = primitive.mode == STRIP
            yield _Triangles(
                points,
                indices,
                is_strip,
                points.count,
                max(0, corners - 2) if is_strip else corners // 3,
                *self._look(primitive, points.count),
            )

    def _accessor(
        self, number: int, kinds: tuple[tuple[int, str], ...], what: str
    ) -> _Accessor:
        """Return an accessor, which must be of one of the kinds."""
        accessor = self._entry(self._document.accessors, number, "accessor")
        if (accessor.component_type, accessor.type) not in kinds:
            message = f"accessor {number} does not hold {what}"
            raise self._fault("bad-accessor", message)
        if accessor.sparse is not None or accessor.buffer_view is None:
            message = f"accessor {number} is sparse or has no view, which is not read"
            raise self._fault("unsupported-accessor", message)
        return accessor

    def _rows(self, accessor: _Accessor) -> npt.NDArray[Any]:
        """Return the numbers of an accessor, shape (count, width), without a copy.

        Row k starts `byteStride` bytes behind row k - 1, or where that one ends.
        """
        number = accessor.buffer_view or 0
        view = self._entry(self._document.buffer_views, number, "view")
        data = self._entry(self._buffers, view.buffer, "buffer")
        kind = np.dtype(KINDS[accessor.component_type])
        width = WIDTHS[accessor.type]
        stride = view.byte_stride or width * kind.itemsize
        size = (accessor.count - 1) * stride + width * kind.itemsize
        if (
            accessor.byte_offset + size > view.byte_length
            or view.byte_offset + view.byte_length > len(data)
        ):
            message = (
                f"{accessor.count} rows do not fit into view {number}, or the view "
                f"not into buffer {view.buffer}"
            )
            raise self._fault("wrong-size", message)
        start = view.byte_offset + accessor.byte_offset
        shape, strides = (accessor.count, width), (stride, kind.itemsize)
        return np.ndarray(shape, kind, data, start, strides)

    def _corners(self, primitive: _Triangles) -> npt.NDArray[np.int64]:
        """Return the corners of triangles, shape (m, 3)."""
        corners = np.arange(primitive.points)
        if primitive.indices is not None:
            corners = self._rows(primitive.indices).ravel().astype(np.int64)
        if not primitive.is_strip:
            if len(corners) % 3:
                message = f"{len(corners)} corners do not make triangles"
                raise self._fault("wrong-count", message)
            return corners.reshape(-1, 3)
        if len(corners) < 3:
            return np.zeros((0, 3), np.int64)
        # Every second triangle of a strip turns the other way round.
        faces = np.lib.stride_tricks.sliding_window_view(corners, 3).copy()
        faces[1::2] = faces[1::2, ::-1]
        repeats = (faces == np.roll(faces, 1, axis=1)).any(axis=1)
        return faces[~repeats]  # those without area join parts of a strip

    # Colours and images, of which what is broken loses no triangle.

    def _look(
        self, primitive: _Primitive, points: int
    ) -> tuple[list[float] | None, int | str | None, _Accessor | None]:
        """Return the colour, the image or why there is none, and places in it."""
        if primitive.material is None:
            return None, None, None
        material = self._entry(self._document.materials, primitive.material, "material")
        colour = material.pbr_metallic_roughness.base_color_factor
        info = material.pbr_metallic_roughness.base_color_texture
        if info is None:
            return colour, None, None
        number = primitive.attributes.get(f"TEXCOORD_{info.tex_coord}", -1)
        uv = None
        if 0 <= number < len(self._document.accessors):
            given = self._document.accessors[number]
            is_plain = given.sparse is None and given.buffer_view is not None
            kind = given.component_type, given.type
            uv = (
                given if is_plain and kind in PLACES and given.count == points else None
            )
        return colour, self._source(info), uv

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

    def _image(self, source: int | str | None) -> Image:
        """Return an image by its number, or by the reason why there is none."""
        if not isinstance(source, int):
            return no_image(source or "", self._place)
        place, image = self._place, self._document.images[source]
        what, uri, number = f"image {source}", image.uri, image.buffer_view
        if uri is not None:
            return Image(lambda: _bytes_at(uri, what, place, self._open), place)
        views = self._document.buffer_views
        view = None if number is None or number >= len(views) else views[number]
        if view is None or view.buffer >= len(self._buffers):
            return no_image(f"{what} has no bytes", place)
        data = self._buffers[view.buffer][view.byte_offset :][: view.byte_length]
        return Image(lambda: data, place)

    # Nodes.

    def _shown(self) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield each mesh that the scene shows, and its pose and scale (4, 4).

        The nodes of the scene must make a tree.
        """
        document = self._document
        scenes, number = document.scenes, document.scene
        if not scenes:
            children = {child for node in document.nodes for child in node.children}
            roots = [k for k in range(len(document.nodes)) if k not in children]
            scenes, number = [_Roots(roots)], 0
        roots = self._entry(scenes, number, "scene").nodes
        waiting = [(root, np.eye(4)) for root in roots]
        seen: set[int] = set()
        while waiting:
            number, above = waiting.pop()
            node = self._entry(document.nodes, number, "node")
            if number in seen:
                message = f"node {number} has two parents; nodes make a tree"
                raise self._fault("not-a-tree", message)
            seen.add(number)
            self._surface.budget.check(MESH_NODES, len(seen), self._place)
            matrix = above @ self._matrix(node, number)
            if not (np.abs(matrix) <= LARGEST).all():
                message = f"the pose of node {number} is not finite, or too far away"
                raise self._fault("bad-number", message)
            if node.mesh is not None:
                shown = self._entry(document.meshes, node.mesh, "mesh")
                if self._surface.takes(node.name or shown.name):
                    yield node.mesh, matrix
            waiting += [(child, matrix) for child in node.children]

    def _matrix(self, node: _Node, number: int) -> npt.NDArray[np.float64]:
        """Return the pose and scale of a node in its parent, shape (4, 4)."""
        length = np.linalg.norm(node.rotation)
        if not 0.0 < length < np.inf:
            message = f"the rotation of node {number} has no length"
            raise self._fault("bad-number", message)
        if node.matrix is not None:
            return np.reshape(node.matrix, (4, 4)).T  # column by column
        x, y, z, w = node.rotation
        pose = Pose.from_quaternion((w, x, y, z), node.translation).matrix()
        return pose @ np.diag([*node.scale, 1.0])

    def _entry(self, entries: list[T], number: int, what: str) -> T:
        if number >= len(entries):
            message = f"there is no {what} {number}; there are {len(entries)}"
            raise self._fault("bad-index", message)
        return entries[number]

    def _bytes(self, buffer: _Buffer, number: int, binary: bytes | None) -> bytes:
        """Return the bytes of a buffer: in the file, in text, or in another file."""
        data = binary
        if buffer.uri is not None:
            data = _bytes_at(buffer.uri, f"buffer {number}", self._place, self._open)
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
