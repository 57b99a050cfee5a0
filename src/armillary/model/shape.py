"""The shapes of links, as data: what is drawn and what may touch."""

from __future__ import annotations

from typing import Final

import msgspec

from armillary.spatial.pose import IDENTITY, Pose

Colour = tuple[float, float, float, float]


class Shape(msgspec.Struct, frozen=True, kw_only=True, tag_field="shape"):
    """A body that is fixed to a link.

    Attributes:
        name: For messages and files; may be empty.
        pose: Where it is in the link's primary frame.
        colour: Red, green, blue, opacity in [0, 1]; None where nothing is said.
    """

    name: str = ""
    pose: Pose = IDENTITY
    colour: Colour | None = None


class Box(Shape, frozen=True, kw_only=True, tag="box"):
    """A cuboid about its centre.

    Attributes:
        size: Full lengths along x, y, z [m].
    """

    size: tuple[float, float, float]


class Sphere(Shape, frozen=True, kw_only=True, tag="sphere"):
    """A ball about its centre.

    Attributes:
        radius: [m].
    """

    radius: float


class Cylinder(Shape, frozen=True, kw_only=True, tag="cylinder"):
    """A cylinder about its centre, its axis along z.

    Attributes:
        radius: [m].
        length: Full length along z [m].
    """

    radius: float
    length: float


class Mesh(Shape, frozen=True, kw_only=True, tag="mesh"):
    """Triangles in a file, which is read only when they are asked for.

    Attributes:
        file: The reference as the model's file gives it.
        scale: Factors along x, y, z.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


SHAPES: Final = (Box, Sphere, Cylinder, Mesh)
"""Every kind of shape."""
