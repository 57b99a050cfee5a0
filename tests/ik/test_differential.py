"""Differential inverse kinematics: rates of real chains for wanted twists."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose, State
from armillary.errors import ModelError, ShapeError, UnknownName
from armillary.ik.differential import DifferentialSolver
from armillary.ik.rates_pipeline import RatesSetup, rates_pipeline
from armillary.ik.reason import RateReason
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.model.coupling import Coupling
from armillary.model.limits import Limits
from armillary.testing.samples import random_pose

COUNT = 200
ROWS = np.ones(7), np.array([1e-4, 0.01, 1.0, 1.0, 1e-6, 1e-6])
"""Weights and numbers of a call with a step of 10 ms."""


@pytest.fixture(scope="module")
def cell() -> Cell:
    """Return an arm on an oval track: one joint more than a pose needs."""
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def solver(cell: Cell) -> DifferentialSolver:
    """Return the solver of its tool's whole twist, within limits."""
    return cell.differential_ik("tool0")


@pytest.fixture(scope="module")
def free(cell: Cell) -> DifferentialSolver:
    """Return the same without limits."""
    return cell.differential_ik("tool0", limits=False)


def regular(cell: Cell, frame: str, count: int = COUNT) -> tuple[np.ndarray, ...]:
    """Return joint positions away from singularities, and the Jacobians there."""
    random = np.random.default_rng(0)
    lower, upper = (np.clip(limit, -3.0, 3.0) for limit in cell.limits)
    q = random.uniform(lower, upper, (4 * count, len(lower)))
    J = cell.jacobian(frame)(q)
    far = np.linalg.svd(J)[1][:, -1] > 0.12
    return q[far][:count], J[far][:count]


def twists(count: int = COUNT, size: float = 0.1, seed: int = 1) -> np.ndarray:
    """Return random twists."""
    return np.random.default_rng(seed).normal(size=(count, 6)) * size


