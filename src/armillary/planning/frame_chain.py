"""The joints between two frames, and bounds of how they move one as the other sees it.

Of joints in a chain, each with the rate v_k, a bound l_k of the speed of the frame at
unit rate and w_k of its turn, and b_k of `speed_bounds.bending`,

    |p'| <= sum_k l_k v_k,    |p''| <= sum_k (2 sum_{i < k} w_i v_i + b_k v_k) l_k v_k

since what a joint moves is turned by those before it: |d2p / dq_i dq_k| is at most
w_i l_k for i before k. A chain may begin at a frame that joints move, such as a
positioner's: seen from there these joints move the other frame, nearest first, by the
inverse motion, and by w_k more for each metre that it is away. For rotations the point
is any unit vector of the frame, with l = w.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.speed_bounds import SpeedBounds, zero_product
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree

__all__ = ["FrameChain", "second_bounds"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class FrameChain(NamedTuple):
    """The joints between two frames, nearest to the one that sees first.

    Attributes:
        coordinates: Which of those of `SpeedBounds` they are, shape (c,).
        rates: Rates of coordinates for unit rates of joints of q, shape (c, n).
        linear: Bounds of how fast each moves the frame [m per unit], shape (c,), at a
            distance of 0.
        angular: How fast each turns it [rad per unit], shape (c,).
        inverse: Which are on the side of the frame that sees, shape (c,).
    """

    coordinates: Indices
    rates: Array
    linear: Array
    angular: Array
    inverse: npt.NDArray[np.bool_]

    @classmethod
    def between(
        cls,
        moving: MovingLinks,
        tree: Tree,
        speeds: SpeedBounds,
        ends: tuple[FrameRef, FrameRef],
    ) -> Self:
        """Return the chain to a frame from the one that sees it.

        Args:
            moving: The moving links of the cell.
            tree: What its bases are attached to.
            speeds: Bounds of speeds of its links.
            ends: The frame, and the one that sees it.
        """
        frame, seen = (moving.fixed_to(tree, end.link) for end in ends)
        order = speeds.in_order()
        mine, theirs = speeds.carried[frame.row], speeds.carried[seen.row]
        inverse = order[(theirs & ~mine)[order]][::-1]
        both = np.concatenate([inverse, order[(mine & ~theirs)[order]]])
        is_inverse = np.arange(len(both)) < len(inverse)
        levers = [
            float(np.linalg.norm((at.pose @ end.pose).position))
            for at, end in zip((frame, seen), ends, strict=True)
        ]
        row = np.where(is_inverse, seen.row, frame.row)
        lever = np.where(is_inverse, levers[1], levers[0])
        angular = speeds.angular[both]
        linear = speeds.linear[row, both] + zero_product(angular, lever)
        return cls(both, speeds.joints[both], linear, angular, is_inverse)

    def moves(self, far: float | Array) -> Array:
        """Return how fast each moves the frame at most [m per unit], shape (..., c).

        far: How far it is from the one that sees it, at most [m], shape (..., 1).
        """
        return self.linear + zero_product(
            np.where(self.inverse, self.angular, 0.0), far
        )


def second_bounds(L: Array, W: Array, B: Array) -> Array:
    """Return bounds of second derivatives of a frame's position and rotation, (k, 2).

    Args:
        L: l_k v_k of each joint of a chain, in its order, shape (k, c).
        W: w_k v_k.
        B: b_k v_k.
    """
    before = np.cumsum(W, axis=1) - W
    both = np.stack([L, W], axis=2)
    return zero_product((2.0 * before + B)[:, :, None], both).sum(axis=1)
