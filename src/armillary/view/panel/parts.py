"""The parts of the panel, one class each.

A part adds its controls when it is made, calls `session.change` when someone uses them,
and brings them in line when `show` says which state is shown. To add one, write a class
like its neighbours and list it in `PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable

from armillary.view.panel.assemblies import AssemblyControls
from armillary.view.panel.attachments import Attachments
from armillary.view.panel.bases import Bases
from armillary.view.panel.contacts import Contacts
from armillary.view.panel.history_buttons import HistoryButtons
from armillary.view.panel.joint_sliders import JointSliders
from armillary.view.panel.layer_switches import LayerSwitches
from armillary.view.panel.part import PanelPart
from armillary.view.panel.pose_table import PoseTable
from armillary.view.panel.targets import TargetControls
from armillary.view.session import Session

__all__ = ["PARTS"]


PARTS: tuple[Callable[[Session], PanelPart], ...] = (
    HistoryButtons,
    JointSliders,
    TargetControls,
    Attachments,
    Bases,
    AssemblyControls,
    Contacts,
    PoseTable,
    LayerSwitches,
)
"""The parts in the order of the panel."""
