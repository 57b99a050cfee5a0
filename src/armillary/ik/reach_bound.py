"""How far a frame can be from where its joints begin: a bound that proves a miss."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.ik.search_step import Goal
from armillary.kinematics.chains import Layout, common_ancestor, link_of, path_below
from armillary.kinematics.inputs import Inputs
from armillary.spatial.pose import IDENTITY, Pose

Array = npt.NDArray[np.float64]


def reach_of(
    layout: Layout, goal: Goal, selection: Inputs, limits: tuple[Array, Array]
) -> tuple[Array, float]:
    """Return a point, shape (3,), and how far from it a frame can be at most [m].

    The point is the inner origin of the first joint that may move on the path; the
    distance sums true upper bounds of all that follows. It is infinite where the
    frame in which targets are given moves itself.

    Args:
        layout: What moves.
        goal: Which frame, and in which.
        selection: Which joints may move.
        limits: Least and greatest q of those, each of shape (n,).
    """
    cell = layout.cell
    ends = [link_of(goal.frame), link_of(goal.relative_to)]
    root = common_ancestor(layout, ends)
    if root != ends[1]:
        return np.zeros(3), math.inf
    pose = goal.relative_to.pose.inverse()
    reach, moving = 0.0, False

    def follow(X: Pose) -> None:
        nonlocal pose, reach
        if moving:
            reach += float(np.linalg.norm(X.position))
        else:
            pose = pose @ X

    for m, k in reversed(path_below(layout, root, ends[0])):
        manipulator = cell.manipulators[m]
        if manipulator.parents[k] < 0:
            follow(layout.supports[m].pose)
        joint, drive = manipulator.links[k].joint, manipulator.drives[k]
        follow(joint.precursor)
        if drive is None:
            continue
        low, high = (
            drive.multiplier * q + drive.offset
            for q in _range(cell.offsets[m] + drive.of, selection, limits)
        )
        if low == high:
            follow(joint.motion.pose(low))
        else:
            moving = True
            bare = msgspec.structs.replace(joint, precursor=IDENTITY)
            reach += bare.origin_bound(low, high)
    reach += float(np.linalg.norm(goal.frame.pose.position))
    return np.array(pose.position, dtype=np.float64), reach


def _range(
    place: int, selection: Inputs, limits: tuple[Array, Array]
) -> tuple[float, float]:
    """Return between which values a joint of the cell may be."""
    if place in selection.inputs:
        k = selection.inputs.index(place)
        return float(limits[0][k]), float(limits[1][k])
    rest = selection.rest[place]
    return rest, rest
