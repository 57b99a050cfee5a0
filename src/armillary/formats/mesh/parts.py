"""Pieces of a mesh on their way from a file, checked and counted."""

from __future__ import annotations

from typing import Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Place, Severity
from armillary.model.geometry.triangles import Triangles

__all__ = ["MOST_FACES", "MOST_VERTICES", "Parts", "refusal", "too_many"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_VERTICES: Final = 12_000_000
MOST_FACES: Final = 4_000_000
MOST_PARTS: Final = 10_000
LARGEST: Final = 1e15


def refusal(place: Place, code: str, message: str, *, hint: str = "") -> FormatError:
    """Return the error for a fault of a mesh file."""
    return FormatError(
        Diagnostic(
            place=place,
            severity=Severity.ERROR,
            code=code,
            message=message,
            hint=hint,
        )
    )


@final
class Parts:
    """The parts of one mesh; each has its own corners.

    path: What the file is called in messages.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._vertices: list[Array] = []
        self._faces: list[Indices] = []
        self._vertex_count = 0
        self._face_count = 0

    def add(self, vertices: Array, faces: Indices, place: Place) -> None:
        """Add corners [m], shape (n, 3), and triangles of them, shape (m, 3).

        Raises:
            FormatError: A corner is not finite or not there, or they are too many.
        """
        offset = self._vertex_count
        self._vertex_count += len(vertices)
        self._face_count += len(faces)
        if self._vertex_count > MOST_VERTICES or self._face_count > MOST_FACES:
            raise too_many(place)
        if len(self._vertices) == MOST_PARTS:
            raise refusal(
                place, "mesh-too-large", f"the mesh has more than {MOST_PARTS} parts"
            )
        is_good = (np.abs(vertices) <= LARGEST).all(axis=1)
        if not is_good.all():
            row = int(np.argmin(is_good))
            raise refusal(
                place,
                "bad-number",
                f"vertex {row + 1} is {vertices[row].tolist()}, no place in a workcell",
            )
        is_there = ((faces >= 0) & (faces < len(vertices))).all(axis=1)
        if not is_there.all():
            row = int(np.argmin(is_there))
            raise refusal(
                place,
                "bad-index",
                f"triangle {row + 1} has the corners {faces[row].tolist()}, counted "
                f"from 0, but there are only {len(vertices)}",
            )
        self._vertices.append(vertices)
        self._faces.append(faces + offset)

    def joined(self) -> Triangles:
        """Return all parts together, equal corners made one.

        Raises:
            FormatError: There are no triangles, or all have shrunk to nothing.
        """
        if self._faces:
            joined = Triangles(np.vstack(self._vertices), np.vstack(self._faces))
            welded = joined.welded()
            if len(welded.faces):
                return welded
        raise refusal(
            Place(self._path),
            "empty-mesh",
            "there are no triangles in this file",
            hint="Was the right thing exported?",
        )


def too_many(place: Place) -> FormatError:
    """Return the error for a mesh that nobody could use."""
    return refusal(
        place,
        "mesh-too-large",
        f"there are more than {MOST_VERTICES} vertices or {MOST_FACES} triangles",
        hint="Make the mesh coarser.",
    )
