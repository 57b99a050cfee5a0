"""The SCARA and the Cartesian of the page, and ours that do the same."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from published_scripts import EXAMPLES, component, published

Q1 = np.array([math.radians(30), math.radians(-40), 0.01, math.radians(20)])


def script(name: str, source: str, folder: Path) -> Path:
    return published(name, folder) if source == "page" else EXAMPLES / f"{name}.py"


def cell_of(name: str, source: str, folder: Path, **changes: object) -> arm.Cell:
    data = json.loads(component(name).read_text())
    data["properties"] = {**data.get("properties", {}), **changes}
    robot = arm.scripted(script(name, source, folder), component=data, name=name)
    return arm.Cell(manipulators=[robot])


@pytest.fixture(params=["page", "ours"], name="source")
def source_fixture(request):
    return request.param


def test_the_scara_moves_as_computed_by_hand(source, tmp_path):
    cell = cell_of("scara", source, tmp_path)
    assert cell.joint_names == ("J1", "J2", "J3", "J4")
    X = cell.fk("flange")(Q1)
    assert_allclose(X[:3, 3], [0.552280388, 0.114746751, 0.1], atol=1e-9)
    assert_allclose(X[:2, 0], [math.cos(math.radians(10)), math.sin(math.radians(10))])
    assert_allclose(np.degrees(cell.limits[1][[0, 1, 3]]), 170)
    assert cell.limits[0][2] == -0.2


def test_both_configurations_round_trip(source, tmp_path):
    cell = cell_of("scara", source, tmp_path)
    ik = cell.ik("flange")
    assert ik.closed is not None and ik.closed.compiled
    Q = np.random.default_rng(0).uniform(*cell.limits, (10_000, 4))
    X = cell.fk("flange")(Q)
    found = ik.all(X)
    assert found.branches == (("LEFTY",), ("RIGHTY",))
    beyond = found.reason == arm.Reason.LIMITS
    assert (found.success | beyond).all()
    assert beyond.mean() < 0.1
    assert found.success.any(axis=1).all()
    for k in range(2):
        good = found.success[:, k]
        assert_allclose(cell.fk("flange")(found.q[good, k]), X[good], atol=1e-9)
    lefty = (Q[:, 1] <= 0)[:, None]
    own = np.where(lefty, found.q[:, 0], found.q[:, 1])
    assert_allclose(own, Q, atol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_signs_and_zero_offsets(source, offset, tmp_path):
    changes = {"JointSign1": -1, "JointSign3": -1, "JointZeroOffset2": offset}
    cell = cell_of("scara", source, tmp_path, **changes)
    X = cell.fk("flange")(Q1)
    plain = cell_of("scara", source, tmp_path)
    nominal = Q1 * [-1, 1, -1, 1] - [0, math.radians(offset), 0, 0]
    assert_allclose(X, plain.fk("flange")(nominal), atol=1e-12)
    assert_allclose(cell.fk("flange")(cell.ik("flange")(X).q), X, atol=1e-9)


def test_the_cartesian_sits_where_the_page_says(source, tmp_path):
    cell = cell_of("cartesian", source, tmp_path)
    assert_allclose(
        cell.fk("flange")(np.zeros(6))[:3, 3], [0.234542, 0.203301, 1.13446]
    )
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    X = cell.fk("flange")(q)
    assert_allclose(X, arm.Pose.from_rpy(0.4, 0.5, 0.6, X[:3, 3]).matrix(), atol=1e-12)
    assert_allclose(cell.ik("flange")(X).q, q, atol=1e-12)


def test_ours_are_those_of_the_page(tmp_path):
    for name in ("scara", "cartesian"):
        cells = [cell_of(name, source, tmp_path) for source in ("page", "ours")]
        Q = np.random.default_rng(0).uniform(
            *cells[0].limits, (1000, len(cells[0].joint_names))
        )
        poses = [cell.fk("flange")(Q) for cell in cells]
        assert_allclose(*poses, atol=1e-12)
        every = [cell.ik("flange").all(poses[0]).q for cell in cells]
        assert_allclose(*every, atol=1e-11)


def test_a_scripted_arm_is_compiled_and_has_a_jacobian(source, tmp_path):
    cell = cell_of("scara", source, tmp_path)
    joint = cell.manipulators[0].link("flange").joint
    assert [
        each.kind for each in joint.diagnostics if each.kind == "not-compiled"
    ] == []
    steps = np.eye(4) * 1e-6
    X = [cell.fk("flange")(Q1 + sign * steps)[:, :3, 3] for sign in (1, -1)]
    assert_allclose(cell.jacobian("flange")(Q1)[:3], (X[0] - X[1]).T / 2e-6, atol=1e-8)


def test_it_takes_part_in_a_cell(source, tmp_path):
    robot = cell_of("scara", source, tmp_path).manipulators[0]
    part = arm.Manipulator(name="part", links=[arm.Link(name="body")])
    cell = arm.Cell(manipulators=[robot, part], name="lab")
    home = cell.home
    held = home.grip("part", by="flange")
    moved = held.replace(q=Q1)
    expected = cell.fk("flange")(Q1) @ np.linalg.inv(cell.fk("flange")(home.q))
    assert_allclose(cell.pose("body", moved), expected, atol=1e-12)
    ik = cell.ik("body", state=moved)
    assert ik.closed is not None
    assert_allclose(ik(expected, near=Q1).q, Q1, atol=1e-9)


def test_unreachable_targets_give_clamped_joints(source, tmp_path):
    cell = cell_of("scara", source, tmp_path)
    ik = cell.ik("flange")
    for x, expected in ((0.7, [0, 0, 0, 0]), (0.01, [-180, -180, 0, 0])):
        X = arm.Pose.translation(x, 0, 0.09).matrix()
        found = ik.all(X)
        assert (found.reason == arm.Reason.OUT_OF_REACH).all()
        apart = np.degrees(found.q) - expected
        apart[:, [0, 1, 3]] -= 360 * np.round(apart[:, [0, 1, 3]] / 360)
        assert_allclose(apart, 0, atol=1e-9)
        best = ik(X)
        assert best.reason == arm.Reason.OUT_OF_REACH
        assert_allclose(best.q, np.clip(best.q, *cell.limits))
    joint = cell.manipulators[0].link("flange").joint
    warnings = [
        each.warning
        for each in joint.host.solutions(arm.Pose.translation(0.7, 0, 0.09))
    ]
    assert warnings == [1, 1]
