"""Inverse kinematics against forward kinematics, whose answers it must reproduce."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Mount, Pose
from armillary.errors import ModelError, ShapeError
from armillary.ik import numeric, problem
from armillary.ik.reason import Reason
from armillary.ik.solution import Solution
from armillary.kernel import search as search_module
from armillary.kernel.search import SearchOptions
from armillary.kernel.search_layout import STOPPED
from armillary.model.limits import Limits

A = (0.0, -0.425, -0.3922, 0.0, 0.0, 0.0)
D = (0.1625, 0.0, 0.0, 0.1333, 0.0997, 0.0996)
ALPHA = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)
UNREACHED = (Reason.OUT_OF_REACH, Reason.NOT_FOUND)


def ur5e(limit: float = np.pi) -> Manipulator:
    """Return a UR5e from its published Denavit-Hartenberg parameters."""
    behind = Pose.identity()
    links = [Link(name="base")]
    for k in range(6):
        links.append(
            Link(
                name=f"link{k + 1}",
                parent=links[-1].name,
                joint=arm.joints.Revolute(precursor=behind),
                limits=Limits(lower=-limit, upper=limit),
            )
        )
        behind = Pose.translation(A[k], 0.0, D[k]) @ Pose.rotation_x(ALPHA[k])
    tool = arm.joints.Fixed(precursor=behind)
    links.append(Link(name="tool", parent="link6", joint=tool))
    return Manipulator(name="ur5e", links=tuple(links))


@pytest.fixture(scope="module")
def cell() -> Cell:
    """Return the arm alone."""
    return Cell(manipulators=(ur5e(),))


@pytest.fixture(params=["numeric", "closed"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each way of solving: what holds of one holds of the other."""
    return request.param


@pytest.fixture(scope="module")
def on_track() -> Cell:
    """Return the arm on an oval track."""
    track = Manipulator(
        name="track",
        links=(
            Link(name="rail"),
            Link(
                name="cart",
                parent="rail",
                joint=arm.joints.OvalTrack(straight=3.0, radius=1.0),
            ),
        ),
    )
    return Cell(
        manipulators=(track, ur5e()), mounts=(Mount(manipulator="ur5e", on="cart"),)
    )


def random_targets(cell: Cell, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return joint positions within limits and the tool's poses there."""
    lower, upper = (np.clip(limit, -3.0, 3.0) for limit in cell.limits)
    q = np.random.default_rng(seed).uniform(lower, upper, (count, len(lower)))
    return q, cell.fk("tool")(q)


def met(cell: Cell, answer: Solution, targets: np.ndarray) -> np.ndarray:
    """Return the error of each answer by forward kinematics."""
    return np.abs(cell.fk("tool")(answer.q) - targets).max(axis=(-2, -1))


def test_every_reachable_target_is_solved_within_limits(
    cell: Cell, method: str
) -> None:
    _, targets = random_targets(cell, 2000)
    answer = cell.ik("tool")(targets, method=method)
    assert answer.success.all()
    assert met(cell, answer, targets).max() < 5e-6
    assert (answer.residual <= 1e-6 * (1 + 1e-9)).all()
    lower, upper = cell.limits
    assert ((answer.q >= lower) & (answer.q <= upper)).all()
    assert answer.summary() == {"SOLVED": 2000}
    assert str(answer) == "2000 of 2000 solved"


def test_batch_shapes_go_through(cell: Cell, method: str) -> None:
    _, targets = random_targets(cell, 6)
    ik = cell.ik("tool")
    assert ik(targets.reshape(3, 1, 2, 4, 4), method=method).q.shape == (3, 1, 2, 6)
    assert ik(targets[0], method=method).q.shape == (6,)
    assert ik(targets[0], method=method).success
    empty = ik(np.empty((0, 4, 4)), method=method)
    assert empty.q.shape == (0, 6)
    assert empty.summary() == {}


def test_answers_do_not_depend_on_the_order_of_the_batch(
    cell: Cell, method: str
) -> None:
    _, targets = random_targets(cell, 501)
    ik = cell.ik("tool")
    order = np.random.default_rng(1).permutation(501)
    assert np.array_equal(
        ik(targets, method=method).q[order], ik(targets[order], method=method).q
    )
    assert np.array_equal(ik(targets, method=method).q, ik(targets, method=method).q)


def test_tighter_and_looser_tolerances_hold(cell: Cell, method: str) -> None:
    _, targets = random_targets(cell, 200)
    for tolerance in ((1e-3, 1e-2), (1e-9, 1e-9)):
        answer = cell.ik("tool")(targets, tolerance=tolerance, method=method)
        assert answer.success.all()
        assert (answer.residual <= np.array(tolerance)).all()


def test_a_seed_leads_to_the_answer_next_to_it(cell: Cell, method: str) -> None:
    q, targets = random_targets(cell, 300)
    answer = cell.ik("tool")(targets, seed=q + 1e-3, method=method)
    assert answer.success.all()
    close = np.abs(answer.q - q).max(axis=1) < 0.05
    assert close.mean() > 0.95  # the others stand at a singularity


def test_near_draws_the_free_motion_of_a_redundant_arm(on_track: Cell) -> None:
    q, targets = random_targets(on_track, 200)
    ik = on_track.ik("tool")
    near = q + 0.05
    drawn = ik(targets, near=near)
    plain = ik(targets)
    assert drawn.success.all()
    assert plain.success.all()
    distance = np.linalg.norm(drawn.q - near, axis=1)
    assert np.median(distance) < 0.3
    assert np.median(distance) < 0.3 * np.median(np.linalg.norm(plain.q - near, axis=1))


def test_the_oval_track_needs_no_special_case(on_track: Cell) -> None:
    _, targets = random_targets(on_track, 500)
    answer = on_track.ik("tool")(targets)
    assert answer.success.all()
    assert met(on_track, answer, targets).max() < 5e-6


def test_frozen_joints_stay_at_home(on_track: Cell) -> None:
    names = [name for name in on_track.joint_names if name != "track/cart"]
    solver = on_track.ik("tool", joints=names)
    assert solver.joints == tuple(names)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (100, 6))
    targets = on_track.fk("tool", joints=names)(q)
    answer = solver(targets)
    assert answer.success.all()
    found = on_track.fk("tool", joints=names)(answer.q)
    np.testing.assert_allclose(found, targets, atol=5e-6)


