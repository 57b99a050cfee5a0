"""The joint contract: one number in, a pose out; everything else follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.model.bound import largest_distance
from armillary.model.motion import Motion, motion_of
from armillary.model.parameters import approx_equal, canonical
from armillary.model.scaling import scaled_parameters
from armillary.model.unit import Unit
from armillary.spatial import twist
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number

Array = npt.NDArray[np.float64]


class Joint(msgspec.Struct, frozen=True, kw_only=True):
    """A joint of one coordinate q, between an inner frame F and an outer frame M.

    Write a subclass with annotated parameters and one method, `pose(q)`:

        class Circle(Joint):
            radius: float
            unit = METRE

            def pose(self, q):
                turn = Pose.rotation_z(q / self.radius)
                return turn @ Pose.translation(self.radius, 0, 0)

    Velocity, acceleration, forces, bounds, scaling, equality, saving and machine code
    follow from it. Joints are values: frozen, hashable, equal by their parameters.

    Attributes:
        precursor: A constant pose in front of the motion, X_FM(q) = precursor pose(q).
        unit: What q is measured in (of the class).
        tag: The name under which files know the class; by default that of the class.
    """

    precursor: Pose = Pose.identity()

    unit: ClassVar[Unit] = Unit.RADIAN
    tag: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class its tag and check its unit."""
        super().__init_subclass__(**options)
        if "tag" not in cls.__dict__:
            cls.tag = cls.__name__
        if not isinstance(cls.unit, Unit):
            raise JointError(
                f"{cls.__name__}.unit is {cls.unit!r}; it must be METRE, RADIAN or "
                "OTHER of armillary."
            )

    def __post_init__(self) -> None:
        """Bring the parameters into their stored form and check them.

        Raises:
            JointError: A parameter is not finite, or of a kind that cannot be stored.
        """
        if type(self).pose is Joint.pose:
            raise JointError(
                f"{type(self).__name__} has no pose(self, q). That method is the joint: "
                "it returns the pose of the outer frame in the inner one."
            )
        for name in self.__struct_fields__:
            value = getattr(self, name)
            stored = canonical(value, f"{type(self).__name__}.{name}")
            if stored is not value:
                msgspec.structs.force_setattr(self, name, stored)
        self.check()

    # What a subclass writes.

    def pose(self, q: Number) -> Any:
        """Return where the joint has moved its outer frame to at coordinate `q`.

        Args:
            q: A traced scalar, or a float [`unit`]. Use `numpy` functions or those of
                `armillary.trace.functions`; `if` on comparisons with q is fine.

        Returns:
            A `Pose`, a 4x4 array, or a pair of rotation (3, 3) and position (3,).
        """
        raise NotImplementedError

    def subspace(self, q: Number) -> Any:
        """Return the twist of M relative to F at unit rate, written in M, about M.

        None, the default, has it derived from `pose`. A closed form, six numbers with
        the linear ones first, may cost less; `check_joint` compares the two.
        """
        return None

    def check(self) -> None:
        """Raise JointError where the parameters make no joint; override to add rules."""

    # What follows from it.

    @property
    def motion(self) -> Motion:
        """Return the traced motion of this joint, made once for equal joints."""
        if self.precursor.is_identity:
            return motion_of(self)
        return motion_of(msgspec.structs.replace(self, precursor=Pose.identity()))

    def placement(self, q: float) -> Pose:
        """Return X_FM(q), the outer frame in the inner one, precursor included.

        Raises:
            JointError: `pose` does not return a pose.
        """
        return self.precursor @ self.motion.pose(float(q))

    def velocity(self, q: float, qd: float) -> Array:
        """Return the twist of M relative to F, written in M, at rate `qd`.

        Returns:
            Linear [m/s], then angular [rad/s], shape (6,).
        """
        return np.array([s * qd for s in self.motion.subspace(float(q))])

    def acceleration(self, q: float, qd: float, qdd: float) -> Array:
        """Return the acceleration of M relative to F, written in M.

        It is the time derivative, taken in F, of the velocities of M: with S = (v, w)
        the twist at unit rate, linear v qdd + v' qd^2 + (w x v) qd^2 and angular
        w qdd + w' qd^2.

        Returns:
            Linear [m/s^2], then angular [rad/s^2], shape (6,).
        """
        S = np.array(self.motion.subspace(float(q)))
        rate = np.array(self.motion.subspace_rate(float(q)))
        result = S * qdd + rate * qd**2
        result[:3] += np.cross(S[3:], S[:3]) * qd**2
        return result

    def torque_to_exert(self, q: float, wrench: Sequence[float]) -> float:
        """Return S' F: the joint force that exerts a wrench on the outer body.

        Args:
            q: Coordinate [`unit`].
            wrench: Force [N], then moment about M's origin [N m], in M; shape (6,).
        """
        return float(
            twist.power(tuple(self.motion.subspace(float(q))), twist.vector6(wrench))
        )

    def unit_acceleration_torque(self, q: float, inertia: SpatialInertia) -> float:
        """Return S' I S: the joint force for a unit of qdd on a body at rest.

        Args:
            q: Coordinate [`unit`].
            inertia: Inertia about M's origin, in M; articulated-body inertias too.
        """
        S = np.array(self.motion.subspace(float(q)))
        return float(S @ inertia.matrix() @ S)

    def origin_bound(self, lower: float, upper: float) -> float:
        """Return an upper bound of the distance between the origins of F and M [m].

        It holds for every q between the limits, in whichever order they are given and
        also where they are infinite, and is proved by interval arithmetic.
        """
        low, high = min(lower, upper), max(lower, upper)
        return largest_distance(self.motion, self.precursor, low, high)

    def prepend(self, X: Pose) -> Self:
        """Return the joint with precursor X @ precursor: another pose in front of it."""
        return msgspec.structs.replace(self, precursor=X @ self.precursor)

    def offset_inboard(self, offset: Pose) -> Self:
        """Return the joint with precursor precursor @ offset, a corrected inner frame."""
        return msgspec.structs.replace(self, precursor=self.precursor @ offset)

    def scaled(self, factor: float) -> Self:
        """Return the joint with all its lengths `factor` times as long.

        A coordinate in metres must then be scaled too. Which parameters are lengths
        follows from the law that a scaled joint moves a scaled path.

        Raises:
            JointError: `factor` is not above zero, or no choice of parameters scales
                the motion; then override `scaled`.
        """
        if not 0.0 < factor < float("inf"):
            raise JointError(f"A model is scaled by a number above 0, not {factor!r}.")
        scaled = msgspec.structs.replace(self, precursor=self.precursor.scaled(factor))
        return scaled_parameters(scaled, factor)

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` is such a joint and no parameter differs by more."""
        return type(other) is type(self) and all(
            approx_equal(getattr(self, name), getattr(other, name), tolerance)
            for name in self.__struct_fields__
        )
