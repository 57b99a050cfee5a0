"""The chain between two frames as screws: axes as lines while all q are zero.

T(q) = exp([S_1] q_1) ... exp([S_n] q_n) M, the product of exponentials (Brockett 1984),
whatever the joints are called: each is judged by its motion.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import NotApplicable, require
from armillary.ik.problem import Goal
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.pose import IDENTITY

Array = npt.NDArray[np.float64]

STILL = 1e-12
PURE = 1e-9
SAMPLES = 97
WIDE = 4.0 * math.pi  # what is looked at of a range without limits [m or rad]


class ScrewAxis(NamedTuple):
    """A joint of a chain.

    Attributes:
        place: Which joint of q drives it.
        turns: Whether it turns; else it slides.
        axis: Direction, shape (3,), of length 1.
        point: A point of the axis [m], shape (3,); of no meaning where it slides.
        gain: Angle [rad] or length [m] per unit of q, above 0.
    """

    place: int
    turns: bool
    axis: Array
    point: Array
    gain: float


class Chain(NamedTuple):
    """Joints one behind the other, and where they carry a frame at q = 0.

    Attributes:
        screws: From the first joint to the last, in the frame of the targets.
        home: The pose M, shape (4, 4).
        numbers: What to call each joint in messages.
    """

    screws: tuple[ScrewAxis, ...]
    home: Array
    numbers: tuple[int, ...]

    def reversed(self) -> Chain:
        """Return the chain of T(q)^-1 = exp(-[S'_n] q_n) ... exp(-[S'_1] q_1) M^-1.

        S' are the screws seen from the moved frame, so the last joint comes first.
        """
        back: Array = np.linalg.inv(self.home).astype(np.float64)
        turn, shift = back[:3, :3], back[:3, 3]
        screws = [
            screw._replace(axis=-turn @ screw.axis, point=turn @ screw.point + shift)
            for screw in reversed(self.screws)
        ]
        return Chain(tuple(screws), back, self.numbers[::-1])


def chain_of(
    tree: Tree, frame: FrameRef, relative_to: FrameRef, selection: Inputs
) -> Chain:
    """Return the chain of the chosen joints that carry `frame` in `relative_to`.

    Raises:
        NotApplicable: A joint is neither revolute nor prismatic, moves a mechanism, or
            drives two links of the path.
    """
    zero = selection.vector([0.0] * len(selection.inputs))
    (home,) = poses_of(tree, zero, [frame], relative_to)
    twist = Twist(frame, relative_to, relative_to, relative_to)
    columns = np.array(jacobian(tree, zero, twist), dtype=np.float64)
    path = [
        (link, drive.of)
        for link in _path(tree, frame, relative_to)
        for drive in tree.drives[link]
        if drive.of in selection.inputs
    ]
    used = [k for _, k in path]
    screws: list[ScrewAxis] = []
    for link, k in path:
        name = tree.cell.joint_names[k]
        one = used.count(k) == 1
        require(one, f"'{name}' moves more than one link between the two frames")
        alone = len(tree.drives[link]) == 1
        require(alone, f"'{name}' moves a mechanism, with other joints")
        line = _is_screw(tree, link)
        require(
            line,
            f"'{name}' neither turns about a line nor slides along one in proportion "
            "to q",
        )
        screws.append(_screw(selection.inputs.index(k), columns[k], name))
    return Chain(tuple(screws), home.matrix(), tuple(range(1, len(screws) + 1)))


def inner_goal(tree: Tree, goal: Goal, selection: Inputs) -> Goal | None:
    """Return the goal between the outermost links that chosen joints move.

    What lies outside of them is constant in q, so that a target for the goal is one
    for the inner goal. It is None where other inputs of the selection lie inside.
    """
    ends, chosen = (goal.frame.link, goal.relative_to.link), {*selection.inputs}
    root = tree.common_ancestor(ends)
    moved = [
        [
            link
            for link in tree.path(root, end)
            if not chosen.isdisjoint(tree.moving_joints([link]))
        ]
        for end in ends
    ]
    links = [
        here[0] if here else tree.parents[there[-1]]
        for here, there in (moved, moved[::-1])
    ]
    frame, relative_to = (FrameRef(link, IDENTITY) for link in links)
    inside = Inputs.between(
        tree, [frame, relative_to], selection.inputs, selection.rest
    )
    return (
        None if inside.shapes else goal._replace(frame=frame, relative_to=relative_to)
    )


def _path(tree: Tree, frame: FrameRef, relative_to: FrameRef) -> list[int]:
    """Return the links between two frames, from `relative_to` on."""
    ends = [relative_to.link, frame.link]
    root = tree.common_ancestor(ends)
    up, down = (tree.path(root, end) for end in ends)
    return [*up, *reversed(down)]


def _screw(place: int, column: Array, name: str) -> ScrewAxis:
    """Return the screw of a column of the Jacobian, taken at the common origin."""
    v, w = column[:3], column[3:]
    speed, rate = float(np.linalg.norm(v)), float(np.linalg.norm(w))
    if rate > STILL:
        if abs(v @ w) > PURE * rate * max(rate, speed):
            raise NotApplicable(f"'{name}' turns and slides at once")
        return ScrewAxis(place, True, w / rate, np.cross(w, v) / rate**2, rate)
    if speed > STILL:
        return ScrewAxis(place, False, v / speed, np.zeros(3), speed)
    raise NotApplicable(f"'{name}' does not move the frame")


def _is_screw(tree: Tree, link: int) -> bool:
    """Return if pose(q) = pose(q_0) exp([S] (q - q_0)) with one S for its range."""
    joint, (drive,) = tree.cell.links[link].joint, tree.drives[link]
    ends = [float(limit[drive.of]) for limit in tree.cell.limits]
    low, high = (
        min(max(end, -WIDE), WIDE) * drive.multiplier + drive.offset for end in ends
    )
    q: Array = np.linspace(low, high, SAMPLES, dtype=np.float64)
    poses = joint.motion.poses(q)
    R, p = poses[0, :, :3], poses[0, :, 3]
    moved = _exponentials(
        np.array(joint.motion.columns(float(q[0]))[0], dtype=np.float64), q - q[0]
    )
    turned = R @ moved[:, :, :3]
    shifted = moved[:, :, 3] @ R.T + p
    size = 1.0 + float(np.abs(p).max())
    return bool(
        (np.abs(turned - poses[:, :, :3]) < PURE).all()
        and (np.abs(shifted - poses[:, :, 3]) < PURE * size).all()
    )


def _exponentials(V: Array, q: Array) -> Array:
    """Return exp([V] q) for many q, shape (k, 3, 4), by Rodrigues' formula."""
    v, w = V[:3], V[3:]
    rate = float(np.linalg.norm(w))
    poses = np.zeros((len(q), 3, 4))
    if rate < STILL:
        poses[:, :, :3] = np.eye(3)
        poses[:, :, 3] = q[:, None] * v
        return poses
    x, y, z = w / rate
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = (rate * q)[:, None, None]
    sin, rest = np.sin(angle), 1.0 - np.cos(angle)
    poses[:, :, :3] = np.eye(3) + sin * K + rest * (K @ K)
    mean = angle * np.eye(3) + rest * K + (angle - sin) * (K @ K)
    poses[:, :, 3] = mean @ v / rate
    return poses
