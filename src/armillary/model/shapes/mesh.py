"""Meshes in files."""

from __future__ import annotations

import msgspec

from armillary.model.fields import ThreeFloats, default
from armillary.model.shape import Shape


class Mesh(Shape, frozen=True, kw_only=True, tag="mesh"):
    """Triangles in a file, which is read only when they are asked for.

    Attributes:
        file: The reference as the model's file gives it.
        scale: Factors along x, y, z; below 0 where the file is mirrored.
    """

    file: str
    scale: ThreeFloats = default((1.0, 1.0, 1.0))

    def check(self) -> None:
        """Check that there is a reference, and the factors."""
        if not self.file.strip():
            raise self._fault("it names no file")
        items = self._items(self.scale, "scale", 3)
        scale = tuple(self._coordinate(item, "scale") for item in items)
        msgspec.structs.force_setattr(self, "scale", scale)
