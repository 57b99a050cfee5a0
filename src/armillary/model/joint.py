"""The joint contract: one number in, a pose out; everything else follows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, ClassVar, Self, dataclass_transform

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.model import parameters
from armillary.model.fields import replaced
from armillary.model.motion import TracedMotion, motion_of
from armillary.model.unit import Unit
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose, pose_from
from armillary.spatial.twist import (
    coadjoint,
    cross_twist,
    cross_wrench,
    power,
    vector6,
)
from armillary.spatial.vector import Number
from armillary.trace import Traced

Array = npt.NDArray[np.float64]

# the step of the articulated body algorithm from a joint's outer body to its inner
#
# Featherstone, Rigid Body Dynamics Algorithms, table 7.1. With S and c = S* qd + V x S
# qd of the joint, the outer body's articulated inertia I and bias force p, the torque t
# and the armature A of the motor:
#
# U = I S, D = S' U + A, u = t - S' p I_a = I - U U' / D, p_a = p + I_a c + U u / D qdd
# = (u - U' a) / D, a_outer = a + S qdd with a = a_inner + c
#
# Accelerations are those of twists: time derivatives in the axes of the body.


class ArticulatedStep(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the inner body feels of a joint and of all bodies beyond it.

    Attributes:
        inertia: Articulated inertia, about F's origin, in F, linear first, (6, 6).
        bias: Bias force, the wrench that no acceleration of F needs: force [N], then
            moment about F's origin [N m], in F, shape (6,).
    """

    inertia: Array
    bias: Array
    _subspace: Array
    _momentum: Array
    _product: Array
    _back: Array
    _unit_torque: float
    _free_torque: float

    def acceleration(self, of_inner: npt.ArrayLike) -> tuple[float, Array]:
        """Return qdd, and the acceleration of the outer body.

        Args:
            of_inner: Acceleration of F, written in F, linear first, shape (6,); of a
                base at rest minus gravity, such as (0, 0, 9.81, 0, 0, 0).

        Returns:
            qdd, 0 where the joint cannot move, and the acceleration of M in M, (6,).

        Raises:
            ShapeError: `of_inner` are not six numbers.
        """
        given = np.asarray(of_inner, dtype=np.float64)
        if given.shape != (6,):
            raise ShapeError(f"An acceleration has shape (6,), not {given.shape}.")
        a = self._back @ given + self._product
        if self._unit_torque == 0.0:
            return 0.0, a
        qdd = (self._free_torque - self._momentum @ a) / self._unit_torque
        return float(qdd), a + self._subspace * qdd


def articulated_step(
    inertia: Array,
    bias: Array,
    *,
    subspace: Array,
    product: Array,
    coadjoint: Array,
    torque: float,
    armature: float,
) -> ArticulatedStep:
    """Return the step of a joint.

    Args:
        inertia: Of the outer body, about M's origin, in M, shape (6, 6).
        bias: Its bias force, in M, shape (6,).
        subspace: S, in M, shape (6,).
        product: c, in M, shape (6,).
        coadjoint: The matrix that brings wrenches from M to F, shape (6, 6).
        torque: Of the joint [N m or N].
        armature: Inertia of its motor, as felt at the joint [kg m^2 or kg].
    """
    momentum = inertia @ subspace
    unit_torque = float(subspace @ momentum) + armature
    free_torque = torque - float(subspace @ bias)
    left, wrench = inertia, bias
    if unit_torque != 0.0:  # it is 0 for a fixed joint, which passes on everything
        left = inertia - np.outer(momentum, momentum) / unit_torque
        wrench = bias + momentum * (free_torque / unit_torque)
    return ArticulatedStep(
        inertia=coadjoint @ left @ coadjoint.T,
        bias=coadjoint @ (wrench + left @ product),
        _subspace=subspace,
        _momentum=momentum,
        _product=product,
        _back=coadjoint.T,
        _unit_torque=unit_torque,
        _free_torque=free_torque,
    )


# the joint contract: one number in, a pose out; everything else follows


class JointClass(msgspec.StructMeta):
    """The class of classes of joints, which says what they may not define."""

    def __new__(mcls, name: str, bases: Any, members: Any, **options: Any) -> Any:
        """Make a class of joints.

        Raises:
            JointError: It defines `__init__`, which is made from its parameters.
        """
        if "__init__" in members:
            raise JointError(
                f"{name} defines __init__, which every joint has already: annotate its "
                "parameters in the class, such as 'radius: float', check them in "
                "check(self), and compute what follows from them in pose(self, q) or "
                "a property."
            )
        return super().__new__(mcls, name, bases, members, **options)


