"""What machine code of planners asks of a check: if links touch at any of some rows."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pytest

import armillary as arm
from armillary.kernel.pipeline_kernel import ColumnFunction
from armillary.shapes import Box, Capsule, Cone, Cylinder, HalfSpace, Lozenge, Sphere

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


def aligned(rows: Array, kind: np.dtype) -> Array:
    """Return rows as columns that begin at a line of the cache."""
    columns = np.ascontiguousarray(rows.T, kind)
    memory = np.zeros(columns.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + columns.nbytes].view(kind).reshape(columns.shape)
    made[:] = columns
    return made


def called(code: ColumnFunction, *rows: Array) -> Array:
    """Return what code finds for as many rows as it computes at once."""
    assert len(rows[0]) == code.lanes
    columns = [aligned(each.reshape(code.lanes, -1), code.dtype) for each in rows]
    found = aligned(np.zeros((code.lanes, 1)), code.dtype)
    kinds = [ctypes.c_void_p] * (len(columns) + 2)
    bits = ctypes.c_uint8 if code.lanes <= 8 else ctypes.c_uint16
    run = ctypes.CFUNCTYPE(bits, *kinds, bits)(code.address)
    inputs = [each.ctypes.data for each in columns]
    flags = run(*inputs, found.ctypes.data, code.tables, (1 << code.lanes) - 1)
    assert flags == 0
    return found[0]


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