@pytest.mark.parametrize(
    ("position", "rotation"),
    [("xyz", ""), ("", "xyz"), ("xyz", "xy"), ("xy", "xyz"), ("z", "")],
)
def test_only_what_is_asked_for_counts(
    cell: Cell, position: str, rotation: str
) -> None:
    _, targets = random_targets(cell, 200)
    answer = cell.ik("tool", position=position, rotation=rotation)(targets)
    assert answer.success.all()
    X = np.linalg.inv(targets) @ cell.fk("tool")(answer.q)  # the tool in the target
    for letter, axis in zip("xyz", range(3), strict=True):
        if letter in position:
            assert np.abs(X[:, axis, 3]).max() < 5e-6
    if rotation == "xyz":
        assert np.abs(X[:, :3, :3] - np.eye(3)).max() < 5e-6
    if rotation == "xy":  # free to spin about z
        assert np.abs(X[:, 2, 2] - 1.0).max() < 5e-6
        assert np.abs(X[:, 0, 0] - 1.0).max() > 0.1
    if not rotation:
        assert np.abs(X[:, :3, :3] - np.eye(3)).max() > 0.1


def test_targets_relative_to_a_moving_frame(on_track: Cell) -> None:
    q, _ = random_targets(on_track, 100)
    targets = on_track.fk("tool", relative_to="cart")(q)
    answer = on_track.ik("tool", relative_to="cart")(targets)
    assert answer.success.all()
    found = on_track.fk("tool", relative_to="cart")(answer.q)
    np.testing.assert_allclose(found, targets, atol=5e-6)


def test_several_frames_at_once() -> None:
    left, right = ur5e(), ur5e()
    pair = tuple(
        Manipulator(name=name, links=source.links)
        for name, source in (("left", left), ("right", right))
    )
    offset = Pose.translation(0.8, 0.0, 0.0)
    cell = Cell(manipulators=pair, mounts=(Mount(manipulator="right", pose=offset),))
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 12))
    frames = ["left/tool", "right/tool"]
    targets = cell.fk(frames)(q)
    answer = cell.ik(frames)(targets)
    assert answer.success.mean() > 0.9
    good = answer.success
    found = cell.fk(frames)(answer.q[good])
    np.testing.assert_allclose(found, targets[good], atol=5e-6)


def test_out_of_reach_is_proven_by_distance(cell: Cell, method: str) -> None:
    _, targets = random_targets(cell, 50)
    reach = sum(map(abs, A)) + sum(D)
    targets[:, :3, 3] *= (
        3.0 * reach / np.linalg.norm(targets[:, :3, 3], axis=1)[:, None]
    )
    answer = cell.ik("tool")(targets, method=method)
    assert not answer.success.any()
    assert (answer.reason == Reason.OUT_OF_REACH).all()
    assert "out of reach" in str(answer)


def test_out_of_reach_is_never_claimed_of_a_reachable_target(
    cell: Cell, method: str
) -> None:
    stretched = np.zeros((20, 6))
    stretched[:, 0] = np.linspace(-3.0, 3.0, 20)
    targets = cell.fk("tool")(stretched)
    answer = cell.ik("tool")(targets, method=method)
    assert (answer.reason != Reason.OUT_OF_REACH).all()


