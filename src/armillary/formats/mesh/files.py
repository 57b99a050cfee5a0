"""The files that meshes of a model refer to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from armillary.disk_cache import cached_arrays
from armillary.errors import FormatError, ModelError
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Budget, Diagnostic, Place, Report
from armillary.formats.mesh.words import STAGES, split_reference
from armillary.formats.paths import Files, Roots
from armillary.limits import COARSE_STL, FILE_SIZE, IMAGE_SIZE, LARGE_STL, OBJ_LIBRARIES
from armillary.model.distinct_numbers import distinct_numbers
from armillary.model.geometry.triangles import Triangles
from armillary.model.shapes.mesh import Mesh, MeshPart

if TYPE_CHECKING:
    from armillary.formats.mesh.surface import MeshSurface
    from armillary.formats.mesh.usd import StageMeshes
    from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron

Corners = tuple[tuple[float, float, float], ...]

__all__ = ["MeshFile", "MeshFiles", "mesh_files"]

HULL_TOLERANCE: Final = 0.005
"""How far a hull reaches beyond its mesh, as a part of the longest side of its box."""

HULL_MAKERS: Final = (
    "armillary.formats.mesh.files",
    "armillary.model.geometry.hull",
    "armillary.model.geometry.triangles",
    "armillary.model.shapes.convex_polyhedron",
    "scipy",
)
"""Modules on which the corners of a hull depend."""

READERS: Final = (*HULL_MAKERS, "armillary.formats", "armillary.formats.mesh")
"""Modules on which those of the hull of a file depend."""

ALONE: Final = (".stl", ".stla", ".stlb", ".ply")
"""Endings of meshes that refer to no other files."""

COLLADA: Final = ".dae"
IMAGE: Final = re.compile(rb"<init_from>\s*(?:<ref>\s*)?([^<>]{1,4096}?)\s*<")

STL: Final = (".stl", ".stlb")
MISSING: Final = ("reference-missing", "reference-package")


class MeshFile(NamedTuple):
    """A file that belongs to a mesh.

    Attributes:
        reference: What names it, in the model or in the file of the mesh.
        path: Where it is.
        data: Its bytes.
    """

    reference: str
    path: Path
    data: bytes


class MeshFiles:
    """Read the meshes of a model, each file once, from allowed folders only.

    base: The folder of the model's file, which needs no permission.
    roots: Packages and folders that references may lead into.
    missing: Whether a file that is not there is an error, or a warning in `report`.
    size_cap: The most bytes that a file may have.
    """

    def __init__(
        self,
        base: str | os.PathLike[str],
        *,
        roots: Files | None = None,
        missing: Literal["error", "warn"] = "error",
        size_cap: int = FILE_SIZE.most,
    ) -> None:
        self._base = Path(base)
        self._roots = roots or Roots()
        self._missing = missing
        self._size_cap = size_cap
        self._read: dict[tuple[Path, str], MeshSurface] = {}
        self._known_coarse: dict[Path, MeshPart | None] = {}
        self._stages: dict[Path, StageMeshes] = {}
        self._in_stages: dict[tuple[Path, str], MeshSurface] = {}
        self._corners: dict[tuple[Any, ...], Corners] = {}
        self._hulls: dict[tuple[Any, ...], ConvexPolyhedron] = {}
        # Files that are read in pieces may be larger, by as much as declared.
        pieces = size_cap * (COARSE_STL.most // FILE_SIZE.most)
        self._report = Report(budget=Budget({FILE_SIZE: size_cap, COARSE_STL: pieces}))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._base, self._roots, self._missing, self._size_cap)

    @property
    def report(self) -> Report:
        """Return the warnings and notes so far, each missing file once."""
        return self._report

    def triangles(self, mesh: Mesh, *, place: Place | None = None) -> Triangles | None:
        """Return the triangles of a mesh in its own frame, scaled as it says [m].

        Args:
            mesh: A shape of a link.
            place: Where the model refers to it, for messages.

        Returns:
            None where the file is missing and that is but a warning.

        Raises:
            FormatError: The reference leads out of the allowed folders or to nothing,
                or the file is faulty.
        """
        surface = self._surface(mesh, place)
        return None if surface is None else surface.triangles().scaled(mesh.scale)

    def hull(
        self, mesh: Mesh, *, tolerance: float | None = None, place: Place | None = None
    ) -> ConvexPolyhedron | None:
        """Return a convex polyhedron around a mesh, with its name, pose and colour.

        It is made once and kept. Open and flat meshes, and triangles that face inwards,
        are treated alike: it is around all their corners.

        Args:
            mesh: A shape of a link.
            tolerance: How far it may reach beyond the convex hull [m]; by default
                1/200 of the longest side of the mesh's box, more where there would be
                too many corners. With 0 it is the hull itself, which must not be flat.
            place: As for `triangles`.

        Returns:
            None where the file is missing and that is but a warning.

        Raises:
            FormatError: As for `triangles`.
            ModelError: SciPy is not installed; or, with a tolerance, the hull is flat
                or has too many corners.
        """
        looks: dict[str, Any] = {
            "name": mesh.name,
            "pose": mesh.pose,
            "colour": mesh.colour,
        }
        # The same object for the same shape: what follows from it is kept with it.
        like = (mesh.file, mesh.scale, tolerance, *looks.values())
        made = self._hulls.get(like)
        if made is not None:
            return made
        path = self._find(mesh, place)
        if path is None:
            return None
        key = (path, split_reference(mesh.file)[1], mesh.scale, tolerance)
        if key not in self._corners:
            self._corners[key] = self._corners_of(mesh, path, tolerance)
        with IMPORT_LOCK:
            from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron

        made = ConvexPolyhedron(vertices=self._corners[key], **looks)
        return self._hulls.setdefault(like, made)

    def parts(
        self, mesh: Mesh, *, place: Place | None = None
    ) -> tuple[MeshPart, ...] | None:
        """Return the triangles of a mesh by colours and images.

        A colour of the shape itself counts instead of those in the file. Binary STL
        that is too large for `triangles` has fewer triangles here. Arguments and errors
        are those of `triangles`.
        """
        coarse = self._coarse(mesh)
        if coarse is not None:
            return (coarse._replace(colour=mesh.colour).scaled(mesh.scale),)
        surface = self._surface(mesh, place)
        if surface is None:
            return None
        if mesh.colour is not None:
            return (MeshPart(surface.triangles().scaled(mesh.scale), mesh.colour),)
        return tuple(part.scaled(mesh.scale) for part in surface.parts())

    def located(self, reference: str) -> Path | None:
        """Return the file that a reference names; None if it may not be read."""
        path = self._roots.find(reference, base=self._base, place=Place())
        return None if isinstance(path, Diagnostic) else path.resolve()

    def from_folder(self, folder: str | os.PathLike[str]) -> MeshFiles:
        """Return what finds the files of a model in another folder, as `load` does.

        It has the same packages and folders, but not what is in a bundle.
        """
        roots = self._roots if isinstance(self._roots, Roots) else Roots()
        return MeshFiles(folder, roots=roots)

    def files(self, mesh: Mesh) -> list[MeshFile]:
        """Return all files of a mesh, its own first: materials, images, layers.

        What its file refers to and cannot be read is left out, as when it is shown.

        Raises:
            FormatError: As for `triangles`; a file with faults is not looked into.
        """
        file, _ = split_reference(mesh.file)
        path = self._roots.find(file, base=self._base, place=Place())
        if isinstance(path, Diagnostic):
            raise FormatError(path)
        if path.suffix.lower() in STAGES:
            return self._layers(file, path)
        noted = _Noted(self._roots, mesh.file, path)
        report = Report(budget=self._report.budget.renewed())
        ending = path.suffix.lower()
        if ending in ALONE:
            noted.read(path, self._size_cap)
        elif ending == COLLADA:
            references = images_of(noted.read(path, self._size_cap))
            for reference in references:
                image = noted.find(reference, base=path.parent, place=Place())
                if isinstance(image, Path):
                    with suppress(FormatError):
                        noted.read(image, IMAGE_SIZE.most)
        else:
            with IMPORT_LOCK:
                from armillary.formats.mesh.read import read_surface  # for all kinds

            with suppress(FormatError):
                read_surface(path, roots=noted, report=report).parts()
        return noted.files

    def _layers(self, reference: str, path: Path) -> list[MeshFile]:
        """Return a stage of USD and the layers that it is composed of."""
        with IMPORT_LOCK:
            from armillary.formats.usd.process import stage_layers  # for USD alone

        report = Report(budget=self._report.budget.renewed())
        layers = stage_layers(os.fspath(path), self._roots, report)
        first = MeshFile(reference, path, self._roots.read(path, self._size_cap))
        return [first, *(MeshFile(name, at, data) for name, at, data in layers)]

    def _coarse(self, mesh: Mesh) -> MeshPart | None:
        """Return the coarse triangles of a large binary STL file; of others None."""
        path = self._roots.find(mesh.file, base=self._base, place=Place())
        if isinstance(path, Diagnostic) or path.suffix.lower() not in STL:
            return None
        if path not in self._known_coarse:
            with IMPORT_LOCK:
                from armillary.formats.mesh.stl import coarse_stl

            is_large = self._roots.size(path) > min(self._size_cap, LARGE_STL.most)
            cap = self._report.budget.most(COARSE_STL)
            self._known_coarse[path] = coarse_stl(path, cap) if is_large else None
        return self._known_coarse[path]

    def _find(self, mesh: Mesh, place: Place | None) -> Path | None:
        """Return the file of a mesh, None where it is missing and that is a warning."""
        file, _ = split_reference(mesh.file)
        path = self._roots.find(file, base=self._base, place=place or Place())
        if isinstance(path, Diagnostic):
            self._refuse(path)
            return None
        return path

    def _surface(self, mesh: Mesh, place: Place | None) -> MeshSurface | None:
        path = self._find(mesh, place)
        return None if path is None else self._surface_of(mesh, path)

    def _surface_of(
        self, mesh: Mesh, path: Path, data: bytes | None = None
    ) -> MeshSurface:
        """Return what is in the file of a mesh; `data` are its bytes, where known."""
        _, inside = split_reference(mesh.file)
        if path.suffix.lower() in STAGES:
            return self._of_stage(path, inside)
        key = path, inside
        if key not in self._read:
            with IMPORT_LOCK:
                from armillary.formats.mesh.read import read_surface  # for all kinds

            self._read[key] = read_surface(
                path, roots=self._roots, report=self._report, part=inside, data=data
            )
        return self._read[key]

    def _corners_of(self, mesh: Mesh, path: Path, tolerance: float | None) -> Corners:
        """Return the corners of the hull of a mesh.

        Where the bytes of one file decide them, and no warning is to be repeated, a
        later process that has the same file does not read what is in it.
        """
        _, inside = split_reference(mesh.file)
        is_read = (path, inside) in self._read
        if tolerance is not None or is_read or path.suffix.lower() not in ALONE:
            surface = self._surface_of(mesh, path)
            return _hull(surface.triangles().scaled(mesh.scale), tolerance)
        data = self._roots.read(path, self._report.budget.most(FILE_SIZE))
        before = len(self._report.diagnostics)

        def made() -> list[Corners]:
            surface = self._surface_of(mesh, path, data)
            triangles = surface.triangles().scaled(mesh.scale)
            corners = _hull(triangles, None, is_kept=True)
            if len(self._report.diagnostics) > before:
                raise _WithWarnings(corners)
            return [corners]

        decides = (path.suffix.lower(), inside, mesh.scale, np.frombuffer(data, "u1"))
        try:
            (corners,) = cached_arrays("hull of file", decides, made, made_by=READERS)
        except _WithWarnings as found:
            return found.corners
        return tuple(map(tuple, corners.tolist()))

    def _of_stage(self, path: Path, inside: str) -> MeshSurface:
        """Return the meshes in a prim of a stage of USD."""
        key = path, inside
        if key not in self._in_stages:
            with IMPORT_LOCK:
                from armillary.formats.mesh.usd import StageMeshes  # for USD alone

            if path not in self._stages:
                name = os.fspath(path)
                self._stages[path] = StageMeshes(name, self._roots, self._report)
            self._in_stages[key] = self._stages[path].surface(inside)
        return self._in_stages[key]

    def _refuse(self, found: Diagnostic) -> None:
        """Warn of a file that is missing, where that is allowed; raise otherwise."""
        if self._missing != "warn" or found.code not in MISSING:
            raise FormatError(found)
        warned = (each.message for each in self._report.diagnostics)
        if found.message not in warned:
            self._report.warning(
                found.place, found.code, found.message, hint=found.hint
            )


class _Noted:
    """Files whose contents are noted when they are read.

    roots: Where they are.
    reference: To the first one, `path`.
    """

    def __init__(self, roots: Files, reference: str, path: Path) -> None:
        self._roots = roots
        self._references = {path: reference}
        self._contents: dict[Path, bytes] = {}

    @property
    def files(self) -> list[MeshFile]:
        """Return what was read, in that order."""
        return [
            MeshFile(self._references[path], path, data)
            for path, data in self._contents.items()
        ]

    def find(
        self, reference: str, *, base: str | os.PathLike[str], place: Place
    ) -> Path | Diagnostic:
        """Return the file that a reference names, see `Files.find`."""
        found = self._roots.find(reference, base=base, place=place)
        if isinstance(found, Path):
            self._references.setdefault(found, reference)
        return found

    def read(self, path: str | os.PathLike[str], cap: int = FILE_SIZE.most) -> bytes:
        """Return the bytes of a file, and note them."""
        return self._contents.setdefault(Path(path), self._roots.read(path, cap))

    def size(self, path: str | os.PathLike[str]) -> int:
        """Return the number of bytes of a file."""
        return self._roots.size(path)

    def on_disk(
        self, path: str | os.PathLike[str]
    ) -> AbstractContextManager[tuple[Path, Roots]]:
        """Return where a stage is on disk, see `Files.on_disk`."""
        return self._roots.on_disk(path)


class _WithWarnings(Exception):
    """A mesh was read with warnings, which later processes are to give, too."""

    def __init__(self, corners: Corners) -> None:
        super().__init__()
        self.corners = corners


def images_of(data: bytes) -> list[str]:
    """Return the references to images in a COLLADA file, the first ones of many."""
    found = (unquote(each.decode("utf-8", "replace")) for each in IMAGE.findall(data))
    return list(islice(dict.fromkeys(found), OBJ_LIBRARIES.most))


def mesh_files(
    path: str | os.PathLike[str],
    packages: Mapping[str, str | os.PathLike[str]] | None,
    folders: Iterable[str | os.PathLike[str]],
) -> MeshFiles:
    """Return what reads the meshes of a model's file; see `Roots` for the folders."""
    base = os.path.dirname(os.path.abspath(path))
    return MeshFiles(base, roots=Roots(packages=packages, folders=folders))


