"""COLLADA, the format of .dae files, by the library `pycollada`."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Budget, Place, fault
from armillary.formats.mesh.images import no_image
from armillary.formats.mesh.library import library
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.xml import Element, parse
from armillary.limits import COLLADA_ELEMENTS, MESH_DEPTH, MESH_NODES

__all__ = ["read_dae"]

NAMESPACE: Final = "http://www.collada.org/2005/11/COLLADASchema"
POLYGONS: Final = ("triangles", "polylist", "polygons", "tristrips", "trifans")
TRANSFORMS: Final = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}
REFUSED: Final = ("ph", "instance_controller", "lookat", "skew")
# What is handed to the library: these elements, as children of those.
CHILDREN: Final = {
    "COLLADA": (
        "library_geometries",
        "library_nodes",
        "library_visual_scenes",
        "scene",
    ),
    "library_geometries": ("geometry",),
    "geometry": ("mesh",),
    "library_nodes": ("node",),
    "library_visual_scenes": ("visual_scene",),
    "visual_scene": ("node",),
    "scene": ("instance_visual_scene",),
    "node": ("node", "instance_node", "instance_geometry", *TRANSFORMS),
    "instance_geometry": (),
    **dict.fromkeys(POLYGONS, ("p", "vcount")),
}
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
    place = Place(surface.path)
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
    guard = _Checker(root, surface.budget)
    checked = io.BytesIO(ET.tostring(guard.checked(root)))
    image = no_image("images of COLLADA are not read", place)
    collada = library("collada", "COLLADA", place)
    try:
        document = collada.Collada(checked)
        scenes = document.scenes if document.scene is None else [document.scene]
        for bound in (each for scene in scenes for each in scene.objects("geometry")):
            matrix = np.asarray(bound.matrix, np.float64)
            matrix = np.diag([*[_metres(root)] * 3, 1.0]) @ matrix
            for polygons in bound.original.primitives:
                if polygons.vertex is not None:
                    surface.add(
                        polygons.vertex.astype(np.float64),
                        polygons.vertex_index,
                        getattr(polygons, "vcounts", 3),
                        matrix=matrix,
                        colour=guard.colours.get(polygons.material),
                        image=image if polygons.material in guard.textured else None,
                    )
    except FormatError:
        raise
    except Exception as error:  # whatever the library trips over
        message = f"the file cannot be read: {error}".removesuffix(".")
        raise fault(place, "bad-document", message) from error


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


class _Checker:
    """Check what `pycollada` does not, and leave out what it need not see.

    It takes NaN for 0, stops at the first word that is not a number, passes over the
    stride and offset of accessors and the length of axes, loses a geometry whose
    material is missing, and follows nodes without end.

    root: Of the document.
    budget: What it may cost.
    """

    def __init__(self, root: Element, budget: Budget) -> None:
        self._budget = budget
        self._by_id: dict[str, Element] = {}
        for element in root.walk():
            self._by_id.setdefault(element.attributes.get("id", ""), element)
        self._sizes: dict[int, int] = {}
        self.textured: set[str | None] = set()  # symbols of materials with an image
        self.colours = self._colours(root)

    def checked(self, element: Element) -> ET.Element:
        """Return a copy of what is needed of an element, for the library.

        Raises:
            FormatError: It is faulty, or needs what is not read.
        """
        for child in element.children:
            if child.name in REFUSED:
                raise fault(
                    child.place,
                    "unsupported-element",
                    f"{child.label} is not read",
                    hint="Export triangles that are not animated.",
                )
        match element.name:
            case "node" | "visual_scene":
                self._count_nodes(element)
            case "p" | "vcount":
                _check_indices(element)
            case name if name in TRANSFORMS:
                _check_floats(element, TRANSFORMS[name])
            case "mesh":
                return self._mesh(element)
            case _:
                pass
        text = _unit_axis(element) if element.name == "rotate" else element.text
        copy = _new(element.name, text, **element.attributes)
        if element.name == "COLLADA":
            copy.set("xmlns", NAMESPACE)
        wanted = CHILDREN.get(element.name, ())
        copy.extend([self.checked(c) for c in element.children if c.name in wanted])
        return copy

    def _mesh(self, mesh: Element) -> ET.Element:
        """Return polygons with no other inputs than points."""
        copy = _new("mesh")
        for element in mesh.children:
            if element.name not in POLYGONS:
                continue
            if element.name in {"triangles", "polylist"}:
                for name in ("p", "vcount"):
                    if len(element.children_named(name)) > 1:
                        message = f"{element.label} has more than one <{name}>"
                        raise fault(element.place, "repeated-element", message)
            points = self._points(element)
            copy.append(points)
            polygons = self.checked(element)
            for entry in element.children_named("input"):
                is_point = entry.attributes.get("semantic") == "VERTEX"
                polygons.append(
                    _new(
                        "input",
                        offset=str(_count(entry, "offset", 0)),
                        semantic="VERTEX" if is_point else "COLOR",  # only its offset
                        source=f"#{points.get('id')}",
                    )
                )
            copy.append(polygons)
        return copy

    def _points(self, polygons: Element) -> ET.Element:
        """Return the source of the points of polygons, each of three numbers."""
        entry = _input(polygons, "VERTEX")
        vertices = self._find(entry, "source", "vertices")
        source = self._find(_input(vertices, "POSITION"), "source", "source")
        accessor = next(_below(source, "technique_common", "accessor"), None)
        if accessor is None:
            message = f"{source.label} has no <accessor>"
            raise fault(source.place, "missing-element", message)
        array = self._find(accessor, "source", "float_array")
        _check_floats(array, _count(array, "count", None))
        words = array.text.split()
        rows, stride = _count(accessor, "count", 0), _count(accessor, "stride", 1)
        offset = _count(accessor, "offset", 0)
        if stride < 3 or offset + rows * stride > len(words):
            raise fault(
                accessor.place,
                "wrong-count",
                f"{rows} points of {stride} numbers do not fit into the {len(words)} "
                f"of {array.label}",
            )
        if stride > 3 or offset or 3 * rows < len(words):
            starts = range(offset, offset + rows * stride, stride)
            words = [word for at in starts for word in words[at : at + 3]]
        copy = _new("source", id=f"points {id(polygons)}")
        copy.append(_new("float_array", " ".join(words), count=str(3 * rows)))
        common = ET.SubElement(copy, "technique_common")
        reader = ET.SubElement(common, "accessor", count=str(rows), stride="3")
        reader.extend([_new("param", name=name, type="float") for name in "XYZ"])
        return copy

    def _find(self, element: Element, attribute: str, kind: str) -> Element:
        """Return the element of a kind that an attribute refers to as `#id`."""
        reference = element.attributes.get(attribute, "")
        found = self._by_id.get(reference[1:])
        if not reference.startswith("#"):
            raise fault(
                element.place,
                "reference-outside",
                f"{attribute} of {element.label} is {quote(reference)}; only what is "
                "in the same file is read, as '#id'",
            )
        if found is None or found.name != kind:
            raise fault(
                element.place,
                "unknown-reference",
                f"{attribute} of {element.label} is {quote(reference)}; there is no "
                f"<{kind}> of that id",
            )
        return found

    def _count_nodes(self, node: Element, depth: int = 0) -> int:
        """Return how many nodes are in one, those that it refers to included."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        total = 1
        self._budget.check(MESH_DEPTH, depth, node.place)
        for child in node.children:
            match child.name:
                case "node":
                    total += self._count_nodes(child, depth + 1)
                case "instance_node":
                    there = self._find(child, "url", "node")
                    total += self._count_nodes(there, depth + 1)
                case "instance_geometry":
                    self._find(child, "url", "geometry")
                case _:
                    continue
        self._budget.check(MESH_NODES, total, node.place)
        self._sizes[id(node)] = total
        return total

    def _colours(self, root: Element) -> dict[str | None, list[float] | None]:
        """Return the diffuse colour of each material symbol, None where unclear."""
        found: dict[str | None, list[float] | None] = {}
        for entry in root.walk():
            if entry.name == "instance_material":
                symbol = entry.attributes.get("symbol")
                colour = self._diffuse(entry)
                is_clear = found.setdefault(symbol, colour) == colour
                found[symbol] = colour if is_clear else None
        return found

    def _diffuse(self, entry: Element) -> list[float] | None:
        try:
            material = self._find(entry, "target", "material")
            for each in material.children_named("instance_effect"):
                effect = self._find(each, "url", "effect")
                for shader in SHADERS:
                    path = ("profile_COMMON", "technique", shader, "diffuse")
                    if any(_below(effect, *path, "texture")):
                        self.textured.add(entry.attributes.get("symbol"))
                    for colour in _below(effect, *path, "color"):
                        return [float(word) for word in colour.text.split()]
        except (FormatError, ValueError):  # a broken material loses no triangles
            pass
        return None


