"""Mesh files by their endings."""

from __future__ import annotations

import codecs
import os
from typing import Final

import numpy as np

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Budget, Diagnostic, Place, Report, fault
from armillary.formats.foreign import foreign_start
from armillary.formats.format import later
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.mesh.words import split_part
from armillary.formats.paths import Files, Roots
from armillary.limits import FILE_SIZE
from armillary.model.geometry.triangles import Triangles
from armillary.model.shapes.mesh import MeshPart

__all__ = ["KINDS", "read_parts", "read_surface", "read_triangles"]

READERS: Final = {
    **dict.fromkeys((".stl", ".stla", ".stlb"), later("mesh.stl", "read_stl")),
    ".obj": later("mesh.obj", "read_obj"),
    ".dae": later("mesh.dae", "read_dae"),
    ".glb": later("mesh.gltf", "read_glb"),
    ".gltf": later("mesh.gltf", "read_gltf"),
    ".ply": later("mesh.ply", "read_ply"),
    **dict.fromkeys((".ac", ".ac3d"), later("mesh.ac", "read_ac")),
    ".msh": later("mesh.msh", "read_msh"),
}
KINDS: Final = tuple(READERS)

TEXTS: Final = (".obj", ".gltf", ".ply", ".ac", ".ac3d")
"""Kinds of text, or with a header of text, before which there may be a mark."""


def read_triangles(
    path: str | os.PathLike[str], *, size_cap: int = FILE_SIZE.most
) -> Triangles:
    """Return the triangles of a mesh file [m], equal corners made one.

    Args:
        path: A plain file that ends in one of `KINDS`.
        size_cap: The most bytes that it may have, and each file that it names.

    Raises:
        FormatError: The file is not there, too large, of another kind, faulty or empty.
    """
    return read_surface(path, report=_report(size_cap)).triangles()


def read_parts(
    path: str | os.PathLike[str], *, size_cap: int = FILE_SIZE.most
) -> tuple[MeshPart, ...]:
    """Return the triangles of a mesh file [m], a part for each colour and image.

    The arguments and errors are those of `read_triangles`.
    """
    return read_surface(path, report=_report(size_cap)).parts()


def _report(size_cap: int) -> Report:
    return Report(budget=Budget({FILE_SIZE: size_cap}))


def read_surface(
    path: str | os.PathLike[str],
    *,
    roots: Files | None = None,
    report: Report | None = None,
    data: bytes | None = None,
    part: str = "",
) -> MeshSurface:
    """Return what is in a mesh file.

    Args:
        path: A plain file that ends in one of `KINDS`.
        roots: Folders, besides that of the file, in which files that it names may be.
        report: Takes warnings and notes; its budget bounds the file, and each that it
            names.
        data: Its bytes, if they have been read.
        part: Which part of it is meant, see `split_part`; by default all of it.

    Raises:
        FormatError: The file is not there, too large, of another kind, or faulty, or
            has no such part.
    """
    name = os.fspath(path)
    ending = os.path.splitext(name)[1].lower()
    if ending not in KINDS:
        raise fault(
            Place(name),
            "unknown-mesh-format",
            f"{quote(ending)} is not a kind of mesh file that is read",
            hint=f"Save it as one of {', '.join(KINDS)}.",
        )
    part, is_centred = split_part(part)
    surface = MeshSurface(name, report or Report(), part)
    files = roots or Roots()
    beside = _Beside(name, files, surface.report)
    size_cap = surface.budget.most(FILE_SIZE)
    data = files.read(name, size_cap) if data is None else data
    other = foreign_start(data)
    if other is not None:
        message = f"this is {other.title}, not a mesh"
        raise fault(Place(name), "unknown-mesh-format", message, hint=other.fix)
    if ending in TEXTS:
        data = data.removeprefix(codecs.BOM_UTF8)
    read = READERS[ending]
    # Numbers that are not finite are found before anything is made of them.
    with np.errstate(all="ignore"):
        match ending:
            case ".obj":
                read(data, surface, beside.optional, open_image=beside.required)
            case ".glb" | ".gltf":
                read(data, surface, beside.required)
            case _:
                read(data, surface)
        surface.check_part()
        if is_centred:
            surface.centre()
    return surface


class _Beside:
    """Open files that a mesh names: materials, images, buffers.

    path: The mesh, whose folder is allowed.
    """

    def __init__(self, path: str, roots: Files, report: Report) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self._roots = roots
        self._report = report
        self._size_cap = report.budget.most(FILE_SIZE)

    def required(self, reference: str, place: Place) -> bytes:
        """Return the bytes of a file.

        Raises:
            FormatError: It is missing, or not where it may be.
        """
        path = self._roots.find(reference, base=self._folder, place=place)
        if isinstance(path, Diagnostic):
            raise FormatError(path)
        return self._roots.read(path, self._size_cap)

    def optional(self, reference: str, place: Place) -> bytes | None:
        """Return the bytes of a file, or None, with a note, if it is missing."""
        path = self._roots.find(reference, base=self._folder, place=place)
        if isinstance(path, Diagnostic):
            self._report.note(place, path.code, path.message, hint=path.hint)
            return None
        return self._roots.read(path, self._size_cap)
