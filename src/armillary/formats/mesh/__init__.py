"""Triangles of meshes in files: STL, OBJ, PLY, GLB, COLLADA.

Only what encloses a body is read: corners and triangles, in metres and in the file's
own axes. Colours, textures, normals and animations are left alone, and so is every
other file that a mesh names. Polygons are cut into fans, as for convex ones. Corners
at exactly the same place become one, so that a closed surface is seen to be closed.

All readers are strict: numbers are finite, corners exist, counts are those of the file
before anything is allocated for them; what is wrong is a FormatError with its place.
"""

from __future__ import annotations

from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mesh.read import read_triangles

__all__ = ["MeshFiles", "read_triangles"]
