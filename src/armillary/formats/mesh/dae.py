"""COLLADA, as far as meshes go: polygons of a scene, and their colours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.images import no_image
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.xml import Element, parse
from armillary.limits import COLLADA_ELEMENTS, MESH_DEPTH, MESH_NODES
from armillary.model.shape import LARGEST
from armillary.spatial.rotation import about_axis

__all__ = ["read_dae"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

POLYGONS: Final = ("triangles", "polylist", "polygons", "tristrips", "trifans")
TRANSFORMS: Final = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}
REFUSED: Final = ("ph", "instance_controller", "lookat", "skew")
SHADERS: Final = ("lambert", "phong", "blinn", "constant")
FLOATS: Final = re.compile(r"[-+.0-9eE\s]*", re.ASCII)
INDICES: Final = re.compile(r"(?:\s|(?<!\d)\d{1,9}(?!\d))*+", re.ASCII)


def read_dae(data: bytes, surface: MeshSurface) -> None:
    """Add the polygons of the scene of a COLLADA file.

    Lengths become metres by the file's `<unit>`. Its `<up_axis>` is not turned, as ROS
    does not turn it either.

    Raises:
        FormatError: The file is faulty, or needs what is not read.
    """
    root = parse(
        data,
        surface.path,
        budget=surface.budget,
        elements=COLLADA_ELEMENTS,
        depth=MESH_DEPTH,
    )
    if root.name != "COLLADA":
        message = f"{root.label} is not the root of COLLADA"
        raise fault(root.place, "wrong-content", message)
    _ColladaScene(root, surface).add_to_surface()


class _Polygons(NamedTuple):
    """What one element of polygons adds to a surface, see `MeshSurface.add`."""

    vertices: Array
    corners: Indices
    sizes: Indices
    material: str | None


class _ColladaScene:
    """The scene of a document; elements refer to each other by their ids.

    root: Of the document.
    """

    def __init__(self, root: Element, surface: MeshSurface) -> None:
        self._root = root
        self._surface = surface
        self._by_id: dict[str, Element] = {}
        for element in root.walk():
            self._by_id.setdefault(element.attributes.get("id", ""), element)
        self._sizes: dict[int, int] = {}
        self._known: dict[int, list[_Polygons]] = {}
        self._textured: set[str | None] = set()  # symbols of materials with an image
        self._colours = self._all_colours(root)

    def add_to_surface(self) -> None:
        """Add the polygons that the scene shows.

        Raises:
            FormatError: The document is faulty, or needs what is not read.
        """
        root, place = self._root, Place(self._surface.path)
        image = no_image("images of COLLADA are not read", place)
        scenes = [
            self._find(entry, "url", "visual_scene")
            for entry in _below(root, "scene", "instance_visual_scene")
        ] or list(_below(root, "library_visual_scenes", "visual_scene"))
        for scene in scenes:
            self._count_nodes(scene)  # before any is followed
        metres = np.diag([*[_metres(root)] * 3, 1.0])
        for scene in scenes:
            for geometry, matrix, name in self._shown(scene, metres, ""):
                if not self._surface.takes(name):
                    continue
                if not (np.abs(matrix) <= LARGEST).all():
                    message = "the pose of a node is not finite, or too far away"
                    raise fault(geometry.place, "bad-number", message)
                for polygons in self._polygons_of(geometry):
                    symbol = polygons.material
                    self._surface.add(
                        polygons.vertices,
                        polygons.corners,
                        polygons.sizes,
                        matrix=matrix,
                        colour=self._colours.get(symbol),
                        image=image if symbol in self._textured else None,
                    )

    # Nodes.

    def _shown(
        self, node: Element, above: Array, name: str
    ) -> Iterator[tuple[Element, Array, str]]:
        """Yield the geometries in a node, and the pose and scale of each, (4, 4).

        With each comes the name of the nearest node that has one, by which SDF names
        parts, too.

        name: Of the node above.
        """
        if node.name == "node":
            named = node.attributes
            name = named.get("name", "") or named.get("id", "") or name
        # Transforms of a node are multiplied in their order, and come before what it
        # shows, wherever they are.
        matrix = above
        for child in node.children:
            if child.name in TRANSFORMS:
                matrix = matrix @ _matrix(child)
        for child in node.children:
            match child.name:
                case "node":
                    yield from self._shown(child, matrix, name)
                case "instance_node":
                    there = self._find(child, "url", "node")
                    yield from self._shown(there, matrix, name)
                case "instance_geometry":
                    yield self._find(child, "url", "geometry"), matrix, name
                case _:
                    pass

    def _count_nodes(self, node: Element, depth: int = 0) -> int:
        """Return how many nodes are in one, those that it refers to included."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        self._surface.budget.check(MESH_DEPTH, depth, node.place)
        total = 1
        for child in node.children:
            _refuse(child)
            match child.name:
                case "node":
                    total += self._count_nodes(child, depth + 1)
                case "instance_node":
                    there = self._find(child, "url", "node")
                    total += self._count_nodes(there, depth + 1)
                case _:
                    pass
        self._surface.budget.check(MESH_NODES, total, node.place)
        self._sizes[id(node)] = total
        return total

    # Geometries.

    def _polygons_of(self, geometry: Element) -> list[_Polygons]:
        """Return the polygons of a geometry, which nodes may share."""
        if id(geometry) not in self._known:
            self._known[id(geometry)] = [
                self._polygons(element)
                for mesh in geometry.children_named("mesh")
                for element in mesh.children_named(*POLYGONS)
            ]
        return self._known[id(geometry)]

    def _polygons(self, element: Element) -> _Polygons:
        """Return the polygons of one element.

        A corner is a number for each input, one after the other; that at the offset of
        the input of vertices counts.
        """
        for child in element.children:
            _refuse(child)
        # `<p>` holds `width` numbers for each corner.
        vertices = self._points(element)
        inputs = element.children_named("input")
        width = 1 + max(_count(each, "offset", 0) for each in inputs)
        offset = _count(_input(element, "VERTEX"), "offset", 0)
        lists = [_indices(each) for each in element.children_named("p")]
        counts = [_indices(each) for each in element.children_named("vcount")]
        is_list = element.name in {"triangles", "polylist"}
        for name, indices in ("p", lists), ("vcount", counts):
            if is_list and len(indices) > 1:
                message = f"{element.label} has more than one <{name}>"
                raise fault(element.place, "repeated-element", message)
        for indices in lists:
            if len(indices) % width:
                message = f"{len(indices)} numbers are not corners of {width}"
                raise fault(element.place, "wrong-count", message)
        none = np.zeros(0, np.int64)
        rows = [indices[offset::width] for indices in lists]
        match element.name:
            case "polygons":
                sizes = np.array([len(row) for row in rows], np.int64)
            case "polylist":
                sizes = counts[0] if counts else none
            case _:
                if element.name != "triangles":
                    is_strip = element.name == "tristrips"
                    rows = [_triangles_of(row, is_strip=is_strip) for row in rows]
                if any(len(row) % 3 for row in rows):
                    message = f"the corners of {element.label} do not make triangles"
                    raise fault(element.place, "wrong-count", message)
                sizes = np.full(sum(map(len, rows)) // 3, 3)
        corners = np.concatenate([*rows, none])
        return _Polygons(vertices, corners, sizes, element.attributes.get("material"))

    def _points(self, polygons: Element) -> Array:
        """Return the points of polygons, shape (n, 3)."""
        entry = _input(polygons, "VERTEX")
        vertices = self._find(entry, "source", "vertices")
        source = self._find(_input(vertices, "POSITION"), "source", "source")
        accessor = next(_below(source, "technique_common", "accessor"), None)
        if accessor is None:
            message = f"{source.label} has no <accessor>"
            raise fault(source.place, "missing-element", message)
        array = self._find(accessor, "source", "float_array")
        numbers = _floats(array, _count(array, "count", None))
        rows, stride = _count(accessor, "count", 0), _count(accessor, "stride", 1)
        offset = _count(accessor, "offset", 0)
        if stride < 3 or offset + rows * stride > len(numbers):
            raise fault(
                accessor.place,
                "wrong-count",
                f"{rows} points of {stride} numbers do not fit into the {len(numbers)} "
                f"of {array.label}",
            )
        table = np.array(numbers[offset : offset + rows * stride], np.float64)
        return table.reshape(rows, stride)[:, :3]

    def _find(self, element: Element, attribute: str, kind: str) -> Element:
        """Return the element of a kind that an attribute refers to as `#id`."""
        reference = element.attributes.get(attribute, "")
        target = self._by_id.get(reference[1:])
        if not reference.startswith("#"):
            raise fault(
                element.place,
                "reference-outside",
                f"{attribute} of {element.label} is {quote(reference)}; only what is "
                "in the same file is read, as '#id'",
            )
        if target is None or target.name != kind:
            raise fault(
                element.place,
                "unknown-reference",
                f"{attribute} of {element.label} is {quote(reference)}; there is no "
                f"<{kind}> of that id",
            )
        return target

    # Colours.

    def _all_colours(self, root: Element) -> dict[str | None, list[float] | None]:
        """Return the diffuse colour of each material symbol, None where unclear."""
        colours: dict[str | None, list[float] | None] = {}
        for entry in root.walk():
            if entry.name == "instance_material":
                symbol = entry.attributes.get("symbol")
                colour = self._diffuse(entry)
                is_clear = colours.setdefault(symbol, colour) == colour
                colours[symbol] = colour if is_clear else None
        return colours

    def _diffuse(self, entry: Element) -> list[float] | None:
        try:
            material = self._find(entry, "target", "material")
            for each in material.children_named("instance_effect"):
                effect = self._find(each, "url", "effect")
                for shader in SHADERS:
                    path = ("profile_COMMON", "technique", shader, "diffuse")
                    if any(_below(effect, *path, "texture")):
                        self._textured.add(entry.attributes.get("symbol"))
                    for colour in _below(effect, *path, "color"):
                        return [float(word) for word in colour.text.split()]
        except (FormatError, ValueError):  # a broken material loses no triangles
            pass
        return None


def _metres(root: Element) -> float:
    """Return how many metres the file's unit of length has."""
    for element in _below(root, "asset", "unit"):
        text = element.attributes.get("meter", "1")
        try:
            scale = float(text)
        except ValueError:
            scale = math.nan
        if not 0.0 < scale < math.inf:
            message = f"{quote(text)} is not a number of metres"
            raise fault(element.place, "bad-number", message)
        return scale
    return 1.0


def _below(element: Element, *names: str) -> Iterator[Element]:
    """Yield the elements at the end of a path of names."""
    if not names:
        yield element
        return
    for child in element.children_named(names[0]):
        yield from _below(child, *names[1:])


def _input(element: Element, semantic: str) -> Element:
    for entry in element.children_named("input"):
        if entry.attributes.get("semantic") == semantic:
            return entry
    message = f"{element.label} has no input {semantic!r}"
    raise fault(element.place, "missing-element", message)


def _count(element: Element, name: str, default: int | None) -> int:
    """Return an attribute that counts something."""
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 9):
        message = f"{name} of {element.label} is {quote(text or '')}, not a count"
        raise fault(element.place, "wrong-count", message)
    return int(text)


