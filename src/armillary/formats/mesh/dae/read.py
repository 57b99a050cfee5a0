"""The triangles of a COLLADA file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.dae.geometry import triangles_of
from armillary.formats.mesh.dae.library import Library, floats
from armillary.formats.mesh.parts import Parts, refusal
from armillary.formats.xml import Element, Limits, parse
from armillary.model.geometry.triangles import Triangles
from armillary.spatial.rotation import about_axis
from armillary.spatial.vector import unit

__all__ = ["read_dae"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DEEPEST: Final = 256
MOST_NODES: Final = 10_000
MOST_ELEMENTS: Final = 200_000


def read_dae(data: bytes, path: str) -> Triangles:
    """Return the triangles of the scene of a COLLADA file.

    Lengths become metres by the file's `<unit>`. Its `<up_axis>` is not turned, as ROS
    does not turn it either.

    Raises:
        FormatError: The file is faulty, needs what is not read, or is empty.
    """
    limits = Limits(depth=DEEPEST, elements=MOST_ELEMENTS)
    root = parse(data, path, limits)
    if root.name != "COLLADA":
        raise refusal(
            root.place, "wrong-content", f"{root.label} is no root of COLLADA"
        )
    library = Library(root)
    parts = Parts(path)
    known: dict[int, list[tuple[Array, Indices, Place]]] = {}
    scale = _metres(root)
    for matrix, geometry in _shown(root, library):
        pieces = known.get(id(geometry))
        if pieces is None:
            pieces = [(v, f, e.place) for v, f, e in triangles_of(geometry, library)]
            known[id(geometry)] = pieces
        is_mirrored = np.linalg.det(matrix[:3, :3]) < 0.0
        for vertices, faces, place in pieces:
            moved = scale * (vertices @ matrix[:3, :3].T + matrix[:3, 3])
            parts.add(moved, faces[:, ::-1] if is_mirrored else faces, place)
    return parts.joined()


def _metres(root: Element) -> float:
    """Return how many metres the file's unit of length has."""
    for asset in root.children_named("asset"):
        for element in asset.children_named("unit"):
            text = element.attributes.get("meter", "1")
            try:
                scale = float(text)
            except ValueError:
                scale = math.nan
            if not 0.0 < scale < math.inf:
                raise refusal(
                    element.place, "bad-number", f"{quote(text)} is no number of metres"
                )
            return scale
    return 1.0


def _shown(root: Element, library: Library) -> Iterator[tuple[Array, Element]]:
    """Yield the geometries of the scene, each with its matrix, shape (4, 4).

    Raises:
        FormatError: Nodes refer to what is not there, or are endlessly many.
    """
    waiting = [(scene, np.eye(4), 0) for scene in _scenes(root, library)]
    count = 0
    while waiting:
        node, parent, depth = waiting.pop()
        count += 1
        if count > MOST_NODES or depth > DEEPEST:
            raise refusal(
                node.place,
                "mesh-too-large",
                f"the scene has more than {MOST_NODES} nodes, or more than {DEEPEST} "
                "in each other",
            )
        matrix = parent
        for child in node.children:
            if child.name in TRANSFORMS:
                matrix = matrix @ TRANSFORMS[child.name](child)
        for child in reversed(node.children):
            match child.name:
                case "node":
                    waiting.append((child, matrix, depth + 1))
                case "instance_node":
                    there = library.find(child, "url", "node")
                    waiting.append((there, matrix, depth + 1))
                case "instance_geometry":
                    yield matrix, library.find(child, "url", "geometry")
                case "instance_controller" | "lookat" | "skew":
                    raise refusal(
                        child.place,
                        "unsupported-element",
                        f"{child.label} is not read",
                        hint="Export a mesh that is not animated.",
                    )
                case _:
                    continue


def _scenes(root: Element, library: Library) -> list[Element]:
    """Return the scene that is shown, or all where the file does not say."""
    shown = [
        library.find(instance, "url", "visual_scene")
        for scene in root.children_named("scene")
        for instance in scene.children_named("instance_visual_scene")
    ]
    return shown or [
        scene
        for each in root.children_named("library_visual_scenes")
        for scene in each.children_named("visual_scene")
    ]


def _matrix(element: Element) -> Array:
    return floats(element, 16).reshape(4, 4)


def _translate(element: Element) -> Array:
    result = np.eye(4)
    result[:3, 3] = floats(element, 3)
    return result


def _rotate(element: Element) -> Array:
    """Return the turn about an axis, by degrees."""
    x, y, z, angle = floats(element, 4).tolist()
    result = np.eye(4)
    if x or y or z:
        result[:3, :3] = about_axis(unit((x, y, z)), math.radians(angle))
    elif angle:
        raise refusal(
            element.place, "zero-axis", f"{element.label} turns about no axis"
        )
    return result


def _scale(element: Element) -> Array:
    return np.diag([*floats(element, 3), 1.0])


TRANSFORMS: Final[dict[str, Callable[[Element], Array]]] = {
    "matrix": _matrix,
    "translate": _translate,
    "rotate": _rotate,
    "scale": _scale,
}
