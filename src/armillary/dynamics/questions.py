"""Questions of dynamics about forces, accelerations and what they depend on.

Each function takes a cell and returns a kernel; `armillary.Cell` has them as methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from armillary.dynamics import derivatives, forward, inverse
from armillary.dynamics import mass_matrix as composite
from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.options import DynamicsOptions, Options, options_of
from armillary.errors import ModelError, quote
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY

__all__ = [
    "bias_torque",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "gravity_torque",
    "inertial_parameters",
    "inertial_regressor",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "mass_matrix",
    "torque_rates",
]


def inverse_dynamics(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of inverse dynamics: (q, qd, qdd) to the torques needed.

    They are the forces and torques of the joints' motors, tau = M qdd + C qd + g, with
    what friction, springs and the motors' own inertia take (`Link.dynamics`). Links of
    unknown inertia count nothing. Closed loops and couplings are followed: what their
    joints need is asked of the independent ones.

    Args:
        cell: Whose joints.
        options: Those of all questions of dynamics:
            `joints`, names of the joints that vectors hold, in that order; the others
            are locked at home, or as in `state`. By default all.
            `state`, whose attachments, moved bases and other joints count: a part that
            is gripped weighs on the gripper. Another grip or pose compiles nothing, but
            where what is gripped has joints of its own.
            `gravity`, the acceleration of falling bodies in the world [m/s^2], by
            default (0, 0, -9.81).
            `free_bases`, names of manipulators whose bases nothing holds, such as
            floating or legged ones. The kernel then takes their poses first,
            (..., k, 4, 4), and each vector begins with six numbers for each: the
            velocity [m/s] or acceleration of its origin, then the angular ones
            [rad/s], in the axes of the world; of torques, a force [N] on its origin
            and a moment [N m].
            `dtype`, float64 or float32.
            `parameters`, names of numbers of the cell, such as `forearm.inertia.m` or
            `elbow.dynamics.damping`, which are an input p of shape (..., k) behind q;
            see `cell.parameters`.

    Returns:
        A kernel of three (..., n) -> (..., n) [N m or N].

    Raises:
        UnknownName: A joint, a manipulator or an option does not exist.
        ModelError: No link that joints move has an inertia; a free base is fixed or
            attached; the gravity is not three numbers.
        StateError: The state is not one of this cell, or a base that is not free moves
            in it.
    """
    return options_of(cell, options).kernel(
        "inverse_dynamics", inverse.inverse_dynamics, ("qd", "qdd"), output="torque"
    )


