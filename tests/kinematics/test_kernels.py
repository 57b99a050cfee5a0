"""Kernels of a state: its grips, its moved bases, and its other joints count."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import armillary
from armillary import Pose, State
from armillary.errors import ModelError, StateError
from armillary.kernel import Kernel, compiler
from armillary.spatial import dual_quaternion
from armillary.testing.samples import random_pose

SEEDS = range(3)
FRAMES = ("arm_tool4", "part_top", "tray_body", "track1")


def loaded(cell: Any, seed: int, *, by: str = "arm_tool4") -> State:
    """Return a random state: the part held by the arm, the tray by the part."""
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    state = state.place("part", random_pose(random)).place("tray", random_pose(random))
    return state.grip("part", by=by).grip("tray", by="part_top")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each compilation adds an item, loaded ones too."""
    found: list[str] = []
    original = compiler.loaded

    def counted(key: str, *rest: Any, **options: Any) -> Any:
        found.append(key)
        return original(key, *rest, **options)

    monkeypatch.setattr(compiler, "loaded", counted)
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_poses_are_those_of_the_state(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    random = np.random.default_rng(seed)
    for state in (cell.home, loaded(cell, seed)):
        Q = random.normal(size=(3, 2, len(state.q)))
        for to in ("world", "part_top"):
            poses = cell.fk(FRAMES, relative_to=to, state=state)(Q)
            for index in np.ndindex(3, 2):
                moved = state.replace(q=Q[index])
                for k, name in enumerate(FRAMES):
                    expected = cell.pose(name, moved, relative_to=to)
                    np.testing.assert_allclose(poses[index][k], expected, atol=1e-11)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_joints_that_are_not_named_stay_as_in_the_state(
    random_cell: Any, seed: int
) -> None:
    cell = random_cell(seed)
    state = loaded(cell, seed)
    random = np.random.default_rng(seed)
    names = random.permutation(cell.joint_names)[:3].tolist()
    q = random.normal(size=3)
    moved = state.joints(dict(zip(names, q.tolist(), strict=True)))
    X = cell.fk("part_top", joints=names, state=state)(q)
    np.testing.assert_allclose(X, cell.pose("part_top", moved), atol=1e-11)
    chosen = [cell.joint(name) for name in names]
    for kind in ("jacobian", "velocity"):
        whole = getattr(cell, kind)("part_top", state=state)
        part = getattr(cell, kind)("part_top", joints=names, state=state)
        if kind == "jacobian":
            J = whole(np.array(moved.q))[:, chosen]
            np.testing.assert_allclose(part(q), J, atol=1e-11)
        else:
            rates = np.zeros(len(moved.q))
            rates[chosen] = [0.3, -0.2, 0.5]
            expected = whole(np.array(moved.q), rates)
            np.testing.assert_allclose(part(q, rates[chosen]), expected, atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"relative_to": "part_top"},
        {"relative_to": "arm1", "point": "tray_top", "axes": "track1"},
    ],
)
def test_twists_are_those_of_the_state(
    random_cell: Any, seed: int, options: dict[str, str]
) -> None:
    cell = random_cell(seed)
    random = np.random.default_rng(seed)
    state = loaded(cell, seed)
    qd = random.normal(size=len(state.q))
    q = np.array(state.q)
    expected = cell.twist("part_top", state.replace(qd=qd), **options)
    J = cell.jacobian("part_top", state=state, **options)(q)
    v = cell.velocity("part_top", state=state, **options)(q, qd)
    np.testing.assert_allclose(J @ qd, expected, atol=1e-11)
    np.testing.assert_allclose(v, expected, atol=1e-11)


def body_point(cell: Any, state: State, options: dict[str, str]) -> Any:
    """Return the function q -> position of the body point, in `relative_to`."""
    to = options.get("relative_to", "world")
    point = options.get("point", "part_top")
    fixed = cell.pose(point, state, relative_to="part_top")[:, 3]

    def position(q: Any) -> Any:
        X = cell.pose("part_top", state.replace(q=q), relative_to=to)
        return (X @ fixed)[:3]

    return position


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"relative_to": "arm1"},
        {"point": "track1"},
        {"relative_to": "track0", "point": "arm1", "axes": "arm2"},
    ],
)
def test_accelerations_are_second_derivatives_of_body_points(
    random_cell: Any, seed: int, options: dict[str, str]
) -> None:
    cell = random_cell(seed)
    random = np.random.default_rng(seed)
    state = loaded(cell, seed)
    q, (qd, qdd) = np.array(state.q), random.normal(size=(2, len(state.q)))
    A = cell.acceleration("part_top", state=state, **options)(q, qd, qdd)
    bias = cell.bias_acceleration("part_top", state=state, **options)(q, qd)
    J = cell.jacobian("part_top", state=state, **options)(q)
    np.testing.assert_allclose(J @ qdd + bias, A, atol=1e-9)
    if "axes" in options:  # back to those in which positions are differentiated
        R = cell.pose("arm2", state, relative_to="track0")[:3, :3]
        A = np.concatenate([R @ A[:3], R @ A[3:]])
    position = body_point(cell, state, options)
    errors: list[float] = []
    for h in (4e-3, 2e-3):
        ahead, behind = (position(q + s * qd + 0.5 * h * h * qdd) for s in (h, -h))
        naive = (ahead - 2 * position(q) + behind) / h**2
        errors.append(float(np.abs(naive - A[:3]).max()))
    assert errors[1] < 0.3 * errors[0] + 1e-7


