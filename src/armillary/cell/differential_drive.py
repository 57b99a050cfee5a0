"""Mobile bases on two wheels: they go where the wheels roll them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.cell.wheel_geometry import Axle, axle_of, wheels_of
from armillary.errors import StateError
from armillary.kinematics.bound_state import home, rates_of
from armillary.kinematics.kernels import listed_joints, named_twist
from armillary.kinematics.placement import check_free, placed_frame
from armillary.kinematics.state import State
from armillary.kinematics.state_twist import twist_in
from armillary.model.link_poses import poses_of
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.twist import exp, vector6

__all__ = ["DifferentialDrive", "differential_drive"]

Array = npt.NDArray[np.float64]


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
        to, where = self.cell.frame(WORLD), state.positions.tolist()
        (X_WB,) = poses_of(state.tree, where, at, to)
        return X_WB


def _two(values: Any) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (2,) or not np.all(np.isfinite(array)):
        raise StateError(
            "A drive takes two finite numbers, for the left and the right wheel, not "
            f"{values!r}."
        )
    return array
