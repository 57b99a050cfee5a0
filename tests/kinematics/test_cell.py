"""Poses, Jacobians, velocities and accelerations against definitions and each other."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import armillary as arm
from armillary import Cell, Link, Manipulator, Mount, Pose
from armillary.errors import ModelError, UnknownName
from armillary.kernel import interpret, vectorize
from armillary.model.coupling import Coupling

SEEDS = range(4)
FRAMES = ("arm_tool2", "track_tool1", "part_top", "arm/arm5", "arm_flange", "world")


def walk(cell: Cell, frame: str, q: np.ndarray) -> np.ndarray:
    """Return the pose of a frame by multiplying placements link by link."""
    at = cell.frame(frame)
    X = at.pose.matrix()
    m = cell.workcell.owners[at.link]
    k = at.link - cell.workcell.starts[m]
    while m >= 0:
        manipulator = cell.manipulators[m]
        while k >= 0:
            joint = manipulator.links[k].joint
            value = 0.0
            for drive in manipulator.drives[k]:
                joints = cell.workcell.joints.links
                own = [
                    i
                    for i, link in enumerate(joints)
                    if cell.workcell.owners[link] == m
                ]
                value = drive.multiplier * q[own[drive.of]] + drive.offset
            X = joint.transform(value).matrix() @ X
            k = manipulator.parents[k]
        support = cell.workcell.base_frames[m]
        X = support.pose.matrix() @ X
        m = cell.workcell.owners[support.link]
        k = support.link - cell.workcell.starts[m]
    return X


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_fk_is_the_product_of_placements(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    q = np.random.default_rng(seed).normal(size=len(cell.joint_names))
    in_world = np.array([walk(cell, frame, q) for frame in FRAMES])
    for base, X_WB in zip(FRAMES, in_world, strict=True):
        found = cell.fk(list(FRAMES), relative_to=base)(q)
        np.testing.assert_allclose(found, np.linalg.inv(X_WB) @ in_world, atol=1e-11)
        alone = cell.fk(FRAMES[0], relative_to=base)(q)
        np.testing.assert_allclose(alone, found[0], atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_three_evaluators_agree_on_every_question(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    n = len(cell.joint_names)
    Q = np.random.default_rng(seed).normal(size=(7, n))
    for kernel in (cell.fk(list(FRAMES)), cell.jacobian("arm_tool2", axes="track0")):
        np.testing.assert_allclose(kernel(Q), vectorize(kernel.program, Q), atol=1e-10)
        np.testing.assert_allclose(kernel(Q), interpret(kernel.program, Q), atol=1e-10)
    bias = cell.bias_acceleration("arm_tool2")
    rates = np.random.default_rng(seed + 9).normal(size=(7, n))
    expected = interpret(bias.program, Q, rates)
    np.testing.assert_allclose(bias(Q, rates), expected, atol=1e-8)


def numeric_twist(before: np.ndarray, after: np.ndarray, h: float) -> np.ndarray:
    """Return (p(after) - p(before), log(R' R)) / 2h in the axes of the reference."""
    turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec()
    return np.concatenate([after[:3, 3] - before[:3, 3], turn]) / (2.0 * h)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("base", ["world", "track_tool1", "arm0"])
def test_jacobian_has_the_slope_of_fk(random_cell: Any, seed: int, base: str) -> None:
    cell = random_cell(seed)
    n = len(cell.joint_names)
    q = np.random.default_rng(seed).normal(size=n)
    fk = cell.fk("arm_tool4", relative_to=base)
    J = cell.jacobian("arm_tool4", relative_to=base)(q)
    errors = []
    for h in (2e-3, 1e-3):
        columns = [numeric_twist(fk(q - h * e), fk(q + h * e), h) for e in np.eye(n)]
        errors.append(np.abs(np.array(columns).T - J).max())
    assert errors[1] < 1e-4
    assert errors[1] < 0.3 * errors[0] or errors[0] < 1e-8  # falls as h squared


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_axes_and_point_are_what_conventions_say(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    q = np.random.default_rng(seed).normal(size=len(cell.joint_names))
    frame, base, axes, point = "arm_tool4", "track_tool0", "arm_tool1", "part_top"
    J = cell.jacobian(frame, relative_to=base)(q)
    R = cell.fk(axes, relative_to=base)(q)[:3, :3]
    turned = cell.jacobian(frame, relative_to=base, axes=axes)(q)
    np.testing.assert_allclose(turned[:3], R.T @ J[:3], atol=1e-10)
    np.testing.assert_allclose(turned[3:], R.T @ J[3:], atol=1e-10)
    moved = cell.jacobian(frame, relative_to=base, point=point)(q)
    arm_ = cell.fk(point, relative_to=base)(q)[:3, 3]
    arm_ = arm_ - cell.fk(frame, relative_to=base)(q)[:3, 3]
    expected = J[:3] + np.cross(J[3:].T, arm_).T
    np.testing.assert_allclose(moved[:3], expected, atol=1e-10)
    np.testing.assert_allclose(moved[3:], J[3:], atol=1e-12)
    within = cell.fk(point, relative_to=frame)(q)[:3, 3].tolist()
    given = cell.jacobian(frame, relative_to=base, point=within)(q)
    np.testing.assert_allclose(given, moved, atol=1e-10)
    for bad in ([0.0, 1.0], [0.0, 0.0, np.nan], ["x", "y", "z"], {"x": 1.0}):
        with pytest.raises(ModelError, match="three finite numbers"):
            cell.jacobian(frame, point=bad)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_velocity_and_acceleration_are_derivatives(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    n = len(cell.joint_names)
    random = np.random.default_rng(seed)
    q, qd, qdd = random.normal(size=(3, n))
    V = cell.velocity("arm_tool4", relative_to="track0")
    A = cell.acceleration("arm_tool4", relative_to="track0")
    J = cell.jacobian("arm_tool4", relative_to="track0")(q)
    bias = cell.bias_acceleration("arm_tool4", relative_to="track0")(q, qd)
    np.testing.assert_allclose(V(q, qd), J @ qd, atol=1e-9)
    np.testing.assert_allclose(A(q, qd, qdd), J @ qdd + bias, rtol=1e-9, atol=1e-8)
    errors = []
    for h in (2e-4, 1e-4):
        ahead = V(q + h * qd + h * h / 2 * qdd, qd + h * qdd)
        behind = V(q - h * qd + h * h / 2 * qdd, qd - h * qdd)
        errors.append(np.abs((ahead - behind) / (2 * h) - A(q, qd, qdd)).max())
    assert errors[1] < 0.3 * errors[0] or errors[0] < 1e-7


def test_acceleration_in_other_axes_is_the_same_vector(random_cell: Any) -> None:
    cell = random_cell(1)
    random = np.random.default_rng(1)
    q, qd, qdd = random.normal(size=(3, len(cell.joint_names)))
    plain = cell.acceleration("arm_tool4")(q, qd, qdd)
    turned = cell.acceleration("arm_tool4", axes="arm_tool4")(q, qd, qdd)
    R = cell.fk("arm_tool4")(q)[:3, :3]
    np.testing.assert_allclose(turned[:3], R.T @ plain[:3], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(turned[3:], R.T @ plain[3:], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", ["quaternion", "dual_quaternion"])
def test_other_forms_are_the_same_pose(random_cell: Any, form: str) -> None:
    cell = random_cell(0)
    Q = np.random.default_rng(3).normal(size=(20, len(cell.joint_names)))
    X = cell.fk("arm_tool2")(Q)
    found = cell.fk("arm_tool2", form=form)(Q)
    real = found[:, :4]
    R = Rotation.from_quat(real[:, [1, 2, 3, 0]]).as_matrix()
    np.testing.assert_allclose(R, X[:, :3, :3], atol=1e-12)
    assert (real[:, 0] >= 0.0).all()
    if form == "quaternion":
        np.testing.assert_allclose(found[:, 4:], X[:, :3, 3], atol=1e-12)
    else:  # t = 2 dual real*
        conjugate = Rotation.from_quat(real[:, [1, 2, 3, 0]]).inv()
        w, v = found[:, 4], found[:, 5:]
        rw, rv = real[:, 0], -real[:, 1:]
        t = 2 * (w[:, None] * rv + rw[:, None] * v + np.cross(v, rv))
        assert conjugate is not None
        np.testing.assert_allclose(t, X[:, :3, 3], atol=1e-12)


def test_joints_choose_and_order_the_inputs(random_cell: Any) -> None:
    cell = random_cell(2)
    names = list(cell.joint_names)
    whole = np.array(cell.home.q)
    chosen = [names[3], names[0]]
    values = np.array([0.3, -0.4])
    whole[3], whole[0] = values
    few = cell.fk("arm_tool4", joints=chosen)(values)
    np.testing.assert_allclose(few, cell.fk("arm_tool4")(whole), atol=1e-12)
    J = cell.jacobian("arm_tool4")(whole)
    part = cell.jacobian("arm_tool4", joints=chosen)(values)
    np.testing.assert_allclose(part, J[:, [3, 0]], atol=1e-12)


def test_coupled_joint_counts_in_the_column_it_follows() -> None:
    turn = arm.joints.Revolute()
    ahead = arm.joints.Revolute(precursor=Pose.translation(1.0, 0.0, 0.0))
    links = (
        Link(name="base"),
        Link(name="a", parent="base", joint=turn, joint_name="ja"),
        Link(
            name="b",
            parent="a",
            joint=ahead,
            joint_name="jb",
            coupling=Coupling(of="ja", multiplier=2.0, offset=0.1),
        ),
    )
    cell = Cell(manipulators=(Manipulator(name="m", links=links),))
    assert cell.joint_names == ("ja",)
    J = cell.jacobian("b")(np.array([0.0]))
    np.testing.assert_allclose(J[:, 0], [0, 1, 0, 0, 0, 3], atol=1e-15)


def test_bad_questions_are_answered_with_what_exists(random_cell: Any) -> None:
    cell = random_cell(0)
    with pytest.raises(UnknownName, match="Did you mean 'arm_tool2'"):
        cell.fk("arm_tol2")
    with pytest.raises(UnknownName, match="no joint named 'elbow'"):
        cell.fk("arm_tool2", joints=["elbow"])
    with pytest.raises(UnknownName, match="form"):
        cell.fk("arm_tool2", form="euler")
    with pytest.raises(ModelError, match="at least one frame"):
        cell.fk([])
    for question in (cell.fk, cell.jacobian, cell.velocity):
        with pytest.raises(ModelError, match=r"by its name, a text, not \['arm_tool2"):
            question("arm_tool2", relative_to=["arm_tool2"])
    with pytest.raises(ModelError, match="twice"):
        cell.fk("arm_tool2", joints=[cell.joint_names[0]] * 2)
    with pytest.raises(ModelError, match="list of names"):
        cell.fk("arm_tool2", joints="arm_joint0")


def test_ambiguous_bare_names_must_be_qualified() -> None:
    twins = tuple(
        Manipulator(name=name, links=(Link(name="base"),)) for name in ("left", "right")
    )
    cell = Cell(
        manipulators=twins,
        mounts=(Mount(manipulator="right", pose=Pose.translation(1.0, 0.0, 0.0)),),
    )
    with pytest.raises(ModelError, match="'left/base', 'right/base'"):
        cell.fk("base")
    assert cell.fk("right/base")(np.empty(0))[0, 3] == 1.0


def test_cells_are_values(random_cell: Any) -> None:
    a, b = random_cell(3), random_cell(3)
    assert a == b
    assert hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(a)) == a
    assert a != random_cell(4)


def test_threads_get_the_single_thread_numbers(random_cell: Any) -> None:
    cell = random_cell(1)
    Q = np.random.default_rng(0).normal(size=(32, 50, len(cell.joint_names)))
    expected = [(cell.fk("arm_tool4")(q), cell.jacobian("arm_tool4")(q)) for q in Q]
    found: list[Any] = [None] * len(Q)

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = cell.fk("arm_tool4")(Q[k]), cell.jacobian("arm_tool4")(Q[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(Q))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (X, J), (Y, K) in zip(expected, found, strict=True):
        assert np.array_equal(X, Y)
        assert np.array_equal(J, K)


def test_frames_are_named_by_texts(random_cell: Any) -> None:
    cell = random_cell(0)
    for asked in (
        lambda: cell.fk([1]),
        lambda: cell.fk(None),
        lambda: cell.jacobian([None]),
        lambda: cell.velocity(["arm_tool4"]),
        lambda: cell.ik(3),
        lambda: cell.device("arm").fk([2]),
    ):
        with pytest.raises(ModelError, match="name"):
            asked()


def test_jacobians_of_a_list_of_frames(random_cell: Any) -> None:
    cell = random_cell(0)
    names = ["arm_tool4", "track1"]
    q = np.random.default_rng(0).normal(size=(3, len(cell.joint_names)))
    both = cell.jacobian(names, axes="arm1")(q)
    for k, name in enumerate(names):
        one = cell.jacobian(name, axes="arm1")(q)
        np.testing.assert_allclose(both[:, k], one, atol=1e-12)