def test_limits_are_named_where_they_alone_forbid(method: str) -> None:
    tight = Cell(manipulators=(ur5e(0.3),))
    free = Cell(manipulators=(ur5e(),))
    q = np.full((20, 6), 1.5) + np.random.default_rng(0).normal(size=(20, 6)) * 0.1
    answer = tight.ik("tool")(free.fk("tool")(q), method=method)
    blocked = answer.reason == Reason.LIMITS
    assert blocked.mean() > 0.9
    lower, upper = tight.limits
    assert ((answer.q >= lower) & (answer.q <= upper)).all()


def test_limits_are_not_blamed_for_a_tolerance_that_nothing_meets(cell: Cell) -> None:
    q = np.random.default_rng(21).uniform(-2.0, 2.0, (30, 6))
    ik = cell.ik("tool")
    answer = ik(cell.fk("tool")(q), tolerance=(1e-20, 1e-20), method="numeric")
    assert not answer.success.any()
    assert (answer.reason == Reason.NOT_FOUND).all()


def test_limits_are_blamed_only_where_the_closed_form_blames_them() -> None:
    rng = np.random.default_rng(22)
    free = Cell(manipulators=(ur5e(),)).fk("tool")
    for limit in (0.7, 1.6, 2.6, 5.0):
        ik = Cell(manipulators=(ur5e(limit),)).ik("tool")
        targets = free(rng.uniform(-np.pi, np.pi, (100, 6)))
        exact, found = (ik(targets, method=m) for m in ("closed", "numeric"))
        assert np.array_equal(exact.success, found.success)
        blamed = found.reason == Reason.LIMITS
        assert (exact.reason[blamed] == Reason.LIMITS).all()


def test_what_is_proven_out_of_reach_is_not_searched_for_long(cell: Cell) -> None:
    targets = cell.fk("tool")(np.random.default_rng(23).uniform(-2, 2, (40, 6)))
    targets[::2, :3, 3] *= 20.0
    targets[1::4, :3, 3] = 0.0  # in the foot of the arm: unproven
    answer = cell.ik("tool")(targets, method="numeric")
    brief, whole = (np.unique(answer.starts[answer.reason == r]) for r in UNREACHED)
    assert brief < whole
    assert (answer.starts[answer.success] < brief).all()


def test_rows_that_are_not_pose_fail_alone(cell: Cell, method: str) -> None:
    _, targets = random_targets(cell, 6)
    bad = targets.copy()
    bad[0, 0, 0] = np.nan
    bad[1, :3, :3] *= 1.1
    bad[2, :3, 0] *= -1.0
    bad[3, 0, 3] = np.inf
    answer = cell.ik("tool")(bad, method=method)
    assert list(answer.reason[:4]) == [Reason.INVALID_TARGET] * 4
    assert np.isnan(answer.q[:4]).all()
    assert answer.success[4:].all()


def test_bad_questions_are_refused(cell: Cell) -> None:
    ik = cell.ik("tool")
    with pytest.raises(ShapeError, match=r"\(\.\.\., 4, 4\)"):
        ik(np.eye(3))
    with pytest.raises(ShapeError, match="above 0"):
        ik(np.eye(4), tolerance=(0.0, 1e-6))
    with pytest.raises(ShapeError, match="seed needs shape"):
        ik(np.eye(4), seed=np.zeros(5))
    with pytest.raises(ModelError, match="ask for something"):
        cell.ik("tool", position="", rotation="")
    with pytest.raises(ModelError, match="letters of 'xyz'"):
        cell.ik("tool", position="up")
    with pytest.raises(ModelError, match="None of these joints moves"):
        cell.ik("base")
    with pytest.raises(ShapeError, match="seconds above 0, not 'soon'"):
        ik(np.eye(4), timeout="soon")
    with pytest.raises(ModelError, match="an instance of a ClosedForm, not <class"):
        cell.ik("tool", closed=arm.ClosedForm)


def test_a_path_is_followed_without_jumps(on_track: Cell) -> None:
    u = np.linspace(0.0, 1.0, 2000)[:, None]
    start, end = np.array(
        [
            [0.0, 0.2, -1.2, 1.4, -1.0, -1.3, 0.3],
            [9.0, -0.6, -0.8, 1.0, -0.4, -1.6, 0.1],
        ]
    )
    targets = on_track.fk("tool")(start + (end - start) * u)
    answer, breaks = on_track.ik("tool").path(targets, start=start)
    assert answer.success.all()
    assert breaks.size == 0
    assert met(on_track, answer, targets).max() < 5e-6
    assert np.abs(np.diff(answer.q, axis=0)).max() < 0.1


