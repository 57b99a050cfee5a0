"""Cells with masses, and vectors of motion, for the tests of dynamics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import armillary as arm
import linkages
from armillary.spatial.twist import adjoint, cross_wrench
from random_cells import random_tree

GRAVITY = 9.81
LINKAGES = ("five_bar", "slider_crank")
HEAVY = (*LINKAGES, "delta", "irb2400", "pan_tilt", "random", "ur5e_on_oval")
"""Cells for laws that all obey: loops, couplings, curved and coupled joints."""


def vectors(cell: arm.Cell, seed: int, count: int = 40) -> np.ndarray:
    """Return q, qd and qdd, drawn near home, shape (3, count, n).

    With loops, that do not close everywhere, q is nearer to it.
    """
    n = len(cell.joint_names)
    drawn = np.random.default_rng(seed).uniform(-0.4, 0.4, (3, count, n))
    drawn[0] = cell.home.q + drawn[0] * (0.2 if cell.passive_names else 1.0)
    return drawn


def with_links(cell: arm.Cell, change: Callable[[arm.Link], arm.Link]) -> arm.Cell:
    """Return a cell whose links are changed, one after the other."""
    return cell.replace(
        manipulators=[
            manipulator.replace(links=[change(link) for link in manipulator.links])
            for manipulator in cell.manipulators
        ]
    )


def with_inertias(cell: arm.Cell, seed: int) -> arm.Cell:
    """Return a cell whose links all have an inertia, at random."""
    rng = np.random.default_rng(seed)

    def change(link: arm.Link) -> arm.Link:
        A = rng.normal(size=(3, 3)) * 0.1
        S = A @ A.T + 0.01 * np.eye(3)
        inertia = arm.SpatialInertia.from_centre(
            rng.uniform(0.5, 3.0),
            rng.uniform(-0.2, 0.2, 3),
            np.trace(S) * np.eye(3) - S,
        )
        return link.replace(inertia=inertia)

    return with_links(cell, change)


def with_drives(cell: arm.Cell, seed: int) -> arm.Cell:
    """Return a cell whose joints have motors, friction and springs, at random."""
    rng = np.random.default_rng(seed)

    def change(link: arm.Link) -> arm.Link:
        if not link.has_coordinate:
            return link
        dynamics = arm.JointDynamics(
            motor_inertia=rng.uniform(0.001, 0.01),
            gear_ratio=rng.uniform(-9.0, -3.0),
            damping=rng.uniform(0.1, 1.0),
            friction=rng.uniform(0.1, 1.0),
            stiffness=rng.uniform(1.0, 9.0),
            rest=rng.uniform(-1.0, 1.0),
        )
        return link.replace(dynamics=dynamics)

    return with_links(cell, change)


def rates_by_q(kernel: Callable[[np.ndarray], np.ndarray], Q: np.ndarray) -> np.ndarray:
    """Return differences of a function of q by q, behind its own axes."""
    step = 1e-5
    return np.stack(
        [
            (kernel(Q + step * e) - kernel(Q - step * e)) / (2.0 * step)
            for e in np.eye(Q.shape[-1])
        ],
        axis=-1,
    )


@cache
def heavy_example(name: str, seed: int) -> arm.Cell:
    """Return an example with inertias: the same cell each time, with its kernels."""
    return with_inertias(arm.example(name), seed)


@cache
def heavy_cell(kind: str) -> arm.Cell:
    """Return a cell with masses and drives: an example, a linkage, or a random one."""
    if kind == "random":
        cell = random_tree(5)
    elif kind in LINKAGES:
        cell = getattr(linkages, kind)(np.random.default_rng(1)).cell()
    else:
        cell = arm.example(kind)
    return with_drives(with_inertias(cell, 0), 1)


def accelerations_by_steps(
    cell: arm.Cell, q: np.ndarray, qd: np.ndarray, torques: np.ndarray
) -> np.ndarray:
    """Return qdd of a tree on the ground, by the steps of its joints alone.

    Its links are listed parents first and have no primary frames and couplings.
    """
    links = cell.manipulators[0].links
    place = {name: k for k, name in enumerate(cell.joint_names)}
    known = {}  # name: coordinate, rate, twist in the link
    for link in links:
        k = place.get(link.coordinate) if link.joint is not None else None
        x, rate = (q[k], qd[k]) if k is not None else (0.0, 0.0)
        V = np.zeros(6)
        if link.parent is not None:
            X = link.joint.transform(x)
            V = np.linalg.inv(adjoint_of(X)) @ known[link.parent][2]
            V = V + link.joint.velocity(x, rate)
        known[link.name] = x, rate, V, k
    inertias = {link.name: matrix_of(link) for link in links}
    biases = {
        link.name: np.array(
            cross_wrench(
                tuple(known[link.name][2]),
                tuple(inertias[link.name] @ known[link.name][2]),
            )
        )
        for link in links
    }
    steps = {}
    for link in reversed(links):
        if link.parent is None:
            continue
        x, rate, V, k = known[link.name]
        dynamics = link.dynamics or arm.JointDynamics()
        steps[link.name] = step = link.joint.articulated_step(
            x,
            inertias[link.name],
            qd=rate,
            twist=V,
            bias=biases[link.name],
            torque=0.0 if k is None else torques[k],
            armature=0.0 if k is None else dynamics.armature,
        )
        inertias[link.parent] = inertias[link.parent] + step.inertia
        biases[link.parent] = biases[link.parent] + step.bias
    found = np.zeros(len(q))
    moving = {links[0].name: np.array([0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0])}
    for link in links[1:]:
        qdd, moving[link.name] = steps[link.name].acceleration(moving[link.parent])
        if known[link.name][3] is not None:
            found[known[link.name][3]] = qdd
    return found


def adjoint_of(X: arm.Pose) -> np.ndarray:
    return np.array(adjoint(X), dtype=float)


def matrix_of(link: arm.Link) -> np.ndarray:
    if link.inertia is None:
        return np.zeros((6, 6))
    return np.array(link.inertia.matrix(), dtype=float)