@dataclass_transform(frozen_default=True)  # users' classes need not say frozen=True
class Joint(
    parameters.Parameterised,
    frozen=True,
    kw_only=True,
    repr_omit_defaults=True,
    metaclass=JointClass,
):
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
        precursor: A constant pose in front of the motion, X_FM(q) = precursor pose(q);
            a `Pose` or a 4x4 array.
        unit: What q is measured in (of the class).
        tag: The name under which files know the class; by default that of the class.
        token: Namespace and name of its element in Actin-style XML, as
            `"MyNameSpace#circleJoint"`; by default its tag in a namespace of our own.
        library: The plug-in that its element names there, `"CircleJoint.ecp"`.
        elements: Names of the elements of parameters there, if they are not those of
            the parameters: `{"radius": "circleJointRadius"}`; also of the precursor.
        motor: Type of its motor in Isaac's kinematic trees, an extension of them; where
            it is empty, those hold the joint as fixed.
        lengths: The parameters that are lengths (of the class); found by trying where
            it is None.
    """

    precursor: Pose = IDENTITY

    unit: ClassVar[Unit] = Unit.RADIAN
    tag: ClassVar[str] = ""
    token: ClassVar[str] = ""
    library: ClassVar[str] = ""
    elements: ClassVar[Mapping[str, str]] = MappingProxyType({})
    motor: ClassVar[str] = ""
    lengths: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class its tag and check its unit."""
        super().__init_subclass__(**options)
        if "tag" not in cls.__dict__:
            cls.tag = cls.__name__
        if "lengths" not in cls.__dict__:
            cls.lengths = None
        for name in ("token", "library", "motor"):
            if name not in cls.__dict__:
                setattr(cls, name, "")
        if "elements" not in cls.__dict__:
            cls.elements = MappingProxyType({})
        token: Any = cls.token
        if token and isinstance(token, str) and not all(token.rpartition("#")[::2]):
            raise JointError(
                f"{cls.__name__}.token is {token!r}; it must be a namespace, '#' and a "
                "name, such as 'MyNameSpace#circleJoint'."
            )
        unit: Any = cls.unit
        if inspect.ismemberdescriptor(unit):  # it was annotated
            raise _of_the_class(cls, "unit")
        if not isinstance(unit, Unit):
            raise JointError(
                f"{cls.__name__}.unit is {unit!r}; it must be METRE, RADIAN or OTHER "
                "of armillary."
            )
        if "__post_init__" in cls.__dict__:
            followed: Any = _followed_by_checks(cls.__dict__["__post_init__"])
            cls.__post_init__ = followed

    def __post_init__(self) -> None:
        """Bring the parameters into their stored form and check them.

        Raises:
            JointError: A parameter is not finite, not what its annotation says, or of
                a kind that cannot be stored; or the class makes no joint.
        """
        _check_class(type(self))
        parameters.store(self)
        self.check()

    @property
    def input_units(self) -> tuple[Unit, ...]:
        """Return what each coordinate is measured in: one but for a `Mechanism`."""
        return (self.unit,)

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

    @property
    def period(self) -> float | None:
        """Return the step of q [`unit`] after which the pose repeats, None if none.

        Override it where there is one: bounds over infinite ranges are tight then.
        """
        return None

    def check(self) -> None:
        """Raise JointError where the parameters make no joint; override to add rules.

        It is called whenever a joint is made.
        """

    # What follows from it.

    @property
    def motion(self) -> TracedMotion:
        """Return the traced motion of this joint, made once for equal joints."""
        if self.precursor.is_identity:
            return motion_of(self)
        return motion_of(msgspec.structs.replace(self, precursor=IDENTITY))

    def transform(self, q: Number) -> Pose:
        """Return X_FM(q), the pose of the outer frame in the inner one.

        Unlike `pose` it includes the precursor, so a joint that has joints among its
        parameters moves by theirs.

        q: Coordinate [`unit`], a float or a traced scalar.

        Raises:
            JointError: `pose` does not return a pose.
            ShapeError: `q` is not one number.
        """
        moved = self.motion.pose(q if isinstance(q, Traced) else _one_number(q))
        return moved if self.precursor.is_identity else self.precursor @ moved

    def velocity(self, q: float, qd: float) -> Array:
        """Return the twist of M relative to F, written in M, at `q` and the rate `qd`.

        Returns:
            Linear [m/s], then angular [rad/s], shape (6,).
        """
        return self._unit_twist(q) * _one_number(qd)

    def acceleration(self, q: float, qd: float, qdd: float) -> Array:
        """Return the acceleration of M relative to F, written in M, at q, qd and qdd.

        It is the time derivative, taken in F, of the velocities of M: with S = (v, w)
        the twist at unit rate, linear v qdd + v' qd^2 + (w x v) qd^2 and angular
        w qdd + w' qd^2.

        Returns:
            Linear [m/s^2], then angular [rad/s^2], shape (6,).
        """
        S, speed = self._unit_twist(q), _one_number(qd)
        rate = np.array(self.motion.subspace_rate(_one_number(q)), dtype=np.float64)
        rate[:3] += np.cross(S[3:], S[:3])
        return S * _one_number(qdd) + rate * speed**2

    def torque_to_exert(self, q: float, wrench: Sequence[float]) -> float:
        """Return S' F: the joint force that exerts a wrench on the outer body.

        Args:
            q: Coordinate [`unit`].
            wrench: Force [N], then moment about M's origin [N m], in M; shape (6,).
        """
        S = self.motion.subspace(_one_number(q))
        return float(power(S, vector6(wrench)))

    def unit_acceleration_torque(
        self, q: float, inertia: SpatialInertia | npt.ArrayLike
    ) -> float:
        """Return S' I S: the joint force for a unit of qdd on a body at rest.

        Args:
            q: Coordinate [`unit`].
            inertia: About M's origin, in M; a matrix, shape (6, 6), linear first, where
                it is that of an articulated body.
        """
        S = self._unit_twist(q)
        return float(S @ _inertia_matrix(inertia) @ S)

    def articulated_inertia(
        self, q: float, inertia: SpatialInertia | npt.ArrayLike
    ) -> Array:
        """Return the inertia that the inner body feels, this joint being free to move.

        I_a = I - I S (S' I S)^-1 S' I, then from M to F: the inertia of
        `articulated_step`.

        Args:
            q: Coordinate [`unit`].
            inertia: As for `unit_acceleration_torque`.

        Returns:
            About F's origin, in F, linear first, shape (6, 6).
        """
        return self.articulated_step(q, inertia).inertia

    def articulated_step(
        self,
        q: float,
        inertia: SpatialInertia | npt.ArrayLike,
        *,
        qd: float = 0.0,
        twist: npt.ArrayLike | None = None,
        bias: npt.ArrayLike | None = None,
        torque: float = 0.0,
        armature: float = 0.0,
    ) -> ArticulatedStep:
        """Return what the inner body feels: a step of the articulated body algorithm.

        A body's bias force is V x* I V less the wrenches that act on it; add what its
        joints return in its frame. `.acceleration` goes the way back.

        Args:
            q: Coordinate [`unit`].
            inertia: As for `unit_acceleration_torque`.
            qd: Rate [`unit`/s].
            twist: Of the outer body in M, shape (6,): linear [m/s], then angular
                [rad/s]; by default it moves by this joint alone.
            bias: Bias force of the outer body about M's origin, in M, shape (6,): force
                [N], then moment [N m]; by default that of a rigid body with `twist`.
            torque: Of the joint, less its friction [N m or N].
            armature: Inertia of the motor as felt at the joint [kg m^2 or kg], that of
                its rotor times the square of the gear ratio.

        Raises:
            ShapeError: An array has another shape.
        """
        S, rate, matrix = self._unit_twist(q), _one_number(qd), _inertia_matrix(inertia)
        V = vector6(tuple(S * rate) if twist is None else twist)
        if bias is None:
            bias = cross_wrench(V, vector6(matrix @ np.array(V)))
        turning = np.array(self.motion.subspace_rate(_one_number(q))) * rate**2
        return articulated_step(
            matrix,
            np.array(vector6(bias), dtype=np.float64),
            subspace=S,
            product=turning + np.array(cross_twist(V, vector6(tuple(S * rate)))),
            coadjoint=np.array(coadjoint(self.transform(q)), dtype=np.float64),
            torque=_one_number(torque),
            armature=_one_number(armature),
        )

    def origin_bound(self, lower: float, upper: float) -> float:
        """Return an upper bound of the distance between the origins of F and M [m].

        It holds for every q between `lower` and `upper`, in either order and also if
        they are infinite, and is proved by interval arithmetic.

        Raises:
            JointError: A limit is NaN.
        """
        with IMPORT_LOCK:
            from armillary.model.speed_bound import largest_distance

        low, high = self._range(lower, upper)
        return largest_distance(self.motion, self.precursor, low, high)

    def speed_bounds(self, lower: float, upper: float) -> tuple[float, float]:
        """Return upper bounds of how fast M moves and turns in F at unit rate of q.

        They hold for every q between `lower` and `upper`, in either order and also if
        they are infinite, and are proved by interval arithmetic: M's origin moves by no
        more than the first times the way of q, and M turns by no more than the second.
        A bound is infinite where a speed is, where the pose jumps, and where nothing
        could be proved.

        Returns:
            Of |v| of M's origin [m per unit of q] and of |w| [rad per unit of q].

        Raises:
            JointError: A limit is NaN.
        """
        with IMPORT_LOCK:
            from armillary.model.speed_bound import largest_speeds

        ((linear, angular),) = largest_speeds(self.motion, (self._range(lower, upper),))
        return linear, angular

    def replace(self, **parameters: Any) -> Self:
        """Return the joint with other values of some of its parameters.

        Raises:
            UnknownName: There is no such parameter.
            JointError: A value is not one that it can have.
        """
        return replaced(self, parameters, "parameter")

    def prepend(self, X: Pose) -> Self:
        """Return the joint with precursor X @ precursor: another pose in front of it.

        X: A `Pose` or a 4x4 array.
        """
        return msgspec.structs.replace(self, precursor=pose_from(X) @ self.precursor)

    def offset_inboard(self, offset: Pose) -> Self:
        """Return the joint with precursor precursor @ offset, a corrected inner frame.

        offset: A `Pose` or a 4x4 array.
        """
        return msgspec.structs.replace(
            self, precursor=self.precursor @ pose_from(offset)
        )

    def scaled(self, factor: float) -> Self:
        """Return the joint with all its lengths `factor` times as long.

        A coordinate in metres must then be scaled too. Which parameters are lengths
        follows from the law that a scaled joint moves a scaled path, where the class
        does not say so in `lengths`.

        Raises:
            JointError: `factor` is not above zero, or no choice of parameters scales
                the motion; then override `scaled`.
        """
        factor = _one_number(factor)
        if not 0.0 < factor < math.inf:
            raise JointError(f"A model is scaled by a number above 0, not {factor!r}.")
        with IMPORT_LOCK:
            from armillary.model.scaling import scaled_parameters

        scaled = msgspec.structs.replace(self, precursor=self.precursor.scaled(factor))
        return scaled_parameters(scaled, factor)

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` is such a joint, all numbers equal to `tolerance`."""
        return parameters.approx_equal(self, other, tolerance)

    def _range(self, lower: float, upper: float) -> tuple[float, float]:
        """Return a range in order, cut down to one period where it has more."""
        low, high = sorted((_one_number(lower), _one_number(upper)))
        if math.isnan(low) or math.isnan(high):
            raise JointError(f"The range [{lower}, {upper}] has a limit that is NaN.")
        if self.period is not None and not high - low < self.period:
            low, high = 0.0, self.period
        return low, high

    def _unit_twist(self, q: float) -> Array:
        """Return S(q) as an array, shape (6,)."""
        return np.array(self.motion.subspace(_one_number(q)), dtype=np.float64)


RESERVED = frozenset(name for name in dir(Joint) if name[0] != "_") - {"precursor"}


@lru_cache(maxsize=1024)
def _check_class(kind: type[Joint]) -> None:
    """Refuse a class without a pose, or with a parameter where a method must be."""
    for name in kind.__struct_fields__:
        if name in {"unit", "tag", "token", "library", "elements", "motor", "lengths"}:
            raise _of_the_class(kind, name)
        if name in RESERVED:
            raise JointError(
                f"{kind.__name__} has a parameter '{name}', which is the name of a "
                f"method of every joint; call it something else, such as '{name}_'."
            )
    if kind.pose is Joint.pose:
        raise JointError(
            f"{kind.__name__} has no pose(self, q). That method is the joint: it "
            "returns the pose of the outer frame in the inner one."
        )


def _of_the_class(kind: type[Joint], name: str) -> JointError:
    return JointError(
        f"{kind.__name__}.{name} belongs to the class, not to each joint: write it "
        f"without an annotation, {name} = ..."
    )


def _followed_by_checks(user: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a subclass's own __post_init__ with the checks of every joint after it."""

    @wraps(user)
    def both(self: Any) -> None:
        user(self)
        Joint.__post_init__(self)

    return both


def _one_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        shape = getattr(value, "shape", None)
        given = f"an array of shape {shape}" if shape else repr(value)
        raise ShapeError(
            f"One number was expected, not {given}. For many coordinates at once use "
            "the functions of a cell, such as cell.fk(frame)(Q)."
        ) from error


def _inertia_matrix(inertia: SpatialInertia | npt.ArrayLike) -> Array:
    if isinstance(inertia, SpatialInertia):
        inertia = inertia.matrix()
    matrix = np.asarray(inertia, dtype=np.float64)
    if matrix.shape != (6, 6):
        raise ShapeError(f"An inertia has shape (6, 6), not {matrix.shape}.")
    return matrix
