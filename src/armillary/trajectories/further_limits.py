"""Limits along paths beside those of joints: of torques, and of a frame.

At each place of a path they are rows lower <= a u + b x <= upper of x = s'^2 and the
path acceleration u = s''.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.trajectories.tool_limits import ToolLimits
from armillary.trajectories.torques import PathTorques, path_torques

__all__ = ["FurtherLimits", "FurtherRows"]

Array = npt.NDArray[np.float64]


class FurtherRows(NamedTuple):
    """Further limits at places of paths.

    Attributes:
        torques: The torques there, if they are limited.
        tool: Rows of a frame, shape (..., g, r, 4), if it is limited.
    """

    torques: PathTorques | None
    tool: Array | None

    @property
    def has_viscous(self) -> bool:
        """Return whether torques depend on the path speed itself."""
        return self.torques is not None and self.torques.has_viscous

    @property
    def overloaded(self) -> npt.NDArray[np.bool_]:
        """Return which paths have a place whose torques at rest break limits."""
        return np.asarray(False) if self.torques is None else self.torques.overloaded

    def rows(self, speed: Array | None = None) -> Array:
        """Return a, b, lower and upper of each row, shape (..., g, r, 4).

        speed: Path speeds as for `PathTorques.rows`.
        """
        parts = [] if self.torques is None else [self.torques.rows(speed)]
        parts += [] if self.tool is None else [self.tool]
        batch = np.broadcast_shapes(*(each.shape[:-2] for each in parts))
        return np.concatenate(
            [np.broadcast_to(each, (*batch, *each.shape[-2:])) for each in parts],
            axis=-2,
        )


class FurtherLimits(NamedTuple):
    """Which further limits there are.

    Attributes:
        torque: Lower and upper limits [N m or N], shape (..., 2, n), if there are any.
        tool: Limits of a frame, if there are any.
        cell: What moves.
        joints: As the caller gives them.
        state: The state whose attachments and moved bases are used.
    """

    torque: Array | None
    tool: ToolLimits | None
    cell: Workcell
    joints: Joints
    state: State | None

    def along(self, points: Array) -> FurtherRows:
        """Return the limits at places of paths.

        points: Position, slope and curvature there, shape (..., g, 3, n).
        """
        torques = tool = None
        if self.torque is not None:
            torques = path_torques(
                self.cell, points, self.torque, joints=self.joints, state=self.state
            )
        if self.tool is not None:
            tool = self.tool.rows(self.cell, points, self.joints, self.state)
        return FurtherRows(torques, tool)
