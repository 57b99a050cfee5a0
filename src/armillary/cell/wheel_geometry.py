"""Two wheels on one axle: where they are, and how far they roll."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from armillary.errors import ModelError, quote
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY
from armillary.spatial.vector import Vector3

__all__ = ["Axle", "axle_of", "wheels_of"]

TOLERANCE = 1e-6


class Axle(NamedTuple):
    """The axle of a base that drives on two wheels, in that base's frame.

    Attributes:
        joints: The places of the left and the right wheel in the cell's q.
        travel: How far each rolls forward per unit of its coordinate [m/rad or 1].
        x: Where the axle is [m].
        left: Where the left wheel is, along y [m].
        right: Where the right wheel is, along y [m].
    """

    joints: tuple[int, int]
    travel: tuple[float, float]
    x: float
    left: float
    right: float

    @property
    def width(self) -> float:
        """Return the distance of the wheels [m]."""
        return self.left - self.right


class _Wheel(NamedTuple):
    """A wheel in the base: its place in q, its axis of rotation, its centre [m]."""

    name: str
    place: int
    axis: Vector3
    centre: Vector3


def wheels_of(
    cell: Workcell,
    name: str,
    joints: tuple[str | None, str | None],
    lengths: tuple[float | None, float | None, float | None],
) -> Wheels:
    """Return the wheels that are given, where none are those that a manipulator has.

    joints: Of the left and the right wheel.
    lengths: Radius, travel and track width, as for `Wheels`.

    Returns:
        By the names that their joints have in the cell.

    Raises:
        ModelError: One is missing, or they roll by no length.
    """
    left, right = joints
    if left is not None and right is not None:
        radius, travel, width = lengths
        return Wheels(
            left=left, right=right, radius=radius, travel=travel, track_width=width
        )
    own = cell.manipulators[cell.index[name]].wheels
    if own is None or any(value is not None for value in (*joints, *lengths)):
        has = "no wheels" if own is None else "wheels, which count if nothing is given"
        raise ModelError(
            f"A drive needs the joints of both wheels, left= and right=; {quote(name)} "
            f"itself has {has}."
        )
    names = {"left": f"{name}/{own.left}", "right": f"{name}/{own.right}"}
    return msgspec.structs.replace(own, **names)


def axle_of(cell: Workcell, base: FrameRef, wheels: Wheels) -> Axle:
    """Return the axle of two wheels; see `Cell.differential_drive`.

    wheels: By the names that their joints have in the cell.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: The wheels are not on one axle along y.
    """
    left, right = (_wheel(cell, base, name) for name in (wheels.left, wheels.right))
    if abs(left.centre[0] - right.centre[0]) > TOLERANCE:
        raise ModelError(
            f"The wheels are not on one axle: {quote(left.name)} is at x = "
            f"{left.centre[0]:g} m in the base, {quote(right.name)} at "
            f"{right.centre[0]:g} m."
        )
    y = left.centre[1], right.centre[1]
    width = y[0] - y[1] if wheels.track_width is None else wheels.track_width
    if not TOLERANCE < width < math.inf:
        raise ModelError(
            f"The left wheel has to be {width:g} m to the left of the right one, along "
            "y of the base; swap them, or give track_width=."
        )
    ways = (1.0, 1.0) if wheels.radius is None else (_way(left), _way(right))
    middle = 0.5 * (y[0] + y[1])
    return Axle(
        joints=(left.place, right.place),
        travel=(wheels.length * ways[0], wheels.length * ways[1]),
        x=left.centre[0],
        left=middle + 0.5 * width,
        right=middle - 0.5 * width,
    )


def _wheel(cell: Workcell, base: FrameRef, name: str) -> _Wheel:
    """Return the wheel that a joint turns, where it is at home."""
    tree, q, place = Tree.of(cell), cell.home_q, cell.joint(name)
    link = tree.joint_links[place]
    line = tree.ancestors(link)
    if base.link not in line:
        raise ModelError(f"The wheel {quote(name)} is not a part of its base.")
    between = line[1 : line.index(base.link)]
    if any(tree.drives[k] for k in between):
        raise ModelError(f"The wheel {quote(name)} hangs on a joint, not on its base.")
    wheel = FrameRef(link, IDENTITY)
    twist = Twist(frame=wheel, relative_to=base, point=wheel, axes=base)
    axis = jacobian(tree, q, twist)[place][3:]
    (X_BW,) = poses_of(tree, q, [wheel], base)
    return _Wheel(name, place, axis, X_BW.position)


def _way(wheel: _Wheel) -> float:
    """Return 1 where a wheel that turns about its axis rolls forward, else -1."""
    x, y, z = (float(number) for number in wheel.axis)
    if max(abs(x), abs(abs(y) - 1.0), abs(z)) > TOLERANCE:
        raise ModelError(
            f"The wheel {quote(wheel.name)} turns about ({x:g}, {y:g}, {z:g}) of its "
            "base, not about y; give travel= where its joint is not an axle."
        )
    return math.copysign(1.0, y)
