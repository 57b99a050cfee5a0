"""PLY, binary and text."""

from __future__ import annotations

from armillary.formats.mesh.ply.read import read_ply

__all__ = ["read_ply"]
