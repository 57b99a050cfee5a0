"""GLB, the binary form of glTF 2.0."""

from __future__ import annotations

from armillary.formats.mesh.glb.read import read_glb

__all__ = ["read_glb"]
