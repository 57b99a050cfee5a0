"""Tools on lines and arcs: judged by forward kinematics and geometry by hand."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, StateError, UnknownName
from armillary.kernel.search import Search
from rotations import rotation
from work import lines

START = np.array([0.3, 0.2, 0.1, 0.4, 0.6, 0.2])
DENSE = np.linspace(0.0, 1.0, 51)


@pytest.fixture(scope="module")
def robot() -> arm.Cell:
    return arm.example("irb2400")


def moved(X: np.ndarray, by: Any, turn: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    Y = X.copy()
    Y[:3, 3] += by
    Y[:3, :3] = X[:3, :3] @ rotation(np.array(turn))
    return Y


def tracked(
    cell: arm.Cell, path: arm.CartesianPath
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses at 50 instants between samples, their parameters, and the intervals."""
    tool = path.tool
    fk = cell.fk(
        tool.frame,
        relative_to=tool.relative_to,
        joints=tool.joints,
        state=tool.state,
    )
    Q = path.q[:-1, None] + DENSE[:, None] * np.diff(path.q, axis=0)[:, None]
    S = path.s[:-1, None] + DENSE * np.diff(path.s)[:, None]
    count = np.repeat(np.arange(len(S)), len(DENSE))
    return fk(Q.reshape(-1, Q.shape[-1])), S.ravel(), count


def check_bounds(
    path: arm.CartesianPath, X: np.ndarray, Y: np.ndarray, rows: np.ndarray
) -> None:
    """Compare deviations with the bounds that a path states."""
    apart = np.linalg.norm(X[:, :3, 3] - Y[:, :3, 3], axis=1)
    chord = np.linalg.norm(X[:, :3, :3] - Y[:, :3, :3], 2, axis=(1, 2))
    angle = 2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0))
    slack = 1e-12 if path.proven else 0.1 * np.array(path.deviation)
    both = np.stack([apart, angle], axis=1)
    assert (both <= path.bounds[rows] + slack).all()
    assert path.deviation == tuple(path.bounds.max(axis=0))


@pytest.mark.parametrize("step", [None, 2e-3])
def test_a_line_is_straight_within_what_is_proven(robot: arm.Cell, step: float | None):
    first = robot.fk("tool0")(START)
    turn = np.array([0.2, -0.3, 0.4])
    last = moved(first, [0.1, -0.5, -0.2], turn)
    path = robot.line("tool0", [last], start=START, step=step)
    assert path.success
    assert path.proven
    assert path.reason == arm.LineReason.FOLLOWED
    np.testing.assert_array_equal(path.q[0], START)
    assert path.deviation[0] <= 1e-5
    assert path.deviation[1] <= 1e-4
    X, S, rows = tracked(robot, path)
    t = S / path.length
    Y = np.tile(np.eye(4), (len(t), 1, 1))
    Y[:, :3, 3] = first[:3, 3] + t[:, None] * (last - first)[:3, 3]
    Y[:, :3, :3] = np.stack([first[:3, :3] @ rotation(x * turn) for x in t])
    check_bounds(path, X, Y, rows)
    np.testing.assert_allclose(path.poses(S), Y, atol=1e-12)
    if step is not None:
        assert np.diff(path.s).max() <= step * (1.0 + 1e-9)


CELLS = [
    ("irb2400", "tool0", "world", None),
    ("ur10_on_rail", "tool0", "world", None),
    ("ur5e_on_oval", "tool0", "world", None),
    ("two_arms_positioner", "left/tcp", "seam", "right"),
    ("scara", "tcp", "world", None),
    ("palletiser", "flange", "world", None),
    ("delta", "platform", "world", None),
]


