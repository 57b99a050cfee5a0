"""Questions of dynamics besides forces and accelerations: energies, momenta, reactions.

Each function takes a cell and returns a kernel; `armillary.Cell` has them as methods.
Their options are those of `inverse_dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Unpack

from armillary.dynamics import mass_matrix, operational
from armillary.dynamics import momentum as formulas
from armillary.dynamics.bodies import Bodies
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.operational import TwistRows
from armillary.dynamics.options import Options, options_of
from armillary.errors import ModelError
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.kernels import chosen_axes, frame_list
from armillary.model.fields import kept
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.twist import six

__all__ = [
    "CENTRE_OF_MASS",
    "centre_of_mass",
    "centre_of_mass_jacobian",
    "coriolis_matrix",
    "kinetic_energy",
    "momentum",
    "null_space_projector",
    "operational_inertia",
    "potential_energy",
    "reaction",
    "torque_of_wrench",
]

CENTRE_OF_MASS: Final = "centre of mass"
"""What `momentum` takes besides the names of frames."""


def kinetic_energy(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the kinetic energy: (q, qd) to qd' M qd / 2.

    Motors count with their inertia behind the gear. Arguments are as for
    `inverse_dynamics`.

    Returns:
        A kernel of two (..., n) -> (...,) [J].
    """
    return options_of(cell, options).kernel(
        "kinetic_energy", formulas.kinetic_energy, ("qd",), output="energy"
    )


