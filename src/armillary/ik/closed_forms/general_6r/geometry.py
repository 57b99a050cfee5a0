"""The closed chain of an arm of six joints, cut in one of two orders.

T = base Rz(t_1) K_1 Rz(t_2) ... K_5 Rz(t_6) tool, with z along each axis. With
X = base^-1 T tool^-1 the chain is closed by X^-1, and is written as

    R(u_2) [L_1 R(u_3) L_2 R(u_4) L_3 R(u_5) L_4] = G R(-u_1) L_5^-1 R(-u_6)

where G is X and L are K for the order that hides joint 2, u = t_6, t_1, ..., t_5; or G
is X^-1 and L are the inverses of K, last first, for the order that hides joint 5,
u = -(t_1, t_6, t_5, t_4, t_3, t_2). As G lies between u_1 and u_2, these two are never
parallel or meeting for a generic target, whatever the arm is.

A joint that slides is a turn about an axis that is infinitely far away. Where no exact
equations lead to the answers, or not to all, that axis is far, and elsewhere in either
order; Newton's method leads from there to the answers of the arm itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import require
from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.closed_forms.subproblems import Turn
from armillary.model.drive import Drive
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number

__all__ = [
    "WEIGHTS",
    "SixAxes",
    "axes_of",
    "drawn",
    "inverse",
    "jacobians",
    "moved",
    "turned",
    "weakest",
]

Array = npt.NDArray[np.float64]

THIRDS = np.array([0.0, 2.0, 4.0]) * np.pi / 3.0
FIT = np.linalg.inv(np.stack([np.sin(THIRDS), np.cos(THIRDS), np.ones(3)], axis=-1))
"""Values of a function of an angle at `THIRDS` -> its parts of sin, cos, 1."""

HALF = np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
"""Rows sin, cos, 1 -> parts of S^2, S C, C^2 of the half angle."""

WEIGHTS = 1.0, 1.0 / np.sqrt(2.0), 1.0
"""Of S^2, S C, C^2 of the half of u_5: they are a unit vector then for every angle."""

SIX = 6
FAR = 0.0, 1e3, 3e2, 1e2
"""Distance of the axes that take the place of slides, by how many slide."""

PLACES_OF_SLIDE = 2, 3, 5, 0, 4, 1
"""Of six joints, the place of the only slide: where it may be, the first of these."""

MOST_TRAVEL = 100.0
"""Half of the range of a slide, in lengths of the arm, above which it says nothing."""

LENGTHS = 2.0
"""How far joints slide in poses that an arm is tried at, in its `scale`."""

PARALLEL = 1e-12
"""Sine of the angle between axes that are parallel, at most."""

SMALL = 1e-9
"""Part of the distance of the axes below which a length counts as zero."""


class SixAxes(NamedTuple):
    """An arm of six joints, by any frames with z along its axes.

    Joints that turn or slide come first, then, if the goal leaves an axis of the tool
    free, a turn about that, then turns that stay at zero, up to six.

    Attributes:
        base: The frame of the first axis in that of the targets.
        links: K, shape (5, 4, 4), those that slide in the middle of their ranges.
        tool: The carried frame in that of the last axis.
        drives: For each joint that turns.
        rails: For each joint that slides.
        slides: Which of the six slide.
        moves: How many of the six move: the others stay at zero.
        other: The same arm with other axes that stay at zero, if there are some.
        size: Sum of the distances between origins of its frames, and of ranges [m].
        scale: The length in which the elimination counts [m].
    """

    base: Pose
    links: Array
    tool: Pose
    drives: tuple[Drive, ...]
    rails: tuple[Drive, ...]
    slides: tuple[bool, ...]
    moves: int
    size: float
    scale: float
    other: SixAxes | None = None

    def pose(self, turns: Sequence[Turn], shifts: Sequence[Number] = ()) -> Pose:
        """Return the pose of the carried frame; a free turn about its axis is zero."""
        angles, lengths = iter(turns), iter(shifts)
        pose = self.base
        for k, slides in enumerate(self.slides):
            if slides:
                pose = pose @ Pose.translation(0.0, 0.0, next(lengths))
            elif k < self.joints:
                pose = pose @ next(angles).pose
            if k < len(self.links):
                pose = pose @ Pose.from_matrix(self.links[k])
        return pose @ self.tool

    @property
    def numbers(self) -> tuple[Array, Array]:
        """Return the axes, base, links and tool as (7, 4, 4), and the scale, ()."""
        base, tool = (
            pose.matrix().astype(np.float64) for pose in (self.base, self.tool)
        )
        return np.concatenate([[base], self.links, [tool]]), np.array(self.scale)

    def given(self, axes: Any, scale: Any) -> SixAxes:
        """Return an arm that differs in its `numbers` alone, which may be traced."""
        base, *links, tool = axes
        ends = Pose.from_matrix(base), Pose.from_matrix(tool)
        any_links: Any = links
        return self._replace(base=ends[0], links=any_links, tool=ends[1], scale=scale)

    @property
    def joints(self) -> int:
        """Return how many of the six are joints of the arm."""
        return len(self.drives) + len(self.rails)

    @property
    def is_plain(self) -> bool:
        """Return whether it has six joints that turn."""
        return self.joints == SIX and not any(self.slides)

    @property
    def turning(self) -> list[int]:
        """Return which of the six are the joints that turn."""
        return [k for k in range(self.joints) if not self.slides[k]]

    @property
    def sliding(self) -> list[int]:
        """Return which of the six slide."""
        return [k for k in range(self.joints) if self.slides[k]]

    @property
    def scaled(self) -> Array:
        """Return the links, lengths in units of `scale`, (5, 4, 4)."""
        K = self.links.copy()
        K[:, :3, 3] /= self.scale
        return K

    @property
    def far(self) -> float:
        """Return how far the axes are that take the place of slides, in `scale`."""
        return FAR[sum(self.slides)]

    def seen_by(self, other: SixAxes) -> tuple[Array, Array]:
        """Return the poses (4, 4) before and behind its inner targets as another's."""
        sides = other.base.inverse() @ self.base, self.tool @ other.tool.inverse()
        front, back = (side.matrix().astype(np.float64) for side in sides)
        for pose in front, back:
            pose[:3, 3] /= self.scale
        return front, back

    def order(self, *, hides_five: bool) -> tuple[dict[str, Array], Array, Array]:
        """Return the constants of an order, as the fields of its record.

        Returns:
            `links`, L_1 to L_5 as (5, 3, 4); `left`, the rows of the left side
            (3, 9, 14), see `left_rows`; `flip`, 1 for the order that hides joint 5.
            Then two poses (4, 4), between which it takes its targets.
        """
        K, front, back = self._turned(0.7 if hides_five else 2.0)
        L = inverse(K[::-1]) if hides_five else K
        constants = {
            "links": L[:, :3],
            "left": left_rows(L),
            "flip": np.array(float(hides_five)),
        }
        return constants, front, back

    def _turned(self, angle: float) -> tuple[Array, Array, Array]:
        """Return the links (5, 4, 4) with a turn about a far axis for each slide.

        Then the poses (4, 4) before the first and behind the last axis.

        angle: Where around the slides these axes are [rad].
        """
        K, front, back = self.scaled, np.eye(4), np.eye(4)
        for k in self.sliding:
            # E leads to an axis across the slide, at the distance `far` from it: turns
            # about that by small angles move along the slide.
            c, s = np.cos(angle + k), np.sin(angle + k)
            E = np.eye(4)
            E[:3, :3] = [[0.0, c, -s], [0.0, s, c], [1.0, 0.0, 0.0]]
            E[:3, 3] = self.far * c, self.far * s, 0.0
            if k > 0:
                K[k - 1] = K[k - 1] @ E
            else:
                front = inverse(E)
            if k < len(K):
                K[k] = inverse(E) @ K[k]
            else:
                back = E
        return K, front, back


