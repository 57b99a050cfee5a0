"""The step of the articulated body algorithm from a joint's outer body to its inner.

Featherstone, Rigid Body Dynamics Algorithms, table 7.1. With S and c = S* qd + V x S qd
of the joint, the outer body's articulated inertia I and bias force p, the torque t and
the armature A of the motor:

    U = I S,  D = S' U + A,  u = t - S' p
    I_a = I - U U' / D,  p_a = p + I_a c + U u / D
    qdd = (u - U' a) / D,  a_outer = a + S qdd  with  a = a_inner + c

Accelerations are those of twists: time derivatives in the axes of the body.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArticulatedStep:
    """What the inner body feels of a joint and of all bodies beyond it.

    Attributes:
        inertia: Articulated inertia, about F's origin, in F, linear first, (6, 6).
        bias: Bias force, the wrench that no acceleration of F needs: force [N], then
            moment about F's origin [N m], in F, shape (6,).
    """

    inertia: Array
    bias: Array
    _subspace: Array = field(repr=False)
    _momentum: Array = field(repr=False)
    _product: Array = field(repr=False)
    _back: Array = field(repr=False)
    _unit_torque: float = field(repr=False)
    _free_torque: float = field(repr=False)

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
