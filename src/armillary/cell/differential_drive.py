"""Mobile bases on two wheels: they go where the wheels roll them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, quote
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.kinematics.joint_vector import finite_numbers
from armillary.kinematics.kernels import listed_joints, named_twist
from armillary.kinematics.placement import check_free, placed_frame
from armillary.kinematics.questions import twist_in
from armillary.kinematics.state import State, home, poses_in, rates_of
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.twist import exp, vector6
from armillary.spatial.vector import Vector3

__all__ = ["DifferentialDrive", "differential_drive"]

Array = npt.NDArray[np.float64]

# two wheels on one axle: where they are, and how far they roll

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


# mobile bases on two wheels: they go where the wheels roll them


def differential_drive(
    cell: Workcell,
    name: str,
    *,
    left: str | None = None,
    right: str | None = None,
    radius: float | None = None,
    travel: float | None = None,
    track_width: float | None = None,
) -> DifferentialDrive:
    """Return a free base that two wheels drive; x of the base is forward, z up.

    Args:
        cell: What the base is a part of.
        name: The manipulator, which is on the world and not fixed.
        left: The joint of the wheel at the greater y. Where nothing but the name is
            given, the manipulator has to have `wheels`.
        right: The joint of the other wheel.
        radius: Of the wheels [m]; their axes tell which way they roll.
        travel: In place of a radius, how far a wheel rolls forward per unit of its
            joint [m]; 1 where its q is a length, as in RobWork.
        track_width: The distance of the wheels [m]; by default that of their links.

    Raises:
        UnknownName: A manipulator or joint does not exist.
        ModelError: There are no wheels, or they are not on one axle along y of
            the base.
        StateError: The base is fixed, or carried by another.
    """
    check_free(home(cell).tree, name)
    base = placed_frame(cell, name)
    wheels = wheels_of(cell, name, (left, right), (radius, travel, track_width))
    axle = axle_of(cell, base, wheels)
    return DifferentialDrive(cell=cell, manipulator=name, axle=axle)


class DifferentialDrive(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A free base that two wheels on one axle drive; made by `cell.differential_drive`.

    x of the base is forward, y left, z up. The wheels are joints, with places in the
    cell's q; the base is a pose in the state, and rolls without slipping. Where it ends
    depends on the way: one wheel after the other leads elsewhere than both at once.

    Attributes:
        cell: What it is a part of.
        manipulator: Its name.
        axle: Where the wheels are, and how far they roll.
    """

    cell: Workcell
    manipulator: str
    axle: Axle

    @property
    def joint_names(self) -> tuple[str, str]:
        """Return the names of the left and of the right wheel's joint."""
        left, right = self.axle.joints
        return self.cell.joint_names[left], self.cell.joint_names[right]

    @property
    def base_jacobian(self) -> Array:
        """Return the Jacobian of the base's twist per rate of each wheel, shape (6, 2).

        It is constant: that of the base's origin, in its axes. With speeds a and b of
        the wheels at y_l and y_r, w_z = (b - a) / (y_l - y_r), v_x = a + w_z y_l, and
        no point of the axle slips along it, so v_y = -x w_z.
        """
        a, b = self.axle.travel
        w_z = np.array([-a, b]) / self.axle.width
        result = np.zeros((6, 2))
        result[0] = np.array([a, 0.0]) + w_z * self.axle.left
        result[1] = -self.axle.x * w_z
        result[5] = w_z
        return result

    def rates(self, speed: Any, turning: Any) -> Array:
        """Return the rates of the wheels for a motion of the base, shape (..., 2).

        Args:
            speed: Of the middle of the axle, forward [m/s], shape (...).
            turning: About z, to the left [rad/s], shape (...).
        """
        half = 0.5 * self.axle.width * np.asarray(turning, dtype=np.float64)
        return np.stack(
            [
                (speed - half) / self.axle.travel[0],
                (speed + half) / self.axle.travel[1],
            ],
            axis=-1,
        )

    # states

    def q(self, state: State) -> Array:
        """Return the positions of the left and the right wheel, shape (2,)."""
        return state.bound(self.cell).q[list(self.axle.joints)]

    def roll(self, state: State, dq: Any) -> State:
        """Return the state after both wheels have turned by dq, shape (2,), steadily.

        The base follows an arc of a circle, exactly: X_WB' = X_WB exp(J dq).

        Raises:
            StateError: dq is not two finite numbers, or the base is attached.
        """
        change = _two(dq)
        state = state.bound(self.cell)
        check_free(state.tree, self.manipulator)
        q = state.q.copy()
        q[list(self.axle.joints)] += change
        X_WB = self._base(state) @ exp(vector6(self.base_jacobian @ change))
        return state.replace(q=q).place(self.manipulator, X_WB.normalised())

    def with_q(self, state: State, q: Any) -> State:
        """Return the state with the wheels rolled steadily to q, shape (2,).

        Raises:
            StateError: q is not two finite numbers, or the base is attached.
        """
        return self.roll(state, _two(q) - self.q(state))

    def with_qd(self, state: State, qd: Any) -> State:
        """Return the state in which the wheels roll at qd, shape (2,), with the base.

        Raises:
            StateError: qd is not two finite numbers, or the base is attached.
        """
        rates = _two(qd)
        state = state.bound(self.cell)
        whole = rates_of(state).copy()
        whole[list(self.axle.joints)] = rates
        V = self.base_jacobian @ rates
        R_WB = np.array(self._base(state).rotation, dtype=np.float64)
        return state.replace(qd=whole).with_velocity(
            self.manipulator, linear=R_WB @ V[:3], angular=R_WB @ V[3:]
        )

    def jacobian(
        self,
        frame: str,
        state: State,
        *,
        relative_to: str = WORLD,
        point: str | npt.ArrayLike | None = None,
        axes: str | None = None,
        joints: Sequence[str] | None = None,
    ) -> Array:
        """Return the Jacobian of a frame in a state when the wheels roll the base.

        Args:
            frame: Whose twist; arguments otherwise as for `cell.jacobian`.
            state: Where everything is.
            relative_to: Relative to which frame.
            point: The frame whose origin gives the linear part.
            axes: The frame in whose axes it is written.
            joints: Names of the joints that give the columns, wheels or any others; by
                default the left and the right wheel.

        Returns:
            Shape (6, n): linear [m/s], then angular [rad/s].

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: `joints` is a text.
            StateError: The state is not one of this cell, or the base is attached.
        """
        names = listed_joints(joints)
        if names is None:
            names = self.joint_names
        twist = named_twist(self.cell, frame, relative_to, point, axes)
        still = State(q=state.q, placements=state.placements).bound(self.cell)
        columns = np.empty((6, len(names)))
        for k, name in enumerate(names):
            place = self.cell.joint(name)
            moving = still.replace(qd=np.arange(len(still.q)) == place)
            if place in self.axle.joints:
                alone = [float(place == wheel) for wheel in self.axle.joints]
                moving = self.with_qd(still, alone)
            columns[:, k] = twist_in(moving, twist)
        return columns

    def _base(self, state: State) -> Pose:
        at = [placed_frame(self.cell, self.manipulator)]
        (X_WB,) = poses_in(state, at, self.cell.frame(WORLD))
        return X_WB


def _two(values: Any) -> Array:
    numbers = finite_numbers(values, 2)
    if numbers is None:
        raise StateError(
            "A drive takes two finite numbers, for the left and the right wheel, not "
            f"{values!r}."
        )
    return numbers
