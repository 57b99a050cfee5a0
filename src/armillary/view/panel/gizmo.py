"""A gizmo: axes, planes and arcs to drag a pose with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.spatial.pose import Pose
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["NO_GIZMO", "PART_OF_SCENE", "Gizmo"]

Array = npt.NDArray[np.float64]

NO_GIZMO: Final = "(no gizmo)"
"""What people choose to hide a gizmo."""

PART_OF_SCENE: Final = 0.12
"""How long its axes are, as a part of the size of the scene."""


class Gizmo:
    """A gizmo in the scene."""

    def __init__(
        self,
        session: Session,
        name: str,
        *,
        dragged: Callable[[Array], None],
        released: Callable[[], None],
    ) -> None:
        """Add a gizmo that is hidden.

        Args:
            session: The session in which it appears.
            name: The name of its node.
            dragged: Called with its pose in the world, shape (4, 4), while it moves.
            released: Called when it is let go.
        """
        self._controls = session.server.scene.add_transform_controls(
            name,
            scale=PART_OF_SCENE * session.scene.size,
            depth_test=False,
            visible=False,
        )
        self._hands: set[int] = set()
        """The browsers in which it is dragged."""
        moves = by_people(session, lambda: dragged(self.pose), newest=True)
        ends = by_people(session, released)

        @self._controls.on_update
        def _(event: Any) -> None:
            if event.phase == "start":
                self._hands.add(event.client_id)
            elif event.phase == "update":
                moves(event)
            else:
                self._hands.discard(event.client_id)
                ends(event)

    @property
    def is_dragged(self) -> bool:
        """Return whether someone drags it now; it then stays as they have it."""
        return bool(self._hands)

    @property
    def pose(self) -> Array:
        """Return its pose in the world, shape (4, 4)."""
        wxyz, position = self._controls.wxyz, self._controls.position
        return Pose.from_quaternion(wxyz.tolist(), position.tolist()).matrix()

    def put(self, X: Array | None) -> None:
        """Show it at a pose, shape (4, 4), or hide it; ignored while it is dragged."""
        if self.is_dragged:
            return
        if X is not None:
            pose = Pose.from_matrix(X)
            self._controls.position = np.array(pose.position, np.float64)
            self._controls.wxyz = np.array(pose.quaternion(), np.float64)
        if self._controls.visible != (X is not None):
            self._controls.visible = X is not None
