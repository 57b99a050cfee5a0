"""The panel beside the scene: one class for each of its parts.

A part adds its controls when it is made, calls `viewer.change` when someone uses them,
and brings them in line when `show` says which state is shown. To add one, write a class
like its neighbours and list it in `PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from armillary.kinematics.state import State
from armillary.view.panel.assemblies import Assemblies
from armillary.view.panel.attachments import Attachments
from armillary.view.panel.bases import Bases
from armillary.view.panel.contacts import Contacts
from armillary.view.panel.history_buttons import HistoryButtons
from armillary.view.panel.joint_sliders import JointSliders
from armillary.view.panel.layer_switches import LayerSwitches
from armillary.view.panel.pose_table import PoseTable
from armillary.view.panel.targets import Targets

if TYPE_CHECKING:
    from armillary.view.viewer import Viewer

__all__ = ["PARTS", "Part"]


class Part(Protocol):
    """A part of the panel."""

    def show(self, state: State) -> None:
        """Bring the controls in line with the state that is shown."""
        ...


PARTS: tuple[Callable[[Viewer], Part], ...] = (
    HistoryButtons,
    JointSliders,
    Targets,
    Attachments,
    Bases,
    Assemblies,
    Contacts,
    PoseTable,
    LayerSwitches,
)
"""The parts in the order of the panel."""