def test_a_path_reports_where_it_must_break(cell: Cell) -> None:
    q, targets = random_targets(cell, 4)
    far = targets[0].copy()
    far[:3, 3] = 10.0
    answer, breaks = cell.ik("tool").path(
        np.array([targets[0], targets[0], far, targets[0]]), start=q[0]
    )
    assert 2 in breaks
    assert answer.reason[2] == Reason.OUT_OF_REACH
    assert answer.success[[0, 1]].all()


# what a failing call costs


def _folded(cell: Cell) -> np.ndarray:
    """Return a target within the sphere that the arm reaches, through its own base."""
    target = cell.fk("tool")(np.zeros(6))
    target[:3, 3] = 0.0
    return target


@pytest.mark.parametrize("wish", ["seed", "near"])
def test_a_failing_call_traces_and_compiles_nothing_more(
    wish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell(manipulators=(ur5e(),))
    ik = cell.ik("tool")
    q = np.linspace(-0.5, 0.5, 6)
    target = cell.fk("tool")(q)
    assert ik(target, **{wish: q}, method="numeric").success
    assert not ik(target + 10.0 * np.eye(4), **{wish: q}).success  # its closed form

    def never(*given: object, **named: object) -> object:
        raise AssertionError("traced or compiled again")

    monkeypatch.setattr(numeric, "step_program", never)
    monkeypatch.setattr(problem, "poses_program", never)
    monkeypatch.setattr(search_module, "_compiled", never)
    missed = ik(_folded(cell), **{wish: q}, method="numeric")
    assert missed.reason == Reason.NOT_FOUND
    beyond = cell.fk("tool")([0.5, -4.0, 1.0, 0.3, 0.4, 0.5])
    for method in ("numeric", "closed"):
        ik(beyond, **{wish: q}, method=method)


@pytest.mark.parametrize("near", [None, np.full(6, 0.3)])
def test_a_timeout_ends_a_call(cell: Cell, near: np.ndarray | None) -> None:
    ik = cell.ik("tool")
    endless, target = SearchOptions(starts=10**9), _folded(cell)
    ik = partial(ik, near=near)
    ik(target, method="numeric")
    for seconds in (1e-3, 0.05):
        answer = ik(target, method="numeric", search_options=endless, timeout=seconds)
        assert answer.reason == Reason.TIMEOUT == STOPPED
        assert np.isfinite(answer.q).all()
        assert answer.residual[0] < 0.5


def test_what_a_timeout_leaves_is_distinguished_from_what_is_proven(cell: Cell) -> None:
    ik = cell.ik("tool")
    targets = np.tile(_folded(cell), (3, 1, 1))
    targets[1, :3, 3] = 50.0
    targets[2] = cell.fk("tool")(np.full(6, 0.3))
    near = np.full(6, 0.3)
    ik(targets, near=near, method="numeric")
    endless = SearchOptions(starts=10**9)
    answer = ik(
        targets, near=near, method="numeric", search_options=endless, timeout=0.01
    )
    assert list(answer.reason) == [Reason.TIMEOUT, Reason.OUT_OF_REACH, Reason.SOLVED]


def test_a_timeout_that_is_not_reached_changes_nothing(cell: Cell) -> None:
    ik = cell.ik("tool")
    targets = cell.fk("tool")(np.random.default_rng(0).uniform(-2, 2, (50, 6)))
    one = ik(targets, method="numeric")
    other = ik(targets, method="numeric", timeout=60.0)
    assert np.array_equal(one.q, other.q)
    assert ik(targets, timeout=60.0).success.all()
    with pytest.raises(ShapeError, match="above 0"):
        ik(targets, timeout=0.0, method="numeric")


def test_why_a_target_is_missed_is_found_out_only_if_asked() -> None:
    cell = Cell(manipulators=(ur5e(limit=1.0),))
    ik = cell.ik("tool")
    targets = cell.fk("tool")(np.tile([1.5, -1.5, 1.6, -1.4, 1.3, 0.2], (2, 1)))
    targets[1, :3, 3] = 50.0
    told = ik(targets, method="numeric")
    plain = ik(targets, method="numeric", explain=False)
    assert list(told.reason) == [Reason.LIMITS, Reason.OUT_OF_REACH]
    assert list(plain.reason) == [Reason.NOT_FOUND, Reason.OUT_OF_REACH]


def test_another_random_seed_gives_other_random_starts(cell: Cell) -> None:
    ik = cell.ik("tool")
    targets = cell.fk("tool")(np.random.default_rng(0).uniform(-2, 2, (50, 6)))
    random = SearchOptions(table_starts=0)
    one, same, other = (
        ik(targets, method="numeric", search_options=random, random_seed=k).q
        for k in (7, 7, 8)
    )
    assert np.array_equal(one, same)
    assert (np.abs(one - other).max(axis=1) > 1e-3).mean() > 0.5
