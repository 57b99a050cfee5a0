"""An arm of joints that turn and joints that slide: rotation apart from position.

The rotation is up to the joints that turn alone, and once they are known the position
is linear in the lengths d of those that slide. With k that turn, in whatever order:

    R = base Rz(t_1) Rx(alpha_1) Rz(t_2) ... Rz(t_k) tool
    p = sum_i F_i (l_i + sum_j u_ij d_ij),   F_0 = base, F_i = base Rz(t_1) ... Rz(t_i)

with u_ij the ways of those that slide behind the i-th that turns, and l_i what lies
between its axis and the next. Parallel neighbours point the same way here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.dh_from_axes import TOLERANCE, DHLink, aligned
from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.closed_forms.subproblems import Turn
from armillary.model.drive import Drive
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, Number, Vector3, add, scale, vector

Array = npt.NDArray[np.float64]


class Slide(NamedTuple):
    """A joint that slides.

    Attributes:
        after: How many joints before it turn.
        way: Its direction in the frame of the last of them.
        number: What to call it in messages.
    """

    after: int
    way: Vector3
    number: int


class PrismaticArm(NamedTuple):
    """An arm of joints that turn and joints that slide.

    Attributes:
        base: F_0, at the origin.
        links: The angle between each two axes; they have no lengths.
        tool: The rotation of the carried frame in that of the last axis.
        spans: l_0 to l_k [m].
        slides: What slides.
        drives: For each joint that turns.
        rails: For each joint that slides; its multiplier is a length per unit of q.
        numbers: What to call each joint that turns in messages.
        size: Sum of all lengths [m].
    """

    base: Pose
    links: tuple[DHLink, ...]
    tool: Pose
    spans: tuple[Vector3, ...]
    slides: tuple[Slide, ...]
    drives: tuple[Drive, ...]
    rails: tuple[Drive, ...]
    numbers: tuple[int, ...]
    size: float

    def frames(self, turns: Sequence[Turn]) -> list[Pose]:
        """Return F_0 to F_k as seen from the base."""
        frames = [IDENTITY]
        for k, turn in enumerate(turns):
            before = frames[-1] @ self.links[k - 1].pose if k else frames[-1]
            frames.append(before @ turn.pose)
        return frames

    def rest(self, frames: Sequence[Pose]) -> Vector3:
        """Return the sum of F_i l_i: the position while nothing slides."""
        total = ZERO
        for frame, span in zip(frames, self.spans, strict=True):
            total = add(total, frame.rotate(span))
        return total

    def ways(self, frames: Sequence[Pose]) -> list[Vector3]:
        """Return the directions F_i u_ij in which the joints slide."""
        return [frames[slide.after].rotate(slide.way) for slide in self.slides]

    def pose(self, turns: Sequence[Turn], shifts: Sequence[Number]) -> Pose:
        """Return the pose of the carried frame."""
        frames = self.frames(turns)
        position = self.rest(frames)
        for way, shift in zip(self.ways(frames), shifts, strict=True):
            position = add(position, scale(shift, way))
        return self.base @ Pose(frames[-1].rotation, position) @ self.tool


def prismatic_arm_of(chain: Chain) -> PrismaticArm:
    """Return the arm of a chain of joints that turn or slide."""
    turning = [screw for screw in chain.screws if screw.turns]
    homes, links, turning_drives = _frames(turning)
    points = [np.zeros(3), *(screw.point for screw in turning), chain.home[:3, 3]]
    spans = [
        home.T @ (end - start)
        for home, (start, end) in zip(homes, itertools.pairwise(points), strict=True)
    ]
    size = sum(float(np.linalg.norm(span)) for span in spans) or 1.0
    slides: list[Slide] = []
    rails: list[Drive] = []
    after = 0
    for screw, number in zip(chain.screws, chain.numbers, strict=True):
        if screw.turns:
            after += 1
            continue
        slides.append(Slide(after, _snapped(homes[after].T @ screw.axis), number))
        rails.append(Drive(screw.place, screw.gain, 0.0))
    tool = homes[-1].T @ chain.home[:3, :3]
    pairs = zip(chain.screws, chain.numbers, strict=True)
    return PrismaticArm(
        base=Pose.from_rotation_position(homes[0]).normalised(),
        links=tuple(links),
        tool=Pose.from_rotation_position(tool).normalised(),
        spans=tuple(_snapped(span, size) for span in spans),
        slides=tuple(slides),
        drives=tuple(turning_drives),
        rails=tuple(rails),
        numbers=tuple(number for screw, number in pairs if screw.turns),
        size=size,
    )


def _frames(
    screws: Sequence[ScrewAxis],
) -> tuple[list[Array], list[DHLink], list[Drive]]:
    """Return F_0 to F_k at q = 0, the links between them, and what drives them."""
    if not screws:
        return [np.eye(3)], [], []
    screws = aligned(screws)
    axes = [screw.axis for screw in screws]
    normals = [np.cross(one, two) for one, two in itertools.pairwise(axes)]
    x = next((n for n in normals if n.any()), _across(axes[0]))
    x = x / np.linalg.norm(x)
    homes = [_columns(x, axes[0])]
    links: list[DHLink] = []
    drives: list[Drive] = []
    for k, (screw, z) in enumerate(zip(screws, axes, strict=True)):
        before, sin = x, 0.0
        if k < len(normals):
            sin = float(np.linalg.norm(normals[k]))
            x = normals[k] / sin if sin else x
            cos = float(z @ axes[k + 1]) if sin else 1.0
            cos = 0.0 if abs(cos) <= TOLERANCE else cos
            links.append(DHLink(0.0, 0.0, cos, 1.0 if cos == 0.0 else sin))
        offset = math.atan2(np.cross(before, x) @ z, before @ x)
        drives.append(Drive(screw.place, screw.gain, offset))
        homes.append(_columns(x, z))
    return homes, links, drives


def _across(z: Array) -> Array:
    least: Array = np.eye(3)[np.abs(z).argmin()]
    return np.cross(z, least)


def _columns(x: Array, z: Array) -> Array:
    columns: Array = np.stack([x, np.cross(z, x), z], axis=1)
    return columns


def _snapped(v: Array, size: float = 1.0) -> Vector3:
    """Return a vector with lengths that count as zero removed."""
    return vector(np.where(np.abs(v) <= TOLERANCE * size, 0.0, v))