def _new(tag: str, text: str = "", **attributes: Any) -> ET.Element:
    found = ET.Element(tag, attributes)
    found.text = text
    return found


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


def _check_floats(element: Element, count: int) -> None:
    """Check that an element holds numbers, and how many."""
    words = element.text.split()
    try:
        is_good = FLOATS.fullmatch(element.text) is not None and all(
            map(math.isfinite, map(float, words))
        )
    except ValueError:
        is_good = False
    if not is_good:
        message = f"{element.label} holds a word that is not a finite number"
        raise fault(element.place, "bad-number", message)
    if len(words) != count:
        message = f"{element.label} holds {len(words)} numbers, not {count}"
        raise fault(element.place, "wrong-count", message)


def _unit_axis(element: Element) -> str:
    """Return the axis and angle of a rotation, the axis of length 1.

    The library takes an axis as it is: a longer one would stretch.
    """
    *axis, angle = map(float, element.text.split())
    length = math.hypot(*axis)
    if length == 0.0 and angle != 0.0:
        message = f"{element.label} has an axis of zero length"
        raise fault(element.place, "zero-axis", message)
    axis = [each / length for each in axis] if length else [0.0, 0.0, 1.0]
    return " ".join(map(repr, (*axis, angle)))


def _check_indices(element: Element) -> None:
    """Check that an element holds whole numbers from 0 up, of at most 9 digits."""
    if INDICES.fullmatch(element.text) is None:
        message = f"{element.label} holds a word that is not a whole number from 0 up"
        raise fault(element.place, "bad-number", message)
