"""Pairs inside the margin: all that can be separated together are; others are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.model.rules import Rule
from armillary.shapes import Sphere

MARGIN, RADIUS = 0.02, 0.1
R = arm.RateReason
APART = 2 * RADIUS + MARGIN


def ball(*at: float) -> Sphere:
    return Sphere(radius=RADIUS, pose=arm.Pose.translation(*at))


@pytest.fixture(scope="module")
def three() -> arm.Cell:
    """Three joints of their own, each with a ball that is tested against the ground.

    `x` and `y` slide beside a ball; `z` slides between two balls that leave it 10 mm at
    either side; `turn` lets a ball go around another one on a circle about its centre.
    """
    limits = arm.Limits(lower=-2.0, upper=2.0, velocity=2.0)

    def slide(name: str, *axis: float) -> arm.Link:
        joint = arm.joints.Prismatic(axis=axis)
        home = {"x": (0.0, 0.0, 0.0), "y": (5.0, 0.0, 0.0), "z": (9.0, 0.0, 0.0)}
        return arm.Link(
            name=name,
            parent="ground",
            joint=joint,
            limits=limits,
            collisions=[ball(*home[name])],
        )

    fixed = [ball(0.0, 0.0, 0.0), ball(5.0, 0.0, 0.0), ball(20.0, 0.0, 0.0)]
    fixed += [ball(9.0, 0.0, s * (2 * RADIUS + 0.01)) for s in (-1.0, 1.0)]
    links = [
        arm.Link(name="ground", collisions=fixed),
        slide("x", 1.0, 0.0, 0.0),
        slide("y", 0.0, 1.0, 0.0),
        slide("z", 0.0, 0.0, 1.0),
        arm.Link(
            name="turn",
            parent="ground",
            joint=arm.joints.Revolute(
                axis=(0, 0, 1), precursor=arm.Pose.translation(20.0, 0.0, 0.0)
            ),
            limits=limits,
            collisions=[ball(2 * RADIUS + 0.01, 0.0, 0.0)],
        ),
    ]
    rules = [Rule(a="ground", b=name, tested=True) for name in ("x", "y", "z", "turn")]
    return arm.Cell(
        manipulators=[arm.Manipulator(name="m", links=links)],
        rules=arm.Rules(between=False, rules=rules),
    )


def control_of(cell: arm.Cell, conflict: str, **options: Any) -> Any:
    return cell.controller(
        [tasks.Coupling({"x": 1.0}), tasks.Posture()],
        avoid=cell.collision(margin=MARGIN),
        acceleration=5.0,
        rate=200.0,
        conflict=conflict,
        **options,
    )


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_pairs_are_separated_together_and_others_are_named(
    three: arm.Cell, conflict: str
) -> None:
    start = np.array([APART - 0.006, -(APART - 0.011), 0.0, 0.4])
    control = control_of(three, conflict)
    motion = control.simulate(start, [-5.0, start], 400)
    x, y, z, turn = motion.q.T
    # Tasks pull x into its ball, and y nowhere.
    assert (np.diff(x) > -1e-9).all()
    assert (np.diff(np.abs(y)) > -1e-9).all()
    assert x[-1] > APART - 6e-4
    assert -y[-1] > APART - 6e-4
    assert np.abs(z).max() < 1e-9  # what one ball gains, the other loses
    assert np.abs(turn - 0.4).max() < 1e-9  # no joint changes that distance
    assert (motion.reason == R.INSIDE).all()
    named = {frozenset(pair) for pair in motion.inseparable[-1]}
    assert named == {frozenset(("m/ground", "m/z")), frozenset(("m/ground", "m/turn"))}
    assert {
        frozenset(p) for p in control(start, 0.0 * start, [-5.0, start]).inseparable
    } == named


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_rows_are_those_of_calls_with_a_row_alone(
    three: arm.Cell, conflict: str
) -> None:
    control = control_of(three, conflict)
    rng = np.random.default_rng(1)
    Q = np.array([APART, -APART, 0.0, 0.4]) + rng.uniform(-0.02, 0.02, (40, 4))
    V = rng.uniform(-0.2, 0.2, (40, 4))
    together = control(Q, V, [-5.0, Q]).numbers
    alone = np.array(
        [control(q, v, [-5.0, q]).numbers for q, v in zip(Q, V, strict=True)]
    )
    assert together == pytest.approx(alone, abs=1e-9)
    again = control(Q[7:9], V[7:9], [-5.0, Q[7:9]]).numbers
    assert np.array_equal(again, together[7:9])


def test_a_margin_that_holds_names_nothing(three: arm.Cell) -> None:
    check = three.collision(margin=0.005)
    control = three.controller(tasks.Posture(), avoid=check, acceleration=5.0)
    q = np.array([APART, -APART, 0.0, 0.4])
    step = control(q, 0.0 * q, q)
    assert step.reason == R.MET
    assert step.inseparable == ()
