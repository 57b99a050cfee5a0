"""An arm of four joints with balls on its links, among balls, and its own formula."""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np

import armillary as arm
from armillary.shapes import Sphere

Array = np.ndarray
DENSE = 4000
LENGTHS = (0.3, 0.3, 0.25, 0.2)
BALL = 0.06
BALLS = ((0.5, 0.3, 0.25), (0.4, -0.45, 0.2), (-0.5, 0.35, 0.2), (0.1, 0.6, -0.35))


class Wave(arm.joints.Joint, frozen=True, kw_only=True):
    """A user's joint: it turns, and goes up and down meanwhile."""

    unit = arm.RADIAN

    def pose(self, q):
        c, s = np.cos(q), np.sin(q)
        up = 0.05 * np.sin(2.0 * q)
        return arm.Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, up))


def chain(joint: type = arm.joints.Revolute, shape=None, limit: float = 2.8):
    """Return an arm of four joints, with two balls on each link."""
    links = [arm.Link(name="base")]
    for k in range(4):
        X = arm.Pose.translation(LENGTHS[k - 1] if k else 0.0, 0.0, 0.0)
        X = X @ arm.Pose.rotation_x(np.pi / 2 * (k % 2))
        balls = [
            Sphere(radius=BALL, pose=arm.Pose.translation(x * LENGTHS[k], 0.0, 0.0))
            for x in (0.5, 1.0)
        ]
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint(precursor=X),
                limits=arm.Limits(lower=-limit, upper=limit),
                collisions=balls if shape is None else [shape],
            )
        )
    return arm.Manipulator(name="robot", links=links)


def cell_of(things, **options) -> arm.Cell:
    """Return the arm among things that stand still."""
    parts = [
        arm.Manipulator(name=f"thing{k}", links=[arm.Link(name="b", collisions=[x])])
        for k, x in enumerate(things)
    ]
    cell = arm.Cell(manipulators=[chain(**options), *parts])
    rules = cell.rules.exclude("thing*/*", "thing*/*", reason="still")
    return cell.replace(rules=rules.include_self("robot"))


def at(shape: type, *p: float, **fields):
    return shape(pose=arm.Pose.translation(*p), **fields)


@functools.cache
def among_balls() -> arm.Cell:
    return cell_of([at(Sphere, *p, radius=0.15) for p in BALLS])


def free_positions(check, count: int, seed: int = 0) -> Array:
    lower, upper = check.cell.limits
    lower = np.where(np.isfinite(lower), lower, -2.0)
    upper = np.where(np.isfinite(upper), upper, 2.0)
    Q = np.random.default_rng(seed).uniform(lower, upper, (60 * count, len(lower)))
    return Q[~check(Q)][:count]


def centres(Q: Array) -> Array:
    """Return the centres of the arm's balls by its own formula, (n, 4) -> (n, 8, 3)."""
    R, p = np.tile(np.eye(3), (len(Q), 1, 1)), np.zeros((len(Q), 3))
    found = []
    for k in range(4):
        if k:
            p = p + R[:, :, 0] * LENGTHS[k - 1]
        turned = np.pi / 2 * (k % 2)
        c, s = np.cos(turned), np.sin(turned)
        R = R @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        c, s, zero = np.cos(Q[:, k]), np.sin(Q[:, k]), np.zeros(len(Q))
        Rz = np.array([[c, -s, zero], [s, c, zero], [zero, zero, zero + 1]])
        R = R @ np.moveaxis(Rz, 2, 0)
        found += [p + R[:, :, 0] * (x * LENGTHS[k]) for x in (0.5, 1.0)]
    return np.stack(found, axis=1)


def gaps(Q: Array) -> Array:
    """Return how far the balls of the arm are from those that stand still."""
    between = centres(Q)[:, :, None] - np.array(BALLS)
    return np.linalg.norm(between, axis=-1) - 0.15 - BALL


def dense(q: Array, count: int = DENSE) -> Array:
    """Return samples of each motion of a way."""
    t = np.linspace(0.0, 1.0, count)[:, None]
    return np.concatenate([a + t * (b - a) for a, b in pairwise(q)])
