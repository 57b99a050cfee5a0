"""Distances of shapes against coal."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from benchmarks.distances import peer_shape, poses

from armillary.model.primitive import Primitive
from armillary.model.shapes import Box, Capsule, ConvexPolyhedron, Cylinder, Sphere
from armillary.shapes import distance

pytestmark = pytest.mark.peers

COUNT = 1000
CLOUD = np.random.default_rng(3).normal(size=(20, 3)) * 0.2
SHAPES: dict[str, Primitive] = {
    "sphere": Sphere(radius=0.1),
    "capsule": Capsule(radius=0.1, length=0.6),
    "box": Box(size=(0.4, 0.3, 0.6)),
    "cylinder": Cylinder(radius=0.1, length=0.4),
    "hull": ConvexPolyhedron.around(CLOUD),
}
PAIRS = list(itertools.combinations_with_replacement(SHAPES, 2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_shapes_are_as_far_apart_and_at_most_as_deep_as_in_coal(
    first: str, second: str
):
    """Coal stops at 1e-6; its depths are lower or higher by more in a few rows."""
    coal: Any = import_module("coal")
    a, b = SHAPES[first], SHAPES[second]
    X = poses(np.random.default_rng(PAIRS.index((first, second))), COUNT, 0.5)
    ours = distance(a, np.eye(4), b, X)
    shapes = peer_shape(a), peer_shape(b)
    compute, here = coal.ComputeDistance(*shapes), coal.Transform3s()
    theirs = np.empty(COUNT)
    for k, x in enumerate(X):
        there = coal.Transform3s(x[:3, :3].copy(), x[:3, 3].copy())
        result = coal.DistanceResult()
        theirs[k] = compute(here, there, coal.DistanceRequest(), result)
    is_free = ours.value > 1e-4
    assert 0.05 < is_free.mean() < 0.99
    np.testing.assert_allclose(ours.value[is_free], theirs[is_free], atol=1e-5)
    is_deep = ours.value < -1e-4
    assert (theirs[is_deep] < 1e-4).all()
    same = np.abs(ours.value - theirs)[is_deep] < 1e-4
    assert same.mean() > 0.85
