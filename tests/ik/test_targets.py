"""Targets and errors in every form of a pose, whatever the sign."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary import Cell
from armillary.errors import ShapeError, UnknownName
from armillary.ik.reason import Reason
from armillary.ik.targets import as_matrices
from armillary.kernel import interpret, vectorize
from armillary.spatial import dual_quaternion as dual
from armillary.spatial import twist
from armillary.spatial.pose import Pose
from arms import arm_of_axes

FORMS = ("matrix", "quaternion", "dual_quaternion")


@pytest.fixture(scope="module")
def cell() -> Cell:
    """Return an arm on a track."""
    return arm.example("ur5e_on_oval")


def joints(count: int, seed: int = 0) -> np.ndarray:
    """Return joint positions."""
    return np.random.default_rng(seed).uniform(-2, 2, (count, 7))


@pytest.mark.parametrize("form", FORMS)
def test_forms_come_back_as_matrices(cell: Cell, form: str) -> None:
    q = joints(20)
    X = cell.fk("tool0")(q)
    given = cell.fk("tool0", form=form)(q)
    assert np.abs(as_matrices(given) - X).max() < 1e-14
    if form == "dual_quaternion":
        assert np.abs(as_matrices(-3.0 * given) - X).max() < 1e-14
    shaped = as_matrices(given.reshape(4, 5, *given.shape[1:]))
    assert shaped.shape == (4, 5, 4, 4)


def test_solutions_do_not_depend_on_form_or_sign(cell: Cell) -> None:
    q = joints(50)
    ik = cell.ik("tool0")
    X, D = (cell.fk("tool0", form=form)(q) for form in ("matrix", "dual_quaternion"))
    expected = ik(X)
    assert expected.success.all()
    for sign in (1.0, -1.0):
        answer = ik(sign * D)
        assert answer.success.all()
        assert np.abs(cell.fk("tool0")(answer.q) - X).max() < 5e-6
    D[3], D[4, 1] = 0.0, np.nan
    answer = ik(D)
    invalid = answer.reason == Reason.INVALID_TARGET
    assert np.flatnonzero(invalid).tolist() == [3, 4]
    assert ik.path(D[5:8], start=q[5]).answer.success.all()
    alone = cell.ik("tool0", joints=cell.joint_names[1:])
    every = alone.all(cell.fk("tool0", form="quaternion")(np.r_[0, q[7, 1:]]))
    assert every.success.any()


def test_wrong_forms_and_shapes_are_reported(cell: Cell) -> None:
    ik = cell.ik("tool0")
    for wrong in (np.eye(3), np.zeros(6), np.zeros((2, 9)), 1.0):
        with pytest.raises(ShapeError, match=r"dual quaternion.* was given"):
            ik(wrong)
    with pytest.raises(UnknownName, match="quaternion"):
        cell.pose_error("tool0", form="quaternions")


@pytest.mark.parametrize("form", FORMS)
def test_the_error_is_the_screw_to_the_target(cell: Cell, form: str) -> None:
    q, other = joints(30), joints(30, seed=1)
    X = cell.fk("tool0")(q)
    targets = cell.fk("tool0", form=form)(other)
    goals = cell.fk("tool0")(other)
    error = cell.pose_error("tool0", form=form)
    V = error(q, targets)
    for k in range(len(q)):
        reached = Pose.from_matrix(X[k]) @ twist.exp(tuple(V[k].tolist()))
        assert np.abs(reached.matrix() - goals[k]).max() < 1e-12
    assert (np.linalg.norm(V[:, 3:], axis=1) <= np.pi + 1e-12).all()
    if form == "dual_quaternion":
        assert np.abs(error(q, -targets) - V).max() < 1e-13
    for evaluate in (interpret, vectorize):
        assert np.abs(evaluate(error.program, q, targets) - V).max() < 1e-12


def test_the_error_is_zero_at_the_target_and_relative_to_any_frame(cell: Cell) -> None:
    q = joints(10)
    X = cell.fk("tool0", relative_to="cart")(q)
    error = cell.pose_error("tool0", relative_to="cart")
    assert np.abs(error(q, X)).max() < 1e-14
    D = cell.fk("tool0", relative_to="cart", form="dual_quaternion")(q)
    by_hand = dual.screw_between(tuple(D[0].tolist()), tuple(D[1].tolist()))
    assert np.abs(error(q[0], X[1]) - by_hand).max() < 1e-12


def test_poses_and_states_stand_for_their_numbers(cell: Cell) -> None:
    ik, X = cell.ik("tool0"), cell.fk("tool0")(joints(3))
    targets = [Pose.from_matrix(each) for each in X]
    np.testing.assert_array_equal(ik(targets).q, ik(X).q)
    np.testing.assert_array_equal(ik(targets[0]).q, ik(X[0]).q)
    state = cell.home.replace(q=joints(1)[0])
    q = np.array(state.q)
    np.testing.assert_array_equal(ik(X, near=state).q, ik(X, near=q).q)
    np.testing.assert_array_equal(ik(X, seed=state).q, ik(X, seed=q).q)
    chosen = list(cell.joint_names[1:])
    alone = cell.ik("tool0", joints=chosen)
    some = cell.fk("tool0", joints=chosen)(joints(1)[:, 1:])
    np.testing.assert_array_equal(alone(some, near=state).q, alone(some, near=q[1:]).q)
    ways = ik.path(X, start=state), ik.path(X, start=q)
    np.testing.assert_array_equal(ways[0].answer.q, ways[1].answer.q)


def test_dual_quaternions_that_are_sheared_are_not_pose(cell: Cell) -> None:
    good = cell.fk("tool0", form="dual_quaternion")(joints(2))
    sheared = good.copy()
    sheared[:, 4:] += 1e-3 * good[:, :4]  # r . d is no longer 0
    for scale in (1.0, -7.0, 1e-6):
        assert cell.ik("tool0")(scale * good).success.all()
        reasons = cell.ik("tool0")(scale * sheared).reason
        assert (reasons == Reason.INVALID_TARGET).all()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"targets": "x"}, "targets must be an array of numbers, not 'x'"),
        ({"targets": [[1, 2], [3]]}, "targets must be an array"),
        ({"near": "x"}, "near must be an array of numbers"),
        ({"tolerance": 1e-3}, "a distance .* and an angle .*, not 0.001"),
        ({"tolerance": (1e-3, 1e-3, 1e-3)}, "a distance .* and an angle"),
        ({"tolerance": (1e-3, -1e-3)}, "above 0"),
    ],
)
def test_what_is_not_an_array_is_reported(
    cell: Cell, asked: dict, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        cell.ik("tool0")(**{"targets": np.eye(4)} | asked)


@pytest.mark.parametrize("name", ["irb2400", "ur5e_on_oval"])
def test_matrices_that_are_sheared_are_not_pose(name: str) -> None:
    cell = arm.example(name)
    q = np.linspace(0.1, 0.9, len(cell.joint_names))
    ik = cell.ik("tool0")
    for shear, reason in ((1e-7, Reason.SOLVED), (1e-5, Reason.INVALID_TARGET)):
        for i, j in ((0, 1), (1, 2), (2, 0)):
            X = cell.fk("tool0")(q)
            X[:3, i] += shear * X[:3, j]
            assert ik(X, near=q + 0.05).reason == reason
            assert ik(X[None], near=q + 0.05).reason == reason
            every = ik.all(X)
            assert every.success.any() == (reason == Reason.SOLVED)
            if not every.success.any():
                assert (every.reason == reason).all()


def test_positions_are_targets_where_no_rotation_counts():
    cell = arm.example("irb2400")
    ik = cell.ik("tool0", rotation="")
    rows = np.random.default_rng(8).uniform(-1.0, 1.0, (2, 5, 6))
    poses = cell.fk("tool0")(rows)
    answer = ik(poses[..., :3, 3])
    assert answer.q.shape == (2, 5, 6)
    found = cell.fk("tool0")(answer.q[answer.success])
    assert answer.success.any()
    assert np.allclose(found[:, :3, 3], poses[answer.success][:, :3, 3], atol=2e-6)
    single = ik(poses[0, 0, :3, 3].tolist())
    assert np.array_equal(single.reason, answer.reason[0, 0])


def test_positions_are_refused_where_rotations_count():
    ik = arm.example("irb2400").ik("tool0", rotation="xy")
    with pytest.raises(ShapeError, match="with rotation='' 3"):
        ik([1.0, 0.0, 1.0])


def test_frames_that_only_turn_have_answers_of_any_tolerance() -> None:
    """No length of such an arm is there to compare tolerances with."""
    axes = np.eye(3)[[2, 1]]
    cell = arm_of_axes("RR", axes, np.zeros((2, 3)), limit=[1.0, 1.0])
    q = np.array([0.3, -0.4])
    for tolerance in ((1e-6, 1e-6), (1e-3, 1e-3)):
        ik, target = cell.ik("tool"), cell.fk("tool")(q)
        answers = ik.all(target, tolerance=tolerance, method="numeric")
        assert np.abs(answers.q[answers.success] - q).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("far", [1e160, 1e300])
def test_squares_of_distances_may_overflow(far: float) -> None:
    cell = arm_of_axes("RR", np.eye(3)[[2, 1]], np.array([[0, 0, 0], [1, 0, 0]]))
    targets = np.tile(np.eye(4), (2, 1, 1))
    targets[:, 0, 3] = far
    for ik in (cell.ik("tool"), cell.ik("tool", rotation="")):
        assert ik(targets).summary() == {"OUT_OF_REACH": 2}
        assert ik(targets[0]).reason == Reason.OUT_OF_REACH
        assert ik(targets, near=np.zeros(2)).summary() == {"OUT_OF_REACH": 2}
