"""The files that a workcell refers to, and which of them may be opened."""

from __future__ import annotations

import os
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.paths import Roots

__all__ = ["FileFinder"]

MISSING: Final = "reference-missing"
MOST_MESHES: Final = 2000
MESH_SUFFIXES: Final = (
    *("", ".stl", ".stla", ".stlb", ".obj"),
    *(".3ds", ".ac", ".ac3d", ".tri", ".dae"),
)
"""What RobWork adds to a file name without a suffix, some of it in another order."""


class FileFinder:
    """Finds the files that a workcell and the files included in it refer to.

    Besides the roots that the caller allows, everything in the folder of the first
    file may be referred to.
    """

    def __init__(self, path: str, roots: Roots) -> None:
        self._roots = roots
        self._folder = os.path.dirname(os.path.abspath(path))
        self._home = Roots(folders=[self._folder])
        self._meshes: dict[tuple[str, str], str] = {}
        self._missing: list[tuple[Place, str]] = []

    def find(self, reference: str, place: Place) -> str | Diagnostic:
        """Return the path of a plain file, or why a reference cannot be followed.

        reference: A path; on Windows it is often written with backslashes.
        place: Location of the reference; relative paths start in the folder of its
            file.
        """
        reference = reference.replace("\\", "/")
        base = _folder_of(place)
        found = self._roots.find(reference, base=base, place=place)
        if isinstance(found, Diagnostic) and found.code == "reference-outside":
            absolute = os.path.join(base, reference)
            at_home = self._home.find(absolute, base=self._folder, place=place)
            if not isinstance(at_home, Diagnostic) or at_home.code == MISSING:
                found = at_home
        return found if isinstance(found, Diagnostic) else str(found)

    def shown(self, reference: str, outer: str, found: str) -> str:
        """Return the path of a file that was found, as messages show it.

        outer: The path of the file that refers to it.
        """
        reference = reference.replace("\\", "/")
        path = os.path.normpath(os.path.join(os.path.dirname(outer), reference))
        return path if os.path.realpath(path) == found else found

    def from_first(self, reference: str, place: Place) -> str:
        """Return a reference as the first file would write it, found or not."""
        path = os.path.join(_folder_of(place), reference.replace("\\", "/"))
        return os.path.relpath(path, self._folder).replace(os.sep, "/")

    # Meshes, which are looked up, but not opened

    def mesh(self, reference: str, place: Place, report: Report) -> str:
        """Return the path of a mesh from the folder of the first file.

        The suffix is added if a file with one of those that RobWork tries exists.
        """
        reference = reference.replace("\\", "/")
        key = (_folder_of(place), reference)
        if key not in self._meshes:
            if len(self._meshes) < MOST_MESHES:
                reference += self._suffix(reference, place, report)
            is_relative = not os.path.isabs(reference)
            path = self.from_first(reference, place) if is_relative else reference
            self._meshes[key] = path
        return self._meshes[key]

    def _suffix(self, reference: str, place: Place, report: Report) -> str:
        """Return what the name of a mesh lacks; report a missing or forbidden file."""
        path = os.path.join(_folder_of(place), reference)
        for suffix in MESH_SUFFIXES:
            if _is_file(path + suffix):
                found = self.find(reference + suffix, place)
                if isinstance(found, Diagnostic):
                    report.warning(place, found.code, found.message, hint=found.hint)
                return suffix
        self._missing.append((place, reference))
        return ""

    def report_missing(self, report: Report) -> None:
        """Report how many meshes are missing, in one warning."""
        if not self._missing:
            return
        place, first = self._missing[0]
        others = f" and {len(self._missing) - 1} more" if self._missing[1:] else ""
        report.warning(
            place,
            "missing-mesh",
            f"there is no file for the geometry {quote(first)}{others}, of "
            f"{len(self._meshes)} in all; shapes keep the names",
            hint="Poses need none of them; drawing and collisions do.",
        )


def _folder_of(place: Place) -> str:
    """Return the folder of the file that refers to another."""
    return os.path.dirname(os.path.abspath(place.path))


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False