def test_the_point_of_an_acceleration_is_fixed_to_the_frame() -> None:
    links = [armillary.Link(name="base")]
    for k, x in enumerate((0.0, 1.0)):
        joint = armillary.joints.Revolute(
            axis=(0, 0, 1), precursor=Pose.translation(x, 0, 0)
        )
        tip = armillary.Frame(name=f"tip{k}", pose=Pose.translation(0.5, 0, 0))
        links.append(
            armillary.Link(
                name=f"link{k}", parent=links[-1].name, joint=joint, frames=(tip,)
            )
        )
    arm = armillary.Manipulator(name="arm", links=links)
    cell = armillary.Cell(manipulators=[arm])
    # The point of link0 where tip1 is, 1.5 m from the axis, while link1 turns back.
    A = cell.acceleration("link0", point="tip1")([0, 0], [1, -1], [0, 0])
    np.testing.assert_allclose(A, [-1.5, 0, 0, 0, 0, 0], atol=1e-14)


@pytest.mark.parametrize("form", ["matrix", "quaternion", "dual_quaternion"])
def test_pose_errors_are_those_of_the_state(random_cell: Any, form: str) -> None:
    cell = random_cell(0)
    state = loaded(cell, 0)
    random = np.random.default_rng(0)
    q = random.normal(size=len(state.q))
    target = random.normal(size=len(state.q))
    fk = cell.fk("part_top", state=state, form=form)
    error = cell.pose_error("part_top", state=state, form=form)
    np.testing.assert_allclose(error(q, fk(q)), 0, atol=1e-10)
    V = error(q, fk(target))
    X = cell.fk("part_top", state=state)
    step = dual_quaternion.to_pose(dual_quaternion.exp(tuple(V)))
    np.testing.assert_allclose(X(q) @ step.matrix(), X(target), atol=1e-9)


@pytest.mark.parametrize("kind", ["fk", "jacobian", "velocity", "acceleration"])
def test_another_grip_compiles_nothing(
    random_cell: Any, kind: str, compilations: list[str]
) -> None:
    cell = random_cell(1)
    n = len(cell.joint_names)
    first = getattr(cell, kind)("part_top", state=loaded(cell, 0))
    before = len(compilations)
    given = [np.zeros(n)] * (len(first.program.inputs) - len(first.bound))
    answers = [first(*given)]
    for seed in (1, 2):
        state = loaded(cell, seed, by="arm_tool4")
        answers.append(getattr(cell, kind)("part_top", state=state)(*given))
    assert len(compilations) == before
    if kind == "fk":
        assert np.abs(answers[0] - answers[1]).max() > 0.01


def test_where_nothing_is_moved_it_is_the_kernel_of_the_cell(random_cell: Any) -> None:
    cell = random_cell(0)
    assert cell.fk("arm_tool4", state=loaded(cell, 0)) is cell.fk("arm_tool4")
    assert isinstance(cell.fk("part_top", state=cell.home), Kernel)


def test_a_gripped_part_moves_with_its_holder() -> None:
    cell = armillary.example("oval_track_cell")
    state = cell.home.grip("part", by="tcp")
    Q = np.random.default_rng(0).uniform(-1, 1, (20, len(state.q)))
    still, held = cell.fk("block")(Q), cell.fk("block", state=state)(Q)
    assert np.ptp(still, axis=0).max() == 0
    expected = cell.poses(state, q=Q)["block"]
    np.testing.assert_allclose(held, expected, atol=1e-12)


def test_kernels_of_states_are_used_as_kernels_are(random_cell: Any) -> None:
    cell = random_cell(0)
    state = loaded(cell, 0)
    fk = cell.fk("part_top", state=state)
    Q = np.random.default_rng(0).normal(size=(4, len(state.q)))
    out = np.empty((4, 4, 4))
    assert fk(Q, out=out, threads=1) is out
    np.testing.assert_array_equal(out, fk(Q))
    again = pickle.loads(pickle.dumps(fk))
    np.testing.assert_array_equal(again(Q), out)
    np.testing.assert_array_equal(copy.deepcopy(fk)(Q), out)
    single = cell.fk("part_top", state=state, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single(Q.astype(np.float32)), out, atol=1e-4)
    assert "bound" in repr(fk)


def test_a_state_of_another_cell_is_refused(random_cell: Any) -> None:
    cell = random_cell(0)
    with pytest.raises(StateError, match="joint positions"):
        cell.fk("part_top", state=State(q=(0.0,)))
    with pytest.raises(ModelError, match="joint twice"):
        cell.fk("part_top", joints=["arm_joint0"] * 2, state=cell.home)