def weighted_inverse(J: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the inverse that makes sum w qd^2 least."""
    root = np.sqrt(w)
    return np.linalg.pinv(J / root) / root[:, None]


def test_without_limits_it_is_the_weighted_pseudo_inverse(
    cell: Cell, free: DifferentialSolver
) -> None:
    q, J = regular(cell, "tool0")
    V = twists(len(q))
    w = np.array([5.0, 1.0, 1.0, 1.0, 0.7, 0.5, 0.5])
    for weights in (np.ones(7), w):
        answer = free(q, V, weights=weights)
        expected = weighted_inverse(J, weights) @ V[..., None]
        assert np.abs(answer.qd - expected[..., 0]).max() < 1e-9
        assert answer.success.all()
        assert np.abs(answer.twist - V).max() < 1e-9


def test_null_motion_is_seen_only_where_the_task_leaves_freedom(
    cell: Cell, free: DifferentialSolver
) -> None:
    q, J = regular(cell, "tool0")
    V, null = twists(len(q)), np.random.default_rng(2).normal(size=(len(q), 7))
    answer = free(q, V, null=null)
    projector = np.eye(7) - np.linalg.pinv(J) @ J
    expected = free(q, V).qd + (projector @ null[..., None])[..., 0]
    assert np.abs(answer.qd - expected).max() < 1e-8
    assert answer.success.all()


def test_limits_are_never_broken(cell: Cell, solver: DifferentialSolver) -> None:
    random = np.random.default_rng(3)
    lower, upper = cell.limits
    low, high = np.maximum(lower, -9.0), np.minimum(upper, 9.0)
    for size, step in ((0.3, 0.0), (3.0, 0.01), (30.0, 0.5)):
        q = random.uniform(low, high, (COUNT, 7))
        at_limit = random.uniform(size=q.shape) < 0.3
        q = np.where(
            at_limit, np.where(random.uniform(size=q.shape) < 0.5, low, high), q
        )
        null = random.normal(size=q.shape) * size
        answer = solver(q, twists(COUNT, size), null=null, step=step)
        assert (np.abs(answer.qd) <= cell.velocity_limits).all()
        after = q + answer.qd * step
        assert ((after >= lower) & (after <= upper)).all()
        if step == 0.0:
            assert (answer.qd[q >= upper] <= 0).all()
            assert (answer.qd[q <= lower] >= 0).all()
        assert not (answer.reason == RateReason.UNFINISHED).any()


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_ways_end_however_often_joints_saturate(cell: Cell, size: float) -> None:
    eased = cell.differential_ik("tool0").for_purpose("limits")
    q = np.random.default_rng(0).uniform(-3, 3, (4000, 7))
    answer = eased(q, twists(4000, 1.0) * size, step=0.01)
    assert not (answer.reason == RateReason.UNFINISHED).any()


def test_joints_beyond_a_limit_stay_or_come_back(solver: DifferentialSolver) -> None:
    q = np.array([0.0, 0.3, 7.0, 1.0, 0.0, -8.0, 0.0])
    qd = solver(np.tile(q, (50, 1)), twists(50), step=0.1).qd
    assert (qd[:, 2] <= 0).all()
    assert (qd[:, 5] >= 0).all()


def test_what_limits_take_is_reported(cell: Cell, solver: DifferentialSolver) -> None:
    q, J = regular(cell, "tool0")
    answer = solver(q, twists(len(q), 3.0))
    assert (answer.scale < 1).any()
    assert (
        np.abs(answer.twist - answer.scale[:, None] * twists(len(q), 3.0)).max() < 1e-7
    )
    assert (answer.success == (answer.scale >= 1)).all()
    assert set(answer.reason[~answer.success]) == {RateReason.LIMITS}
    missing = twists(len(q), 3.0) - np.einsum("bij,bj->bi", J, answer.qd)
    lengths = np.linalg.norm(missing.reshape(-1, 2, 3), axis=-1)
    assert np.abs(answer.residual - lengths).max() < 1e-9
    assert "slowed by the limits of joints" in str(answer)


def test_feasible_twists_are_met_however_tight(
    cell: Cell, solver: DifferentialSolver
) -> None:
    q, J = regular(cell, "tool0")
    limit = cell.velocity_limits
    qd = np.random.default_rng(4).uniform(-limit, limit, (len(q), 7))
    qd = np.where(np.abs(qd) > 0.8 * limit, np.sign(qd) * limit, qd) * (1 - 1e-9)
    answer = solver(q, np.einsum("bij,bj->bi", J, qd))
    assert answer.success.all()
    assert answer.scale == pytest.approx(1.0, abs=1e-6)


def test_lower_tasks_do_not_disturb_higher_ones(cell: Cell) -> None:
    alone = cell.differential_ik("tool0", rotation="")
    both = alone.then("forearm", position="z", rotation="xy")
    q, _ = regular(cell, "tool0")
    rows = [2, 3, 4]
    J = cell.jacobian("forearm")(q)[:, rows]
    for size in (0.1, 2.0):
        V = np.stack([twists(len(q), size), twists(len(q), size, seed=5)], axis=1)
        one, two = alone(q, V[:, 0]), both(q, V)
        assert np.abs(one.residual - two.residual[:, 0]).max() < 1e-7
        assert np.abs(one.scale - two.scale[:, 0]).max() < 1e-7
        left = np.einsum("bij,bj->bi", J, one.qd) - V[:, 1][:, rows]
        length = np.linalg.norm(two.residual[:, 1], axis=1)
        assert (length <= np.linalg.norm(left, axis=1) + 1e-9).all()
    assert two.twist.shape == (len(q), 2, 6)
    assert (two.reason[:, 1] != RateReason.MET).any()


def test_partial_twists_in_any_axes(cell: Cell) -> None:
    spins = cell.differential_ik("tool0", rotation="xy", axes="tool0", limits=False)
    q, _ = regular(cell, "tool0")
    V = twists(len(q))
    J = cell.jacobian("tool0", axes="tool0")(q)[:, :5]
    expected = np.linalg.pinv(J) @ V[:, :5, None]
    answer = spins(q, V)
    assert np.abs(answer.qd - expected[..., 0]).max() < 1e-8
    assert answer.success.all()
    V[:, 5] = np.nan  # what does not count is not read
    assert np.array_equal(spins(q, V).qd, answer.qd)


def test_a_purpose_falls_along_the_freedom(cell: Cell) -> None:
    def purpose(q: np.ndarray) -> float:
        return ((q - 0.5) ** 2).sum()

    solver = cell.differential_ik("tool0", position="xy", rotation="").for_purpose(
        purpose, gain=0.5
    )
    q, J = regular(cell, "tool0")
    qd = solver(q, np.zeros((len(q), 6))).qd
    slopes = np.einsum("bi,bi->b", qd, 2 * (q - 0.5))
    assert (slopes < 0).all()
    assert np.abs(np.einsum("bij,bj->bi", J[:, :2], qd)).max() < 1e-9
    for name, of in (("limits", None), ("manipulability", J)):
        named = cell.differential_ik("tool0").for_purpose(name)
        moved = q + 1e-4 * named(q, np.zeros((len(q), 6))).qd
        if of is not None:
            after = cell.jacobian("tool0")(moved)
            before, after = (np.linalg.det(M @ M.mT) for M in (of, after))
            assert (after >= before - 1e-12).all() and (after > before).any()
        else:
            assert ((moved[:, 1:] ** 2).sum(1) <= (q[:, 1:] ** 2).sum(1) + 1e-12).all()


def test_only_the_ratios_of_weights_count(cell: Cell, free: DifferentialSolver) -> None:
    q, J = regular(cell, "tool0", 20)
    V = twists(len(q))
    w = np.array([5.0, 1.0, 1.0, 1.0, 0.7, 0.5, 0.5])
    expected = (weighted_inverse(J, w) @ V[..., None])[..., 0]
    for factor in (1e-12, 1e-6, 1e-3):
        small = free(q, V, weights=factor * w)
        assert np.abs(small.qd - expected).max() < 1e-6
    for refused in (0.0, -1e-300, np.inf):
        with pytest.raises(ShapeError, match="above 0 and finite"):
            free(q, V, weights=[refused, *w[1:]])


def test_a_purpose_pulls_by_its_gain_times_the_gradient_over_the_weights(
    cell: Cell, free: DifferentialSolver
) -> None:
    q, J = regular(cell, "tool0")
    V, null = twists(len(q)), np.random.default_rng(2).normal(size=(len(q), 7))
    wanted = np.array([0.1, 0.5, -0.5, 1.0, 0.3, -0.2, 0.7])
    factors = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.2])
    weights = np.array([5.0, 1.0, 1.0, 1.0, 0.7, 0.5, 0.5])
    slopes = 2.0 * factors * (q - wanted)
    inverse = weighted_inverse(J, weights)
    projector = np.eye(7) - inverse @ J
    for gain in (0.5, 3.0, -1.0):
        solver = free.for_purpose(
            lambda x: (factors * (x - wanted) ** 2).sum(), gain=gain
        )
        for given in (None, null):
            pull = -gain * slopes / weights + (0.0 if given is None else given)
            expected = inverse @ V[..., None] + projector @ pull[..., None]
            answer = solver(q, V, weights=weights, null=given)
            np.testing.assert_allclose(answer.qd, expected[..., 0], atol=1e-8)


def test_near_singularities_rates_stay_bounded(free: DifferentialSolver) -> None:
    q = np.array([0.0, 0.3, -1.0, 0.0, 0.2, 0.0, 0.0])  # straight, wrist aligned
    steps = np.concatenate([[0.0], np.logspace(-12, -1, 60)])
    near = q + steps[:, None] * np.array([0, 0, 0, 1.0, 0, 1.0, 0])
    V = np.tile([0.3, 0.3, 0.3, 0.3, 0.3, 0.3], (len(near), 1))
    for sharp in (True, False):
        answer = free(near, V, damping=0.02, sharp=sharp)
        bound = (1.74 if sharp else 0.5) * np.linalg.norm(V[0]) / 0.02
        assert (np.linalg.norm(answer.qd, axis=1) <= bound + 1).all()
    assert answer.reason[0] == RateReason.SINGULAR


class Lift(arm.Joint):
    """A table on crossed beams."""

    unit = arm.METRE

    def pose(self, q):
        return Pose.translation(0.1 * q if q > 0 else 0.2 * q, 0, np.sqrt(4 - q * q))


def _planar() -> Cell:
    limits = Limits(lower=-1.5, upper=1.5, velocity=2.0)
    links = [
        Link(name="base"),
        Link(name="table", parent="base", joint=Lift(), limits=limits),
    ]
    for k in range(3):
        links.append(
            Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint_name=f"turn{k}",
                joint=arm.joints.Revolute(
                    axis=(0, 1, 0), precursor=Pose.translation(0.4, 0, 0)
                ),
                limits=Limits(lower=-2, upper=2, velocity=1.0),
                coupling=Coupling(of="turn1", multiplier=-2.0) if k == 2 else None,
            )
        )
    links.append(
        Link(
            name="tip",
            parent="link2",
            joint=arm.joints.Fixed(precursor=Pose.translation(0.3, 0, 0)),
        )
    )
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def test_couplings_and_own_joints_need_nothing_special() -> None:
    cell = _planar()
    assert cell.velocity_limits.tolist() == [2.0, 1.0, 0.5]
    solver = cell.differential_ik("tip", position="xz", rotation="")
    q = np.random.default_rng(6).uniform(-0.9, 0.9, (COUNT, 3))
    V = twists(COUNT)
    answer = solver(q, V)
    met = answer.success
    assert met.mean() > 0.5
    assert np.abs(cell.velocity("tip")(q, answer.qd) - answer.twist).max() < 1e-12
    assert np.abs((answer.twist - V)[met][:, [0, 2]]).max() < 1e-6
    assert (np.abs(answer.qd) <= cell.velocity_limits).all()


def test_any_cell_of_joints(random_cell: Callable[[int], Cell]) -> None:
    cell = random_cell(1)
    frame = "arm_tool5"
    solver = cell.differential_ik(frame, relative_to="part_body", limits=False)
    n = len(cell.joint_names)
    q = np.random.default_rng(7).uniform(-1, 1, (50, n))
    wanted = np.random.default_rng(8).normal(size=(50, n))
    V = cell.velocity(frame, relative_to="part_body")(q, wanted)
    answer = solver(q, V, damping=1e-4)
    regular = np.linalg.svd(cell.jacobian(frame, relative_to="part_body")(q))[1]
    kept = ((regular > 1e-2) | (regular < 1e-9)).all(axis=1)
    assert kept.any()
    assert np.abs(answer.twist - V)[kept].max() < 1e-6


def test_chosen_joints_alone_move(cell: Cell) -> None:
    names = ["shoulder_lift", "elbow"]
    solver = cell.differential_ik("tool0", position="z", rotation="", joints=names)
    assert solver.joints == ("ur5e/shoulder_lift", "ur5e/elbow")
    answer = solver([-1.0, 1.0], [0, 0, 0.05, 0, 0, 0])
    assert answer.qd.shape == (2,)
    assert answer.success


def test_evaluators_agree_and_batches_do_not_matter(
    cell: Cell, solver: DifferentialSolver
) -> None:
    q, _ = regular(cell, "tool0", 12)
    V = twists(len(q), 1.0)
    answer = solver(q, V, step=0.01)
    for k in range(len(q)):
        assert np.abs(solver(q[k], V[k], step=0.01).qd - answer.qd[k]).max() < 1e-9
    shaped = solver(q.reshape(3, 4, 7), V.reshape(3, 4, 6), step=0.01)
    assert np.array_equal(shaped.qd.reshape(-1, 7), answer.qd)
    assert shaped.scale.shape == (3, 4)
    assert solver(q[0], V, step=0.01).qd.shape == (len(q), 7)
    assert solver(np.empty((0, 7)), np.empty((0, 6))).qd.shape == (0, 7)
    inputs = [q, V[:, None], *ROWS, cell.velocity_limits]
    (reference,) = evaluate(solver._pipeline(False), {}, *inputs)
    assert np.abs(reference[:, :7] - answer.qd).max() < 1e-8


def test_rows_that_are_not_finite_fail_alone(
    cell: Cell, solver: DifferentialSolver
) -> None:
    q, _ = regular(cell, "tool0", 6)
    V = twists(6)
    good = solver(q, V)
    q[1, 2], V[3, 0], V[4, 5] = np.nan, np.inf, -np.inf
    answer = solver(q, V)
    assert np.isnan(answer.qd[[1, 3, 4]]).all()
    assert (answer.reason[[1, 3, 4]] == RateReason.INVALID).all()
    assert np.array_equal(answer.qd[[0, 2, 5]], good.qd[[0, 2, 5]])
    assert answer.summary() == {"MET": 3, "INVALID": 3}


def test_answers_are_read_only(solver: DifferentialSolver) -> None:
    answer = solver(np.zeros(7), np.zeros(6))
    with pytest.raises(ValueError, match="read-only"):
        answer.qd[0] = 1.0


def test_hostile_calls_are_reported(cell: Cell, solver: DifferentialSolver) -> None:
    q, v = np.zeros(7), np.zeros(6)
    for wrong, match in (
        (lambda: solver(np.zeros(6), v), r"q needs shape \(\.\.\., 7\)"),
        (lambda: solver(q, np.zeros(5)), r"1 task needs twists of shape \(\.\.\., 6\)"),
        (lambda: solver(q, v, weights=np.zeros(7)), "above 0"),
        (lambda: solver(q, v, weights=np.nan), "above 0"),
        (lambda: solver(q, v, damping=0.0), "damping is 0.0"),
        (lambda: solver(q, v, step=-1.0), "step is -1.0"),
        (lambda: solver(q, v, tolerance=(1.0, np.nan)), "tolerances"),
        (lambda: solver(q, v, null=np.zeros(3)), "null needs"),
        (
            lambda: solver(np.zeros((2, 7)), np.zeros((3, 6))),
            r"q has \(2,\), twists has \(3,\), weights has \(\)\. Each dimension",
        ),
        (lambda: solver(q, v, tolerance=(1.0,)), "tolerance is two numbers"),
        (lambda: solver(q, v, step=np.zeros(2)), "step is one number"),
    ):
        with pytest.raises(ShapeError, match=match):
            wrong()
    with pytest.raises(ModelError, match="must ask for"):
        cell.differential_ik("tool0", position="", rotation="")
    with pytest.raises(ModelError, match="letters of 'xyz'"):
        cell.differential_ik("tool0", position="w")
    with pytest.raises(UnknownName, match="tool0"):
        cell.differential_ik("tol0")
    with pytest.raises(UnknownName, match="limits"):
        solver.for_purpose("limit")
    with pytest.raises(ModelError, match="gain"):
        solver.for_purpose("limits", gain=np.inf)


def test_rates_in_a_state_count_its_grips(random_cell: Any) -> None:
    cell = random_cell(1)
    random = np.random.default_rng(1)

    def gripped() -> State:
        state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
        return state.attach("part", "arm_tool4", pose=random_pose(random))

    first, second = gripped(), gripped()
    wanted = random.normal(size=6)
    for state in (first, second):
        solver = cell.differential_ik("part_top", state=state, limits=False)
        found = solver(state.q, wanted, damping=1e-9)
        J = cell.jacobian("part_top", state=state)(np.array(state.q))
        np.testing.assert_allclose(J @ found.qd, found.twist, atol=1e-9)
        expected = cell.twist("part_top", state.replace(qd=found.qd))
        np.testing.assert_allclose(found.twist, expected, atol=1e-9)
        both = solver.then("tray_top", relative_to="part_top", rotation="")
        found = both(state.q, np.stack([wanted, wanted]))
        moved = state.replace(qd=found.qd)
        expected = cell.twist("tray_top", moved, relative_to="part_top")
        np.testing.assert_allclose(found.twist[1], expected, atol=1e-9)
        some = cell.joint_names[2:5]
        part = cell.differential_ik("part_top", joints=some, state=state, limits=False)
        q = [state.q[cell.joint(name)] for name in some]
        rates = np.zeros(len(state.q))
        found = part(q, wanted)
        rates[[cell.joint(name) for name in some]] = found.qd
        expected = cell.twist("part_top", state.replace(qd=rates))
        np.testing.assert_allclose(found.twist, expected, atol=1e-9)


def test_a_solver_with_a_state_survives_another_process(cell: Cell):
    solver = cell.differential_ik("tool0", state=cell.home)
    before = pickle.loads(pickle.dumps(solver))
    wanted = solver(cell.home.q, np.full(6, 0.01)).qd
    after = pickle.loads(pickle.dumps(solver))
    for other in (before, after, after.for_purpose("limits")):
        rates = other(cell.home.q, np.full(6, 0.01)).qd
        np.testing.assert_allclose(rates, wanted, atol=1e-12)


def test_solvers_that_differ_in_numbers_are_traced_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another grip, moved base or joint that stands elsewhere is an input."""
    traced: list[str] = []

    def counted(setup: RatesSetup) -> Pipeline:
        traced.append(setup.tasks[0].twist.frame.link)
        return rates_pipeline(setup)

    monkeypatch.setattr("armillary.ik.differential.rates_pipeline", counted)
    (robot,) = arm.example("irb2400").manipulators
    cell = arm.Cell().add(robot, bolted=False)
    part = Manipulator(name="part", links=[Link(name="block")])
    cell = cell.add(part, bolted=False)
    frame, joints = "part/block", cell.joint_names[1:]
    q, twist = cell.home.q[1:] + 0.2, np.array([0.01, 0.02, 0.0, 0.0, 0.0, 0.1])
    for k in range(1, 5):
        base = Pose.translation(0.1 * k, 0.0, 0.0)
        state = cell.home.joints({cell.joint_names[0]: 0.1 * k}).place(robot.name, base)
        state = state.attach("part", "tool0", pose=Pose.translation(0.1 * k, 0.0, 0.0))
        solver = cell.differential_ik(frame, joints=joints, state=state, limits=False)
        J = cell.jacobian(frame, joints=joints, state=state)(q)
        found = solver(q, twist, damping=1e-9)
        assert np.allclose(J @ found.qd, found.twist, atol=1e-12)
    assert len(traced) == 1
    cell.differential_ik(frame, joints=joints, state=state)(q, twist)
    assert len(traced) == 2  # limits are another pipeline
    solver.for_purpose("limits")(q, twist)
    solver.for_purpose("manipulability")(q, twist)
    assert len(traced) == 4
