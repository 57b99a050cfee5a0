"""The bodies of a model, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.mjcf.poses import read_pose
from armillary.formats.xml import Element
from armillary.spatial.pose import Pose

__all__ = ["Q_SIZES", "Body", "FrameAround", "PlacedElement"]

Q_SIZES: Final = {"free": 7, "ball": 4}
"""How many numbers of `qpos` a joint has, if not one."""


class FrameAround(NamedTuple):
    """A frame around an element.

    Attributes:
        name: In the file; empty where it has none.
        outer: The pose of the frames around it, in the body.
    """

    name: str
    outer: Pose


class PlacedElement(NamedTuple):
    """An element of a body.

    Attributes:
        element: With the defaults of its class; names as in the whole model.
        pose: Of the frames around it, in the body.
        document: The model that it is from.
        frames: The frames around it, in the body.
    """

    element: Element
    pose: Pose
    document: MjcfDocument
    frames: tuple[FrameAround, ...] = ()

    @property
    def own_pose(self) -> Pose:
        """Return its pose in the body."""
        pose = read_pose(self.element, self.document)
        return pose if self.pose.is_identity else self.pose @ pose


@dataclass(slots=True)
class Body:
    """One body.

    Attributes:
        name: In the file; empty where it has none.
        element: For its place and attributes.
        document: The model that it is from.
        parent: Its number; -1 for the world, which is the first body.
        pose: In the parent.
        parts: The elements of the body, by their names, `freejoint` as `joint`.
        frames: The frames around it, in the parent.
    """

    name: str
    element: Element
    document: MjcfDocument
    parent: int
    pose: Pose
    parts: dict[str, list[PlacedElement]] = field(
        default_factory=dict[str, list[PlacedElement]]
    )
    frames: tuple[FrameAround, ...] = ()

    @property
    def q_sizes(self) -> list[int]:
        """Return how many numbers of `qpos` each joint has."""
        kinds = [
            "free"
            if part.element.name == "freejoint"
            else part.element.attributes.get("type", "")
            for part in self.of("joint")
        ]
        return [Q_SIZES.get(kind, 1) for kind in kinds]

    def of(self, kind: str) -> Sequence[PlacedElement]:
        """Return the elements of a name."""
        return self.parts.get(kind, ())

    @property
    def is_mocap(self) -> bool:
        """Return whether programs move it."""
        return self.element.attributes.get("mocap") == "true"
