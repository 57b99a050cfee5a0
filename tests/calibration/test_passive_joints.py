"""Encoders in joints that loops determine tell of the loops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.calibration.measurements import PassiveJoints
from armillary.errors import ModelError, UnknownName

LOOPS = {
    "five_bar": (
        ["fore_right.precursor.x", "left.precursor.y", "fore_left.offset"],
        ["fore_left", "five_bar/fore_right"],
    ),
    "delta": ([f"elbow{k}-ball{k}.length" for k in (1, 2, 3)], ["platform", "x"]),
}


def readings(
    name: str, count: int, branch: str = "home"
) -> tuple[arm.Cell, list[str], np.ndarray, PassiveJoints]:
    """Return a cell, parameters, their true values and what encoders of it show."""
    names, passive = LOOPS[name]
    cell, rng = arm.example(name), np.random.default_rng(0)
    numbers = cell.parameters(names)
    p = np.array(list(numbers.values())) + rng.normal(0.0, 1e-3, len(numbers))
    q = np.array(cell.home.q) + rng.uniform(-0.3, 0.3, (count, len(cell.home.q)))
    # Loops of the real cell are closed by the solver that knows no parameters.
    real = cell.with_parameters(dict(zip(numbers, p, strict=True)))
    rows = real.close_loops(q, state=real.branches()[branch]).passive
    bare = [x.split("/")[-1] for x in passive]
    shown = rows[:, [cell.passive_names.index(x) for x in bare]]
    state = None if branch == "home" else cell.branches()[branch]
    seen = PassiveJoints(passive, q, shown, sigma=1e-5, state=state)
    return cell, list(numbers), p, seen


@pytest.mark.parametrize("name", LOOPS)
def test_numbers_of_loops_are_found(name: str) -> None:
    cell, names, p, seen = readings(name, 12)
    found = arm.calibrate(cell, seen, names)
    assert found.identifiable.all()
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-11)
    assert len(found.cross_validated(3)[0]) == 12
    assert len(found.next_poses(seen.q + 0.01, 3)) == 3
    again = pickle.loads(pickle.dumps(seen))
    rates = seen.compared(cell.workcell, names, p).rates
    same = again.compared(cell.workcell, names, p).rates
    np.testing.assert_array_equal(same, rates)
    for k, unit in enumerate(np.eye(len(p))):
        ends = [
            seen.compared(cell.workcell, names, p + s * unit).residuals
            for s in (1e-6, -1e-6)
        ]
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(rates[..., k], slope, rtol=1e-6, atol=1e-2)


def test_whole_turns_do_not_count() -> None:
    cell, names, p, seen = readings("five_bar", 8)
    turned = seen.measured + 2.0 * np.pi * np.array([1.0, -1.0])
    found = arm.calibrate(cell, PassiveJoints(seen.joints, seen.q, turned), names)
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-11)


def test_another_branch() -> None:
    cell, names, p, seen = readings("five_bar", 8, "2")
    assert np.abs(seen.measured - readings("five_bar", 8)[3].measured).min() > 0.5
    found = arm.calibrate(cell, seen, names)
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda q: PassiveJoints("fore_left", q, q[:, :1]), "not the text"),
        (lambda q: PassiveJoints([], q, q[:, :0]), "each once"),
        (lambda q: PassiveJoints(["a", "a"], q, q), "each once"),
        (lambda q: PassiveJoints(["a"], q, q), r"must be \(n, 1\)"),
        (lambda q: PassiveJoints(["a"], q, q[1:, :1]), "each needs its own"),
        (lambda q: PassiveJoints(["a"], q, np.nan * q[:, :1]), "not finite in row 0"),
    ],
)
def test_readings_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make(np.zeros((3, 2)))


def test_joints_that_are_refused() -> None:
    cell, names, _, seen = readings("five_bar", 4)
    own = PassiveJoints(["right"], seen.q, seen.measured[:, :1])
    with pytest.raises(UnknownName, match="fore_right, fore_left"):
        arm.calibrate(cell, own, names)
    degrees = np.degrees(seen.measured)
    with pytest.raises(ModelError, match="are degrees"):
        arm.calibrate(cell, PassiveJoints(seen.joints, seen.q, degrees), names)
    open_arm = PassiveJoints(["elbow"], np.zeros((4, 6)), np.zeros((4, 1)))
    with pytest.raises(UnknownName, match="passive joint"):
        arm.calibrate(arm.example("irb2400"), open_arm, ["tool0.x"])
