"""Cells with masses, and vectors of motion, for the tests of dynamics."""

from __future__ import annotations

import numpy as np

import armillary as arm


def vectors(cell: arm.Cell, seed: int, count: int = 40) -> np.ndarray:
    """Return q, qd and qdd, drawn near home, shape (3, count, n)."""
    n = len(cell.joint_names)
    drawn = np.random.default_rng(seed).uniform(-0.4, 0.4, (3, count, n))
    drawn[0] += cell.home.q
    return drawn


def with_inertias(cell: arm.Cell, seed: int) -> arm.Cell:
    """Return a cell whose links all have an inertia, at random."""
    rng = np.random.default_rng(seed)
    manipulators = []
    for manipulator in cell.manipulators:
        links = []
        for link in manipulator.links:
            A = rng.normal(size=(3, 3)) * 0.1
            S = A @ A.T + 0.01 * np.eye(3)
            inertia = arm.SpatialInertia.from_centre(
                rng.uniform(0.5, 3.0),
                rng.uniform(-0.2, 0.2, 3),
                np.trace(S) * np.eye(3) - S,
            )
            links.append(link.replace(inertia=inertia))
        manipulators.append(manipulator.replace(links=links))
    return cell.replace(manipulators=manipulators)
