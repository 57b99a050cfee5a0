"""The regressor of inertial parameters: torques as a matrix times the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.setting import Options, Setting, setting_of
from armillary.dynamics.sparse import add_to
from armillary.errors import ModelError, quote
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.ldl import Rows
from armillary.spatial.pose import IDENTITY
from armillary.spatial.twist import (
    Vector6,
    halves,
    inverse_transform_twist,
)
from armillary.spatial.vector import Number, add, cross, dot

__all__ = ["inertial_parameters", "inertial_regressor", "regressor"]

COUNT = 10
"""The number of inertial parameters of a link."""


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
    setting = setting_of(cell, options)
    chosen = _links(setting, links)

    def equations(bodies: Multibody, qd: Any, qdd: Any) -> Any:
        return regressor(bodies, qd, qdd, chosen)

    return setting.kernel(
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
    setting = setting_of(cell, options)
    found = [cell.links[link].inertia for link in _links(setting, links)]
    rows = [(each or SpatialInertia.zero()).parameters for each in found]
    return np.array(rows, dtype=np.float64).ravel()


def _links(setting: Setting, names: Sequence[str] | None) -> tuple[int, ...]:
    cell = setting.cell
    if names is None:
        fixed = setting.bodies[1].fixed
        return tuple(sorted(k for k, (body, _) in fixed.items() if body != GROUND))
    given: Any = names
    if not isinstance(given, (list, tuple)) or not given:
        raise ModelError(
            f"links= takes a list of names of links, not {quote(names)}; None is all "
            "that joints move."
        )
    found: list[int] = []
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
        found.append(link)
    if len(set(found)) < len(found):
        raise ModelError(f"links= names a link twice: {list(names)}.")
    return tuple(found)


def regressor(
    bodies: Multibody,
    qd: Sequence[Number],
    qdd: Sequence[Number],
    links: Sequence[int],
) -> Rows:
    """Return the regressor, a row for each independent coordinate.

    Args:
        bodies: In their configuration; their inertias do not count.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
        links: Whose parameters, ten columns each.
    """
    rates = bodies.all_rates(qd)
    motion = bodies.accelerations(rates, bodies.all_accelerations(rates, qdd))
    columns: list[list[tuple[int, Vector6]]] = []
    for parent, own, pose in zip(
        bodies.parents, bodies.columns, bodies.poses, strict=True
    ):
        above = [] if parent == GROUND else columns[parent]
        carried = [(k, inverse_transform_twist(pose, S)) for k, S in above]
        columns.append(carried + own)
    whole: list[list[Number]] = []
    for link in links:
        body, pose = bodies.bodies.fixed[link]
        if body == GROUND:
            whole += [bodies.zeros for _ in range(COUNT)]
            continue
        at = pose @ bodies.tree.links[link].primary
        V, A = (inverse_transform_twist(at, six[body]) for six in motion)
        forces: list[dict[int, Number]] = [{} for _ in range(COUNT)]
        for k, S in columns[body]:
            powers = _powers(inverse_transform_twist(at, S), V, A)
            for force, power in zip(forces, powers, strict=True):
                add_to(force, k, power)
        whole += map(bodies.projected, forces)
    return [list(row) for row in zip(*whole, strict=True)]


def _powers(S: Vector6, V: Vector6, A: Vector6) -> list[Number]:
    """Return S . F for unit inertial parameters, F = I A + V x* I V.

    With S = (s, t), V = (v, w), A = (a, b) and the acceleration of the origin
    c = a + w x v they are m s . c, h . (s x b + w x (w x s) + c x t) and
    t . I b + (t x w) . I w (Atkeson, An and Hollerbach, 1986, equation 15).
    """
    (s, t), (v, w), (a, b) = halves(S), halves(V), halves(A)
    c = add(a, cross(w, v))
    h = add(cross(s, b), add(cross(w, cross(w, s)), cross(c, t)))
    u = cross(t, w)

    def moment(i: int, j: int) -> Number:
        if i == j:
            return t[i] * b[i] + u[i] * w[i]
        return t[i] * b[j] + t[j] * b[i] + (u[i] * w[j] + u[j] * w[i])

    pairs = (0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)
    return [dot(s, c), *h, *(moment(i, j) for i, j in pairs)]
