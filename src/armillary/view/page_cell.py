"""What a page knows of a cell: what carries each link, and its motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kinematics.moving_links import (
    MovingLinks,
    moving_links,
    poses_of_links,
)
from armillary.kinematics.poses import FixedTo
from armillary.kinematics.state import State
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.view.kinds import Drawings
from armillary.view.motion import Motion
from armillary.view.scene import node_of

__all__ = ["cell_data"]

Array = npt.NDArray[np.float64]


def cell_data(
    cell: Workcell, state: State, found: Drawings, motion: Motion | None
) -> dict[str, Any]:
    """Return what `PageCell` and `PageServer` know of a cell; see `page/cell.js`.

    state: The first one of the motion, if there is a motion.
    """
    moving = moving_links(cell)
    states = [state]
    if motion is not None:
        states = [motion.state(k) for k in range(len(motion.times))]
    carriers = _Carriers(moving, states)
    drawn = sorted({each.link for each in found.items} - {WORLD_LINK})
    frames = {
        name: {"name": name, **carriers.place(at.link, at.pose)}
        for name in cell.frame_names
        for at in [cell.frame(name)]
    }
    return {
        "joints": cell.joint_names,
        "movingLinks": [
            "world",
            *(state.tree.name(link) for link in moving.links[1:]),
        ],
        "q": state.q,
        "poses": _poses(moving, state).ravel(),
        "bases": carriers.bases,
        "links": [{"node": node_of(k), **carriers.place(k)} for k in drawn],
        "frames": list(frames.values()),
        "rods": [[frames[a], frames[b]] for a, b in found.rods],
        "motion": None if motion is None else _motion(motion, states, carriers),
    }


class _Carriers:
    """The rows of poses that links and frames are fixed to.

    They are those of moving links, then one for each base that does not stay where it
    is in the states: that is moved, attached or released.
    """

    def __init__(self, moving: MovingLinks, states: Sequence[State]) -> None:
        self.moving = moving
        self._tree = states[0].tree
        everyone = range(len(moving.cell.manipulators))
        known = {each.placements: each.tree for each in states}
        places = [
            [moving.mounted(tree, m) for m in everyone] for tree in known.values()
        ]
        self._first = places[0]
        changing = [
            m for m in everyone if any(each[m] != self._first[m] for each in places)
        ]
        self._rows = {m: moving.count + k for k, m in enumerate(changing)}

    @property
    def bases(self) -> list[dict[str, Any]]:
        """Return for each of their rows what carries it in the first state."""
        return [_fixed(self._first[m]) for m in self._rows]

    def place(self, link: int, within: Pose = IDENTITY) -> dict[str, Any]:
        """Return the row that carries a frame of a link, and its pose in that."""
        row, pose = self.moving.fixed_to(self._tree, link)
        owners = self.moving.cell.owners
        own = self._rows.get(owners[link]) if link >= 0 else None
        carrier = self.moving.links[row]
        if own is not None and (carrier < 0 or owners[carrier] != owners[link]):
            pose = self._first[owners[link]].pose.inverse() @ pose
            row = own
        return _fixed(FixedTo(row, pose @ within))

    def poses(self, state: State) -> Array:
        """Return the poses of all rows in a state, shape (rows, 3, 4)."""
        links = _poses(self.moving, state)
        if not self._rows:
            return links
        mounted = [self.moving.mounted(state.tree, m) for m in self._rows]
        bases = [links[row] @ pose.matrix() for row, pose in mounted]
        return np.concatenate([links, bases])


def _fixed(at: FixedTo) -> dict[str, Any]:
    return {"row": at.row, "pose": at.pose.matrix()[:3].ravel().tolist()}


def _poses(moving: MovingLinks, state: State) -> Array:
    """Return the poses of moving links in a state, shape (count, 3, 4)."""
    found = poses_of_links(moving, state)(state.q[np.newaxis])
    return np.asarray(found[0], np.float64)


def _motion(
    motion: Motion, states: Sequence[State], carriers: _Carriers
) -> dict[str, Any]:
    """Return the joint positions at each instant, and where obstacles are.

    The poses of all rows go with them where the page cannot compute them: it has
    formulas of the first state.
    """
    first = states[0]
    found: dict[str, Any] = {
        "times": motion.times,
        "obstacles": motion.obstacles.poses[..., :3, :].astype(np.float32),
        "q": np.array([each.q for each in states], np.float64),
    }
    is_alike = all(each.placements == first.placements for each in states)
    if not carriers.moving.is_compiled or not is_alike or first.passive.size:
        found["poses"] = np.array([carriers.poses(each) for each in states])
    return found
