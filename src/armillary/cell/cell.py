"""The cell: a workcell that answers questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from armillary.cell.device import Device
from armillary.cell.device_selection import chosen
from armillary.cell.differential_drive import DifferentialDrive
from armillary.cell.scene import Scene
from armillary.cell.wheel_geometry import axle_of, wheels_of
from armillary.errors import ModelError, unknown
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.jacobian import (
    acceleration_program,
    jacobian_program,
    velocity_program,
)
from armillary.kinematics.kernels import Joints, kernel_of
from armillary.kinematics.placement import placed_frame
from armillary.kinematics.pose_error import pose_error_program
from armillary.kinematics.poses import FORMS, poses_program
from armillary.kinematics.state import State
from armillary.kinematics.state_twist import frame_list, named_twist
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD, Workcell
from armillary.trace import Program

if TYPE_CHECKING:
    from armillary.ik.differential import DifferentialSolver
    from armillary.ik.inverse_kinematics import InverseKinematics
    from armillary.model.closed_form import ClosedForm

Array = npt.NDArray[np.float64]


class Cell(Scene, frozen=True, kw_only=True, dict=True):
    """A workcell that answers questions, each by a kernel made on first use.

    A kernel is a function of arrays: `fk(q)` for one vector, `fk(Q)` for any batch,
    `fk(Q, out=X)` into memory of yours. Cells are immutable; threads may share them.

    Kernels answer for the cell as it was built. Where a part is gripped or a base has
    been moved, pass that state: `cell.fk("part", state=state)`.
    """

    @classmethod
    def of(cls, workcell: Workcell) -> Self:
        """Return a cell of the same content as `workcell`."""
        values = {name: getattr(workcell, name) for name in workcell.__struct_fields__}
        return cls(**values)

    # kernels

    def fk(
        self,
        frames: str | Sequence[str],
        *,
        relative_to: str = WORLD,
        joints: Joints = None,
        state: State | None = None,
        form: str = "matrix",
        dtype: npt.DTypeLike = np.float64,
    ) -> AnyKernel:
        """Return the kernel of forward kinematics: q to the poses of frames.

        Args:
            frames: A frame, `name` or `manipulator/name`, or a list of them.
            relative_to: The frame in which the poses are given.
            joints: Names of the joints that q holds, in that order; the others stay at
                home, or as in `state`. By default all, in the order of `joint_names`.
            state: Whose attachments and moved bases count; q remains an input. By
                default the cell as it was built. Another grip compiles nothing where
                the same frame holds what is between the frames.
            form: `matrix`, `quaternion` (w x y z, then the origin) or
                `dual_quaternion` (real part, then dual part, each w x y z).
            dtype: float64, or float32 for twice the rate at single precision.

        Returns:
            A kernel (..., n) -> (..., 4, 4) for one frame, (..., k, 4, 4) for a list of
            k; (7,) or (8,) in place of (4, 4) in the other forms. q in m or rad.

        Raises:
            UnknownName: A frame, joint or form does not exist.
            ModelError: A bare name is not unique, or `frames` is an empty list.
            StateError: The state is not one of this cell.
        """
        single = isinstance(frames, str)
        names = frame_list(frames, "fk")
        if form not in FORMS:
            raise unknown("form of a pose", form, FORMS)

        def at() -> list[FrameRef]:
            return [self.frame(name) for name in (relative_to, *names)]

        def make(tree: Tree, selection: Inputs) -> Program:
            to, *ends = at()
            return poses_program(
                tree, ends, to, single=single, form=form, selection=selection
            )

        question = "fk", names, single, relative_to, form
        return kernel_of(self, question, at, make, joints, state, dtype)

    def jacobian(
        self,
        frames: str | Sequence[str],
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        joints: Joints = None,
        state: State | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> AnyKernel:
        """Return the kernel of a Jacobian: q to the twist per unit rate of each joint.

        Args:
            frames: Whose twist: a frame, or a list of them.
            relative_to: Relative to which frame.
            point: The frame whose origin, taken as fixed to the frame asked about,
                gives the linear part; by default that frame's own origin.
            axes: The frame in whose axes it is written; by default `relative_to`.
            joints: As for `fk`; they give the columns.
            state: As for `fk`; the joints of what is held count for its holder.
            dtype: As for `fk`.

        Returns:
            A kernel (..., n) -> (..., 6, n), for a list of k (..., k, 6, n): linear
            [m/s], then angular [rad/s].

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: A bare name is not unique, or `frames` is an empty list.
            StateError: The state is not one of this cell.
        """
        single = isinstance(frames, str)
        twists = tuple(
            named_twist(self, name, relative_to, point, axes)
            for name in frame_list(frames, "jacobian")
        )

        def make(tree: Tree, selection: Inputs) -> Program:
            return jacobian_program(tree, twists, selection, single=single)

        def at() -> list[FrameRef]:
            return [frame for twist in twists for frame in twist]

        question = "jacobian", twists, single
        return kernel_of(self, question, at, make, joints, state, dtype)

    def velocity(
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        joints: Joints = None,
        state: State | None = None,
    ) -> AnyKernel:
        """Return the kernel of a twist: (q, qd) to J qd; arguments as for `jacobian`.

        Returns:
            A kernel (..., n), (..., n) -> (..., 6): linear [m/s], angular [rad/s].
        """
        twist = named_twist(self, frame, relative_to, point, axes)

        def make(tree: Tree, selection: Inputs) -> Program:
            return velocity_program(tree, twist, selection)

        question = "velocity", twist
        return kernel_of(self, question, lambda: twist, make, joints, state)

    def acceleration(
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        joints: Joints = None,
        state: State | None = None,
    ) -> AnyKernel:
        """Return the kernel of an acceleration: (q, qd, qdd) to J qdd + J' qd.

        The derivative is that seen in `relative_to`: the linear part is the second
        derivative of the point's position there.

        Returns:
            A kernel of three (..., n) -> (..., 6): linear [m/s^2], angular [rad/s^2].
        """
        twist = named_twist(self, frame, relative_to, point, axes)

        def make(tree: Tree, selection: Inputs) -> Program:
            return acceleration_program(tree, twist, selection, bias=False)

        question = "acceleration", twist
        return kernel_of(self, question, lambda: twist, make, joints, state)

    def bias_acceleration(
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        joints: Joints = None,
        state: State | None = None,
    ) -> AnyKernel:
        """Return the kernel of J' qd: the acceleration at steady joint rates.

        Returns:
            A kernel (..., n), (..., n) -> (..., 6): linear [m/s^2], angular [rad/s^2].
        """
        twist = named_twist(self, frame, relative_to, point, axes)

        def make(tree: Tree, selection: Inputs) -> Program:
            return acceleration_program(tree, twist, selection, bias=True)

        question = "bias_acceleration", twist
        return kernel_of(self, question, lambda: twist, make, joints, state)

    def pose_error(
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        joints: Joints = None,
        state: State | None = None,
        form: str = "matrix",
    ) -> AnyKernel:
        """Return the kernel of a pose error: (q, target) to the twist that corrects it.

        Held for a unit of time, the twist moves the frame onto the target, along a
        screw with an angle of at most pi: X_target = X exp(V), in the axes of `frame`.

        Args:
            frame: Which frame is to be at the target.
            relative_to: The frame in which the target is given.
            joints: As for `fk`.
            state: As for `fk`.
            form: Of the target: `matrix`, `quaternion` or `dual_quaternion`, these of
                any length and either sign.

        Returns:
            A kernel (..., n), (..., 4, 4) -> (..., 6): linear [m], angular [rad]; with
            (7,) or (8,) in place of (4, 4) in the other forms.

        Raises:
            UnknownName: A frame, joint or form does not exist.
            ModelError: A bare name is not unique.
        """
        if form not in FORMS:
            raise unknown("form of a pose", form, FORMS)
        at = self.frame(frame), self.frame(relative_to)

        def make(tree: Tree, selection: Inputs) -> Program:
            return pose_error_program(tree, *at, selection, form=form)

        question = "pose_error", at, form
        return kernel_of(self, question, lambda: at, make, joints, state)

    def ik(
        self,
        frames: str | Sequence[str],
        *,
        relative_to: str = WORLD,
        joints: Joints = None,
        state: State | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
        closed: ClosedForm | None = None,
    ) -> InverseKinematics:
        """Return the solver of inverse kinematics: targets to joint positions.

        Args:
            frames: The frame to place, or a list of frames to place at once.
            relative_to: The frame in which targets are given.
            joints: Names of the joints that may move, in the order of q; the others
                stay at home, or as in `state`. By default all.
            state: Whose attachments and moved bases count, as for `fk`.
            position: Which of x, y and z count, such as `xy`; empty for none.
            rotation: Rotations about which axes count: `xy` leaves the tool free to
                spin about its z; empty leaves the direction free.
            axes: Whether these axes are those of the `target` or of `relative_to`.
            closed: A closed form of your own for these joints.

        Returns:
            A solver to call with targets (..., 4, 4), or (..., k, 4, 4) for k frames.

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: A bare name is not unique, nothing is asked for, or no joint
                moves a frame.
        """
        from armillary.ik.factory import solver_of  # nobody else pays for it

        return solver_of(
            self,
            frames,
            relative_to=relative_to,
            joints=joints,
            state=state,
            position=position,
            rotation=rotation,
            axes=axes,
            closed=closed,
        )

    def differential_ik(  # noqa: PLR0913
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
        joints: Joints = None,
        state: State | None = None,
        limits: bool = True,
    ) -> DifferentialSolver:
        """Return the solver of differential inverse kinematics: twists to rates.

        Args:
            frame: The frame whose twist is wanted.
            relative_to: As for `jacobian`.
            point: As for `jacobian`.
            axes: As for `jacobian`.
            position: Which linear velocities count, such as `xy`; empty for none.
            rotation: About which axes angular velocities count.
            joints: As for `ik`.
            state: As for `fk`.
            limits: Whether limits of positions and rates hold.

        Returns:
            A solver to call with q (..., n) and twists (..., 6); its `then` adds
            tasks of lower priority, `for_purpose` what the freedom left is used for.

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: A bare name is not unique, or nothing is asked for.
        """
        from armillary.ik.differential import differential_of

        names = (frame, relative_to, point, axes)
        return differential_of(self, names, (position, rotation), joints, state, limits)

    # devices

    def device(
        self,
        names: str | Sequence[str] = (),
        *,
        joints: Joints = None,
        base: str | None = None,
        ends: str | Sequence[str] = (),
        state: State | None = None,
    ) -> Device:
        """Return a view of the cell in which only some joints move, with its own q.

        Args:
            names: A manipulator or a group of joints, or a list of them in the order
                of q. Their passive joints are left out.
            joints: Names of joints in the order of q, in place of `names`; passive ones
                may be among them.
            base: The frame that poses are relative to; by default that of what is
                named, or the nearest that carries all of it.
            ends: The frames that it moves. With them only the joints between the base
                and those move, in the order in which they come. By default the end
                effectors of what is named, or else its last links.
            state: Where all else stands; at home by default.

        Raises:
            UnknownName: A manipulator, group, joint or frame does not exist.
            ModelError: Nothing is named, a joint is named twice, or a bare name is not
                unique.
            StateError: The state is not one of this cell.
        """
        bound = self.bind(state or self.home)
        listed = (names,) if isinstance(names, str) else tuple(names)
        tips = (ends,) if isinstance(ends, str) else tuple(ends)
        if isinstance(joints, str):
            raise ModelError(f"joints= takes a list of names, not the text '{joints}'.")
        choice = chosen(bound, listed, joints, base, tips)
        return Device(cell=self, state=bound, **choice._asdict())

    def differential_drive(
        self,
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
            name: The manipulator, which stands on the world and is not bolted down.
            left: The joint of the wheel at the greater y. Where nothing but the name is
                given, the manipulator has to have `wheels`.
            right: The joint of the other wheel.
            radius: Of the wheels [m]; their axes tell which way they roll.
            travel: In place of a radius, how far a wheel rolls forward per unit of its
                joint [m]; 1 where its q is a length, as in RobWork.
            track_width: The distance of the wheels [m]; by default that of their links.

        Raises:
            UnknownName: A manipulator or joint does not exist.
            ModelError: The wheels are not on one axle along y of the base, or there
                are none.
            StateError: The base is bolted down, or stands on another.
        """
        self.home.check_free(name)
        base = placed_frame(self, name)
        wheels = wheels_of(self, name, (left, right), (radius, travel, track_width))
        axle = axle_of(self, base, wheels)
        return DifferentialDrive(cell=self, manipulator=name, axle=axle)