@pytest.mark.parametrize(("name", "frame", "seen", "without"), CELLS)
@pytest.mark.parametrize("blend", [0.0, 0.01])
def test_what_is_stated_holds_for_any_cell(
    name: str, frame: str, seen: str, without: str | None, blend: float
):
    cell = arm.example(name)
    joints = [n for n in cell.joint_names if without is None or without not in n]
    fk = cell.fk(frame, relative_to=seen, joints=joints)
    rng = np.random.default_rng(1)
    chosen = [cell.joint(each) for each in joints]
    start = cell.home.q[chosen]
    lower, upper = (each[chosen] for each in cell.limits)
    if name not in {"palletiser", "delta"}:
        wide = np.minimum(upper - lower, 6.0) / 6.0
        start = start + 0.2 * wide * rng.uniform(-1.0, 1.0, len(joints))
    X = fk(start)
    ways = [
        [-0.02, 0.03, -0.02],
        [-0.02, 0.05, -0.03],
        [0.0, 0.06, -0.02],
        [0, 0.02, 0],
    ]
    a, b, c, d = X[:3, 3] + np.array(ways)
    segments = [arm.Line(a), arm.Arc(to=c, through=b), arm.Line(d)]
    path = cell.line(
        frame, segments, start=start, relative_to=seen, joints=joints, blend=blend
    )
    assert path.success, str(path)
    assert path.proven == (name not in {"palletiser", "delta"})
    assert path.joints == tuple(joints)
    assert path.deviation[0] <= 1e-5
    assert ((path.q >= lower - 1e-12) & (path.q <= upper + 1e-12)).all()
    poses, S, rows = tracked(cell, path)
    check_bounds(path, poses, path.poses(S), rows)
    if blend:
        assert not path.corners.size
    else:
        corners = path.poses(path.s[path.corners])[:, :3, 3]
        np.testing.assert_allclose(corners, [s.to for s in segments[:2]], atol=1e-12)


def test_the_start_decides_the_branch_and_without_one_the_best_is_taken(
    robot: arm.Cell,
):
    X = robot.fk("tool0")(START)
    target = moved(X, [0.0, 0.3, 0.1])
    answers = robot.ik("tool0").all(X)
    followed = 0
    for q in answers.distinct():
        path = robot.line("tool0", [target], start=q)
        np.testing.assert_array_equal(path.q[0], q)
        steps = np.abs(np.diff(path.q, axis=0)).max(initial=0.0)
        assert steps < 0.3
        followed += path.success
    assert followed >= 2
    free = robot.line("tool0", [X, target])
    assert free.success
    assert free.target == 1


def test_a_start_may_be_a_state(robot: arm.Cell):
    state = robot.home.replace(q=START)
    target = moved(robot.pose("tool0", state), [0.0, 0.1, 0.0])
    path = robot.line("tool0", [target], start=state)
    np.testing.assert_array_equal(path.q[0], START)


def test_a_first_target_where_the_tool_is_changes_nothing(robot: arm.Cell):
    X = robot.fk("tool0")(START)
    target = moved(X, [0.0, 0.1, 0.0])
    one = robot.line("tool0", [target], start=START)
    other = robot.line("tool0", [X, target], start=START)
    np.testing.assert_array_equal(one.q, other.q)
    assert (one.target, other.target) == (0, 1)


def test_forms_of_targets_give_one_path(robot: arm.Cell):
    X = robot.fk("tool0")(START)
    Y = moved(X, [0.0, 0.1, 0.0])
    quaternion = robot.fk("tool0", form="quaternion")(
        robot.line("tool0", [Y], start=START).q[-1]
    )
    forms = [Y, [Y], Y[None], arm.Line(Y), [arm.Line(Y)], Y[:3, 3], [Y[:3, 3]]]
    paths = [robot.line("tool0", each, start=START) for each in forms]
    for path in paths[1:]:
        np.testing.assert_allclose(path.q[-1], paths[0].q[-1], atol=1e-9)
    seven = robot.line("tool0", [quaternion], start=START)
    np.testing.assert_allclose(seven.q[-1], paths[0].q[-1], atol=1e-6)
    mixed = robot.line("tool0", [Y, Y[:3, 3] + [0.0, 0.0, 0.1]], start=START)
    assert mixed.success


