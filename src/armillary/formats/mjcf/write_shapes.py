"""Shapes as geoms, and the meshes that they refer to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.mjcf.names import WrittenNames
from armillary.formats.mjcf.poses import pose_attributes
from armillary.formats.mjcf.shapes import ONES, SIZES
from armillary.formats.names import FreeNames
from armillary.formats.xml import Element, tag
from armillary.formats.xml.write import Value
from armillary.model.link import Link
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import ConvexPolyhedron, HalfSpace, Mesh
from armillary.spatial.pose import Pose

__all__ = ["GeomWriter"]

READ_BY_MUJOCO: Final = (".stl", ".obj", ".msh")
TYPES: Final = {size.makes: kind for kind, size in SIZES.items()}
DRAWN, TOUCHING, BOTH = 2, 3, 0
"""The groups of geoms: MuJoCo draws those up to 2 by default."""


class GeomWriter:
    """Make geoms of the shapes of links.

    names: In the file.
    tested: The links that are tested, as `manipulator/link`.
    """

    def __init__(self, names: WrittenNames, tested: set[str], report: Report) -> None:
        self._names, self._tested, self._report = names, tested, report
        self.touching: set[str] = set()
        self._geom_names = FreeNames(set())
        self._mesh_names = FreeNames(set())
        self._meshes: dict[tuple[Any, ...], tuple[str, dict[str, Value]]] = {}

    def assets(self) -> list[Element]:
        """Return the meshes that geoms refer to."""
        return [tag("mesh", values) for _, values in self._meshes.values()]

    def of_link(self, link: Link, qualified: str) -> list[Element]:
        """Return the geoms of a link."""
        kept = self._names.geom_attributes(qualified)
        collisions: Sequence[Shape] = link.collisions
        if not collisions and qualified in self._tested:
            collisions = link.collision_shapes
        geoms: list[Element] = []
        for shape, where, group in _merged(link.visuals, collisions):
            made = self._geom(shape, link.primary)
            if made is None:
                continue
            attributes = dict(made)
            if group == DRAWN:
                attributes |= {"contype": 0, "conaffinity": 0}
            else:
                self.touching.add(qualified)
            if group != BOTH:
                attributes["group"] = group
            geoms.append(tag("geom", {**attributes, **kept.get(where, {})}))
        return geoms

    def _geom(self, shape: Shape, primary: Pose) -> dict[str, Value] | None:
        """Return the attributes of a shape, None if it is left out."""
        name = shape.name or None
        if name is not None and self._geom_names.derive(name) != name:
            name = None  # names are unique in MuJoCo; it has one with this name
            self._report.unsupported.add("a shape's name that comes twice")
        pose = primary @ shape.pose
        kind = TYPES.get(type(shape))
        values: dict[str, Value] = {}
        if kind is not None:
            numbers = SIZES[kind].numbers(shape)
            if min(numbers) <= 0.0:
                return self._left_out(f"a {kind} with a size of 0")
            values = {"type": kind, "size": numbers}
        elif isinstance(shape, HalfSpace):
            values = {"type": "plane", "size": (0.0, 0.0, 1.0)}
        elif isinstance(shape, Mesh):
            mesh = self._mesh(shape)
            if mesh is None:
                return None
            values = {"type": "mesh", "mesh": mesh}
        elif isinstance(shape, Primitive):
            mesh = self._hull(shape)
            if mesh is None:
                return None
            values = {"type": "mesh", "mesh": mesh}
        else:
            return self._left_out(f"a shape of type {type(shape).__name__}")
        looks: dict[str, Value] = {"rgba": shape.colour}
        return {"name": name, **values, **pose_attributes(pose), **looks}

    def _left_out(self, what: str) -> None:
        self._report.unsupported.add(what)

    def _mesh(self, shape: Mesh) -> str | None:
        """Return the name of the asset of a mesh in a file."""
        ending = os.path.splitext(shape.file)[1].lower()
        if ending not in READ_BY_MUJOCO:
            self._left_out(f"a mesh of the format {quote(ending)}")
            return None
        if "://" in shape.file:
            self._left_out("a mesh with a reference such as package://")
            return None
        if 0.0 in shape.scale:
            self._left_out("a mesh with a scale of 0")
            return None
        key = shape.file, shape.scale
        if key not in self._meshes:
            stem = os.path.splitext(os.path.basename(shape.file))[0]
            name = self._mesh_names.derive(stem or "mesh")
            scale = None if shape.scale == ONES else shape.scale
            values: dict[str, Value] = {
                "name": name,
                "file": shape.file,
                "scale": scale,
                # Masses are written for bodies; flat meshes are refused otherwise.
                "inertia": "shell",
            }
            self._meshes[key] = name, values
        return self._meshes[key][0]

    def _hull(self, shape: Primitive) -> str | None:
        """Return the name of the asset of a convex shape that MuJoCo does not have."""
        if isinstance(shape, ConvexPolyhedron):
            vertices = np.array(shape.vertices)
        else:
            try:
                vertices = shape.triangles().vertices
            except ModelError:
                self._left_out(f"a shape of type {type(shape).__name__}")
                return None
            self._report.warning(
                NOWHERE,
                "shape-replaced",
                f"a {type(shape).__name__} is written as a mesh, to 1 mm",
            )
        key = type(shape), vertices.tobytes()
        if key not in self._meshes:
            name = self._mesh_names.derive("hull")
            values: dict[str, Value] = {
                "name": name,
                "vertex": tuple(vertices.ravel().tolist()),
            }
            self._meshes[key] = name, values
        return self._meshes[key][0]


class _Part(NamedTuple):
    """A shape, where it is in its link, and the group of its geom."""

    shape: Shape
    where: str
    group: int


def _merged(visuals: Sequence[Shape], collisions: Sequence[Shape]) -> Iterator[_Part]:
    """Yield shapes in an order that keeps that of both, each with where it is from.

    A shape that is in both comes once.
    """
    waiting = list(enumerate(visuals))
    for number, shape in enumerate(collisions):
        where = f"collisions {number}"
        same = [k for k, (_, visual) in enumerate(waiting) if visual == shape]
        if same:
            for place, visual in waiting[: same[0]]:
                yield _Part(visual, f"visuals {place}", DRAWN)
            waiting = waiting[same[0] + 1 :]
            yield _Part(shape, where, BOTH)
        else:
            yield _Part(shape, where, TOUCHING)
    for place, visual in waiting:
        yield _Part(visual, f"visuals {place}", DRAWN)
