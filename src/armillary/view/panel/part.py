"""The contract of the parts of a panel."""

from __future__ import annotations

from typing import Protocol

from armillary.kinematics.state import State

__all__ = ["PanelPart"]


class PanelPart(Protocol):
    """A part of the panel."""

    def show(self, state: State) -> None:
        """Bring the controls in line with the state that is shown."""
        ...