def test_a_target_that_is_out_of_reach_ends_the_path_at_the_edge(robot: arm.Cell):
    X = robot.fk("tool0")(START)
    far = X[:3, 3] + [0.0, 0.0, 9.0]
    path = robot.line("tool0", [far], start=START)
    assert path.reason in {arm.LineReason.OUT_OF_REACH, arm.LineReason.LIMITS}
    assert not path.success
    assert path.s[-1] == path.where
    assert 0.1 < path.where < 2.0
    ik = robot.ik("tool0")
    edge = path.poses([path.where - 1e-5, path.where + 1e-5])
    assert ik(edge).success.tolist() == [True, False]
    assert "at s = 0.539" in str(path)
    assert "target 0" in str(path)
    poses, S, rows = tracked(robot, path)
    check_bounds(path, poses, path.poses(S), rows)
    with pytest.raises(StateError, match="This path has no times: blocked by"):
        path.timed(acceleration=1.0)


def test_a_first_pose_that_is_out_of_reach_gives_no_samples(robot: arm.Cell):
    X = moved(np.eye(4), [9.0, 0.0, 0.0])
    path = robot.line("tool0", [X, moved(X, [0.1, 0.0, 0.0])])
    assert path.reason == arm.LineReason.OUT_OF_REACH
    assert path.q.shape == (0, 6)
    assert (path.where, path.target) == (0.0, 0)
    assert np.isnan(path.deviation).all()


def test_a_limit_on_the_way_ends_the_path(robot: arm.Cell):
    lower, upper = robot.limits
    start = START.copy()
    start[5] = upper[5] - 0.3
    X = robot.fk("tool0")(start)
    turned = X @ arm.Pose.rotation_z(0.6).matrix()
    path = robot.line("tool0", [turned], start=start)
    assert path.reason == arm.LineReason.LIMITS
    assert path.q[-1, 5] == pytest.approx(upper[5], abs=1e-5)
    assert path.where == pytest.approx(0.5 * path.length, abs=1e-5)
    assert (path.q <= upper).all()
    assert (path.q >= lower).all()


@pytest.mark.parametrize(("miss", "is_followed"), [(1e-6, True), (1e-3, False)])
def test_singular_poses_are_passed_within_the_tolerance_or_end_it(
    robot: arm.Cell, miss: float, is_followed: bool
):
    through = np.array([0.3, 0.2, 0.1, 0.4, 0.0, 0.2])  # axes 4 and 6 are one
    X = robot.fk("tool0")(through)
    first = moved(X, [0.01 + miss, -0.1, 0.05])
    last = moved(X, [-0.01 + miss, 0.1, -0.05])
    start = robot.ik("tool0")(first, near=through, tolerance=(1e-13, 1e-13)).q
    path = robot.line("tool0", [last], start=start)
    (stretch,) = path.singular_stretches(0.05)
    assert stretch.first > 0.0
    assert stretch.least == path.singular_values.min() < 1e-4
    if is_followed:
        assert path.success
        assert stretch.first < 0.5 * path.length < stretch.last < path.length
        poses, S, rows = tracked(robot, path)
        check_bounds(path, poses, path.poses(S), rows)
    else:
        assert path.reason == arm.LineReason.SINGULAR
        assert path.where == pytest.approx(0.5 * path.length, abs=1e-3)
        assert stretch.last == path.s[-1]


def test_what_touches_ends_the_path_and_is_named(robot: arm.Cell):
    X = robot.fk("tool0")(START)
    target = moved(X, [0.0, 0.5, 0.0])
    box = arm.Manipulator(
        name="box",
        links=[
            arm.Link(name="body", collisions=[arm.shapes.Box(size=(0.1, 0.1, 0.1))])
        ],
    )
    ball = arm.Manipulator(
        name="ball",
        links=[arm.Link(name="round", collisions=[arm.shapes.Sphere(radius=0.02)])],
    )
    at = arm.Pose.translation(*(X[:3, 3] + [0.0, 0.3, 0.0]))
    cell = robot.add(box, pose=at).add(ball, on="tool0")
    check = cell.collision()
    path = cell.line("tool0", [target], start=START, check=check)
    assert path.reason == arm.LineReason.IN_COLLISION
    assert all("box/body" in pair for pair in path.pairs)
    assert path.pairs
    assert path.s[-1] <= path.where
    assert not check(path.q).any()
    assert "box/body" in str(path)
    free = cell.line("tool0", [target], start=START)
    dense = np.linspace(0.0, free.length, 5001)
    touching = check(free.at(dense))
    assert path.where == pytest.approx(dense[np.argmax(touching)], abs=2e-4)
    clear = cell.line("tool0", [path.poses(0.9 * path.where)], start=START, check=check)
    assert clear.success
    assert clear.pairs == ()


