"""An arm by its axes alone: two numbers of each link, two of each joint.

Denavit and Hartenberg's parameters, found from the lines of the axes at q = 0, so that
all arms of one geometry are one formula, whoever drew their frames:

    T = base Rz(t_1) K_1 Rz(t_2) K_2 ... Rz(t_n) tool,  K = Tz(d) Tx(a) Rx(alpha)

with x of K along z_i x z_(i+1), so that sin alpha > 0, and for parallel axes from the
one to the next, so that a > 0. Parallel axes point the same way here: alpha = 0; a
joint that turns the other way has a negative gain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.closed_forms.subproblems import Turn
from armillary.model.drive import Drive
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector3

Array = npt.NDArray[np.float64]

TOLERANCE = 1e-8  # of angles [rad], and of lengths as a part of the arm's size


class DHLink(NamedTuple):
    """What lies between two axes: K = Tz(d) Tx(a) Rx(alpha).

    Attributes:
        d: Along the first axis [m].
        a: Along their common normal [m].
        cos: Cosine of the angle between them.
        sin: Sine of it, not below 0.
    """

    d: float
    a: float
    cos: float
    sin: float

    @property
    def parallel(self) -> bool:
        """Return whether the two axes are parallel."""
        return self.sin == 0.0

    @property
    def origin(self) -> Vector3:
        """Return the origin of the next axis's frame in that of this one."""
        return self.a, 0.0, self.d

    def out(self, v: Vector3) -> Vector3:
        """Return Rx(alpha) v."""
        x, y, z = v
        return x, self.cos * y - self.sin * z, self.sin * y + self.cos * z

    def back(self, v: Vector3) -> Vector3:
        """Return Rx(alpha)' v."""
        x, y, z = v
        return x, self.cos * y + self.sin * z, self.cos * z - self.sin * y

    @property
    def pose(self) -> Pose:
        """Return K."""
        c, s = self.cos, self.sin
        rows = ((1.0, 0.0, 0.0), (0.0, c, 0.0 - s), (0.0, s, c))
        return Pose(rows, self.origin)


class Arm(NamedTuple):
    """An arm of revolute joints.

    Attributes:
        base: The frame of the first axis in that of the targets.
        links: Between each two axes.
        tool: The carried frame in that of the last axis.
        drives: For each joint.
        numbers: What to call each joint in messages.
        size: Sum of all its lengths [m].
        rails: Empty: no joint slides.
    """

    base: Pose
    links: tuple[DHLink, ...]
    tool: Pose
    drives: tuple[Drive, ...]
    numbers: tuple[int, ...]
    size: float
    rails: tuple[Drive, ...] = ()

    def pose(self, turns: Sequence[Turn], _: Sequence[Number] = ()) -> Pose:
        """Return the pose of the carried frame."""
        pose = self.base
        for turn, link in zip(turns[:-1], self.links, strict=True):
            pose = pose @ turn.pose @ link.pose
        return pose @ turns[-1].pose @ self.tool


def arm_of(chain: Chain) -> Arm:
    """Return the arm of a chain of revolute joints.

    Raises:
        NotApplicable: Two axes are the same line.
    """
    screws = aligned(chain.screws)
    normals = _normals(screws, chain.numbers)
    size = sum(abs(normal.a) for normal in normals) + sum(
        float(np.linalg.norm(after.start - before.end))
        for before, after in itertools.pairwise(normals)
    )
    size = size or 1.0
    links: list[DHLink] = []
    drives: list[Drive] = []
    end, x = normals[0].start, normals[0].x
    base = _frame(end, x, screws[0].axis)
    for screw, normal in zip(screws, [*normals, None], strict=True):
        z = screw.axis
        if normal is None:
            drives.append(Drive(screw.place, screw.gain, 0.0))
            continue
        offset = math.atan2(np.cross(x, normal.x) @ z, x @ normal.x)
        drives.append(Drive(screw.place, screw.gain, offset))
        d = _snapped(float((normal.start - end) @ z), size)
        a = _snapped(normal.a, size)
        links.append(DHLink(d, a, _snapped(normal.cos), _snapped(normal.sin)))
        end, x = normal.end, normal.x
    last = _frame(end, x, screws[-1].axis)
    tool = last.inverse() @ Pose.from_matrix(chain.home)
    return Arm(base, tuple(links), tool, tuple(drives), chain.numbers, size)


class _Normal(NamedTuple):
    """The common normal of two axes: its direction, its ends, the angle about it."""

    x: Array
    start: Array
    end: Array
    a: float
    cos: float
    sin: float


def aligned(screws: Sequence[ScrewAxis]) -> list[ScrewAxis]:
    """Return screws whose parallel axes point the same way."""
    same_way = list(screws[:1])
    for screw in screws[1:]:
        axis = same_way[-1].axis
        if np.linalg.norm(np.cross(axis, screw.axis)) <= TOLERANCE:
            sign = math.copysign(1.0, axis @ screw.axis)
            screw = screw._replace(axis=axis, gain=sign * screw.gain)  # noqa: PLW2901
        same_way.append(screw)
    return same_way


def _normals(screws: Sequence[ScrewAxis], numbers: Sequence[int]) -> list[_Normal]:
    normals: list[_Normal] = []
    end = screws[0].point
    for k, (one, two) in enumerate(itertools.pairwise(screws)):
        normal = _normal(one, two, end)
        if normal is None:
            raise NotApplicable(
                f"axes {numbers[k]} and {numbers[k + 1]} are the same line"
            )
        normals.append(normal)
        end = normal.end
    return normals


def _normal(one: ScrewAxis, two: ScrewAxis, start: Array) -> _Normal | None:
    """Return the common normal, that through `start` where the axes are parallel."""
    across = np.cross(one.axis, two.axis)
    sin, cos = float(np.linalg.norm(across)), float(one.axis @ two.axis)
    between = two.point - one.point
    if sin <= TOLERANCE:
        end = two.point + two.axis * ((start - two.point) @ two.axis)
        a = float(np.linalg.norm(end - start))
        if a <= TOLERANCE:
            return None
        return _Normal((end - start) / a, start, end, a, 1.0, 0.0)
    # The points s u and t w of the lines whose difference is along x = u x w.
    x = across / sin
    start = one.point + one.axis * (np.cross(between, two.axis) @ x / sin)
    end = two.point + two.axis * (np.cross(between, one.axis) @ x / sin)
    return _Normal(x, start, end, float(between @ x), cos, sin)


def _frame(origin: Array, x: Array, z: Array) -> Pose:
    columns = np.stack([x, np.cross(z, x), z], axis=1)
    return Pose.from_rotation_position(columns, origin).normalised()


def _snapped(x: float, size: float = 1.0) -> float:
    """Return 0, 1 or -1 where x lies within the tolerance of it, else x."""
    if abs(x) <= TOLERANCE * size:
        return 0.0
    return math.copysign(1.0, x) if size == 1.0 and abs(abs(x) - 1.0) < 1e-15 else x