def _again(
    base: Path, roots: Files, missing: Literal["error", "warn"], size_cap: int
) -> MeshFiles:
    """Return what reads the same meshes, in another process, where nothing is read."""
    return MeshFiles(base, roots=roots, missing=missing, size_cap=size_cap)


def _hull(
    triangles: Triangles, tolerance: float | None, *, is_kept: bool = False
) -> Corners:
    """Return the corners of a hull, see `MeshFiles.hull`.

    is_kept: Whether the caller keeps them for later processes.
    """
    with IMPORT_LOCK:
        from armillary.model.shapes.convex_polyhedron import (
            MOST_VERTICES,
            ConvexPolyhedron,
        )

    points = triangles.vertices[distinct_numbers(triangles.faces)]
    if tolerance is not None:
        return ConvexPolyhedron.around(points, tolerance=tolerance).vertices
    size = float(np.ptp(points, axis=0).max())
    if size == 0.0:
        raise ModelError("All corners of the mesh are at one point.")

    def made() -> list[npt.NDArray[np.float64]]:
        with IMPORT_LOCK:
            from armillary.model.geometry.hull import outer_hull

        corners, allowed = None, HULL_TOLERANCE * size
        while corners is None:
            corners = outer_hull(points, allowed, most=MOST_VERTICES)
            allowed *= 2.0
        return [corners]

    # SciPy alone takes longer to import than all hulls of a robot to load.
    (corners,) = (
        made()
        if is_kept
        else cached_arrays("hull", [points], made, made_by=HULL_MAKERS)
    )
    return tuple(map(tuple, corners.tolist()))