def test_a_tool_on_a_part_that_a_positioner_turns():
    cell = arm.example("two_arms_positioner")
    joints = [n for n in cell.joint_names if not n.startswith("right")]
    fk = cell.fk("left/tcp", relative_to="seam", joints=joints)
    start = cell.home.q[[cell.joint(n) for n in joints]]
    target = moved(fk(start), [0.0, 0.0, -0.05])
    path = cell.line(
        "left/tcp",
        [target, target[:3, 3] + [0.0, 0.2, 0.0]],
        start=start,
        relative_to="seam",
        joints=joints,
        blend=0.02,
    )
    assert path.success
    X, S, rows = tracked(cell, path)
    check_bounds(path, X, path.poses(S), rows)
    motion = path.timed(speed=0.1, acceleration=3.0)
    samples = motion.sampled(rate=500)
    p = fk(samples.q)[:, :3, 3]
    assert np.linalg.norm(np.diff(p, axis=0), axis=1).max() * 500 <= 0.1 * 1.001


def test_motions_keep_the_speed_of_the_tool(robot: arm.Cell):
    fk = robot.fk("tool0")
    X = fk(START)
    segments = [X[:3, 3] + [0.0, 0.3, 0.0], X[:3, 3] + [0.0, 0.3, -0.2]]
    path = robot.line("tool0", segments, start=START, blend=0.03)
    limits = {"speed": 0.2, "tool_acceleration": 2.0, "acceleration": 20.0}
    motion = path.timed(**limits)
    samples = motion.sampled(rate=500)
    p = fk(samples.q)[:, :3, 3]
    speeds = np.linalg.norm(np.diff(p[:-1], axis=0), axis=1) * 500
    assert speeds.max() <= 0.2 * 1.001
    # Most of the way is at that speed.
    assert np.median(speeds) == pytest.approx(0.2, rel=1e-3)
    assert motion.duration == pytest.approx(path.length / 0.2 + 0.1, rel=1e-2)
    # Between samples the spline is as near to the curve as straight motions are.
    curve = path.poses(np.linspace(0.0, path.length, 20001))[:, :3, 3]
    for point in p[::50]:
        assert np.linalg.norm(curve - point, axis=1).min() < 2e-5
    stops = robot.line("tool0", segments, start=START)
    motion = stops.timed(**limits)
    # The corner is where joints rest on the way, and there alone.
    rests = np.flatnonzero(np.abs(motion.qd).max(axis=1) < 1e-9)
    expected = stops.q[[0, stops.corners[0], -1]]
    np.testing.assert_allclose(motion.q[rests], expected, atol=1e-9)


