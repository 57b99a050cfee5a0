"""How far a frame can be from where its joints begin: a bound that proves a miss."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.errors import NotCompiled
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.speed_bounds import Range, farthest, ranges_of
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.spatial.pose import Pose

Array = npt.NDArray[np.float64]


def reach_of(
    tree: Tree,
    frame: FrameRef,
    relative_to: FrameRef,
    selection: Inputs,
    limits: tuple[Array, Array],
) -> tuple[Array, float]:
    """Return a point, shape (3,), and how far from it a frame can be at most [m].

    The point is the inner origin of the first joint that may move on the path; the
    distance sums true upper bounds of all that follows. It is infinite where the
    frame in which targets are given moves itself.

    Args:
        tree: What moves.
        frame: The frame that is placed.
        relative_to: The frame in which targets are given.
        selection: Which joints may move.
        limits: Least and greatest q of those, each of shape (n,).
    """
    root = tree.common_ancestor([frame.link, relative_to.link])
    if root != relative_to.link:
        return np.zeros(3), math.inf
    pose = relative_to.pose.inverse()
    reach, moving = 0.0, False

    def follow(X: Pose) -> None:
        """Add what is rigid: to the pose before the first joint, to the reach after."""
        nonlocal pose, reach
        if moving:
            reach += float(np.linalg.norm(X.position))
        else:
            pose = pose @ X

    def range_of(joint: int) -> Range:
        if joint in selection.passive:
            lower, upper, _ = tree.cell.joints.ranges
            return float(lower[joint]), float(upper[joint])
        if joint in selection.inputs:
            k = selection.inputs.index(joint)
            return float(limits[0][k]), float(limits[1][k])
        rest = selection.rest[joint]
        return rest, rest

    for link in reversed(tree.path(root, frame.link)):
        for base in tree.bases_among([link]):
            follow(tree.bases[base].frame.pose)
        joint, drives = tree.cell.links[link].joint, tree.drives[link]
        follow(joint.precursor)
        if not drives:
            continue
        ranges = ranges_of(drives, range_of)
        if all(low == high for low, high in ranges):
            follow(joint.motion.pose(*(low for low, _ in ranges)))
        elif len(ranges) > 1:  # its bound takes long, and is too loose to prove much
            return np.zeros(3), math.inf
        else:
            moving = True
            try:
                reach += farthest(joint, ranges)
            except NotCompiled:  # a script that runs as Python
                return np.zeros(3), math.inf
    reach += float(np.linalg.norm(frame.pose.position))
    return np.array(pose.position, dtype=np.float64), reach
