"""The kinds of things that are drawn of a cell, whatever draws them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.model.shape import Colour
from armillary.spatial.pose import Pose

__all__ = [
    "FARTHEST",
    "Axes",
    "Drawing",
    "Drawings",
    "DrawnSurface",
    "Label",
    "Layer",
    "Lines",
    "Texture",
    "What",
]

FARTHEST: Final = 1e15
"""What is farther away along an axis is drawn as if it were there [m]."""

Points = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.uint32]


class Layer(StrEnum):
    """What is switched on and off together."""

    VISUALS = "visuals"
    COLLISIONS = "collisions"
    SPHERES = "bounding spheres"
    BOXES = "bounding boxes"
    FRAMES = "frames"
    NAMES = "names"
    JOINTS = "joints"


@dataclass(frozen=True, eq=False, slots=True)
class Texture:
    """An image on a surface.

    Attributes:
        uv: Where each vertex is in the image, as parts of its width and height from
            its upper left corner; outside [0, 1] it repeats. Shape (n, 2).
        image: A file in the format PNG or JPEG.
    """

    uv: Points
    image: bytes


@dataclass(frozen=True, eq=False, slots=True)
class DrawnSurface:
    """Triangles of one colour; equal shapes share their arrays.

    Attributes:
        vertices: Corners [m], shape (n, 3).
        faces: Three corners of each triangle, counter-clockwise from outside, (m, 3).
        colour: Red, green, blue, opacity in [0, 1].
        texture: An image, if any, whose colours are multiplied with that one.
    """

    vertices: Points
    faces: Numbers
    colour: Colour
    texture: Texture | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Lines:
    """Straight lines of one colour.

    Attributes:
        points: The two ends of each [m], shape (k, 2, 3).
        colour: Red, green, blue, opacity in [0, 1].
        width: [pixels].
    """

    points: Points
    colour: Colour
    width: float = 2.0


@dataclass(frozen=True, slots=True)
class Axes:
    """The three axes of a frame: x red, y green, z blue.

    Attributes:
        length: The length of each [m].
        radius: The radius of each [m].
    """

    length: float
    radius: float


@dataclass(frozen=True, slots=True)
class Label:
    """A plain text at a point; markup in it is not interpreted."""

    text: str


What: TypeAlias = DrawnSurface | Lines | Axes | Label


@dataclass(frozen=True, eq=False, slots=True)
class Drawing:
    """One thing that is drawn, fixed to a link.

    Attributes:
        layer: With what it is switched on and off.
        link: Number of the link in `cell.links`, `WORLD_LINK` for the world.
        name: Unique in the cell.
        pose: In the outer frame of the link's joint.
        what: The thing.
    """

    layer: Layer
    link: int
    name: str
    pose: Pose
    what: What


@dataclass(frozen=True, eq=False, slots=True)
class Drawings:
    """All that is drawn of a cell.

    Attributes:
        items: What is fixed to links.
        rods: The frames at the ends of each rod, as `manipulator/frame`.
        has_shapes: Whether a shape is drawn; joints are shown where none is.
        notes: What could not be drawn, or was simplified.
    """

    items: tuple[Drawing, ...]
    rods: tuple[tuple[str, str], ...]
    has_shapes: bool
    notes: tuple[str, ...]