def test_paths_are_values(robot: arm.Cell):
    X = robot.fk("tool0")(START)
    path = robot.line("tool0", [moved(X, [0.0, 0.1, 0.0])], start=START)
    for array in (path.q, path.s, path.bounds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.q, path.q)
    assert str(again) == str(path)
    assert copy.deepcopy(path).deviation == path.deviation
    np.testing.assert_array_equal(path.at([0.0, path.length]), path.q[[0, -1]])
    assert path.poses(0.05).shape == (4, 4)
    for s in (-1e-3, path.length + 1e-3, np.nan):
        with pytest.raises(ShapeError, match=r"parameters from 0 to 0\.1 m"):
            path.at(s)
        with pytest.raises(ShapeError, match=r"parameters from 0 to 0\.1 m"):
            path.poses(s)
    assert "within" in repr(path)


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ([], {}, ShapeError, "Targets are poses"),
    (None, {}, ShapeError, "Targets are poses"),
    (np.zeros((2, 5)), {}, ShapeError, "an array of shape (2, 5)"),
    (np.full((1, 4, 4), np.nan), {}, ModelError, "Target 0: it holds a number"),
    ([np.eye(4), np.ones((4, 4))], {}, ModelError, "Target 1: it is not a rigid"),
    ([np.eye(4)], {"start": None}, ModelError, "A path of one point leads nowhere"),
    ([[0, 0, 1], [0, 1, 1]], {"start": None}, ModelError, "Without start=, the first"),
    ([[1.0, 0.3, 1.0]] * 2, {}, ModelError, "Target 1 (Line) has no length"),
    ([[1, 0, 1]], {"blend": -1.0}, ModelError, "blend= is a length"),
    ([[1, 0, 1]], {"blend": "wide"}, ModelError, "blend= is a length"),
    ([[1, 0, 1]], {"blend_deviation": np.nan}, ModelError, "blend_deviation= is a"),
    ([[1, 0, 1]], {"tolerance": 1e-5}, ShapeError, "tolerance= takes a distance"),
    ([[1, 0, 1]], {"tolerance": (0.0, 1.0)}, ShapeError, "both must be above 0"),
    ([[1, 0, 1]], {"tolerance": (1e-12, 1.0)}, ModelError, "lost in rounding"),
    ([[1, 0, 1]], {"step": 0.0}, ModelError, "step= is a finite number above 0"),
    ([[1, 0, 1]], {"step": 1e-9}, ModelError, "makes more than"),
    ([[1e9, 0, 1]], {}, ModelError, "Lengths are in metres"),
    ([[1, 0, 1]], {"start": [1.0, 2.0]}, ShapeError, "start needs shape"),
    ([[1, 0, 1]], {"start": [np.nan] * 6}, ShapeError, "start must contain"),
    ([[1, 0, 1]], {"joints": ["elbow"]}, UnknownName, "no joint named 'elbow'"),
    ([[1, 0, 1]], {"relative_to": "table"}, UnknownName, "no frame named 'table'"),
    ([[1, 0, 1]], {"check": 5}, ModelError, "check= takes a collision check"),
    ([[1, 0, 1]], {"rotation": "z"}, ModelError, "leaves two rotations free"),
    ([[1, 0, 1]], {"rotation": "w"}, ModelError, "rotation= takes letters of"),
]


@pytest.mark.parametrize(("targets", "options", "kind", "message"), BAD)
def test_bad_input_is_named(
    robot: arm.Cell,
    targets: Any,
    options: dict[str, Any],
    kind: type[Exception],
    message: str,
):
    given = {"start": START, **options}
    with pytest.raises(kind) as error:
        robot.line("tool0", targets, **given)
    assert message in str(error.value)


def test_unknown_tools_and_checks_of_other_cells_are_refused(robot: arm.Cell):
    with pytest.raises(UnknownName, match="no frame named 'tol0'"):
        robot.line("tol0", [[1, 0, 1]], start=START)
    other = arm.example("scara").collision()
    with pytest.raises(ModelError, match="another cell"):
        robot.line("tool0", [[1, 0, 1]], start=START, check=other)


def test_a_path_takes_few_calls_of_kernels(robot: arm.Cell):
    """Rows are solved and bounded together: no Python for each sample."""
    X = robot.fk("tool0")(START)
    target = moved(X, [0.0, 0.4, 0.0])

    def asked(step: float) -> int:
        return lines(lambda: robot.line("tool0", [target], start=START, step=step))

    asked(1e-2)
    few, many = asked(1e-3), asked(1e-4)
    assert many < 1.5 * few


