"""COLLADA, the format of .dae files."""

from __future__ import annotations

from armillary.formats.mesh.dae.read import read_dae

__all__ = ["read_dae"]