def _refuse(element: Element) -> None:
    """Refuse an element without which polygons would be elsewhere, or others."""
    if element.name in REFUSED:
        raise fault(
            element.place,
            "unsupported-element",
            f"{element.label} is not read",
            hint="Export triangles that are not animated.",
        )


def _floats(element: Element, count: int) -> list[float]:
    """Return the numbers that an element holds, of which there must be a count."""
    numbers: list[float] = []
    if FLOATS.fullmatch(element.text) is not None:
        try:
            numbers = list(map(float, element.text.split()))
        except ValueError:
            numbers = [math.nan]
    else:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        message = f"{element.label} holds a word that is not a finite number"
        raise fault(element.place, "bad-number", message)
    if len(numbers) != count:
        message = f"{element.label} holds {len(numbers)} numbers, not {count}"
        raise fault(element.place, "wrong-count", message)
    return numbers


def _indices(element: Element) -> Indices:
    """Return the whole numbers from 0 up, of at most 9 digits, in an element."""
    if INDICES.fullmatch(element.text) is None:
        message = f"{element.label} holds a word that is not a whole number from 0 up"
        raise fault(element.place, "bad-number", message)
    return np.array(element.text.split(), np.int64)


def _triangles_of(row: Indices, *, is_strip: bool) -> Indices:
    """Return the corners of the triangles of a strip or a fan, one after the other."""
    if len(row) < 3:
        return row[:0]
    first = row[:-2] if is_strip else np.broadcast_to(row[:1], len(row) - 2)
    faces = np.stack([first, row[1:-1], row[2:]], axis=1)
    if is_strip:  # every second one turns the other way round
        faces[1::2, :2] = faces[1::2, 1::-1]
    return faces.ravel()


def _matrix(element: Element) -> Array:
    """Return what a transform of a node does, shape (4, 4)."""
    numbers = _floats(element, TRANSFORMS[element.name])
    matrix = np.eye(4)
    match element.name:
        case "matrix":
            return np.reshape(numbers, (4, 4))
        case "translate":
            matrix[:3, 3] = numbers
        case "scale":
            matrix[:3, :3] = np.diag(numbers)
        case _:
            *axis, angle = numbers
            length = math.hypot(*axis)
            if length == 0.0 and angle != 0.0:
                message = f"{element.label} has an axis of zero length"
                raise fault(element.place, "zero-axis", message)
            if length:
                x, y, z = (each / length for each in axis)
                matrix[:3, :3] = about_axis((x, y, z), math.radians(angle))
    return matrix