def forward_dynamics(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of forward dynamics: (q, qd, torque) to accelerations.

    The faster of two methods is taken, factors of the mass matrix or articulated
    bodies. A row is NaN where the mass matrix is singular.

    Args:
        cell: Whose joints.
        options: As for `inverse_dynamics`.

    Returns:
        A kernel of three (..., n) -> (..., n) [rad/s^2 or m/s^2].

    Raises:
        ModelError: As for `inverse_dynamics`; or a joint moves no mass, so that its
            acceleration is unknown.
    """
    checked = options_of(cell, options)
    checked.check_regular()
    return checked.kernel(
        "forward_dynamics", forward.forward_dynamics, ("qd", "torque"), output="qdd"
    )


def mass_matrix(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the joint-space mass matrix, with the motors' inertia.

    Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel (..., n) -> (..., n, n), symmetric [kg m^2, kg m or kg].
    """
    return options_of(cell, options).kernel(
        "mass_matrix", composite.mass_matrix, output="mass_matrix"
    )


def gravity_torque(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the torques that hold everything at rest: q to g(q).

    Arguments are as for `inverse_dynamics`; springs count.

    Returns:
        A kernel (..., n) -> (..., n) [N m or N].
    """

    def equations(bodies: Multibody) -> Any:
        return inverse.inverse_dynamics(bodies, bodies.zeros, bodies.zeros)

    return options_of(cell, options).kernel(
        "gravity_torque", equations, output="torque"
    )


def bias_torque(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the torques at steady rates: (q, qd) to C qd + g.

    Arguments are as for `inverse_dynamics`; friction and springs count.

    Returns:
        A kernel of two (..., n) -> (..., n) [N m or N].
    """

    def equations(bodies: Multibody, qd: Any) -> Any:
        return inverse.inverse_dynamics(bodies, qd, bodies.zeros)

    return options_of(cell, options).kernel(
        "bias_torque", equations, ("qd",), output="torque"
    )


def inverse_dynamics_derivatives(
    cell: Workcell, **options: Unpack[Options]
) -> AnyKernel:
    """Return the kernel of the exact derivatives of `inverse_dynamics`.

    It takes (q, qd, qdd) and returns three matrices, (dtau/dq, dtau/dqd, dtau/dqdd),
    the last being the mass matrix. Row i is the torque of coordinate i, column j by
    coordinate j. Closed loops and couplings are followed: the derivatives are total, by
    the independent joints. Coulomb friction has the derivative 0.

    By the position of a free base is by a twist of it in the axes of the world: three
    columns by a displacement of its origin [m], which are zero, and three by rotations
    about that [rad], where the vectors qd and qdd keep their numbers.

    Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel of three (..., n) -> three (..., n, n) [N m/rad, N m s/rad, kg m^2,
        and the like for lengths]. With `parameters` there is a fourth, dtau/dp,
        (..., n, k).

    Raises:
        ModelError: As for `inverse_dynamics`.
        NotCompiled: A script that cannot be compiled moves something.
    """
    return options_of(cell, options).kernel(
        "inverse_dynamics_derivatives",
        derivatives.inverse_dynamics_derivatives,
        ("qd", "qdd"),
        output=("by_q", "by_qd", "by_qdd", *_by_parameters(options)),
    )


def torque_rates(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the last of `inverse_dynamics_derivatives` alone: dtau/dp.

    Arguments are as for `inverse_dynamics`, with k `parameters`.

    Returns:
        A kernel of (..., n), (..., k), (..., n), (..., n) -> (..., n, k).
    """
    return options_of(cell, options).kernel(
        "torque_rates",
        derivatives.torque_rates,
        ("qd", "qdd"),
        output="by_parameters",
        needs_inertia=False,
    )


def forward_dynamics_derivatives(
    cell: Workcell, **options: Unpack[Options]
) -> AnyKernel:
    """Return the kernel of the exact derivatives of `forward_dynamics`.

    It takes (q, qd, torque) and returns three matrices, (dqdd/dq, dqdd/dqd,
    dqdd/dtorque), the last being the inverse of the mass matrix. They are as for
    `inverse_dynamics_derivatives`: -M^-1 dtau/dq and so on where the torque acts. A row
    is NaN where the mass matrix is singular.

    Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel of three (..., n) -> three (..., n, n) [1/s^2, 1/s, 1/(kg m^2), and the
        like for lengths]. With `parameters` there is a fourth, dqdd/dp, (..., n, k).

    Raises:
        ModelError: As for `forward_dynamics`.
        NotCompiled: A script that cannot be compiled moves something.
    """
    checked = options_of(cell, options)
    checked.check_regular()
    return checked.kernel(
        "forward_dynamics_derivatives",
        derivatives.forward_dynamics_derivatives,
        ("qd", "torque"),
        output=("by_q", "by_qd", "by_torque", *_by_parameters(options)),
    )


def _by_parameters(options: Options) -> tuple[str, ...]:
    return ("by_parameters",) if options.get("parameters") else ()


def inertial_regressor(
    cell: Workcell, links: Sequence[str] | None = None, **options: Unpack[Options]
) -> AnyKernel:
    """Return the kernel of the regressor Y: (q, qd, qdd) to a matrix.

    Torques are linear in the inertias of links: those of `inverse_dynamics` are
    Y phi, where phi is `inertial_parameters`, and what motors, friction and springs
    add (`Link.dynamics`), and what other links need than those asked for. So least
    squares of Y over measured torques identifies inertias, as of a part that a state
    grips. Links need no inertia of their own here.

    Args:
        cell: Whose joints.
        links: Names of links, each with ten columns in this order; by default all that
            joints move, or that are fixed to these, in the order of the cell.
        options: As for `inverse_dynamics`.

    Returns:
        A kernel of three (..., n) -> (..., n, 10 k) for k links: torques [N m or N] per
        unit of m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz of each link: mass
        [kg], first moment [kg m] and rotational inertia [kg m^2] about the origin of
        the link's primary frame, as `SpatialInertia.parameters` of its `inertia`.

    Raises:
        UnknownName: A link, a joint, a manipulator or an option does not exist.
        ModelError: `links` is empty, or names a link twice or another frame.
        StateError: As for `inverse_dynamics`.
    """
    checked = options_of(cell, options)
    chosen = _links(checked, links)

    def equations(bodies: Multibody, qd: Any, qdd: Any) -> Any:
        return inverse.regressor(bodies, qd, qdd, chosen)

    return checked.kernel(
        ("inertial_regressor", chosen),
        equations,
        ("qd", "qdd"),
        output="regressor",
        frames=[FrameRef(link, IDENTITY) for link in chosen],
        needs_inertia=False,
    )


def inertial_parameters(
    cell: Workcell, links: Sequence[str] | None = None, **options: Unpack[Options]
) -> npt.NDArray[np.float64]:
    """Return the inertial parameters phi of links, for `inertial_regressor`.

    A link of unknown inertia has zeros.

    Args:
        cell: Whose links.
        links: As for `inertial_regressor`.
        options: As there; `state` and `free_bases` decide which links move.

    Returns:
        Shape (10 k,), in the order and units of the columns of the regressor.

    Raises:
        UnknownName: A link or a manipulator does not exist.
        ModelError: As for `inertial_regressor`.
    """
    checked = options_of(cell, options)
    inertias = [cell.links[link].inertia for link in _links(checked, links)]
    rows = [(each or SpatialInertia.zero()).parameters for each in inertias]
    return np.array(rows, dtype=np.float64).ravel()


def _links(checked: DynamicsOptions, names: Sequence[str] | None) -> tuple[int, ...]:
    cell = checked.cell
    if names is None:
        fixed = checked.tree_and_bodies[1].fixed
        return tuple(sorted(k for k, (body, _) in fixed.items() if body != GROUND))
    given: Any = names
    if not isinstance(given, (list, tuple)) or not given:
        raise ModelError(
            f"links= takes a list of names of links, not {quote(names)}; None is all "
            "that joints move."
        )
    chosen: list[int] = []
    tree = Tree.of(cell)
    for name in names:
        link = cell.frame(name).link
        if link < 0 or not tree.is_link(cell.qualified(name)):
            raise ModelError(
                f"{quote(name)} has no inertia; name the link that it is fixed to, "
                f"{quote(tree.name(link))}."
                if link >= 0
                else "The world has no inertia; name links."
            )
        chosen.append(link)
    if len(set(chosen)) < len(chosen):
        raise ModelError(f"links= names a link twice: {list(names)}.")
    return tuple(chosen)