def axes_of(
    chain: Chain,
    limits: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    free: int | None = None,
) -> SixAxes:
    """Return the axes of a chain of at most six joints, each with a frame.

    Of axes that meet in one point, and do not slide, the size is 0.

    Args:
        chain: The joints.
        limits: Least and greatest q, by the places of joints; none by default.
        free: The axis of the carried frame about which it may turn.

    Raises:
        NotApplicable: There are too many joints, or too many that slide.
    """
    count = len(chain.screws) + (free is not None)
    require(count <= SIX, f"{count} joints move the frame, more than a pose needs")
    chain = chain._replace(screws=_with_slide_inside(chain.screws))
    screws = list(chain.screws)
    slides = [not screw.turns for screw in screws]
    many = f"{sum(slides)} joints slide, more than a position needs"
    require(sum(slides) < len(FAR), many)
    centre = _centre([screw for screw in screws if screw.turns], chain.home)
    # A turn that does not matter is one more joint, which nothing drives.
    if free is not None:
        axis, point = chain.home[:3, free], chain.home[:3, 3]
        screws.append(ScrewAxis(-1, True, axis, point, 1.0))
    frames = [_frame(screw, centre) for screw in screws]
    links: list[Array] = []
    # Links lead from frame to frame at zero; slides are zero in the middle of their
    # range, so that lengths stay small.
    origins = np.array([*(frame[:3, 3] for frame in frames), chain.home[:3, 3]])
    arm_length = float(np.linalg.norm(np.diff(origins, axis=0), axis=1).sum())
    middles, travels = _ranges(chain, limits, MOST_TRAVEL * arm_length or np.inf)
    for k, frame in enumerate(frames):
        shift = np.eye(4)
        shift[2, 3] = middles[k] if k < len(middles) else 0.0
        following = frames[k + 1] if k + 1 < len(frames) else chain.home
        links.append(shift @ inverse(frame) @ following)
    tool = links.pop()
    lengths = [float(np.linalg.norm(K[:3, 3])) for K in links]
    size = sum(lengths) + sum(travels)
    reach = float(np.abs(chain.home[:3, 3] - centre).max()) + size
    # Lengths that are rounding are those of axes that meet.
    size = size if size > SMALL * reach else 0.0
    if size == 0.0 and (any(slides) or count < SIX):
        size = reach or 1.0
    drives = [
        Drive(screw.place, screw.gain, -middle)
        for screw, middle in zip(chain.screws, middles, strict=True)
    ]
    arm = SixAxes(
        base=_rigid(frames[0]),
        links=np.array(links).reshape(-1, 4, 4),
        tool=_rigid(tool),
        drives=tuple(d for d, on in zip(drives, slides, strict=True) if not on),
        rails=tuple(d for d, on in zip(drives, slides, strict=True) if on),
        slides=(*slides, *[False] * (SIX - len(slides))),
        moves=count,
        size=size,
        scale=size / (SIX - 1) or 1.0,
    )
    if count == SIX:
        return arm
    return _filled(arm, 0)._replace(other=_filled(arm, 1))


