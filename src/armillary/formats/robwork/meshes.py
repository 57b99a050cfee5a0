"""The files that geometry is in: named as seen from the first file, and looked up."""

from __future__ import annotations

import os
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.robwork.expand import Follower

__all__ = ["Meshes"]

ENDINGS: Final = (
    "",
    ".stl",
    ".stla",
    ".stlb",
    ".obj",
    ".3ds",
    ".ac",
    ".ac3d",
    ".tri",
    ".dae",
)
"""What RobWork adds to a name without an ending, some of it in another order."""

MOST_LOOKED_UP: Final = 2000


class Meshes:
    """Turns a reference in any file into one in the first file, and counts the missing.

    Nothing is opened.
    """

    def __init__(self, follower: Follower, report: Report) -> None:
        self._follower = follower
        self._report = report
        self._known: dict[tuple[str, str], str] = {}
        self._missing: list[tuple[Place, str]] = []

    def resolve(self, reference: str, place: Place) -> str:
        """Return the path of a mesh in the folder of the first file.

        The ending is added where a file with one of those that RobWork tries exists.
        """
        reference = reference.replace("\\", "/")
        folder = os.path.dirname(os.path.abspath(place.path))
        key = (folder, reference)
        if key not in self._known:
            self._known[key] = self._look_up(reference, folder, place)
        return self._known[key]

    def _look_up(self, reference: str, folder: str, place: Place) -> str:
        path = os.path.join(folder, reference)
        if len(self._known) < MOST_LOOKED_UP:
            ending = next((e for e in ENDINGS if _is_file(path + e)), None)
            if ending is None:
                self._missing.append((place, reference))
            else:
                reference, path = reference + ending, path + ending
                self._check_allowed(reference, place)
        if os.path.isabs(reference):
            return reference
        return os.path.relpath(path, self._follower.folder).replace(os.sep, "/")

    def _check_allowed(self, reference: str, place: Place) -> None:
        found = self._follower.find(reference, place)
        if isinstance(found, Diagnostic):
            self._report.warning(place, found.code, found.message, hint=found.hint)

    def tell(self) -> None:
        """Report how many files are missing, in one warning."""
        if not self._missing:
            return
        place, first = self._missing[0]
        count = len(self._missing)
        others = f" and {count - 1} more" if count > 1 else ""
        self._report.warning(
            place,
            "missing-mesh",
            f"there is no file for the geometry {quote(first)}{others}, of "
            f"{len(self._known)} in all; shapes keep the names",
            hint="Poses need none of them; drawing and collisions do.",
        )


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False
