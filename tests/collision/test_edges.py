"""What machine code of planners asks of a check: if links touch at any of some rows."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import armillary as arm
from armillary.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HalfSpace,
    Lozenge,
    Points,
    Sphere,
    Voxels,
)
from column_calls import called

Array = np.ndarray
THINGS = (
    Sphere(radius=0.15, pose=arm.Pose.translation(0.6, 0.2, 0.2)),
    Box(size=(0.4, 0.3, 0.2), pose=arm.Pose.translation(0.5, -0.4, 0.1)),
    Capsule(radius=0.05, length=0.6, pose=arm.Pose.translation(-0.4, -0.4, 0.2)),
    Lozenge(size=(0.3, 0.2), radius=0.04, pose=arm.Pose.translation(-0.5, 0.1, 0.3)),
    Cylinder(radius=0.1, length=0.4, pose=arm.Pose.translation(-0.2, 0.6, 0.1)),
    Cone(bottom=0.1, top=0.02, length=0.3, pose=arm.Pose.translation(0.2, 0.1, 0.7)),
    HalfSpace(pose=arm.Pose.translation(0.0, 0.0, -0.5)),
)
OWN = {
    "spheres": (
        Sphere(radius=0.07, pose=arm.Pose.translation(0.1, 0.0, 0.0)),
        Sphere(radius=0.07, pose=arm.Pose.translation(0.2, 0.0, 0.0)),
    ),
    "boxes": (Box(size=(0.2, 0.1, 0.1), pose=arm.Pose.translation(0.12, 0.0, 0.0)),),
    "both": (
        Sphere(radius=0.07, pose=arm.Pose.translation(0.1, 0.0, 0.0)),
        Capsule(radius=0.05, length=0.1, pose=arm.Pose.translation(0.2, 0.0, 0.0)),
    ),
}


@functools.cache
def cell_of(own: str, things: int = len(THINGS)) -> arm.Cell:
    links = [arm.Link(name="base", collisions=[Sphere(radius=0.08)])]
    for k in range(4):
        X = arm.Pose.translation(0.25 if k else 0.0, 0.0, 0.0)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=arm.joints.Revolute(
                    precursor=X @ arm.Pose.rotation_x(1.57 * (k % 2))
                ),
                limits=arm.Limits(lower=-3.0, upper=3.0),
                collisions=OWN[own],
            )
        )
    parts = [
        arm.Manipulator(name=f"t{k}", links=[arm.Link(name="b", collisions=[x])])
        for k, x in enumerate(THINGS[:things])
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="robot", links=links), *parts])
    rules = cell.rules.exclude("t*/*", "t*/*", reason="still").include_self("robot")
    return cell.replace(rules=rules)


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("things", [3, len(THINGS)])
def test_any_row_that_touches_is_found(own: str, things: int):
    cell = cell_of(own, things)
    for margin in (0.0, 0.02):
        check = cell.collision(margin=margin)
        code = check.edge_columns()
        assert code is not None
        rng = np.random.default_rng(0)
        seen = set()
        for _ in range(150):
            near = rng.uniform(-3.0, 3.0, 4)
            Q = near + rng.normal(0.0, 0.02, (code.lanes, 4))
            gap = check.clearance(Q).min() - margin
            if abs(gap) < 1e-4:
                continue  # rounding decides
            is_touching = bool((called(code, Q) > 0.0).any())
            assert is_touching == (gap < 0.0)
            seen.add(is_touching)
        assert seen == {True, False}


def test_a_pad_is_a_larger_margin():
    check = cell_of("spheres", 3).collision()
    wide = check.edge_columns(pad=0.05)
    same = cell_of("spheres", 3).collision(margin=0.05)
    assert wide is not None
    rng = np.random.default_rng(1)
    for _ in range(100):
        Q = rng.uniform(-3.0, 3.0, 4) + np.zeros((wide.lanes, 4))
        if abs(same.clearance(Q[0]) - 0.05) > 1e-4:
            assert bool((called(wide, Q) > 0.0).any()) == bool(same(Q[0]))


def test_rows_with_nan_touch():
    code = cell_of("spheres", 3).collision().edge_columns()
    assert code is not None
    Q = np.zeros((code.lanes, 4))
    Q[-1, 2] = np.nan
    assert (called(code, Q) > 0.0).any()


@pytest.mark.parametrize("own", OWN)
def test_pieces_that_are_proven_are_free(own: str):
    # Closed forms alone: cones and others are left to other proofs.
    cell = cell_of(own, 4)
    check = cell.collision(margin=0.01)
    code = check.edge_proof_columns(*cell.limits)
    assert code is not None
    rng = np.random.default_rng(2)
    t = np.linspace(-1.0, 1.0, 41)
    proven = 0
    for _ in range(200):
        q, way = rng.uniform(-2.5, 2.5, 4), rng.normal(0.0, 1.0, 4)
        half = rng.uniform(0.0, 0.08)
        rows = [np.tile(x, (code.lanes, 1)) for x in (q, way, np.array([half]))]
        found = called(code, *rows)[0]
        gaps = check.clearance(q + half * t[:, None] * way) - 0.01
        if found == 0.0:
            proven += 1
            assert gaps.min() > 0.0
        if found == 1.0:  # in the middle, but for roundings
            assert gaps[20] < 1e-3
    assert proven > 20


def test_nothing_is_proven_quickly_where_bounds_of_rounding_end():
    cell = cell_of("spheres", 3)
    lower, upper = cell.limits
    check = cell.collision()
    assert check.edge_proof_columns(lower, upper) is not None
    assert check.edge_proof_columns(lower - 1e6, upper) is None
    assert check.edge_columns() is not None


def among_clouds(own: str, margin: float) -> arm.CollisionCheck:
    """Return a check of the arm among a few things, points and cells of a grid."""
    rng = np.random.default_rng(3)
    wall = rng.uniform((0.5, -0.6, -0.3), (0.52, 0.6, 0.5), (3000, 3))
    filled = rng.random((4, 5, 3)) < 0.4
    place = arm.Pose.translation(-0.6, 0.2, -0.1) @ arm.Pose.rotation_z(0.4)
    seen = {
        "points": Points(wall, 0.01),
        "cells": [Voxels(filled, 0.08, pose=place), Sphere(radius=0.05)],
    }
    allowed = [("cells", "robot/link0")]
    check = cell_of(own, 2).collision(margin=margin)
    return check.with_obstacles(seen, allowed=allowed)


@pytest.mark.parametrize("own", ["spheres", "both"])
def test_rows_and_pieces_among_clouds(own: str):
    check = among_clouds(own, 0.01)
    code, proof = check.edge_columns(), check.edge_proof_columns(*check.cell.limits)
    assert code is not None and proof is not None
    rng = np.random.default_rng(0)
    t = np.linspace(-1.0, 1.0, 41)
    seen, proven = set(), 0
    for _ in range(150):
        q = rng.uniform(-3.0, 3.0, 4)
        Q = q + rng.normal(0.0, 0.02, (code.lanes, 4))
        gap = check.clearance(Q).min() - 0.01
        if abs(gap) > 1e-4:  # else rounding decides
            is_touching = bool((called(code, Q) > 0.0).any())
            assert is_touching == (gap < 0.0)
            seen.add(is_touching)
        way, half = rng.normal(0.0, 1.0, 4), rng.uniform(0.0, 0.08)
        rows = [np.tile(x, (proof.lanes, 1)) for x in (q, way, np.array([half]))]
        if called(proof, *rows)[0] == 0.0:
            proven += 1
            assert check.clearance(q + half * t[:, None] * way).min() > 0.01
    assert seen == {True, False}
    assert proven > 15
