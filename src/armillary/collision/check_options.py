"""What a check for collision is made with."""

from __future__ import annotations

from typing import NamedTuple

from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource

__all__ = ["CheckOptions"]


class CheckOptions(NamedTuple):
    """What a check is made with, as in `collision`."""

    rules: Rules | None = None
    margin: float = 0.0
    meshes: MeshSource | None = None
    exact: bool = False
