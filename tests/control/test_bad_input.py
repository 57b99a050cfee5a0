"""What controllers say of input that makes no sense, and that they can be pickled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.errors import ArmillaryError, ModelError, ShapeError

BEAM = arm.joints.Prismatic(axis=(1, 0, 0))
UNIT = arm.Limits(lower=-1.0, upper=1.0)
START = np.array([0.0, 0.0])


@pytest.fixture(scope="module")
def slides() -> arm.Cell:
    ball = arm.shapes.Sphere(radius=0.1)
    links = [
        arm.Link(name="ground"),
        arm.Link(name="one", parent="ground", joint=BEAM, limits=UNIT),
        arm.Link(name="two", parent="one", joint=BEAM, collisions=[ball]),
    ]
    return arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"limits": ([0, 0], [1, 1])}, "limits= says whether"),
    ({"limits": None}, "limits= says whether"),
    ({"rate": "fast"}, "rate= is a finite number above 0, not 'fast'"),
    ({"rate": 10**400}, "rate= is a finite number above 0"),
    ({"approach": np.inf}, "approach= is a finite number above 0"),
    ({"velocity": 10**400}, "velocity= needs real numbers"),
    ({"acceleration": "x"}, "acceleration= needs real numbers"),
    ({"torque": [1, [2]]}, "torque= has rows of unequal length"),
    ({"velocity": 0.0}, "velocity= must be above 0"),
    ({"acceleration": [1.0, 0.0]}, "acceleration= must be above 0"),
    ({"conflict": np.zeros(0)}, "conflict mode"),
    ({"joints": [[1]]}, "joints= takes a list of names"),
    ({"joints": np.array("one")}, "joints= takes a list of names"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_out_of_range_are_refused(
    slides: arm.Cell, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArmillaryError, match=message):
        slides.controller(tasks.Posture(), **options)


TASKS: list[tuple[Any, str]] = [
    (lambda: tasks.Frame([]), "frame= of a task is the name of a frame"),  # type: ignore[arg-type]
    (lambda: tasks.LookAt("two", relative_to=None), "relative_to= of a task is"),  # type: ignore[arg-type]
    (lambda: tasks.Frame("two", speed=-1.0), "speed of a task is a number above 0"),
    (lambda: tasks.Frame("two", turn_speed=np.nan), "turn_speed of a task"),
    (lambda: tasks.Position("two", weight=True + 10**400), "weight of a task"),
    (lambda: tasks.Frame("two", rotation_weight=0), "rotation_weight of a task"),
    (lambda: tasks.Frame("two", axes=np.zeros(2)), "axes= of a task is its frame"),  # type: ignore[arg-type]
    (lambda: tasks.AlignAxis("two", "z"), "axis= needs real numbers"),  # type: ignore[arg-type]
    (lambda: tasks.Coupling("one"), "A coupling needs the factor of one joint"),  # type: ignore[arg-type]
    (lambda: tasks.Coupling({"one": "x"}), "factor of 'one' is a finite number"),  # type: ignore[dict-item]
    (lambda: tasks.Posture(()), "A posture needs one joint at least"),
    (lambda: tasks.Frame("two", position="", rotation=""), "position= and rotation="),
    (lambda: tasks.Position("two", axes=""), "A Position task .* axes= is empty"),
    (lambda: tasks.CentreOfMass(axes=""), "A CentreOfMass task .* axes= is empty"),
]


@pytest.mark.parametrize(("make", "message"), TASKS)
def test_tasks_that_make_no_sense_are_refused(
    slides: arm.Cell, make: Any, message: str
) -> None:
    with pytest.raises((ModelError, ShapeError), match=message):
        slides.controller(make())


Given = arm.Obstacles
OBSTACLES: list[tuple[Any, str]] = [
    (lambda: Given.spheres("x", 0.1), "centres needs real numbers"),
    (
        lambda: Given.spheres(np.ma.masked_array([[0.0, 1.0, 2.0]], [[0, 0, 1]]), 0.1),
        "Some numbers of centres are masked",
    ),
    (lambda: Given.spheres([[0, 0], [1]], 0.1), "centres has rows of unequal length"),
    (lambda: Given.boxes(None, (1, 1, 1)), "poses needs real numbers"),
    (lambda: Given.boxes([np.eye(4)], "big"), "sizes needs real numbers"),
    (lambda: Given.spheres([[0, 0, 0]], None).numbers, "radii of obstacles needs real"),
    (lambda: Given.spheres([[0, 0, 0]], -0.1), "radius of an obstacle is -0.1 m"),
    (
        lambda: Given.spheres([[0, 0, 0], [1, 1, 1]], [np.nan, -0.2]),
        "radius of an obstacle is -0.2 m",
    ),
    (lambda: Given([[[0, 0, 0]] * 2] * 2, [np.nan, -0.2]).numbers, "is -0.2 m"),
    (lambda: Given.joined([]), "Obstacles are joined from one or more"),
    (
        lambda: Given.spheres([[0, 0, 0]], 0.1).after(np.inf),
        "time is one finite number",
    ),
    (lambda: Given.spheres([[0, 0, 0]], 0.1, [1.0]).after(1.0), "velocities"),
]


@pytest.mark.parametrize(("make", "message"), OBSTACLES)
def test_obstacles_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        make()


def test_numbers_of_numpy_are_numbers(slides: arm.Cell) -> None:
    control = slides.controller(
        tasks.Position("two", weight=np.int64(2)), rate=np.float32(500)
    )
    assert control.simulate(START, np.ones(3), 3).time[1] == 1 / 500


@pytest.mark.sampled(3)
@pytest.mark.parametrize("conflict", ["bend", "slow"])
@pytest.mark.parametrize("bad", ["target", "turn", "rate"])
def test_what_is_not_finite_is_said_though_bounds_leave_one_rate(
    slides: arm.Cell, conflict: str, bad: str
) -> None:
    control: Any = slides.controller(
        tasks.Frame("two"), acceleration=1.0, conflict=conflict
    )
    q, qd = np.zeros((3, 2)), np.zeros((3, 2))
    q[:, 0], qd[:, 0] = 0.9, 1.0  # it cannot stop: both bounds are the same
    target, rate = np.tile(np.eye(4), (3, 1, 1)), np.zeros((3, 6))
    before = control(q, qd, target, target_rates=rate)
    if bad == "rate":
        rate[1, 2] = np.nan
    else:
        target[1, 0, 3 if bad == "target" else 1] = np.nan
    step = control(q, qd, target, target_rates=rate)
    alone = control(q[1], qd[1], target[1], target_rates=rate[1])
    assert step.reason.tolist() == [
        arm.RateReason.BRAKING,
        arm.RateReason.INVALID,
        arm.RateReason.BRAKING,
    ]
    assert alone.reason == arm.RateReason.INVALID
    assert np.isnan(step.qd[1]).all()
    assert np.array_equal(step.numbers[[0, 2]], before.numbers[[0, 2]])


def test_controllers_and_motions_are_pickled_after_use(slides: arm.Cell) -> None:
    control = slides.controller(
        [tasks.Position("two"), tasks.Posture()], avoid=slides.collision(margin=0.01)
    )
    ball = arm.Obstacles.spheres([[1.0, 0.0, 0.0]], 0.1, [-0.1, 0.0, 0.0])
    motion = control.simulate(START, [np.ones(3), None], 4, obstacles=ball)
    check = slides.collision(margin=0.01)
    check.clearance(START)  # it compiles poses, which the cell keeps
    step = control(START, START, [np.ones(3), None], obstacles=ball)
    read = pickle.loads(pickle.dumps(step))
    assert np.array_equal(read.numbers, step.numbers)
    assert read.nearest == step.nearest == ("arm/two", "obstacle 0")
    again = pickle.loads(pickle.dumps(control))
    assert np.array_equal(
        again.simulate(START, [np.ones(3), None], 4, obstacles=ball).q, motion.q
    )
    assert copy.deepcopy(control) is copy.copy(control) is control
    asked: list[float] = []

    def sensor(time: float) -> arm.Obstacles:
        asked.append(time)
        return ball.after(time)

    sensed = control.simulate(START, [np.ones(3), None], 4, obstacles=sensor)
    for each in (motion, motion, sensed):
        read = pickle.loads(pickle.dumps(each))
        assert np.array_equal(read.q, motion.q)
        assert np.array_equal(read.obstacles(3).numbers, ball.after(0.003).numbers)
    assert len(asked) == 4


def test_results_of_checks_are_compared_without_an_error() -> None:
    cell = arm.example("two_arms_positioner")
    check = cell.collision(margin=0.01)
    q = np.zeros(len(cell.joint_names))
    motions = check.motion([q, q], [q + 0.01, q + 0.02])
    contact = check.contacts(q, within=1.0)[0]
    for found in (motions, contact):
        same, other = found, copy.copy(found)
        assert found == same
        assert found != other


def test_the_least_acceleration_moves_hardly(slides: arm.Cell) -> None:
    control = slides.controller(tasks.Posture(), acceleration=1e-15, rate=100.0)
    step = control(START, START, [0.5, 0.5])
    assert step.reason == arm.RateReason.LIMITS
    assert step.qd == pytest.approx(1e-9 / 100.0, rel=1e-9)


@pytest.mark.parametrize("conflict", ["bend", "slow"])
@pytest.mark.parametrize("bad", ["target", "rate", "obstacle"])
def test_a_step_that_is_invalid_brakes_and_the_motion_goes_on(
    slides: arm.Cell, conflict: str, bad: str
) -> None:
    control: Any = slides.controller(
        [tasks.Position("two"), tasks.Posture()],
        acceleration=2.0,
        rate=100.0,
        avoid=slides.collision(margin=0.01),
        conflict=conflict,
    )
    K, lost = 200, 20
    goals = np.tile([0.5, 0.0, 0.0], (2, K, 1))
    rates = np.zeros((2, K, 3))
    ends = np.full((2, K, 1, 2, 3), 9.0)
    given = {"target": goals, "rate": rates, "obstacle": ends[..., 0, 0, :]}[bad]
    clean = control.simulate(
        np.zeros((2, 2)),
        [goals.copy(), None],
        K,
        target_rates=[rates.copy(), None],
        obstacles=arm.Obstacles(ends.copy(), 0.1),
    )
    given[1, lost, 1] = np.nan
    motion = control.simulate(
        np.zeros((2, 2)),
        [goals, None],
        K,
        target_rates=[rates, None],
        obstacles=arm.Obstacles(ends, 0.1),
    )
    assert np.array_equal(motion.q[0], clean.q[0])  # another row
    assert np.flatnonzero(motion.reason[1] == arm.RateReason.INVALID).tolist() == [lost]
    q, qd = motion.q[1], motion.qd[1]
    assert np.isfinite(q).all()
    assert (np.abs(qd[lost]) > 0.02).any()
    # The greatest rate falls as fast as accelerations allow, others in proportion.
    share = 1.0 - 0.02 / np.abs(qd[lost]).max()
    assert qd[lost + 1] == pytest.approx(share * qd[lost], abs=1e-12)
    assert q[lost + 1] == pytest.approx(q[lost] + 0.01 * qd[lost + 1], abs=1e-12)
    assert np.abs(np.diff(qd, axis=0)).max() < 0.02 * (1.0 + 1e-9)
    assert q[-1].sum() == pytest.approx(0.5, abs=1e-3)


def test_a_motion_that_begins_with_nan_stays_invalid(slides: arm.Cell) -> None:
    control = slides.controller(tasks.Posture(), acceleration=2.0)
    motion = control.simulate([[0.0, np.nan], [0.0, 0.0]], [0.5, 0.5], 3)
    assert (motion.reason == arm.RateReason.INVALID).tolist() == [
        [True] * 3,
        [False] * 3,
    ]
    assert np.isfinite(motion.q[1]).all()


def test_rows_of_a_motion_are_numbers(slides: arm.Cell) -> None:
    motion = slides.controller(tasks.Posture()).simulate(np.zeros((2, 2)), None, 2)
    assert motion.row(1).q.shape == (3, 2)
    for row in ([0, 1], None, [1, [2]], 1.0):
        with pytest.raises(ShapeError, match="a row of it is a number"):
            motion.row(row)  # type: ignore[arg-type]


def test_paths_and_motions_that_make_no_sense_are_refused(slides: arm.Cell) -> None:
    path: Any = np.array([[0.0, 0.0], [0.5, 0.2]])
    given: Any = {"acceleration": 1.0, "velocity": 1.0, "at": [0.0, 1.0]}
    for wrong in (1, (path,), "xyz", (path, None)):
        with pytest.raises(
            ShapeError, match=r"derivatives.* are two arrays|needs real numbers"
        ):
            slides.time_path(path, derivatives=wrong, **given)
    timed = slides.time_path(path, **given)
    for rate in ("x", 0.0, 10**400):
        with pytest.raises(ModelError, match="The rate is a finite number above 0"):
            timed.sampled(rate=rate)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="Give one of rate=, dt= and count="):
        timed.sampled()
    move: Any = slides.point_to_point
    for wrong in ("x", None):
        with pytest.raises(ShapeError, match="duration needs real numbers"):
            move(
                path[0],
                path[1],
                jerk=1.0,
                velocity=1.0,
                acceleration=1.0,
                duration=wrong,
            )
    with pytest.raises(ModelError, match="duration is"):
        move(path[0], path[1], jerk=1.0, velocity=1.0, acceleration=1.0, duration=[1.0])
    with pytest.raises(ModelError, match="straight is True or False"):
        move(path[0], path[1], jerk=1.0, velocity=1.0, acceleration=1.0, straight=path)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda q: [], r"at least one; it returned an array of shape \(0,\)"),
        (lambda q: [[q[0], q[1]]], r"returned an array of shape \(1, 2\)"),
        (3.0, "tasks.Function needs a function of q, not 3.0"),
    ],
)
def test_functions_that_return_no_list_of_numbers_are_refused(
    slides: arm.Cell, function: Any, expected: str
) -> None:
    with pytest.raises(ModelError, match=expected):
        slides.controller(tasks.Function(function), acceleration=1.0)


def test_functions_may_branch(slides: arm.Cell) -> None:
    def folded(q: Any) -> Any:
        return [q[1] if q[1] > 0.0 else -2.0 * q[1]]

    control = slides.controller(tasks.Function(folded), acceleration=1e6, velocity=1e3)
    q = np.zeros((2, len(slides.joint_names)))
    q[:, 1] = 0.1, -0.1
    step = control(q, 0.0 * q, [1.0])
    assert step.qd[0, 1] > 1.0
    assert step.qd[1, 1] < -1.0


def test_loops_that_cannot_be_closed_are_invalid() -> None:
    cell = arm.example("five_bar")
    arms = cell.manipulators[0]
    for name in ("right", "fore_right", "fore_left"):
        ball = arm.shapes.Sphere(radius=0.03)
        arms = arms.exchange(arms.link(name).replace(collisions=[ball]))
    rules = arm.Rules().exclude(f"{arms.name}/*", f"{arms.name}/*")
    cell = arm.Cell(manipulators=[arms], rules=rules)
    control = cell.controller(
        tasks.Function(list), avoid=cell.collision(margin=0.01), acceleration=5.0
    )
    far = arm.Obstacles.spheres([[0.0, -1.0, 0.0]], 0.1)
    lower, upper = cell.limits
    q = np.array([cell.home.q, [lower[0], upper[1]]])  # elbows too far apart
    assert np.isnan(cell.fk("tool")(q)).any(axis=(1, 2)).tolist() == [False, True]
    step = control(q, 0.0 * q, q[0], obstacles=far)
    assert step.reason.tolist() == [arm.RateReason.MET, arm.RateReason.INVALID]
    assert np.isnan(step.qd[1]).all()
