"""The files that meshes of a model refer to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.files import SIZE_CAP
from armillary.formats.mesh.read import read_surface
from armillary.formats.mesh.surface import MeshPart, Surface
from armillary.formats.paths import Roots
from armillary.model.geometry.triangles import Triangles
from armillary.model.shapes import Mesh

__all__ = ["MeshFiles"]

MISSING: Final = ("reference-missing", "reference-package")


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
        roots: Roots | None = None,
        missing: Literal["error", "warn"] = "error",
        size_cap: int = SIZE_CAP,
    ) -> None:
        self._base = Path(base)
        self._roots = roots or Roots()
        self._missing = missing
        self._size_cap = size_cap
        self._read: dict[Path, Surface] = {}
        self._report = Report()

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

    def parts(
        self, mesh: Mesh, *, place: Place | None = None
    ) -> tuple[MeshPart, ...] | None:
        """Return the triangles of a mesh by colours.

        A colour of the shape itself counts instead of those in the file. Arguments and
        errors are those of `triangles`.
        """
        surface = self._surface(mesh, place)
        if surface is None:
            return None
        if mesh.colour is not None:
            return (MeshPart(surface.triangles().scaled(mesh.scale), mesh.colour),)
        return tuple(
            MeshPart(part.triangles.scaled(mesh.scale), part.colour)
            for part in surface.parts()
        )

    def _surface(self, mesh: Mesh, place: Place | None) -> Surface | None:
        found = self._roots.find(mesh.file, base=self._base, place=place or Place())
        if isinstance(found, Diagnostic):
            self._refuse(found)
            return None
        if found not in self._read:
            self._read[found] = read_surface(
                found, roots=self._roots, report=self._report, size_cap=self._size_cap
            )
        return self._read[found]

    def _refuse(self, found: Diagnostic) -> None:
        """Warn of a file that is missing, where that is allowed; raise otherwise."""
        if self._missing != "warn" or found.code not in MISSING:
            raise FormatError(found)
        warned = (each.message for each in self._report.diagnostics)
        if found.message not in warned:
            self._report.warning(
                found.place, found.code, found.message, hint=found.hint
            )
