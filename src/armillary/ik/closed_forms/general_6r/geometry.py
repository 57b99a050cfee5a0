"""The closed chain of an arm of six revolute joints, cut in one of two orders.

T = base Rz(t_1) K_1 Rz(t_2) ... K_5 Rz(t_6) tool, with z along each axis. With
X = base^-1 T tool^-1 the chain is closed by X^-1, and is written as

    R(u_2) [L_1 R(u_3) L_2 R(u_4) L_3 R(u_5) L_4] = G R(-u_1) L_5^-1 R(-u_6)

where G is X and L are K for the order that hides joint 2, u = t_6, t_1, ..., t_5; or G
is X^-1 and L are the inverses of K, last first, for the order that hides joint 5,
u = -(t_1, t_6, t_5, t_4, t_3, t_2). As G lies between u_1 and u_2, these two are never
parallel or meeting for a generic target, whatever the arm is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.closed_forms.subproblems import Turn
from armillary.model.drive import Drive
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number

__all__ = ["WEIGHTS", "SixAxes", "axes_of"]

Array = npt.NDArray[np.float64]

THIRDS = np.array([0.0, 2.0, 4.0]) * np.pi / 3.0
FIT = np.linalg.inv(np.stack([np.sin(THIRDS), np.cos(THIRDS), np.ones(3)], axis=-1))
"""Values of a function of an angle at `THIRDS` -> its parts of sin, cos, 1."""

HALF = np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
"""Rows sin, cos, 1 -> parts of S^2, S C, C^2 of the half angle."""

WEIGHTS = 1.0, 1.0 / np.sqrt(2.0), 1.0
"""Of S^2, S C, C^2 of the half of u_5: they are a unit vector then for every angle."""

SMALL = 1e-9
"""Part of the distance of the axes below which a length counts as zero."""


class SixAxes(NamedTuple):
    """An arm of six revolute joints, by any frames with z along its axes.

    Attributes:
        base: The frame of the first axis in that of the targets.
        links: K, shape (5, 4, 4).
        tool: The carried frame in that of the last axis.
        drives: For each axis.
        size: Sum of the distances between origins of its frames [m].
        scale: The length in which the elimination counts [m].
        rails: Empty: no joint slides.
    """

    base: Pose
    links: Array
    tool: Pose
    drives: tuple[Drive, ...]
    size: float
    scale: float
    rails: tuple[Drive, ...] = ()

    def pose(self, turns: Sequence[Turn], _: Sequence[Number] = ()) -> Pose:
        """Return the pose of the carried frame."""
        pose = self.base
        for turn, link in zip(turns[:-1], self.links, strict=True):
            pose = pose @ turn.pose @ Pose.from_matrix(link)
        return pose @ turns[-1].pose @ self.tool

    @property
    def scaled(self) -> Array:
        """Return the links, lengths in units of `scale`, (5, 4, 4)."""
        K = self.links.copy()
        K[:, :3, 3] /= self.scale
        return K

    def order(self, *, hides_five: bool) -> dict[str, Array]:
        """Return the constants of an order, as the fields of its record.

        Returns:
            `links`, L_1 to L_5 as (5, 3, 4); `left`, the rows of the left side
            (3, 9, 14), see `left_rows`; `flip`, 1 for the order that hides joint 5.
        """
        K = self.scaled
        L = inverse(K[::-1]) if hides_five else K
        return {
            "links": L[:, :3],
            "left": left_rows(L),
            "flip": np.array(float(hides_five)),
        }


def axes_of(chain: Chain) -> SixAxes:
    """Return the axes of a chain of six revolute joints, each with a frame.

    Of axes that meet in one point the size is 0.
    """
    screws = chain.screws
    centre = _centre(screws)
    frames = np.array([_frame(screw, centre) for screw in screws])
    pairs = itertools.pairwise(frames)
    links = np.array([inverse(a) @ b for a, b in pairs])
    size = float(np.linalg.norm(links[:, :3, 3], axis=1).sum())
    reach = float(np.abs(chain.home[:3, 3] - centre).max()) + size
    size = size if size > SMALL * reach else 0.0
    return SixAxes(
        base=_rigid(frames[0]),
        links=links,
        tool=_rigid(inverse(frames[-1]) @ chain.home),
        drives=tuple(Drive(screw.place, screw.gain, 0.0) for screw in screws),
        size=size,
        scale=size / len(links) or 1.0,
    )


def _rigid(X: Array) -> Pose:
    return Pose.from_rotation_position(X[:3, :3], X[:3, 3]).normalised()


def turned(angle: Array) -> Array:
    """Return rotations about z, shape (..., 4, 4)."""
    X = np.zeros((*np.shape(angle), 4, 4))
    X[..., 0, 0] = X[..., 1, 1] = np.cos(angle)
    X[..., 1, 0] = np.sin(angle)
    X[..., 0, 1] = -X[..., 1, 0]
    X[..., 2, 2] = X[..., 3, 3] = 1.0
    return X


def inverse(X: Array) -> Array:
    """Return the inverse of poses, shape (..., 4, 4)."""
    Y = np.zeros_like(X)
    R = np.swapaxes(X[..., :3, :3], -1, -2)
    Y[..., :3, :3] = R
    Y[..., :3, 3] = -(R @ X[..., :3, 3:])[..., 0]
    Y[..., 3, 3] = 1.0
    return Y


def weakest(links: Array, angles: Array) -> tuple[Array, Array]:
    """Return the two directions of angles that move the last axis's frame least.

    Args:
        links: K, shape (5, 4, 4).
        angles: Of the axes, shape (m, 6).

    Returns:
        Unit vectors, shape (m, 6) each, of the least and the second singular value.
    """
    pose = np.broadcast_to(np.eye(4), (len(angles), 4, 4))
    axes: list[Array] = []
    for k in range(angles.shape[1]):
        axes.append(pose)
        pose = pose @ turned(angles[:, k])
        pose = pose @ links[k] if k < len(links) else pose
    end = pose[:, :3, 3]
    columns = [
        np.concatenate([np.cross(A[:, :3, 2], end - A[:, :3, 3]), A[:, :3, 2]], axis=1)
        for A in axes
    ]
    J = np.stack(columns, axis=-1)
    V = np.linalg.svd(J)[2]
    return V[:, 5], V[:, 4]


def left_rows(L: Array) -> Array:
    """Return what the left side is made of, for a frame's z = (x, y, z) and origin p.

    They are linear in sin, cos, 1 of u_3 and quadratic in the half angles of u_4, u_5:
    (3, 9, 14). Rows are the z of p, z, m = p x z and w = (p p) z - 2 (p z) p, then p p
    and p z; the x of these four; the y (Raghavan and Roth 1993).

    L: The links, shape (5, 4, 4).
    """
    at = turned(THIRDS)
    third, fourth, fifth = at[:, None, None], at[None, :, None], at[None, None]
    X = L[0] @ third @ L[1] @ fourth @ L[2] @ fifth @ L[3]
    z, p = X[..., :3, 2], X[..., :3, 3]
    pp, pz = (p * p).sum(-1, keepdims=True), (p * z).sum(-1, keepdims=True)
    four = np.stack([p, z, np.cross(p, z), pp * z - 2.0 * pz * p], axis=-1)
    rows = np.concatenate(
        [four[..., 2, :], pp, pz, four[..., 0, :], four[..., 1, :]], axis=-1
    )
    parts = np.einsum("ab,cd,ef,bdfk->acek", FIT, FIT, FIT, rows)
    halves = np.einsum("acek,cd,ef->adfk", parts, HALF, HALF)
    halves = halves * np.array(WEIGHTS)[:, None]
    return np.ascontiguousarray(halves.reshape(3, 9, rows.shape[-1]))


def _centre(screws: tuple[ScrewAxis, ...]) -> Array:
    """Return the point whose distances from the axes have the least squares."""
    across = [np.eye(3) - np.outer(screw.axis, screw.axis) for screw in screws]
    sums = np.sum([P @ s.point for P, s in zip(across, screws, strict=True)], axis=0)
    mean = np.mean([screw.point for screw in screws], axis=0)
    # along parallel axes it is the mean of the points that the model gives
    total = np.sum(across, axis=0)
    spread: Array = np.asarray(np.linalg.pinv(total, rcond=1e-9), np.float64)
    least: Array = spread @ (sums - total @ mean)
    return np.asarray(mean + least, np.float64)


def _frame(screw: ScrewAxis, centre: Array) -> Array:
    """Return a frame with z along an axis, its origin nearest to a point."""
    z = screw.axis / np.linalg.norm(screw.axis)
    x = np.cross(np.eye(3)[np.abs(z).argmin()], z)
    x /= np.linalg.norm(x)
    X = np.eye(4)
    X[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    X[:3, 3] = screw.point + z * ((centre - screw.point) @ z)
    return X
