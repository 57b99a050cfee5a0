"""Learned rules of a Panda in hulls, against coal on every pair at every sample."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.shapes import Box, ConvexPolyhedron, Mesh
from peer_robots import as_pinocchio, robot_file

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:Collision shapes of"),
]

COUNT = 400
RIGID = {"panda_link7", "panda_hand"}
JOINED = {
    *(frozenset({f"panda_link{k}", f"panda_link{k + 1}"}) for k in range(7)),
    *(
        frozenset(pair)
        for hand in RIGID
        for pair in (
            (hand, "panda_link6"),
            (hand, "panda_leftfinger"),
            (hand, "panda_rightfinger"),
        )
    ),
}


def convex(coal: Any, shape: Any) -> Any:
    if isinstance(shape, Box):
        return coal.Box(*shape.size)
    assert isinstance(shape, ConvexPolyhedron)
    points = coal.StdVec_Vec3s()
    points.extend(np.array(shape.vertices))
    return coal.Convex.convexHull(points, True, "Qt")


def distances(
    cell: arm.Cell, path: str, Q: np.ndarray
) -> dict[frozenset[str], np.ndarray]:
    """Return the distance of each pair of links at each sample, by coal."""
    pin = pytest.importorskip("pinocchio")
    coal = pytest.importorskip("coal")
    model = pin.buildModelFromUrdf(path)
    data = model.createData()
    shapes: dict[str, list[tuple[int, Any, Any]]] = {}
    for link in cell.manipulators[0].links:
        for shape in link.collision_shapes:
            frame = model.frames[model.getFrameId(link.name)]
            solid = cell.meshes.hull(shape) if isinstance(shape, Mesh) else shape
            at = frame.placement * pin.SE3(shape.pose.matrix())
            made = convex(coal, solid)
            shapes.setdefault(link.name, []).append((frame.parentJoint, at, made))
    found = {
        frozenset(pair): np.full(len(Q), np.inf) for pair in combinations(shapes, 2)
    }
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    for row, q in enumerate(Q):
        pin.forwardKinematics(model, data, as_pinocchio(cell, model, q)[0])
        placed = {
            name: [
                (solid, coal.Transform3s((data.oMi[j] * at).rotation, X.translation))
                for j, at, solid in each
                for X in (data.oMi[j] * at,)
            ]
            for name, each in shapes.items()
        }
        for a, b in combinations(shapes, 2):
            least = found[frozenset((a, b))]
            for one, X_A in placed[a]:
                for other, X_B in placed[b]:
                    result.clear()
                    value = coal.distance(one, X_A, other, X_B, request, result)
                    least[row] = min(least[row], value)
    return found


def test_learned_rules_are_those_of_brute_force():
    path = robot_file("panda_description/urdf/panda.urdf")
    cell = arm.load(path)
    rules = cell.learn_rules(samples=COUNT, seed=5)
    Q = cell.samples(COUNT, seed=5).rows(0, COUNT)
    Q = np.concatenate([[cell.home.q], Q])
    expected: dict[frozenset[str], str] = {}
    for pair, values in distances(cell, str(path), Q).items():
        if pair == RIGID:
            continue
        if pair in JOINED:
            expected[pair] = "adjacent"
        elif values[0] <= 1e-6:
            expected[pair] = "default"
        elif (values[1:] <= 0.0).all():
            expected[pair] = "always"
        elif (values[1:] > 0.0).all():
            expected[pair] = "never"
    found = {
        frozenset(name.removeprefix("panda/") for name in (rule.a, rule.b)): rule.reason
        for rule in rules.rules
        if "*" not in rule.a + rule.b
    }
    assert found == expected
    assert set(found.values()) >= {"adjacent", "default", "never"}
