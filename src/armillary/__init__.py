"""Model any robot workcell, with any joints, and compute with it at native speed."""

from __future__ import annotations

from armillary.errors import (
    ArmillaryError,
    FormatError,
    JointError,
    KernelError,
    ModelError,
    ShapeError,
    StateError,
    TraceError,
    UnknownName,
)
from armillary.model import joints
from armillary.model.joint import Joint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.unit import Unit
from armillary.model.workcell import Mount
from armillary.solve.cell import Cell
from armillary.solve.state import State
from armillary.spatial.pose import Pose

METRE, RADIAN, OTHER = Unit.METRE, Unit.RADIAN, Unit.OTHER

__all__ = [
    "METRE",
    "OTHER",
    "RADIAN",
    "ArmillaryError",
    "Cell",
    "FormatError",
    "Joint",
    "JointError",
    "KernelError",
    "Link",
    "Manipulator",
    "ModelError",
    "Mount",
    "Pose",
    "ShapeError",
    "State",
    "StateError",
    "TraceError",
    "UnknownName",
    "joints",
]