def test_a_limit_that_couples_joints_is_named_and_kept(robot: arm.Cell):
    wrist = {"joint_2": 1.0, "joint_3": 1.0}
    limit = arm.CoupledLimit(joints=wrist, lower=-0.1, upper=0.6)
    (bare,) = robot.manipulators
    cell = arm.Cell(manipulators=[bare.replace(coupled_limits=[limit])])
    here = cell.fk("tool0")(START)[:3, 3]
    free = robot.line("tool0", [here + np.array([0.0, 0.0, 0.5])], start=START)
    path = cell.line("tool0", [here + np.array([0.0, 0.0, 0.5])], start=START)
    assert path.reason == arm.LineReason.LIMITS
    assert path.where < free.where
    excess = cell.limit_rows.excess(path.q)
    assert excess.max() <= 0.0
    assert excess[-1] > -1e-4  # no margin of joints explains where it ends


def test_what_is_far_out_of_reach_takes_no_more_than_what_is_near(robot: arm.Cell):
    def work(length: float) -> tuple[arm.CartesianPath, int]:
        here = robot.fk("tool0")(START)[:3, 3]
        targets = [here + np.array([0.0, 0.0, length])]
        solver = robot.ik("tool0")
        asked: list[int] = []
        follow = type(solver.numeric).follow_until_missed

        def counted(self: Any, query: Any, start: Any) -> Any:
            asked.append(len(query.targets))
            return follow(self, query, start)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(solver.numeric), "follow_until_missed", counted)
            path = robot.line("tool0", targets, start=START)
        return path, sum(asked)

    (near, few), (far, many) = work(3.0), work(900.0)
    assert not far.success
    assert abs(far.where - near.where) < 1e-6
    assert 0 < many <= 2 * few


@pytest.mark.parametrize("blend", [1e-300, 1e-12, 1e-8])
def test_tiny_blends_are_corners_or_blends(robot: arm.Cell, blend: float):
    here = robot.fk("tool0")(START)[:3, 3]
    targets = [here + np.array([0.0, 0.0, 0.05]), here + np.array([0.0, 0.05, 0.05])]
    each: list[dict[str, Any]] = [{"blend": blend}, {"blend_deviation": blend}]
    for options in each:
        path = robot.line("tool0", targets, start=START, **options)
        assert path.success
        assert len(path.corners) == (blend < 1e-9)
        assert not path.corners.flags.writeable


