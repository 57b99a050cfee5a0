"""Cells whose collision shapes are replaced by simpler ones around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn, get_args

from armillary.collision.hulls import INSTEAD
from armillary.errors import ArmillaryError, ModelError, unknown
from armillary.model.bounding_volumes import bounding_spheres, convex_parts
from armillary.model.cloud import Cloud
from armillary.model.geometry.triangles import Triangles
from armillary.model.link import Link
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import HalfSpace, Mesh
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["KINDS", "Kind", "with_collisions"]

Kind = Literal["hulls", "parts", "spheres"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)


def with_collisions(
    cell: Workcell,
    kind: Kind,
    *,
    count: int = 10,
    meshes: MeshSource | None = None,
) -> Workcell:
    """Return the cell with other collision shapes around those that it has.

    Args:
        cell: The cell that has the links.
        kind: What is put around: with `hulls` a convex polyhedron around each mesh,
            with `parts` several, see `armillary.shapes.convex_parts`; with `spheres`
            spheres around all shapes of a link but half spaces, see
            `armillary.shapes.bounding_spheres`.
        count: The most spheres of a link.
        meshes: What reads meshes; by default what `arm.load` has left with the cell.

    Raises:
        UnknownName: There is no such kind.
        ModelError: A mesh cannot be read, or a library is not installed.
    """
    if kind not in KINDS:
        raise unknown("kind of collision shapes", kind, KINDS)
    # Rules, mounts and states of the cell do not depend on shapes, and remain.
    return cell.replace(
        manipulators=[
            each.replace(
                links=[
                    _bounded(link, f"{each.name}/{link.name}", kind, count, meshes)
                    for link in each.links
                ]
            )
            for each in cell.manipulators
        ]
    )


def _bounded(
    link: Link, name: str, kind: Kind, count: int, meshes: MeshSource | None
) -> Link:
    """Return a link with other collision shapes; itself where nothing changes."""
    shapes = link.collision_shapes
    has_meshes = any(isinstance(shape, Mesh) for shape in shapes)
    rest = [shape for shape in shapes if isinstance(shape, HalfSpace | Cloud)]
    # Only spheres are put around primitives; half spaces, without end, remain, and so
    # do clouds, whose elements are many already.
    if not (has_meshes or (kind == "spheres" and len(rest) < len(shapes))):
        return link
    try:
        if kind == "spheres":
            bodies = [_body(s, meshes) for s in shapes if s not in rest]
            spheres: Sequence[Shape] = bounding_spheres(bodies, count=count).spheres
            return link.replace(collisions=[*rest, *spheres])
        # Around each mesh, in its place among the other shapes.
        new = list[Shape]()
        for shape in shapes:
            if isinstance(shape, Mesh):
                new += _around(shape, kind, meshes)
            else:
                new.append(shape)
    except ArmillaryError as error:
        instead = INSTEAD.format(link=name)
        raise ModelError(
            f"The collision shapes of '{name}' cannot be replaced: {error} {instead}"
        ) from error
    return link.replace(collisions=new)


def _around(mesh: Mesh, kind: Kind, meshes: MeshSource | None) -> Sequence[Shape]:
    """Return one or several convex polyhedra around a mesh."""
    # Parts look like their mesh, and are where it is; a hull that is read does, too.
    if kind == "parts":
        looks: dict[str, Any] = {
            "name": mesh.name,
            "pose": mesh.pose,
            "colour": mesh.colour,
        }
        return convex_parts(_triangles(mesh, meshes), **looks)
    hull = None if meshes is None else meshes.hull(mesh)
    return [_lost(mesh) if hull is None else hull]


def _body(shape: Shape, meshes: MeshSource | None) -> Primitive | Triangles:
    """Return what spheres can be put around, in the link's primary frame."""
    if isinstance(shape, Mesh):
        return _triangles(shape, meshes).transformed(shape.pose)
    if not isinstance(shape, Primitive):
        raise ModelError(f"A {type(shape).__name__} has no surface.")
    return shape


def _triangles(mesh: Mesh, meshes: MeshSource | None) -> Triangles:
    triangles = None if meshes is None else meshes.triangles(mesh)
    return _lost(mesh) if triangles is None else triangles


def _lost(mesh: Mesh) -> NoReturn:
    raise ModelError(
        f"There is no file of the mesh {mesh.file!r}. A cell made by hand is given its "
        "files: arm.Cell(..., meshes=MeshFiles(folder))."
    )
