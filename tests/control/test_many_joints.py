"""Controllers of many joints, whose linear algebra is in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.control.obstacles import CAPSULE_WIDTH
from armillary.control.step import Step
from armillary.ik import scaled_rates
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import programs_in
from armillary.model.rules import Rule
from armillary.shapes import Sphere
from arms import arm_of_axes

Array = np.ndarray
STEPS = 24


def chain(n: int) -> arm.Cell:
    """Return an arm of balls whose axes lie along x, y and z in turn."""
    at = np.zeros((n, 3))
    at[:, 2] = 0.2 * np.arange(n)
    cell = arm_of_axes(
        "R" * n, np.eye(3)[np.arange(n) % 3], at, tool=arm.Pose.translation(0, 0, 0.1)
    )
    (made,) = cell.manipulators
    ball = Sphere(radius=0.13)
    links = [
        link.replace(collisions=[ball]) if link.name[0] == "l" else link
        for link in made.links
    ]
    rules = [
        Rule(a=f"l{i}", b=f"l{j}", tested=True) for j in range(n) for i in range(j - 1)
    ]
    return cell.replace(
        manipulators=[made.replace(links=links)],
        rules=arm.Rules(between=False, rules=rules),
    )


def controller(cell: arm.Cell, conflict: str, *, avoids: bool = True) -> Any:
    listed = [tasks.Frame("tool", priority=0), tasks.Posture(weight=1e-3)]
    if conflict == "bend":
        listed.insert(1, tasks.Position("l4", weight=0.1, priority=1))
    check = cell.collision(margin=0.02) if avoids else None
    return cell.controller(
        listed, avoid=check, acceleration=100.0, velocity=2.0, conflict=conflict
    )


def samples(cell: arm.Cell, conflict: str) -> tuple[Array, Array, list[Any]]:
    """Return positions, rates and targets; links are near each other in some rows."""
    n = len(cell.joint_names)
    rng = np.random.default_rng(n)
    Q = rng.uniform(-1.6, 1.6, (40 * STEPS, n))
    Q = Q[np.argsort(cell.collision().clearance(Q))]
    near = np.searchsorted(cell.collision().clearance(Q), 0.015)
    Q = Q[near : near + STEPS]
    X = cell.fk("tool")(Q + rng.uniform(-0.5, 0.5, Q.shape))
    targets = [X, Q[::-1].copy()]
    if conflict == "bend":
        targets.insert(1, cell.fk("l4")(Q + 0.3)[:, :3, 3])
    return Q, rng.uniform(-0.3, 0.3, Q.shape), targets


def same_rates(found: Step, wanted: Step) -> None:
    """Compare rates, but where rounding decides how far they are scaled to braking.

    Of scales with which links remain equally near, the one that ends best is chosen.
    """
    alike = np.abs(found.scale - wanted.scale) < 1e-6
    assert alike.mean() > 0.8
    np.testing.assert_allclose(found.qd[alike], wanted.qd[alike], rtol=0.0, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_loops_answer_as_straight_code(
    conflict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = chain(8)
    Q, V, targets = samples(cell, conflict)
    loops = controller(cell, conflict)(Q, V, targets)
    single = controller(cell, conflict)
    monkeypatch.setattr(scaled_rates, "UNROLLED", 8)
    straight = controller(cell, conflict)(Q, V, targets)
    # Rows are active, and pairs inside the margin are separated.
    assert sum(any("limit" not in text for text in texts) for texts in loops.active) > 3
    assert (loops.distance < 0.02).any()
    same_rates(loops, straight)
    np.testing.assert_array_equal(loops.reason, straight.reason)
    for mine, theirs in zip(loops.active, straight.active, strict=True):
        assert set(mine) == set(theirs)
    monkeypatch.undo()
    for k in range(0, STEPS, 4):
        one = single(Q[k], V[k], [target[k] for target in targets])
        np.testing.assert_allclose(one.qd, loops.qd[k], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_loops_answer_as_their_formulas(conflict: str) -> None:
    """Every fourth row, by machine code and by formulas on Python's floats."""
    cell = chain(9)
    control = controller(cell, conflict)
    Q, V, targets = samples(cell, conflict)
    rows = [x[::4] for x in (Q, V, *targets)]
    rows += control._target_rates(None)
    kernel = control._step(0, CAPSULE_WIDTH)._kernel(0, 4)
    native = kernel._native
    assert isinstance(native.core, Pipeline)
    layout = control._step(0, CAPSULE_WIDTH).layout
    found = Step(kernel(*rows), layout)
    assert sum(any("limit" not in text for text in texts) for texts in found.active) > 1
    assert (found.distance < 0.02).any()
    (wanted,) = evaluate(native.core, native.tables, *rows, called=native.called)
    same_rates(found, Step(wanted, layout))
    np.testing.assert_array_equal(found.reason, Step(wanted, layout).reason)


def reaches(n: int) -> None:
    cell = chain(n)
    control = controller(cell, "bend", avoids=False)
    q = 0.05 * np.sin(np.arange(n))
    X = cell.fk("tool")(q + 0.02)
    motion = control.simulate(q, [X, cell.fk("l4")(q)[:3, 3], None], 1500)
    assert np.abs(cell.fk("tool")(motion.q[-1]) - X).max() < 1e-5
    assert (np.abs(motion.qd) <= 2.0 + 1e-9).all()


def test_a_chain_of_twenty_joints_reaches_its_target() -> None:
    reaches(20)


@pytest.mark.thorough
def test_a_chain_of_sixty_joints_reaches_its_target() -> None:
    reaches(60)


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_straight_code_grows_with_joints_not_with_matrices(conflict: str) -> None:
    """Formulas of tasks, bounds and rows grow with n; poses and twists are others."""

    def operations(n: int) -> int:
        control = controller(chain(n), conflict, avoids=False)
        kernels = control._step(0, CAPSULE_WIDTH)
        programs = programs_in(kernels._pipeline.stages)
        return sum(one.operation_count for one in programs if "twists" not in one.name)

    assert operations(36) < 2.3 * operations(18)
