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
        slopes: dq/ds there, shape (..., g, n).
    """

    torques: PathTorques | None
    tool: Array | None
    slopes: Array

    @property
    def has_viscous(self) -> bool:
        """Return whether torques depend on the path speed itself."""
        return self.torques is not None and self.torques.has_viscous

    @property
    def overloaded(self) -> npt.NDArray[np.bool_]:
        """Return which paths have a place whose torques at rest break limits."""
        return np.asarray(False) if self.torques is None else self.torques.overloaded

    def rows(self, speed: Array | None = None, *, is_alone: bool = False) -> Array:
        """Return a, b, lower and upper of each row, shape (..., g, r, 4).

        Args:
            speed: Path speeds as for `PathTorques.rows`.
            is_alone: Whether each place counts by itself; by default limits hold
                between places, too, where Coulomb friction changes its sign.
        """
        parts: list[Array] = []
        if self.torques is not None:
            torques = self.torques.rows(speed)
            parts.append(torques if is_alone else _at_turns(self.slopes, torques))
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
        return FurtherRows(torques, tool, points[..., 1, :])


def _at_turns(slopes: Array, rows: Array) -> Array:
    """Return rows of torques that hold on both sides of where joints turn back.

    Coulomb friction jumps there. The places before and behind get the narrower of the
    limits of both, unless these leave no room to rest.

    Args:
        slopes: dq/ds at places, shape (..., g, n).
        rows: As `PathTorques.rows` returns them, one or two for each joint.
    """
    turns = slopes[..., 1:, :] * slopes[..., :-1, :] < 0.0
    if not turns.any():
        return rows
    lower, upper = rows[..., 2], rows[..., 3]
    least = np.maximum(lower[..., 1:, :], lower[..., :-1, :])
    most = np.minimum(upper[..., 1:, :], upper[..., :-1, :])
    turns = np.concatenate([turns] * (rows.shape[-2] // slopes.shape[-1]), axis=-1)
    narrower = turns & (least < 0.0) & (most > 0.0)
    rows = rows.copy()
    for part in (slice(1, None), slice(None, -1)):
        low, high = rows[..., part, :, 2], rows[..., part, :, 3]
        low[narrower] = np.maximum(low, least)[narrower]
        high[narrower] = np.minimum(high, most)[narrower]
    return rows