def test_times_need_no_limit_of_the_tool(robot: arm.Cell):
    here = robot.fk("tool0")(START)[:3, 3]
    path = robot.line("tool0", [here + np.array([0.0, 0.0, 0.05])], start=START)
    motion = path.timed(acceleration=10.0)
    expected = robot.time_path(
        path.q, at=path.s, acceleration=10.0, intervals=-(-200 // (len(path.s) - 1))
    )
    assert motion.duration == expected.duration
    for ask in (path.at, path.poses):
        with pytest.raises(ShapeError, match="s needs real numbers"):
            ask("x")  # pyright: ignore
    with pytest.raises(ModelError, match="below= is a number above 0"):
        path.singular_stretches(np.nan)


@pytest.mark.parametrize("rotation", ["xy", "yz", ""])
def test_a_tool_may_spin_or_turn_freely(robot: arm.Cell, rotation: str):
    """Bounds hold for the directions that count, and free joints take part."""
    X = robot.fk("tool0")(START)
    last = moved(X, [0.0, 0.3, 0.1], [0.1, 0.2, 0.0])
    spun = last.copy()
    free = {"xy": 2, "yz": 0, "": 2}[rotation]
    spun[:3, :3] = last[:3, :3] @ rotation_about(free, 3.0)
    path = robot.line("tool0", [spun], start=START, rotation=rotation)
    assert path.success, str(path)
    assert path.proven
    poses, S, rows = tracked(robot, path)
    Y = path.poses(S)
    apart = np.linalg.norm((poses - Y)[:, :3, 3], axis=1)
    assert (apart <= path.bounds[rows, 0] + 1e-12).all()
    if rotation:
        # The axis goes straight from its direction to that of the target.
        first, axis = X[:3, free], poses[:, :3, free]
        tilt = np.arccos(np.clip(first @ last[:3, free], -1.0, 1.0))
        normal = np.cross(first, last[:3, free]) / np.sin(tilt)
        angle = tilt * S / path.length
        expected = np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * np.cross(
            normal, first
        )
        chord = np.linalg.norm(axis - expected, axis=1)
        angles = 2.0 * np.arcsin(0.5 * chord)
        assert (angles <= path.bounds[rows, 1] + 1e-12).all()
        assert 0.0 < path.deviation[1] <= 1e-4
        assert angles.max() > 0.5 * path.deviation[1]
    else:
        assert path.deviation[1] == 0.0


def rotation_about(axis: int, angle: float) -> np.ndarray:
    return rotation(angle * np.eye(3)[axis])


def test_a_tool_that_may_spin_is_not_singular_where_its_wrist_is(robot: arm.Cell):
    """Axes 4 and 6 of the wrist are one, and the tool's axis is another."""
    through = np.array([0.3, 0.2, 0.1, 0.4, 0.0, 0.2])
    X = robot.fk("tool0")(through)
    path = robot.line("tool0", [moved(X, [0.1, 0.0, 0.0])], start=through)
    spins = robot.line(
        "tool0", [moved(X, [0.1, 0.0, 0.0])], start=through, rotation="yz"
    )
    assert path.singular_values[0] < 1e-6
    assert spins.singular_values[0] > 1e-2


def test_motions_keep_limits_of_jerk_and_the_speed_of_the_tool(robot: arm.Cell):
    fk = robot.fk("tool0")
    X = fk(START)
    segments = [X[:3, 3] + [0.0, 0.3, 0.0], X[:3, 3] + [0.1, 0.3, 0.0]]
    path = robot.line("tool0", segments, start=START)
    motion = path.timed(speed=0.25, acceleration=10.0, jerk=60.0)
    with pytest.raises(ModelError, match="speed is a number above 0"):
        path.timed(speed=0.0, acceleration=10.0)
    samples = motion.sampled(rate=1000)
    assert 0.99 * 60.0 < np.abs(samples.qddd).max() < 1.001 * 60.0
    assert np.abs(samples.qdd).max() < 1.001 * 10.0
    speeds = np.linalg.norm(np.diff(fk(samples.q)[:, :3, 3], axis=0), axis=1) * 1000
    assert 0.99 * 0.25 < speeds.max() < 1.001 * 0.25
    # It rests at the corner, without a jump of acceleration.
    k = int(np.argmin(np.abs(samples.q - path.q[path.corners[0]]).sum(axis=1)))
    assert np.abs(samples.qdd[k]).max() < 60.0 * 2e-3


@pytest.fixture(scope="module")
def among_boxes(robot: arm.Cell) -> arm.Cell:
    """A cell with a box in the way of a ball on the tool."""
    X = robot.fk("tool0")(START)
    solids = {
        "box": arm.shapes.Box(size=(0.1, 0.1, 0.1)),
        "ball": arm.shapes.Sphere(radius=0.02),
    }
    box, ball = (
        arm.Manipulator(name=name, links=[arm.Link(name="body", collisions=[solid])])
        for name, solid in solids.items()
    )
    at = arm.Pose.translation(*(X[:3, 3] + [0.0, 0.25, 0.0]))
    return robot.add(box, pose=at).add(ball, on="tool0")


def test_a_planner_leads_around_what_touches(among_boxes: arm.Cell):
    cell, check = among_boxes, among_boxes.collision()
    X = cell.fk("tool0")(START)
    target = moved(X, [0.0, 0.5, 0.0])
    path = cell.line("tool0", [target], start=START, check=check)
    planner = cell.planner(check)
    around = planner.along(path)
    assert around.success
    assert around.proven
    first, plan, last = around.parts
    assert isinstance(first, arm.CartesianPath)
    assert isinstance(plan, arm.Plan)
    assert isinstance(last, arm.CartesianPath)
    np.testing.assert_array_equal(plan.q[[0, -1]], [first.q[-1], last.q[0]])
    np.testing.assert_array_equal(first.q, path.q)
    np.testing.assert_array_equal(around.left, [[first.s[-1], last.s[0]]])
    assert last.s[-1] == path.length
    np.testing.assert_array_equal(last.at(path.length), last.q[-1])
    assert check.motion(first.q[:-1], first.q[1:]).free.all()
    assert check.motion(last.q[:-1], last.q[1:]).free.all()
    assert not check.motion(first.q[-1], last.q[0]).free
    motion = around.timed(speed=0.3, acceleration=10.0, jerk=100.0)
    samples = motion.sampled(rate=500)
    assert not check(samples.q).any()
    np.testing.assert_allclose(motion.q[-1], last.q[-1], atol=1e-12)
    assert np.abs(samples.qddd).max() < 1.001 * 100.0
    assert "detour from s = 0.15" in str(around)
    # Without a check the planner's decides, and what is free is all of the way.
    alone = planner.along(cell.line("tool0", [target], start=START))
    np.testing.assert_array_equal(alone.left, around.left)
    free = cell.line("tool0", [moved(X, [0.0, 0.1, 0.0])], start=START)
    (whole,) = planner.along(free).parts
    np.testing.assert_array_equal(whole.q, free.q)


def test_what_no_planner_leads_around_says_why(among_boxes: arm.Cell, robot: arm.Cell):
    cell, check = among_boxes, among_boxes.collision()
    X = cell.fk("tool0")(START)
    planner = cell.planner(check)
    inside = cell.line("tool0", [moved(X, [0.0, 0.25, 0.0])], start=START, check=check)
    around = planner.along(inside)
    assert not around.success
    assert around.parts[-1].reason is arm.PlanReason.GOAL_TOUCHES
    with pytest.raises(StateError, match="has no times: <Plan: GOAL_TOUCHES"):
        around.timed(acceleration=1.0)
    far = cell.line("tool0", [moved(X, [0.0, 0.5, 3.0])], start=START)
    around = planner.along(far)
    assert not around.success
    assert around.parts[-1].reason == far.reason
    wrong: Any = inside.q
    with pytest.raises(ModelError, match=r"takes a path of cell\.line"):
        planner.along(wrong)
    with pytest.raises(ModelError, match="another cell"):
        robot.planner(robot.collision()).along(inside)


def test_joints_that_a_line_leaves_stay_on_detours():
    cell = arm.example("ur10_on_rail")
    joints = [n for n in cell.joint_names if n != "track/carriage"]
    start = np.array([0.3, -1.2, 1.4, 0.3, 0.8, 0.3])
    X = cell.fk("ur10/tool0", joints=joints)(start)
    target = moved(X, [0.0, 0.3, 0.0])
    free = cell.line("ur10/tool0", [target], start=start, joints=joints)
    middle = arm.Pose.translation(*free.poses(0.5 * free.length)[:3, 3])
    ball = arm.shapes.Sphere(radius=0.03, pose=middle)
    check = cell.collision().with_obstacles({"ball": ball})
    around = cell.planner(check).along(free, timeout=10.0)
    assert around.success, str(around)
    assert len(around.parts) == 3
    motion = around.timed(acceleration=5.0, velocity=np.full(len(joints), 2.0))
    assert motion.joint_names == tuple(joints)


def test_nothing_is_sought_far_behind_the_end_of_reach(
    monkeypatch: pytest.MonkeyPatch,
):
    """How far a line goes on beyond its end does not count, but to within a factor."""
    failed: list[int] = []
    fill = Search._fill

    def counted(self: Search, problems: Any, plan: Any, *rest: Any, **kw: Any) -> int:
        failures = fill(self, problems, plan, *rest, **kw)
        failed[-1] += failures * (plan.starts > 1)
        return failures

    monkeypatch.setattr(Search, "_fill", counted)
    cell = arm.example("oval_track_cell")
    q = cell.home.q
    state = cell.home.attach("part", "tcp", replace=True)
    X = cell.fk("grasp", state=state)(q)
    ends: list[Any] = []
    for length in (2.0, 4.0):
        failed.append(0)
        up = arm.Pose.translation(0.0, 0.0, length) @ X
        ends.append(cell.line("grasp", up, start=q, state=state))
    assert not any(path.success for path in ends)
    assert failed[1] <= failed[0] + 8
    np.testing.assert_allclose(ends[0].q[-1], ends[1].q[-1], atol=1e-2)
