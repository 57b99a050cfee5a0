"""Mesh files by their endings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.dae import read_dae
from armillary.formats.mesh.glb import read_glb
from armillary.formats.mesh.obj import read_obj
from armillary.formats.mesh.parts import refusal
from armillary.formats.mesh.ply import read_ply
from armillary.formats.mesh.stl import read_stl
from armillary.formats.source import SIZE_CAP, read_bytes
from armillary.model.geometry.triangles import Triangles

__all__ = ["KINDS", "read_triangles", "triangles_in"]

KINDS: Final[dict[str, Callable[[bytes, str], Triangles]]] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".dae": read_dae,
    ".glb": read_glb,
    ".ply": read_ply,
}
HINTS: Final = {".gltf": "Save it as one .glb file, which holds everything."}


def read_triangles(
    path: str | os.PathLike[str], *, size_cap: int = SIZE_CAP
) -> Triangles:
    """Return the triangles of a mesh file [m], equal corners made one.

    Args:
        path: A plain file that ends in .stl, .obj, .dae, .glb or .ply.
        size_cap: The most bytes that it may have.

    Raises:
        FormatError: The file is not there, too large, of another kind, faulty or empty.
    """
    name = os.fspath(path)
    ending = os.path.splitext(name)[1].lower()
    if ending not in KINDS:
        raise refusal(
            Place(name),
            "unknown-mesh-format",
            f"{quote(ending)} is no kind of mesh file that is read",
            hint=HINTS.get(ending, f"Save it as one of {', '.join(KINDS)}."),
        )
    return triangles_in(read_bytes(name, size_cap), name)


def triangles_in(data: bytes, path: str) -> Triangles:
    """Return the triangles in the bytes of a mesh file.

    path: Its name, with an ending that is among `KINDS`.

    Raises:
        FormatError: The file is faulty or empty.
    """
    reader = KINDS[os.path.splitext(path)[1].lower()]
    # Numbers that are none, or become none, are found before anything is made of them.
    with np.errstate(all="ignore"):
        return reader(data, path)
