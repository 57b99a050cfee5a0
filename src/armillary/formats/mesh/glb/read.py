"""The triangles of a GLB file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place
from armillary.formats.mesh.glb.chunks import split
from armillary.formats.mesh.glb.layout import Document, Node, Primitive
from armillary.formats.mesh.glb.numbers import Numbers
from armillary.formats.mesh.parts import Parts, refusal
from armillary.model.geometry.triangles import Triangles
from armillary.spatial.quaternion import rows_from_quaternion

__all__ = ["read_glb"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

TRIANGLES: Final = 4
STRIP: Final = 5
FAN: Final = 6
MOST_NODES: Final = 20_000


def read_glb(data: bytes, path: str) -> Triangles:
    """Return the triangles of the scene that a GLB file shows [m], in its own axes.

    Raises:
        FormatError: The file is faulty, needs what is not read, or is empty.
    """
    place = Place(path)
    document, binary = split(data, path)
    if document.extensions_required:
        needed = ", ".join(document.extensions_required)
        raise refusal(
            place,
            "unsupported-extension",
            f"the file cannot be read without {needed}",
            hint="Export it without compression and extensions.",
        )
    numbers = Numbers(document, binary, place)
    parts = Parts(path)
    for matrix, mesh in _shown(document, place):
        if not 0 <= mesh < len(document.meshes):
            raise refusal(place, "bad-index", f"there is no mesh {mesh}")
        for primitive in document.meshes[mesh].primitives:
            _add(primitive, matrix, numbers, parts, place)
    return parts.joined()


def _shown(document: Document, place: Place) -> Iterator[tuple[Array, int]]:
    """Yield the meshes of the scene, each with its matrix, shape (4, 4).

    Raises:
        FormatError: A node does not exist, or is not in one place of the tree.
    """
    nodes = document.nodes
    waiting = [(root, np.eye(4)) for root in _roots(document, place)]
    seen: set[int] = set()
    while waiting:
        number, parent = waiting.pop()
        if not 0 <= number < len(nodes):
            raise refusal(
                place, "bad-index", f"there is no node {number}; there are {len(nodes)}"
            )
        if number in seen:
            raise refusal(
                place,
                "not-a-tree",
                f"node {number} is in two places; nodes make a tree",
            )
        seen.add(number)
        if len(seen) > MOST_NODES:
            raise refusal(
                place, "mesh-too-large", f"the scene has more than {MOST_NODES} nodes"
            )
        node = nodes[number]
        matrix = parent @ _matrix(node, number, place)
        waiting.extend((child, matrix) for child in node.children)
        if node.mesh is not None:
            yield matrix, node.mesh


def _roots(document: Document, place: Place) -> list[int]:
    if document.scenes:
        if not 0 <= document.scene < len(document.scenes):
            raise refusal(place, "bad-index", f"there is no scene {document.scene}")
        return document.scenes[document.scene].nodes
    children = {child for node in document.nodes for child in node.children}
    return [number for number in range(len(document.nodes)) if number not in children]


def _matrix(node: Node, number: int, place: Place) -> Array:
    """Return the matrix of a node: as it is, or T R S."""
    if node.matrix is not None:
        if len(node.matrix) != 16:
            raise refusal(
                place, "wrong-count", f"the matrix of node {number} has not 16 entries"
            )
        return np.array(node.matrix).reshape(4, 4).T  # it is column by column
    x, y, z, w = node.rotation
    length = float(np.linalg.norm(node.rotation))
    if not 0.0 < length < np.inf:
        raise refusal(place, "bad-number", f"node {number} has no rotation")
    result = np.eye(4)
    unit = w / length, x / length, y / length, z / length
    result[:3, :3] = np.array(rows_from_quaternion(unit)) * node.scale
    result[:3, 3] = node.translation
    return result


def _add(
    primitive: Primitive, matrix: Array, numbers: Numbers, parts: Parts, place: Place
) -> None:
    """Add the triangles of a primitive; lines and points bound nothing."""
    position = primitive.attributes.get("POSITION")
    if primitive.mode not in {TRIANGLES, STRIP, FAN} or position is None:
        return
    corners = numbers.corners(position)
    if primitive.indices is None:
        order = np.arange(len(corners), dtype=np.int64)
    else:
        order = numbers.indices(primitive.indices)
    if len(order) < 3 or (primitive.mode == TRIANGLES and len(order) % 3):
        raise refusal(
            place, "wrong-count", f"{len(order)} corners do not make triangles"
        )
    faces = _faces(order, primitive.mode)
    if np.linalg.det(matrix[:3, :3]) < 0.0:  # mirrored, so the other way around
        faces = faces[:, ::-1]
    parts.add(corners @ matrix[:3, :3].T + matrix[:3, 3], faces, place)


def _faces(order: Indices, mode: int) -> Indices:
    """Return the triangles of a list, a strip or a fan of corners, shape (m, 3)."""
    if mode == TRIANGLES:
        return order.reshape(-1, 3)
    if mode == FAN:
        first = np.full(len(order) - 2, order[0])
        return np.column_stack([first, order[1:-1], order[2:]])
    strip = np.column_stack([order[:-2], order[1:-1], order[2:]])
    strip[1::2] = strip[1::2, ::-1]
    return strip
