"""Meshes of a cell as convex polyhedra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.errors import ArmillaryError, ModelError
from armillary.model.fields import kept
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes.mesh import Mesh, MeshSource
from armillary.model.user_warning import warn_user
from armillary.model.workcell import Workcell

__all__ = ["hull_of", "warn_of_hulls"]

INSTEAD: Final = (
    "Or give the link primitives, link.replace(collisions=[...]), or leave it out: "
    "rules.exclude({link!r}, '*')."
)


def hull_of(shape: Shape, link: str, meshes: MeshSource | None) -> Primitive:
    """Return a polyhedron around a mesh.

    link: The qualified name of its link, for messages.

    Raises:
        ModelError: The mesh cannot be read, or has no hull.
    """
    instead = INSTEAD.format(link=link)
    if not isinstance(shape, Mesh):
        raise ModelError(
            f"'{link}' has a {type(shape).__name__} as a collision shape, which has no "
            f"distance. {instead}"
        )
    what = f"The collision shape of '{link}' is the mesh {shape.file!r}"
    if meshes is None:
        raise ModelError(
            f"{what}, and the cell does not know where its files are. Where its "
            "manipulators are those of a loaded cell, say arm.Cell(..., "
            "meshes=loaded.meshes); else meshes=armillary.formats.mesh.MeshFiles("
            f"folder). {instead}"
        )
    # What the file says is wrong becomes part of a sentence that names the link.
    try:
        hull = meshes.hull(shape)
    except ArmillaryError as error:
        why = str(error)
        stop = "" if why.endswith((".", "?", "!")) else "."
        raise ModelError(f"{what}, which has no hull: {why}{stop} {instead}") from error
    if hull is None:
        raise ModelError(f"{what}, whose file is missing. {instead}")
    return hull


def warn_of_hulls(cell: Workcell, links: Sequence[str]) -> None:
    """Warn once for a cell that meshes of links are treated by their hulls."""
    # Each link is named once, however many checks test it.
    named = kept(cell, "links with hulls", set[str])
    new = [name for name in dict.fromkeys(links) if name not in named]
    if not new:
        return
    named.update(new)
    # Three names are enough to find the file.
    some = ", ".join(f"'{name}'" for name in new[:3])
    more = f" and {len(new) - 3} more" if len(new) > 3 else ""
    warn_user(
        f"Collision shapes of {some}{more} are meshes; each is treated by its convex "
        "hull. In hollows this can find contacts that do not exist; exact=True tests "
        "their triangles instead."
    )
