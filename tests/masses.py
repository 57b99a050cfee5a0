"""Cells with masses, and vectors of motion, for the tests of dynamics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import armillary as arm
import linkages
from random_cells import random_tree

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


def heavy_cell(kind: str) -> arm.Cell:
    """Return a cell with masses and drives: an example, a linkage, or a random one."""
    if kind == "random":
        cell = random_tree(5)
    elif kind in LINKAGES:
        cell = getattr(linkages, kind)(np.random.default_rng(1)).cell()
    else:
        cell = arm.example(kind)
    return with_drives(with_inertias(cell, 0), 1)
