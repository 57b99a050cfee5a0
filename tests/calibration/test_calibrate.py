"""Calibration finds the numbers that measurements were made with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, joints
from armillary.calibration.measurements import (
    Distances,
    Measurement,
    OnSphere,
    Poses,
    Positions,
    SamePoint,
)
from armillary.errors import ModelError, UnknownName

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


def dh_names(cell: Cell) -> list[str]:
    listed = cell.parameters([f"ur5e/{joint}" for joint in JOINTS])
    return [name for name in listed if "precursor" not in name]


def nominal(cell: Cell, names: list[str]) -> np.ndarray:
    return np.array(list(cell.parameters(names).values()))


def configurations(count: int) -> np.ndarray:
    Q = np.random.default_rng(1).uniform(-2.0, 2.0, (count, 7))
    Q[:, 0] = 0.0
    return Q


def measured(cell: Cell, names: list[str], p: np.ndarray, kind: str) -> Measurement:
    Q = configurations(40)
    X = cell.fk("tool0", parameters=names)(Q, p)
    if kind == "poses":
        return Poses("tool0", Q, X)
    if kind == "distances":
        return Distances("tool0", Q, np.linalg.norm(X[:, :3, 3], axis=1))
    return Positions("tool0", Q, X[:, :3, 3])


@pytest.mark.parametrize("kind", ["poses", "positions", "distances"])
def test_exact_measurements_give_the_numbers_back(kind: str) -> None:
    cell = arm.example("ur5e_on_oval")
    names = [
        "ur5e/shoulder_lift.a",
        "ur5e/elbow.a",
        "ur5e/elbow.theta",
        "ur5e/wrist_2.d",
    ]
    p = nominal(cell, names) + np.array([1e-3, -2e-3, 4e-3, 1e-3])
    found = arm.calibrate(cell, measured(cell, names, p, kind), names)
    assert found.success
    assert found.identifiable.all()
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        found.cell.fk("tool0")(configurations(3)),
        cell.fk("tool0", parameters=names)(configurations(3), p),
        rtol=0,
        atol=1e-9,
    )


def test_intervals_hold_the_truth() -> None:
    cell = arm.example("ur5e_on_oval")
    names = dh_names(cell)
    rng = np.random.default_rng(3)
    start = nominal(cell, names)
    exact = measured(cell, names, start, "poses")
    held = arm.calibrate(cell, exact, names).identified.is_fixed
    inside = total = 0
    for _ in range(4):
        p = start + np.where(held, 0.0, rng.normal(0.0, 1e-3, len(names)))
        X = cell.fk("tool0", parameters=names)(configurations(40), p)[:, :3, 3]
        X += rng.normal(0.0, 1e-4, X.shape)
        free = [name for name, is_held in zip(names, held, strict=True) if not is_held]
        found = arm.calibrate(cell, Positions("tool0", configurations(40), X), free)
        free_ones = ~found.identified.is_fixed
        z = (found.values - p[~held])[free_ones] / found.std[free_ones]
        inside += int(np.count_nonzero(np.abs(z) < 1.96))
        total += z.size
    assert 0.85 < inside / total < 1.0
    assert 0.8 < found.noise < 1.2


# Ranks by hand. Of a DH chain with n joints that turn, 4n numbers; offsets along
# parallel neighbours are one, and the last joint's are what the measured frame adds.
def test_offsets_along_parallel_axes_are_one() -> None:
    cell = arm.example("ur5e_on_oval")
    names = ["ur5e/shoulder_lift.d", "ur5e/elbow.d", "ur5e/wrist_1.d"]
    start = nominal(cell, names)
    found = arm.calibrate(cell, measured(cell, names, start, "poses"), names)
    assert found.identified.rank == 1
    assert not found.identifiable.any()
    assert {each.parameter for each in found.dependences} == set(names[1:])
    for each in found.dependences:
        assert each.others == pytest.approx({names[0]: 1.0}, abs=1e-9)
    np.testing.assert_array_equal(found.values[1:], start[1:])


def test_a_number_without_effect_is_said() -> None:
    cell = arm.example("ur5e_on_oval")
    names = ["ur5e/elbow.a", "ur5e/wrist_3.alpha"]
    start = nominal(cell, names)
    found = arm.calibrate(cell, measured(cell, names, start, "positions"), names)
    assert str(found.dependences[0]) == "ur5e/wrist_3.alpha changes no measurement"
    assert "fixed" in found.report()
    assert np.isinf(found.std[1])
    assert np.isfinite(found.std[0])


def test_rods_of_a_delta() -> None:
    cell = arm.example("delta")
    names = [name for name in cell.parameters() if name.endswith(".length")]
    p = nominal(cell, names) + np.array([1e-3, -1e-3, 2e-3])
    Q = np.array(cell.home.q) + np.random.default_rng(0).uniform(-0.2, 0.2, (12, 3))
    X = cell.fk("platform", parameters=names)(Q, p)[:, :3, 3]
    found = arm.calibrate(cell, Positions("platform", Q, X), names)
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-10)


def test_outliers_count_less_with_a_robust_loss() -> None:
    cell = arm.example("ur5e_on_oval")
    names = ["ur5e/elbow.a", "ur5e/elbow.theta"]
    p = nominal(cell, names) + 1e-3
    exact = measured(cell, names, p, "positions")
    X = exact.measured.copy()
    X[::4] += 0.05
    outliers = Positions("tool0", exact.q, X)
    errors = [
        np.abs(arm.calibrate(cell, outliers, names, loss=loss).values - p).max()
        for loss in ("linear", "cauchy")
    ]
    assert errors[1] < 0.05 * errors[0]


def test_bounds_and_priors_hold() -> None:
    cell = arm.example("ur5e_on_oval")
    names = ["ur5e/elbow.a", "ur5e/wrist_1.d"]
    start = nominal(cell, names)
    exact = measured(cell, names, start + 1e-2, "positions")
    low, high = start[0] - 1e-3, start[0] + 2e-3
    bounded = arm.calibrate(cell, exact, names, bounds={"elbow.a": (low, high)})
    assert low <= bounded.values[0] <= high
    firm = arm.calibrate(cell, exact, names, priors={"elbow.a": 1e-9})
    assert firm.values[0] == pytest.approx(start[0], abs=1e-6)


def test_poses_to_measure_next_leave_the_least_errors() -> None:
    cell = arm.example("ur5e_on_oval")
    names = [f"ur5e/{x}" for x in ("shoulder_lift.a", "elbow.a", "wrist_1.theta")]
    few = measured(cell, names, nominal(cell, names), "positions").rows(np.arange(2))
    found = arm.calibrate(cell, few, names)
    candidates = configurations(60)[40:]
    chosen = found.next_poses(candidates, 2)
    assert len(set(chosen.tolist())) == 2

    def volume(rows: Any) -> float:
        more = few.rates_at(cell.workcell, names, found.values, candidates[list(rows)])
        J = np.concatenate([found.rates, more.reshape(-1, len(names))])
        return -np.linalg.slogdet(J.T @ J)[1]

    pairs = itertools.combinations(range(len(candidates)), 2)
    assert volume(chosen) <= min(map(volume, pairs)) + 0.05
    with pytest.raises(ModelError, match="1 to 20"):
        found.next_poses(candidates, 21)


PENDULUM = Cell(
    manipulators=[
        Manipulator(
            name="m",
            links=[
                Link(name="base"),
                Link(name="turn", parent="base", joint=joints.CraigRevolute()),
                Link(name="end", parent="turn", joint=joints.CraigRevolute(a=1.0)),
            ],
        )
    ]
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Positions("end", [[0.0, 0.0]], [[1.0, np.nan, 0.0]]),
            "not finite",
        ),
        (lambda: Positions("end", [[0.0, 0.0]], [[1000.0, 0.0, 0.0]]), "millimetres"),
        (lambda: Positions("end", [[0.0, 0.0]], [[1.0, 0.0]]), r"\(n, 3\)"),
        (lambda: Positions("end", [0.0, 0.0], [[1.0, 0.0, 0.0]]), r"\(n, joints\)"),
        (lambda: Positions("end", np.zeros((2, 2)), [[1.0, 0.0, 0.0]]), "2 rows"),
        (lambda: Positions("end", [[0.0, 0.0]], [[1.0, 0, 0]], sigma=0.0), "above 0"),
        (lambda: Poses("end", [[0.0, 0.0]], [2.0 * np.eye(4)]), "not a pose"),
        (lambda: Distances("end", [[0.0, 0.0]], [-1.0]), "not above 0"),
        (lambda: Positions(["end"], [[0.0, 0.0]], [[1.0, 0, 0]]), "by its name"),
        (lambda: Distances("end", [[0.0, 0.0]], [1.0], to="end"), "the same frame"),
        (lambda: SamePoint("end", [[0.0], [1.0, 2.0]]), "not numbers"),
        (lambda: OnSphere("end", np.zeros((9, 2)), radius="1"), "above 0, not '1'"),
    ],
)
def test_measurements_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


def test_questions_that_are_refused() -> None:
    row = Positions("end", [[0.0, 0.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(ModelError, match="one measurement"):
        arm.calibrate(PENDULUM, [], ["end.a"])
    with pytest.raises(ModelError, match="not a measurement"):
        arm.calibrate(PENDULUM, [3], ["end.a"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="one name"):
        arm.calibrate(PENDULUM, row, [])
    with pytest.raises(UnknownName, match="huber"):
        arm.calibrate(PENDULUM, row, ["end.a"], loss="hubert")
    with pytest.raises(ModelError, match="not among parameters"):
        arm.calibrate(PENDULUM, row, ["end.a"], bounds={"end.d": (0.0, 1.0)})
    for options, message in (
        ({"cell": "PENDULUM"}, "takes a Cell first, not 'PENDULUM'"),
        ({"measurements": None}, "not a measurement"),
        ({"parameters": None}, "a list of names, not None"),
        ({"bounds": [1.0]}, "bounds= is a dictionary"),
        ({"priors": "end.a"}, "priors= is a dictionary"),
        ({"loss": ["huber"]}, "huber"),
        ({"most_steps": 1.5}, "whole number"),
    ):
        asked: dict[str, Any] = {
            "cell": PENDULUM,
            "measurements": row,
            "parameters": ["end.a"],
            **options,
        }
        with pytest.raises((ModelError, UnknownName), match=message):
            arm.calibrate(**asked)
    other = Positions("end", [[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(ModelError, match="has 2 joints"):
        arm.calibrate(PENDULUM, other, ["end.a"])


@pytest.mark.parametrize(
    ("places", "message"),
    [(1, "w at the other end"), (-1, "w at the other end"), (0, "transposed")],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_rotations_that_were_read_otherwise(
    places: int, message: str, is_known: bool
) -> None:
    """Also where nobody knows where the camera and the tool are."""
    cell = arm.example("ur5e_on_oval")
    names = ["ur5e/elbow.a", "tool0"]
    where = dict.fromkeys(["tool0.rx", "tool0.y"], 0.01)
    if not is_known:
        cell = cell.add(Manipulator(name="camera", links=[Link(name="eye")]))
        names = ["tool0", "camera.mount"]
        where = {"tool0.rx": 2.0, "tool0.y": 0.2, "camera.mount.ry": 1.5}
    frame = {"relative_to": "world" if is_known else "eye"}
    Q = configurations(12)
    X = cell.with_parameters(where).fk("tool0", **frame)(Q)
    assert arm.calibrate(cell, Poses("tool0", Q, X, **frame), names).doubts == ()
    for pose in X:
        q = np.roll(arm.Pose.from_matrix(pose).quaternion(), places)
        R = arm.Pose.from_quaternion(q).matrix()[:3, :3]
        pose[:3, :3] = R if places else R.T
    doubts = arm.calibrate(cell, Poses("tool0", Q, X, **frame), names).doubts
    assert message in doubts[-1]