def _with_slide_inside(screws: Sequence[ScrewAxis]) -> tuple[ScrewAxis, ...]:
    """Return the joints in another order, of which the only slide has a better place.

    A slide along the axis of a turn next to it commutes with it: they may be swapped.
    """
    others = list(screws)
    sliding = [k for k, screw in enumerate(screws) if not screw.turns]
    if len(sliding) != 1:
        return tuple(others)
    (k,) = sliding
    slide = others.pop(k)
    first = last = k
    while first > 0 and _are_parallel(others[first - 1], slide):
        first -= 1
    while last < len(others) and _are_parallel(others[last], slide):
        last += 1
    others.insert(next(x for x in PLACES_OF_SLIDE if first <= x <= last), slide)
    return tuple(others)


def _are_parallel(a: ScrewAxis, b: ScrewAxis) -> bool:
    return bool(np.linalg.norm(np.cross(a.axis, b.axis)) < PARALLEL)


def _filled(arm: SixAxes, seed: int) -> SixAxes:
    """Return an arm with axes behind its own that stay at zero, up to six."""
    rng = np.random.default_rng([7, seed])
    links, tool = [*arm.links], arm.tool.matrix().astype(np.float64)
    for _ in range(SIX - arm.moves):
        # A rotation drawn evenly (the sign makes det = 1), at some distance.
        there = np.eye(4)
        there[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        there[:3, 2] *= np.linalg.det(there[:3, :3])
        there[:3, 3] = 0.2 * arm.size * rng.uniform(-1.0, 1.0, 3)
        links.append(there)
        tool = inverse(there) @ tool
    return arm._replace(links=np.array(links), tool=_rigid(tool))


def _ranges(
    chain: Chain, limits: tuple[Sequence[float], Sequence[float]] | None, most: float
) -> tuple[list[float], list[float]]:
    """Return the middle and half of the range of each slide [m], 0 of a turn.

    Of wider ranges than `most` it is their place nearest to zero, and nothing.
    """
    middles: list[float] = []
    halves: list[float] = []
    for screw in chain.screws:
        ends = (-np.inf, np.inf)
        if limits is not None:
            ends = limits[0][screw.place], limits[1][screw.place]
        low, high = (0.0, 0.0) if screw.turns else ends
        half = 0.5 * (high - low) * abs(screw.gain)
        if half > most or not math.isfinite(half):
            low = high = min(max(0.0, low), high)
        middles.append(0.5 * (low + high) * screw.gain)
        halves.append(0.5 * max(high - low, 0.0) * abs(screw.gain))
    return middles, halves


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


def moved(q: Array, *, slides: bool) -> Array:
    """Return rotations about z, or ways along it, shape (..., 4, 4)."""
    if not slides:
        return turned(q)
    X = turned(0.0 * q)
    X[..., 2, 3] = q
    return X


def inverse(X: Array) -> Array:
    """Return the inverse of poses, shape (..., 4, 4)."""
    Y = np.zeros_like(X)
    R = np.swapaxes(X[..., :3, :3], -1, -2)
    Y[..., :3, :3] = R
    Y[..., :3, 3] = -(R @ X[..., :3, 3:])[..., 0]
    Y[..., 3, 3] = 1.0
    return Y


def weakest(links: Array, slides: Sequence[bool], q: Array) -> tuple[Array, Array]:
    """Return the two directions of q that move the last axis's frame least.

    Args:
        links: K, shape (5, 4, 4).
        slides: Which joints slide, six.
        q: Angles, or lengths of those that slide, shape (m, 6).

    Returns:
        Unit vectors, shape (m, 6) each, of the least and the second singular value.
    """
    V = np.linalg.svd(jacobians(links, slides, q))[2]
    return V[:, 5], V[:, 4]


def jacobians(links: Array, slides: Sequence[bool], q: Array) -> Array:
    """Return the twists of the last axis's frame by joints, shape (m, 6, 6).

    Arguments as for `weakest`.
    """
    pose = np.broadcast_to(np.eye(4), (len(q), 4, 4))
    axes: list[Array] = []
    for k in range(SIX):
        axes.append(pose)
        pose = pose @ moved(q[:, k], slides=slides[k])
        pose = pose @ links[k] if k < len(links) else pose
    # Of an axis z at p: (z x (end - p), z) if it turns, (z, 0) if it slides.
    end = pose[:, :3, 3]
    columns = [
        np.concatenate([A[:, :3, 2], 0.0 * end], axis=1)
        if slid
        else np.concatenate([np.cross(A[:, :3, 2], end - A[:, :3, 3]), A[:, :3, 2]], 1)
        for A, slid in zip(axes, slides, strict=True)
    ]
    return np.stack(columns, axis=-1)


def drawn(
    rng: np.random.Generator, links: Array, slides: Sequence[bool], count: int
) -> tuple[Array, Array]:
    """Return random joint positions of an arm, and the poses that they lead to.

    Args:
        rng: Draws them.
        links: As for `weakest`.
        slides: The same.
        count: How many.

    Returns:
        q, shape (count, 6); the last axis's frame in that of the first, (count, 4, 4).
    """
    most = np.where(slides, LENGTHS, np.pi)
    q = rng.uniform(-1.0, 1.0, (count, len(slides))) * most
    poses = moved(q[:, 0], slides=slides[0])
    for k, link in enumerate(links):
        poses = poses @ link @ moved(q[:, k + 1], slides=slides[k + 1])
    return q, np.ascontiguousarray(poses)


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


def _centre(screws: Sequence[ScrewAxis], home: Array) -> Array:
    """Return the point whose distances from the axes have the least squares."""
    if not screws:
        return np.array(home[:3, 3])
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
    if not screw.turns:  # it has no place of its own
        X[:3, 3] = centre
    return X