def potential_energy(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the potential energy of gravity and springs.

    Its derivative by q is `gravity_torque`. A mass at the world's origin and a spring
    at rest have none; links that no joint moves do not count. Arguments are as for
    `inverse_dynamics`.

    Returns:
        A kernel (..., n) -> (...,) [J].
    """
    return options_of(cell, options).kernel(
        "potential_energy", formulas.potential_energy, output="energy"
    )


def centre_of_mass(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the centre of mass of all links that joints move.

    Links that joints= locks count; what stands fixed in the world does not, as in
    Pinocchio, and unlike MuJoCo, which counts it. `carried(frame, state)` has the
    centre of mass of what one frame carries. Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel (..., n) -> (..., 3), in the world [m].

    Raises:
        ModelError: As for `inverse_dynamics`; or there is no mass, only moments.
    """
    return options_of(cell, options).kernel(
        "centre_of_mass", formulas.centre_of_mass, output="centre"
    )


def centre_of_mass_jacobian(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the velocity of `centre_of_mass` per unit rate.

    Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel (..., n) -> (..., 3, n), in the world [m/s].
    """
    return options_of(cell, options).kernel(
        "centre_of_mass_jacobian", formulas.centre_of_mass_jacobian, output="jacobian"
    )


def momentum(
    cell: Workcell, *, about: str = WORLD, **options: Unpack[Options]
) -> AnyKernel:
    """Return the kernel of the momentum of all links that joints move.

    It is written in the axes of the world. Motors do not count: that they spin faster
    than joints is known as an inertia, not with its axis.

    Args:
        cell: Whose joints.
        about: The point that the angular momentum is about: the origin of a frame, by
            default that of the world, or `"centre of mass"`, that of these links. It is
            the momentum relative to the world also where the point moves.
        options: As for `inverse_dynamics`.

    Returns:
        A kernel of two (..., n) -> (..., 6): linear [kg m/s], angular [kg m^2/s].

    Raises:
        UnknownName: A frame does not exist; and as for `inverse_dynamics`.
    """
    at = None if about == CENTRE_OF_MASS else cell.frame(about)

    def equations(bodies: Multibody, qd: Any) -> Any:
        if at is None:
            return formulas.momentum(bodies, qd, None)
        # Of the cell of the tree, since parameters may change where the frame is.
        point = operational.frame_pose(bodies, bodies.tree.cell.frame(about)).position
        return formulas.momentum(bodies, qd, point)

    return options_of(cell, options).kernel(
        ("momentum", at),
        equations,
        ("qd",),
        output="momentum",
        frames=[] if at is None else [at],
    )


def coriolis_matrix(cell: Workcell, **options: Unpack[Options]) -> AnyKernel:
    """Return the kernel of the Coriolis matrix C: (q, qd) to C with M' - 2 C skew.

    C qd + g is `bias_torque`, less what friction takes; g is `gravity_torque`, which
    includes springs. M' is the time derivative of `mass_matrix`: C + C'. Without free
    bases C holds the Christoffel symbols, C_ij = sum_k (dM_ij/dq_k + dM_ik/dq_j -
    dM_jk/dq_i) qd_k / 2. By algorithm 1 of Echeandia and Wensing, Numerical Methods to
    Compute the Coriolis Matrix and Christoffel Symbols for Rigid-Body Systems (2021).
    Arguments are as for `inverse_dynamics`.

    Returns:
        A kernel of two (..., n) -> (..., n, n) [kg m^2/s, kg m/s or kg/s].
    """
    return options_of(cell, options).kernel(
        "coriolis_matrix", mass_matrix.coriolis_matrix, ("qd",), output="coriolis"
    )


def operational_inertia(
    cell: Workcell,
    frame: str,
    *,
    axes: str = WORLD,
    position: str = "xyz",
    rotation: str = "xyz",
    **options: Unpack[Options],
) -> AnyKernel:
    """Return the kernel of the inertia that a frame feels like: (J M^-1 J')^-1.

    J is the Jacobian of the frame, of its origin. Arms of fewer than six joints need
    fewer rows of it: `position="xyz", rotation=""` is the inertia that a force meets.
    Khatib, A Unified Approach for Motion and Force Control of Robot Manipulators: The
    Operational Space Formulation (1987), equation 13.

    Args:
        cell: Whose joints.
        frame: Whose twist.
        axes: The frame in whose axes the twist is written; by default the world.
        position: Which linear velocities count, such as `xy`; empty for none.
        rotation: About which axes angular velocities count.
        options: As for `inverse_dynamics`.

    Returns:
        A kernel (..., n) -> (..., k, k) for the k numbers that count, linear first,
        symmetric [kg, kg m or kg m^2]. It is NaN where these cannot be chosen
        independently of each other, within rounding.

    Raises:
        UnknownName: A frame does not exist; and as for `inverse_dynamics`.
        ModelError: Nothing counts, fewer joints move the frame than numbers count, or
            a joint moves no mass; and as for `inverse_dynamics`.
    """
    return _of_task(
        "operational_inertia",
        operational.operational_inertia,
        cell,
        (frame, axes, position, rotation),
        options,
    )


def null_space_projector(
    cell: Workcell,
    frame: str,
    *,
    axes: str = WORLD,
    position: str = "xyz",
    rotation: str = "xyz",
    **options: Unpack[Options],
) -> AnyKernel:
    """Return the kernel of N = 1 - J' (J M^-1 J')^-1 J M^-1, which projects torques.

    Torques N tau do not accelerate the frame, whatever tau is: J M^-1 N = 0. So they
    move what joints the frame leaves free. Khatib (1987), equation 47. Arguments and
    errors are as for `operational_inertia`.

    Returns:
        A kernel (..., n) -> (..., n, n), to multiply torques from the left; NaN where
        `operational_inertia` is.
    """
    return _of_task(
        "null_space_projector",
        operational.null_space_projector,
        cell,
        (frame, axes, position, rotation),
        options,
    )


def reaction(
    cell: Workcell, frame: str, *, axes: str | None = None, **options: Unpack[Options]
) -> AnyKernel:
    """Return the kernel of the wrench that a frame passes on to what it carries.

    Of a named frame that is what is mounted on or attached to it, such as a tool that
    a force sensor holds; of a link, the link itself and all behind it, so that the
    wrench is what its joint transmits, with the motor's part; of a base, the load of
    its foundation. Links of unknown inertia count nothing. A sensor that counts the
    force of its load on itself shows the opposite.

    Args:
        cell: Whose joints.
        frame: A frame, or a link.
        axes: The frame in whose axes the wrench is written; by default `frame`.
        options: As for `inverse_dynamics`.

    Returns:
        A kernel of three (..., n), q, qd and qdd, -> (..., 6): the force on what the
        frame carries [N], then the moment about the frame's origin [N m].

    Raises:
        UnknownName: A frame does not exist; and as for `inverse_dynamics`.
        ModelError: A loop closes around the frame and takes an unknown part of the
            load; and as for `inverse_dynamics`.
    """
    checked = options_of(cell, options)
    tree, bodies = checked.tree_and_bodies
    name = cell.qualified(frame)
    key = "cut", name, tuple(options.get("free_bases", ()))
    cut = kept(tree, key, lambda: operational.Cut.at(tree, bodies, name))
    to = cut.frame if axes is None else cell.frame(axes)

    def equations(bodies: Multibody, carried: Any, qd: Any, qdd: Any) -> Any:
        named = bodies.tree.cell.frame
        own = cut._replace(frame=named(name))
        to = own.frame if axes is None else named(axes)
        return operational.reaction(bodies, own, carried, to, qd, qdd)

    def inertias(tree: Tree, bodies: Bodies) -> list[SpatialInertia]:
        return [cut.inertia(tree, bodies)]

    return checked.kernel(
        ("reaction", cut.frame, cut.bodies, to),
        equations,
        ("qd", "qdd"),
        output="wrench",
        frames=[cut.frame, to],
        further_inertias=inertias,
    )


def torque_of_wrench(
    cell: Workcell,
    frames: str | Sequence[str],
    *,
    axes: str = WORLD,
    **options: Unpack[Options],
) -> AnyKernel:
    """Return the kernel of the torques that external wrenches are worth: J' F.

    A wrench F that the surroundings exert on a frame moves the joints as motors with
    the torques J' F would. Hence the motors need `inverse_dynamics` less J' F in its
    presence, and `forward_dynamics` takes their torques plus J' F. To press with a
    force f on something at rest, add J' f: what is pressed exerts -f. Masses need not
    be known.

    Args:
        cell: Whose joints.
        frames: The frame at whose origin the wrench acts, or a list of them.
        axes: The frame in whose axes wrenches are written; by default the world.
        options: As for `inverse_dynamics`; gravity does not matter.

    Returns:
        A kernel (..., n), (..., 6) -> (..., n), q and a force [N] with a moment [N m],
        to torques [N m or N]. For a list of k frames it takes (..., k, 6), and adds
        what each is worth.

    Raises:
        UnknownName: A frame does not exist; and as for `inverse_dynamics`.
        ModelError: `frames` is an empty list; and as for `inverse_dynamics`.
    """
    single = isinstance(frames, str)
    names = frame_list(frames, "torque_of_wrench")

    def tasks_in(cell: Workcell) -> list[TwistRows]:
        return [TwistRows(cell.frame(name), cell.frame(axes)) for name in names]

    tasks = tasks_in(cell)

    def equations(bodies: Multibody, wrench: Any) -> Any:
        wrenches = [wrench] if single else wrench
        tasks = tasks_in(bodies.tree.cell)
        return operational.torques_of_wrench(bodies, tasks, list(map(six, wrenches)))

    return options_of(cell, options).kernel(
        ("torque_of_wrench", tuple(tasks), single),
        equations,
        output="torque",
        frames=[tasks[0].axes, *(task.frame for task in tasks)],
        needs_inertia=False,
        wrench=(6,) if single else (len(tasks), 6),
    )


def _of_task(
    question: str,
    equations: Callable[[Multibody, TwistRows], Any],
    cell: Workcell,
    names: tuple[str, str, str, str],
    options: Options,
) -> AnyKernel:
    """Return the kernel of a question about some numbers of a frame's twist."""
    frame, axes, position, rotation = names
    rows = chosen_axes(position, "position") + chosen_axes(rotation, "rotation")
    if not any(rows):
        raise ModelError(f"{question} must ask for a direction or a rotation.")

    def task_in(cell: Workcell) -> TwistRows:
        return TwistRows(cell.frame(frame), cell.frame(axes), rows)

    task = task_in(cell)
    checked = options_of(cell, options)
    checked.check_regular()

    def of_bodies(bodies: Multibody) -> Any:
        return equations(bodies, task_in(bodies.tree.cell))

    return checked.kernel(
        (question, task),
        of_bodies,
        output=question,
        frames=[task.frame, task.axes],
    )
