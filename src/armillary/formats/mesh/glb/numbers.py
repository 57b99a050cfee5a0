"""The numbers that accessors of glTF stand for, looked up under checks."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place
from armillary.formats.mesh.glb.layout import Accessor, Document, View
from armillary.formats.mesh.parts import refusal

__all__ = ["Numbers"]

FLOAT: Final = 5126
WHOLE: Final = {5121: "<u1", 5123: "<u2", 5125: "<u4"}


class Numbers:
    """Look up the corners and triangles of a document.

    document: Of the file.
    binary: Its bytes.
    place: For messages.
    """

    def __init__(self, document: Document, binary: bytes, place: Place) -> None:
        self._document = document
        self._binary = binary
        self._place = place

    def corners(self, number: int) -> npt.NDArray[np.float64]:
        """Return the points of an accessor, shape (n, 3).

        Raises:
            FormatError: It does not exist, or is not what it should be.
        """
        accessor = self._accessor(number)
        if accessor.component_type != FLOAT or accessor.type != "VEC3":
            raise self._fault("bad-accessor", f"accessor {number} holds no points")
        return self._read(accessor, number, "<f4", 3).astype(np.float64)

    def indices(self, number: int) -> npt.NDArray[np.int64]:
        """Return the whole numbers of an accessor, shape (n,).

        Raises:
            FormatError: It does not exist, or is not what it should be.
        """
        accessor = self._accessor(number)
        kind = WHOLE.get(accessor.component_type)
        if kind is None or accessor.type != "SCALAR":
            raise self._fault("bad-accessor", f"accessor {number} holds no indices")
        return self._read(accessor, number, kind, 1).reshape(-1).astype(np.int64)

    def _accessor(self, number: int) -> Accessor:
        accessors = self._document.accessors
        if not 0 <= number < len(accessors):
            raise self._fault(
                "bad-index",
                f"there is no accessor {number}; there are {len(accessors)}",
            )
        return accessors[number]

    def _read(
        self, accessor: Accessor, number: int, kind: str, width: int
    ) -> npt.NDArray[np.float32]:
        """Return a view on numbers, shape (count, width)."""
        if accessor.sparse is not None or accessor.buffer_view is None:
            raise self._fault(
                "unsupported-accessor",
                f"accessor {number} is sparse or has no view, which is not read",
            )
        view = self._view(accessor.buffer_view)
        row = width * np.dtype(kind).itemsize
        stride = row if view.byte_stride is None else view.byte_stride
        end = accessor.byte_offset + max(0, accessor.count - 1) * stride + row
        is_inside = accessor.byte_offset >= 0 and end <= view.byte_length
        if accessor.count < 1 or stride < row or not is_inside:
            raise self._fault(
                "wrong-size",
                f"accessor {number} says {accessor.count} entries, which do not fit "
                f"into the {view.byte_length} bytes of its view",
            )
        return np.ndarray(
            (accessor.count, width),
            kind,
            self._binary,
            view.byte_offset + accessor.byte_offset,
            (stride, np.dtype(kind).itemsize),
        )

    def _view(self, number: int) -> View:
        views = self._document.buffer_views
        if not 0 <= number < len(views):
            raise self._fault(
                "bad-index", f"there is no view {number}; there are {len(views)}"
            )
        view = views[number]
        buffers = self._document.buffers
        if not 0 <= view.buffer < len(buffers):
            raise self._fault("bad-index", f"there is no buffer {view.buffer}")
        if view.buffer != 0 or buffers[0].uri is not None:
            raise self._fault(
                "reference-outside",
                "the triangles are in another file or in text, which is not read",
                "Export one GLB file that holds everything.",
            )
        end = view.byte_offset + view.byte_length
        if view.byte_offset < 0 or view.byte_length < 0 or end > len(self._binary):
            raise self._fault(
                "wrong-size",
                f"view {number} ends at byte {end}, but there are {len(self._binary)}",
            )
        return view

    def _fault(self, code: str, message: str, hint: str = "") -> Exception:
        return refusal(self._place, code, message, hint=hint)
