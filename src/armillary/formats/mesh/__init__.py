"""Triangles of meshes in files: STL, OBJ, PLY, glTF, COLLADA, AC3D.

Only surfaces, their plain colours and the images on them are read, in metres and in the
file's own axes; normals and animations are left alone. Images are those of OBJ and
glTF; they are read only when a mesh is shown. Corners at exactly the same position
become one, so that a closed surface is seen to be closed.

All readers are strict: numbers are finite, corners exist, counts are those of the file
before anything is allocated for them; what is wrong is a FormatError with its place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from armillary.forks import IMPORT_LOCK

if TYPE_CHECKING:
    from armillary.formats.mesh.files import MeshFiles
    from armillary.formats.mesh.read import read_parts, read_triangles
    from armillary.model.shapes.mesh import MeshPart, MeshTexture

__all__ = ["MeshFiles", "MeshPart", "MeshTexture", "read_parts", "read_triangles"]

# Cells are read without their meshes.
_HOMES: Final = {
    "MeshFiles": "armillary.formats.mesh.files",
    "MeshPart": "armillary.model.shapes.mesh",
    "MeshTexture": "armillary.model.shapes.mesh",
    "read_parts": "armillary.formats.mesh.read",
    "read_triangles": "armillary.formats.mesh.read",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with IMPORT_LOCK:
        return getattr(import_module(_HOMES[name]), name)
